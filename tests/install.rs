//! `portcullis install` and `uninstall`: round trips on configurations as people have them, and what agents' programs then
//! start.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::World;

/// The programs, each with a file of its configuration, and what a person may have in it.
const CONFIGURATIONS: &[(&str, &str, &str)] = &[
    (
        "claude",
        ".claude/settings.json",
        "{\n  // how I like it\n  \"model\": \"opus\",\n  \"permissions\": { \"allow\": [\"Bash(ls:*)\"], \"deny\": [] },\n  \"hooks\": \
         {\n    \"PreToolUse\": [\n      { \"matcher\": \"Edit\", \"hooks\": [{ \"type\": \"command\", \"command\": \"lint\" }] }, // mine\n    \
         ],\n  },\n}\n",
    ),
    (
        "codex",
        ".codex/hooks.json",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"beep\"}]}]}}",
    ),
    ("gemini", ".gemini/settings.json", "{\r\n\t\"theme\": \"Dark\",\r\n\t\"mcpServers\": {}\r\n}\r\n"),
    ("cursor", ".cursor/hooks.json", "{\n    \"version\": 1,\n    \"hooks\": {\n        \"stop\": []\n    }\n}"),
    ("copilot", ".copilot/hooks/portcullis.json", "{}"),
    ("windsurf", ".codeium/windsurf/hooks.json", "/* none yet */ {}"),
    ("openhands", ".openhands/hooks.json", "{\"stop\": [{\"matcher\": \"*\", \"hooks\": []}]}"),
];

