//! The schema: our own part (`policies/portcullis.cedarschema`) and one action for each tool.

use std::collections::HashMap;

use cedar_policy::{Schema, SchemaFragment};
use serde_json::{Map, Value, json};

use crate::firewall::policy::diagnostic::{PolicyError, Problem};
use crate::firewall::policy::shape::Record;
use crate::firewall::policy::source::{Source, Trust};
use crate::registry::definition::{Definition, Sensitivity, Subject};

/// Our part of the schema.
pub const STUB: &str = include_str!("../../../policies/portcullis.cedarschema");
const STUB_NAME: &str = "portcullis.cedarschema";

/// The schema of a set of tools.
pub(super) struct Typed {
    pub schema: Schema,
    /// The schema in Cedar's syntax, for people and for the hash.
    pub text: String,
    /// What each tool's arguments look like to policies; `None` for an opaque tool.
    pub inputs: HashMap<String, Option<Record>>,
}

/// Makes the schema for these tools.
pub(super) fn of_tools(tools: &[&Definition]) -> Result<Typed, PolicyError> {
    let mut json = stub()?;
    let context = json.pointer("/commonTypes/Context/attributes").cloned().unwrap_or_default();
    let mut inputs = HashMap::new();
    let mut actions = json.get("actions").and_then(Value::as_object).cloned().unwrap_or_default();
    for group in tools.iter().flat_map(|tool| groups(tool)) {
        actions.entry(group).or_insert_with(|| json!({}));
    }
    for tool in tools {
        let input = Record::of_parameters(&tool.parameters);
        let action = action(tool, &context, input.as_ref());
        if actions.contains_key(tool.name) {
            let message = format!("the tool `{}` has the name of a group or of another tool; rename it", tool.name);
            return Err(Problem::of_file(STUB_NAME, message).into());
        }
        actions.insert(tool.name.to_owned(), action);
        inputs.insert(tool.name.to_owned(), input);
    }
    if let Some(object) = json.as_object_mut() {
        object.insert("actions".to_owned(), Value::Object(actions));
    }
    let fragment = SchemaFragment::from_json_value(json!({ "": json })).map_err(|e| refused(&e))?;
    let text = fragment.to_cedarschema().map_err(|e| Problem::of_file(STUB_NAME, e.to_string()))?;
    let schema = Schema::from_schema_fragments([fragment]).map_err(|e| refused(&e))?;
    Ok(Typed { schema, text, inputs })
}

/// The stub in Cedar's JSON form.
fn stub() -> Result<Value, PolicyError> {
    let source = Source::new(STUB_NAME, STUB, Trust::Operator);
    let (fragment, _warnings) =
        SchemaFragment::from_cedarschema_str(STUB).map_err(|e| Problem::from_cedar(&source, &e))?;
    let mut json = fragment.to_json_value().map_err(|e| refused(&e))?;
    Ok(json.get_mut("").map(Value::take).unwrap_or_default())
}

fn refused(error: &dyn miette::Diagnostic) -> PolicyError {
    let help = error.help().map(|help| format!(" ({help})")).unwrap_or_default();
    Problem::of_file(STUB_NAME, format!("{error}{help}")).into()
}

/// The groups that a tool's action is in.
pub(super) fn groups(tool: &Definition) -> Vec<String> {
    let sensitivity = match tool.sensitivity {
        Sensitivity::Safe => "safe",
        Sensitivity::Sensitive => "sensitive",
    };
    let shell = runs_command(tool).then_some("shell");
    let own = tool.groups.iter().copied().filter(|group| !["safe", "sensitive", "shell"].contains(group));
    [sensitivity].into_iter().chain(shell).chain(own).map(str::to_owned).collect()
}

pub(super) fn runs_command(tool: &Definition) -> bool {
    tool.subjects.iter().any(|subject| matches!(subject, Subject::Command { .. }))
}

pub(super) fn names_paths(tool: &Definition) -> bool {
    tool.subjects.iter().any(|subject| subject.path().is_some())
}

/// Whether the tool reads whatever is below the directory that it is given.
pub(super) fn reads_trees(tool: &Definition) -> bool {
    tool.subjects.iter().any(|subject| matches!(subject, Subject::Tree { .. }))
}

fn action(tool: &Definition, context: &Value, input: Option<&Record>) -> Value {
    let mut attributes = context.as_object().cloned().unwrap_or_else(Map::new);
    if let Some(input) = input {
        attributes.insert("input".to_owned(), input.to_cedar());
    }
    let files = names_paths(tool) || runs_command(tool);
    let resources: &[&str] = if files { &["File", "Workspace"] } else { &["Workspace"] };
    let groups: Vec<Value> = groups(tool).into_iter().map(|group| json!({ "id": group })).collect();
    json!({
        "memberOf": groups,
        "appliesTo": {
            "principalTypes": ["Agent", "SubAgent"],
            "resourceTypes": resources,
            "context": { "type": "Record", "attributes": attributes },
        },
    })
}
