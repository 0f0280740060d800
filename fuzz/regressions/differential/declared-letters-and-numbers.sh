declare -u x=k; declare -l y=LM; declare -i n=1+2; n+=3; pb $x $y $n
