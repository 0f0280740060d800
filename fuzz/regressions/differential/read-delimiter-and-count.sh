read -d : x <<< 'k:l'; pb $x; read -n 2 y <<< klm; pb $y; IFS=: read a b <<< 'k::l'; pc "$a" "$b"
