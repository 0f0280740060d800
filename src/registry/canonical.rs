//! From a request as it arrived to a call that can be judged.

use std::path::{Component, Path, PathBuf};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::coerce::coerce_arguments;
use super::{Definition, Entry, Registry, Subject};
use super::{alias, near};
use crate::call::{Call, Origin, Request};

/// Arguments larger than this are refused, in bytes of JSON.
pub const LARGEST_ARGUMENTS: usize = 1024 * 1024;
/// Arguments that nest deeper than this are refused.
pub const DEEPEST_ARGUMENTS: usize = 64;
/// What is wrong with the arguments is listed up to this many times.
const MOST_PROBLEMS: usize = 10;

/// Tools that are named where one is not there.
const MOST_NAMES: usize = 40;

/// Why a request is no call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("there is no tool `{name}`{}: the tools are {}", meant(name, known), or_none(known))]
    UnknownTool { name: String, known: Vec<String> },
    /// The tool is there, for others.
    #[error("the tool `{name}` is not among the allowed_tools of agent `{agent}`: those are {}", or_none(known))]
    NotAllowed { name: String, agent: String, known: Vec<String> },
    #[error("the arguments of `{0}` are not a JSON object")]
    NotAnObject(String),
    #[error(
        "the arguments of `{tool}` are {size} bytes of JSON, and at most {LARGEST_ARGUMENTS} are taken: \
        send less at a time"
    )]
    TooLarge { tool: String, size: usize },
    #[error("the `operation` of `file_system` is one of read, write, edit, list")]
    Operation,
    #[error("the arguments of `{0}` nest deeper than {DEEPEST_ARGUMENTS} levels")]
    TooDeep(String),
    #[error("the arguments of `{tool}` do not fit: {}", problems.join("; "))]
    Invalid { tool: String, problems: Vec<String> },
    #[error(
        "the working directory `{0}` cannot be used: give it inside the workspace, or absolute, without control characters"
    )]
    WorkingDirectory(String),
}

fn meant(name: &str, known: &[String]) -> String {
    let near = near::nearest(name, known.iter().map(String::as_str));
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let told = names.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST_NAMES);
    if more == 0 { told } else { format!("{told} and {more} more") }
}

impl Registry {
    /// Makes a call of a request: finds the tool, puts the usual mistakes right, and validates the arguments against
    /// the tool's schema. What comes out is what is judged, and what runs.
    pub fn canonicalise(&self, request: Request, workspace: &Path) -> Result<Call, CallError> {
        let Request { tool, arguments, cwd, principal, origin, caller_id } = request;
        let arguments = bounded(arguments, &tool)?;
        let (tool, arguments) = alias::resolve(tool, arguments)?;
        let tool = self.by_original(&tool).map(str::to_owned).unwrap_or(tool);
        let callable = |entry: &&Entry| entry.tool.runs_here() || origin == Origin::Hook;
        let Some(entry) = self.tools.get(tool.as_str()).filter(callable) else {
            let known = self.listed_names();
            return Err(CallError::UnknownTool { name: printable(&tool), known });
        };
        let mut arguments = object(arguments, &tool)?;
        let definition = entry.tool.definition();
        coerce_arguments(&mut arguments, &definition.parameters);
        let arguments = validated(arguments, definition, &entry.validator)?;
        let start = directory(cwd.as_deref(), workspace)?;
        let cwd = match arguments.get("cwd").and_then(Value::as_str) {
            // A tool that runs a command takes its own working directory; from here on it is the call's.
            Some(own) if runs_command(definition) => directory(Some(Path::new(own)), &start)?,
            _ => start,
        };
        Ok(Call { id: Uuid::now_v7().to_string(), tool, arguments, cwd, principal, origin, caller_id })
    }
}

fn runs_command(definition: &Definition) -> bool {
    definition.subjects.iter().any(|subject| matches!(subject, Subject::Command { .. }))
}

