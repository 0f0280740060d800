set -- *.txt z; pa $# "$2"; shift; pb "$@"; a=(*.txt y); pc "${a[1]}" "${#a[@]}" "${a[@]:1}"
