cd 1
pushd ${v+..}&&a;popd;pb
