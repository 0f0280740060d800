//! Servers as other programs declare them: the `mcpServers` of Claude and Cursor, the `servers` of VS Code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::declared::{Declared, Parts, Source};
use crate::cli::Failure;

/// What a file declares, or why a part of it cannot be taken.
pub(super) type Found = Vec<Result<Declared, String>>;

/// Reads such a file.
pub(super) fn read(file: &Path) -> Result<Found, Failure> {
    let text = fs::read(file).map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
    let told = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let document = crate::json::parse(&text).map_err(|error| told(format!("not the JSON that is taken: {error}")))?;
    let servers = ["mcpServers", "servers"].iter().find_map(|key| document.get(key)).and_then(Value::as_object);
    let servers = servers.ok_or_else(|| told("it has no `mcpServers` (or `servers`) object".to_owned()))?;
    Ok(servers.iter().filter(|(_, entry)| !is_off(entry)).map(|(name, entry)| declared(name, entry)).collect())
}

fn is_off(entry: &Value) -> bool {
    entry.get("disabled").and_then(Value::as_bool).unwrap_or(false)
}

fn declared(name: &str, entry: &Value) -> Result<Declared, String> {
    let refused = |why: String| format!("`{name}`: {why}");
    let entry = entry.as_object().ok_or_else(|| refused("it is no object".to_owned()))?;
    let kind = entry.get("type").or_else(|| entry.get("transport")).and_then(Value::as_str).unwrap_or_default();
    if kind == "sse" {
        return Err(refused(
            "the HTTP+SSE transport is not supported; its server may have a streamable HTTP address".into(),
        ));
    }
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let args = match entry.get("args") {
        None => Vec::new(),
        Some(args) => {
            let words = args.as_array().into_iter().flatten().map(|word| word.as_str().map(str::to_owned));
            words.collect::<Option<Vec<_>>>().ok_or_else(|| refused("`args` holds what is no text".to_owned()))?
        }
    };
    let command = text("command");
    let plain = command.iter().chain(&args).all(|word| !word.contains("${"));
    if !plain {
        return Err(refused("its command refers to variables; write it out with `portcullis mcp add`".to_owned()));
    }
    let parts = Parts {
        command,
        args,
        env: values(entry, "env").map_err(&refused)?,
        url: text("url").or_else(|| text("serverUrl")),
        headers: values(entry, "headers").map_err(&refused)?,
        ..Parts::default()
    };
    Declared::made(&fitting(name), parts).map_err(refused)
}

/// The name with what may not be in one replaced.
fn fitting(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let flat: String = name.chars().map(plain).take(32).collect();
    flat.trim_matches('-').to_owned()
}

fn values(entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, Source>, String> {
    let mut values = BTreeMap::new();
    for (name, given) in entry.get(key).and_then(Value::as_object).into_iter().flatten() {
        let text = match given {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => given.to_string(),
            _ => return Err(format!("`{key}.{name}` is no text")),
        };
        values.insert(
            name.clone(),
            source(&text).ok_or_else(|| {
                format!("`{key}.{name}` mixes text and variables; write it out with `portcullis mcp add`")
            })?,
        );
    }
    Ok(values)
}

/// `${NAME}` and `${env:NAME}` stand for variables.
fn source(text: &str) -> Option<Source> {
    if !text.contains("${") {
        return Some(Source::Text(text.to_owned()));
    }
    let inside = text.strip_prefix("${")?.strip_suffix('}')?;
    let variable = inside.strip_prefix("env:").unwrap_or(inside);
    let plain = !variable.is_empty() && variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then(|| Source::Env(variable.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Result<(String, String), String>> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        fs::write(&file, text).unwrap();
        let all = read(&file).unwrap();
        all.into_iter().map(|one| one.map(|made| (made.name.to_string(), made.text))).collect()
    }

    #[test]
    fn the_familiar_file_is_taken_as_it_is() {
        let all = found(
            r#"{ "mcpServers": {
                "file system!": { "command": "npx", "args": ["-y", "server", "/a b"], "env": { "T": "${env:TOKEN}", "N": 3 } },
                "remote": { "type": "http", "url": "https://h.example/mcp", "headers": { "Authorization": "x" } },
                "off": { "command": "x", "disabled": true },
                "old": { "type": "sse", "url": "https://h.example/sse" },
                "mixed": { "url": "https://h/", "headers": { "A": "Bearer ${T}" } },
                "empty": {}
            } }"#,
        );
        let text = "[upstreams.file-system]\ncommand = \"npx\"\nargs = [\"-y\", \"server\", \"/a b\"]\n\
                    env = { N = \"3\", T = { env = \"TOKEN\" } }\n";
        assert_eq!(all[0], Ok(("file-system".to_owned(), text.to_owned())));
        assert!(all[1].as_ref().is_ok_and(|(_, text)| text.contains("headers = { Authorization = \"x\" }")), "{all:?}");
        for (at, said) in [(2, "HTTP+SSE"), (3, "mixes text"), (4, "needs a `command`")] {
            assert!(all[at].as_ref().is_err_and(|why| why.contains(said)), "{at}: {all:?}");
        }
        assert_eq!(all.len(), 5);
    }
}
