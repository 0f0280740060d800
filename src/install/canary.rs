//! Whether an installed hook holds: events like the program's own, sent through what stands in the program's configuration,
//! started as the program starts it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::setups::{Bases, Content, OWN_MARK, Options, Scope, wanted};
use super::{InstallError, json as edit};
use crate::call::Digest;
use crate::files::{self, Author};
use crate::hook::answer::Answer;
use crate::hook::host::{EventRow, Host, Is, Kind, Named};

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Files that have the hook in them.
    pub files: Vec<PathBuf>,
    /// Events, and the command that is started for each.
    pub events: Vec<(String, String)>,
    pub probes: Vec<Probe>,
    /// What lets calls through that ought to be judged, a sentence each.
    pub problems: Vec<String>,
}

/// One event that was sent.
#[derive(Debug)]
pub struct Probe {
    pub what: &'static str,
    pub holds: bool,
    pub took: Duration,
    /// What came instead of what ought to.
    pub instead: Option<String>,
}

/// Stands for whatever a reason says.
const ANY: &str = "any reason";

/// Looks at both places of a program's configuration, and sends events through what is there.
///
/// # Errors
///
/// When the program has no configuration that is known.
pub fn check(host: &'static Host, bases: &Bases) -> Result<Report, InstallError> {
    let mut report = Report::default();
    for scope in [Scope::User, Scope::Project] {
        let options = Options { scope, words: Vec::new(), mcp: false };
        let files = wanted(host, &options, bases)?;
        let mut missing = Vec::new();
        let before = report.events.len();
        for file in &files {
            match found(host, &file.path, &file.content) {
                Ok(found) => {
                    if !found.events.is_empty() {
                        report.files.push(file.path.clone());
                    }
                    report.events.extend(found.events);
                    report.problems.extend(found.problems);
                    missing.extend(found.missing);
                }
                Err(error) => report.problems.push(format!("{}: {error}", file.path.display())),
            }
        }
        if report.events.len() > before {
            let told = |event: &String| format!("the hook is not set up for the event {event}: install it again");
            report.problems.extend(missing.iter().map(told));
        }
    }
    let asked = host.events.iter().find(|row| row.kind == Kind::Uses);
    match (asked, report.events.iter().find(|(event, _)| asked.is_some_and(|row| stands_for(event, row)))) {
        (Some(row), Some((_, command))) => {
            let command = command.clone();
            report.probes = probes(host, row, &command, &bases.project);
            let broken = report.probes.iter().filter(|probe| !probe.holds);
            let told = |probe: &Probe| format!("{}: {}", probe.what, probe.instead.as_deref().unwrap_or("no answer"));
            report.problems.extend(broken.map(told).collect::<Vec<_>>());
        }
        _ if report.events.is_empty() => {
            report.problems.push(format!("nothing is installed: run `portcullis install {}`", host.name));
        }
        _ => report.problems.push("the hook is not asked before tools are used: install it again".to_owned()),
    }
    Ok(report)
}

/// Configurations may name an event in another way than the event itself does.
fn stands_for(configured: &str, row: &EventRow) -> bool {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    plain(configured) == plain(row.name)
}

#[derive(Default)]
struct Found {
    events: Vec<(String, String)>,
    missing: Vec<String>,
    problems: Vec<String>,
}

