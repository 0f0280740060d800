shopt -s expand_aliases
alias k='pb x ' l=y
k l
