//! Codex CLI.

use serde_json::{Value, json};

use super::{about_session, no_ask, no_block, silence};
use crate::call::Mode;
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Is, Kind, ModeRow, Rewrites, ToolRow, argument, call, internal, of_tool,
};

const CODE: &str = "https://github.com/openai/codex (codex-rs/hooks)";

pub const HOST: Host = Host {
    name: "codex",
    title: "Codex CLI",
    source: CODE,
    checked: "2026-11-30",
    fields: Fields {
        event: &["/hook_event_name"],
        session: &["/session_id"],
        workspace: &[],
        cwd: &["/cwd"],
        mode: &["/permission_mode"],
        id: &["/tool_use_id"],
        workspace_variable: None,
    },
    events: &[
        about_session("SessionStart", Kind::Begins),
        about_session("UserPromptSubmit", Kind::Prompt),
        of_tool("PreToolUse", Kind::Uses),
        of_tool("PermissionRequest", Kind::Permission),
        of_tool("PostToolUse", Kind::Ends),
    ],
    // An "ask" is refused as an answer, and the call runs.
    modes: &[
        ModeRow { name: "default", mode: None, asks: false },
        ModeRow { name: "acceptEdits", mode: None, asks: false },
        ModeRow { name: "plan", mode: Some(Mode::Plan), asks: false },
        ModeRow { name: "dontAsk", mode: None, asks: false },
        ModeRow { name: "bypassPermissions", mode: None, asks: false },
    ],
    tools: &[
        call(
            &["Bash", "shell", "local_shell", "exec_command"],
            "Bash",
            &[argument("command", &["command", "cmd"]), argument("cwd", &["workdir"])],
        ),
        ToolRow { names: &["apply_patch"], is: Is::Patch(&["command", "input", "patch"]), untrusted: false },
        call(&["view_image"], "Read", &[argument("path", &["path"])]),
        internal(&["update_plan"]),
    ],
    answers: Answers { goes_on: silence, ask: no_ask, block: no_block, block_code: 2, rewrite },
    rewrites: Rewrites::Yes("of several hooks that rewrite, the one that ends last wins"),
    gaps: &[
        Gap {
            when: "the hook cannot be started, is killed, exceeds the agent's time-out, or ends with another code than 2",
            closed_by: None,
            source: CODE,
        },
        Gap {
            when: "a person has not trusted the hook in /hooks, or hooks are off ([features] hooks)",
            closed_by: None,
            source: CODE,
        },
        Gap {
            when: "text is typed into a session that runs already (write_stdin), which no event tells of",
            closed_by: None,
            source: CODE,
        },
    ],
};

fn rewrite(event: &EventRow, input: &Value, reason: &str) -> Option<Value> {
    let output = json!({
        "hookEventName": event.name,
        "permissionDecision": "allow",
        "permissionDecisionReason": reason,
        "updatedInput": input,
    });
    (event.kind == Kind::Uses).then(|| json!({ "hookSpecificOutput": output }))
}
