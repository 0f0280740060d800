l=([ab]* z);pa "${l[@]}"
