env a/b=1 pa k; env --split-string='a.b=1 pb'
