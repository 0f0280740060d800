//! `portcullis tools`: the tools there are.

use std::io::{self, Write};

use crate::cli::args::{DefinitionForm, ToolsArgs};
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::registry::Sensitivity;

pub(super) fn run(args: ToolsArgs) -> Result<u8, Failure> {
    let config = Config::from_env()?;
    let mut registry = crate::tools::all()?;
    if let Some(allowed) = config.agent(args.agent.as_deref())?.allowed_tools {
        registry = registry.filtered(allowed.iter().map(String::as_str));
    }
    if args.json {
        let definitions = match args.form {
            DefinitionForm::Mcp => registry.mcp_definitions(),
            DefinitionForm::Openai => registry.definitions(),
        };
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&definitions)?)?;
        return Ok(exit::OK);
    }
    let mut out = render::out();
    for tool in registry.all() {
        let definition = tool.definition();
        let sensitivity = match definition.sensitivity {
            Sensitivity::Safe => "safe",
            Sensitivity::Sensitive => "sensitive",
        };
        writeln!(out, "{:<8} {sensitivity:<9}  {}", definition.name, parameters(&definition.parameters))?;
        writeln!(out, "         {}", first_sentence(definition.description))?;
    }
    Ok(exit::OK)
}

fn parameters(schema: &serde_json::Value) -> String {
    let required: Vec<&str> =
        schema.get("required").and_then(|r| r.as_array()).into_iter().flatten().filter_map(|v| v.as_str()).collect();
    let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) else { return String::new() };
    let mut names: Vec<String> = properties
        .keys()
        .map(|name| if required.contains(&name.as_str()) { name.clone() } else { format!("{name}?") })
        .collect();
    names.sort_by_key(|name| name.ends_with('?'));
    names.join(", ")
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}
