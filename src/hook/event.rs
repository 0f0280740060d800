//! An event of an agent's own program, read by the program's table.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::call::{Digest, Mode};
use crate::daemon::hosted::{HostErrand, Use, What};
use crate::gateway::Ended;
use crate::hook::host::{EventRow, Host, Kind, Named, at};
use crate::hook::{Terms, Unreadable, map};

/// The most bytes of an event.
pub const LARGEST: usize = 8 << 20;
/// The longest name of a session.
const LONGEST_SESSION: usize = 200;

/// What an event says.
#[derive(Debug)]
pub struct Event {
    pub session: String,
    /// Where the session works, should it begin now.
    pub here: Option<PathBuf>,
    pub cwd: Option<PathBuf>,
    pub mode: Option<Mode>,
    /// Whether a person is asked here where the answer says so.
    pub asks: bool,
    /// Whether the mode leaves room for a person's answer.
    pub attended: bool,
    pub about: About,
}

/// What it is about.
#[derive(Debug)]
pub enum About {
    Begins,
    Uses(ToolUse),
    Ends { key: String, ended: Ended },
}

/// A tool that is to be used.
#[derive(Debug)]
pub struct ToolUse {
    pub calls: Vec<Use>,
    pub key: String,
    pub id: Option<String>,
    /// The arguments in the program's own form.
    pub input: Value,
}

