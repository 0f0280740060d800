printf '%s\0' $'k\nl' m | xargs -0 pa; echo k | xargs -0 pb
