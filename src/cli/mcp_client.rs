//! `portcullis init --mcp-client`: the few lines that put the gateway in front of an agent.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::args::McpClient;
use crate::cli::{Failure, exit};

/// Prints what goes into the client's configuration to standard output, and where it goes to standard error.
pub(super) fn print(client: McpClient) -> Result<u8, Failure> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("portcullis"));
    let Some(program) = program.to_str() else {
        return Err(Failure::usage("the path of this program is not UTF-8, so no configuration can name it"));
    };
    let arguments = ["mcp", "serve"];
    let (place, text) = match client {
        McpClient::Claude => (
            ".mcp.json in the project, or ~/.claude.json for all projects",
            pretty(&json!({ "mcpServers": { "portcullis": { "command": program, "args": arguments } } }))?,
        ),
        McpClient::Cursor => (
            ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all projects",
            pretty(&json!({ "mcpServers": { "portcullis": { "command": program, "args": arguments } } }))?,
        ),
        McpClient::Vscode => (
            ".vscode/mcp.json in the project",
            pretty(
                &json!({ "servers": { "portcullis": { "type": "stdio", "command": program, "args": arguments } } }),
            )?,
        ),
        // A JSON string is a TOML basic string, too.
        McpClient::Codex => (
            "~/.codex/config.toml",
            format!(
                "[mcp_servers.portcullis]\ncommand = {}\nargs = {}\ntool_timeout_sec = 300\n",
                Value::from(program),
                json!(arguments)
            ),
        ),
    };
    anstream::eprintln!("# add to {place}:");
    io::stdout().write_all(text.as_bytes())?;
    anstream::eprintln!("# {}", only(client));
    Ok(exit::OK)
}

fn pretty(value: &Value) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}

/// How the client's own tools are taken out of the way: the gateway guards only what goes through it.
fn only(client: McpClient) -> &'static str {
    match client {
        McpClient::Claude => {
            "then close the way around it, in .claude/settings.json: \"permissions\": { \"allow\": [\"mcp__portcullis\"], \
             \"deny\": [\"Bash\", \"Read\", \"Write\", \"Edit\", \"Glob\", \"Grep\", \"NotebookEdit\", \"WebFetch\"] }"
        }
        McpClient::Cursor => "then close the way around it: leave only the portcullis tools on in a custom mode",
        McpClient::Vscode => "then close the way around it: leave only the portcullis tools on in the tools picker",
        McpClient::Codex => "then close the way around it: run it with sandbox_mode = \"read-only\" in config.toml",
    }
}
