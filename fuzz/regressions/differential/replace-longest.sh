x=kfk; pa "${x//k*/z}" "${x/f*/}" "${x/#k?/y}" "${x/%?k/y}"
