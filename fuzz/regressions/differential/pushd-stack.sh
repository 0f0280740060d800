pushd sub && pushd deep; pa; popd; pb ~1 ~+1; popd; pc; popd; pd
