//! Gemini CLI.

use serde_json::{Value, json};

use super::{about_session, no_ask, no_block, silence};
use crate::hook::host::{
    self, Answers, EventRow, Fields, Gap, Host, Kind, Named, Rewrites, argument, call, internal, web,
};

const DOCS: &str = "https://geminicli.com/docs/hooks/reference";

pub const HOST: Host = Host {
    name: "gemini",
    title: "Gemini CLI",
    source: DOCS,
    checked: "2026-12-01",
    fields: Fields {
        event: &["/hook_event_name"],
        session: &["/session_id"],
        workspace: &[],
        cwd: &["/cwd"],
        mode: &[],
        id: &[],
        workspace_variable: Some("GEMINI_PROJECT_DIR"),
    },
    events: &[
        about_session("SessionStart", Kind::Begins),
        about_session("SessionEnd", Kind::Begins),
        about_session("BeforeAgent", Kind::Prompt),
        of_tool("BeforeTool", Kind::Uses),
        of_tool("AfterTool", Kind::Ends),
    ],
    modes: &[],
    tools: &[
        call(
            &["run_shell_command"],
            "Bash",
            &[argument("command", &["command"]), argument("cwd", &["dir_path", "directory"])],
        ),
        call(&["read_file"], "Read", &[argument("path", &["file_path", "absolute_path"])]),
        call(&["write_file"], "Write", &[argument("path", &["file_path"]), argument("content", &["content"])]),
        call(
            &["replace"],
            "Edit",
            &[
                argument("path", &["file_path"]),
                argument("old_string", &["old_string"]),
                argument("new_string", &["new_string"]),
            ],
        ),
        call(&["list_directory"], "ListDir", &[argument("path", &["dir_path", "path"])]),
        call(&["glob"], "Glob", &[argument("pattern", &["pattern"]), argument("path", &["dir_path", "path"])]),
        call(
            &["search_file_content", "grep_search"],
            "Grep",
            &[
                argument("pattern", &["pattern"]),
                argument("path", &["dir_path", "path"]),
                argument("include", &["include", "include_pattern"]),
            ],
        ),
        web(&["web_fetch"], "web_fetch", &[argument("prompt", &["prompt"])]),
        web(&["google_web_search"], "WebSearch", &[argument("query", &["query"])]),
        internal(&["write_todos", "ask_user", "enter_plan_mode", "exit_plan_mode", "complete_task"]),
    ],
    // "ask" is not in the documentation, and a version that does not know it would go on.
    answers: Answers { goes_on: silence, ask: no_ask, block: no_block, block_code: 2, rewrite },
    rewrites: Rewrites::Yes("the agent's own rules and its prompt see the rewritten command"),
    gaps: &[
        Gap {
            when: "the hook cannot be started, is killed, exceeds the agent's time-out, or ends with code 1",
            closed_by: None,
            source: DOCS,
        },
        Gap { when: "hooks are switched off, or the directory is not trusted", closed_by: None, source: DOCS },
    ],
};

const fn of_tool(name: &'static str, kind: Kind) -> EventRow {
    EventRow {
        tool: Named::McpOr { server: "/mcp_context/server_name", tool: "/mcp_context/tool_name", or: "/tool_name" },
        ..host::of_tool(name, kind)
    }
}

fn rewrite(_: &EventRow, input: &Value, _: &str) -> Option<Value> {
    Some(json!({ "hookSpecificOutput": { "tool_input": input } }))
}
