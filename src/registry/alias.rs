//! Other names for tools, rewritten to the real tool before anything is judged: a rule for `Bash` holds for `terminal`.

use serde_json::{Map, Value};

use super::CallError;
use super::canonical::object;

/// Names that other gateways and models use, each for one tool.
const PLAIN: &[(&str, &str)] = &[("terminal", "Bash"), ("grep_tool", "Grep"), ("glob_tool", "Glob")];

/// One name for four tools, told apart by the parameter `operation`.
const FILE_SYSTEM: &str = "file_system";
const OPERATIONS: &[(&str, &str)] = &[("read", "Read"), ("write", "Write"), ("edit", "Edit"), ("list", "ListDir")];

/// The other names of a tool, each with what distinguishes it.
pub fn aliases(tool: &str) -> impl Iterator<Item = String> {
    let plain = PLAIN.iter().filter(move |(_, real)| *real == tool).map(|(alias, _)| (*alias).to_owned());
    let files = OPERATIONS.iter().filter(move |(_, real)| *real == tool);
    plain.chain(files.map(|(operation, _)| format!("{FILE_SYSTEM} (operation: {operation})")))
}

/// The real tool and its arguments. A name that is no alias stays as it is.
pub(super) fn resolve(tool: String, arguments: Value) -> Result<(String, Value), CallError> {
    if tool == FILE_SYSTEM {
        let mut arguments = object(arguments, &tool)?;
        let real = operation(&mut arguments)?;
        return Ok((real.to_owned(), Value::Object(arguments)));
    }
    match PLAIN.iter().find(|(alias, _)| *alias == tool) {
        Some((_, real)) => Ok(((*real).to_owned(), arguments)),
        None => Ok((tool, arguments)),
    }
}

fn operation(arguments: &mut Map<String, Value>) -> Result<&'static str, CallError> {
    // Not `remove`, which would move the last argument into the gap.
    let named = arguments.shift_remove("operation");
    let named = named.as_ref().and_then(Value::as_str);
    let found = OPERATIONS.iter().find(|(word, _)| named == Some(word));
    found.map(|(_, real)| *real).ok_or(CallError::Operation)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(tool: &str, arguments: Value) -> Result<(String, Value), CallError> {
        resolve(tool.to_owned(), arguments)
    }

    #[test]
    fn every_alias_becomes_the_tool_it_stands_for() {
        for (alias, real) in [("terminal", "Bash"), ("grep_tool", "Grep"), ("glob_tool", "Glob"), ("Read", "Read")] {
            assert_eq!(resolved(alias, json!({"a": 1})).unwrap(), (real.to_owned(), json!({"a": 1})), "{alias}");
        }
        for (operation, real) in OPERATIONS {
            let got = resolved("file_system", json!({"operation": operation, "path": "p", "content": "c"})).unwrap();
            assert_eq!(got, ((*real).to_owned(), json!({"path": "p", "content": "c"})), "{operation}");
            assert!(aliases(real).any(|alias| alias.contains(operation)), "{real} does not name {operation}");
        }
        let text = resolved("file_system", json!(r#"{"operation": "read", "path": "p"}"#)).unwrap();
        assert_eq!(text, ("Read".to_owned(), json!({"path": "p"})), "a JSON text is the object it holds");
    }

    #[test]
    fn an_operation_that_is_not_there_is_refused() {
        for arguments in [json!({}), json!({"operation": "delete"}), json!({"operation": 1}), Value::Null] {
            assert_eq!(resolved("file_system", arguments.clone()).unwrap_err(), CallError::Operation, "{arguments}");
        }
        assert!(matches!(resolved("file_system", json!([1])), Err(CallError::NotAnObject(_))));
    }
}
