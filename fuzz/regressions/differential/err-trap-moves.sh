trap 'cd sub' ERR; pf; pb
