set -- k l m; shift 4; pa "$@"; shift -1; pb "$@"; shift 1+1; pc "$@"
