pa "$(printf "|""${}")" "$(echo l ${x?k})" k
