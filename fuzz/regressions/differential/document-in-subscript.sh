a[$(
bash <<E
pb $HOME \$x
E
x=k; pa "$x"
echo 1
)]=k; pb "${a[1]}"
