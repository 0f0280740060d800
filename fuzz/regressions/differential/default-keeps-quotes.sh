set -- 'k l' m; pa ${u-"$@"} ${u:-"n o" p} "${u:-$@}" ${m+"q r"s t}
