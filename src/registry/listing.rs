//! Tools as MCP's `tools/list` shows them.

use serde_json::{Map, Value, json};

use super::{Definition, Standing, Subject};

/// A tool for a client's list. A server's tool is shown as a person approved it, with every field that the server gave.
pub fn listed(definition: &Definition) -> Value {
    let Some(foreign) = &definition.upstream else {
        return json!({
            "name": definition.name,
            "description": definition.description,
            "inputSchema": definition.parameters,
            "annotations": annotations(definition),
        });
    };
    let mut shown = foreign.listed.as_object().cloned().unwrap_or_else(Map::new);
    shown.insert("name".to_owned(), Value::from(&*definition.name));
    Value::Object(shown)
}

/// Whether clients are shown the tool. What nobody approved yet speaks to no model.
pub fn is_listed(definition: &Definition) -> bool {
    definition.upstream.as_ref().is_none_or(|foreign| foreign.standing != Standing::New)
}

/// What the tool's subjects say of it. A shell command can do anything that its sandbox lets it.
fn annotations(definition: &Definition) -> Value {
    let runs = definition.subjects.iter().any(|s| matches!(s, Subject::Command { .. }));
    let changes = definition.subjects.iter().any(|s| matches!(s, Subject::Path { access, .. } if access.changes()));
    json!({ "readOnlyHint": !runs && !changes, "destructiveHint": runs || changes, "openWorldHint": runs })
}
