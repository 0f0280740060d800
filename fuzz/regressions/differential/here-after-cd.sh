pushd p
pb ~ k ~+ "$PWD" x
