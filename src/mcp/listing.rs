//! Tools as `tools/list` shows them.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::registry::{self, Definition, Subject};

/// The tools in the order given.
pub(super) fn of(tools: &[Arc<dyn registry::Tool>]) -> Vec<Tool> {
    tools.iter().map(|tool| shown(tool.definition())).collect()
}

fn shown(definition: &Definition) -> Tool {
    let schema = match &definition.parameters {
        Value::Object(schema) => schema.clone(),
        // A schema that is `true` or `false` has no other form here.
        _ => JsonObject::new(),
    };
    let mut tool = Tool::new(definition.name, definition.description, Arc::new(schema));
    tool.annotations = Some(annotations(definition));
    tool
}

/// What the tool's subjects say of it. A shell command can do anything that its sandbox lets it.
fn annotations(definition: &Definition) -> ToolAnnotations {
    let runs = definition.subjects.iter().any(|s| matches!(s, Subject::Command { .. }));
    let changes = definition.subjects.iter().any(|s| matches!(s, Subject::Path { access, .. } if access.changes()));
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(!runs && !changes);
    annotations.destructive_hint = Some(runs || changes);
    annotations.open_world_hint = Some(runs);
    annotations
}
