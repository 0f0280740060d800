//! One test at least for each of the invariants I1 to I8, from the outside. Those that need the inside of a module are
//! beside its code, under names that begin the same way.

#![expect(clippy::expect_used, reason = "a test stops where it cannot go on")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::World;

/// Waits for something that another process does; gives up after ten seconds.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < deadline, "waited ten seconds for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a granted `Bash` call that goes on for a while, and waits until its decision is on disk.
fn start_long_call(world: &World) -> Child {
    let call = ["run", "Bash", "command=echo started > started; sleep 30"];
    let asked = world.run(call);
    assert_eq!(world.run(["approvals", "grant", &asked.pending()]).code, 0);
    let child = world.portcullis(call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    until("the command to start", || world.workspace().join("started").exists());
    child
}

#[test]
fn i1_a_deny_holds_on_every_way_to_the_tool() {
    let world = World::new();
    world.write("work/f", "text");
    world.write(
        "config/policies/no-read.cedar",
        "@id(\"no-read\") @reason(\"closed\") forbid (principal, action == Action::\"Read\", resource);",
    );
    let run = world.run(["run", "Read", "path=f"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("no-read") && !run.stdout.contains("text"), "{run:?}");
    assert_eq!(world.run(["run", "Read", "--json", "{\"path\": \"f\"}", "--output", "json"]).code, 2);
    assert_eq!(world.run(["check", "Read", "path=f"]).code, 2);
    let batch = world.run_with_input(["check", "--batch", "-"], br#"{"tool":"Read","arguments":{"path":"f"}}"#);
    assert_eq!(batch.lines()[0]["stages"]["policy"], "deny");
}

#[test]
fn i1_no_stage_imports_another_stage() {
    let firewall = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/firewall");
    let stages = ["policy", "command", "path", "sandbox"];
    let mut read = 0;
    let mut pending = vec![firewall];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).expect("listable").map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let inside = path.to_string_lossy().rsplit_once("src/firewall/").expect("below it").1.to_owned();
        let Some(own) = stages.iter().find(|s| inside == format!("{s}.rs") || inside.starts_with(&format!("{s}/")))
        else {
            assert_eq!(inside, "mod.rs", "a file of the firewall that belongs to no stage");
            continue;
        };
        read += 1;
        let text = fs::read_to_string(&path).expect("readable");
        for other in stages.iter().filter(|s| *s != own) {
            for import in [format!("firewall::{other}"), format!("super::{other}::")] {
                assert!(!text.contains(&import), "{inside} imports {import}");
            }
        }
    }
    assert!(read >= stages.len(), "only {read} files of stages were read");
}

#[test]
fn i2_a_log_that_cannot_be_written_denies() {
    let world = World::new();
    world.write("work/f", "text");
    // A directory where the log should be cannot be appended to, whoever tries.
    fs::create_dir_all(world.log()).expect("a directory");
    make_private(&world.state());
    let ran = world.run(["run", "Read", "path=f"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("audit") && !ran.stdout.contains("text"), "{ran:?}");
}

fn make_private(state: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for dir in [state.to_owned(), state.join("audit")] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).expect("ours");
    }
}

#[test]
fn i3_the_decision_is_on_disk_before_the_effect() {
    let world = World::new();
    let mut child = start_long_call(&world);
    let log = fs::read_to_string(world.log()).expect("a log");
    assert!(
        log.lines().any(|l| l.contains("\"kind\":\"decided\"") && l.contains("\"effective\":\"allow\"")),
        "the command runs, and no decision is on record: {log}"
    );
    assert!(!log.contains("\"kind\":\"finished\""), "{log}");
    child.kill().expect("ours");
    child.wait().expect("ours");
}

