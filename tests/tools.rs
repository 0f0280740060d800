//! The built-in tools as a caller sees them: what they are called, what they take, and what they refuse.

use std::path::Path;

use portcullis::call::{Call, Mode, Origin, Principal, Request};
use portcullis::registry::{CallError, Registry, Sensitivity, Subject};
use portcullis::tools::file_tools;
use serde_json::{Value, json};

fn registry() -> Result<Registry, Box<dyn std::error::Error>> {
    let mut registry = Registry::new();
    registry.register_all(file_tools())?;
    Ok(registry)
}

fn canonical(registry: &Registry, tool: &str, arguments: Value) -> Result<Call, CallError> {
    let principal = Principal {
        agent: "agent".into(),
        sub_agent: None,
        teams: Vec::new(),
        session: "session".into(),
        mode: Mode::Default,
        unattended: false,
    };
    let request =
        Request { tool: tool.into(), arguments, cwd: None, principal, origin: Origin::Library, caller_id: None };
    registry.canonicalise(request, Path::new("/workspace"))
}

#[test]
fn the_file_tools_are_what_the_contract_says() {
    let registry = registry().unwrap();
    let contract = [
        ("Edit", Sensitivity::Sensitive, "path old_string new_string replace_all"),
        ("Glob", Sensitivity::Safe, "pattern path"),
        ("Grep", Sensitivity::Safe, "pattern path include context ignore_case literal"),
        ("ListDir", Sensitivity::Safe, "path"),
        ("Read", Sensitivity::Safe, "path offset limit"),
        ("Write", Sensitivity::Sensitive, "path content"),
    ];
    assert_eq!(registry.names().collect::<Vec<_>>(), contract.map(|(name, ..)| name));
    for (name, sensitivity, parameters) in contract {
        let definition = registry.get(name).unwrap().definition();
        assert_eq!(definition.sensitivity, sensitivity, "{name}");
        let properties = definition.parameters["properties"].as_object().unwrap();
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(names.join(" "), parameters, "{name}");
        assert!(
            matches!(
                definition.subjects,
                [Subject::Path { argument: "path", .. } | Subject::Tree { argument: "path", .. }]
            ),
            "{name} names its path"
        );
        assert_eq!(definition.parameters["additionalProperties"], json!(false), "{name} takes nothing else");
        assert!(definition.max_output >= 4 * 1024 && !definition.description.is_empty(), "{name}");
    }
}

#[test]
fn what_models_get_wrong_is_put_right_and_the_rest_is_named() {
    let registry = registry().unwrap();
    for (tool, given, expected) in [
        ("Read", json!({"path": "a", "offset": "3", "limit": null}), json!({"path": "a", "offset": 3})),
        (
            "Edit",
            json!({"path": "a", "old_string": 1, "new_string": "x", "replace_all": "true"}),
            json!({"path": "a", "old_string": "1", "new_string": "x", "replace_all": true}),
        ),
        ("Grep", json!({"pattern": "x", "context": 2.0}), json!({"pattern": "x", "context": 2})),
        ("ListDir", json!("{\"path\": \".\"}"), json!({"path": "."})),
    ] {
        let call = canonical(&registry, tool, given.clone()).unwrap_or_else(|error| panic!("{given}: {error}"));
        assert_eq!(Value::Object(call.arguments), expected, "{tool} {given}");
    }
    for (tool, given, part) in [
        ("Read", json!({}), "`path` is missing"),
        ("Read", json!({"path": "a", "offset": 0}), "/offset"),
        ("Read", json!({"path": "a", "lines": 3}), "the parameters are path, offset, limit"),
        ("Read", json!({"path": ["a", "b"]}), "/path"),
        ("Grep", json!({"pattern": ""}), "/pattern"),
        ("Grep", json!({"pattern": "x", "context": 21}), "/context"),
        ("Edit", json!({"path": "a", "old_string": "", "new_string": "x"}), "/old_string"),
        ("Bash", json!({"command": "true"}), "the tools are Edit, Glob, Grep, ListDir, Read, Write"),
    ] {
        let error = canonical(&registry, tool, given.clone()).unwrap_err().to_string();
        assert!(error.contains(part), "{tool} {given}: {error}");
    }
}
