set -- -l v w;while getopts l: o;do "G";done;shift $((OPTIND-1))
for i do a;done>"$@"
