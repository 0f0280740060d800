//! What developers do, inside: each must work as it does outside. A tool that is not here is named and counted.

use super::*;

/// A tool, the profile, and what is done with it.
const WORK: &[(&str, &str, &str)] = &[
    (
        "git",
        "workspace-write",
        "git init -q g && cd g && git config user.email a@b && git config user.name n && echo 1 > f && git add f && \
         git commit -qm one && git worktree add -q ../w && git checkout -q -b t && echo 2 >> f && git commit -qam two && \
         git checkout -q - && echo 3 > h && git add h && git commit -qm three && git checkout -q t && git rebase -q - && \
         git stash list && git bisect start -q && git log --oneline | wc -l | grep -q 3",
    ),
    (
        "npm",
        "build",
        "mkdir dep app && printf '{\"name\":\"dep\",\"version\":\"1.0.0\",\"main\":\"i.js\"}' > dep/package.json && \
         echo 'module.exports = 7' > dep/i.js && (cd dep && npm pack --silent) && cd app && \
         printf '{\"name\":\"app\",\"version\":\"1.0.0\"}' > package.json && \
         npm install --offline --no-audit --no-fund --silent ../dep/dep-1.0.0.tgz && \
         echo 'require(\"node:test\")(\"t\", () => { if (require(\"dep\") !== 7) throw 1 })' > a.test.js && node --test",
    ),
    (
        "python3",
        "workspace-write",
        "/usr/bin/python3 -m venv v && v/bin/python - <<'E' && v/bin/pip install -q --no-index ./one-1.0-py3-none-any.whl && v/bin/python -c 'import one; assert one.X == 7'
import zipfile
z = zipfile.ZipFile('one-1.0-py3-none-any.whl', 'w')
z.writestr('one.py', 'X = 7')
z.writestr('one-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: one\\nVersion: 1.0\\n')
z.writestr('one-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
z.writestr('one-1.0.dist-info/RECORD', '')
E",
    ),
    (
        "python3",
        "workspace-write",
        "cat > m.py <<'E'
import multiprocessing as m
def f(x): return x * 2
if __name__ == '__main__':
    for how in ('fork', 'spawn', 'forkserver'):
        with m.get_context(how).Pool(2) as p: assert p.map(f, [1, 2]) == [2, 4], how
    q = m.Queue(); q.put(1); assert q.get() == 1
    from multiprocessing import shared_memory
    s = shared_memory.SharedMemory(create=True, size=100); s.close(); s.unlink()
E
/usr/bin/python3 m.py",
    ),
    ("make", "workspace-write", "printf 'all: a b c\\na b c:\\n\\t@sleep 0.1; echo $@\\n' > Makefile && make -j3"),
    ("gcc", "workspace-write", "printf 'int main(void){return 7;}' > a.c && gcc -O2 -flto -o a a.c; ./a; test $? = 7"),
    (
        "gcc",
        "debug",
        "printf '#include <stdlib.h>\\nint main(void){char *p = malloc(9); return p == 0;}' > a.c && \
         gcc -g -fsanitize=address -o a a.c && ASAN_OPTIONS=detect_leaks=0 ./a",
    ),
    (
        "gdb",
        "debug",
        "printf 'int main(void){return 7;}' > a.c && gcc -g -o a a.c && \
         gdb -q -batch -ex 'break main' -ex run -ex 'info locals' -ex cont ./a | grep -q 'exited with code 07'",
    ),
    ("strace", "debug", "strace -f -o t true && grep -q execve t"),
    ("tar", "workspace-write", "mkdir d && echo x > d/f && ln -s f d/l && ln d/f d/h && tar czf t.tgz d && rm -r d && tar xzf t.tgz && test d/f -ef d/h"),
    ("cp", "workspace-write", "mkdir d && echo x > d/f && ln -s f d/l && touch -d 2001-01-01 d/f && cp -a d e && test $(stat -c %Y e/f) = $(stat -c %Y d/f) && cp -a /etc/hosts ."),
    ("rsync", "workspace-write", "mkdir d && echo x > d/f && rsync -a d/ e/ && cmp d/f e/f"),
    ("man", "workspace-write", "printf '.TH A 1\\n.SH NAME\\na\\n' > a.1 && man -P cat ./a.1 | grep -q NAME"),
    (
        "less",
        "workspace-write",
        "seq 500 > n && TERM=xterm /usr/bin/python3 - <<'E'
import os, pty, select, time
pid, m = pty.fork()
if pid == 0: os.execvp('less', ['less', 'n'])
out = b''; end = time.time() + 15; sent = False
while time.time() < end:
    if select.select([m], [], [], 0.2)[0]:
        try: data = os.read(m, 4096)
        except OSError: break
        if not data: break
        out += data
    elif not sent: os.write(m, b'q'); sent = True
assert b'10' in out and os.waitpid(pid, 0)[1] == 0, out
E",
    ),
    ("sqlite3", "workspace-write", "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(7); select * from t' | grep -q 7"),
    ("go", "build", "printf 'package main\\nfunc main() { println(7) }' > a.go && go run a.go"),
    ("chromium", "workspace-write", "chromium --headless --no-sandbox --disable-gpu --dump-dom 'data:text/html,<p>seven' | grep -q seven"),
    ("java", "workspace-write", "java -version"),
    ("perl", "workspace-write", "perl -e 'my $p = fork; exit 0 unless $p; waitpid $p, 0; print \"7\\n\"' | grep -q 7"),
];

#[test]
fn developers_work_goes_on() {
    let mut missing = 0;
    for (tool, profile, script) in WORK {
        if !has(tool) {
            missing += 1;
            continue;
        }
        let Some(world) = World::new(profile) else { return };
        world.works(script);
    }
    eprintln!("SKIP: {missing} of {} workflows have no tool here", WORK.len());
}

#[test]
fn cargo_builds_and_tests_with_vendored_dependencies() {
    let Some(world) = World::new("build") else { return };
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_default());
    let Some(bin) = cargo.parent().filter(|bin| bin.join("rustc").exists() && has("cc")) else {
        eprintln!("NOT PROVED: no toolchain's cargo runs this test");
        return;
    };
    for (file, text) in [
        (
            "Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\ndep = \"1\"\n",
        ),
        (
            "src/main.rs",
            "fn main() { println!(\"{}\", dep::seven()) }\n#[test]\nfn t() { assert_eq!(dep::seven(), 7) }\n",
        ),
        (".cargo/config.toml", "[source.crates-io]\nreplace-with = \"v\"\n[source.v]\ndirectory = \"vendor\"\n"),
        ("vendor/dep/Cargo.toml", "[package]\nname = \"dep\"\nversion = \"1.0.0\"\nedition = \"2024\"\n"),
        ("vendor/dep/src/lib.rs", "pub fn seven() -> u8 { 7 }\n"),
        ("vendor/dep/.cargo-checksum.json", "{\"files\":{},\"package\":\"00\"}"),
    ] {
        let path = world.path("ws").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let here = Surroundings::new(world.path("ws"), "/nonexistent");
    let search = format!("{}:/usr/bin:/bin", bin.display());
    let environment = vec![(OsString::from("PATH"), OsString::from(search))];
    let host = Host { scratch: world.path("scratch"), caches: world.path("caches"), environment };
    let plan = Plan::new(&Arc::new(world.profile.clone()), Kernel::probe(), &here, &host).unwrap();
    let script = "cargo build -q --offline && cargo test -q --offline && cargo run -q --offline";
    let outcome = world.launcher.run_blocking(&plan, &bash(script, Duration::from_secs(300))).unwrap();
    let (out, err) = (outcome.stdout.text(4000), outcome.stderr.text(4000));
    assert_eq!(outcome.end, End::Exited(0), "{out}\n{err}");
    assert!(out.ends_with("7\n"), "{out}");
}
