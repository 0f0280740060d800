//! Tools of an agent's own program that have no counterpart here. A hook asks about them; the agent's program runs them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::firewall::Cleared;
use crate::registry::{Definition, Output, Sensitivity, Tool, ToolError};
use crate::tools::failed;

/// Any tool of an agent's own program, by its name there.
pub const HOST_TOOL: &str = "HostTool";
/// What an agent's program does within itself, such as keeping its list of tasks.
pub const HOST_INTERNAL: &str = "HostInternal";

struct Hosted(Definition);

impl Tool for Hosted {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn runs_here(&self) -> bool {
        false
    }

    fn execute(&self, cleared: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>> {
        let message = format!("`{}` is run by the agent's own program, not by the gateway", cleared.call().tool);
        Box::pin(async { Err(failed(message)) })
    }
}

/// The tools that only hooks speak of.
pub fn all() -> Vec<Arc<dyn Tool>> {
    let parameters = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name in the agent's program"},
            "arguments": {"type": "object", "description": "Its arguments there"}
        },
        "required": ["name", "arguments"],
        "additionalProperties": false
    });
    let hosted = |name: &'static str, description: &'static str, sensitivity| -> Arc<dyn Tool> {
        Arc::new(Hosted(Definition {
            name: name.into(),
            description: description.into(),
            parameters: parameters.clone(),
            sensitivity,
            groups: &["host"],
            subjects: &[],
            max_output: 0,
            upstream: None,
        }))
    };
    vec![
        hosted(HOST_TOOL, "A tool that the agent's own program runs.", Sensitivity::Sensitive),
        hosted(HOST_INTERNAL, "What the agent's own program does within itself.", Sensitivity::Safe),
    ]
}

/// The arguments under which a tool of the agent's program is judged.
pub fn wrapped(name: &str, arguments: &Value) -> Value {
    let arguments = match arguments {
        Value::Object(_) => arguments.clone(),
        // Whatever it is, it is looked at.
        other => Value::Object(Map::from_iter([("input".to_owned(), other.clone())])),
    };
    json!({ "name": name, "arguments": arguments })
}
