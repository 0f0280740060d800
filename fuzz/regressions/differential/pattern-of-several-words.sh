a=(k "");x="k ";pa "${x#"${a[@]}"}"; set -- k l; x="k l"; pd "${x#"$@"}"; case k in "$@") pb;; esac
