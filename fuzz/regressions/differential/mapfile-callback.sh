mapfile -t -C pa -c 1 a <<< $'k\nl m'; pb "${a[1]}"
