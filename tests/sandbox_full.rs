//! The sandbox's full tiers, black-box. Where this machine cannot give one, or lacks a tool, a test says on stderr what it
//! could not prove.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod confined;
#[path = "confined/probes.rs"]
mod probes;
#[path = "confined/rows.rs"]
mod rows;
#[path = "confined/wards.rs"]
mod wards;
#[path = "confined/work.rs"]
mod work;

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use confined::{MEMORY_FILES, alive, bash, has, marker, soon};
use portcullis::facts::Surroundings;
use portcullis::sandbox::{
    End, Host, Kernel, LaunchError, Launcher, Leftover, Outcome, Plan, Profile, Profiles, Program, Tier,
};

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");

struct World {
    root: tempfile::TempDir,
    launcher: Arc<Launcher>,
    profile: Profile,
    variables: Vec<(String, String)>,
}

impl World {
    /// `None`, said aloud, where there is no full tier.
    fn new(profile: &str) -> Option<Self> {
        let profile = (**Profiles::built_in().unwrap().get(profile).unwrap()).clone();
        let kernel = Kernel::probe();
        if !kernel.tier(&profile).is_full() {
            eprintln!("NOT PROVED: no full tier here: {:?}", kernel.without_full());
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        for dir in ["ws", "outside"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        fs::write(root.path().join("outside/secret"), "CANARY").unwrap();
        let launcher = Arc::new(Launcher::with_helper(Path::new(BINARY)).unwrap());
        Some(World { root, launcher, profile, variables: Vec::new() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn plan_at(&self, workspace: &Path) -> Plan {
        let here = Surroundings::new(workspace, "/nonexistent");
        let path = (OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"));
        let host = Host { scratch: self.path("scratch"), caches: self.path("caches"), environment: vec![path] };
        let mut plan = Plan::new(&Arc::new(self.profile.clone()), Kernel::probe(), &here, &host).unwrap();
        assert!(plan.set_variable("OUTSIDE", self.path("outside").to_str().unwrap()));
        for (name, value) in &self.variables {
            assert!(plan.set_variable(name, value));
        }
        plan
    }

    fn plan(&self) -> Plan {
        self.plan_at(&self.path("ws"))
    }

    fn run_for(&self, script: &str, timeout: Duration) -> Result<Outcome, LaunchError> {
        self.launcher.run_blocking(&self.plan(), &bash(script, timeout))
    }

    fn run(&self, script: &str) -> Outcome {
        self.run_for(script, Duration::from_secs(60)).unwrap_or_else(|error| panic!("set-up failed: {error}\n{script}"))
    }

    fn works(&self, script: &str) -> String {
        let outcome = self.run(script);
        let (out, err) = (outcome.stdout.text(4000), outcome.stderr.text(4000));
        assert_eq!(outcome.end, End::Exited(0), "should work inside: {script}\nstdout: {out}\nstderr: {err}");
        out
    }

    fn refused(&self, script: &str) -> String {
        let outcome = self.run(script);
        let (out, err) = (outcome.stdout.text(4000), outcome.stderr.text(4000));
        assert!(matches!(outcome.end, End::Exited(1..127)), "{:?}: {script}\n{out}\n{err}", outcome.end);
        err
    }
}

#[test]
fn nothing_of_the_machine_is_there_but_what_is_granted() {
    let Some(world) = World::new("workspace-write") else { return };
    for script in [
        "ls $OUTSIDE",
        "cat $OUTSIDE/secret",
        "ln -s $OUTSIDE/secret in; cat in",
        "cat /etc/shadow",
        "ls /var/lib",
        "ls /boot",
        "ls /sys/fs",
        "ls /.machine",
        "cat /dev/kmsg",
        "kill -0 $(($$ + 100000))",
        "echo x > /etc/new",
        "echo x > /new",
        "mkdir /home/other",
        "echo x > /usr/new",
        "echo x > /dev/new",
        "chmod 700 /usr/bin /etc /",
        "touch /etc/hostname",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "echo 0 > /proc/self/oom_score_adj",
        "mknod node c 1 3",
        "mount -t tmpfs none /tmp",
        "unshare -Ur true",
        "chroot / true",
        "chmod u+s /tmp/. && echo x > x && chmod 4755 x",
    ] {
        world.refused(script);
    }
    assert_eq!(fs::read_dir(world.path("outside")).unwrap().count(), 1, "something was made outside");
    let pids = world.works("ls /proc | grep -c '^[0-9]'");
    assert!(pids.trim().parse::<u32>().unwrap() <= 5, "{pids} processes are visible");
}

#[test]
fn who_a_program_is() {
    let Some(world) = World::new("workspace-write") else { return };
    let text = world.works("cat /proc/self/status; id -u; echo x > made; stat -c %u made");
    for none in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let root_made_it = Kernel::probe().strongest == Tier::Full || none != "CapBnd";
        assert!(!root_made_it || text.contains(&format!("{none}:\t0000000000000000")), "{none} is not empty:\n{text}");
    }
    assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
    let ids: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(ids[0], ids[1], "what a program makes is not its own");
    assert_ne!(ids[0], "0", "a program is root");
    let made = fs::metadata(world.path("ws/made")).unwrap();
    assert_eq!(made.uid(), nix::unistd::geteuid().as_raw(), "on disk, files belong to the workspace's owner");
}

#[test]
fn files_keep_the_owner_of_the_workspace() {
    let Some(world) = World::new("workspace-write") else { return };
    if Kernel::probe().strongest != Tier::Full {
        eprintln!("NOT PROVED: only root can give a workspace to somebody else");
        return;
    }
    let theirs = world.path("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("old"), "x").unwrap();
    for path in [theirs.join("old"), theirs.clone()] {
        std::os::unix::fs::chown(&path, Some(12345), Some(23456)).unwrap();
    }
    let outcome = world
        .launcher
        .run_blocking(
            &world.plan_at(&theirs),
            &bash("echo y >> old && echo z > new && mkdir d", Duration::from_secs(20)),
        )
        .unwrap();
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.stderr.text(1000));
    for name in ["old", "new", "d"] {
        let meta = fs::metadata(theirs.join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (12345, 23456), "{name}");
    }
}

#[test]
fn two_calls_share_nothing_but_the_workspace() {
    let Some(world) = World::new("workspace-write") else { return };
    world.works("echo a > /tmp/a; echo b > $HOME/b; echo c > /dev/shm/c; echo d > /run/d; echo e > /var/tmp/e");
    world.works("! ls /tmp/a $HOME/b /dev/shm/c /run/d /var/tmp/e 2>/dev/null | grep .");
    if has("python3") {
        let script = "/usr/bin/python3 -c 'import socket, time; s = socket.socket(); s.bind((\"127.0.0.1\", 45671)); s.listen(1); \
                      time.sleep(0.5)'";
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| world.works(script));
            }
        });
    }
}

#[test]
fn the_network_is_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let Some(closed) = World::new("workspace-write") else { return };
    closed.refused(&connect);
    World::new("network").unwrap().works(&connect);
    if has("python3") {
        for family in
            ["AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_INET, socket.SOCK_RAW", "AF_INET, socket.SOCK_STREAM, 262"]
        {
            closed.refused(&format!("/usr/bin/python3 -c 'import socket; socket.socket(socket.{family})'"));
        }
        closed.works(
            "/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(1); \
             socket.create_connection(s.getsockname()).send(b\"x\"); assert s.accept()[0].recv(1) == b\"x\"'",
        );
    }
}

