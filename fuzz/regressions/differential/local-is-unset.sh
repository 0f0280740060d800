x=k; f() { local x; pa "[$x]"; declare -i x; x=1+1; pa $x; }; f; x=1+1; pb "$x"
