cd b;pb ~- "$OLDPWD" e
