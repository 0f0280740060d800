x=$(echo *.txt); pa "$x"
