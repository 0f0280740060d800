x=k;pa "${x/k/`printf '&'`}" "${x/k/[&]}" "${x/k/"&"}"
