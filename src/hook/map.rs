//! From a tool's use in an agent's own program to calls of ours, by the program's table.

use serde_json::{Map, Value, json};

use crate::daemon::hosted::Use;
use crate::hook::host::{Argument, Host, Is};
use crate::hook::{Unreadable, patch};
use crate::tools::hosted::{HOST_INTERNAL, HOST_TOOL, wrapped};

/// The most calls that one use may amount to.
const MOST: usize = 128;

/// The calls that the use of a tool amounts to, and whether what it brings in may be a stranger's. A tool that the table
/// does not know is judged under its own name: the gateway asks about what it does not know.
pub fn calls(host: &Host, tool: &str, input: &Value) -> Result<(Vec<Use>, bool), Unreadable> {
    let Some(row) = host.tool(tool) else {
        return Ok((vec![unknown(tool, input)?], tool.starts_with("mcp__")));
    };
    let calls = mapped(&row.is, tool, input)?;
    if calls.len() > MOST {
        return Err(Unreadable::TooMany { tool: tool.to_owned(), most: MOST });
    }
    let untrusted = row.untrusted || matches!(row.is, Is::Mcp { .. });
    Ok((calls, untrusted))
}

/// A tool without a row. A tool of the gateway's own MCP server is that very tool.
fn unknown(tool: &str, input: &Value) -> Result<Use, Unreadable> {
    let own = tool.strip_prefix("mcp__portcullis__");
    let named = own.is_some() || tool.starts_with("mcp__");
    Ok(match named {
        // The gateway finds out whether it knows a tool of this name.
        true => of(own.unwrap_or(tool), input.clone()),
        false => of(HOST_TOOL, wrapped(tool, input)),
    })
}

fn mapped(is: &Is, tool: &str, input: &Value) -> Result<Vec<Use>, Unreadable> {
    let missing = |what: &str| Unreadable::Argument { tool: tool.to_owned(), argument: what.to_owned() };
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| input.get(name)?.as_str());
        found.ok_or_else(|| missing(names.first().copied().unwrap_or_default()))
    };
    match is {
        Is::Call(ours, arguments) => Ok(vec![call(ours, arguments, input)?]),
        Is::Internal => Ok(vec![of(HOST_INTERNAL, wrapped(tool, input))]),
        Is::Mcp { server, tool, arguments } => {
            let name = format!("mcp__{}__{}", text(&[server])?, text(&[tool])?);
            let arguments = match input.get(arguments) {
                None | Some(Value::Null) => json!({}),
                Some(Value::String(text)) => crate::json::parse(text.as_bytes()).map_err(Unreadable::Json)?,
                Some(other) => other.clone(),
            };
            Ok(vec![unknown(&name, &arguments)?])
        }
        Is::By(argument, ways) => {
            let word = text(&[argument])?;
            match ways.iter().find(|(name, _)| *name == word) {
                Some((_, is)) => mapped(is, tool, input),
                None => Ok(vec![of(HOST_TOOL, wrapped(tool, input))]),
            }
        }
        Is::Edits { path, list, old, new } => {
            let path = text(path)?;
            let edits = input.get(list).and_then(Value::as_array).ok_or_else(|| missing(list))?;
            let edit = |edit: &Value| {
                let text = |name: &str| edit.get(name).and_then(Value::as_str).ok_or_else(|| missing(name));
                Ok(edit_of(path, text(old)?, text(new)?))
            };
            edits.iter().map(edit).collect()
        }
        Is::Patch(names) => {
            let changes = patch::read(text(names)?).map_err(Unreadable::Patch)?;
            Ok(changes.into_iter().map(|change| edit_of(&change.path, &change.old, &change.new)).collect())
        }
    }
}

/// A change of a file: of an empty text, its making.
fn edit_of(path: &str, old: &str, new: &str) -> Use {
    match old {
        "" => of("Write", json!({ "path": path, "content": new })),
        _ => of("Edit", json!({ "path": path, "old_string": old, "new_string": new })),
    }
}