/// Every file and link below the home directory, but for the gateway's own state.
fn below(world: &World) -> Vec<(PathBuf, Vec<u8>, u32)> {
    let mut open = vec![world.home().to_owned()];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path == world.state() {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((path.clone(), content, meta.permissions().mode()));
            if meta.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_there_comes_back_byte_for_byte() {
    for (host, file, text) in CONFIGURATIONS {
        let world = World::new();
        world.write(file, text);
        let before = below(&world);
        let dry = world.run(["install", host, "--dry-run"]);
        assert!(dry.code == 0 && dry.stdout.contains("hook"), "{host}: {dry:?}");
        assert_eq!(below(&world), before, "{host}: a dry run changed something");
        let done = world.run(["install", host]);
        assert_eq!(done.code, 0, "{host}: {done:?}");
        let installed = below(&world);
        let now = fs::read_to_string(world.home().join(file)).unwrap();
        assert!(now.contains(&format!("hook {host}")), "{host}: {now}");
        let again = world.run(["install", host]);
        assert!(again.stdout.contains("was installed already"), "{host}: {again:?}");
        assert_eq!(below(&world), installed, "{host}: twice is not once");
        // Chosen otherwise, it is replaced; what comes back in the end is what there was in the beginning.
        assert_eq!(world.run(["install", host, "--agent", "somebody"]).code, 0, "{host}");
        let now = fs::read_to_string(world.home().join(file)).unwrap();
        let calls = now.matches(&format!("hook {host}")).count();
        assert_eq!(now.matches("--agent somebody").count(), calls, "{host}: {now}");
        let out = world.run(["uninstall", host]);
        assert!(out.code == 0 && out.stdout.contains("is out again"), "{host}: {out:?}");
        assert_eq!(below(&world), before, "{host}");
        assert!(world.run(["uninstall", host]).stdout.contains("was not there"), "{host}");
    }
}

#[test]
fn where_nothing_was_nothing_stays() {
    for host in ["claude", "codex", "gemini", "cursor", "copilot", "windsurf", "openhands", "cline", "opencode"] {
        for scope in ["--user", "--project"] {
            let world = World::new();
            let before = below(&world);
            let words = match host {
                "claude" | "codex" | "gemini" | "cursor" => vec!["install", host, scope, "--mcp"],
                _ => vec!["install", host, scope],
            };
            let done = world.run(words);
            assert_eq!(done.code, 0, "{host} {scope}: {done:?}");
            assert_ne!(below(&world), before, "{host} {scope} wrote nothing");
            assert_eq!(world.run(["uninstall", host, scope]).code, 0, "{host} {scope}");
            assert_eq!(below(&world), before, "{host} {scope}");
        }
    }
}

#[test]
fn what_others_changed_since_stays() {
    let world = World::new();
    let file = world.write(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
    assert_eq!(world.run(["install", "claude"]).code, 0);
    let changed = fs::read_to_string(&file).unwrap().replace("opus", "sonnet");
    fs::write(&file, changed).unwrap();
    // Without any record, as where the state directory was lost.
    fs::remove_dir_all(world.state()).unwrap();
    assert_eq!(world.run(["uninstall", "claude"]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n  \"model\": \"sonnet\"\n}\n");
}

#[test]
fn a_link_stays_a_link_and_what_may_not_be_written_is_not() {
    let world = World::new();
    let real = world.write("dotfiles/claude.json", "{}\n");
    fs::create_dir_all(world.home().join(".claude")).unwrap();
    let link = world.home().join(".claude/settings.json");
    symlink(&real, &link).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(world.run(["install", "claude"]).code, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&real).unwrap().contains("hook claude"));
    assert_eq!(world.run(["uninstall", "claude"]).code, 0);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}\n");

    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let refused = world.run(["install", "claude"]);
    assert!(refused.code == 64 && refused.stderr.contains("read-only"), "{refused:?}");
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}\n");
    fs::remove_file(&real).unwrap();
    let dangling = world.run(["install", "claude"]);
    assert!(dangling.code == 64 && dangling.stderr.contains("leads nowhere"), "{dangling:?}");
}

#[test]
fn what_cannot_be_edited_is_left_and_said() {
    for text in ["{ broken", "[]", "{\"hooks\": 3}", "\u{feff}{"] {
        let world = World::new();
        let file = world.write(".claude/settings.json", text);
        let refused = world.run(["install", "claude"]);
        assert!(refused.code == 64 && refused.stderr.contains("settings.json"), "{text}: {refused:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        // What is not ours does not keep it from being taken out.
        assert_eq!(world.run(["uninstall", "claude"]).code, 0, "{text}");
    }
    let world = World::new();
    let theirs = world.write("Documents/Cline/Hooks/PreToolUse", "#!/bin/sh\nexit 0\n");
    let refused = world.run(["install", "cline"]);
    assert!(refused.code == 64 && refused.stderr.contains("hook cline"), "{refused:?}");
    assert_eq!(world.run(["uninstall", "cline"]).code, 0);
    assert_eq!(fs::read_to_string(theirs).unwrap(), "#!/bin/sh\nexit 0\n");
    assert!(!world.home().join("Documents/Cline/Hooks/PostToolUse").exists(), "half an installation");
}

/// Doctor starts what stands in the configuration, as the program would, and says what does not hold.
#[test]
fn doctor_proves_what_is_installed_and_says_what_is_not() {
    let world = World::new();
    let doctor = || world.run(["doctor", "claude"]);
    let none = doctor();
    assert!(none.code == 2 && none.stdout.contains("portcullis install claude"), "{none:?}");
    assert_eq!(world.run(["install", "claude"]).code, 0);
    let sound = doctor();
    assert!(sound.code == 0 && sound.stdout.matches("  holds  ").count() == 3, "{sound:?}");
    let file = world.home().join(".claude/settings.json");
    let installed = fs::read_to_string(&file).unwrap();
    let binary = installed.split('"').find(|part| part.ends_with(" hook claude")).unwrap();
    for (what, changed, told) in [
        ("removed", installed.replace("PreToolUse", "PreToolUseOff"), "not set up for the event PreToolUse"),
        ("switched off", installed.replacen('{', "{\n  \"disableAllHooks\": true,", 1), "disableAllHooks"),
        ("opened", installed.replace("\"onFailure\": \"block\"", "\"onFailure\": \"allow\""), "onFailure"),
        ("another program", installed.replace(binary, "/nonexistent/portcullis hook claude"), "FAILS"),
        ("swallowed", installed.replace(binary, &format!("{binary} || true")), "FAILS"),
    ] {
        fs::write(&file, changed).unwrap();
        let found = doctor();
        assert!(found.code == 2 && found.stdout.contains(told), "{what}: {found:?}");
    }
    fs::write(&file, "{ broken").unwrap();
    assert_eq!(doctor().code, 2);
}

#[test]
fn doctor_holds_for_every_program_and_names_what_it_cannot_enforce() {
    for host in ["claude", "cline", "codex", "copilot", "cursor", "gemini", "opencode", "openhands", "windsurf"] {
        let world = World::new();
        assert_eq!(world.run(["install", host, "--project"]).code, 0, "{host}");
        let report = world.run(["doctor", host, "--json"]);
        assert_eq!(report.code, 0, "{host}: {report:?}");
        let report = report.json();
        let probes = report["installed"]["probes"].as_array().unwrap();
        assert!(probes.len() == 3 && probes.iter().all(|probe| probe["holds"] == true), "{host}: {report}");
        assert!(!report["not_enforceable"].as_array().unwrap().is_empty(), "{host}");
    }
}

#[test]
fn the_plugin_throws_unless_it_is_told_to_go_on() {
    let node = std::process::Command::new("node").arg("--version").output();
    if !node.is_ok_and(|node| node.status.success()) {
        eprintln!("SKIPPED: there is no node");
        return;
    }
    let world = World::new();
    assert_eq!(world.run(["install", "opencode"]).code, 0);
    let plugin = world.home().join(".config/opencode/plugins/portcullis.js");
    let script = world.write(
        "drive.mjs",
        format!(
            "import {{ Portcullis }} from {plugin:?}\n\
             const hooks = await Portcullis({{ directory: process.argv[2] }})\n\
             const output = {{ args: {{ command: process.argv[3] }} }}\n\
             const input = {{ sessionID: \"s\", callID: \"c\", tool: \"bash\" }}\n\
             try {{ await hooks[\"tool.execute.before\"](input, output); console.log(\"runs\") }}\n\
             catch (error) {{ console.log(\"blocked: \" + error.message) }}\n\
             try {{ output.args.command = \"other\" }} catch {{ console.log(\"frozen\") }}\n\
             await hooks[\"tool.execute.after\"]({{ ...input, args: output.args }}, {{ output: \"x\" }})\n"
        ),
    );
    fs::rename(&plugin, plugin.with_extension("mjs")).unwrap();
    let text = fs::read_to_string(&script).unwrap().replace("portcullis.js", "portcullis.mjs");
    fs::write(&script, text).unwrap();
    let drive = |command: &str, state: &Path| {
        let mut node = std::process::Command::new("node");
        node.arg(&script).arg(world.workspace()).arg(command).env_clear().env("HOME", world.home());
        node.env("PATH", std::env::var_os("PATH").unwrap()).env("PORTCULLIS_CONFIG", world.config());
        let output = node.env("PORTCULLIS_STATE", state).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(drive("ls", &world.state()), "runs\nfrozen\n");
    let denied = drive("rm -rf /", &world.state());
    assert!(denied.contains("blocked") && denied.contains("fs.delete-root"), "{denied}");
    let broken = drive("ls", Path::new("/dev/null/x"));
    assert!(broken.contains("blocked") && broken.contains("does not run"), "{broken}");
}