fn found(host: &Host, path: &Path, content: &Content) -> io::Result<Found> {
    let mut found = Found::default();
    let text = files::read_text(path, Author::Anyone)?;
    match (content, text) {
        (Content::Json(edits), text) => {
            let value = match text {
                None => Value::Null,
                Some(text) => edit::read(&text).map_err(io::Error::other)?,
            };
            for edit in edits {
                let edit::JsonEdit::Element { at, value: wanted } = edit else { continue };
                let event = at.last().copied().unwrap_or_default();
                let list = at.iter().try_fold(&value, |value, name| value.get(name)).and_then(Value::as_array);
                let ours = list.into_iter().flatten().find(|hook| edit::is_ours(hook, host.name));
                let Some(command) = ours.and_then(|hook| command_of(hook, host.name)) else {
                    found.missing.push(event.to_owned());
                    continue;
                };
                // What makes the program block where the hook itself fails.
                for closing in [r#""onFailure":"block""#, r#""failClosed":true"#] {
                    let has = |value: &Value| value.to_string().contains(closing);
                    if has(wanted) && !ours.is_some_and(has) {
                        found
                            .problems
                            .push(format!("{event}: {closing} is missing, so a failure of the hook goes unnoticed"));
                    }
                }
                found.events.push((event.to_owned(), command));
            }
            if value.get("disableAllHooks") == Some(&Value::Bool(true)) {
                found.problems.push("\"disableAllHooks\" is set: no hook is started".to_owned());
            }
        }
        (Content::Own { .. }, Some(text)) if text.contains(OWN_MARK) => found.events.extend(own(host, path, &text)),
        (Content::Own { .. }, _) => {
            found.missing.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        (Content::Toml(_), _) => {}
    }
    Ok(found)
}

/// The command that a hook, or the one of ours in a group, starts.
fn command_of(hook: &Value, host: &str) -> Option<String> {
    match hook {
        Value::Object(members) => {
            let own = ["command", "bash"].iter().find_map(|name| members.get(*name)?.as_str());
            own.filter(|command| edit::calls_us(command, host))
                .map(str::to_owned)
                .or_else(|| members.get("hooks")?.as_array()?.iter().find_map(|hook| command_of(hook, host)))
        }
        _ => None,
    }
}

/// The events of a file of our own.
fn own(host: &Host, path: &Path, text: &str) -> Vec<(String, String)> {
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    if let Some(command) = line("exec ") {
        let event = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return vec![(event, command.to_owned())];
    }
    let program = line("const PROGRAM = ").and_then(|text| serde_json::from_str::<String>(text).ok());
    let words = line("const ARGUMENTS = ").and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let (Some(program), Some(words)) = (program, words) else { return Vec::new() };
    let command =
        [program].into_iter().chain(words).map(|word| super::setups::shell(&word)).collect::<Vec<_>>().join(" ");
    let asked = host.events.iter().filter(|row| row.kind == Kind::Uses || row.kind == Kind::Ends);
    asked.map(|row| (row.name.to_owned(), command.clone())).collect()
}

/// Sends one call that is fine, one that is not, and something that is no event.
fn probes(host: &Host, row: &EventRow, command: &str, workspace: &Path) -> Vec<Probe> {
    let event = |shell: &str| event(host, row, shell, workspace).to_string();
    let cases = [
        ("a harmless command goes on", event("true"), Answer::goes_on(host, row)),
        ("a destructive command is blocked", event("rm -rf /"), Answer::block(host, Some(row), ANY)),
        ("what is no event is blocked", "{".to_owned(), Answer::block(host, None, ANY)),
    ];
    let probe = |(what, event, expected): (_, String, Answer)| {
        let began = Instant::now();
        let got = start(command, workspace, &event);
        let took = began.elapsed();
        let instead = match got {
            Err(error) => Some(format!("the hook cannot be started: {error}")),
            Ok(got) if same(&expected, &got) => None,
            Ok(got) => Some(format!("exit code {}, and it said: {}{}", got.code, got.stdout.trim(), got.stderr.trim())),
        };
        Probe { what, holds: instead.is_none(), took, instead }
    };
    cases.into_iter().map(probe).collect()
}

/// An event as the program would send it, by its table.
fn event(host: &Host, row: &EventRow, command: &str, workspace: &Path) -> Value {
    let mut event = json!({});
    let mut put = |places: &[&str], value: Value| {
        if let Some(place) = places.first() {
            set(&mut event, place, value);
        }
    };
    let here = Value::from(workspace.to_string_lossy());
    let shell = host.tools.iter().find_map(|tool| match &tool.is {
        Is::Call("Bash", arguments) => Some((tool.names.first()?, arguments.first()?.theirs.first()?)),
        _ => None,
    });
    put(host.fields.event, Value::from(row.name));
    // A session stays in the workspace that it began in; this one is the project's.
    put(host.fields.session, Value::from(format!("doctor-{}", Digest::of(workspace.as_os_str().as_encoded_bytes()))));
    put(host.fields.workspace, here.clone());
    put(host.fields.cwd, here);
    if let Some(mode) = host.modes.iter().find(|mode| mode.name == "default") {
        put(host.fields.mode, Value::from(mode.name));
    }
    if let Some((name, argument)) = shell {
        match &row.tool {
            Named::At(places) => put(places, Value::from(*name)),
            Named::McpOr { or, .. } => put(&[or], Value::from(*name)),
            Named::Always(_) | Named::Mcp { .. } | Named::Nothing => {}
        }
        let at = row.input.first().copied().unwrap_or_default();
        put(&[&format!("{at}/{argument}")], Value::from(command));
    }
    event
}

/// Puts a value at a JSON Pointer, with what has to be around it.
fn set(value: &mut Value, place: &str, new: Value) {
    let mut at = value;
    for name in place.split('/').skip(1) {
        at = match name.parse::<usize>() {
            Ok(_) => {
                if !at.is_array() {
                    *at = json!([null]);
                }
                match at.get_mut(0) {
                    Some(first) => first,
                    None => return,
                }
            }
            Err(_) => {
                if !at.is_object() {
                    *at = json!({});
                }
                match at.as_object_mut() {
                    Some(members) => members.entry(name).or_insert(Value::Null),
                    None => return,
                }
            }
        };
    }
    *at = new;
}

/// Starts a hook as programs do: by a shell, in the project, with the event on standard input.
fn start(command: &str, workspace: &Path, event: &str) -> io::Result<Answer> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read it answers all the same.
        let _ = stdin.write_all(event.as_bytes());
    }
    let output = child.wait_with_output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    // A hook that a signal ended has no code; no program takes that for an answer.
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
    Ok(Answer { stdout: text(output.stdout), stderr: text(output.stderr), code })
}

/// Whether an answer has the form that is expected, whatever its reason is.
fn same(expected: &Answer, got: &Answer) -> bool {
    fn alike(expected: &Value, got: &Value) -> bool {
        match (expected, got) {
            (Value::String(text), Value::String(_)) if text == ANY => true,
            (Value::Object(expected), Value::Object(got)) => {
                expected.len() == got.len()
                    && expected.iter().all(|(name, value)| got.get(name).is_some_and(|got| alike(value, got)))
            }
            _ => expected == got,
        }
    }
    let said = match (serde_json::from_str(&expected.stdout), serde_json::from_str(&got.stdout)) {
        (Ok(expected), Ok(got)) => alike(&expected, &got),
        _ => expected.stdout.trim() == got.stdout.trim(),
    };
    said && expected.code == got.code && expected.stderr.trim().is_empty() == got.stderr.trim().is_empty()
}