#[test]
fn what_runs_later_and_outside_stays_as_it_is() {
    let Some(world) = World::new("workspace-write") else { return };
    if !has("git") {
        return;
    }
    let git = |arguments: &[&str]| {
        let run = Command::new("git").args(arguments).current_dir(world.path("ws")).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    };
    git(&["init", "-q", "."]);
    git(&["config", "user.email", "a@b"]);
    git(&["config", "user.name", "n"]);
    git(&["init", "-q", "--template=", "inner"]);
    fs::create_dir(world.path("ws/.vscode")).unwrap();
    fs::write(world.path("ws/.mcp.json"), "{}").unwrap();
    for script in [
        "echo x > .git/hooks/post-commit",
        "echo x > .git/x && mv .git/x .git/hooks/pre-commit",
        "rm -r .git/hooks",
        "mv .git/hooks .git/other",
        "mv .git .git-old",
        "git config core.fsmonitor ./evil",
        "echo x >> .git/config",
        "rm .git/config",
        "mv .git/config x",
        "ln -f /etc/hostname .git/config",
        "chmod 777 .git/config",
        "rm -rf .vscode && ln -s /tmp .vscode && touch .vscode/x",
        "echo x > .vscode/tasks.json",
        "mkdir -p inner/.git/hooks && echo x > inner/.git/hooks/pre-commit",
        "echo x >> inner/.git/config",
        "mv inner/.git inner/git",
        "git init -q nested && echo x > nested/.git/hooks/post-commit",
        "echo x > .mcp.json",
        "mv .mcp.json x",
    ] {
        world.refused(script);
    }
    world.works("echo 1 > f && git add f && git commit -qm one && git mv f g && git commit -qam two && git gc -q");
    world.works("git worktree add -q wt && cd wt && echo 2 > h && git add h && git commit -qm three");
    world.works(
        "git checkout -q -b topic HEAD~1 && echo t > t && git add t && git commit -qm t && git rebase -q master",
    );
}

