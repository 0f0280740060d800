declare -A m; m[k]=1; m[l]=2; m[two]=3; pa "${!m[@]}" "${m[@]}"
