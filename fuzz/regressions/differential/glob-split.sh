for i in *.txt; do pa $i; done; eval pb *.txt; printf '%s\n' *.txt | xargs pc
