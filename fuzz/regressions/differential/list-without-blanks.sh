IFS=a
a=(k l m n);pb "${a[@]:2}" "${a[@]}" ${a[@]#k}
