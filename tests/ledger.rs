//! What the log and the approvals are for: questions about the past, decisions made again, grants that reach as far as a
//! person said. The real binary in a throw-away installation.

#![expect(clippy::expect_used, reason = "a test may fail")]

mod common;

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::{Ran, World};
use serde_json::{Value, json};

/// An installation with some calls behind it: allowed, asked, denied.
fn busy() -> World {
    let world = World::new();
    world.write("work/notes.txt", "buy milk\n");
    world.write("work/src/main.rs", "fn main() {}\n");
    for (args, code) in [
        (vec!["run", "--session", "one", "Read", "path=notes.txt"], 0),
        (vec!["run", "--session", "one", "Read", "path=src/main.rs"], 0),
        (vec!["run", "--session", "one", "Bash", "command=ls -l src"], 3),
        (vec!["run", "--session", "one", "Bash", "command=rm -rf /"], 2),
        (vec!["run", "--session", "two", "Bash", "command=curl https://api.example.com/v1 -o out"], 3),
        (vec!["run", "--session", "two", "Bash", "command=PGPASSWORD=tulip-9x7q2 psql"], 3),
    ] {
        let ran = world.run(&args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    }
    world
}

fn commands(ran: &Ran) -> Vec<String> {
    ran.lines().iter().map(|call| call["subject"].as_str().expect("a subject").to_owned()).collect()
}

#[test]
fn calls_are_found_by_everything_that_is_known_of_them() {
    let world = busy();
    for (filter, expected) in [
        (vec!["--tool", "Read"], vec!["notes.txt", "src/main.rs"]),
        (vec!["--verdict", "deny"], vec!["rm -rf /"]),
        (vec!["--verdict", "ask", "--session", "one"], vec!["ls -l src"]),
        (vec!["--path", "src"], vec!["src/main.rs"]),
        (vec!["--host", "example.com"], vec!["curl https://api.example.com/v1 -o out"]),
        (vec!["--text", "milk"], vec![]),
        (vec!["--text", "main.rs"], vec!["src/main.rs"]),
        (vec!["--since", "1h", "--until", "2000-01-01"], vec![]),
        (vec!["--since", "2000-01-01", "--tool", "Read", "-n", "1"], vec!["src/main.rs"]),
        (vec!["--text", "tulip"], vec![]),
    ] {
        let ran = world.run(["audit", "query", "--json"].into_iter().chain(filter.iter().copied()));
        assert_eq!(ran.code, 0, "{filter:?}: {ran:?}");
        assert_eq!(commands(&ran), expected, "{filter:?}");
    }
    let denied = world.run(["audit", "query", "--verdict", "deny", "--json"]).lines().remove(0);
    let rule = denied["rule"].as_str().expect("a rule").to_owned();
    assert_eq!(commands(&world.run(["audit", "query", "--rule", &rule, "--json"])), ["rm -rf /"]);
    let wrong = world.run(["audit", "query", "--since", "yesterday-ish"]);
    assert!(wrong.code == 64 && wrong.stderr.contains("30d"), "{wrong:?}");

    let timeline = world.run(["audit", "timeline", "one"]);
    assert_eq!(timeline.code, 0, "{timeline:?}");
    let lines: Vec<&str> = timeline.stdout.lines().filter(|line| !line.contains("approval")).collect();
    assert_eq!(lines.len(), 4, "{timeline:?}");
    assert!(lines[0].contains("ALLOW") && lines[3].contains("DENY"), "{timeline:?}");
    assert!(timeline.stdout.contains("requested"), "the approval is not shown: {timeline:?}");
    assert_eq!(world.run(["audit", "timeline", "three"]).code, 64);

    // The index is made from the log, and from nothing else.
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(world.state().join(format!("index.db{suffix}")));
    }
    assert_eq!(commands(&world.run(["audit", "query", "--tool", "Read", "--json"])).len(), 2);
    fs::write(world.state().join("index.db"), "no database").expect("a file");
    assert_eq!(commands(&world.run(["audit", "query", "--tool", "Read", "--json"])).len(), 2);
}

