pa "$(l+=(\	b);pb "${l[0]}"; pc \	b)"
