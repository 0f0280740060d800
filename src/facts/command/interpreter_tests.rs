//! What the interpreter must see: loops and recursion, code in names and subscripts, other names for programs, links,
//! values that depend on branches. And what it must not claim to see.

use super::*;
use crate::facts::Surroundings;
use crate::verdict::{Decision, Stage, StageVerdict};

fn decide(command: &str) -> (Decision, Vec<String>) {
    let here = Surroundings::new("/home/alice/proj", "/home/alice");
    let findings = Guard::embedded().analyse(command, &here).findings;
    let ids = findings.iter().map(|finding| finding.id.to_string()).collect();
    (StageVerdict::new(Stage::Command, findings).decision, ids)
}

#[test]
fn whatever_bash_would_run_is_judged() {
    let missed: Vec<String> = DESTROYING
        .iter()
        .filter_map(|command| {
            let (decision, ids) = decide(command);
            (decision != Decision::Deny).then(|| format!("{decision} {ids:?} {command}"))
        })
        .collect();
    assert!(missed.is_empty(), "{} of {} pass:\n{}", missed.len(), DESTROYING.len(), missed.join("\n"));
}

#[test]
fn what_bash_would_not_run_is_not_held_against_a_script() {
    let flagged: Vec<String> = HARMLESS
        .iter()
        .filter_map(|command| {
            let (decision, ids) = decide(command);
            (decision != Decision::Allow).then(|| format!("{decision} {ids:?} {command}"))
        })
        .collect();
    assert!(flagged.is_empty(), "{} of {} are flagged:\n{}", flagged.len(), HARMLESS.len(), flagged.join("\n"));
}

