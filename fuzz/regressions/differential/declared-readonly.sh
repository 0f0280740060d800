readonly x=k
x=l
pa "$x"