#[test]
fn a_linked_worktree_works_and_its_repository_keeps_its_hooks() {
    let Some(world) = World::new("workspace-write") else { return };
    if !has("git") {
        return;
    }
    let script = "git init -q repo && cd repo && git config user.email a@b && git config user.name n && \
                  git commit -q --allow-empty -m one && git worktree add -q ../wt";
    let run = Command::new("bash").args(["-c", script]).current_dir(world.path(".")).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let run = |script: &str| {
        let program = bash(script, Duration::from_secs(30));
        let outcome = world.launcher.run_blocking(&world.plan_at(&world.path("wt")), &program).unwrap();
        (outcome.end, outcome.stderr.text(1000))
    };
    assert_eq!(run("echo 1 > f && git add f && git commit -qm two && git log -1 --format=%s").0, End::Exited(0));
    for script in [
        "echo x > $(git rev-parse --git-common-dir)/hooks/post-commit",
        "git config core.fsmonitor x",
        "echo x > $(git rev-parse --show-toplevel)/../repo/new",
        "echo x > .git",
    ] {
        let (end, err) = run(script);
        assert_ne!(end, End::Exited(0), "{script}: {err}");
    }
}

#[test]
fn no_ghosts_are_left_in_the_workspace() {
    let Some(world) = World::new("workspace-write") else { return };
    world.works("true");
    assert_eq!(fs::read_dir(world.path("ws")).unwrap().count(), 0);
    assert!(!world.path("scratch").exists(), "a scratch directory that nobody needs");
}

#[test]
fn the_first_process_can_be_neither_ended_nor_looked_into() {
    let Some(world) = World::new("workspace-write") else { return };
    for script in [
        "cat /proc/1/environ",
        "cat /proc/1/maps",
        "head -c1 /proc/1/mem",
        "ls -l /proc/1/exe",
        "ls /proc/1/fd/",
        "cat /proc/1/root/etc/hostname",
        "echo x > /proc/1/exe",
    ] {
        world.refused(script);
    }
    assert_eq!(world.works("kill -9 1; kill -STOP 1; kill -9 $PPID; sleep 0.2; kill -0 1 && echo there"), "there\n");
    if has("strace") {
        world.refused("strace -p 1");
        world.works("strace -f -o trace true && test -s trace");
    }
    if has("python3") {
        let program = "import os; fd = os.memfd_create('x'); os.write(fd, open('/bin/true', 'rb').read()); os.execve(fd, ['x'], {})";
        if Kernel::probe().strongest == Tier::Full {
            world.refused(&format!("/usr/bin/python3 -c \"{program}\""));
        }
    }
}

