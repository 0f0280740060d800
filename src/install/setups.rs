//! Where each program's configuration lies, and what of ours belongs into it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::InstallError;
use super::json::{JsonEdit, TomlEdit};
use crate::hook::host::{EventRow, Host, Kind};

/// In every file that is ours as a whole.
pub const OWN_MARK: &str = "Written by `portcullis install`";
/// How long programs wait for the hook, in seconds. Above the hook's own limit.
const PATIENCE: u64 = 30;

/// For whom it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    User,
    Project,
}

/// What a person chose.
#[derive(Clone, Debug)]
pub struct Options {
    pub scope: Scope,
    /// Further words for the hook, such as `--confine build`.
    pub words: Vec<String>,
    /// Add the gateway as an MCP server as well.
    pub mcp: bool,
}

/// Where configurations lie.
#[derive(Clone, Debug)]
pub struct Bases {
    pub home: PathBuf,
    pub project: PathBuf,
    /// This program.
    pub program: PathBuf,
}

/// A file, and what belongs into it.
pub(super) struct Wanted {
    pub path: PathBuf,
    pub content: Content,
    /// For a file that is made.
    pub mode: u32,
}

pub(super) enum Content {
    Json(Vec<JsonEdit>),
    Toml(TomlEdit),
    /// The file is ours as a whole.
    Own {
        text: String,
        command: String,
    },
}

/// The events that the hook is set up for: those that decide, those that tell of an end, and the session's beginning.
fn registered(host: &Host) -> impl Iterator<Item = &'static EventRow> {
    host.events.iter().filter(|row| match row.kind {
        Kind::Begins => !row.name.ends_with("End"),
        Kind::Uses | Kind::Ends | Kind::Failed => true,
        // The program's own prompt comes after the decision, and nothing is decided about what a person wrote.
        Kind::Permission | Kind::Prompt => false,
    })
}

pub(super) fn wanted(host: &Host, options: &Options, bases: &Bases) -> Result<Vec<Wanted>, InstallError> {
    let program = bases.program.to_str().ok_or(InstallError::Program)?;
    let words = options.words.iter().map(|word| format!(" {}", shell(word))).collect::<String>();
    let command = format!("{} hook {}{words}", shell(program), host.name);
    let place = |user: &str, project: &str| match options.scope {
        Scope::User => bases.home.join(user),
        Scope::Project => bases.project.join(project),
    };
    let config = |variable: &str, user: &str, file: &str, project: &str| match options.scope {
        Scope::User => within(variable).unwrap_or_else(|| bases.home.join(user)).join(file),
        Scope::Project => bases.project.join(project).join(file),
    };
    let json = |path: PathBuf, edits: Vec<JsonEdit>| Wanted { path, content: Content::Json(edits), mode: 0o644 };
    let hooks = |entry: &dyn Fn(&EventRow) -> Value| {
        registered(host)
            .map(|row| JsonEdit::Element { at: vec!["hooks", row.name], value: entry(row) })
            .collect::<Vec<_>>()
    };
    let versioned = |mut edits: Vec<JsonEdit>| {
        edits.insert(0, JsonEdit::Needs { name: "version", value: json!(1) });
        edits
    };
    let mut files = match host.name {
        "claude" => {
            let entry = |row: &EventRow| {
                let mut hook = json!({ "type": "command", "command": command, "timeout": PATIENCE });
                if let (Kind::Uses, Some(hook)) = (row.kind, hook.as_object_mut()) {
                    hook.insert("onFailure".to_owned(), json!("block"));
                }
                matched(row, "*", hook)
            };
            vec![json(config("CLAUDE_CONFIG_DIR", ".claude", "settings.json", ".claude"), hooks(&entry))]
        }
        "codex" => {
            let entry = |row: &EventRow| {
                let hook = json!({ "type": "command", "command": command, "timeout": PATIENCE });
                matched(row, "*", hook)
            };
            vec![json(config("CODEX_HOME", ".codex", "hooks.json", ".codex"), hooks(&entry))]
        }
        "gemini" => {
            let entry = |row: &EventRow| {
                // This program counts in milliseconds.
                let hook = json!({
                    "name": "portcullis", "type": "command", "command": command, "timeout": PATIENCE * 1000,
                });
                matched(row, ".*", hook)
            };
            vec![json(place(".gemini/settings.json", ".gemini/settings.json"), hooks(&entry))]
        }
        "cursor" => {
            let entry = |row: &EventRow| {
                let mut hook = json!({ "command": command, "timeout": PATIENCE });
                if let Some(hook) = hook.as_object_mut() {
                    if row.kind == Kind::Uses {
                        hook.insert("failClosed".to_owned(), json!(true));
                    }
                    // Shell commands, MCP tools and reads have events of their own.
                    if matches!(row.name, "preToolUse" | "postToolUse") {
                        let matcher = "Write|StrReplace|Edit|TabWrite|Delete|Grep|Glob|LS|WebFetch|WebSearch";
                        hook.insert("matcher".to_owned(), json!(matcher));
                    }
                }
                hook
            };
            vec![json(place(".cursor/hooks.json", ".cursor/hooks.json"), versioned(hooks(&entry)))]
        }
        "copilot" => {
            let entry = |row: &EventRow| {
                let command = format!("{command} --event {}", row.name);
                json!({ "type": "command", "bash": command, "timeoutSec": PATIENCE })
            };
            let path = place(".copilot/hooks/portcullis.json", ".github/hooks/portcullis.json");
            vec![json(path, versioned(hooks(&entry)))]
        }
        "windsurf" => {
            let entry = |_: &EventRow| json!({ "command": command, "show_output": true });
            vec![json(place(".codeium/windsurf/hooks.json", ".windsurf/hooks.json"), hooks(&entry))]
        }
        "openhands" => {
            let name = |row: &EventRow| match row.name {
                "PreToolUse" => "pre_tool_use",
                "PostToolUse" => "post_tool_use",
                _ => "session_start",
            };
            let hook = json!({ "type": "command", "command": command, "timeout": PATIENCE });
            let entry = json!({ "matcher": "*", "hooks": [hook] });
            let edits = registered(host).map(|row| JsonEdit::Element { at: vec![name(row)], value: entry.clone() });
            vec![json(place(".openhands/hooks.json", ".openhands/hooks.json"), edits.collect())]
        }
        "cline" => {
            let text =
                format!("#!/bin/sh\n# {OWN_MARK} cline`; `portcullis uninstall cline` removes it.\nexec {command}\n");
            let dir = place("Documents/Cline/Hooks", ".clinerules/hooks");
            let file = |row: &EventRow| Wanted {
                path: dir.join(row.name),
                content: Content::Own { text: text.clone(), command: command.clone() },
                mode: 0o755,
            };
            registered(host).map(file).collect()
        }
        "opencode" => {
            let words: Vec<&str> =
                ["hook", host.name].into_iter().chain(options.words.iter().map(String::as_str)).collect();
            let text = include_str!("opencode.js")
                .replace("@MARK@", OWN_MARK)
                .replace("@PROGRAM@", &json!(program).to_string())
                .replace("@ARGUMENTS@", &json!(words).to_string());
            let path = place(".config/opencode/plugins/portcullis.js", ".opencode/plugins/portcullis.js");
            vec![Wanted { path, content: Content::Own { text, command: command.clone() }, mode: 0o644 }]
        }
        _ => {
            let advice =
                "let it start `portcullis hook generic` before each tool, as README.md says under \"Other agents\"";
            return Err(InstallError::NoSetup { title: host.title, advice });
        }
    };
    if options.mcp {
        server(host, options, bases, program, &mut files)?;
    }
    Ok(files)
}

