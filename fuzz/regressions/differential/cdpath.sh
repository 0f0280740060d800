CDPATH=sub; cd deep && pb > out; cd sub && pa; cd sub || pc