#[test]
fn sql_reads_the_views_and_changes_nothing() {
    let world = busy();
    let counted =
        world.run(["audit", "sql", "SELECT answer, count(*) AS n FROM calls GROUP BY answer ORDER BY n", "--json"]);
    assert_eq!(counted.code, 0, "{counted:?}");
    assert!(counted.lines().contains(&json!({ "answer": "allow", "n": 2 })), "{counted:?}");
    let schema = world.run(["audit", "sql", "--schema"]);
    for view in ["calls", "events", "findings", "hosts", "paths", "sessions"] {
        assert!(schema.stdout.contains(view), "{view} is not documented: {schema:?}");
    }
    for text in [
        "DELETE FROM call",
        "DROP VIEW calls",
        "SELECT 1; DELETE FROM call",
        "ATTACH 'state.db' AS other",
        "PRAGMA writable_schema = 1",
        "VACUUM INTO 'copy.db'",
        "nonsense",
    ] {
        let ran = world.run(["audit", "sql", text]);
        assert_ne!(ran.code, 0, "{text}: {ran:?}");
    }
    assert_eq!(commands(&world.run(["audit", "query", "--json"])).len(), 6, "a query changed the index");
    assert!(!world.workspace().join("copy.db").exists());
}

#[test]
fn why_shows_the_policy_that_decided_and_what_would_have_changed_it() {
    let world = busy();
    let asked = world.run(["audit", "query", "--text", "ls", "--verdict", "ask", "--json"]).lines().remove(0);
    let id = asked["id"].as_str().expect("an id").to_owned();
    let why = world.run(["audit", "why", &id]);
    assert_eq!(why.code, 0, "{why:?}");
    for part in ["ASK(1)", "context.approval.level >= 1", "an approval by the operator"] {
        assert!(why.stdout.contains(part), "`{part}` is missing: {why:?}");
    }
    let denied = world.run(["audit", "query", "--verdict", "deny", "--json"]).lines().remove(0);
    let why = world.run(["audit", "why", denied["id"].as_str().expect("an id"), "--json"]).json();
    assert_eq!(why["answer"], "deny");
    assert!(why["would_change"].as_array().is_some_and(|told| !told.is_empty()), "{why}");
}

#[test]
fn the_past_is_decided_again_under_other_rules() {
    let world = busy();
    // The same rules change nothing.
    let same = world.run(["audit", "replay", "--json"]);
    assert_eq!((same.code, &same.json()["looser"], &same.json()["stricter"]), (0, &json!(0), &json!(0)), "{same:?}");
    assert_eq!(same.json()["calls"], 6);

    let loose = world.write("new/loose.cedar", "@id(\"new.all\") permit (principal, action, resource);");
    let looser = world.run(["audit", "replay", "--json", "--policies", &loose.to_string_lossy()]);
    assert_eq!(looser.code, 2, "{looser:?}");
    let found = looser.json();
    assert_eq!(found["looser"], 3, "what asked is allowed, and what the guard denies is not: {found}");
    assert_eq!(found["matrix"]["ask(1)"]["allow"], 3, "{found}");
    assert_eq!(found["by_tool"]["Bash"], json!([3, 0]), "{found}");
    let accepted = world.run(["audit", "replay", "--accept-looser", "--policies", &loose.to_string_lossy()]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert!(accepted.stdout.contains("LOOSER"), "{accepted:?}");

    let strict = world.write("new/strict.cedar", "@id(\"new.none\") forbid (principal, action, resource);");
    let stricter = world.run(["audit", "replay", "--json", "--policies", &strict.to_string_lossy()]).json();
    assert_eq!((&stricter["looser"], &stricter["stricter"]), (&json!(0), &json!(5)), "{stricter}");

    // What reads a redacted argument is not guessed.
    let reads = world.write(
        "new/reads.cedar",
        "@id(\"new.reads\") permit (principal, action == Action::\"Bash\", resource) when { context.input.command like \"*tulip*\" };",
    );
    let found = world.run(["audit", "replay", "--json", "--policies", &reads.to_string_lossy()]).json();
    assert_eq!(found["undetermined"], 1, "{found}");

    // The commands are analysed again by packs.
    let packs = world.home().join("packs");
    fs::create_dir(&packs).expect("a directory");
    world.write("packs/mine.toml", PACK);
    let found = world.run(["audit", "replay", "--json", "--packs", &packs.to_string_lossy()]).json();
    assert_eq!(found["stricter"], 1, "{found}");
    assert_eq!(found["by_rule"]["mine.ls"], json!([0, 1]), "{found}");
    assert_eq!(found["undetermined"], 1, "a command that was redacted was analysed: {found}");
}

const PACK: &str = include_str!("cases/ls-pack.toml");

#[test]
fn an_honest_log_is_rederived_and_an_edited_verdict_is_found() {
    let world = busy();
    assert_eq!(world.run_granted(&["run", "--session", "one", "Bash", "command=wc -l notes.txt"]).code, 0);
    let honest = world.run(["audit", "verify", "--rederive", "--json"]);
    assert_eq!(honest.code, 0, "{honest:?}");
    assert_eq!(honest.json()["rederived"]["reproduced"], 8, "{honest:?}");

    // Somebody makes a denial look like a permission, and the chain as if nothing had been.
    let text = fs::read_to_string(world.log()).expect("a log");
    let mut prev = "0".repeat(64);
    let mut forged = String::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).expect("a record");
        let mut line = line.replacen(value["prev"].as_str().expect("a hash"), &prev, 1);
        if value["kind"] == "decided" && value["effective"] == "deny" {
            let effective = "\"effective\":\"deny\"";
            assert!(line.contains(effective));
            line = line.replace(effective, "\"effective\":\"allow\"");
        }
        prev = portcullis::call::Digest::of(&line).to_string();
        forged += &line;
        forged.push('\n');
    }
    fs::write(world.log(), forged).expect("a log");
    fs::remove_file(world.state().join("audit/head")).expect("a head");
    assert_eq!(world.run(["audit", "verify"]).code, 0, "the chain was to hold");
    let found = world.run(["audit", "verify", "--rederive"]);
    assert_eq!(found.code, 2, "{found:?}");
    assert!(found.stdout.contains("recorded ALLOW, derived DENY"), "{found:?}");
}

