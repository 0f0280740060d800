//! The rows of the probe suite that need a driver of the gateway itself, by their names: limits (L), the gateway (G), what
//! a call leaves (A). The rows E, of an egress proxy, have nothing to be about: no profile has one.

use super::*;

fn timed_out(row: &str, script: &str) {
    let Some(world) = World::new("workspace-write") else { return };
    let (marker, started) = (marker(), Instant::now());
    let outcome = world.run_for(&format!("setsid -f sleep {marker}\n{script}"), Duration::from_secs(2)).unwrap();
    assert_eq!(outcome.end, End::TimedOut(Duration::from_secs(2)), "{row}");
    assert!(started.elapsed() < Duration::from_secs(20), "{row}: {:?}", started.elapsed());
    assert!(outcome.stdout.len() <= usize::try_from(world.profile.limits.output_bytes.get()).unwrap(), "{row}");
    assert!(!outcome.left_behind && alive(&marker) == 0, "{row}: processes outlived the call");
}

#[test]
fn l06_output_is_capped() {
    let Some(world) = World::new("workspace-write") else { return };
    // A busy machine takes its time.
    let script = "head -c 300000000 /dev/zero | tr '[:cntrl:]' a";
    let outcome = world.run_for(script, Duration::from_secs(500)).unwrap();
    let limit = usize::try_from(world.profile.limits.output_bytes.get()).unwrap();
    assert_eq!((outcome.end, outcome.stdout.len()), (End::Exited(0), limit));
    assert_eq!(outcome.stdout.dropped(), 300_000_000 - limit as u64);
}

#[test]
fn l07_to_l09_l14_l15_l17_the_time_limit_ends_everything() {
    for (row, script) in [
        ("L07", "yes"),
        ("L08", "sleep 600"),
        ("L09", "trap '' TERM INT HUP QUIT; while :; do sleep 1; done"),
        ("L14", "kill -STOP $$"),
        ("L15", "mkfifo p15; (while :; do echo x; sleep 1; done) > p15 & cat p15"),
        ("L17", "for i in 1 2 3 4; do (while :; do :; done) & done; wait"),
        ("L09 of the group", "trap '' TERM; kill -STOP 0"),
    ] {
        timed_out(row, script);
    }
}

#[test]
fn l18_there_is_no_input() {
    let Some(world) = World::new("workspace-write") else { return };
    assert_eq!(world.works("cat"), "");
}

#[test]
fn l19_output_is_bytes_and_becomes_text() {
    let Some(world) = World::new("workspace-write") else { return };
    let outcome = world.run("printf '\\033]52;c;ZXZpbA==\\007\\000\\377\\376'");
    assert_eq!(outcome.stdout.text(100), "\u{1b}]52;c;ZXZpbA==\u{7}\0\u{fffd}\u{fffd}");
}

#[test]
fn l20_l21_the_supervisor_cannot_be_killed_from_inside() {
    let Some(world) = World::new("workspace-write") else { return };
    assert_eq!(world.run("kill -9 1; sleep 0.2; kill -0 1 2>/dev/null; exec sleep 0").end, End::Exited(0));
    let marker = marker();
    let script = format!("setsid -f sleep {marker}; kill -9 $PPID; echo alive > late");
    // The parent is the first process of its namespace: it stays, and ends the rest with the call.
    assert_eq!(world.run(&script).end, End::Exited(0));
    assert_eq!(alive(&marker), 0);
}

#[test]
fn l22_deep_trees_do_not_stand_in_the_way() {
    let Some(world) = World::new("workspace-write") else { return };
    let deep = "/usr/bin/python3 -c 'import os\nfor n in range(2000): os.mkdir(\"d\"); os.chdir(\"d\")'";
    if has("python3") {
        assert_eq!(world.run(deep).leftovers, [Leftover::NotAllSeen], "i6: what was not looked at is said");
        world.works(&format!("cd /tmp; {deep}"));
    }
    world.works("true");
}

#[test]
fn g02_a_part_of_the_workspace_that_is_a_link_by_now_leads_nowhere() {
    let Some(world) = World::new("workspace-write") else { return };
    fs::create_dir(world.path("ws/sub")).unwrap();
    let plan = world.plan();
    fs::remove_dir(world.path("ws/sub")).unwrap();
    std::os::unix::fs::symlink(world.path("outside"), world.path("ws/sub")).unwrap();
    let outcome = world.launcher.run_blocking(&plan, &bash("echo x > sub/new", Duration::from_secs(10))).unwrap();
    assert_ne!(outcome.end, End::Exited(0));
    assert!(!world.path("outside/new").exists());
}