const DESTROYING: &[&str] = &[
    "f() { while [ $# -gt 0 ]; do rm -rf \"$1\"; shift; done; }; f build /",
    "f() { [ $# -eq 0 ] || { rm -rf \"$1\"; shift; f \"$@\"; }; }; f build /",
    "set -- build /; while (( $# )); do rm -rf -- \"$1\"; shift; done",
    "set -- build /; until [ $# -eq 0 ]; do rm -rf \"$1\"; shift; done",
    "set -- build /; for ((;$#;)); do rm -rf \"$1\"; shift; done",
    "a=(build /); for ((i=0;i<2;i++)); do rm -rf \"${a[$i]}\"; done",
    "while read -r d; do rm -rf \"$d\"; done <<EOF\nbuild\n/\nEOF",
    "d=build; while :; do rm -rf $d; d=/; done",
    "d=build; for i in 1 2; do rm -rf $d; d=/; done",
    "d=build; while read x; do rm -rf $d; d=/; done < list",
    "set -- build /; while [ -n \"$1\" ]; do rm -rf \"$1\"; shift; done",
    "set -- build /; while true; do [ $# -eq 0 ] && break; rm -rf \"$1\"; shift; done",
    "d=build; while true; do if [ -n \"$X\" ]; then d=/; break; fi; done; rm -rf $d",
    "f() { if [ -n \"$X\" ]; then d=/; return; fi; d=build; }; f; rm -rf $d",
    "trap 'rm -rf $d' EXIT; d=/; exit",
    "d=build; f() { rm -rf $d; [ $d = / ] && return; d=/; f; }; f",
    "a=/; b=; [ -n \"$X\" ] && a=x; [ -n \"$Y\" ] && b=etc; rm -rf $a$b",
    "a=x; b=x; [ -n \"$X\" ] && a=r; [ -n \"$Y\" ] && b=m; $a$b -rf /",
    "d=/; [ -n \"$X\" ] && d=build; echo $d | xargs rm -rf",
    "set -- /; [ -n \"$X\" ] && set -- build; rm -rf \"$1\"",
    "f() { rm -rf /; }; [ -n \"$X\" ] && f() { :; }; f",
    "if [ -n \"$X\" ]; then rm() { :; }; fi; rm -rf /",
    "cd /; [ -n \"$X\" ] && cd build; rm -rf *",
    "x=1; case $x in 1) d=/;; *) d=build;; esac; rm -rf $d",
    "case a in a) ;& b) rm -rf /;; esac",
    "case $X in a) d=/ ;;& *) ;; esac; rm -rf $d",
    "! false && rm -rf /",
    "let 'x=a[$(rm -rf /)]'",
    "(( a[$(rm -rf /)] ))",
    "[[ -v 'a[$(rm -rf /)]' ]]",
    "test -v 'a[$(rm -rf /)]'",
    "x='a[$(rm -rf /)]'; echo $((x))",
    "printf -v 'a[$(rm -rf /)]' x",
    "read 'a[$(rm -rf /)]' <<< x",
    "unset 'a[$(rm -rf /)]'",
    "declare -i x='a[$(rm -rf /)]'",
    "declare -i x; x='a[$(rm -rf /)]'",
    "x='a[$(rm -rf /)]'; echo ${!x}",
    "x='b[$(rm -rf /)]'; echo ${a[$x]}",
    "x='b[$(rm -rf /)]'; a[x]=1",
    "declare -n r='a[$(rm -rf /)]'; echo $r",
    "declare -n r=d; r=/; rm -rf $d",
    "wait -p 'a[$(rm -rf /)]' -n",
    "mapfile -C 'rm -rf /' -c 1 a <<< x",
    "v='$(rm -rf /)'; echo ${v@P}",
    "PS1='$(rm -rf /)'",
    "PS4='$(rm -rf /)'; set -x; ls",
    "PROMPT_COMMAND='rm -rf /'",
    "echo 'rm -rf /' > x; BASH_ENV=x bash -c ls",
    "echo 'rm -rf /' > x; ENV=x sh -i -c ls",
    "BASH_ENV='$(rm -rf /)' bash -c ls",
    "x='a[$(rm -rf /)]'; [[ $x -eq 1 ]]",
    "x='a[$(rm -rf /)]'; echo ${s:x}",
    "x='a[$(rm -rf /)]'; for ((i=x;;)); do :; done",
    "mapfile 'a[$(rm -rf /)]' <<< x",
    "getopts a 'x[$(rm -rf /)]'",
    "hash -p /bin/rm ls; ls -rf /",
    "BASH_CMDS[ls]=/bin/rm; ls -rf /",
    "compgen -W '$(rm -rf /)'",
    "compgen -C 'rm -rf /'",
    "f() { rm -rf /; }; compgen -F f",
    "complete -C 'rm -rf /' ls",
    "command_not_found_handle() { rm -rf /; }; nosuchprogram",
    "command_not_found_handle() { \"$@\"; }; nosuch rm -rf /",
    "env 'BASH_FUNC_ls%%=() { rm -rf /; }' bash -c ls",
    "read -u 3 d 3<<< /; rm -rf $d",
    "exec 3<<< /; read -u 3 d; rm -rf $d",
    "exec 3<<< 'rm -rf /'; . /dev/fd/3",
    "exec 3<<< 'rm -rf /'; bash /dev/fd/3",
    ". /proc/self/fd/0 <<< 'rm -rf /'",
    ". /dev/stdin <<< 'rm -rf /'",
    "CDPATH=/; cd etc; rm -rf *",
    "shopt -s expand_aliases\nalias ls='rm -rf'\nls /",
    "cd() { rm -rf /; }; cd x",
    "f() { rm -rf /; }; export -f f; bash -c f",
    "coproc rm -rf /",
    "coproc x { rm -rf /; }",
    "trap 'rm -rf /' DEBUG",
    "trap 'rm -rf $d' DEBUG; d=/; ls; d=build",
    "trap 'rm -rf $d' ERR; d=/; false; d=build",
    "trap 'rm -rf $d' USR1; d=/; kill -USR1 $$; d=build",
    "ln -s / x; rm -rf x/",
    "ln -s / x; rm -rf x/*",
    "ln -s ~ build; rm -rf build/*",
    "ln -s / x; rm -rf x/etc",
    "cp -P /bin/rm x; ./x -rf /",
    "cp /bin/rm x; ./x -rf /",
    "dd if=/bin/rm of=x; chmod +x x; ./x -rf /",
    "rsync /bin/rm x; ./x -rf /",
    "rsync /bin/rm d/; d/rm -rf /",
    "install -m755 /bin/rm x; ./x -rf /",
    "cat /bin/rm > x; chmod +x x; ./x -rf /",
    "tee x < /bin/rm; chmod +x x; ./x -rf /",
    "tee x < /bin/rm > /dev/null; chmod +x x; ./x -rf /",
    "ln -s /bin/rm x; ./x -rf /",
    "ln -s /dev/sda d; dd if=/dev/zero of=d",
    "ln -s /etc e; rm -rf e/",
    "echo 'rm -rf /' > x; [ -n \"$X\" ] && echo ls > x; sh x",
    "if [ 1 = 1 ]; then d=/; else d=build; fi; rm -rf $d",
    "d=build; [[ -n $X && -z $Y ]] || d=/; rm -rf $d",
    "exit() { :; }; exit; rm -rf /",
    "break; rm -rf /",
    "return; rm -rf /",
    "(exit); rm -rf /",
    "x=$(exit); rm -rf /",
    "bash -c exit; rm -rf /",
    "eval 'break'; rm -rf /",
    "select d in build /; do rm -rf $d; done",
    "IFS=,; set -- a,/; for x in $1; do rm -rf $x; done",
    "for d in build /; do\n  continue\ndone\nrm -rf $d",
    "arr=(); arr+=(build); arr+=(/); rm -rf \"${arr[@]}\"",
    "i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i -eq 3 ] && rm -rf /; done",
    "n=3; d=build; while [ $n -gt 0 ]; do n=$((n-1)); d=$d/..; done; rm -rf $d",
];

