//! `portcullis explain`, as a person or a tool uses it.

mod common;

use std::fs;

use common::World;
use serde_json::Value;

#[test]
fn a_refused_command_is_taken_apart_and_shows_where_and_what_instead() {
    let world = World::new();
    let ran = world.run(["explain", "--", "d=/; cd sub && sudo -u bob rm -rf \"$d\""]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for part in [
        "DENY",
        "sudo -u bob rm -rf /",
        "through sudo",
        "delete, recursive: root",
        "sub",
        "^^^^",
        "(fatal)",
        "to pass:",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is missing: {ran:?}");
    }
}

#[test]
fn of_a_harmless_command_it_is_shown_what_it_opens() {
    let world = World::new();
    let ran = world.run(["explain", "--", "make test > log 2>&1"]);
    assert_eq!(ran.code, 3, "as the call is answered, which the policies ask about: {ran:?}");
    for part in ["ASK(1)", "policy ask, command allow", "tools.ask", "overwrite: ", "/log"] {
        assert!(ran.stdout.contains(part), "{part:?} is missing: {ran:?}");
    }
}

#[test]
fn the_answer_is_the_one_that_the_call_gets() {
    let world = World::new();
    let exception = |rule: &str| {
        format!(
            "[[exceptions]]\nrule = \"{rule}\"\ncommand = \"efibootmgr -b\"\nreason = \"r\"\nexpires = \"2999-01-01\"\n"
        )
    };
    for configured in ["", "policy_set = \"strict\"\n", &exception("system.boot")] {
        world.write("config/portcullis.toml", configured);
        for command in [
            "ls",
            "rm -rf ../x",
            "efibootmgr -b 0000 -B",
            "cat .git/config",
            "git push --force origin main",
            "rm -rf /",
        ] {
            let explained = world.run(["explain", "--json", "--", command]);
            let checked = world.run(["check", "--output", "json", "Bash", &format!("command={command}")]);
            assert_eq!(explained.code, checked.code, "{command}: {explained:?} {checked:?}");
            let (explained, checked) = (explained.json(), checked.json());
            for part in ["decision", "level", "stages", "findings"] {
                assert_eq!(explained[part], checked[part], "{command}");
            }
        }
    }
    let ran = world.run(["explain", "--", "efibootmgr -b 0000 -B"]);
    assert!(ran.stdout.contains("command.excepted"), "{ran:?}");
    fs::write(world.config().join("portcullis.toml"), "").expect("written");
    let ran = world.run(["explain", "--", "efibootmgr -b 0000 -B"]);
    assert!(ran.code == 2 && ran.stdout.contains("[[exceptions]]") && ran.stdout.contains("[[override]]"), "{ran:?}");
    let ran = world.run(["explain", "--", "rm -rf ../x"]);
    assert!(ran.code == 2 && ran.stdout.contains("path.outside-workspace"), "{ran:?}");
}

#[test]
fn a_script_of_the_workspace_is_taken_apart_too() {
    let world = World::new();
    world.write("work/bad.sh", "#!/bin/sh\nrm -rf /\n");
    for command in ["bash bad.sh", "cat bad.sh | sh", "./bad.sh"] {
        let ran = world.run(["explain", "--", command]);
        assert!(ran.code == 2 && ran.stdout.contains("in the script `bad.sh`"), "{command}: {ran:?}");
    }
}

#[test]
fn words_given_one_by_one_are_a_command() {
    let world = World::new();
    let ran = world.run(["explain", "--", "rm", "-rf", "/"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = world.run(["explain", "--", "echo", "rm -rf /; x"]);
    assert_eq!(ran.code, 3, "{ran:?}");
}

#[test]
fn tools_get_all_of_it() {
    let world = World::new();
    let ran = world.run(["explain", "--json", "--", "x=$(date); git push --force origin \"$x\""]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let told: Value = serde_json::from_str(&ran.stdout).expect("one JSON object");
    assert!(told["decision"] == "ask" && told["level"] == 1, "{told}");
    let sites = told["understood"]["sites"].as_array().expect("sites");
    let push = sites.iter().find(|site| site["words"][0]["text"] == "git").expect("git is there");
    assert_eq!(push["words"][4]["state"], "unknown", "{push}");
    assert!(told["understood"]["facts"]["findings"][0]["span"].is_array(), "{told}");
}

#[test]
fn text_of_a_command_cannot_repaint_the_terminal() {
    let world = World::new();
    let ran = world.run(["explain", "--", "echo $'\\e[2J' '\u{1b}[2J'"]);
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn without_a_command_it_says_how_it_is_used() {
    let world = World::new();
    assert_eq!(world.run(["explain"]).code, 64);
}
