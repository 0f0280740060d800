//! OpenCode. Its hooks are a plugin, which `install` writes; these are the plugin's words.

use serde_json::{Value, json};

use super::{about_session, no_ask, no_rewrite};
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Is, Kind, Named, Rewrites, ToolRow, argument, argument_or, call, internal,
    web,
};

const DOCS: &str = "https://opencode.ai/docs/plugins";

pub const HOST: Host = Host {
    name: "opencode",
    title: "OpenCode",
    source: DOCS,
    checked: "2026-11-30",
    fields: Fields {
        event: &["/event"],
        session: &["/sessionID"],
        workspace: &["/directory"],
        cwd: &["/directory"],
        mode: &[],
        id: &["/callID"],
        workspace_variable: None,
    },
    events: &[
        about_session("session.created", Kind::Begins),
        of_tool("tool.execute.before", Kind::Uses),
        of_tool("tool.execute.after", Kind::Ends),
    ],
    modes: &[],
    tools: &[
        call(&["bash"], "Bash", &[argument("command", &["command"]), argument("cwd", &["workdir"])]),
        call(&["read"], "Read", &[argument("path", &["filePath"]), argument("offset", &["offset"])]),
        call(&["write"], "Write", &[argument("path", &["filePath"]), argument("content", &["content"])]),
        call(
            &["edit"],
            "Edit",
            &[
                argument("path", &["filePath"]),
                argument("old_string", &["oldString"]),
                argument_or("new_string", &["newString"], ""),
            ],
        ),
        ToolRow {
            names: &["multiedit"],
            is: Is::Edits { path: &["filePath"], list: "edits", old: "oldString", new: "newString" },
            untrusted: false,
        },
        ToolRow { names: &["patch", "apply_patch"], is: Is::Patch(&["patchText"]), untrusted: false },
        call(&["list"], "ListDir", &[argument("path", &["path"])]),
        call(&["glob"], "Glob", &[argument("pattern", &["pattern"]), argument("path", &["path"])]),
        call(
            &["grep"],
            "Grep",
            &[argument("pattern", &["pattern"]), argument("path", &["path"]), argument("include", &["include"])],
        ),
        web(&["webfetch"], "WebFetch", &[argument("url", &["url"])]),
        web(&["websearch"], "WebSearch", &[argument("query", &["query"])]),
        internal(&["todowrite", "todoread", "task", "question", "plan_exit", "invalid"]),
    ],
    answers: Answers { goes_on, ask: no_ask, block, block_code: 2, rewrite: no_rewrite },
    rewrites: Rewrites::No,
    gaps: &[Gap {
        when: "the plugin is not loaded (--pure, a \"-\" entry for it, an error in another plugin's load)",
        closed_by: None,
        source: DOCS,
    }],
};

const fn of_tool(name: &'static str, kind: Kind) -> EventRow {
    EventRow { name, kind, tool: Named::At(&["/tool"]), input: &["/args"], result: &["/output"], asks: false }
}

/// The plugin lets a tool run on this word alone.
fn goes_on(_: &EventRow) -> Option<Value> {
    Some(json!({ "decision": "allow" }))
}

fn block(_: Option<&EventRow>, reason: &str) -> Option<Value> {
    Some(json!({ "decision": "deny", "reason": reason }))
}