/// Makes a system call answer with an errno, for this process and all after it.
fn forbid(call: libc::c_long, errno: i32) -> std::io::Result<()> {
    let of = |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).unwrap(), jt, jf, k };
    let mut filter = [
        of(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        of(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::try_from(call).unwrap()),
        of(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()),
        of(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to instructions that outlive the call.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// `sandbox exec` with its places in a directory of its own.
fn exec(world: &World, profile: &str, script: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["sandbox", "exec", "--profile", profile, "--workspace"]).arg(world.path("ws"));
    command
        .args(["--", "/bin/bash", "-c", script])
        .env("TMPDIR", world.path("."))
        .env("HOME", world.path("home"))
        .env("PORTCULLIS_CONFIG", world.path("config"))
        .env("PORTCULLIS_STATE", world.path("state"))
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

#[test]
fn g04_to_g07_a_layer_that_fails_is_named_and_nothing_runs() {
    let Some(world) = World::new("workspace-write") else { return };
    for (row, call, errno, says) in [
        ("G04", libc::SYS_landlock_create_ruleset, libc::ENOSYS, "no Landlock"),
        ("G04", libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP, "no Landlock"),
        ("G04", libc::SYS_landlock_restrict_self, libc::EPERM, "landlock"),
        ("G04", libc::SYS_landlock_add_rule, libc::ENOMEM, ""),
        ("G06", libc::SYS_seccomp, libc::EINVAL, "seccomp"),
        ("G07", libc::SYS_unshare, libc::EPERM, "map the workspace's owner"),
        ("G07", libc::SYS_pivot_root, libc::EPERM, "change the root directory"),
        ("G07", libc::SYS_move_mount, libc::EPERM, "attach"),
        ("G07", libc::SYS_capset, libc::EPERM, "drop the capabilities"),
    ] {
        let mut command = exec(&world, "workspace-write", "echo ran > ran");
        // SAFETY: the closure makes two system calls and touches memory of its own alone.
        unsafe { command.pre_exec(move || forbid(call, errno)) };
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{row}: {err}");
        assert!(err.contains(says), "{row}: {err}");
        assert!(!world.path("ws/ran").exists(), "{row}: it ran all the same");
    }
}

#[test]
fn g08_calls_of_many_workspaces_do_not_meet() {
    let Some(world) = World::new("workspace-write") else { return };
    std::thread::scope(|scope| {
        for n in 0..64 {
            let world = &world;
            scope.spawn(move || {
                let workspace = world.path(&format!("w{n}"));
                fs::create_dir(&workspace).unwrap();
                let script = format!("pwd > here; ls ..; echo {n} > /tmp/n; sleep 0.02; cat /tmp/n; ls /tmp ~");
                let program = bash(&script, Duration::from_secs(60));
                let outcome = world.launcher.run_blocking(&world.plan_at(&workspace), &program).unwrap();
                let out = outcome.stdout.text(1000);
                assert!(out.starts_with(&format!("w{n}\n{n}\n")), "{n}: {out}");
            });
        }
    });
}

#[test]
fn g11_odd_calls_are_typed_errors() {
    let Some(mut world) = World::new("workspace-write") else { return };
    world.variables.push(("BIG".into(), "x".repeat(100_000)));
    assert_eq!(world.works("echo ${#BIG}"), "100000\n");
    world.variables = (0..20).map(|n| (format!("BIG{n}"), "x".repeat(100_000))).collect();
    match world.run_for("true", Duration::from_secs(20)) {
        Ok(outcome) => assert_eq!(outcome.end, End::Exited(0)),
        Err(LaunchError::Setup { step, errno }) => assert_eq!((step.as_str(), errno), ("exec", libc::E2BIG)),
        Err(other) => panic!("{other:?}"),
    }
    world.variables.clear();
    fs::create_dir(world.path("ws/gone")).unwrap();
    let mut here = Surroundings::new(world.path("ws"), "/nonexistent");
    here.cwd = world.path("ws/gone");
    let host = Host { scratch: world.path("s"), caches: world.path("c"), environment: Vec::new() };
    let plan = Plan::new(&Arc::new(world.profile.clone()), Kernel::probe(), &here, &host).unwrap();
    fs::remove_dir(world.path("ws/gone")).unwrap();
    let error = world.launcher.run_blocking(&plan, &bash("true", Duration::from_secs(5))).unwrap_err();
    assert!(error.to_string().contains("working directory"), "{error}");
}

#[test]
fn g12_a_child_that_keeps_writing_does_not_hold_the_call_up() {
    let Some(world) = World::new("workspace-write") else { return };
    let started = Instant::now();
    assert_eq!(world.run("yes & exit 0").end, End::Exited(0));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[test]
fn g13_nothing_outlives_a_gateway_or_a_helper_that_is_killed() {
    let Some(world) = World::new("workspace-write") else { return };
    let marker = marker();
    let script = format!("trap '' TERM HUP; setsid -f sleep {marker}; sleep {marker}");
    let start =
        |_| exec(&world, "workspace-write", &script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut gateways: Vec<_> = (0..10).map(start).collect();
    soon("all programs to run", || alive(&marker) == 20);
    let children = |pid: u32| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    for (n, gateway) in gateways.iter_mut().enumerate() {
        let helper = children(gateway.id()).split_whitespace().next().map(str::to_owned);
        match helper.filter(|_| n % 2 == 0).and_then(|pid| pid.parse::<i32>().ok()) {
            // SAFETY: a number alone; the process is a child of a gateway that this test started.
            Some(helper) => assert_eq!(unsafe { libc::kill(helper, libc::SIGKILL) }, 0),
            None => gateway.kill().unwrap(),
        }
    }
    // Where the helper is gone the gateway still holds its connection to the supervisor, which goes on.
    for gateway in &mut gateways {
        let _ = gateway.kill();
        gateway.wait().unwrap();
    }
    soon("the programs to end", || alive(&marker) == 0);
}

#[test]
fn g14_each_end_has_a_name_of_its_own() {
    let Some(mut world) = World::new("workspace-write") else { return };
    assert_eq!(world.run("kill -SYS $$").end, End::Signalled(libc::SIGSYS));
    assert_eq!(world.run("exit 9").end, End::Exited(9));
    let timed = world.run_for("sleep 9", Duration::from_secs(1)).unwrap();
    assert_eq!(timed.end, End::TimedOut(Duration::from_secs(1)));
    world.profile.limits.file_bytes = 1000;
    assert_eq!(world.run("exec head -c 5000 /dev/zero > big").end, End::Signalled(libc::SIGXFSZ));
}

#[test]
fn a41_no_ghosts() {
    let Some(world) = World::new("workspace-write") else { return };
    world.works("true");
    for ghost in [".bashrc", ".gitconfig", ".mcp.json", ".git"] {
        assert!(!world.path("ws").join(ghost).exists(), "{ghost}");
    }
}

/// 10,000 calls in a row and 200 at once: `cargo test --test sandbox_full -- --ignored ten_thousand --nocapture`.
#[test]
#[ignore = "minutes"]
fn ten_thousand_calls_leave_nothing_behind() {
    let Some(world) = World::new("workspace-write") else { return };
    let calls: usize = std::env::var("CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let count = |place: &str| fs::read_dir(place).map_or(0, Iterator::count);
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    let resident = || {
        let text = fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
    };
    let plan = world.plan();
    let call =
        || world.launcher.run_blocking(&plan, &bash("setsid -f sleep 60; echo x > /tmp/x", Duration::from_secs(60)));
    for _ in 0..50 {
        call().unwrap();
    }
    // Other programs use the temporary directory as well.
    let own = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("portcullis");
    let temporary = || fs::read_dir("/tmp").map_or(0, |entries| entries.flatten().filter(own).count());
    let before = (count("/proc/self/fd"), mounts(), temporary());
    let (memory, started) = (resident(), Instant::now());
    for _ in 0..calls {
        assert_eq!(call().unwrap().end, End::Exited(0));
    }
    let row = started.elapsed();
    assert_eq!((count("/proc/self/fd"), mounts(), temporary()), before, "descriptors, mounts, temporary files");
    let grown = resident().saturating_sub(memory);
    let started = Instant::now();
    std::thread::scope(|scope| (0..200).for_each(|_| drop(scope.spawn(|| call().unwrap()))));
    eprintln!("{calls} in a row: {row:?}, memory +{grown} KiB; 200 at once: {:?}", started.elapsed());
    assert!(grown < 4096, "memory grew by {grown} KiB");
    assert_eq!((count("/proc/self/fd"), mounts()), (before.0, before.1), "descriptors and mounts after 200 at once");
}

/// `sandbox exec` at a terminal: what it showed, and its exit code.
fn at_terminal(world: &World, arguments: &[&str], keys: &str) -> (String, i32) {
    let driver = "import os, pty, select, sys, time
pid, m = pty.fork()
if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
out, end, keys = b'', time.time() + 30, sys.argv[1].encode()
quiet = time.time()
while time.time() < end:
    if select.select([m], [], [], 0.1)[0]:
        try: data = os.read(m, 4096)
        except OSError: break
        if not data: break
        out += data
        quiet = time.time()
    elif keys and out and time.time() - quiet > 0.5:
        os.write(m, keys)
        keys = b''
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.stdout.flush()
sys.stdout.buffer.write(out)";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", driver, keys, BINARY, "sandbox", "exec", "--workspace"]).arg(world.path("ws"));
    command
        .args(arguments)
        .env("TERM", "xterm")
        .env("HOME", world.path("home"))
        .env("PORTCULLIS_CONFIG", world.path("config"))
        .env("PORTCULLIS_STATE", world.path("state"))
        .current_dir("/");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (code, shown) = text.split_once('\n').unwrap_or_else(|| panic!("{output:?}"));
    (shown.to_owned(), code.parse().unwrap())
}

#[test]
fn i04_no_program_holds_the_callers_terminal() {
    let Some(world) = World::new("workspace-write") else { return };
    if !has("python3") {
        return;
    }
    let (shown, code) =
        at_terminal(&world, &["--", "/bin/bash", "-c", "test -t 0 -o -t 1 -o -t 2; echo $?; : < /dev/tty"], "");
    assert!(shown.starts_with("1\r\n") && code != 0, "{code}: {shown:?}");
    // A terminal of its own is one, commands nobody, and cannot be typed into from inside.
    let script = "test -t 0 -a -t 1 -a -t 2 || exit 9; printf 'a\\033]52;c;eA==\\007b\\n'; \
                  /usr/bin/python3 -c 'import fcntl\nfor r in (0x5412, 0x541c, 0x541d): fcntl.ioctl(0, r, b\"x\")' 2>/dev/null && exit 8; \
                  exec 3<>/dev/tty || exit 7; read -r line <&3; echo \"<$line>\"; exit 3";
    let (shown, code) = at_terminal(&world, &["--tty", "--", "/bin/bash", "-c", script], "hello\r");
    assert!(shown.contains("ab\r\n") && shown.contains("<hello>") && code == 3, "{code}: {shown:?}");
    if has("less") {
        fs::write(world.path("ws/n"), (1..500).map(|n| format!("{n}\n")).collect::<String>()).unwrap();
        let (shown, code) = at_terminal(&world, &["--tty", "--env", "TERM=xterm", "--", "less", "n"], "Gq");
        assert!(shown.contains("499") && shown.contains("\u{1b}[?1049") && code == 0, "{code}: {shown:?}");
    }
}

#[test]
fn what_was_refused_is_told_at_the_command_line() {
    let Some(world) = World::new("workspace-write") else { return };
    let output = exec(&world, "workspace-write", "touch /etc/hosts").output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("as far as the messages tell: write outside the workspace: /etc/hosts;"), "{err}");
    assert_eq!(output.status.code(), Some(1));
    let output = exec(&world, "workspace-write", "echo fine >&2").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "fine\n");
}

#[test]
fn signals_that_the_gateway_ignores_end_programs_all_the_same() {
    let Some(world) = World::new("workspace-write") else { return };
    for profile in ["workspace-write", "landlock-only"] {
        let mut command = exec(&world, profile, "kill -HUP $$; kill -INT $$; kill -USR1 $$; exit 3");
        // SAFETY: the closure makes system calls with numbers alone.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGUSR1, libc::SIGCHLD] {
                    libc::signal(signal, libc::SIG_IGN);
                }
                Ok(())
            });
        }
        assert_eq!(command.output().unwrap().status.code(), Some(128 + libc::SIGHUP), "{profile}");
    }
}

