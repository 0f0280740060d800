a=(k l); a+=(m); unset 'a[0]'; pb "${a[@]}" "${!a[@]}"
