//! The constructs of bash that a command can stand in. In a template `{}` is the command on lines of its own, `{q}` the
//! command in single quotes, `{d}` in double quotes, `{b}` as backticks take it.

/// By name; several templates of one name are spellings of one construct.
pub(super) const CONSTRUCTS: &[(&str, &[&str])] = &[
    ("plain", &["{}"]),
    ("list", &["pb 1; pc 2\n{}\npd 3", "{}\n{}", "# note\n{} # end"]),
    ("and", &["true && {\n{}\n}", "pb 1 && {\n{}\n}", "pf && pb\n{}"]),
    ("or", &["false || {\n{}\n}", "pf 1 || {\n{}\n}", "pb || pc || {\n{}\n}\npf || pd"]),
    ("and-or", &["pf && pb || {\n{}\n}", "false && pb || true && {\n{}\n}"]),
    ("not", &["! {\n{}\n}", "! pf && {\n{}\n}", "time {\n{}\n}", "time -p pb\n{}"]),
    ("pipe", &["{\n{}\n} | pb", "pb | {\n{}\n}", "pb |& {\n{}\n} | pc", "echo in | {\n{}\n}"]),
    ("background", &["{\n{}\n} & wait", "pb & {\n{}\n}\nwait", "{\n{}\n} & pb $! &\nwait"]),
    ("group", &["{\n{}\n}", "{ pb; {\n{}\n}; } 2>/dev/null"]),
    ("subshell", &["(\n{}\n)", "( ( pb; (\n{}\n) ) )", "(cd sub\n{}\n)\npb"]),
    ("if", &["if true; then\n{}\nfi", "if pb; then\n{}\nelse pc; fi", "if pf; then pb; else\n{}\nfi"]),
    ("if-condition", &["if\n{}\nthen pb; else pc; fi", "if false; then :; elif\n{}\nthen pb; else pc; fi"]),
    ("elif", &["if pf; then pb; elif pf 2; then pc; elif true; then\n{}\nfi"]),
    ("while", &["while true; do\n{}\nbreak; done", "n=0; while [ $n -lt 2 ]; do n=$((n+1))\n{}\ndone"]),
    ("while-condition", &["while\n{}\nfalse; do pb; done", "until\n{}\ntrue; do pb; done"]),
    (
        "while-read",
        &[
            "printf 'l1\\nl2 x\\n' | while read -r l m; do pb \"$l\" $m\n{}\ndone",
            "while IFS=: read -r l m; do pb \"$l\" \"$m\"\n{}\ndone <<< 'k:v w'",
        ],
    ),
    ("until", &["until false; do\n{}\nbreak; done", "until pb; do\n{}\ndone\n{}"]),
    (
        "for",
        &[
            "for i in 1 2; do\n{}\ndone",
            "for i in *.txt; do pb \"$i\"\n{}\ndone",
            "for i in a{1..2} 'q r'; do pb $i\n{}\ndone",
        ],
    ),
    ("for-positional", &["set -- k l\nfor i; do pb $i\n{}\ndone", "f() { for i do pb \"$i\"\n{}\ndone; }; f 'k k' l"]),
    ("for-arithmetic", &["for ((i=0; i<2; i++)); do pb $i\n{}\ndone", "for ((;;)) {\n{}\nbreak; }"]),
    ("select", &["select s in k l; do\n{}\nbreak; done <<< 1", "select s in k l; do pb $s\nbreak; done <<< 2\n{}"]),
    (
        "case",
        &[
            "case k in k)\n{}\n;; *) pb;; esac",
            "case \"$HOME\" in /*)\n{}\n;; esac",
            "case x in a|b) pb;; (x|y)\n{}\nesac",
        ],
    ),
    (
        "case-fallthrough",
        &["case k in k) pb;& l)\n{}\n;; m) pc;; esac", "case k in k) pb;;& ?)\n{}\n;;& [k-l]) pc;; esac"],
    ),
    ("function", &["f() {\n{}\n}\nf", "function f {\n{}\n}; f 1", "f() (\n{}\n); f", "f() if true; then\n{}\nfi; f"]),
    (
        "function-parameters",
        &["f() { pb \"$1\" $# \"${@:2}\"\n{}\n}; f 'k k' l m", "f() { shift; pb \"$@\"\n{}\n}; f k l"],
    ),
    (
        "function-local",
        &["f() { local v=k u; u=\"$v\"; pb $v $u\n{}\n}; v=l; f; pb $v", "f() { v=k; }; v=l; f; pb $v\n{}"],
    ),
    (
        "function-redefined",
        &["f() { pb; }; f() {\n{}\n}; f", "pb() { pc \"$@\"; }; pb k\n{}", "cd() { pb \"$@\"; }; cd sub\n{}"],
    ),
    (
        "function-recursive",
        &[
            "f() { [ $# -gt 0 ] || return; pb \"$1\"; shift; f \"$@\"\n}; f k l m\n{}",
            "f() { if [ $1 -gt 0 ]; then f $(($1-1)); fi\n{}\n}; f 2",
        ],
    ),
    ("function-nested", &["f() { g() {\n{}\n}; }; f; g", "f() { g; }; g() {\n{}\n}; f"]),
    (
        "function-returns",
        &[
            "f() { return 1; }; f || {\n{}\n}",
            "f() { pb; return; pc; }; f\n{}",
            "f() { true && return 0; pc; }; f; pb\n{}",
        ],
    ),
    (
        "alias",
        &[
            "shopt -s expand_aliases\nalias k={q}\nk",
            "shopt -s expand_aliases\nalias k='pb x ' l=y\nk l\n{}",
            "alias pb='pc z'\npb\n{}",
        ],
    ),
    ("substitution", &["pb \"$(\n{}\n)\"", "pb $(\n{}\n) z", "x=$(\n{}\n); pb \"$x\"", ": $(: $(\n{}\n))"]),
    ("backticks", &["pb `{b}`", "x=\"`{b}`\"; pb \"$x\""]),
    (
        "substitution-nested",
        &["pb \"a$(pc \"$(\n{}\n)\" k)b\"", "pb \"${n:-$(\n{}\n)}\"", "pb ${n+$(\n{}\n)} ${HOME:+z}"],
    ),
    (
        "arithmetic",
        &[
            "pb $(( 1 + $(\n{}\necho 1\n) ))",
            "(( x = $(\n{}\necho 2\n) )); pb $x",
            "let x=1+2; pb $x\n{}",
            "pb $[2*3]\n{}",
        ],
    ),
    ("subscript", &["a[$(\n{}\necho 1\n)]=k; pb \"${a[1]}\"", "a=(k l); pb ${a[$(\n{}\necho 1\n)]}"]),
    (
        "test",
        &[
            "[[ -n $(\n{}\n) || -e a.txt ]] && pb",
            "if [[ $HOME == /* && ! -e nope ]]; then\n{}\nfi",
            "[ -f a.txt -a -n k ] && {\n{}\n}",
        ],
    ),
    ("test-match", &["[[ abc =~ b(c) ]] && {\n{}\n}", "[[ $HOME =~ ^/ ]] || pc\n{}"]),
    (
        "process-input",
        &["pb <(\n{}\n) >/dev/null", "cat < <(\n{}\n)", "while read -r l; do pb \"$l\"; done < <(\n{}\necho k\n)"],
    ),
    ("process-output", &["echo k > >(\n{}\n); wait", "echo k | tee >(\n{}\n) >/dev/null; wait"]),
    ("heredoc", &["pb <<E\n$(\n{}\n)\nE", "pb <<-E\n\t$(\n{}\n)\n\tE", "pb <<'E'\n$(pc)\nE\n{}"]),
    (
        "heredoc-script",
        &[
            "bash <<'E'\n{}\nE",
            "sh -s k <<-'E'\n\tpb \"$1\"\n\tE\n{}",
            "bash <<E\npb $HOME \\$x\nE\n{}",
            "cat <<'E' | sh\npb k\nE\n{}",
        ],
    ),
    ("here-string", &["pb <<< \"$(\n{}\n)\"", "bash <<< {q}", "read -r x y <<< 'k l m'; pb \"$x\" \"$y\"\n{}"]),
    (
        "redirected",
        &[
            "{\n{}\n} > out",
            "{\n{}\n} >> sub/out 2>&1",
            "(\n{}\n) &> out",
            "while true; do\n{}\nbreak; done > 'o p'",
            "if true; then\n{}\nfi 2> err",
        ],
    ),
    (
        "redirect-alone",
        &[
            "> out\n{}",
            "exec 3> out 4>> sub/o\n{}\nexec 3>&-",
            "exec 5<> out\n{}",
            ": > out; pb < out\n{}",
            "pb 9> out >&9\n{}",
        ],
    ),
    (
        "redirect-target",
        &["pb > out$(\n{}\n)", "pb 2> \"$(\n{}\necho err)\"", "f() { pb; } > out\nf\n{}", "pb {fd}> out\n{}"],
    ),
    ("coprocess", &["coproc {\n{}\n}\nwait", "coproc C { cat; }\n{}\nexec {C[1]}>&-; wait", "coproc pb k; wait\n{}"]),
    ("trap", &["trap {q} EXIT", "trap {q} 0\nexit 0", "trap {q} EXIT; pb; exit 1", "( trap {q} EXIT; pb )"]),
    (
        "trap-other",
        &[
            "trap {q} ERR; pf; pb",
            "trap {q} DEBUG; pb; trap - DEBUG",
            "trap {q} USR1; pb",
            "f() { trap {q} RETURN; pb; }; f",
        ],
    ),
    ("eval", &["eval {q}", "eval \"{d}\"", "eval 'pb k;' {q}", "x={q}; eval \"$x\"", "eval eval {Q}"]),
    (
        "source",
        &[
            "cat > s.sh <<'E'\n{}\nE\n. ./s.sh",
            "source /dev/stdin <<< {q}",
            "source <(echo {q})",
            "echo 'pb \"$1\"' > s.sh; . ./s.sh k\n{}",
            "printf '%s\\n' {q} > s.sh; bash s.sh",
        ],
    ),
    ("exec", &["(exec pb k)\n{}", "{}\nexec pb z", "exec bash -c {q}", "(exec -a n pb); {\n{}\n}"]),
    (
        "builtins",
        &[
            "command pb k\n{}",
            "builtin eval {q}",
            "command eval {q}",
            "command -v pb; command -p :\n{}",
            "builtin cd sub; pb\n{}",
        ],
    ),
    (
        "shell",
        &[
            "sh -c {q}",
            "bash -c {q} k l",
            "bash -c 'pb \"$0\" \"$@\"' k 'l m'\n{}",
            "bash -ec {q}",
            "sh -c \"{d}\"",
            "bash -c \"bash -c {q}\"",
        ],
    ),
    ("piped-shell", &["echo {q} | sh", "printf '%s\\n' {q} | bash", "echo {q} | bash -s k", "cat <<< {q} | sh"]),
    (
        "env",
        &[
            "env bash -c {q}",
            "env K=k bash -c 'pb \"$K\"'\n{}",
            "env -i PATH=\"$PATH\" pb k\n{}",
            "env -u HOME pb; env pc k\n{}",
            "K=k env pb\n{}",
        ],
    ),
    (
        "wrapped",
        &[
            "nice -n 5 pb k\n{}",
            "nohup pb k\n{}",
            "timeout 5 bash -c {q}",
            "timeout -k 1 5s pb 'k l'\n{}",
            "nice timeout 3 env pb k\n{}",
            "setsid -w pb k\n{}",
        ],
    ),
    (
        "xargs",
        &[
            "echo k l | xargs pb\n{}",
            "printf 'k\\nl m\\n' | xargs -I{} pb {} z\n{}",
            "echo k l m | xargs -n 2 pb\n{}",
            "printf 'k\\0l m\\0' | xargs -0 pb\n{}",
            "echo x | xargs bash -c {q}",
            "printf 'k l\\n' | xargs -d '\\n' -L1 pb\n{}",
        ],
    ),
    (
        "mapfile",
        &[
            "mapfile -t a <<< $'k\\nl m'; pb \"${a[@]}\"\n{}",
            "mapfile -C pb -c 1 a < b.txt\n{}",
            "readarray -t a < <(echo k; echo l); pb \"${a[1]}\"\n{}",
        ],
    ),
    (
        "printf-v",
        &[
            "printf -v x '%s-%d' k 3; pb \"$x\"\n{}",
            "printf -v 'a[1]' k; pb \"${a[1]}\"\n{}",
            "printf -v c 'p%c' b; $c k\n{}",
        ],
    ),
    (
        "prompt",
        &[
            "x='$(pb k)'; pc \"${x@P}\"\n{}",
            "x={q}; y='$(eval \"$x\")'; : \"${y@P}\"",
            "PS4='$(pb) '; set -x; :; set +x\n{}",
        ],
    ),
    (
        "operators",
        &[
            "x=pabc; pb ${x#p} ${x##*a} ${x%c} ${x%%b*} ${x/a/z} ${x//[ab]/-}\n{}",
            "x=k.tar.gz; pb \"${x%.*}\" \"${x##*.}\" ${x:1:3} ${x: -2} ${#x}\n{}",
            "x=kL; pb ${x^} ${x^^} ${x,,} ${x@U} ${x@L} ${x@Q}\n{}",
            "pb ${u:-k l} \"${u:=m n}\" \"$u\" ${u:+o}\n{}",
            "x='k l'; pb ${x// /} \"${x/#k/z}\" \"${x/%l/z}\"\n{}",
        ],
    ),
    (
        "arrays",
        &[
            "a=(k 'l m' n); pb \"${a[@]}\" \"${a[*]}\" ${a[-1]} ${#a[@]}\n{}",
            "a=(k l); a+=(m); unset 'a[0]'; pb \"${a[@]}\" \"${!a[@]}\"\n{}",
            "declare -A m=([k]=v [l]='w x'); pb \"${m[k]}\" \"${m[l]}\"\n{}",
            "a=(k l m n); pb \"${a[@]:1:2}\" \"${a[@]/k/z}\" ${a[@]#k}\n{}",
            "a[3]=k; a[1]=l; pb \"${a[@]}\"\n{}",
        ],
    ),
    (
        "braces",
        &[
            "pb a{k,l}b {1..3} {a..c} {k,{l,m}}n\n{}",
            "pb {01..03} {5..1..2} x{,y} {k} {a,b}{1,2}\n{}",
            "p{b,c} k\n{}",
            "pb \"{k,l}\" {'k l',m} $HOME/{k,l}\n{}",
        ],
    ),
    (
        "globs",
        &[
            "pb *.txt ?.txt [ab].txt\n{}",
            "pb sub/* */e.txt *.nope\n{}",
            "x='*.txt'; pb $x \"$x\"\n{}",
            "set -f; pb *.txt; set +f\n{}",
            "pb s*/ [!c]*.txt [[:alpha:]].txt\n{}",
        ],
    ),
    (
        "tilde",
        &["pb ~ ~/k ~+ \"~\" x~\n{}", "x=~/k; pb $x a=~/k\n{}", "HOME=/k; pb ~ ~/l\n{}", "cd sub; pb ~- ~+/x\n{}"],
    ),
    (
        "ifs",
        &[
            "IFS=:; x=k:l:m; pb $x \"$x\"\n{}",
            "IFS=,; a=(k l); pb \"${a[*]}\"; set -- m n; pb \"$*\"\n{}",
            "IFS=; x='k l'; pb $x; IFS=' '\n{}",
            "x=' k  l '; pb $x \"$x\"\n{}",
            "IFS=' :' x='k : l::m'; pb $x\n{}",
        ],
    ),
    (
        "positional",
        &[
            "set -- k 'l m' n; pb \"$@\" $# $*\n{}",
            "set -- k l m; shift 2; pb \"$1\"\n{}",
            "set -- k l; set -- \"$@\" m; pb \"${@: -1}\" \"${*:1:2}\" ${!#}\n{}",
            "set k l; pb $2 $1 ${10}\n{}",
        ],
    ),
    (
        "references",
        &[
            "declare -n r=x; x=k; pb $r; r=l; pb $x\n{}",
            "f() { local -n r=$1; r=k; }; f x; pb $x\n{}",
            "x=y y=k; pb ${!x}\n{}",
            "xa=k xb=l; pb ${!x@} ${!x*}\n{}",
        ],
    ),
    (
        "declarations",
        &[
            "declare x=k y; export z='l m'; readonly w=n; pb $x $z $w\n{}",
            "declare -i n=1+2; n+=3; pb $n\n{}",
            "declare -u x=k; declare -l y=LM; pb $x $y\n{}",
            "export X=k; bash -c 'pb $X'\n{}",
            "x=$(echo k) y=$x; pb $y\n{}",
            "declare -a a=(k l); local q 2>/dev/null; pb ${a[1]}\n{}",
        ],
    ),
    (
        "assignments",
        &[
            "x=k; x+=l; pb $x\n{}",
            "x=k pb $x\n{}",
            "x=k y=$x; pb \"$y\"\n{}",
            "x='k l' ; y=$x; pb $y \"$y\"\n{}",
            "unset x; pb \"[$x]\" ${x-z}\n{}",
            "x=k; x=l true; pb $x\n{}",
        ],
    ),
    (
        "read",
        &[
            "read x y <<< 'k l m'; pb \"$x\" \"$y\"\n{}",
            "read -ra a <<< 'k l m'; pb \"${a[@]}\"\n{}",
            "echo k | { read -r x; pb \"$x\"; }\n{}",
            "read -r x < b.txt; pb \"$x\"\n{}",
            "IFS=, read -r x y <<< 'k,l m'; pb \"$x\" \"$y\"\n{}",
            "read -d : x <<< 'k:l'; pb $x\n{}",
        ],
    ),
    (
        "getopts",
        &[
            "set -- -k -l v w; while getopts kl: o; do pb \"$o\" \"$OPTARG\"; done; shift $((OPTIND-1)); pb \"$1\"\n{}",
            "while getopts k o -k; do case $o in k)\n{}\n;; esac; done",
        ],
    ),
    (
        "directory",
        &[
            "cd sub && pb\n{}",
            "cd sub; pb\n{}",
            "cd nope && pb\n{}",
            "cd nope; pb\n{}",
            "cd sub; cd ..; pb; cd - >/dev/null; pc\n{}",
            "cd sub/deep && cd ../.. && pb\n{}",
            "cd \"$HOME\" && pb > here\n{}",
            "cd; pb\n{}",
        ],
    ),
    (
        "directory-stack",
        &[
            "pushd sub >/dev/null; pb; popd >/dev/null; pc\n{}",
            "pushd sub && pushd deep; pb; popd; pc; popd; pd\n{}",
            "CDPATH=sub; cd deep && pb\n{}",
        ],
    ),
    (
        "directory-or",
        &[
            "cd nope || pb\n{}",
            "cd nope || cd sub; pb\n{}",
            "cd sub || exit; pb\n{}",
            "if cd sub; then pb; fi; pc\n{}",
            "cd nope 2>/dev/null || { pb; }\n{}",
            "cd sub && pf || pb\n{}",
            "(cd sub && pb); pc\n{}",
        ],
    ),
    (
        "leaving",
        &[
            "{}\nexit 0\npb",
            "(exit 3) || {\n{}\n}",
            "for i in 1 2 3; do [ $i = 2 ] && continue; pb $i; done\n{}",
            "for i in 1 2; do for j in 1 2; do break 2; done; pb; done\n{}",
            "set -e; false || true\n{}\npf\npb",
        ],
    ),
    ("comments", &["pb k # {\n{}", "pb k#l '#' \\# m\n{}", ": '\n'; {\n{}\n} # )"]),
    ("continued", &["pb k \\\nl\\\nm\n{}", "pb k &&\n\n{\n{}\n}", "pb |\n# note\npc\n{}", "p\\\nb k\n{}"]),
    (
        "keywords",
        &[
            "echo if then; pb for in do done\n{}",
            "pb { } ! [[ ]]\n{}",
            "x=if; pb $x fi\n{}",
            "pb case esac; time pb time\n{}",
        ],
    ),
    (
        "indirect-name",
        &[
            "x=pb; $x k\n{}",
            "x='pb k'; $x l\n{}",
            "p=p; ${p}b k\n{}",
            "'p'b k; p''b l; \"pb\" m; \\pb n\n{}",
            "$(echo pb) k\n{}",
            "a=(pb k l); \"${a[@]}\"\n{}",
            "set -- pb k; \"$@\"\n{}",
        ],
    ),
    (
        "decoded",
        &[
            "x=$(echo cGIgaw== | base64 -d); $x\n{}",
            "echo cGIgaw== | base64 -d | sh\n{}",
            "pb $(echo k-l | tr - _) $(echo abc | rev)\n{}",
            "pb $(echo kl | sed s/k/m/)\n{}",
            "pb \"$(printf '%s\\n' k l)\" $(cat a.txt)\n{}",
        ],
    ),
    (
        "branches",
        &[
            "x=k; if pf; then x=l; fi; pb $x\n{}",
            "if pb; then x=k; else x=l; fi; pc $x\n{}",
            "case $HOME in /*) x=k;; *) x=l;; esac; pb $x\n{}",
            "x=k; pf && x=l; pb $x; pb && x=m; pc $x\n{}",
            "x=; for i in k l; do x=\"$x $i\"; done; pb $x\n{}",
            "x=k; (x=l); pb $x\n{}",
            "x=k; pb | x=l; pc $x\n{}",
        ],
    ),
    (
        "loops",
        &[
            "n=0; while ((n<3)); do pb $n; ((n++)); done; pc $n\n{}",
            "n=3; until [ $n = 0 ]; do pb $n; n=$((n-1)); done\n{}",
            "x=k; while pb $x; do x=l; [ $x = l ] && break; done; pc $x\n{}",
            "for f in sub/*; do pb \"${f##*/}\" \"${f%/*}\"; done\n{}",
            "for i in 1 2 3; do x=$i; done; pb $x $i\n{}",
        ],
    ),
];
