//! Edits of JSON files that others write, too: comments, trailing commas, order and white space stay as they are.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table, value};

/// Something of ours in a file.
#[derive(Clone, Debug)]
pub enum JsonEdit {
    /// An element of the list at this place.
    Element { at: Vec<&'static str>, value: Value },
    /// A member of the object at this place.
    Member { at: Vec<&'static str>, name: &'static str, value: Value },
    /// A member that the file needs, and that stays.
    Needs { name: &'static str, value: Value },
}

/// A table of ours in a TOML file.
#[derive(Clone, Debug)]
pub struct TomlEdit {
    pub table: &'static str,
    pub name: &'static str,
    pub command: String,
    pub arguments: Vec<String>,
}

/// Why a file cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("it is no JSON ({0}); mend it first")]
    Json(String),
    #[error("`{0}` is there and of another kind than expected; mend it first")]
    Kind(String),
    #[error("it is no TOML ({0}); mend it first")]
    Toml(#[from] toml_edit::TomlError),
}

/// Whether this module edits files of this name.
pub fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json" || extension == "jsonc")
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    // Comments and trailing commas, and nothing else that a program might read otherwise.
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    CstRootNode::parse(text, &options).map_err(|error| EditError::Json(error.to_string()))
}

/// What such a file says.
pub fn read(text: &str) -> Result<Value, EditError> {
    Ok(parse(text)?.to_serde_value().unwrap_or_default())
}

/// The text with everything of ours in it, and nothing of ours that is older.
pub fn add(text: Option<&str>, host: &str, edits: &[JsonEdit]) -> Result<String, EditError> {
    let fresh = text.is_none_or(|text| text.trim().is_empty());
    let root = parse(if fresh { "{\n}\n" } else { text.unwrap_or_default() })?;
    let top = root.object_value().ok_or_else(|| EditError::Kind("the whole file".to_owned()))?;
    drop_old(&top, host, edits);
    for edit in edits {
        match edit {
            JsonEdit::Needs { name, value } => {
                if top.get(name).is_none() {
                    top.append(name, input(value));
                }
            }
            JsonEdit::Member { at, name, value } => {
                let object = object_at(&top, at)?;
                match object.get(name) {
                    Some(found) if found.to_serde_value().as_ref() == Some(value) => {}
                    Some(found) => found.set_value(input(value)),
                    None => drop(object.append(name, input(value))),
                }
            }
            JsonEdit::Element { at, value } => {
                let list = list_at(&top, at)?;
                if !list.elements().iter().any(|element| element.to_serde_value().as_ref() == Some(value)) {
                    list.append(input(value));
                }
            }
        }
    }
    Ok(root.to_string())
}

/// The text without anything of ours, for a file that somebody changed since.
pub fn remove(text: &str, host: &str, edits: &[JsonEdit]) -> Result<String, EditError> {
    let root = parse(text)?;
    let Some(top) = root.object_value() else { return Ok(text.to_owned()) };
    drop_old(&top, host, &[]);
    for edit in edits {
        if let JsonEdit::Member { at, name, .. } = edit
            && let Some(object) = at.iter().try_fold(top.clone(), |object, name| object.object_value(name))
            && let Some(found) = object.get(name)
        {
            found.remove();
        }
    }
    Ok(root.to_string())
}

/// Takes out the hooks of ours that are not among these. Lists and objects that are empty then go, too.
fn drop_old(top: &CstObject, host: &str, keep: &[JsonEdit]) {
    let kept = |element: &CstNode| {
        let found = element.to_serde_value();
        keep.iter().any(|edit| matches!(edit, JsonEdit::Element { value, .. } if found.as_ref() == Some(value)))
    };
    // Hooks lie in lists in `hooks`, or, of one program, at the top.
    let holders = top.object_value("hooks").into_iter().chain([top.clone()]);
    for holder in holders {
        for list in holder.properties() {
            let Some(array) = list.array_value() else { continue };
            let ours = |element: &CstNode| element.to_serde_value().is_some_and(|found| is_ours(&found, host));
            let (mut removed, elements) = (false, array.elements());
            for element in elements.into_iter().filter(|element| ours(element) && !kept(element)) {
                removed = true;
                take_out(element, host);
            }
            if removed && array.elements().is_empty() {
                list.remove();
            }
        }
    }
    if let Some(hooks) = top.get("hooks")
        && hooks.object_value().is_some_and(|hooks| hooks.properties().is_empty())
    {
        hooks.remove();
    }
}

/// Takes out an element, or, where others' hooks are in its group, ours from the group.
fn take_out(element: CstNode, host: &str) {
    let group = element.as_object().and_then(|object| object.array_value("hooks"));
    let Some(group) = group else { return element.remove() };
    let (ours, others): (Vec<CstNode>, Vec<CstNode>) =
        group.elements().into_iter().partition(|hook| hook.to_serde_value().is_some_and(|hook| is_ours(&hook, host)));
    if others.is_empty() {
        return element.remove();
    }
    ours.into_iter().for_each(CstNode::remove);
}

/// Whether a hook, or a group of hooks, calls us for this program.
pub fn is_ours(hook: &Value, host: &str) -> bool {
    match hook {
        Value::Object(members) => {
            let commands = ["command", "bash"].iter().filter_map(|name| members.get(*name)?.as_str());
            commands.into_iter().any(|command| calls_us(command, host))
                || members.get("hooks").is_some_and(|inner| is_ours(inner, host))
        }
        Value::Array(items) => items.iter().any(|item| is_ours(item, host)),
        _ => false,
    }
}

/// Whether a command is `.../portcullis hook HOST ...`.
pub fn calls_us(command: &str, host: &str) -> bool {
    let Some((program, rest)) = command.split_once(" hook ") else { return false };
    let program = program.trim().trim_matches(['\'', '"']);
    program.rsplit('/').next().is_some_and(|name| name.starts_with("portcullis"))
        && rest.split_whitespace().next() == Some(host)
}

fn object_at(top: &CstObject, at: &[&str]) -> Result<CstObject, EditError> {
    at.iter().try_fold(top.clone(), |object, name| {
        object.object_value_or_create(name).ok_or_else(|| EditError::Kind((*name).to_owned()))
    })
}

fn list_at(top: &CstObject, at: &[&str]) -> Result<CstArray, EditError> {
    let (last, objects) = at.split_last().ok_or_else(|| EditError::Kind("the whole file".to_owned()))?;
    let list =
        object_at(top, objects)?.array_value_or_create(last).ok_or_else(|| EditError::Kind((*last).to_owned()))?;
    list.ensure_multiline();
    Ok(list)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

impl TomlEdit {
    /// The text with the table in it.
    pub fn add(&self, text: Option<&str>) -> Result<String, EditError> {
        let mut document: DocumentMut = text.unwrap_or_default().parse()?;
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        let outer = document.entry(self.table).or_insert(Item::Table(implicit));
        let outer = outer.as_table_like_mut().ok_or_else(|| EditError::Kind(self.table.to_owned()))?;
        let entry = outer.entry(self.name).or_insert(Item::Table(Table::new()));
        let entry = entry.as_table_like_mut().ok_or_else(|| EditError::Kind(self.name.to_owned()))?;
        let arguments: toml_edit::Array = self.arguments.iter().map(String::as_str).collect();
        let same = entry.get("command").and_then(Item::as_str) == Some(&self.command)
            && entry.get("args").is_some_and(|found| found.to_string().trim() == arguments.to_string().trim());
        if !same {
            entry.insert("command", value(&self.command));
            entry.insert("args", value(arguments));
        }
        Ok(document.to_string())
    }

    /// The text without it.
    pub fn remove(&self, text: &str) -> Result<String, EditError> {
        let mut document: DocumentMut = text.parse()?;
        if let Some(outer) = document.get_mut(self.table).and_then(Item::as_table_like_mut) {
            outer.remove(self.name);
            if outer.is_empty() {
                document.remove(self.table);
            }
        }
        Ok(document.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edits(command: &str) -> Vec<JsonEdit> {
        let hook = json!({"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 30}]});
        vec![JsonEdit::Element { at: vec!["hooks", "PreToolUse"], value: hook }]
    }

    const OURS: &str = "'/opt/port cullis/portcullis' hook claude";

    #[test]
    fn everything_that_is_not_ours_stays() {
        let text = "{\n  // mine\n  \"model\": \"x\", /* why */\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"hooks\": [{\"command\": \
            \"lint\"}]}, // theirs\n    ],\n    \"Stop\": [],\n  },\n}\n";
        let added = add(Some(text), "claude", &edits(OURS)).unwrap();
        for part in ["// mine", "/* why */", "// theirs", "\"Stop\": []", OURS] {
            assert!(added.contains(part), "{part} is gone:\n{added}");
        }
        assert_eq!(add(Some(&added), "claude", &edits(OURS)).unwrap(), added, "twice is not once");
        assert_eq!(remove(&added, "claude", &[]).unwrap(), text);
    }

    #[test]
    fn an_older_installation_is_replaced() {
        let old = add(None, "claude", &edits("/old/portcullis hook claude --deadline 5")).unwrap();
        let new = add(Some(&old), "claude", &edits(OURS)).unwrap();
        assert!(!new.contains("/old/") && new.matches("hook claude").count() == 1, "{new}");
    }

    #[test]
    fn others_in_our_group_stay() {
        let text = r#"{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"command": "a/portcullis hook claude"}, {"command": "lint"}]}]}}"#;
        let removed = remove(text, "claude", &[]).unwrap();
        assert!(removed.contains("lint") && !removed.contains("portcullis"), "{removed}");
        assert_eq!(remove(text, "codex", &[]).unwrap(), text, "another program's hook was taken out");
    }

    #[test]
    fn what_cannot_be_edited_is_said() {
        for text in ["{", "[1]", "{\"hooks\": 3}", "{\"hooks\": {\"PreToolUse\": {}}}", "{a: 1}"] {
            assert!(add(Some(text), "claude", &edits(OURS)).is_err(), "{text}");
        }
        assert!(add(Some(""), "claude", &edits(OURS)).is_ok(), "an empty file is one to begin with");
    }

    #[test]
    fn a_table_is_added_and_taken_out() {
        let edit = TomlEdit {
            table: "mcp_servers",
            name: "portcullis",
            command: "/bin/portcullis".to_owned(),
            arguments: vec!["mcp".to_owned(), "serve".to_owned()],
        };
        let text = "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let added = edit.add(Some(text)).unwrap();
        assert!(added.starts_with(text) && added.contains("[mcp_servers.portcullis]"), "{added}");
        assert_eq!(edit.add(Some(&added)).unwrap(), added);
        assert_eq!(edit.remove(&added).unwrap().trim_end(), text.trim_end());
        assert!(edit.add(Some("mcp_servers = 3")).is_err());
    }
}
