pa "$(printf '%s|' ?.txt z)"; printf -v y %s ?.txt; pb "$y"
