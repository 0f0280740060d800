//! The sandbox's landlock tier, and the command line, black-box: real programs under a real kernel. Where a layer or a tool
//! is missing, a test says on stderr what it could not prove. The full tiers: `sandbox_full.rs`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod confined;

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use confined::{MEMORY_FILES, alive, bash, has, marker, soon};
use portcullis::facts::Surroundings;
use portcullis::sandbox::{
    End, Host, Kernel, LaunchError, Launcher, Leftover, Outcome, Plan, Profile, Profiles, Program, Streams, Tier,
    WhenMissing,
};

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");

/// A workspace, something outside it, and a launcher.
struct World {
    root: tempfile::TempDir,
    launcher: Arc<Launcher>,
    profile: Profile,
    kernel: Kernel,
    environment: Vec<(OsString, OsString)>,
}

impl World {
    /// `None`, said aloud, where this kernel cannot give the profile.
    fn new(profile: &str) -> Option<Self> {
        let profile = (**Profiles::built_in().unwrap().get(profile).unwrap()).clone();
        let kernel = Kernel::probe().with_tier_at_most(Tier::Landlock);
        let missing = kernel.missing(&profile);
        if !missing.is_empty() {
            eprintln!("NOT PROVED: this kernel lacks {missing:?} for profile `{}`", profile.name);
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        for dir in ["ws", "outside", "scratch"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        fs::write(root.path().join("outside/secret"), "CANARY").unwrap();
        let launcher = Arc::new(Launcher::with_helper(Path::new(BINARY)).unwrap());
        let path = (OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"));
        Some(World { root, launcher, profile, kernel, environment: vec![path] })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn plan(&self) -> Plan {
        let here = Surroundings::new(self.path("ws"), "/nonexistent");
        let host =
            Host { scratch: self.path("scratch"), caches: self.path("caches"), environment: self.environment.clone() };
        Plan::new(&Arc::new(self.profile.clone()), &self.kernel, &here, &host).unwrap()
    }

    fn run(&self, script: &str) -> Outcome {
        self.run_for(script, Duration::from_secs(60)).unwrap_or_else(|error| panic!("set-up failed: {error}\n{script}"))
    }

    fn run_for(&self, script: &str, timeout: Duration) -> Result<Outcome, LaunchError> {
        let mut plan = self.plan();
        assert!(plan.set_variable("OUTSIDE", self.path("outside").to_str().unwrap()));
        self.launcher.run_blocking(&plan, &bash(script, timeout))
    }

    /// Runs a script that must end with 0, and returns what it printed.
    fn works(&self, script: &str) -> String {
        let outcome = self.run(script);
        let (out, err) = (outcome.stdout.text(4000), outcome.stderr.text(4000));
        assert_eq!(outcome.end, End::Exited(0), "should work inside: {script}\nstdout: {out}\nstderr: {err}");
        out
    }

    /// Runs a script that must fail, and not because bash could not find a program.
    fn refused(&self, script: &str) -> String {
        let outcome = self.run(script);
        let err = outcome.stderr.text(4000);
        let code = match outcome.end {
            End::Exited(code) => code,
            other => panic!("ended as {other:?}: {script}\n{err}"),
        };
        assert!(code != 0 && code != 127, "not refused (exit code {code}): {script}\n{err}");
        err
    }
}

#[test]
fn writes_outside_the_workspace_are_refused_by_the_kernel() {
    let Some(world) = World::new("workspace-write") else { return };
    for script in [
        "echo x > $OUTSIDE/new",
        "echo x >> $OUTSIDE/secret",
        "rm $OUTSIDE/secret",
        "mkdir $OUTSIDE/dir",
        "ln -s /etc/passwd $OUTSIDE/link",
        "mv $OUTSIDE/secret $OUTSIDE/moved",
        "truncate -s 0 $OUTSIDE/secret",
        "ln -s $OUTSIDE/secret in && echo x > in",
        "echo x > /tmp/portcullis-test-outside",
        "echo x > /dev/shm/portcullis-test-outside",
        "echo x > /etc/portcullis-test-outside",
        "echo x > /proc/sys/kernel/core_pattern",
        "mknod node c 1 3",
    ] {
        world.refused(script);
    }
    assert_eq!(fs::read_to_string(world.path("outside/secret")).unwrap(), "CANARY");
    assert_eq!(fs::read_dir(world.path("outside")).unwrap().count(), 1, "something was made outside");
    world.works("echo x > new && mkdir -p a/b && mv new a/b/ && ln a/b/new hard && rm -r a hard && mkfifo p");
}

#[test]
fn what_is_not_granted_cannot_be_read() {
    let Some(world) = World::new("workspace-write") else { return };
    for script in [
        "cat $OUTSIDE/secret",
        "ls $OUTSIDE",
        "ln -s $OUTSIDE/secret in; cat in",
        "cat /etc/shadow",
        "cat /etc/gshadow",
        "ls /etc/ssl/private /root/.ssh",
        "head -c1 /dev/kmsg",
        "ls /tmp",
        "cat /proc/1/environ",
    ] {
        world.refused(script);
    }
    let text = world.works("cat /etc/passwd /etc/hosts > copy; cat /proc/self/status");
    for none in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(text.contains(&format!("{none}:\t0000000000000000")), "{none} is not empty:\n{text}");
    }
    assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
}

#[test]
fn a_read_only_profile_writes_nothing_but_its_scratch() {
    let Some(world) = World::new("read-only") else { return };
    fs::write(world.path("ws/file"), "kept").unwrap();
    world.refused("echo x > new");
    world.refused("echo x > file");
    world.refused("rm file");
    world.works("cat file; echo x > $TMPDIR/a; echo x > $HOME/b");
    soon("the scratch directory to go", || fs::read_dir(world.path("scratch")).unwrap().count() == 0);
}

#[test]
fn the_network_is_off_unless_the_profile_opens_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let Some(closed) = World::new("workspace-write") else { return };
    let said = closed.refused(&connect);
    assert!(said.contains("Operation not permitted"), "refused by something else: {said}");
    let open = World::new("network").unwrap();
    open.works(&connect);
    if has("python3") {
        for family in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"] {
            closed.refused(&format!("/usr/bin/python3 -c 'import socket; socket.socket(socket.{family})'"));
        }
        for wrong in
            ["AF_UNIX", "AF_PACKET", "AF_VSOCK", "AF_INET, socket.SOCK_RAW", "AF_INET, socket.SOCK_STREAM, 262"]
        {
            open.refused(&format!("/usr/bin/python3 -c 'import socket; socket.socket(socket.{wrong})'"));
        }
        closed.works("/usr/bin/python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); b.recv(1)'");
    }
}

#[test]
fn the_environment_holds_nothing_but_what_the_profile_passes() {
    let Some(mut world) = World::new("workspace-write") else { return };
    for (name, value) in [
        ("GITHUB_TOKEN", "CANARY"),
        ("AWS_SECRET_ACCESS_KEY", "CANARY"),
        ("LD_PRELOAD", "/nonexistent.so"),
        ("BASH_ENV", "/CANARY"),
        ("PORTCULLIS_STATE", "CANARY"),
        ("SOMETHING", "CANARY"),
        ("LANG", "C"),
    ] {
        world.environment.push((name.into(), value.into()));
    }
    let text = world.works("env; cat /proc/$PPID/environ 2>/dev/null; tr '\\0' '\\n' < /proc/self/environ");
    assert!(!text.contains("CANARY") && !text.contains("LD_PRELOAD"), "something passed:\n{text}");
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["GIT_TEMPLATE_DIR", "HOME", "LANG", "OUTSIDE", "PATH", "PWD", "SHELL", "SHLVL", "TMPDIR", "_"]);
}

