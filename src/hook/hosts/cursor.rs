//! Cursor.

use serde_json::{Value, json};

use super::{about_session, no_rewrite};
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Kind, Named, Rewrites, argument, argument_or, call, internal, web,
};

const DOCS: &str = "https://cursor.com/docs/agent/hooks";

pub const HOST: Host = Host {
    name: "cursor",
    title: "Cursor",
    source: DOCS,
    checked: "2026-11-30",
    fields: Fields {
        event: &["/hook_event_name"],
        session: &["/conversation_id", "/session_id"],
        workspace: &["/workspace_roots/0"],
        cwd: &["/cwd", "/workspace_roots/0"],
        mode: &[],
        id: &["/tool_use_id"],
        workspace_variable: None,
    },
    events: &[
        about_session("sessionStart", Kind::Begins),
        about_session("beforeSubmitPrompt", Kind::Prompt),
        event("beforeShellExecution", Kind::Uses, Named::Always("Shell"), &[], true),
        event("beforeMCPExecution", Kind::Uses, MCP, &["/tool_input"], true),
        event("beforeReadFile", Kind::Uses, Named::Always("Read"), &[], false),
        event("preToolUse", Kind::Uses, Named::At(&["/tool_name"]), &["/tool_input"], false),
        event("afterShellExecution", Kind::Ends, Named::Always("Shell"), &[], false),
        event("afterMCPExecution", Kind::Ends, MCP, &["/tool_input"], false),
        event("postToolUse", Kind::Ends, Named::At(&["/tool_name"]), &["/tool_input"], false),
    ],
    modes: &[],
    tools: &[
        call(&["Shell"], "Bash", &[argument("command", &["command"])]),
        call(&["Read", "ReadFile"], "Read", &[argument("path", &["file_path", "path"])]),
        call(
            &["Write", "TabWrite"],
            "Write",
            &[argument("path", &["file_path", "path"]), argument_or("content", &["content", "contents"], "")],
        ),
        call(
            &["StrReplace", "Edit"],
            "Edit",
            &[
                argument("path", &["file_path", "path"]),
                argument("old_string", &["old_string"]),
                argument("new_string", &["new_string"]),
            ],
        ),
        call(&["Grep"], "Grep", &[argument("pattern", &["pattern"]), argument("path", &["path"])]),
        call(&["Glob"], "Glob", &[argument("pattern", &["pattern", "glob_pattern"]), argument("path", &["path"])]),
        call(&["LS"], "ListDir", &[argument("path", &["path"])]),
        web(&["WebFetch"], "WebFetch", &[argument("url", &["url"])]),
        web(&["WebSearch"], "WebSearch", &[argument("query", &["query", "search_term"])]),
        internal(&["Task", "TodoWrite"]),
    ],
    answers: Answers { goes_on, ask, block, block_code: 2, rewrite: no_rewrite },
    rewrites: Rewrites::No,
    gaps: &[
        Gap {
            when: "the hook cannot be started, is killed or exceeds the agent's time-out",
            closed_by: Some("\"failClosed\": true on the hook; `install` sets it"),
            source: DOCS,
        },
        Gap {
            when: "there is no \"no opinion\": ALLOW is answered as allow, which can spare the agent's own prompt",
            closed_by: None,
            source: DOCS,
        },
    ],
};

const MCP: Named = Named::McpOr { server: "/mcp_server_name", tool: "/tool_name", or: "/tool_name" };

const fn event(name: &'static str, kind: Kind, tool: Named, input: &'static [&'static str], asks: bool) -> EventRow {
    EventRow { name, kind, tool, input, result: &["/output", "/result_json", "/tool_output"], asks }
}

fn goes_on(event: &EventRow) -> Option<Value> {
    Some(match event.kind {
        Kind::Prompt => json!({ "continue": true }),
        Kind::Uses | Kind::Permission => json!({ "permission": "allow" }),
        Kind::Begins | Kind::Ends | Kind::Failed => json!({}),
    })
}

fn ask(event: &EventRow, reason: &str, _: Option<&Value>) -> Option<Value> {
    event.asks.then(|| json!({ "permission": "ask", "user_message": reason, "agent_message": reason }))
}

fn block(event: Option<&EventRow>, reason: &str) -> Option<Value> {
    Some(match event.map(|event| event.kind) {
        Some(Kind::Prompt) => json!({ "continue": false, "user_message": reason }),
        Some(_) => json!({ "permission": "deny", "user_message": reason, "agent_message": reason }),
        None => json!({ "continue": false, "permission": "deny", "user_message": reason, "agent_message": reason }),
    })
}
