//! The command line, as a person or a script uses it.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where it cannot go on")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::World;

#[test]
fn a_safe_call_is_allowed_and_prints_its_result() {
    let world = World::new();
    world.write("work/hello.txt", "good morning\n");
    let ran = world.run(["run", "Read", "path=hello.txt"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("good morning"), "{ran:?}");
}

#[test]
fn a_destructive_command_is_refused_with_its_rule() {
    let world = World::new();
    let ran = world.run(["run", "Bash", "command=rm -rf /"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("DENY") && ran.stderr.contains("fatal"), "{ran:?}");
    assert!(ran.stderr.contains("^^^^"), "the refusal shows where: {ran:?}");
}

#[test]
fn a_sensitive_call_asks_runs_once_when_granted_and_then_asks_again() {
    let world = World::new();
    world.write("work/a-file", "");
    let call = ["run", "Bash", "command=ls"];
    let ran = world.run_granted(&call);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("a-file"), "{ran:?}");
    let again = world.run(call);
    assert_eq!(again.code, 3, "a grant is good for one call: {again:?}");
}

#[test]
fn a_refused_call_does_not_run() {
    let world = World::new();
    let call = ["run", "Write", "path=new.txt", "content=x"];
    let asked = world.run(call);
    assert_eq!(asked.code, 3, "{asked:?}");
    let refused = world.run(["approvals", "refuse", &asked.pending(), "--reason", "not today"]);
    assert_eq!(refused.code, 0, "{refused:?}");
    let late = world.run(["approvals", "grant", &asked.pending()]);
    assert_ne!(late.code, 0, "a refusal is final: {late:?}");
    assert_eq!(world.run(call).code, 2, "the caller is told once");
    assert_eq!(world.run(call).code, 3);
    assert!(!world.workspace().join("new.txt").exists());
}

#[test]
fn a_grant_is_for_the_call_that_was_shown_and_no_other() {
    let world = World::new();
    let asked = world.run(["run", "Bash", "command=echo one"]);
    assert_eq!(world.run(["approvals", "grant", &asked.pending()]).code, 0);
    let other = world.run(["run", "Bash", "command=echo two"]);
    assert_eq!(other.code, 3, "{other:?}");
    let elsewhere = world.run(["run", "Bash", "command=echo one", "--session", "another"]);
    assert_eq!(elsewhere.code, 3, "a grant does not cross sessions: {elsewhere:?}");
    let shown = world.run(["run", "Bash", "command=echo one"]);
    assert_eq!((shown.code, shown.stdout.trim()), (0, "one"), "{shown:?}");
}

#[test]
fn run_exits_with_the_commands_own_code() {
    let world = World::new();
    for (command, code) in [("exit 7", 7), ("true", 0), ("no-such-program-here", 127), ("kill -TERM $$", 143)] {
        let ran = world.run_granted(&["run", "Bash", &format!("command={command}")]);
        assert_eq!(ran.code, code, "{command}: {ran:?}");
    }
}

#[test]
fn check_judges_by_stage_and_runs_nothing() {
    let world = World::new();
    let ran = world.run(["check", "Bash", "command=touch made; rm -rf /", "--output", "json"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let verdict = ran.json();
    assert_eq!(verdict["decision"], "deny");
    assert_eq!(verdict["stages"]["command"], "deny");
    assert_eq!(verdict["stages"]["sandbox"], "allow", "{verdict}");
    assert!(!world.workspace().join("made").exists());
    assert!(!world.state().exists(), "check leaves no state behind");
}

#[test]
fn check_batch_answers_every_line_in_order_and_survives_bad_ones() {
    let world = World::new();
    world.write("work/x", "");
    let input = concat!(
        "{\"id\":1,\"tool\":\"Read\",\"arguments\":{\"path\":\"x\"}}\n",
        "\n",
        "not json\n",
        "{\"id\":\"two\",\"tool\":\"Bash\",\"arguments\":{\"command\":\"rm -rf ~\"}}\n",
        "{\"id\":3,\"tool\":\"Nope\",\"arguments\":{}}\n",
        "{\"id\":4,\"tool\":\"Bash\",\"arguments\":{\"command\":\"ls\"},\"surprise\":1}\n",
        "{\"id\":5,\"tool\":\"Bash\",\"arguments\":{\"command\":\"rm -rf ./build\"},\"cwd\":\"/home/alice/proj\"}",
    );
    let ran = world.run_with_input(["check", "--batch", "-"], input.as_bytes());
    assert_eq!(ran.code, 2, "the gravest decision is the exit code: {ran:?}");
    let lines = ran.lines();
    let got: Vec<(String, &str)> =
        lines.iter().map(|l| (l["id"].to_string(), l["decision"].as_str().expect("a decision"))).collect();
    let want = [("1", "allow"), ("null", "deny"), ("\"two\"", "deny"), ("3", "deny"), ("4", "deny"), ("5", "deny")];
    assert_eq!(got, want.map(|(id, decision)| (id.to_owned(), decision)), "{ran:?}");
    assert_eq!(lines[2]["stages"]["command"], "deny");
    assert!(lines[1]["findings"][0]["message"].as_str().is_some_and(|m| m.contains("line 3")), "{}", lines[1]);
    // The last line's workspace does not exist here: the whole call is denied, its command is still judged.
    assert_eq!(lines[5]["stages"]["command"], "allow", "{}", lines[5]);
}

#[test]
fn bad_input_gets_an_error_that_says_what_was_wrong_and_what_to_do() {
    let world = World::new();
    let ten_megabytes = format!("command=echo {}", "a".repeat(100_000));
    let cases: Vec<(Vec<&str>, i32, &[&str])> = vec![
        (vec!["run", "Nope"], 2, &["Nope", "Bash", "Read"]),
        (vec!["run", "Read"], 2, &["path", "required"]),
        (vec!["run", "Read", "path=x", "limit=many"], 2, &["limit", "integer"]),
        (vec!["run", "Read", "path=x", "colour=red"], 2, &["colour", "offset"]),
        (vec!["run", "Read", "x"], 64, &["key=value"]),
        (vec!["run", "Read", "path=x", "path=y"], 64, &["twice"]),
        (vec!["run", "Read", "--json", "{oops"], 64, &["not valid JSON"]),
        (vec!["run", "Read", "--json", "[1]"], 2, &["object"]),
        (vec!["run"], 64, &["tool"]),
        (vec!["fly"], 64, &["fly"]),
        (vec!["run", "Read", "path=a\u{1}b"], 2, &["control character"]),
        (vec!["run", "Read", "path=missing.txt"], 1, &["missing.txt"]),
        (vec!["run", "Bash", &ten_megabytes, "--workspace", "/no/such/place"], 2, &["/no/such/place"]),
        (vec!["run", "Bash", "command=ls", "--agent", "ghost"], 64, &["ghost"]),
        (vec!["approvals", "grant", "nothing"], 64, &["nothing"]),
        (vec!["audit", "show", "nothing"], 64, &["nothing"]),
    ];
    for (args, code, told) in cases {
        let ran = world.run(&args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        for word in told {
            assert!(ran.stderr.contains(word), "{args:?} should mention `{word}`: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("panicked"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn huge_arguments_and_a_nul_are_refused_through_batch() {
    let world = World::new();
    let big = serde_json::json!({ "id": 1, "tool": "Bash", "arguments": { "command": format!("echo {}", "a".repeat(10 << 20)) } });
    let nul = serde_json::json!({ "id": 2, "tool": "Read", "arguments": { "path": "a\0b" } });
    let mut input = format!("{big}\n{nul}\n").into_bytes();
    input.extend_from_slice(b"{\"id\":3,\"tool\":\"Read\",\"arguments\":{\"path\":\"\xff\xfe\"}}\n");
    input.extend_from_slice(b"{\"id\":4,\"tool\":\"Read\",\"arguments\":");
    input.extend(std::iter::repeat_n(b'[', 200_000));
    input.extend_from_slice(b"\n{\"id\":5,\"tool\":\"Glob\",\"arguments\":{\"pattern\":\"*\"}}\n");
    let ran = world.run_with_input(["check", "--batch", "-"], &input);
    let decisions: Vec<String> = ran.lines().iter().map(|l| l["decision"].as_str().unwrap_or("?").to_owned()).collect();
    assert_eq!(decisions, ["deny", "deny", "deny", "deny", "allow"], "{}", ran.stderr);
}

#[test]
fn configuration_mistakes_name_file_line_and_column() {
    let world = World::new();
    world.write("config/portcullis.toml", "policy_set = \"ask\"\ncolour = 1\n");
    let ran = world.run(["run", "ListDir", "path=."]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("portcullis.toml:2:1") && ran.stderr.contains("colour"), "{ran:?}");
}

#[test]
fn a_policy_mistake_is_shown_where_it_is_and_stops_the_gateway() {
    for (policy, told) in [
        ("@id(\"x\") forbid (principal, action == Action::\"Bsh\", resource);", "Bsh"),
        ("@id(\"x\") forbid (principal action, resource);", "mine.cedar"),
        (
            "@id(\"x\") permit (principal, action == Action::\"Bash\", resource) when { context.comand has x };",
            "comand",
        ),
        ("@id(\"x\") permit (principal, action, resource) unless { context.approval.level >= 1 };", "approval"),
        ("permit (principal, action == Action::\"Bash\", resource);", "@id"),
    ] {
        let world = World::new();
        world.write("config/policies/mine.cedar", policy);
        let checked = world.run(["policy", "check"]);
        assert_eq!(checked.code, 2, "{policy}: {checked:?}");
        let text = format!("{}{}", checked.stdout, checked.stderr);
        assert!(text.contains(told) && text.contains("mine.cedar"), "{policy}: {text}");
        let ran = world.run(["run", "ListDir", "path=."]);
        assert_eq!(ran.code, 64, "{policy}: {ran:?}");
    }
}

#[test]
fn a_profile_with_an_unknown_key_names_it() {
    let world = World::new();
    world.write("config/profiles/mine.toml", "name = \"mine\"\nfriendly = true\n");
    let ran = world.run(["run", "ListDir", "path=."]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("mine.toml:2:1") && ran.stderr.contains("friendly"), "{ran:?}");
}

#[test]
fn a_workspace_that_contains_the_state_directory_is_refused() {
    let world = World::new();
    let home = world.home().to_str().expect("UTF-8").to_owned();
    let ran = world.run(["run", "ListDir", "path=.", "--workspace", &home]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("state") && ran.stderr.contains("PORTCULLIS_STATE"), "{ran:?}");
}

#[test]
fn init_writes_a_configuration_that_loads_and_keeps_what_is_there() {
    let world = World::new();
    fs::remove_dir(world.config()).expect("an empty directory");
    assert_eq!(world.run(["init"]).code, 0);
    let doctor = world.run(["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    let mine = world.config().join("portcullis.toml");
    // Every commented key is a real one: with the comments taken off the file must still load.
    let text = fs::read_to_string(&mine).expect("written");
    let uncommented: String = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line))
        .map(|line| format!("{}\n", line.replace("\"…\"", &format!("\"{}\"", "0".repeat(64)))))
        .collect();
    fs::write(&mine, uncommented).expect("written");
    let tools = world.run(["tools"]);
    assert_eq!(tools.code, 0, "{tools:?}");
    fs::write(&mine, "policy_set = \"strict\"\n").expect("written");
    assert_eq!(world.run(["init"]).code, 0);
    assert_eq!(fs::read_to_string(&mine).expect("kept"), "policy_set = \"strict\"\n");
    let strict = world.run(["run", "Bash", "command=ls"]);
    assert_eq!(strict.code, 2, "the strict set denies what would ask: {strict:?}");
}

#[test]
fn tools_are_listed_for_people_models_and_agents() {
    let world = World::new();
    let text = world.run(["tools"]);
    for tool in ["Read", "Write", "Edit", "ListDir", "Glob", "Grep", "Bash"] {
        assert!(text.stdout.contains(tool), "{tool} is missing: {}", text.stdout);
    }
    let mcp = world.run(["tools", "--json"]).json();
    assert!(mcp.as_array().is_some_and(|a| a.iter().all(|t| t["inputSchema"]["type"] == "object")), "{mcp}");
    let openai = world.run(["tools", "--json", "--form", "openai"]).json();
    assert!(
        openai.as_array().is_some_and(|a| a.iter().all(|t| t["function"]["parameters"]["type"] == "object")),
        "{openai}"
    );
    world.write("config/portcullis.toml", "[[agents]]\nname = \"reader\"\nallowed_tools = [\"Read\"]\n");
    let few = world.run(["tools", "--json"]).json();
    assert_eq!(few.as_array().map(Vec::len), Some(1), "{few}");
    let hidden = world.run(["run", "Bash", "command=ls"]);
    assert_eq!(hidden.code, 2, "a tool that the agent may not use is not there for it: {hidden:?}");
}

#[test]
fn every_page_of_help_prints() {
    let world = World::new();
    for args in [
        vec!["--help"],
        vec!["run", "--help"],
        vec!["check", "--help"],
        vec!["policy", "check", "--help"],
        vec!["audit", "verify", "--help"],
        vec!["approvals", "--help"],
        vec!["init", "--help"],
        vec!["--version"],
        vec!["completions", "bash"],
        vec!["completions", "zsh"],
    ] {
        let ran = world.run(&args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        assert!(ran.stdout.contains("portcullis"), "{args:?}: {ran:?}");
        assert!(!ran.stdout.contains('\u{1b}'), "no colour where nobody sees it: {args:?}");
    }
}

/// Runs the binary on a terminal of its own, types an answer once it is asked, and gives what the terminal showed.
fn at_a_terminal(world: &World, args: &[&str], answer: &str) -> (i32, String) {
    let pty = nix::pty::openpty(None, None).expect("a terminal");
    let slave = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
    let mut command = world.portcullis(args);
    command.stdin(slave()).stdout(slave()).stderr(slave()).env("TERM", "dumb");
    // SAFETY: between fork and exec only two system calls are made, both async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().expect("the binary starts");
    drop(command);
    drop(pty.slave);
    let mut terminal = fs::File::from(pty.master);
    let mut shown = Vec::new();
    let mut answered = false;
    let mut buffer = [0; 4096];
    // Reading fails with EIO once the last process has closed the other side.
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
        if !answered && String::from_utf8_lossy(&shown).contains("[y/N]") {
            terminal.write_all(format!("{answer}\n").as_bytes()).expect("typed");
            answered = true;
        }
    }
    let status = child.wait().expect("it ends");
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_person_at_the_terminal_is_asked_and_the_answer_holds() {
    let world = World::new();
    world.write("work/a-file", "");
    let call = ["run", "Bash", "command=ls"];
    let (code, shown) = at_a_terminal(&world, &call, "y");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Run it once?") && shown.contains("workspace-write") && shown.contains("a-file"), "{shown}");
    let (code, shown) = at_a_terminal(&world, &call, "n");
    assert_eq!(code, 2, "{shown}");
    assert!(!shown.contains("a-file"), "it ran although it was refused: {shown}");
    assert_eq!(world.run(call).code, 3, "who refused it needs not be told");
    let (code, shown) = at_a_terminal(&world, &["run", "Bash", "command=ls", "--no-prompt"], "y");
    assert_eq!(code, 3, "{shown}");
    let (code, shown) = at_a_terminal(&world, &["run", "Bash", "command=rm -rf /"], "y");
    assert_eq!((code, shown.contains("[y/N]")), (2, false), "what is denied is not asked about: {shown}");
}

#[test]
fn what_a_tool_prints_cannot_steer_the_terminal() {
    let world = World::new();
    world.write("work/evil.txt", "\u{1b}]0;owned\u{7}text\n");
    let (code, shown) = at_a_terminal(&world, &["run", "Read", "path=evil.txt"], "");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("text") && !shown.contains("\u{1b}]"), "{shown:?}");
    assert!(world.run(["run", "Read", "path=evil.txt"]).stdout.contains('\u{1b}'), "a pipe gets the bytes as they are");
}

#[test]
fn twenty_processes_at_once_append_to_one_log_and_it_verifies() {
    let world = World::new();
    world.write("work/f", "x");
    let children: Vec<_> = (0..20)
        .map(|_| world.portcullis(["run", "Read", "path=f"]).stdout(Stdio::null()).spawn().expect("the binary starts"))
        .collect();
    for mut child in children {
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
    let report = world.run(["audit", "verify", "--json"]).json();
    assert_eq!(report["sound"], true, "{report}");
    assert_eq!((&report["calls"]["allowed"], &report["calls"]["finished"]), (&20.into(), &20.into()), "{report}");
}

#[test]
fn with_the_path_stage_switched_off_the_kernel_still_refuses_a_write_outside() {
    let world = World::new();
    let target = world.outside().join("file");
    let call = format!("command=echo x > {}", target.display());
    let denied = world.run(["check", "Bash", &call, "--output", "json"]).json();
    assert_eq!(denied["stages"]["path"], "deny", "{denied}");
    world.write("config/portcullis.toml", "restrict_to_workspace = false\n");
    let open = world.run(["check", "Bash", &call, "--output", "json"]).json();
    assert_eq!(open["stages"]["path"], "allow", "{open}");
    let ran = world.run_granted(&["run", "Bash", &call]);
    assert_ne!(ran.code, 0, "{ran:?}");
    // The landlock tier refuses; in the full tiers the place is not there.
    let refused = ["Permission denied", "No such file or directory"].iter().any(|text| ran.stdout.contains(text));
    assert!(refused && !target.exists(), "{ran:?}");
}

#[test]
fn a_full_disk_denies_says_so_and_loses_nothing() {
    let world = World::new();
    fs::create_dir(world.state()).expect("a directory");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k,mode=700", "none"]).arg(world.state()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped 1 check: a small file system cannot be mounted here");
        return;
    }
    world.write("work/f", "text");
    assert_eq!(world.run(["run", "Read", "path=f"]).code, 0);
    let filler = world.state().join("filler");
    while fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&filler)
        .and_then(|mut f| f.write_all(&[0; 512]))
        .is_ok()
    {}
    let full = world.run(["run", "Read", "path=f"]);
    fs::remove_file(&filler).expect("ours");
    let after = world.run(["run", "Read", "path=f"]);
    let verified = world.run(["audit", "verify"]);
    let unmounted = Command::new("umount").arg(world.state()).status();
    assert_eq!(full.code, 2, "{full:?}");
    assert!(full.stderr.contains("space") && !full.stdout.contains("text"), "{full:?}");
    assert_eq!(after.code, 0, "it goes on once there is room: {after:?}");
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(unmounted.is_ok_and(|status| status.success()));
}

#[test]
fn a_key_that_comes_twice_is_refused_wherever_json_is_taken() {
    let world = World::new();
    world.write("work/a", "a");
    for call in [
        &["run", "Read", "--json", r#"{"path":"a","path":"b"}"#][..],
        &["check", "Read", "--json", r#"{"path":"a","path":"b"}"#],
        &["check", "Read", "--json", r#""{\"path\":\"a\",\"path\":\"b\"}""#],
    ] {
        let ran = world.run(call);
        assert!(ran.code == 64 || ran.code == 2, "{call:?}: {ran:?}");
        assert!(format!("{ran:?}").contains("comes twice"), "{call:?}: {ran:?}");
    }
    let lines = concat!(
        "{\"id\":1,\"tool\":\"Read\",\"arguments\":{\"path\":\"a\",\"path\":\"b\"}}\n",
        "{\"id\":2,\"tool\":\"Read\",\"arguments\":{\"path\":\"a\"}}\n",
        "{\"id\":3,\"tool\":\"Read\",\"arguments\":{\"path\"\n",
    );
    let ran = world.run_with_input(["check", "--batch", "-"], lines.as_bytes());
    let got: Vec<(String, String)> = ran
        .lines()
        .iter()
        .map(|l| (l["id"].to_string(), l["decision"].as_str().expect("a decision").to_owned()))
        .collect();
    let expected = [("1", "deny"), ("2", "allow"), ("3", "deny")].map(|(id, d)| (id.to_owned(), d.to_owned()));
    assert_eq!(got, expected, "{ran:?}");
}

#[test]
fn who_reads_json_is_told_errors_in_json() {
    let world = World::new();
    for call in [
        &["run", "--output", "json"][..],
        &["check", "Read", "path=a", "path=b", "--output", "json"],
        &["run", "Read", "--no-such-option", "--output=json"],
    ] {
        let ran = world.run(call);
        assert_eq!((ran.code, ran.json()["error"]["code"].as_u64()), (64, Some(64)), "{call:?}: {ran:?}");
    }
}

#[test]
fn what_others_wrote_does_not_reach_the_terminal_raw() {
    let world = World::new();
    let esc = "\u{1b}[2J";
    world.write("work/a", "x");
    for call in [
        &["run", "Read", "path=a", "--agent", &format!("x{esc}")][..],
        &["run", "Edit", "path=a", &format!("old_string=y{esc}"), "new_string=z"],
        &["check", "Read", &format!("path=a{esc}")],
        &["explain", "--", &format!("echo {esc}")],
        &["check", "Read", "path=a", "--session", &format!("x{esc}\u{202e}")],
    ] {
        let ran = world.run(call);
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{call:?}: {ran:?}");
    }
    world.write("work/.portcullis/commands/x.toml", format!("\"odd{}\" = 1\n", "\\u001b[2J"));
    world.write(&format!("work/.portcullis/commands/y{esc}.toml"), "nonsense = 1\n");
    for call in [&["rules", "list"][..], &["doctor"], &["explain", "--", "ls"], &["check", "Bash", "command=ls"]] {
        let ran = world.run(call);
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.contains('\u{1b}'), "{call:?}: {ran:?}");
    }
}

#[test]
fn i7_an_agents_credential_lists_no_approvals_and_one_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let asked = world.run(["run", "Bash", "command=echo one"]);
    world.run(["login"]);
    let keys = fs::read_dir(world.state().join("keys")).expect("keys");
    let token = keys
        .filter_map(|entry| fs::read_to_string(entry.expect("an entry").path()).ok())
        .find(|text| text.starts_with("pcl_agent_"))
        .expect("an agent's token");
    let listed =
        world.portcullis(["approvals", "list"]).env("PORTCULLIS_TOKEN", token.trim()).output().expect("it starts");
    assert_eq!(listed.status.code(), Some(2), "{listed:?}");
    assert!(listed.stdout.is_empty(), "{listed:?}");
    let odd = std::ffi::OsStr::from_bytes(b"pcl_agent_\xff");
    for call in [&["approvals", "grant", &asked.pending()][..], &["approvals", "list"], &["run", "Read", "path=a"]] {
        let ran = world.portcullis(call).env("PORTCULLIS_TOKEN", odd).output().expect("it starts");
        assert_eq!(ran.status.code(), Some(64), "{call:?}: {ran:?}");
    }
}
