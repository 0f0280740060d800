//! Every event of every program, and what the program does for each verdict.

use crate::common::World;
use crate::simulator::Does;
use crate::support::{HOSTS, acts, event, fixtures};

#[test]
fn every_event_of_every_program_is_understood() {
    for (host, _) in HOSTS {
        let world = World::new();
        world.write("work/README.md", "a c\n");
        let known: Vec<&str> =
            portcullis::hook::hosts::named(host).unwrap().events.iter().map(|row| row.name).collect();
        let mut names: Vec<String> = fixtures(host).into_iter().map(|(name, _)| name).collect();
        for name in &known {
            assert!(names.iter().any(|fixture| fixture == name), "{host} has no fixture of {name}");
        }
        // In the order in which a session has them.
        names.sort_by_key(|name| known.iter().rposition(|known| name.starts_with(known)));
        for name in names {
            let (_, ran) = acts(&world, host, &name, "default", &event(&world, host, &name, "ls"));
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!said.contains("cannot judge"), "{host} {name}: {said}");
        }
        let log = world.run(["audit", "tail", "-n", "100"]).stdout;
        assert!(log.contains("finished"), "{host} reported no end:\n{log}");
        assert_eq!(world.run(["audit", "verify"]).code, 0, "{host}");
    }
}

/// What a program does for each verdict: a person is asked where the program is known to ask, and nothing else runs.
#[test]
fn i2_what_programs_do_for_each_verdict() {
    let mut table = format!("{:<10} {:<22} {:<8} {:<8} {:<8}\n", "agent", "event", "ALLOW", "ASK", "DENY");
    for (host, name) in HOSTS {
        let world = World::new();
        let does = |command: &str| acts(&world, host, name, "default", &event(&world, host, name, command));
        let (allow, ask, deny) = (does("ls"), does("touch a"), does("rm -rf /"));
        table.push_str(&format!("{host:<10} {name:<22} {:<8?} {:<8?} {:<8?}\n", allow.0, ask.0, deny.0));
        assert_eq!(allow.0, Does::Runs, "{host}: {:?}", allow.1);
        let asks = portcullis::hook::hosts::named(host).unwrap().event(name).unwrap().asks;
        assert_eq!(ask.0, if asks { Does::Asks } else { Does::Blocks }, "{host}: {:?}", ask.1);
        assert_eq!(deny.0, Does::Blocks, "{host}: {:?}", deny.1);
        let told = format!("{}{}", deny.1.stdout, deny.1.stderr);
        assert!(told.contains("fs.delete-root"), "{host} is not told why: {told}");
        // Where nobody is asked at once, a person can grant it, and the same call then runs, once.
        if !asks {
            let pending = &world.run(["approvals", "list", "--json"]).json()[0]["approval"]["id"];
            assert_eq!(world.run(["approvals", "grant", pending.as_str().unwrap()]).code, 0, "{host}");
            assert_eq!(does("touch a").0, Does::Runs, "{host} after the grant");
            assert_eq!(does("touch a").0, Does::Blocks, "{host} used one grant twice");
        }
    }
    println!("{table}");
}

#[test]
fn a_mode_in_which_nobody_is_asked_blocks() {
    let mut table = String::new();
    for (host, name) in HOSTS {
        for mode in portcullis::hook::hosts::named(host).unwrap().modes {
            let world = World::new();
            let text = String::from_utf8(event(&world, host, name, "touch a")).unwrap();
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let key = if *host == "generic" { "mode" } else { "permission_mode" };
            value[key] = mode.name.into();
            let mut words = crate::support::words(host, name);
            if *host == "generic" {
                words.push("--asks");
            }
            let ran = world.run_with_input(words, value.to_string().as_bytes());
            let ended = crate::simulator::Ended { code: Some(ran.code), stdout: ran.stdout, stderr: ran.stderr };
            let does = crate::simulator::does(host, name, mode.name, &ended);
            let expected = if mode.asks && mode.mode.is_none() { Does::Asks } else { Does::Blocks };
            // A plan only reads, whoever would be asked; and of Codex nobody ever is.
            assert_eq!(does, expected, "{host} in {}: {ended:?}", mode.name);
            table.push_str(&format!("{host:<10} {:<18} ASK: {does:?}\n", mode.name));
        }
    }
    println!("{table}");
}

#[test]
fn a_patch_is_judged_by_every_file_in_it() {
    let world = World::new();
    let patch = |path: &str| {
        let text = format!("*** Begin Patch\n*** Add File: fine.txt\n+x\n*** Add File: {path}\n+x\n*** End Patch");
        let event = serde_json::json!({
            "session_id": "s", "cwd": world.workspace(), "hook_event_name": "PreToolUse", "permission_mode": "default",
            "tool_name": "apply_patch", "tool_input": {"command": text}, "tool_use_id": "c",
        });
        world.run_with_input(["hook", "codex"], event.to_string().as_bytes())
    };
    let out = patch("../elsewhere.txt");
    assert!(out.code == 2 && out.stderr.contains("path.outside"), "{out:?}");
    let hook = patch(".git/hooks/pre-commit");
    assert!(hook.code == 2 && hook.stderr.contains("denies"), "{hook:?}");
    // Both parts ask; each is granted, and the patch then runs as a whole.
    let asks = patch("other.txt");
    assert!(asks.code == 2 && asks.stderr.contains("Pending"), "{asks:?}");
    let pending = world.run(["approvals", "list", "--json"]).json();
    let ids: Vec<&str> =
        pending.as_array().unwrap().iter().map(|one| one["approval"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{pending}");
    assert_eq!(world.run(["approvals", "grant", ids[0]]).code, 0);
    assert_eq!(patch("other.txt").code, 2, "half a grant let it run");
    assert_eq!(world.run(["approvals", "grant", ids[1]]).code, 0);
    assert_eq!(patch("other.txt").code, 0, "the first grant was used up by a call that did not run");
    assert_eq!(patch("other.txt").code, 2);
}

/// The table in README.md says what the tables of the programs say.
#[test]
fn the_readme_says_what_each_program_enforces() {
    use portcullis::hook::host::{Kind, Rewrites};
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let mut missing = String::new();
    for host in portcullis::hook::hosts::ALL.iter().filter(|host| host.name != "generic") {
        let asks: Vec<&str> =
            host.events.iter().filter(|row| row.asks && row.kind == Kind::Uses).map(|row| row.name).collect();
        let not: Vec<&str> = host.modes.iter().filter(|mode| !mode.asks).map(|mode| mode.name).collect();
        let ask = match (asks.is_empty(), not.is_empty()) {
            (true, _) => "denied, pending".to_owned(),
            (false, true) => format!("its prompt ({})", asks.join(", ")),
            (false, false) => format!("its prompt ({}); denied, pending in {}", asks.join(", "), not.join(", ")),
        };
        let sandbox = if host.rewrites == Rewrites::No { "no" } else { "`--confine`" };
        let gaps: Vec<String> = host
            .gaps
            .iter()
            .map(|gap| match gap.closed_by {
                Some(by) => format!("{} (closed by {by})", gap.when),
                None => gap.when.to_owned(),
            })
            .collect();
        let row = format!(
            "| {} (`{}`) | enforced | {ask} | {sandbox} | {} | {} |",
            host.title,
            host.name,
            gaps.join("; "),
            host.checked
        );
        if !readme.contains(&row) {
            missing.push_str(&row);
            missing.push('\n');
        }
    }
    assert!(missing.is_empty(), "README.md lacks these rows:\n{missing}");
}
