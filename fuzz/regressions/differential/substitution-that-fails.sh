pa "$(printf "|""${}")" "$(echo l ${x?k})" "$(echo l $((1/0)))" k
