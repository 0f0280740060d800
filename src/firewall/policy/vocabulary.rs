//! Attributes that hold one of a few words. Cedar compares strings without knowing the words there are, so a misspelt one
//! would make a forbid that never matches.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::{Mode, Origin};
use crate::facts::Scope;
use crate::facts::command::Parse;
use crate::sandbox::Tier;
use crate::verdict::Severity;

/// A word that its attribute never holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stranger {
    pub attribute: String,
    pub word: String,
}

/// Every comparison, in Cedar's JSON form of a policy, with a word that the attribute never holds.
pub(super) fn strangers(node: &Value) -> Vec<Stranger> {
    let mut found = Vec::new();
    collect(node, &mut found);
    found
}

/// Every `Directory` and `File` that Cedar's JSON form of a policy names and no path has: paths are named from the
/// workspace's root, without a slash or a dot before or after. Places outside are `Directory::"/"`, and a file for each scope.
pub(super) fn unreachable(node: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match node {
            Value::Array(items) => open.extend(items),
            Value::Object(parts) => {
                let part = |name: &str| parts.get(name).and_then(Value::as_str);
                let (kind, id) = (part("type").unwrap_or_default(), part("id").unwrap_or_default());
                let outside = match kind {
                    "Directory" => id == "/",
                    "File" => id.strip_prefix('/').is_some_and(is::<Scope>),
                    _ => true,
                };
                if !outside && id != "." && !is_path(id) {
                    found.push(id.to_owned());
                }
                open.extend(parts.values());
            }
            _ => {}
        }
    }
    found
}

fn is_path(id: &str) -> bool {
    !id.is_empty() && id.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn collect(node: &Value, found: &mut Vec<Stranger>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(parts) => {
            if let (Some(left), Some(right)) = (parts.get("left"), parts.get("right")) {
                compare(left, right, found);
                compare(right, left, found);
            }
            parts.values().for_each(|part| collect(part, found));
        }
        _ => {}
    }
}

fn compare(attribute: &Value, words: &Value, found: &mut Vec<Stranger>) {
    let Some(attribute) = path(attribute) else { return };
    let Some(holds) = vocabulary(&attribute) else { return };
    let words = words.get("Value").or_else(|| words.get("Set")).unwrap_or(&Value::Null);
    let items = words.as_array().map_or(std::slice::from_ref(words), Vec::as_slice);
    let literals = items.iter().filter_map(|item| item.as_str().or_else(|| item.get("Value")?.as_str()));
    let strange = literals.filter(|word| !holds(word));
    found.extend(strange.map(|word| Stranger { attribute: attribute.clone(), word: word.to_owned() }));
}

/// `context.command.parse`, for an access that starts at a variable.
fn path(node: &Value) -> Option<String> {
    if let Some(variable) = node.get("Var").and_then(Value::as_str) {
        return Some(variable.to_owned());
    }
    let access = node.get(".")?;
    Some(format!("{}.{}", path(access.get("left")?)?, access.get("attr")?.as_str()?))
}

fn vocabulary(attribute: &str) -> Option<fn(&str) -> bool> {
    match attribute {
        "principal.mode" => Some(is::<Mode>),
        "resource.scope" | "context.paths.scopes" | "context.paths.changed" | "context.command.scopes" => {
            Some(is::<Scope>)
        }
        "context.command.parse" => Some(|word| word == "none" || is::<Parse>(word)),
        "context.command.worst" => Some(|word| word == "none" || is::<Severity>(word)),
        "context.sandbox.tier" => Some(|word| word == "in-process" || is::<Tier>(word)),
        "context.origin" => Some(is::<Origin>),
        _ => None,
    }
}

fn is<T: DeserializeOwned>(word: &str) -> bool {
    serde_json::from_value::<T>(word.into()).is_ok()
}

#[cfg(test)]
mod tests {
    use cedar_policy::Policy;

    use super::*;

    fn words(condition: &str) -> Vec<String> {
        let policy = format!("forbid (principal, action, resource) when {{ {condition} }};");
        let form = Policy::parse(None, policy).expect("the test's policy parses").to_json().unwrap();
        strangers(&form).into_iter().map(|stranger| format!("{} {}", stranger.attribute, stranger.word)).collect()
    }

    #[test]
    fn a_word_that_an_attribute_never_holds_is_found() {
        assert_eq!(words(r#"principal.mode == "pln""#), ["principal.mode pln"]);
        assert_eq!(words(r#""acceptEdit" != principal.mode"#), ["principal.mode acceptEdit"]);
        assert_eq!(words(r#"["plan", "defualt"].contains(principal.mode)"#), ["principal.mode defualt"]);
        assert_eq!(words(r#"context.paths.changed.containsAny(["home", "hoem"])"#), ["context.paths.changed hoem"]);
        assert_eq!(words(r#"true && !(context.command.scopes.contains("sys"))"#), ["context.command.scopes sys"]);
        assert_eq!(words(r#"context.sandbox.tier == "landlok""#), ["context.sandbox.tier landlok"]);
    }

    #[test]
    fn a_path_that_none_is_named_is_found() {
        let named = |policy: &str| {
            unreachable(&Policy::parse(None, policy).expect("the test's policy parses").to_json().unwrap())
        };
        let scope = |kind: &str, id: &str| format!("forbid (principal, action, resource in {kind}::\"{id}\");");
        for id in ["/src/secrets", "src/", "./src", "a//b", "../x", ""] {
            assert_eq!(named(&scope("Directory", id)), [id]);
        }
        assert_eq!(
            named("forbid (principal, action, resource) when { resource in [File::\"/etc/passwd\", File::\"a\"] };"),
            ["/etc/passwd"]
        );
        for (kind, id) in
            [("Directory", "src/secrets"), ("Directory", "."), ("Directory", "/"), ("File", "/home"), ("Host", "/x")]
        {
            assert_eq!(named(&scope(kind, id)), [""; 0], "{kind} {id}");
        }
    }

    #[test]
    fn the_words_there_are_pass() {
        for condition in [
            r#"principal.mode == "acceptEdits" && context.sandbox.tier == "landlock" && context.origin == "cli""#,
            r#"context.paths.scopes.containsAny(["other-home", "read-root", "gateway"])"#,
            r#"context.command.parse == "none" || context.command.parse == "opaque""#,
            r#"["none", "review", "fatal"].contains(context.command.worst) && context.sandbox.tier == "in-process""#,
            r#"context.command.effects.contains("anything at all") && resource.scope == "workspace""#,
        ] {
            assert_eq!(words(condition), [""; 0], "{condition}");
        }
    }
}