#[test]
fn limits_end_a_program_and_all_that_it_started() {
    let Some(mut world) = World::new("workspace-write") else { return };
    let marker = marker();
    let hold =
        format!("trap '' TERM HUP INT; setsid -f sleep {marker}; (setsid bash -c 'trap \"\" TERM; sleep {marker}' &);");
    for script in [
        "yes > /dev/null",
        "yes",
        "kill -STOP $$",
        "while :; do sleep 1; done",
        "mkfifo p; (while :; do echo x; sleep 1; done) > p & cat p",
        "for i in 1 2 3 4; do (while :; do :; done) & done; wait",
        "for i in 1 2 3; do setsid bash -c 'trap \"\" TERM; while :; do bash -c : & wait; done' & done; wait",
    ] {
        let started = Instant::now();
        let outcome = world.run_for(&format!("{hold} {script}"), Duration::from_secs(1)).unwrap();
        assert_eq!(outcome.end, End::TimedOut(Duration::from_secs(1)), "{script}");
        assert!(!outcome.left_behind && alive(&marker) == 0, "{script}: processes outlived the call");
        assert!(started.elapsed() < Duration::from_secs(15), "{script}: {:?}", started.elapsed());
    }
    if has("python3") {
        world.profile.limits.memory_bytes = 300_000_000.try_into().unwrap();
        let grow = "/usr/bin/python3 -c 'b = []\nwhile True: b.append(bytearray(b\"x\") * (20 << 20))'";
        assert_eq!(world.run(&format!("{hold} {grow}")).end, End::OutOfMemory(300_000_000));
        assert_eq!(alive(&marker), 0);
        let shared = "/usr/bin/python3 -c 'import os, time; b = bytearray(b\"x\") * (150 << 20)\n\
                      for i in range(4): os.fork() or (time.sleep(1), os._exit(0))\nfor i in range(4): os.wait()'";
        world.works(shared);
        assert_eq!(world.run("head -c 400M /dev/zero > /tmp/x; sleep 5").end, End::OutOfMemory(300_000_000));
        world.profile.limits.processes = 20.try_into().unwrap();
        world.refused("for i in $(seq 40); do sleep 3 & done 2>&1 | grep -q . && exit 1");
    }
    world.profile.limits.disk_bytes = 100_000_000.try_into().unwrap();
    let fill = "for i in $(seq 40); do head -c 20M /dev/zero > f$i; sleep 0.02; done; sleep 5";
    assert_eq!(world.run(fill).end, End::OutOfSpace(100_000_000));
    let total: u64 = fs::read_dir(world.path("ws")).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
    eprintln!("written before it was ended: {total}");
}

#[test]
fn a_daemon_ends_with_the_call_and_does_not_hold_it_up() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let started = Instant::now();
    assert_eq!(world.works(&format!("setsid -f sleep {marker}; sleep {marker} & disown; echo started")), "started\n");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(alive(&marker), 0);
}

#[test]
fn ends_are_told_apart() {
    let Some(world) = World::new("workspace-write") else { return };
    assert_eq!(world.run("exit 0").end, End::Exited(0));
    assert_eq!(world.run("exit 125").end, End::Exited(125));
    assert_eq!(world.run("kill -KILL $$").end, End::Signalled(libc::SIGKILL));
    for (name, code) in [("no-such-program", 127), ("/no/such/program", 127), ("/etc/passwd", 126)] {
        let program = Program { arguments: vec![name.to_owned()], ..bash("", Duration::from_secs(5)) };
        let error = world.launcher.run_blocking(&world.plan(), &program).unwrap_err();
        assert_eq!(error.exit_code(), code, "{name}: {error}");
    }
    assert_eq!(world.works("yes | head -1; echo ${PIPESTATUS[0]}"), "y\n141\n", "SIGPIPE does not end a writer");
    assert_eq!(world.works("cat; echo ended"), "ended\n", "standard input is not empty");
    let long = "x".repeat((128 << 10) - 10);
    let program = Program {
        arguments: ["/bin/bash", "-c", "echo ${#0}", &long].map(str::to_owned).to_vec(),
        ..bash("", Duration::from_secs(5))
    };
    let outcome = world.launcher.run_blocking(&world.plan(), &program).unwrap();
    assert_eq!(outcome.stdout.text(100).trim(), long.len().to_string());
    let nul = Program { arguments: vec!["a\0b".to_owned()], ..bash("", Duration::from_secs(5)) };
    assert!(matches!(world.launcher.run_blocking(&world.plan(), &nul), Err(LaunchError::Setup { .. })));
}

