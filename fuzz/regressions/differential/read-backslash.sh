read x y <<< 'k\ l m'; pa "$x" "$y"; read -r x <<< 'k\l'; pb "$x"
