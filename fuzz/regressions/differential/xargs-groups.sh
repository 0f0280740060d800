echo k l m | xargs -n 2 pb; printf 'k l\nm\n' | xargs -L1 pa; printf 'k \nl\nm\n' | xargs -L 1 pc
