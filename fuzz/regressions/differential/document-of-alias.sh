shopt -s expand_aliases
alias k='a=(k l)<<E
pa "${a[@]}"'
k