/// Sees to it that everything that works on the arguments later is bounded, in time and in depth.
fn bounded(arguments: Value, tool: &str) -> Result<Value, CallError> {
    let (depth, size) = measure(&arguments);
    if depth > DEEPEST_ARGUMENTS {
        dismantle(arguments);
        return Err(CallError::TooDeep(printable(tool)));
    }
    if size > LARGEST_ARGUMENTS {
        return Err(CallError::TooLarge { tool: printable(tool), size });
    }
    Ok(arguments)
}

/// The depth and the approximate size of a value, without recursion.
fn measure(value: &Value) -> (usize, usize) {
    let mut open = vec![(value, 1)];
    let (mut deepest, mut size) = (0, 0usize);
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        size += match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(_) => 8,
            Value::String(text) => text.len() + 3,
            Value::Array(items) => {
                open.extend(items.iter().map(|item| (item, depth + 1)));
                2
            }
            Value::Object(map) => {
                open.extend(map.values().map(|item| (item, depth + 1)));
                map.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
        };
    }
    (deepest, size)
}

/// Drops a deep value level by level; its own drop would recurse to the bottom.
fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.into_iter().map(|(_, item)| item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

pub(super) fn object(arguments: Value, tool: &str) -> Result<Map<String, Value>, CallError> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(text) => match crate::json::parse(text.as_bytes()) {
            Ok(value @ Value::Object(_)) => object(bounded(value, tool)?, tool),
            Err(error) if error.is_data() => {
                Err(CallError::Invalid { tool: tool.to_owned(), problems: vec![error.to_string()] })
            }
            _ => Err(CallError::NotAnObject(tool.to_owned())),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(CallError::NotAnObject(tool.to_owned())),
    }
}

fn validated(
    arguments: Map<String, Value>,
    definition: &Definition,
    validator: &Validator,
) -> Result<Map<String, Value>, CallError> {
    let value = Value::Object(arguments);
    // What coercion read out of texts is bounded again.
    let value = bounded(value, &definition.name)?;
    let mut errors = validator.iter_errors(&value);
    let mut problems: Vec<String> =
        errors.by_ref().take(MOST_PROBLEMS).map(|error| explain(&error, &definition.parameters)).collect();
    let more = errors.count();
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    match value {
        Value::Object(arguments) if problems.is_empty() => Ok(arguments),
        _ => Err(CallError::Invalid { tool: definition.name.to_string(), problems }),
    }
}

fn explain(error: &ValidationError<'_>, parameters: &Value) -> String {
    let place = error.instance_path().as_str();
    let place = if place.is_empty() { String::new() } else { format!(" at `{}`", printable(place)) };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("the required parameter `{}` is missing{place}", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let unknown: Vec<String> = unexpected.iter().map(|name| format!("`{}`", printable(name))).collect();
            let known = match parameters.get("properties").and_then(Value::as_object) {
                Some(known) if place.is_empty() => {
                    let known: Vec<&str> = known.keys().map(String::as_str).collect();
                    format!(" (the parameters are {})", known.join(", "))
                }
                _ => String::new(),
            };
            format!("unknown parameter {}{place}{known}", unknown.join(", "))
        }
        // Masked: the value itself can be long, or secret.
        _ => format!("{}{place}", error.masked()),
    }
}

/// The directory that relative paths start at. `..` is taken by name: a working directory has no links of its own to
/// hide behind, since it is looked up like every other path later.
fn directory(given: Option<&Path>, workspace: &Path) -> Result<PathBuf, CallError> {
    let Some(given) = given else { return Ok(workspace.to_owned()) };
    let mut directory = PathBuf::new();
    for component in workspace.join(given).components() {
        match component {
            Component::ParentDir => {
                directory.pop();
            }
            Component::CurDir => {}
            part => directory.push(part),
        }
    }
    let text = given.to_str().filter(|text| !text.is_empty() && !text.chars().any(char::is_control));
    if text.is_none() || !directory.is_absolute() {
        return Err(CallError::WorkingDirectory(printable(&given.to_string_lossy())));
    }
    Ok(directory)
}

/// A name from outside, safe to print and not too long.
fn printable(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}