fn call(ours: &str, arguments: &[Argument], input: &Value) -> Result<Use, Unreadable> {
    let mut mapped = Map::new();
    for argument in arguments {
        let found = argument.theirs.iter().find_map(|name| input.get(name)).filter(|found| !found.is_null());
        let value = match (found, argument.absent) {
            // Some programs pass a command as the words of a program call.
            (Some(Value::Array(words)), _) if argument.ours == "command" => Value::from(joined(words)?),
            (Some(value), _) => value.clone(),
            (None, Some(absent)) => Value::from(absent),
            (None, None) => continue,
        };
        mapped.insert(argument.ours.to_owned(), value);
    }
    let empty = |name: &str| mapped.get(name).and_then(Value::as_str) == Some("");
    if ours == "Edit" && empty("old_string") {
        let part = |name: &str| mapped.get(name).cloned().unwrap_or_default();
        return Ok(of("Write", json!({ "path": part("path"), "content": part("new_string") })));
    }
    Ok(of(ours, Value::Object(mapped)))
}

/// The words of a program call as a shell's text.
fn joined(words: &[Value]) -> Result<String, Unreadable> {
    let words = words.iter().map(Value::as_str).collect::<Option<Vec<&str>>>().ok_or(Unreadable::Words)?;
    if let [shell, flag, script] = words.as_slice()
        && matches!(shell.rsplit('/').next(), Some("bash" | "sh"))
        && matches!(*flag, "-c" | "-lc")
    {
        return Ok((*script).to_owned());
    }
    Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A word as a shell's text that stands for exactly this word.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn of(tool: &str, arguments: Value) -> Use {
    Use { tool: tool.to_owned(), arguments: arguments.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::hosts;

    fn map(host: &str, tool: &str, input: Value) -> Vec<(String, Value)> {
        let (calls, _) = calls(hosts::named(host).unwrap(), tool, &input).unwrap();
        calls.into_iter().map(|call| (call.tool, serde_json::from_str(&call.arguments).unwrap())).collect()
    }

    #[test]
    fn a_file_is_named_as_ours() {
        let read = map("claude", "Read", json!({"file_path": "/w/a", "limit": 3, "offset": null}));
        assert_eq!(read, [("Read".to_owned(), json!({"path": "/w/a", "limit": 3}))]);
        let made = map("claude", "Edit", json!({"file_path": "/w/a", "old_string": "", "new_string": "x"}));
        assert_eq!(made, [("Write".to_owned(), json!({"path": "/w/a", "content": "x"}))]);
        let two = json!({"file_path": "a", "edits": [
            {"old_string": "1", "new_string": "2"}, {"old_string": "", "new_string": "3"}]});
        let two = map("claude", "MultiEdit", two);
        assert_eq!(two.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(), ["Edit", "Write"]);
    }

    #[test]
    fn words_of_a_program_call_are_a_command_that_means_the_same() {
        let command = |words: Value| map("codex", "Bash", json!({"command": words}))[0].1["command"].clone();
        assert_eq!(command(json!(["bash", "-lc", "ls | wc"])), "ls | wc");
        assert_eq!(command(json!(["rm", "a b", "it's; ls"])), r"'rm' 'a b' 'it'\''s; ls'");
        assert_eq!(command(json!("ls")), "ls");
        assert!(calls(hosts::named("codex").unwrap(), "Bash", &json!({"command": [1]})).is_err());
    }

    #[test]
    fn a_tool_that_nobody_knows_is_judged_under_its_name() {
        assert_eq!(
            map("claude", "Teleport", json!([1])),
            [("HostTool".to_owned(), json!({"name": "Teleport", "arguments": {"input": [1]}}))]
        );
        let mail = ("mcp__gmail__send_email".to_owned(), json!({"to": "a"}));
        assert_eq!(map("claude", "mcp__gmail__send_email", json!({"to": "a"})), std::slice::from_ref(&mail));
        let told = json!({"server_name": "gmail", "tool_name": "send_email", "arguments": "{\"to\": \"a\"}"});
        assert_eq!(map("cline", "use_mcp_tool", told), [mail]);
        assert_eq!(map("claude", "mcp__portcullis__Bash", json!({"command": "ls"}))[0].0, "Bash");
    }

    #[test]
    fn an_argument_that_is_missing_is_said() {
        let error = calls(hosts::named("claude").unwrap(), "MultiEdit", &json!({"file_path": "a"})).unwrap_err();
        assert!(error.to_string().contains("`edits`"), "{error}");
    }
}
