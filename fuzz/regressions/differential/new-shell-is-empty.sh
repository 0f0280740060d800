f() { pc; }; pb() { pc; }; a=(k); bash -c 'pb; pa "${a[@]}" "${a[*]}"'
