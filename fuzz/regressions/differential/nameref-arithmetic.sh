declare -n n=v; n=0; ((n++)); pa $v; ((n+=2)); pb "$n"