#[test]
fn a_checkpoint_and_a_proof_convince_somebody_who_has_not_got_the_log() {
    let world = busy();
    let kept = world.run(["audit", "checkpoint"]);
    assert_eq!(kept.code, 0, "{kept:?}");
    let note = world.write("kept", &kept.stdout);
    let key = world.run(["audit", "key"]).stdout.trim().to_owned();
    let path = note.to_string_lossy();
    let sound = world.run(["audit", "verify", "--checkpoint", &path, "--key", &key]);
    assert_eq!(sound.code, 0, "{sound:?}");
    let proof = world.run(["audit", "prove", "1"]);
    assert_eq!(proof.code, 0, "{proof:?}");
    let file = world.write("proof", &proof.stdout);
    let checked = world.run(["audit", "check-proof", &file.to_string_lossy(), "--key", &key]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let forged = world.write("forged", proof.stdout.replace("notes.txt", "other.txt"));
    assert_eq!(world.run(["audit", "check-proof", &forged.to_string_lossy(), "--key", &key]).code, 2);
    let grown = world.run(["audit", "prove", "--since", &path]);
    let file = world.write("grown", &grown.stdout);
    assert_eq!(world.run(["audit", "check-proof", &file.to_string_lossy(), "--key", &key]).code, 0, "{grown:?}");

    // Written anew from the start, with the key that lies there.
    fs::remove_dir_all(world.state().join("audit")).expect("a log");
    world.run(["run", "Read", "path=notes.txt"]);
    assert_eq!(world.run(["audit", "verify"]).code, 0);
    let found = world.run(["audit", "verify", "--checkpoint", &path]);
    assert!(found.code == 2 && found.stdout.contains("taken away"), "{found:?}");
}

#[test]
fn a_grant_reaches_as_far_as_the_person_said_and_no_further() {
    let world = World::new();
    world.write("work/a.txt", "x\n");
    world.write("work/b.txt", "y\n");
    let bash =
        |session: &str, command: &str| world.run(["run", "--session", session, "Bash", &format!("command={command}")]);
    // The same call for the session.
    let asked = bash("s", "wc -l a.txt");
    let shown = world.run(["approvals", "scopes", &asked.pending(), "--json"]).json();
    assert_eq!(shown[1]["scope"]["covers"], "same", "{shown}");
    assert_eq!(shown[2]["scope"]["words"], json!(["wc", "-l"]), "{shown}");
    assert_eq!(world.run(["approvals", "grant", &asked.pending(), "--scope", "same"]).code, 0);
    for _ in 0..3 {
        assert_eq!(bash("s", "wc -l a.txt").code, 0);
    }
    for (session, command) in [("s", "wc -l b.txt"), ("other", "wc -l a.txt"), ("s", "wc a.txt")] {
        assert_eq!(bash(session, command).code, 3, "{command} in {session} was not granted");
    }

    // Commands that begin alike.
    let asked = bash("s", "wc -l b.txt");
    let id = asked.pending();
    let preview = world.run(["approvals", "scopes", &id]);
    assert!(preview.stdout.contains("wc -l") && preview.stdout.contains("of the last"), "{preview:?}");
    let granted = world.run(["approvals", "grant", &id, "--scope", "prefix"]);
    assert!(granted.code == 0 && granted.stdout.contains("begin with `wc -l`"), "{granted:?}");
    for command in ["wc -l b.txt", "wc -l a.txt b.txt"] {
        assert_eq!(bash("s", command).code, 0, "{command} begins like what was granted");
    }
    for command in [
        "wc b.txt",
        "wc -l b.txt; ls",
        "wc -l b.txt > c.txt",
        "wc -l $(ls)",
        "env wc -l b.txt",
        "wc -lx b.txt",
        "wc -l .env",
    ] {
        assert_eq!(bash("s", command).code, 3, "{command} was not granted");
    }
    assert_ne!(bash("s", "wc -l /etc/shadow").code, 0, "a place outside was not granted");
    assert_eq!(bash("other", "wc -l b.txt").code, 3, "another session was not granted");

    // In force until it is taken back.
    let grants = world.run(["approvals", "grants", "--json"]).json();
    assert_eq!(grants.as_array().map(Vec::len), Some(2), "{grants}");
    assert_eq!(world.run(["approvals", "revoke", &id]).code, 0);
    assert_eq!(bash("s", "wc -l a.txt b.txt").code, 3, "a grant that was taken back was used");
    assert_ne!(world.run(["approvals", "revoke", &id]).code, 0);

    // Never for what can run other programs.
    for command in ["git status", "python3 -c 1", "ls; ls", "find . -name a"] {
        let asked = bash("s", command);
        let refused = world.run(["approvals", "grant", &asked.pending(), "--scope", "prefix"]);
        assert_eq!(refused.code, 64, "{command}: {refused:?}");
    }
    // Other rules: nothing that was granted holds any more.
    assert_eq!(bash("s", "wc -l a.txt").code, 0);
    world.write(
        "config/policies/new.cedar",
        "@id(\"new.nothing\") forbid (principal, action == Action::\"Write\", resource);",
    );
    assert_eq!(bash("s", "wc -l a.txt").code, 3, "a grant held after the policies had changed");
    assert_eq!(world.run(["audit", "verify", "--rederive"]).code, 0);
}

#[test]
fn a_session_that_asks_too_often_is_stopped_and_counted() {
    let world = World::new();
    world.write("config/portcullis.toml", "[approval]\nper_minute = 3\n");
    for i in 0..3 {
        assert_eq!(world.run(["run", "Bash", &format!("command=ls {i}")]).code, 3);
    }
    for i in 3..5 {
        let ran = world.run(["run", "Bash", &format!("command=ls {i}")]);
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    assert_eq!(world.run(["run", "--session", "calm", "Bash", "command=ls"]).code, 3, "another session may ask");
    let list = world.run(["approvals", "list"]);
    assert!(list.stdout.contains("2 requests of session cli were withheld"), "{list:?}");
}

#[test]
fn the_log_is_exported_in_other_systems_forms() {
    let world = busy();
    world.run(["run", "Read", "path==cmd.txt"]);
    assert_eq!(world.run_granted(&["run", "Bash", "command=true"]).code, 0);
    let export = |form: &str| {
        let ran = world.run(["audit", "export", "--form", form]);
        assert_eq!(ran.code, 0, "{form}: {ran:?}");
        assert!(!ran.stdout.contains("tulip"), "a secret is in the {form} export");
        ran
    };
    assert_eq!(export("jsonl").stdout, fs::read_to_string(world.log()).expect("a log"));
    let table = export("csv").stdout;
    assert!(table.starts_with("seq,time,call,") && table.contains(",rm -rf /,"), "{table}");
    assert!(!table.lines().any(|line| line.contains(",=")), "a cell is a formula: {table}");

    let events = export("ocsf").lines();
    for event in &events {
        let class = event["class_uid"].as_u64().expect("a class");
        let required: &[&str] = match class {
            6003 => &[
                "activity_id",
                "actor",
                "api",
                "category_uid",
                "metadata",
                "severity_id",
                "src_endpoint",
                "time",
                "type_uid",
            ],
            1007 => &[
                "activity_id",
                "actor",
                "category_uid",
                "device",
                "metadata",
                "process",
                "severity_id",
                "time",
                "type_uid",
            ],
            _ => panic!("no class that is meant: {event}"),
        };
        for field in required {
            assert!(!event[*field].is_null(), "`{field}` is missing: {event}");
        }
        let (activity, kind) = (event["activity_id"].as_u64(), event["type_uid"].as_u64());
        assert_eq!(kind, activity.map(|activity| class * 100 + activity), "{event}");
        for field in ["version", "product"] {
            assert!(!event["metadata"][field].is_null(), "{event}");
        }
        assert!([0, 1, 2, 99].contains(&event["status_id"].as_u64().expect("a status")), "{event}");
    }
    let disposition = |answer: u64| events.iter().filter(|event| event["disposition_id"] == answer).count();
    assert_eq!((disposition(2), disposition(23), disposition(8)), (1, 4, 1), "{events:#?}");
    let process = events.iter().find(|event| event["class_uid"] == 1007).expect("a command ran");
    assert_eq!((&process["exit_code"], &process["process"]["cmd_line"]), (&json!(0), &json!("true")));

    for batch in export("otlp").lines() {
        let span = &batch["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"].as_str().map(str::len), Some(32), "{batch}");
        assert_eq!(span["spanId"].as_str().map(str::len), Some(16), "{batch}");
        assert!(span["startTimeUnixNano"].as_str() <= span["endTimeUnixNano"].as_str(), "{batch}");
    }

    world.run(["run", "Bash", "command=echo '<script>alert(1)</script>'"]);
    let page = world.run(["audit", "report", "--since", "1d"]);
    assert_eq!(page.code, 0, "{page:?}");
    for part in ["<!doctype html>", "rm -rf /", "Objections by stage", "the chain is whole"] {
        assert!(page.stdout.contains(part), "`{part}` is missing");
    }
    assert!(!page.stdout.contains("<script") && !page.stdout.contains("tulip") && !page.stdout.contains("http://"));
}

#[test]
fn i3_kill_9_at_any_moment_of_a_granted_call_runs_nothing_twice_and_loses_no_record() {
    let world = World::new();
    let out = world.workspace().join("out");
    let args = ["run", "Bash", "command=echo once >> out"];
    let mut unknown = 0;
    for round in 0..10_u64 {
        let _ = fs::remove_file(&out);
        let asked = world.run(args);
        assert_eq!(asked.code, 3, "round {round}: a grant of an earlier round was used twice: {asked:?}");
        assert_eq!(world.run(["approvals", "grant", &asked.pending()]).code, 0);
        let mut running =
            world.portcullis(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(round * 15));
        running.kill().expect("it is killed");
        running.wait().expect("it ends");
        // Killed before the grant was used up, it may be used now; after that, the call asks again.
        let again = world.run(args);
        assert!([0, 3].contains(&again.code), "round {round}: {again:?}");
        let ran = fs::read_to_string(&out).unwrap_or_default().lines().count();
        assert!(ran <= 1, "round {round}: one grant ran {ran} times");
        if again.code == 3 {
            assert_eq!(world.run(["approvals", "refuse", &again.pending()]).code, 0);
            assert_eq!(world.run(args).code, 2, "a refusal is told once");
        }
        let report = world.run(["audit", "verify", "--rederive", "--json"]);
        assert_eq!(report.code, 0, "round {round}: {report:?}");
        unknown = report.json()["calls"]["unknown"].as_u64().expect("a count");
    }
    println!("{unknown} calls were killed while they ran");
}