#[test]
fn a_workspace_that_was_swapped_is_not_entered() {
    let Some(world) = World::new("workspace-write") else { return };
    let plan = world.plan();
    fs::rename(world.path("ws"), world.path("ws-old")).unwrap();
    std::os::unix::fs::symlink(world.path("outside"), world.path("ws")).unwrap();
    let error = world.launcher.run_blocking(&plan, &bash("cat secret", Duration::from_secs(5))).unwrap_err();
    assert!(matches!(&error, LaunchError::Setup { .. }), "{error:?}");
    assert_eq!(error.exit_code(), 125);
}

#[test]
fn a_grant_that_is_missing_is_named() {
    let Some(mut world) = World::new("workspace-write") else { return };
    let gone = world.path("gone");
    world.profile.filesystem.read = vec![gone.to_str().unwrap().to_owned().try_into().unwrap()];
    match world.run_for("true", Duration::from_secs(5)) {
        Err(LaunchError::Setup { step, errno }) => {
            assert_eq!((step, errno), (format!("grant {}", gone.display()), libc::ENOENT));
        }
        other => panic!("a missing path was granted: {other:?}"),
    }
}

#[test]
fn granted_paths_are_as_far_open_as_the_profile_says() {
    let Some(mut world) = World::new("workspace-write") else { return };
    for (name, mode) in [("r", 0o700), ("w", 0o700)] {
        fs::create_dir(world.path(name)).unwrap();
        fs::write(world.path(name).join("file"), "x").unwrap();
        fs::set_permissions(world.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let grant = |name: &str| vec![world.path(name).to_str().unwrap().to_owned().try_into().unwrap()];
    (world.profile.filesystem.read, world.profile.filesystem.write) = (grant("r"), grant("w"));
    let dirs = world.path("r").parent().unwrap().display().to_string();
    world.works(&format!("cd {dirs} && cat r/file w/file && echo y > w/new && echo z >> w/file"));
    world.refused(&format!("echo y > {dirs}/r/new"));
    world.refused(&format!("echo y > {dirs}/new"));
    world.refused(&format!("mv {dirs} {dirs}2"));
    assert_eq!(fs::metadata(world.path("w/new")).unwrap().uid(), nix::unistd::geteuid().as_raw());
}

#[test]
fn everyday_work_goes_on() {
    let Some(world) = World::new("workspace-write") else { return };
    let work = [
        (
            "git",
            "git init -q g && cd g && git config user.email a@b && git config user.name n && echo 1 > f && git add f && \
             git commit -qm one && git log --oneline && git mv f h && git commit -qam two && git gc -q && git clone -q . ../clone",
        ),
        ("gcc", "printf '#include <stdio.h>\\nint main(void){puts(\"hello\");}' > h.c && gcc -o h h.c && ./h"),
        (
            "python3",
            "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import multiprocessing as m; \
             p = m.get_context(\"forkserver\").Pool(2); print(p.map(abs, [-1, -2])); p.close(); p.join()'",
        ),
        ("python3", "/usr/bin/python3 -c 'import pty, tty, os; a, b = pty.openpty(); tty.setraw(b); os.ttyname(b)'"),
        (
            "node",
            "node -e 'require(\"os\").userInfo(); require(\"child_process\").execFileSync(\"node\", [\"-e\", \"0\"])'",
        ),
        (
            "sqlite3",
            "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(1); select * from t'",
        ),
        (
            "cp",
            "mkdir d && echo x > d/f && ln -s f d/l && cp -a d e && cp -a /etc/hostname . && tar cf t e && rm -r e && tar xf t",
        ),
        ("make", "printf 'all: a b\\na b:\\n\\t@true\\n' > Makefile && make -s -j4"),
        ("ps", "ps aux > /dev/null && nproc && date +%Z && getent hosts localhost && whoami && free > /dev/null"),
        ("flock", "exec 3<> lock && flock -n 3 && mkdir x && mv x y2 && mkdir z && mv y2 z/"),
        ("setfattr", "touch x && setfattr -n user.a -v b x && getfattr -n user.a x"),
        ("taskset", "taskset -p 1 $$ && renice -n 5 -p $$ && ionice -c 3 -p $$"),
    ];
    for (tool, script) in work {
        if has(tool) {
            world.works(script);
        }
    }
}

#[test]
fn i6_output_is_capped_and_counted() {
    let Some(world) = World::new("workspace-write") else { return };
    let outcome = world.run("echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last; echo err >&2");
    let limit = usize::try_from(world.profile.limits.output_bytes.get()).unwrap();
    assert_eq!((outcome.end, outcome.stdout.len()), (End::Exited(0), limit));
    assert_eq!(outcome.stdout.dropped(), 50_000_012 - limit as u64);
}

#[test]
fn memory_files_hold_data_and_are_not_executed() {
    let Some(world) = World::new("workspace-write") else { return };
    if has("python3") {
        assert_eq!(world.works(MEMORY_FILES), "data\n");
        let Some(output) = exec_as(61236, MEMORY_FILES) else { return };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "data\n", "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn hooks_of_repositories_that_a_program_makes_are_put_out_of_use() {
    let Some(world) = World::new("workspace-write") else { return };
    if !has("git") {
        return;
    }
    let script = "mkdir -p deep/er && cd deep/er && git init -q . && git config user.email a@b && git config user.name n && \
                  mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch RAN\\n' > .git/hooks/post-commit && \
                  chmod +x .git/hooks/post-commit && git config core.fsmonitor ./evil";
    let outcome = world.run(script);
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.stderr.text(1000));
    let said: Vec<String> = outcome.leftovers.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("deep/er/.git/hooks/post-commit; it is out of use"), "{said:?}");
    assert!(said[1].contains("core.fsmonitor"), "{said:?}");
    let git = ["-c", "core.fsmonitor=false", "commit", "-q", "--allow-empty", "-m", "one"];
    let run = Command::new("git").args(git).current_dir(world.path("ws/deep/er")).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    assert!(!world.path("ws/deep/er/RAN").exists(), "a hook from inside ran outside");
    // Within the coarseness of the kernel's clock for files, what was written before looks as if it were new.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(world.run("git -C deep/er status").leftovers, [], "what is out of use is named once");
}

#[test]
fn what_was_refused_is_told_with_what_would_allow_it() {
    let Some(world) = World::new("workspace-write") else { return };
    for (tool, script, what) in [
        ("touch", "touch /etc/hosts", "write outside the workspace: /etc/hosts"),
        ("bash", "echo x > /usr/new", "write outside the workspace: /usr/new"),
        ("mkdir", "mkdir /srv/new", "write outside the workspace: /srv/new"),
        ("cat", "cat /var/lib/dpkg/status", "a path that the sandbox does not show: /var/lib/dpkg/status"),
        ("curl", "curl -sS http://example.com", "network is off in profile workspace-write"),
        ("python3", "/usr/bin/python3 -c 'open(\"/etc/hosts\", \"w\")'", "write outside the workspace: /etc/hosts"),
        ("node", "node -e 'fs.mkdirSync(\"/srv/x\")'", "write outside the workspace: /srv/x"),
        ("chown", "touch f; chown 1 f", "more privileges than the sandbox has"),
    ] {
        if has(tool) {
            let denials = world.run(script).denials;
            assert!(denials.iter().any(|denial| denial.what.starts_with(what)), "{script}: {denials:?}");
        }
    }
    for script in ["cat nothere", "false", "ls /usr/nothere", "exit 3", "touch x && chmod 0 x && cat x"] {
        assert_eq!(world.run(script).denials, [], "{script}");
    }
    assert_eq!(world.run("touch /etc/hosts; true").denials, [], "it did not fail");
}

#[test]
fn toolchains_of_another_home_can_be_run() {
    let Some(world) = World::new("workspace-write") else { return };
    for (file, text) in
        [(".cargo/bin/tool", "#!/bin/sh\necho tool\n"), (".rustup/x", "y"), (".cargo/credentials", "CANARY")]
    {
        let path = world.path("other").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let here = Surroundings::new(world.path("ws"), "/nonexistent");
    let search = format!("{}:/usr/bin:/bin", world.path("other/.cargo/bin").display());
    let environment = vec![(OsString::from("PATH"), OsString::from(search))];
    let host = Host { scratch: world.path("scratch"), caches: world.path("caches"), environment };
    let plan = Plan::new(&Arc::new(world.profile.clone()), Kernel::probe(), &here, &host).unwrap();
    let script = "tool; cat $RUSTUP_HOME/x; cat $RUSTUP_HOME/../.cargo/credentials; echo x > $RUSTUP_HOME/y";
    let outcome = world.launcher.run_blocking(&plan, &bash(script, Duration::from_secs(20))).unwrap();
    assert_eq!(outcome.stdout.text(100), "tool\ny", "{}", outcome.stderr.text(1000));
    assert!(!world.path("other/.rustup/y").exists());
}

#[test]
fn many_calls_leave_nothing_behind() {
    let Some(world) = World::new("workspace-write") else { return };
    world.works("true");
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    let before = mounts();
    let marker = marker();
    std::thread::scope(|scope| {
        let (world, marker) = (&world, &marker);
        for n in 0..64 {
            scope.spawn(move || {
                let script = format!("setsid -f sleep {marker}; sleep 0.0{}; echo {n} > /tmp/n; cat /tmp/n", n % 7);
                assert_eq!(world.works(&script), format!("{n}\n"));
            });
        }
    });
    assert_eq!(alive(&marker), 0);
    assert_eq!(mounts(), before, "mounts of the gateway's");
}

#[tokio::test]
async fn a_caller_that_gives_up_ends_the_program() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let script = format!("setsid sleep {marker} & sleep {marker}");
    let run = world.launcher.run(world.plan(), bash(&script, Duration::from_secs(60)));
    assert!(tokio::time::timeout(Duration::from_millis(700), run).await.is_err(), "the program ended by itself");
    soon("the program to end after its caller gave up", || alive(&marker) == 0);
}

/// `portcullis sandbox exec` as another user, in a workspace that is theirs.
fn exec_as(user: u32, script: &str) -> Option<Output> {
    World::new("workspace-write")?;
    if !nix::unistd::geteuid().is_root() {
        eprintln!("NOT PROVED: only root can run this as another user");
        return None;
    }
    if fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_ok_and(|t| t.trim() == "1") {
        eprintln!("NOT PROVED: AppArmor keeps ordinary users from making namespaces");
        return None;
    }
    let dir = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let (binary, workspace) = (dir.path().join("portcullis"), dir.path().join("ws"));
    fs::copy(BINARY, &binary).unwrap();
    fs::create_dir(&workspace).unwrap();
    fs::write(dir.path().join("outside"), "x").unwrap();
    for path in [&workspace, dir.path()] {
        std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
    }
    let mut command = Command::new(&binary);
    command.args(["sandbox", "exec", "--workspace"]).arg(&workspace).args([
        "--env",
        "OUT",
        "--",
        "/bin/bash",
        "-c",
        script,
    ]);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", dir.path())
        .env("OUT", dir.path())
        .env("PORTCULLIS_CONFIG", dir.path().join("config"))
        .env("PORTCULLIS_STATE", dir.path().join("state"))
        .stdin(Stdio::null())
        .uid(user)
        .gid(user)
        .current_dir("/");
    Some(command.output().unwrap())
}

#[test]
fn an_ordinary_user_gets_a_full_tier_too() {
    let script = "echo x > $OUT/new && exit 2; cat $OUT/outside && exit 3; test \"$(ls /proc | grep -c '^[0-9]')\" -le 5 || exit 4; \
                  grep -q 'Cap.*:.*[1-9a-f]' /proc/self/status && exit 5; chmod 700 /usr 2>/dev/null && exit 6; \
                  touch made && test \"$(stat -c %u made)\" = 61235 || exit 7; unshare -r true 2>/dev/null && exit 8; \
                  cat /proc/1/environ && exit 9; exec 3<>/dev/tcp/127.0.0.1/1 && exit 10; echo y > /tmp/y || exit 11; exit 0";
    let Some(output) = exec_as(61235, script) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
