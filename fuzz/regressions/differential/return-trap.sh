f() { trap 'pa "$@"' RETURN; pb; }; set -- k; f l m; g() { trap 'trap "pa k" EXIT' RETURN; }; g