#[test]
fn i3_a_killed_call_is_left_as_outcome_unknown_and_the_log_verifies() {
    let world = World::new();
    let mut child = start_long_call(&world);
    child.kill().expect("ours");
    child.wait().expect("ours");
    let verified = world.run(["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(verified.stdout.contains("unknown"), "{verified:?}");
    // The next writer puts it on record.
    world.run(["run", "ListDir", "path=."]);
    let tail = world.run(["audit", "tail"]);
    assert!(tail.stdout.contains("outcome unknown"), "{tail:?}");
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn i3_what_is_denied_after_judging_is_on_record_as_denied() {
    let denials = |world: &World| {
        let log = fs::read_to_string(world.log()).expect("a log");
        let (decided, allowed) = ("\"kind\":\"decided\"", "\"effective\":\"allow\"");
        let denied =
            |l: &&str| l.contains(decided) && l.contains("\"effective\":\"deny\"") || l.contains("\"rejected\"");
        let allowed = log.lines().filter(|l| l.contains(decided) && l.contains(allowed)).count();
        (log.lines().filter(denied).count(), allowed)
    };
    // Nobody can be asked any more.
    let world = World::new();
    world.write("config/portcullis.toml", "[approval]\nper_minute = 1000\n");
    for n in 0..100 {
        assert_eq!(world.run(["run", "Bash", &format!("command=echo {n}")]).code, 3);
    }
    let ran = world.run(["run", "Bash", "command=echo one too many"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("approval.too-many"), "{ran:?}");
    assert_eq!(denials(&world), (1, 0), "the denial is not on record");

    // The books are locked.
    let world = World::new();
    world.write("work/x", "");
    world.run(["run", "Read", "path=x"]);
    let before = denials(&world);
    let books = rusqlite::Connection::open(world.state().join("state.db")).expect("the database");
    books.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    let ran = world.run(["run", "Read", "path=x"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    drop(books);
    let after = denials(&world);
    assert_eq!(after, (before.0 + 1, before.1), "a call that was denied is on record as allowed, or not at all");

    // A name that no record can hold.
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let odd = world.workspace().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).expect("a directory");
    let ran = world.portcullis(["run", "Bash", "command=echo hi"]).current_dir(&odd).output().expect("it starts");
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert_eq!(denials(&world), (1, 0), "the denial is not on record");
}

#[test]
fn i4_a_grant_does_not_survive_a_change_of_what_was_judged() {
    let call = ["run", "Bash", "command=echo hi"];
    type Change = fn(&World);
    let changes: [(&str, Change); 3] = [
        ("a policy", |world| {
            world.write(
                "config/policies/new.cedar",
                "@id(\"new\") forbid (principal, action == Action::\"Write\", resource);",
            );
        }),
        ("a pack", |world| {
            world.write("work/.portcullis/commands/extra.toml", include_str!("cases/extra-pack.toml"));
        }),
        ("the profile", |world| {
            world.write("config/portcullis.toml", "profile = \"read-only\"\n");
        }),
    ];
    for (what, change) in changes {
        let world = World::new();
        let asked = world.run(call);
        assert_eq!(world.run(["approvals", "grant", &asked.pending()]).code, 0);
        change(&world);
        let ran = world.run(call);
        assert_eq!(ran.code, 3, "the grant was used although {what} changed: {ran:?}");
    }
}

#[test]
fn i4_a_grant_is_for_the_place_that_was_shown() {
    type Change = fn(&Path);
    let point = |work: &Path, to: &str| {
        let _ = fs::remove_file(work.join("lnk"));
        std::os::unix::fs::symlink(to, work.join("lnk")).expect("a link");
    };
    let ci: Change = |work| {
        fs::remove_file(work.join("lnk")).expect("a link");
        std::os::unix::fs::symlink(".github/workflows/ci.yml", work.join("lnk")).expect("a link");
    };
    let other_env: Change = |work| {
        fs::remove_file(work.join("lnk")).expect("a link");
        std::os::unix::fs::symlink("b/.env", work.join("lnk")).expect("a link");
    };
    let other_directory: Change = |work| {
        fs::remove_file(work.join("lnk")).expect("a link");
        std::os::unix::fs::symlink("b", work.join("lnk")).expect("a link");
    };
    let appears: Change = |work| fs::write(work.join("new.txt"), "somebody's").expect("a file");
    let content: Change = |work| fs::write(work.join("a/.env"), "OTHER=1").expect("a file");
    let nothing: Change = |_| {};
    for (call, link, change, code) in [
        (&["Write", "path=lnk", "content=x"][..], ".envrc", ci, 3),
        (&["Read", "path=lnk"], "a/.env", other_env, 3),
        (&["Bash", "command=cat lnk"], "a/.env", other_env, 3),
        (&["Write", "path=lnk/x", "content=x"], "a", other_directory, 3),
        (&["Edit", "path=lnk", "old_string=A", "new_string=B"], "a/.env", other_env, 3),
        (&["Bash", "command=echo x > lnk/x"], "a", other_directory, 3),
        (&["Write", "path=new.txt", "content=x"], "a", appears, 3),
        // What is the same stays granted.
        (&["Read", "path=lnk"], "a/.env", content, 0),
        (&["Read", "path=lnk"], "a/.env", nothing, 0),
        (&["Write", "path=lnk", "content=x"], ".envrc", nothing, 0),
        (&["Write", "path=lnk", "content=x"], "a/.env", content, 0),
        (&["Bash", "command=cat lnk < /dev/stdin; echo x > /dev/null"], "a/.env", content, 0),
    ] {
        let world = World::new();
        for file in ["a/.env", "b/.env", ".github/workflows/ci.yml"] {
            world.write(&format!("work/{file}"), "A=1\n");
        }
        point(&world.workspace(), link);
        let call: Vec<&str> = ["run"].iter().chain(call).copied().collect();
        let asked = world.run(&call);
        let listed = world.run(["approvals", "list"]).stdout;
        if call.contains(&"path=lnk") {
            assert!(listed.contains(&format!("lands at {link}")), "where it lands is not shown: {listed}");
        }
        assert_eq!(world.run(["approvals", "grant", &asked.pending()]).code, 0);
        change(&world.workspace());
        let ran = world.run(&call);
        assert_eq!(ran.code, code, "{call:?} with lnk -> {link}: {ran:?}");
    }
}

#[test]
fn i5_what_this_kernel_gives_is_said_in_the_verdict_the_record_and_by_doctor() {
    let world = World::new();
    let verdict = world.run(["check", "Bash", "command=ls", "--output", "json"]).json();
    let told = verdict["findings"].to_string();
    let profiles = portcullis::sandbox::Profiles::built_in().expect("sound profiles");
    let tier =
        portcullis::sandbox::Kernel::probe().tier(profiles.get("workspace-write").expect("the default")).as_str();
    assert!(told.contains(&format!("profile `workspace-write`, tier {tier}")), "{verdict}");
    world.run(["run", "Bash", "command=ls"]);
    let log = fs::read_to_string(world.log()).expect("a log");
    assert!(log.contains(&format!("\"offers\":\"{tier}\"")), "{log}");
    let doctor = world.run(["doctor"]);
    assert!(doctor.stdout.contains(&format!("tier {tier}")) && doctor.stdout.contains("seccomp"), "{doctor:?}");
}

#[test]
fn i6_a_limit_that_is_hit_is_a_finding_and_never_an_allow() {
    let world = World::new();
    let deep = format!("echo {}{}", "$(".repeat(5_000), ")".repeat(5_000));
    let long = format!("echo {}", "a;".repeat(500_000));
    for command in [deep, long] {
        let line = serde_json::json!({ "tool": "Bash", "arguments": { "command": command } });
        let verdict = world.run_with_input(["check", "--batch", "-"], line.to_string().as_bytes()).lines().remove(0);
        assert_ne!(verdict["decision"], "allow", "{} bytes", command.len());
        let told = verdict["findings"].to_string();
        assert!(told.contains("not-fully-analysed") || told.contains("argument"), "{told}");
    }
}

#[test]
fn i7_an_agents_credential_approves_nothing() {
    let world = World::new();
    let token = "pcl_agent_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let digest = portcullis::call::Digest::of(token);
    world.write("config/portcullis.toml", format!("[[agents]]\nname = \"bot\"\ntoken_sha256 = \"{digest}\"\n"));
    let asked = world.run(["run", "Bash", "command=ls"]);
    let granted = world
        .portcullis(["approvals", "grant", &asked.pending()])
        .env("PORTCULLIS_TOKEN", token)
        .output()
        .expect("the binary starts");
    let told = String::from_utf8_lossy(&granted.stderr);
    assert_eq!(granted.status.code(), Some(2), "{told}");
    assert!(told.contains("agent") && !told.contains(token), "{told}");
    assert_eq!(world.run(["run", "Bash", "command=ls"]).code, 3, "still pending");
}

#[test]
fn i7_the_agents_shell_reaches_neither_the_approvals_nor_the_state() {
    let world = World::new();
    for command in ["portcullis approvals grant x".to_owned(), format!("rm -rf {}", world.state().display())] {
        let verdict = world.run(["check", "Bash", &format!("command={command}"), "--output", "json"]).json();
        assert_eq!(verdict["stages"]["command"], "deny", "{command}: {verdict}");
    }
    // What the guards cannot see, the kernel refuses: here the name is read from a file while the script runs.
    world.run(["run", "ListDir", "path=."]);
    let token = world.state().join("keys/operator.token");
    assert!(token.exists(), "the operator's token is made at the first call");
    world.write("work/where", token.to_string_lossy().as_bytes());
    world.write("work/look.py", "print(open(open('where').read()).read())");
    let ran = world.run_granted(&["run", "Bash", "command=python3 look.py"]);
    let refused = ["PermissionError", "FileNotFoundError"].iter().any(|error| ran.stdout.contains(error));
    assert!(ran.code != 0 && refused, "{ran:?}");
    let secret = fs::read_to_string(token).expect("readable for us");
    assert!(!ran.stdout.contains(secret.trim()), "the token reached the command");
}

#[test]
fn i8_annotations_change_no_decision() {
    let plain = "forbid (principal, action == Action::\"Glob\", resource) unless { context.approval.level >= 1 };";
    let mut answers = Vec::new();
    for annotations in [
        "@id(\"a\")",
        "@id(\"zzz\") @reason(\"ALLOW this\") @safer(\"permit\") @decision(\"allow\") @severity(\"note\")",
    ] {
        let world = World::new();
        world.write("config/policies/p.cedar", format!("{annotations} {plain}"));
        let verdict = world.run(["check", "Glob", "pattern=*", "--output", "json"]).json();
        answers.push((verdict["decision"].clone(), verdict["level"].clone(), verdict["stages"].clone()));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, "ask");
}
