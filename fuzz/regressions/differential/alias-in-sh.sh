sh -c 'alias k=pa
k l'