/// A hook for every tool, or for the session itself, in the form that several programs share.
fn matched(row: &EventRow, every_tool: &str, hook: Value) -> Value {
    match row.kind {
        Kind::Begins => json!({ "hooks": [hook] }),
        _ => json!({ "matcher": every_tool, "hooks": [hook] }),
    }
}

/// The gateway as an MCP server of the program's.
fn server(
    host: &Host,
    options: &Options,
    bases: &Bases,
    program: &str,
    files: &mut Vec<Wanted>,
) -> Result<(), InstallError> {
    let arguments = ["mcp", "serve"];
    let member = || JsonEdit::Member {
        at: vec!["mcpServers"],
        name: "portcullis",
        value: json!({ "command": program, "args": arguments }),
    };
    let place = |user: &str, project: &str| match options.scope {
        Scope::User => bases.home.join(user),
        Scope::Project => bases.project.join(project),
    };
    let path = match host.name {
        "claude" => place(".claude.json", ".mcp.json"),
        "cursor" => place(".cursor/mcp.json", ".cursor/mcp.json"),
        "gemini" => {
            // It is the file of the hooks.
            for file in files {
                if let Content::Json(edits) = &mut file.content {
                    edits.push(member());
                }
            }
            return Ok(());
        }
        "codex" => {
            let arguments = arguments.map(str::to_owned).to_vec();
            let edit = TomlEdit { table: "mcp_servers", name: "portcullis", command: program.to_owned(), arguments };
            let path = match options.scope {
                Scope::User => within("CODEX_HOME").unwrap_or_else(|| bases.home.join(".codex")).join("config.toml"),
                Scope::Project => bases.project.join(".codex/config.toml"),
            };
            files.push(Wanted { path, content: Content::Toml(edit), mode: 0o644 });
            return Ok(());
        }
        _ => {
            let advice = "add the MCP server `portcullis mcp serve` by hand, and leave --mcp out";
            return Err(InstallError::NoSetup { title: host.title, advice });
        }
    };
    files.push(Wanted { path, content: Content::Json(vec![member()]), mode: 0o644 });
    Ok(())
}

/// A directory that the program's own variable names.
fn within(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A word for a POSIX shell.
pub(super) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