#[test]
fn no_descriptor_but_the_three_streams_is_inherited() {
    // Without close-on-exec, as a careless library would leave it.
    let leaked = fs::File::open("/etc/hostname").or_else(|_| fs::File::open("/etc/passwd")).unwrap();
    nix::fcntl::fcntl(&leaked, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let Some(world) = World::new("workspace-write") else { return };
    // A pipe would be bash's own descriptor for a moment.
    let text = world.works("find /proc/$$/fd -mindepth 1 -printf '%f %l\\n' > $TMPDIR/list; sort -n $TMPDIR/list");
    let numbers: Vec<&str> = text.lines().filter_map(|l| l.split_once(' ')).map(|(n, _)| n).collect();
    assert_eq!(numbers, ["0", "1", "2"], "{text}");
    assert!(text.starts_with("0 /dev/null\n"), "standard input is not /dev/null:\n{text}");
}

#[test]
fn a_time_limit_ends_the_whole_tree_with_its_daemons() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let script = format!(
        "trap '' TERM HUP INT; setsid sleep {marker} & (setsid bash -c 'trap \"\" TERM; sleep {marker}' &) ; nohup sleep {marker} & \
         while :; do :; done"
    );
    let outcome = world.run_for(&script, Duration::from_secs(1)).unwrap();
    assert_eq!(outcome.end, End::TimedOut(Duration::from_secs(1)));
    assert!(!outcome.left_behind);
    assert_eq!(alive(&marker), 0, "processes outlived the call");
}

