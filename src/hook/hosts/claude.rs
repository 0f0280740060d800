//! Claude Code.

use serde_json::{Value, json};

use super::{about_session, no_block, silence};
use crate::call::Mode;
use crate::hook::host::{
    self, Answers, EventRow, Fields, Gap, Host, Is, Kind, ModeRow, Rewrites, ToolRow, argument, argument_or, call,
    internal, web,
};

const DOCS: &str = "https://code.claude.com/docs/en/hooks";

pub const HOST: Host = Host {
    name: "claude",
    title: "Claude Code",
    source: DOCS,
    checked: "2026-12-01",
    fields: Fields {
        event: &["/hook_event_name"],
        session: &["/session_id"],
        workspace: &[],
        cwd: &["/cwd"],
        mode: &["/permission_mode"],
        id: &["/tool_use_id"],
        workspace_variable: Some("CLAUDE_PROJECT_DIR"),
    },
    events: &[
        about_session("SessionStart", Kind::Begins),
        about_session("SessionEnd", Kind::Begins),
        about_session("UserPromptSubmit", Kind::Prompt),
        of_tool("PreToolUse", Kind::Uses, true),
        of_tool("PermissionRequest", Kind::Permission, true),
        of_tool("PostToolUse", Kind::Ends, false),
        of_tool("PostToolUseFailure", Kind::Failed, false),
    ],
    // In the last three an "ask" was reported to be passed over by some versions, so it is not relied on.
    modes: &[
        ModeRow { name: "default", mode: None, asks: true },
        ModeRow { name: "acceptEdits", mode: None, asks: true },
        ModeRow { name: "plan", mode: Some(Mode::Plan), asks: true },
        ModeRow { name: "auto", mode: None, asks: false },
        ModeRow { name: "dontAsk", mode: None, asks: false },
        ModeRow { name: "bypassPermissions", mode: None, asks: false },
    ],
    tools: &[
        call(&["Bash"], "Bash", &[argument("command", &["command"])]),
        call(
            &["Read"],
            "Read",
            &[argument("path", &["file_path"]), argument("offset", &["offset"]), argument("limit", &["limit"])],
        ),
        call(&["NotebookRead"], "Read", &[argument("path", &["notebook_path"])]),
        call(&["Write"], "Write", &[argument("path", &["file_path"]), argument("content", &["content"])]),
        call(
            &["NotebookEdit"],
            "Write",
            &[argument("path", &["notebook_path"]), argument_or("content", &["new_source"], "")],
        ),
        call(
            &["Edit"],
            "Edit",
            &[
                argument("path", &["file_path"]),
                argument("old_string", &["old_string"]),
                argument("new_string", &["new_string"]),
                argument("replace_all", &["replace_all"]),
            ],
        ),
        ToolRow {
            names: &["MultiEdit"],
            is: Is::Edits { path: &["file_path"], list: "edits", old: "old_string", new: "new_string" },
            untrusted: false,
        },
        call(&["Glob"], "Glob", &[argument("pattern", &["pattern"]), argument("path", &["path"])]),
        call(
            &["Grep"],
            "Grep",
            &[argument("pattern", &["pattern"]), argument("path", &["path"]), argument("include", &["glob"])],
        ),
        call(&["LS"], "ListDir", &[argument("path", &["path"])]),
        web(&["WebFetch"], "WebFetch", &[argument("url", &["url"]), argument("prompt", &["prompt"])]),
        web(&["WebSearch"], "WebSearch", &[argument("query", &["query"])]),
        internal(&[
            "Agent",
            "AskUserQuestion",
            "BashOutput",
            "EnterPlanMode",
            "ExitPlanMode",
            "KillShell",
            "Task",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "TaskStop",
            "TaskUpdate",
            "TodoWrite",
            "ToolSearch",
        ]),
    ],
    answers: Answers { goes_on: silence, ask, block: no_block, block_code: 2, rewrite },
    rewrites: Rewrites::Yes(
        "a rewritten command no longer matches the agent's own Bash rules, and is run without the agent's prompt",
    ),
    gaps: &[
        Gap {
            when: "the hook cannot be started, is killed, exceeds the agent's time-out, or ends with another code than 2",
            closed_by: Some("\"onFailure\": \"block\" on the hook, from 2.1.295 on; `install` sets it"),
            source: DOCS,
        },
        Gap {
            when: "hooks are switched off (\"disableAllHooks\", --bare)",
            closed_by: Some("managed settings"),
            source: DOCS,
        },
        Gap { when: "a file is mentioned with @, which no event tells of", closed_by: None, source: DOCS },
    ],
};

const fn of_tool(name: &'static str, kind: Kind, asks: bool) -> EventRow {
    EventRow { result: &["/tool_response", "/error"], asks, ..host::of_tool(name, kind) }
}

fn decision(event: &EventRow, word: &str, reason: &str, input: Option<&Value>) -> Value {
    let mut output = json!({
        "hookEventName": event.name,
        "permissionDecision": word,
        "permissionDecisionReason": reason,
    });
    if let (Some(output), Some(input)) = (output.as_object_mut(), input) {
        output.insert("updatedInput".to_owned(), input.clone());
    }
    json!({ "hookSpecificOutput": output })
}

fn ask(event: &EventRow, reason: &str, input: Option<&Value>) -> Option<Value> {
    Some(decision(event, "ask", reason, input))
}

fn rewrite(event: &EventRow, input: &Value, reason: &str) -> Option<Value> {
    (event.kind == Kind::Uses).then(|| decision(event, "allow", reason, Some(input)))
}
