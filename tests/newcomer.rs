//! What somebody is told who uses it for the first time, and makes the mistakes that everybody makes.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops where it cannot go on")]

mod common;
mod served;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{Ran, World};
use served::Served;

/// The output holds all of these.
fn tells(ran: &Ran, parts: &[&str]) {
    let text = format!("{}{}", ran.stdout, ran.stderr);
    // A long line is broken where the directory's name happens to end it.
    let unbroken = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(text.contains(part) || unbroken.contains(part), "`{part}` is missing: {ran:?}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_workspace_does_not_follow_the_working_directory() {
    let world = World::new();
    world.write("outside/e", "secret\n");
    world.write("work/sub/a.txt", "text\n");
    world.write("work/file", "");
    let outside = world.outside();
    for tool in [["Read", "path=e"], ["Bash", "command=ls"]] {
        for command in ["run", "check"] {
            for cwd in [text(&outside), "../outside", "/etc"] {
                let ran = world.run([command, tool[0], tool[1], "--cwd", cwd]);
                assert_eq!(ran.code, 2, "{command} {tool:?} in {cwd}: {ran:?}");
                tells(&ran, &["call.cwd", "--workspace", "is outside of the workspace"]);
                assert!(!ran.stdout.contains("secret"), "{ran:?}");
            }
        }
    }
    // One that is not there is refused before anybody is asked.
    for (cwd, why) in [("nodir", "is not there"), ("file", "is no directory")] {
        let ran = world.run(["check", "Bash", "command=ls", "--cwd", cwd]);
        assert_eq!(ran.code, 2, "{ran:?}");
        tells(&ran, &["call.cwd", why]);
    }
    let own = world.run(["check", "Bash", "--json", r#"{"command":"ls","cwd":"nodir"}"#]);
    assert_eq!(own.code, 2, "the tool's own argument likewise: {own:?}");
    for good in ["sub", text(&world.workspace().join("sub")), "."] {
        assert_eq!(world.run(["check", "Bash", "command=ls", "--cwd", good]).code, 3, "{good}");
    }
    assert_eq!(world.run(["run", "Read", "path=a.txt", "--cwd", "sub"]).code, 0);
    // Outside, what exists and what does not look alike.
    let [there, not] = ["/etc", "/no/such"].map(|cwd| world.run(["check", "Bash", "command=ls", "--cwd", cwd]));
    assert_eq!(there.stdout.replace("/etc", "X"), not.stdout.replace("/no/such", "X"));
    // An extra root is a place to start in; a line of a batch may name its own workspace, where none was chosen.
    world.write("config/portcullis.toml", format!("write_roots = [\"{}\"]\n", outside.display()));
    assert_eq!(world.run(["check", "Bash", "command=ls", "--cwd", text(&outside)]).code, 3);
    fs::remove_file(world.config().join("portcullis.toml")).expect("removed");
    let line = format!("{{\"tool\":\"Read\",\"arguments\":{{\"path\":\"e\"}},\"cwd\":\"{}\"}}\n", outside.display());
    assert_eq!(world.run_with_input(["check", "--batch", "-"], line.as_bytes()).code, 0);
    let chosen = world.run_with_input(["check", "--batch", "-", "--workspace", "."], line.as_bytes());
    assert_eq!(chosen.code, 2, "{chosen:?}");
}

#[test]
fn policy_check_and_doctor_know_the_projects_policies() {
    let world = World::new();
    let before = world.run(["doctor", "--json"]).json()["rules"]["policies"].as_u64().expect("a number");
    world.write(
        "work/.portcullis/policies/a.cedar",
        "@id(\"a\") forbid (principal, action == Action::\"Edit\", resource);",
    );
    let sound = world.run(["policy", "check", "--json"]);
    assert_eq!(sound.code, 0, "{sound:?}");
    assert_eq!(sound.json()["summary"]["policies"], before + 1);
    assert_eq!(world.run(["doctor", "--json"]).json()["rules"]["policies"], before + 1);
    world.write("work/.portcullis/policies/b.cedar", "@id(\"b\") permit (principal, action, resource);");
    let checked = world.run(["policy", "check"]);
    assert_eq!(checked.code, 2, "{checked:?}");
    tells(&checked, &["may only tighten", "b.cedar", "1 problem\n"]);
    let elsewhere = world.run(["policy", "check", "--workspace", text(&world.outside())]);
    assert_eq!(elsewhere.code, 0, "{elsewhere:?}");
}

#[test]
fn doctor_reports_what_is_broken_with_all_the_rest() {
    let broken = [
        ("config/portcullis.toml", "policy_set = \n", "portcullis.toml:1:14"),
        ("config/profiles/mine.toml", "name = \n", "mine.toml:1:"),
        ("config/policies/mine.cedar", "@id(\"x\") forbid (principal action, resource);", "mine.cedar"),
        ("config/commands/mine.toml", "[[rule]\n", "mine.toml"),
        ("work/.portcullis.toml", "restrict_to_workspace = false\n", "only tighten"),
    ];
    let all = World::new();
    for (file, content, told) in broken {
        let world = World::new();
        for world in [&world, &all] {
            world.write(file, content);
        }
        let ran = world.run(["doctor"]);
        assert_eq!(ran.code, 2, "{file}: {ran:?}");
        tells(&ran, &["PROBLEM", told, "Landlock", "state"]);
        let json = world.run(["doctor", "--json"]);
        assert!(json.code == 2 && !json.json()["problems"].as_array().expect("a list").is_empty(), "{json:?}");
    }
    let ran = all.run(["doctor"]);
    for (file, _, told) in &broken[..4] {
        assert!(ran.stdout.contains(told), "{file} is not among the problems: {}", ran.stdout);
    }
    let world = World::new();
    let ran = world.run(["doctor", "--workspace", text(world.home())]);
    assert_eq!(ran.code, 2, "{ran:?}");
    tells(&ran, &["PROBLEM", "contains the gateway's"]);
    let ran = world.run(["doctor", "--agent", "ghost"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    tells(&ran, &["PROBLEM", "ghost", "Landlock"]);
}

#[test]
fn doctor_finds_what_loads_and_does_not_work() {
    let world = World::new();
    let configured = |text: &str| {
        world.write("config/portcullis.toml", text);
        let ran = world.run(["doctor"]);
        assert_eq!(ran.code, 2, "{text}: {ran:?}");
        ran
    };
    tells(
        &configured("[[agents]]\nname = \"a\"\nallowed_tools = [\"Reed\", \"Read\"]\n"),
        &["`Reed`", "did you mean `Read`"],
    );
    tells(&configured("[[agents]]\nname = \"a\"\nprofile = \"narrow\"\n"), &["agent `a`", "narrow", "workspace-write"]);
    let holding = format!("[[agents]]\nname = \"a\"\nworkspace = \"{}\"\n", world.home().display());
    tells(&configured(&holding), &["agent `a`", "contains the gateway's"]);
    for root in ["/", text(world.home())] {
        tells(&configured(&format!("write_roots = [\"{root}\"]\n")), &["PROBLEM", "extra root"]);
        let ran = world.run(["check", "Write", "path=/etc/x", "content=x"]);
        assert_eq!(ran.code, 64, "{ran:?}");
        tells(&ran, &["extra root"]);
    }
    tells(&configured(&format!("read_roots = [\"{}\"]\n", world.home().display())), &["no command can be confined"]);
    fs::write(world.config().join("portcullis.toml"), "").expect("written");
    assert_eq!(world.run(["doctor"]).code, 0);
    for (what, mode) in [("portcullis.toml", 0o666), ("", 0o777)] {
        let path = world.config().join(what);
        let before = fs::metadata(&path).expect("there").permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
        let ran = world.run(["doctor"]);
        assert_eq!(ran.code, 2, "{what}: {ran:?}");
        tells(&ran, &["PROBLEM", "portcullis.toml"]);
        fs::set_permissions(&path, before).expect("changed");
    }
    let missing = world.portcullis(["doctor"]).env("PORTCULLIS_CONFIG", "/nonexistent").output().expect("it starts");
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(String::from_utf8_lossy(&missing.stdout).contains("PORTCULLIS_CONFIG names /nonexistent"), "{missing:?}");
}

#[test]
fn the_plan_that_is_shown_has_the_extra_roots() {
    let world = World::new();
    let outside = world.outside();
    world.write("config/portcullis.toml", format!("write_roots = [\"{}\"]\n", outside.display()));
    tells(&world.run(["sandbox", "plan"]), &[text(&outside)]);
    let made = outside.join("made");
    let ran = world.run(["sandbox", "exec", "--", "touch", text(&made)]);
    assert!(ran.code == 0 && made.exists(), "{ran:?}");
}

#[test]
fn the_daemon_does_not_start_where_every_call_would_be_refused() {
    let world = World::new();
    let refused = world.run(["serve", "--listen", "127.0.0.1:0", "--workspace", text(world.home())]);
    assert_eq!(refused.code, 64, "{refused:?}");
    tells(&refused, &["contains the gateway's"]);
}

#[test]
fn a_daemon_with_older_rules_says_so() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let _served = Served::start(&world);
    let told = |ran: &Ran| ran.stderr.contains("configuration was changed and cannot be used");
    assert!(!told(&world.run(["run", "Read", "path=a.txt"])));
    world.write("config/policies/mine.cedar", "nonsense");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let ran = loop {
        let ran = world.run(["run", "Read", "path=a.txt"]);
        if told(&ran) || std::time::Instant::now() > until {
            break ran;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(told(&ran) && ran.code == 0 && ran.stdout.contains("text"), "{ran:?}");
    tells(&world.run(["check", "Read", "path=a.txt"]), &["rules.stale"]);
    let doctor = world.run(["doctor"]);
    assert_eq!(doctor.code, 2, "{doctor:?}");
    tells(&doctor, &["PROBLEM", "mine.cedar", "keeps the rules that it loaded last"]);
}

#[test]
fn a_refusal_reaches_the_caller_once_with_its_reason() {
    let world = World::new();
    let call = ["run", "Bash", "command=ls"];
    let asked = world.run(call);
    assert_eq!(world.run(["approvals", "refuse", &asked.pending(), "--reason", "not today"]).code, 0);
    let other = world.run(["run", "Bash", "command=ls", "--session", "another"]);
    assert_eq!(other.code, 3, "a refusal is for the session that asked: {other:?}");
    let told = world.run(call);
    assert_eq!(told.code, 2, "{told:?}");
    tells(&told, &["approval.refused", "not today"]);
    let anew = world.run(call);
    assert_eq!(anew.code, 3, "once: {anew:?}");
    assert_ne!(anew.pending(), asked.pending());
    let log = fs::read_to_string(world.log()).expect("a log");
    assert!(log.lines().any(|line| line.contains("\"approval.refused\"")), "it is on record");
    // How long it is remembered is how long the request would have waited.
    world.write("config/portcullis.toml", "[approval]\npending = \"1s\"\n");
    let asked = world.run(["run", "Bash", "command=ls -l"]);
    assert_eq!(world.run(["approvals", "refuse", &asked.pending()]).code, 0);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(world.run(["run", "Bash", "command=ls -l"]).code, 3);
}

#[test]
fn what_an_altered_record_moves_is_not_called_missing() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    for _ in 0..4 {
        assert_eq!(world.run(["run", "Read", "path=a.txt"]).code, 0);
    }
    let whole = fs::read_to_string(world.log()).expect("a log");
    let lines: Vec<&str> = whole.lines().collect();
    let decided = lines.iter().enumerate().filter(|(_, line)| line.contains("\"a.txt\""));
    let (at, record) = decided.map(|(at, line)| (at, *line)).nth(1).expect("four calls");
    for other in ["\"text2\"", "\"a\"", ""] {
        let altered = record.replacen("\"a.txt\"", if other.is_empty() { "\"b.txt\"" } else { other }, 1);
        assert_ne!(altered, record);
        let mut changed = lines.clone();
        changed[at] = &altered;
        fs::write(world.log(), changed.join("\n") + "\n").expect("written");
        let ran = world.run(["audit", "verify"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        let broken = ran.stdout.lines().filter(|line| line.contains("BROKEN")).count();
        assert!(broken == 1 && ran.stdout.contains(&format!("line {}", at + 2)), "one record was altered: {ran:?}");
    }
    // What is missing at the end is still told.
    fs::write(world.log(), lines[..lines.len() - 1].join("\n") + "\n").expect("written");
    tells(&world.run(["audit", "verify"]), &["BROKEN", "missing"]);
}

#[test]
fn places_that_cannot_be_used_are_named_with_the_remedy() {
    let world = World::new();
    let with = |set: &[(&str, &str)]| {
        let mut command = world.portcullis(["run", "Read", "path=x"]);
        for name in ["HOME", "PORTCULLIS_CONFIG", "PORTCULLIS_STATE"] {
            command.env_remove(name);
        }
        command.envs(set.iter().copied());
        let output = command.output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = with(&[]);
    assert!(code == Some(64) && told.contains("PORTCULLIS_CONFIG and PORTCULLIS_STATE"), "{told}");
    let config = world.config();
    let (code, told) = with(&[("PORTCULLIS_CONFIG", text(&config))]);
    assert!(code == Some(64) && told.contains("set it, or PORTCULLIS_STATE") && !told.contains("CONFIG"), "{told}");
    let home = world.home().join("no/such/home");
    let (code, told) = with(&[("HOME", text(&home))]);
    assert!(code == Some(64) && told.contains("which is not there") && told.contains(text(&home)), "{told}");
    assert!(!world.home().join("no").exists(), "the home directory was made");
    let file = world.write("work/file", "");
    let ran = world.run(["run", "Read", "path=x", "--workspace", text(&file)]);
    assert_eq!(ran.code, 2, "{ran:?}");
    tells(&ran, &["call.workspace", "is not a directory"]);
}

#[test]
fn mistakes_in_values_are_told_in_words_and_with_their_place() {
    let world = World::new();
    for (text, place, told) in [
        ("[approval]\npending = \"10\"\n", "portcullis.toml:2:11", "10m"),
        ("[approval]\ngrant = \"-5m\"\n", "portcullis.toml:2:9", "10m"),
        ("[[operators]]\nname = \"me\"\ntoken_sha256 = \"…\"\n", "portcullis.toml:3:16", "sha256sum"),
        ("[[agents]]\nname = \"a\"\ntoken_sha256 = \"abc\"\n", "portcullis.toml:3:16", "64 hexadecimal digits"),
        ("\nread_roots = [\"rel\"]\n", "portcullis.toml:2:14", "`rel` is no absolute path"),
        ("write_roots = [\"~/x\"]\n", "portcullis.toml:1:15", "`~` is not put in"),
        ("[[agents]]\nname = \"a\"\nworkspace = \"w\"\n", "portcullis.toml:3:13", "`w` is no absolute path"),
    ] {
        world.write("config/portcullis.toml", text);
        let ran = world.run(["tools"]);
        assert_eq!(ran.code, 64, "{text}: {ran:?}");
        tells(&ran, &[place, told]);
    }
}

#[test]
fn a_name_that_is_not_there_is_met_with_what_may_be_meant() {
    let world = World::new();
    for (written, meant) in [("bash", "Bash"), ("Bahs", "Bash"), ("shell", "Bash"), ("raed", "Read")] {
        tells(&world.run(["run", written]), &["call.unknown-tool", &format!("did you mean `{meant}`?")]);
    }
    let ran = world.run(["run", "Nope"]);
    assert!(!ran.stderr.contains("did you mean"), "{ran:?}");
    let ran = world.run(["rules", "show", "fs.delete-rot"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    tells(&ran, &["did you mean fs.delete-root", ": `portcullis rules list`"]);
    world.write("config/portcullis.toml", "[[agents]]\nname = \"a\"\nallowed_tools = [\"Read\"]\n");
    let ran = world.run(["run", "terminal", "command=ls"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    tells(&ran, &["call.not-allowed", "`Bash`", "agent `a`", "Read"]);
    world.write("config/portcullis.toml", "[[agents]]\nname = \"a\"\nallowed_tools = [\"Reed\"]\n");
    tells(&world.run(["run", "Nope"]), &["the tools are none"]);
}

#[test]
fn lists_without_an_entry_say_so() {
    let world = World::new();
    let ran = world.run(["rules", "list", "--pack", "zzz"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    tells(&ran, &["zzz", "filesystem"]);
    let ran = world.run(["rules", "list", "--severity", "review", "--pack", "gateway"]);
    tells(&ran, &["there is no such rule"]);
    let empty = world.write("work/empty.toml", "");
    let ran = world.run(["rules", "test", text(&empty)]);
    assert!(!ran.stdout.contains("every example holds"), "{ran:?}");
}

#[test]
fn what_is_passed_over_in_silence_elsewhere_is_warned_of() {
    let world = World::new();
    let checked = |policy: &str| {
        world.write("config/policies/mine.cedar", policy);
        let ran = world.run(["policy", "check"]);
        assert_eq!(ran.code, 0, "a warning stops nothing: {ran:?}");
        ran
    };
    let typo = "@id(\"x\") @reasn(\"why\") forbid (principal, action == Action::\"Edit\", resource);";
    tells(&checked(typo), &["@reasn", "did you mean `@reason`"]);
    let slash = "@id(\"x\") forbid (principal, action == Action::\"Edit\", resource in Directory::\"/src/secrets\");";
    tells(&checked(slash), &["/src/secrets", "never matches"]);
    let fine = "@id(\"x\") @author(\"me\") forbid (principal, action == Action::\"Edit\", resource in Directory::\"src/secrets\");";
    let ran = checked(fine);
    assert!(ran.stderr.is_empty(), "{ran:?}");
    world.write("config/policies/sub/other.cedar", typo);
    world.write("config/policies/shadow/watched.cedar", typo);
    let network = include_str!("../sandbox-profiles/network.toml");
    world.write("config/profiles/mine.toml", network);
    world.write("work/.portcullis.toml", "profile = \"network\"\n");
    let doctor = world.run(["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    tells(&doctor, &["policies/sub is not read", "allows nothing less than `workspace-write`"]);
    assert!(!doctor.stdout.contains("shadow is not read") && !doctor.stdout.contains("in the place of"), "{doctor:?}");
    world.write("config/profiles/mine.toml", "name = \"network\"\nextends = \"read-only\"\n");
    tells(&world.run(["doctor"]), &["WARNING  a profile `network`", "in the place of the one that the gateway brings"]);
}

#[test]
fn a_profile_of_ones_own_is_told_all_that_it_lacks() {
    let world = World::new();
    world.write("config/profiles/mine.toml", "name = \"mine\"\n[filesystem]\nwrite = []\n");
    let ran = world.run(["sandbox", "check"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    tells(
        &ran,
        &["`description`", "`requires`", "`network`", "`limits`", "extends = \"workspace-write\"", "mine.toml"],
    );
}

#[test]
fn small_things_are_said_as_a_person_would_say_them() {
    let world = World::new();
    let missing = world.run(["run", "Read", "path=missing.txt"]);
    assert!(!missing.stderr.contains("Analyze the error"), "that is for models: {missing:?}");
    assert_eq!(world.run(["help", "--help"]).code, 0);
    let ran = world.run(["sandbox", "exec", "--", "no-such-program"]);
    assert_eq!(ran.code, 127, "{ran:?}");
    tells(&ran, &["no-such-program"]);
    let ran = world.run(["check", "Bash", "command=ls", "--workspace", "/no/such/place"]);
    assert!(!ran.stdout.contains("ENOENT"), "{ran:?}");
    let ran = world.run(["check", "Bash", "command=ls"]);
    tells(&ran, &["by agent local (mode default) in session cli"]);
    let ran = world.run(["check", "Bash", "command=cat /etc/hostname"]);
    tells(&ran, &["path.left-to-sandbox"]);
    assert!(!world.run(["check", "Bash", "command=ls > /dev/null"]).stdout.contains("path.left-to-sandbox"));
    tells(&world.run(["check", "Bash", "command=rm -rf /"]), &["for example:"]);
    tells(&world.run(["login"]), &["sha256sum", "token_sha256"]);
    tells(&world.run(["--help"]), &["--output json"]);
    for listen in ["0", "localhost:0", "127.0.0.1:0"] {
        let ran = world.run(["serve", "--listen", listen, "--workspace", "/no/such"]);
        assert!(!ran.stderr.contains("--listen"), "{listen}: {ran:?}");
    }
    let ran = world.run(["serve", "--listen", "somewhere"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    tells(&ran, &["127.0.0.1:8460"]);
    let ran = world.run(["explain", "rm -rf /"]);
    assert_eq!(ran.code, 2, "without `--`: {ran:?}");
    let ran = world.run(["rules", "test", "--json", "--", "rm -rf /"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.json()["findings"][0]["span"].is_array(), "a place is written alike everywhere: {ran:?}");
}