const HARMLESS: &[&str] = &[
    "d=/; true && d=build; rm -rf $d",
    "d=/; [ 1 = 1 ] && d=build; rm -rf $d",
    "d=/; : ; if true; then d=build; fi; rm -rf $d",
    "d=build; false && d=/; rm -rf $d",
    "false && rm -rf /",
    "true || rm -rf /",
    "exit 0; rm -rf /",
    "if false; then rm -rf /; fi",
    "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); mkdir -p build/$i; done",
    "i=0; until curl -sf localhost:8080; do i=$((i+1)); [ $i -gt 30 ] && exit 1; sleep 1; done",
    "for i in {1..500}; do touch f$i; done",
    "while read -r f; do files=\"$files $f\"; done < list; echo $files",
    "args=(); while read -r f; do args+=(\"$f\"); done < list; cat \"${args[@]}\"",
    "while [ $# -gt 0 ]; do case \"$1\" in -v) verbose=1; shift;; -o) out=$2; shift 2;; *) break;; esac; done; mkdir -p \"$out\"",
    "usage() { echo usage; exit 1; }; [ $# -lt 1 ] && usage; cat \"$1\"",
    "fact() { if [ $1 -le 1 ]; then echo 1; else echo $(( $1 * $(fact $(($1-1))) )); fi; }; fact 10",
    "walk() { for e in \"$1\"/*; do if [ -d \"$e\" ]; then walk \"$e\"; else echo \"$e\"; fi; done; }; walk src",
    "cleanup() { rm -rf \"$tmp\"; }; trap cleanup EXIT; tmp=$(mktemp -d); cp a \"$tmp\"",
    "for f in a b c d e f g h i j k; do [ -f $f ] && last=$f; done; echo $last",
    "set -e; cd build; make; cd ..; rm -rf build",
    "n=0; for f in *.txt; do n=$((n+1)); mv \"$f\" \"out/$n.txt\"; done",
    "while true; do date; sleep 5; done",
    "a[1]=x; a[2]=y; echo ${a[1]} ${!a[@]}",
    "declare -A m; m[foo]=1; m[bar]=2; for k in \"${!m[@]}\"; do echo $k ${m[$k]}; done",
    "ln -s ../lib lib; rm -rf build",
    "ln -sfn releases/5 current; rm -rf releases/4",
    "ln -s / rootlink; rm rootlink",
    "rm -rf node_modules && ln -s ../shared/node_modules node_modules",
    "cp /bin/ls x; ./x -l",
    "for ((i=0;i<100;i++)); do echo $i; done",
    "if [[ $OSTYPE == darwin* ]]; then brew install x; else echo no; fi",
    "read -r name; echo \"$name\"",
    "printf -v x '%s' y; echo $x",
    "unset 'a[0]'",
    "let i++",
    "x=5; (( x > 3 )) && echo big",
    "trap 'echo bye' EXIT; exit 0",
    "command_not_found_handle() { echo \"no $1\"; }; ls",
    "hash -r",
    "compgen -W 'a b c' a",
    "complete -W 'start stop' svc",
    "for d in build dist; do rm -rf \"$d\"; done",
    "IFS=: read -r a b <<< \"x:y\"; echo $a",
    "case \"$1\" in start) ./run;; stop) kill $(cat pid);; *) echo usage; exit 1;; esac",
];