/// Which event this is. `named` is what the command line says.
pub fn row(host: &'static Host, event: &Value, named: Option<&str>) -> Result<&'static EventRow, Unreadable> {
    let told = at(event, host.fields.event).map(|name| name.as_str().ok_or(Unreadable::Missing("the event's name")));
    let told = told.transpose()?;
    let name = match (named, told) {
        (Some(named), Some(told)) if named != told => {
            return Err(Unreadable::Event { name: format!("{told}, and --event says {named}"), host: host.title });
        }
        (named, told) => named.or(told).ok_or(Unreadable::Missing("the event's name"))?,
    };
    host.event(name).ok_or_else(|| Unreadable::Event { name: shown(name), host: host.title })
}

/// Reads the event.
pub fn read(host: &Host, row: &EventRow, event: &Value) -> Result<Event, Unreadable> {
    let session = match at(event, host.fields.session) {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        _ => return Err(Unreadable::Missing("the session's name")),
    };
    if session.len() > LONGEST_SESSION || session.chars().any(|c| c.is_control() || c == '/') {
        return Err(Unreadable::Session(shown(&session)));
    }
    let mode = match at(event, host.fields.mode) {
        None => None,
        Some(mode) => {
            let name = mode.as_str().ok_or(Unreadable::Missing("the mode's name"))?;
            Some(host.mode(name).ok_or_else(|| Unreadable::Mode { name: shown(name), host: host.title })?)
        }
    };
    let path = |places: &[&str]| at(event, places).and_then(Value::as_str).filter(|path| !path.is_empty());
    let cwd = path(host.fields.cwd).map(PathBuf::from);
    let said = host.fields.workspace_variable.and_then(std::env::var_os).map(PathBuf::from);
    let here = said.or_else(|| path(host.fields.workspace).map(PathBuf::from)).or_else(|| cwd.clone());
    Ok(Event {
        session: format!("{}:{session}", host.name),
        here: here.filter(|here| here.is_absolute()),
        cwd: cwd.filter(|cwd| cwd.is_absolute()),
        mode: mode.and_then(|mode| mode.mode),
        asks: row.asks && mode.is_none_or(|mode| mode.asks),
        attended: mode.is_none_or(|mode| mode.asks),
        about: about(host, row, event)?,
    })
}

fn about(host: &Host, row: &EventRow, event: &Value) -> Result<About, Unreadable> {
    let Some(tool) = tool(&row.tool, event)? else { return Ok(About::Begins) };
    let input = match at(event, row.input) {
        _ if row.input.is_empty() => event.clone(),
        // Some programs pass the arguments as a text.
        Some(Value::String(text)) => crate::json::parse(text.as_bytes()).map_err(Unreadable::Json)?,
        Some(input) => input.clone(),
        None => json!({}),
    };
    let id = at(event, host.fields.id).and_then(Value::as_str).map(str::to_owned);
    // Without an identifier the same tool with the same arguments is the same use.
    let same = || Digest::of_json(&json!([tool, input])).to_string();
    let key = id.clone().unwrap_or_else(same);
    match row.kind {
        Kind::Begins | Kind::Prompt => Ok(About::Begins),
        Kind::Uses | Kind::Permission => {
            let (calls, _) = map::calls(host, &tool, &input)?;
            // What is asked for at the program's own prompt was judged before, and its end is that one's.
            let key = if row.kind == Kind::Permission { format!("permission {key}") } else { key };
            Ok(About::Uses(ToolUse { calls, key, id, input }))
        }
        Kind::Ends | Kind::Failed => {
            let untrusted = map::calls(host, &tool, &input).is_ok_and(|(_, untrusted)| untrusted);
            Ok(About::Ends { key, ended: ended(row, event, untrusted) })
        }
    }
}

fn tool(named: &Named, event: &Value) -> Result<Option<String>, Unreadable> {
    let text = |place: &str| event.pointer(place).and_then(Value::as_str).filter(|text| !text.is_empty());
    let missing = Unreadable::Missing("the tool's name");
    Ok(Some(match named {
        Named::Nothing => return Ok(None),
        Named::Always(name) => (*name).to_owned(),
        Named::At(places) => at(event, places).and_then(Value::as_str).ok_or(missing)?.to_owned(),
        Named::Mcp { server, tool } => match (text(server), text(tool)) {
            (Some(server), Some(tool)) => format!("mcp__{server}__{tool}"),
            // A server without a name has tools all the same.
            (None, Some(tool)) => format!("mcp__unnamed__{tool}"),
            (_, None) => return Err(missing),
        },
        Named::McpOr { server, tool, or } => match (text(server), text(tool)) {
            (Some(server), Some(tool)) => format!("mcp__{server}__{tool}"),
            _ => text(or).ok_or(missing)?.to_owned(),
        },
    }))
}

/// What came of it, as far as the event tells. What the program says is not known to be true; it decides nothing.
fn ended(row: &EventRow, event: &Value, untrusted: bool) -> Ended {
    let result = at(event, row.result);
    let text = match result {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let code = ["exit_code", "exitCode", "code"].iter().find_map(|name| result?.get(name)?.as_i64());
    let says_failed = |name: &str, bad: bool| result.and_then(|r| r.get(name)).and_then(Value::as_bool) == Some(bad);
    let failed = row.kind == Kind::Failed
        || says_failed("is_error", true)
        || says_failed("isError", true)
        || says_failed("success", false);
    Ended {
        code: code.and_then(|code| i32::try_from(code).ok()),
        failure: failed.then(|| text.chars().take(500).collect()),
        output_bytes: text.len() as u64,
        output_digest: result.is_some().then(|| Digest::of(&text)),
        untrusted,
    }
}

impl Event {
    /// The errand that the event is.
    pub fn errand(&self, host: &Host, terms: &Terms, current: &Path) -> HostErrand {
        let what = match &self.about {
            About::Begins => What::Begins,
            About::Uses(used) => What::Uses {
                calls: used.calls.clone(),
                key: used.key.clone(),
                id: used.id.clone(),
                asks: self.asks || (terms.asks && self.attended),
            },
            About::Ends { key, ended } => What::Ends { key: key.clone(), ended: ended.clone() },
        };
        HostErrand {
            agent: terms.agent.clone().unwrap_or_else(|| host.name.to_owned()),
            chosen: terms.agent.is_some(),
            session: self.session.clone(),
            here: self.here.clone().unwrap_or_else(|| current.to_owned()),
            cwd: self.cwd.clone(),
            mode: self.mode,
            confined: terms.confine.clone().filter(|_| self.confinable()),
            what,
        }
    }

    /// Whether it is a shell command, which can be put into the sandbox.
    pub fn confinable(&self) -> bool {
        match &self.about {
            About::Uses(used) => used.calls.len() == 1 && used.calls.iter().all(|call| call.tool == "Bash"),
            About::Begins | About::Ends { .. } => false,
        }
    }
}

/// A name from outside, safe to print and not too long.
fn shown(name: &str) -> String {
    name.chars().take(100).flat_map(char::escape_debug).collect()
}