#[test]
fn a_program_that_ends_on_sigterm_may_say_so() {
    let Some(world) = World::new("workspace-write") else { return };
    let script = "trap 'echo saved; exit 3' TERM; while :; do sleep 0.05; done";
    let outcome = world.run_for(script, Duration::from_millis(700)).unwrap();
    assert!(matches!(outcome.end, End::TimedOut(_)), "{:?}", outcome.end);
    assert_eq!(outcome.stdout.text(100), "saved\n");
}

#[test]
fn daemons_end_with_the_call_and_do_not_hold_it_up() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let started = Instant::now();
    let out = world.works(&format!("setsid -f sleep {marker} & sleep {marker} & disown; echo started"));
    assert_eq!(out, "started\n");
    assert!(started.elapsed() < Duration::from_secs(20), "the call waited for a process in the background");
    assert_eq!(alive(&marker), 0, "processes outlived the call");
    assert_eq!(
        world.works("exec > >(sleep 0.1; cat); echo late"),
        "late\n",
        "output of a process substitution is lost"
    );
}

#[test]
fn i6_output_is_capped_and_counted() {
    let Some(world) = World::new("workspace-write") else { return };
    let outcome = world.run("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last; echo err >&2");
    let limit = usize::try_from(world.profile.limits.output_bytes.get()).unwrap();
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(outcome.stdout.len(), limit);
    assert_eq!(outcome.stdout.dropped(), 100_000_012 - limit as u64, "bytes went missing without being counted");
    let text = outcome.stdout.text(usize::MAX);
    assert!(text.starts_with("first\n") && text.ends_with("\nlast\n"), "beginning and end are not kept");
    assert_eq!(outcome.stderr.text(100), "err\n");
}

#[test]
fn a_crowd_that_keeps_forking_is_ended() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let script = format!(
        "for i in 1 2 3 4 5 6; do setsid bash -c 'trap \"\" TERM; while :; do bash -c : {marker} & wait; done' {marker} & done; wait"
    );
    let outcome = world.run_for(&script, Duration::from_millis(500)).unwrap();
    assert!(matches!(outcome.end, End::TimedOut(_)) && !outcome.left_behind, "{outcome:?}");
    assert_eq!(alive(&marker), 0, "forking processes outran the kill");
}

#[test]
fn a_set_up_that_fails_is_named_and_is_no_exit_code() {
    let Some(mut world) = World::new("workspace-write") else { return };
    let gone = world.path("gone");
    world.profile.filesystem.read = vec![gone.to_str().unwrap().to_owned().try_into().unwrap()];
    match world.run_for("true", Duration::from_secs(5)) {
        Err(LaunchError::Setup { step, errno }) => {
            assert_eq!((step, errno), (format!("grant {}", gone.display()), libc::ENOENT));
        }
        other => panic!("a missing path was granted: {other:?}"),
    }
    world.profile.filesystem.read.clear();
    // The directory is swapped between plan and start.
    let mut here = Surroundings::new(world.path("ws"), "/nonexistent");
    here.cwd = world.path("ws/sub");
    fs::create_dir(&here.cwd).unwrap();
    let host =
        Host { scratch: world.path("scratch"), caches: world.path("caches"), environment: world.environment.clone() };
    let plan = Plan::new(&Arc::new(world.profile.clone()), &world.kernel, &here, &host).unwrap();
    fs::remove_dir(&here.cwd).unwrap();
    std::os::unix::fs::symlink(world.path("outside"), &here.cwd).unwrap();
    let error = world.launcher.run_blocking(&plan, &bash("pwd", Duration::from_secs(5))).unwrap_err();
    assert!(matches!(&error, LaunchError::Setup { step, .. } if step == "enter the working directory"), "{error:?}");
    assert_eq!(error.exit_code(), 125);
}

