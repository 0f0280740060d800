x=$(exec pb k; echo 2); pa "$x"; (( y = $(exec pb; echo 2) )); pc $y
