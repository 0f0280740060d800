//! GitHub Copilot CLI. Its events do not say what they are: the command line does (`--event`).

use serde_json::{Value, json};

use super::{about_session, silence};
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Is, Kind, Named, Rewrites, ToolRow, argument, argument_or, call, internal,
    web,
};

const DOCS: &str = "https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-hooks-reference";

pub const HOST: Host = Host {
    name: "copilot",
    title: "GitHub Copilot CLI",
    source: DOCS,
    checked: "2026-12-01",
    fields: Fields {
        event: &[],
        session: &["/sessionId"],
        workspace: &[],
        cwd: &["/cwd"],
        mode: &[],
        id: &["/toolCallId"],
        workspace_variable: None,
    },
    events: &[
        about_session("sessionStart", Kind::Begins),
        about_session("sessionEnd", Kind::Begins),
        about_session("userPromptSubmitted", Kind::Prompt),
        of_tool("preToolUse", Kind::Uses, true),
        of_tool("permissionRequest", Kind::Permission, true),
        of_tool("postToolUse", Kind::Ends, false),
        of_tool("postToolUseFailure", Kind::Failed, false),
    ],
    modes: &[],
    tools: &[
        call(&["bash"], "Bash", &[argument("command", &["command"])]),
        call(&["view"], "Read", &[argument("path", &["path"])]),
        call(&["create"], "Write", &[argument("path", &["path"]), argument_or("content", &["file_text"], "")]),
        call(
            &["edit", "str_replace"],
            "Edit",
            &[
                argument("path", &["path"]),
                argument("old_string", &["old_str"]),
                argument_or("new_string", &["new_str"], ""),
            ],
        ),
        ToolRow { names: &["apply_patch"], is: Is::Patch(&["input", "patch", "patchText"]), untrusted: false },
        call(&["glob"], "Glob", &[argument("pattern", &["pattern"]), argument("path", &["path"])]),
        call(
            &["grep", "rg"],
            "Grep",
            &[argument("pattern", &["pattern"]), argument("path", &["path"]), argument("include", &["glob"])],
        ),
        web(&["web_fetch"], "WebFetch", &[argument("url", &["url"])]),
        web(&["web_search"], "WebSearch", &[argument("query", &["query"])]),
        internal(&["report_intent", "update_todo", "task", "ask_user", "read_bash", "stop_bash", "list_bash"]),
    ],
    // What an exit code does is said in two ways; the JSON is said in one.
    answers: Answers { goes_on: silence, ask, block, block_code: 0, rewrite },
    rewrites: Rewrites::Yes("the agent's own rules see the rewritten command"),
    gaps: &[
        Gap {
            when: "the hook cannot be started or is killed: the documentation says that it is skipped, others that it blocks",
            closed_by: None,
            source: DOCS,
        },
        Gap { when: "the hook exceeds the agent's time-out", closed_by: None, source: DOCS },
    ],
};

const fn of_tool(name: &'static str, kind: Kind, asks: bool) -> EventRow {
    EventRow {
        name,
        kind,
        tool: Named::At(&["/toolName"]),
        input: &["/toolArgs", "/toolInput"],
        result: &["/toolResult", "/error"],
        asks,
    }
}

fn ask(event: &EventRow, reason: &str, input: Option<&Value>) -> Option<Value> {
    let mut answer = json!({ "permissionDecision": "ask", "permissionDecisionReason": reason });
    if let (Some(answer), Some(input)) = (answer.as_object_mut(), input) {
        answer.insert("modifiedArgs".to_owned(), input.clone());
    }
    event.asks.then_some(answer)
}

fn block(event: Option<&EventRow>, reason: &str) -> Option<Value> {
    let tool = json!({ "permissionDecision": "deny", "permissionDecisionReason": reason });
    let permission = json!({ "behavior": "deny", "message": reason });
    Some(match event.map(|event| event.kind) {
        Some(Kind::Permission) => permission,
        Some(_) => tool,
        // Both, where it is not known which one is waited for.
        None => json!({
            "permissionDecision": "deny", "permissionDecisionReason": reason, "behavior": "deny", "message": reason
        }),
    })
}

fn rewrite(event: &EventRow, input: &Value, reason: &str) -> Option<Value> {
    (event.kind == Kind::Uses)
        .then(|| json!({ "permissionDecision": "allow", "permissionDecisionReason": reason, "modifiedArgs": input }))
}
