//! The command guard's rules as users meet them: scripts on disk, packs of their own, exceptions, limits.

#![expect(clippy::expect_used, reason = "a test stops where it cannot go on")]

mod common;

use common::{Ran, World};
use serde_json::Value;

const PACK: &str = "[[rule]]\nid = \"mine.deploy\"\nseverity = \"deny\"\nreason = \"deploys are made by the pipeline\"\n\
    references = [\"https://example.test/deploys\"]\nprogram = [\"deploy\"]\nsubcommand = [\"prod\"]\nmatch = [\"deploy prod\"]\nnot_match = [\"deploy staging\"]\n";

fn check(world: &World, command: &str) -> Value {
    world.run(["check", "Bash", &format!("command={command}"), "--output", "json"]).json()
}

fn has(judged: &Value, id: &str) -> bool {
    judged["findings"].as_array().expect("findings").iter().any(|finding| finding["id"] == id)
}

/// The last record of this kind.
fn last(world: &World, kind: &str) -> Value {
    let log = std::fs::read_to_string(world.log()).expect("a log");
    let mut records = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    records.rfind(|record| record["kind"] == kind).expect("a record")
}

#[test]
fn scripts_of_the_workspace_are_judged() {
    let world = World::new();
    world.write("work/bad.sh", "#!/bin/sh\nrm -rf /\n");
    world.write("work/package.json", "{\"scripts\": {\"nuke\": \"rm -rf ~\", \"build\": \"true\"}}");
    world.write("work/good.py", "print('hello')\n");
    world.write("outside/bad.sh", "rm -rf /\n");
    for command in ["bash bad.sh", "./bad.sh", "source bad.sh", "npm run nuke"] {
        assert_eq!(check(&world, command)["decision"], "deny", "{command}");
    }
    for command in ["npm run build", "python3 good.py", "cat bad.sh"] {
        assert_eq!(check(&world, command)["stages"]["command"], "allow", "{command}");
    }
    let outside = check(&world, "bash ../outside/bad.sh");
    assert_eq!(outside["stages"]["command"], "allow", "what lies outside is not read: {outside}");
}

#[test]
fn i4_a_script_that_changed_after_it_was_approved_asks_again() {
    let world = World::new();
    let script = world.write("work/x.sh", "echo one\n");
    let call = ["run", "Bash", "command=bash x.sh", "--no-prompt"];
    let asked = world.run(call);
    assert_eq!(asked.code, 3, "{asked:?}");
    assert_eq!(world.run(["approvals", "grant", &asked.pending()]).code, 0);
    std::fs::write(&script, "echo two\n").expect("a file");
    let again = world.run(call);
    assert_eq!(again.code, 3, "{again:?}");
    std::fs::write(&script, "echo one\n").expect("a file");
    let ran = world.run(call);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "one"), "{ran:?}");
    let scripts = &last(&world, "decided")["facts"]["command"]["scripts"];
    assert!(
        scripts[0]["path"].as_str().is_some_and(|path| path.ends_with("/x.sh")) && scripts[0]["digest"].is_string()
    );
}

#[test]
fn what_the_agent_wrote_itself_is_marked() {
    let world = World::new();
    world.write("work/theirs.sh", "eval \"$CODE\"\n");
    assert_eq!(world.run_granted(&["run", "Write", "path=own.sh", "content=eval \"$CODE\""]).code, 0);
    assert_eq!(world.run_granted(&["run", "Write", "path=own", "content=#!/usr/bin/env unheard-of"]).code, 0);
    assert_eq!(check(&world, "bash theirs.sh")["stages"]["command"], "allow");
    assert!(has(&check(&world, "bash own.sh"), "remote.run-unknown"));
    assert!(has(&check(&world, "./own"), "command.runs-what-it-wrote"));
}

