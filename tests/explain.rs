//! `portcullis explain`, as a person or a tool uses it.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops where it cannot go on")]

mod common;

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
fn a_harmless_command_is_allowed_and_what_it_opens_is_shown() {
    let world = World::new();
    let ran = world.run(["explain", "--", "make test > log 2>&1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout.contains("ALLOW") && ran.stdout.contains("overwrite: ") && ran.stdout.contains("/log"),
        "{ran:?}"
    );
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
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn tools_get_all_of_it() {
    let world = World::new();
    let ran = world.run(["explain", "--json", "--", "x=$(date); git push --force origin \"$x\""]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let told: Value = serde_json::from_str(&ran.stdout).expect("one JSON object");
    assert_eq!(told["decision"], "ask(1)", "{told}");
    let sites = told["understood"]["sites"].as_array().expect("sites");
    let push = sites.iter().find(|site| site["words"][0]["text"] == "git").expect("git is there");
    assert_eq!(push["words"][4]["state"], "unknown", "{push}");
    assert!(told["understood"]["facts"]["findings"][0]["span"].is_object(), "{told}");
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
