declare x=k{,.1}; pa "$x"; export v=l{1..2}; sh -c 'pa $v'
