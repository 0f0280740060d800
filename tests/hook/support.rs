//! Events of each program, and the hook that answers them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Ran, World};
use crate::simulator::{Does, Ended, does};

/// The programs, each with the event in which it wants to run a shell command.
pub const HOSTS: &[(&str, &str)] = &[
    ("claude", "PreToolUse"),
    ("cline", "PreToolUse"),
    ("codex", "PreToolUse"),
    ("copilot", "preToolUse"),
    ("cursor", "beforeShellExecution"),
    ("gemini", "BeforeTool"),
    ("opencode", "tool.execute.before"),
    ("openhands", "PreToolUse"),
    ("windsurf", "pre_run_command"),
    ("generic", "before"),
];

pub fn fixtures(host: &str) -> Vec<(String, PathBuf)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/fixtures").join(host);
    let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut found: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    found.sort();
    found
}

/// A fixture in a world, about this command.
pub fn event(world: &World, host: &str, name: &str, command: &str) -> Vec<u8> {
    let path = fixtures(host).into_iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{host} {name}")).1;
    // Once as JSON text, and once more where the fixture has JSON text in JSON text.
    let escaped = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
    let text = fs::read_to_string(path).unwrap();
    let nested = text.contains(r#"\"@"#) || text.contains(r#"\": \"@"#);
    let put = |text: &str| if nested { escaped(&escaped(text)) } else { escaped(text) };
    text.replace("@WORKSPACE@", world.workspace().to_str().unwrap()).replace("@COMMAND@", &put(command)).into_bytes()
}

/// The words after `portcullis` that `install` writes for this event.
pub fn words<'a>(host: &'a str, event: &'a str) -> Vec<&'a str> {
    // The part after the dot tells fixtures of one event apart; only where no event has a dot in its own name.
    let event = if host == "opencode" { event } else { event.split('.').next().unwrap() };
    match host {
        "copilot" => vec!["hook", host, "--event", event],
        _ => vec!["hook", host],
    }
}

/// Lets a hook answer, and the program act on it.
pub fn acts(world: &World, host: &str, name: &str, mode: &str, bytes: &[u8]) -> (Does, Ran) {
    let ran = world.run_with_input(words(host, name), bytes);
    let event = if host == "opencode" { name } else { name.split('.').next().unwrap() };
    let ended = Ended { code: Some(ran.code), stdout: ran.stdout.clone(), stderr: ran.stderr.clone() };
    (does(host, event, mode, &ended), ran)
}
