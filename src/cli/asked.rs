//! What the command line asks for: a call, and in whose name.

use serde_json::{Map, Value};

use crate::call::Origin;
use crate::cli::Failure;
use crate::cli::args::{ToolCall, Who};
use crate::daemon::errand::{Errand, presented};
use crate::gateway::{Caller, Gateway};
use crate::json;

/// Whose call it is, from the command line and the configuration.
pub(super) fn caller(gateway: &Gateway, who: &Who) -> Result<Caller, Failure> {
    Ok(described(who, String::new(), &Value::Null)?.caller(gateway, presented(gateway)?.as_ref(), None)?)
}

/// The call that the command line describes.
pub(super) fn errand(who: &Who, call: &ToolCall) -> Result<Errand, Failure> {
    let Some(tool) = &call.tool else {
        return Err(Failure::usage("name a tool; `portcullis tools` lists them"));
    };
    let arguments = match &call.json {
        Some(text) => json::parse(text.as_bytes()).map_err(|e| {
            Failure::usage(format!("--json is not valid JSON: {e}; expected an object such as '{{\"path\": \"a\"}}'"))
        })?,
        None => Value::Object(pairs(&call.pairs)?),
    };
    described(who, tool.clone(), &arguments)
}

/// A call of whoever the command line names.
pub(super) fn described(who: &Who, tool: String, arguments: &Value) -> Result<Errand, Failure> {
    Ok(Errand {
        agent: who.agent.clone(),
        session: who.session.clone(),
        workspace: who.workspace.clone(),
        here: std::env::current_dir()?,
        cwd: who.cwd.clone(),
        roams: false,
        tool,
        arguments: arguments.to_string(),
        origin: Origin::Cli,
        caller_id: None,
        while_connected: false,
    })
}

fn pairs(words: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut arguments = Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(Failure::usage(format!(
                "`{word}` is no key=value; write for instance command='ls -l' or path=README.md"
            )));
        };
        if arguments.insert(key.to_owned(), Value::from(value)).is_some() {
            return Err(Failure::usage(format!("`{key}` is given twice; give it once, or use --json for a list")));
        }
    }
    Ok(arguments)
}