/// Where control groups hold memory and processes, the kernel itself stops what grows between two looks, and nothing of the
/// group is left.
#[test]
fn control_groups_hold_memory_and_leave_nothing_behind() {
    let Some(mut world) = World::new("workspace-write") else { return };
    if !Kernel::probe().groups.hold_memory() {
        eprintln!("NOT PROVED: no control groups here: {}", Kernel::probe().groups.describe());
        return;
    }
    if !has("python3") {
        return;
    }
    world.profile.limits.memory_bytes = (256u64 << 20).try_into().unwrap();
    // Socket buffers are the kernel's memory, which no look at the processes sees.
    let sockets = "python3 -c 'import socket, time\nkept = []\nfor n in range(4000):\n a, b = socket.socketpair()\n a.setblocking(False)\n kept.append((a, b))\n try:\n  while True: a.send(bytes(60000))\n except BlockingIOError: pass\nprint(len(kept))'";
    assert_eq!(world.run(sockets).end, End::OutOfMemory(256 << 20));
    assert_eq!(world.run("true").end, End::Exited(0));
    drop(world);
    soon("the groups to go", || {
        let own = |line: &str| line.split_once(":memory:").map(|(_, path)| format!("/sys/fs/cgroup/memory{path}"));
        let text = fs::read_to_string("/proc/self/cgroup").unwrap();
        let Some(directory) = text.lines().find_map(own) else { return true };
        fs::read_dir(directory).map_or(true, |entries| {
            entries.flatten().all(|entry| {
                let name = entry.file_name().into_string().unwrap_or_default();
                let pid = name.strip_prefix("portcullis-").map(str::to_owned);
                pid.is_none_or(|pid| Path::new("/proc").join(pid).exists())
            })
        })
    });
}
