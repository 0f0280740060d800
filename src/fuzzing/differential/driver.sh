# Runs many scripts, each in its own directory: driver.sh BASE FIRST. BASE/scripts holds them, NUL-terminated.
base=$1 number=$2
PATH=$base/bin
FUNCNEST=6
LC_ALL=C.UTF-8
BASH_ARGV0=bash
unset -v OLDPWD
# Of whom the home is, as the guard takes it.
USER=h LOGNAME=h
export PATH HOME USER LOGNAME
exec 8<"$base/scripts" </dev/null >/dev/null 2>&1
# Ends everything where no script began for a while. Nothing of it shows in `$!`.
(
  {
    exec 9<> <(:)
    : >"$base/mark"
    while IFS= read -r -t 3 -u 9; [[ $base/turn -nt $base/mark ]]; do : >"$base/mark"; done
    kill -9 $$
  } &
)
while IFS= read -r -d '' script <&8; do
  cd "$base/w/$number/d" || exit 125
  HOME=$base/w/$number/d/h
  unset -v OLDPWD
  printf 'S\0%d\0' "$number" >>"$base/log"
  : >"$base/turn"
  # The substitution ends when nothing that the script started holds its pipe any more.
  : "$(
    exec 7>&1 >/dev/null 8<&-
    ulimit -t 2 -c 0 -u 2000
    unset -v base number
    set --
    eval "unset -v script
$script"
  )"
  number=$((number + 1))
done
printf 'E\0' >>"$base/log"
