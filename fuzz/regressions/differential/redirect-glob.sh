pa > s[u]b/e*; pb >> nope*; a=(k l); pc > "${a[*]}"
