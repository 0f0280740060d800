printf '
l'$t|xargs -0 pa
