cd b
CDPATH=sub cd deep&&pb
