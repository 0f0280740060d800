//! OpenHands.

use serde_json::{Value, json};

use super::{about_session, no_ask, no_rewrite, silence};
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Is, Kind, Rewrites, ToolRow, argument, argument_or, call, internal, of_tool,
};

const DOCS: &str = "https://docs.openhands.dev/sdk/guides/hooks";

pub const HOST: Host = Host {
    name: "openhands",
    title: "OpenHands",
    source: DOCS,
    checked: "2026-11-30",
    fields: Fields {
        event: &["/event_type"],
        session: &["/session_id"],
        workspace: &["/working_dir"],
        cwd: &["/working_dir"],
        mode: &[],
        id: &[],
        workspace_variable: Some("OPENHANDS_PROJECT_DIR"),
    },
    events: &[
        about_session("SessionStart", Kind::Begins),
        about_session("SessionEnd", Kind::Begins),
        about_session("UserPromptSubmit", Kind::Prompt),
        of_tool("PreToolUse", Kind::Uses),
        of_tool("PostToolUse", Kind::Ends),
    ],
    modes: &[],
    tools: &[
        call(&["terminal", "execute_bash", "bash"], "Bash", &[argument("command", &["command"])]),
        ToolRow {
            names: &["file_editor", "str_replace_editor"],
            is: Is::By(
                "command",
                &[
                    ("view", Is::Call("Read", &[argument("path", &["path"])])),
                    (
                        "create",
                        Is::Call("Write", &[argument("path", &["path"]), argument_or("content", &["file_text"], "")]),
                    ),
                    (
                        "str_replace",
                        Is::Call(
                            "Edit",
                            &[
                                argument("path", &["path"]),
                                argument("old_string", &["old_str"]),
                                argument_or("new_string", &["new_str"], ""),
                            ],
                        ),
                    ),
                    (
                        "insert",
                        Is::Call("Write", &[argument("path", &["path"]), argument_or("content", &["new_str"], "")]),
                    ),
                    (
                        "undo_edit",
                        Is::Call("Write", &[argument("path", &["path"]), argument_or("content", &["text"], "")]),
                    ),
                ],
            ),
            untrusted: false,
        },
        call(&["glob"], "Glob", &[argument("pattern", &["pattern"]), argument("path", &["path"])]),
        call(
            &["grep"],
            "Grep",
            &[argument("pattern", &["pattern"]), argument("path", &["path"]), argument("include", &["include"])],
        ),
        internal(&["task_tracker", "think", "finish"]),
    ],
    answers: Answers { goes_on: silence, ask: no_ask, block, block_code: 2, rewrite: no_rewrite },
    rewrites: Rewrites::No,
    gaps: &[Gap {
        when: "the hook cannot be started, is killed, exceeds the agent's time-out, or ends with another code than 2",
        closed_by: None,
        source: DOCS,
    }],
};

fn block(_: Option<&EventRow>, reason: &str) -> Option<Value> {
    Some(json!({ "decision": "deny", "reason": reason }))
}