#[test]
fn ends_are_told_apart() {
    let Some(world) = World::new("workspace-write") else { return };
    assert_eq!(world.run("exit 0").end, End::Exited(0));
    assert_eq!(world.run("exit 125").end, End::Exited(125));
    assert_eq!(world.run("kill -TERM $$").end, End::Signalled(libc::SIGTERM));
    assert_eq!(world.run("kill -KILL $$").end, End::Signalled(libc::SIGKILL));
    assert_eq!(world.run("sleep 0 | false").end, End::Exited(1));
    let program = |name: &str| Program {
        arguments: vec![name.to_owned()],
        timeout: Duration::from_secs(5),
        streams: Streams::Capture,
    };
    for (name, code) in [("no-such-program", 127), ("/no/such/program", 127), ("/etc/passwd", 126)] {
        let error = world.launcher.run_blocking(&world.plan(), &program(name)).unwrap_err();
        assert_eq!(error.exit_code(), code, "{name}: {error}");
    }
    assert_eq!(world.works("yes | head -1; echo ${PIPESTATUS[0]}"), "y\n141\n", "SIGPIPE does not end a writer");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_the_other_architecture_kills() {
    let Some(world) = World::new("workspace-write") else { return };
    if !has("gcc") {
        return;
    }
    world.works(
        "echo 'int main(void){int r;__asm__(\"int $0x80\":\"=a\"(r):\"a\"(20));return 0;}' > a.c && gcc -o a a.c",
    );
    assert_eq!(world.run("exec ./a").end, End::Signalled(libc::SIGSYS));
}

#[test]
fn set_id_files_cannot_be_made() {
    let Some(world) = World::new("workspace-write") else { return };
    world.works("cp /bin/true t && chmod 755 t && chmod u+x,g-w t");
    world.refused("chmod u+s t");
    world.refused("chmod 2755 t");
    if has("python3") {
        world.refused("/usr/bin/python3 -c 'import os; os.open(\"new\", os.O_CREAT | os.O_WRONLY, 0o4755)'");
        world.refused("/usr/bin/python3 -c 'import os; os.mknod(\"new\", 0o104755)'");
        world.works("/usr/bin/python3 -c 'import os; os.open(\"new\", os.O_CREAT | os.O_WRONLY, 0o755)'");
    }
}

#[test]
fn a_program_can_neither_signal_nor_trace_its_supervisor() {
    let Some(world) = World::new("workspace-write") else { return };
    world.refused("kill -9 $PPID");
    world.refused("kill -STOP $PPID");
    world.refused("ls -l /proc/$PPID/fd/ /proc/$PPID/exe");
    world.refused("head -c1 /proc/$PPID/mem");
    world.refused("kill -CONT 1");
    if has("strace") {
        world.refused("strace -p $PPID");
        world.works("strace -f -o trace true && test -s trace");
    }
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
            "/usr/bin/python3 -c 'import subprocess, threading, tempfile, os; \
                     assert subprocess.run([\"echo\", \"hi\"], capture_output=True).stdout == b\"hi\\n\"; \
                     t = threading.Thread(target=print); t.start(); t.join(); \
                     tempfile.NamedTemporaryFile().write(b\"x\"); os.sched_setaffinity(0, os.sched_getaffinity(0))'",
        ),
        (
            "node",
            "node -e 'const c = require(\"child_process\"); const r = c.spawnSync(\"echo\", [\"hi\"]); \
                  if (r.error || r.stdout.toString() !== \"hi\\n\") process.exit(1); \
                  c.exec(\"node -e 0\", e => process.exit(e ? 1 : 0))'",
        ),
        (
            "cp",
            "mkdir d && echo x > d/f && ln -s f d/l && touch -d 2001-01-01 d/f && cp -a d e && cp -a /etc/hostname . && \
                test e/f -ot d && chmod 755 e/f && tar cf t.tar e && rm -r e && tar xf t.tar && test -L e/l",
        ),
        (
            "find",
            "find . -name f | xargs ls -l | sort > list; diff <(echo a) <(echo a) && cat <<< hi && echo x | tee y > /dev/null",
        ),
        ("make", "printf 'all: a b\\na b:\\n\\t@true\\n' > Makefile && make -s -j4"),
        ("ps", "ps aux > /dev/null && nproc > /dev/null && date +%Z && getent hosts localhost"),
        ("flock", "exec 3<> lock && flock -n 3 && mkdir x && mv x y2 && mkdir z && mv y2 z/"),
    ];
    for (tool, script) in work {
        if has(tool) {
            world.works(script);
        }
    }
}

