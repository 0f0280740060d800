a=('' k)
mapfile -Cb a<b.txt
cat<<<"${a[*]}"|xargs pa
