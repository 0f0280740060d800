//! Cline. A hook is a file named after the event.

use serde_json::{Value, json};

use super::{about_session, no_ask, no_rewrite};
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Is, Kind, Named, Rewrites, ToolRow, argument, argument_or, call, internal,
    web,
};

const DOCS: &str = "https://docs.cline.bot/features/hooks";

pub const HOST: Host = Host {
    name: "cline",
    title: "Cline",
    source: DOCS,
    checked: "2026-11-30",
    fields: Fields {
        event: &["/hookName"],
        session: &["/taskId"],
        workspace: &["/workspaceRoots/0"],
        cwd: &["/workspaceRoots/0"],
        mode: &[],
        id: &[],
        workspace_variable: None,
    },
    events: &[
        about_session("TaskStart", Kind::Begins),
        about_session("TaskResume", Kind::Begins),
        about_session("UserPromptSubmit", Kind::Prompt),
        event(
            "PreToolUse",
            Kind::Uses,
            Named::At(&["/preToolUse/toolName", "/preToolUse/tool"]),
            &["/preToolUse/parameters"],
        ),
        event(
            "PostToolUse",
            Kind::Ends,
            Named::At(&["/postToolUse/toolName", "/postToolUse/tool"]),
            &["/postToolUse/parameters"],
        ),
    ],
    modes: &[],
    tools: &[
        call(&["execute_command"], "Bash", &[argument("command", &["command"])]),
        call(&["read_file"], "Read", &[argument("path", &["path"])]),
        call(
            &["write_to_file", "replace_in_file", "new_rule"],
            "Write",
            &[argument("path", &["path"]), argument_or("content", &["content", "diff"], "")],
        ),
        ToolRow { names: &["apply_patch"], is: Is::Patch(&["input", "patch"]), untrusted: false },
        call(&["list_files", "list_code_definition_names"], "ListDir", &[argument("path", &["path"])]),
        call(
            &["search_files"],
            "Grep",
            &[argument("pattern", &["regex"]), argument("path", &["path"]), argument("include", &["file_pattern"])],
        ),
        ToolRow {
            names: &["use_mcp_tool"],
            is: Is::Mcp { server: "server_name", tool: "tool_name", arguments: "arguments" },
            untrusted: true,
        },
        web(&["web_fetch"], "WebFetch", &[argument("url", &["url"])]),
        internal(&[
            "ask_followup_question",
            "attempt_completion",
            "condense",
            "focus_chain",
            "load_mcp_documentation",
            "new_task",
            "plan_mode_respond",
            "act_mode_respond",
            "summarize_task",
        ]),
    ],
    answers: Answers { goes_on, ask: no_ask, block, block_code: 2, rewrite: no_rewrite },
    rewrites: Rewrites::No,
    gaps: &[Gap { when: "hooks are switched off in the settings", closed_by: None, source: DOCS }],
};

const fn event(name: &'static str, kind: Kind, tool: Named, input: &'static [&'static str]) -> EventRow {
    EventRow { name, kind, tool, input, result: &["/postToolUse/result"], asks: false }
}

fn goes_on(_: &EventRow) -> Option<Value> {
    Some(json!({ "cancel": false }))
}

fn block(_: Option<&EventRow>, reason: &str) -> Option<Value> {
    Some(json!({ "cancel": true, "errorMessage": reason }))
}