#[test]
fn memory_files_hold_data_and_are_not_executed() {
    let Some(world) = World::new("landlock-only") else { return };
    if has("python3") {
        assert_eq!(world.works(MEMORY_FILES), "data\n");
    }
}

#[test]
fn hooks_that_a_program_writes_are_put_out_of_use_and_told() {
    let Some(world) = World::new("landlock-only") else { return };
    if !has("git") {
        return;
    }
    let init = Command::new("git").args(["init", "-q", "."]).current_dir(world.path("ws")).output().unwrap();
    assert!(init.status.success(), "{init:?}");
    let outcome = world.run("echo x > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit");
    assert_eq!(outcome.leftovers, [Leftover::Hook { path: ".git/hooks/pre-commit".into() }]);
    assert!(!world.path("ws/.git/hooks/pre-commit").exists());
    let denials = world.run("echo x > /usr/new").denials;
    assert_eq!(denials[0].what, "write outside the workspace: /usr/new", "{denials:?}");
}

#[test]
fn many_calls_run_at_once() {
    let Some(world) = World::new("workspace-write") else { return };
    std::thread::scope(|scope| {
        let world = &world;
        for n in 0..32 {
            scope.spawn(move || assert_eq!(world.works(&format!("sleep 0.0{}; echo {n}", n % 7)), format!("{n}\n")));
        }
    });
    soon("the scratch directories to go", || fs::read_dir(world.path("scratch")).unwrap().count() == 0);
}

#[tokio::test]
async fn a_caller_that_gives_up_ends_the_program() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let run = world
        .launcher
        .run(world.plan(), bash(&format!("setsid sleep {marker} & sleep {marker}"), Duration::from_secs(60)));
    let gave_up = tokio::time::timeout(Duration::from_millis(700), run).await;
    assert!(gave_up.is_err(), "the program ended by itself");
    soon("the program to end after its caller gave up", || alive(&marker) == 0);
}

#[test]
fn i5_less_than_asked_is_applied_only_where_a_reviewer_may_say_so() {
    let Some(mut world) = World::new("workspace-write") else { return };
    world.profile.when_missing = WhenMissing::Ask;
    let whole = world.kernel.clone();
    for (kernel, abi) in [
        (whole.with_landlock_at_most(4), 4),
        (whole.with_landlock_at_most(2), 2),
        (whole.with_landlock_at_most(0).without_seccomp(), 0),
    ] {
        world.kernel = kernel;
        if abi > 0 {
            world.refused("echo x > $OUTSIDE/new");
        }
        let marker = marker();
        world.works(&format!("setsid sleep {marker} & mkdir {abi} b{abi} && touch {abi}/f && mv {abi}/f b{abi}/"));
        assert_eq!(alive(&marker), 0, "ABI {abi}: daemons are ended one by one here, and one was not");
    }
}

// --- through the command line, as other people -------------------------------------------------------------------

/// `portcullis sandbox exec` as a user, in a workspace that is theirs.
fn exec_as(user: Option<u32>, arguments: &[&str], script: &str) -> Option<Output> {
    exec_with(user, arguments, script, None)
}