#[test]
fn rules_are_listed_and_shown() {
    let world = World::new();
    world.write("config/commands/mine.toml", PACK);
    let listed = world.run(["rules", "list"]);
    assert!(listed.code == 0 && listed.stdout.contains("fs.delete-root") && listed.stdout.contains("mine.deploy"));
    let mine = world.run(["rules", "list", "--json", "--pack", "mine.toml"]).json();
    assert_eq!((mine.as_array().map(Vec::len), &mine[0]["severity"]), (Some(1), &Value::from("deny")));
    let shown = world.run(["rules", "show", "mine.deploy"]);
    for part in ["mine.deploy  deny", "mine.toml:2", "https://example.test/deploys", "deploy staging", "subcommand"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let unknown = world.run(["rules", "show", "mine"]);
    assert!(unknown.code == 64 && unknown.stderr.contains("did you mean mine.deploy"), "{unknown:?}");
    assert_eq!(check(&world, "deploy prod")["decision"], "deny");
    assert_ne!(check(&world, "deploy staging")["decision"], "deny");
}

#[test]
fn rules_test_judges_commands_and_packs() {
    let world = World::new();
    world.write("work/bad.sh", "rm -rf /\n");
    let judged = world.run_with_input(["rules", "test", "-"], b"bash < bad.sh\n");
    assert_eq!(judged.code, 2, "{judged:?}");
    let judged = world.run_with_input(["rules", "test", "-"], b"ls\n\"rm -rf /\"\nsudo ls\n");
    let lines: Vec<&str> = judged.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!((judged.code, lines.len()), (2, 3), "{judged:?}");
    assert!(lines[0].starts_with("ALLOW") && lines[1].starts_with("DENY") && lines[2].starts_with("ASK"), "{judged:?}");
    let pack = world.write(
        "outside/p.toml",
        PACK.replace("\"deploy prod\"", "\"deploy prod\", \"ship it\"").replace("deploy staging", "deploy prod -x"),
    );
    let told = world.run(["rules", "test", &pack.to_string_lossy()]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.stdout.contains("p.toml:8:25: rule `mine.deploy`: the example `ship it` of `match` is not found"),
        "{told:?}"
    );
    assert!(
        told.stdout.contains("p.toml:9:14: rule `mine.deploy`: the example `deploy prod -x` of `not_match` is found"),
        "{told:?}"
    );
    let second = PACK.replace("mine.deploy", "mine.second");
    let pack = world.write("outside/q.toml", format!("{PACK}{second}"));
    let told: Ran = world.run(["rules", "test", &pack.to_string_lossy(), "--json"]);
    let report = told.json();
    assert!(told.code == 0 && report["sound"] == true, "{told:?}");
    assert!(report["warnings"][0]["message"].as_str().is_some_and(|m| m.contains("shadowed")), "{told:?}");
}

#[test]
fn a_workspace_s_packs_only_add_or_raise() {
    let world = World::new();
    world.write("work/.portcullis/commands/more.toml", PACK);
    assert_eq!(check(&world, "deploy prod")["decision"], "deny");
    world.write("work/.portcullis/commands/more.toml", "[[override]]\nid = \"privilege.raise\"\nseverity = \"note\"\n");
    let refused = world.run(["check", "Bash", "command=ls"]);
    assert!(refused.code == 2 && refused.stdout.contains("may only raise"), "{refused:?}");
    world.write("work/.portcullis/commands/more.toml", "[[override]]\nid = \"privilege.raise\"\nseverity = \"deny\"\n");
    assert_eq!(check(&world, "sudo ls")["decision"], "deny");
}

fn exception(rule: &str, scope: &str, expires: &str) -> String {
    format!("[[exceptions]]\nrule = \"{rule}\"\n{scope}\nreason = \"agreed on\"\nexpires = \"{expires}\"\n")
}

#[test]
fn an_exception_lets_one_rule_through_and_is_recorded() {
    let world = World::new();
    world.write("config/commands/mine.toml", PACK);
    world
        .write("config/portcullis.toml", exception("mine.deploy", "command = \"deploy prod --dry-run\"", "2999-01-01"));
    assert_eq!(check(&world, "deploy prod")["stages"]["command"], "deny", "outside of its scope");
    let judged = check(&world, "deploy prod --dry-run");
    assert_eq!(judged["stages"]["command"], "allow", "{judged}");
    assert!(has(&judged, "command.excepted"));
    assert_eq!(check(&world, "deploy prod --dry-run; rm -rf /")["stages"]["command"], "deny");
    let asked = world.run(["run", "Bash", "command=deploy prod --dry-run", "--no-prompt"]);
    assert_eq!(asked.code, 3, "{asked:?}");
    let record = last(&world, "decided").to_string();
    assert!(record.contains("command.excepted") && record.contains("agreed on"), "{record}");
    let listed = world.run(["rules", "exceptions"]);
    assert!(
        listed.stdout.contains("mine.deploy  in force until 2999") && listed.stdout.contains("agreed on"),
        "{listed:?}"
    );
}

#[test]
fn an_exception_that_lapsed_is_said_and_a_fatal_rule_has_none() {
    let world = World::new();
    world.write("config/commands/mine.toml", PACK);
    world.write("config/portcullis.toml", exception("mine.deploy", "program = \"deploy\"", "2020-01-01"));
    let judged = check(&world, "deploy prod");
    assert!(judged["decision"] == "deny" && has(&judged, "command.exception-lapsed"), "{judged}");
    assert!(world.run(["rules", "exceptions"]).stdout.contains("LAPSED"));
    assert!(world.run(["doctor"]).stdout.contains("lapsed at 2020"));
    for (rule, said) in [
        ("fs.delete-root", "portcullis.toml:2:8: `fs.delete-root` is a fatal rule"),
        ("no.such", "no command rule `no.such`"),
    ] {
        world.write("config/portcullis.toml", exception(rule, "program = \"rm\"", "2999-01-01"));
        let refused = world.run(["check", "Bash", "command=ls"]);
        assert!(refused.code == 64 && refused.stderr.contains(said), "{refused:?}");
    }
    world.write("config/portcullis.toml", "");
    world.write("work/.portcullis.toml", exception("mine.deploy", "program = \"deploy\"", "2999-01-01"));
    let refused = world.run(["check", "Bash", "command=deploy prod"]);
    assert!(refused.code == 2 && refused.stdout.contains("unknown field `exceptions`"), "{refused:?}");
}

#[test]
fn i6_limits_are_configurable_and_a_hit_is_a_finding() {
    let world = World::new();
    let long = format!("echo {}", "x ".repeat(100));
    assert_eq!(check(&world, &long)["stages"]["command"], "allow");
    world.write("config/portcullis.toml", "[limits]\nbytes = 100\n");
    let judged = check(&world, &long);
    assert!(judged["stages"]["command"] == "ask" && has(&judged, "command.not-fully-analysed"), "{judged}");
    // They are the operator's alone: a smaller analysis sees less, so a workspace would loosen with it.
    world.write("work/.portcullis.toml", "[limits]\nsites = 2\n");
    assert!(has(&check(&world, "rm -rf /"), "rules.unusable"), "a workspace has no say in limits");
    std::fs::remove_file(world.workspace().join(".portcullis.toml")).expect("the file was written");
    world.write("config/portcullis.toml", "[limits]\ndepth = 100000\n");
    let refused = world.run(["check", "Bash", "command=ls"]);
    assert!(refused.code == 64 && refused.stderr.contains("at most 160"), "{refused:?}");
    world.write("config/portcullis.toml", "[limits]\nbytes = 100\n[[agents]]\nname = \"robot\"\nunattended = true\n");
    assert_eq!(check(&world, &long)["decision"], "deny", "nobody is there to ask");
}

#[test]
fn i2_a_mode_does_not_answer_for_what_was_left_unjudged() {
    let world = World::new();
    world.write("config/portcullis.toml", "[limits]\nsites = 1000\n[[agents]]\nname = \"robot\"\nmode = \"bypass\"\n");
    let padded = |command: &str| format!("{}{command}", "true; ".repeat(2_000));
    for command in ["ls", "rm -rf /etc", "portcullis approvals grant x"] {
        let judged = check(&world, &padded(command));
        assert!(has(&judged, "command.not-fully-analysed"), "{judged}");
        assert!(!has(&judged, "approval.standing"), "`{command}` behind padding would run unasked: {judged}");
        let mut arguments = vec!["run".to_owned(), "Bash".to_owned(), format!("command={}", padded(command))];
        arguments.push("--output=json".to_owned());
        let ran = world.run(arguments.iter().map(String::as_str));
        assert_eq!(ran.code, 3, "`{command}` behind padding: {ran:?}");
    }
    assert!(has(&check(&world, "ls"), "approval.standing"), "what was judged to its end is answered by the mode");
}

/// Errors tell what stands in a file; a link must not make them tell of others.
#[test]
fn i6_a_workspaces_own_rules_are_no_links() {
    let world = World::new();
    world.write("outside/app.toml", "api_key = \"s3cr3t\"\n");
    std::fs::create_dir(world.workspace().join(".portcullis")).expect("made");
    let link =
        |from: &str, to: &str| std::os::unix::fs::symlink(world.outside().join(from), world.workspace().join(to));
    world.write("outside/app.cedar", "api_key s3cr3t\n");
    let inner = ["commands", "profiles", "policies"].map(|name| ("", format!(".portcullis/{name}")));
    for (from, to) in std::iter::once(("app.toml", ".portcullis.toml".to_owned())).chain(inner) {
        link(from, &to).expect("linked");
        let judged = check(&world, "ls");
        let told = judged.to_string();
        assert!(judged["decision"] == "deny" && told.contains("symbolic link"), "{to}: {told}");
        assert!(!told.contains("api_key") && !told.contains("s3cr3t"), "{to}: {told}");
        std::fs::remove_file(world.workspace().join(&to)).expect("removed");
    }
    assert_ne!(check(&world, "ls")["decision"], "deny");
}
