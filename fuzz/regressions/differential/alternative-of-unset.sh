pa ${m+"q r"s t} "${HOSTS+k}" l