/// The same, with a profile of the user's own configuration.
fn exec_with(user: Option<u32>, arguments: &[&str], script: &str, profile: Option<&str>) -> Option<Output> {
    World::new("workspace-write")?;
    if user.is_some() && !nix::unistd::geteuid().is_root() {
        eprintln!("NOT PROVED: only root can run this as another user");
        return None;
    }
    let dir = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let (binary, workspace) = (dir.path().join("portcullis"), dir.path().join("ws"));
    fs::copy(BINARY, &binary).unwrap();
    fs::create_dir(&workspace).unwrap();
    fs::write(dir.path().join("outside"), "x").unwrap();
    fs::create_dir_all(dir.path().join("config/profiles")).unwrap();
    if let Some(text) = profile {
        fs::write(dir.path().join("config/profiles/own.toml"), text).unwrap();
    }
    let mut command = Command::new(&binary);
    command.args(["sandbox", "exec", "--workspace"]).arg(&workspace).args(arguments);
    command
        .args(["--", "/bin/bash", "-c", script])
        .env("TMPDIR", dir.path())
        .env("OUT", dir.path())
        .env("PORTCULLIS_CONFIG", dir.path().join("config"))
        .env("PORTCULLIS_STATE", dir.path().join("state"))
        .stdin(Stdio::null());
    if let Some(user) = user {
        std::os::unix::fs::chown(&workspace, Some(user), Some(user)).unwrap();
        std::os::unix::fs::chown(dir.path(), Some(user), Some(user)).unwrap();
        command.uid(user).gid(user);
    }
    Some(command.current_dir("/").output().unwrap())
}

#[test]
fn an_ordinary_user_is_confined_as_well() {
    let marker = marker();
    let script = format!(
        "cd; echo a > ok || exit 1; echo x > $OUT/new && exit 2; cat $OUT/outside && exit 3; exec 3<>/dev/tcp/127.0.0.1/1 && exit 4; \
         kill -9 $PPID && exit 5; grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status && echo bounding set kept; setsid sleep {marker} & \
         grep -q 'NoNewPrivs:.1' /proc/self/status || exit 6; exit 0"
    );
    let arguments = ["--profile", "landlock-only", "--env", "OUT"];
    let Some(output) = exec_as(Some(65534), &arguments, &script) else { return };
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    soon("the daemon to end", || alive(&marker) == 0);
}

#[test]
fn i2_an_ordinary_user_cannot_fork_without_end() {
    if !has("python3") {
        return;
    }
    let text = include_str!("../sandbox-profiles/workspace-write.toml")
        .replace("\"workspace-write\"", "\"few\"")
        .replace("processes = 1024", "processes = 20");
    // The limit counts this user's processes against what the machine ran at the start.
    let script = "exec /usr/bin/python3 -c '
import os, time
n = 0
try:
    while n < 5000:
        if os.fork() == 0:
            time.sleep(60); os._exit(0)
        n += 1
except BlockingIOError:
    print(n); os._exit(0)
os._exit(1)'";
    let arguments = ["--profile", "few", "--timeout", "30"];
    let Some(output) = exec_with(Some(61234), &arguments, script, Some(&text)) else { return };
    assert_eq!(output.status.code(), Some(0), "no limit: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn exit_codes_are_those_of_shells() {
    for (arguments, script, code) in [
        (&[][..], "exit 7", 7),
        (&[], "kill -9 $$", 137),
        (&["--timeout", "1"], "sleep 20", 124),
        (&["--profile", "no-such"], "true", 125),
        (&["--env", "LD_PRELOAD=/x"], "true", 125),
    ] {
        let Some(output) = exec_as(None, arguments, script) else { return };
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {script}: {err}");
    }
}

#[test]
fn nothing_outlives_a_gateway_that_is_killed() {
    if World::new("workspace-write").is_none() {
        return;
    }
    let (workspace, scratch, marker) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), marker());
    let mut gateway = Command::new(BINARY)
        .args(["sandbox", "exec", "--workspace"])
        .arg(workspace.path())
        .args(["--", "/bin/bash", "-c", &format!("setsid sleep {marker} & sleep {marker}")])
        .env("TMPDIR", scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    soon("both programs to run", || alive(&marker) == 2);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    soon("the programs to end after the gateway was killed", || alive(&marker) == 0);
}
