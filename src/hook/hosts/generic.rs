//! The documented form, for programs that are not known. The tools are Portcullis' own, with their own arguments.

use serde_json::{Value, json};

use super::{about_session, no_rewrite};
use crate::call::Mode;
use crate::hook::host::{
    Answers, EventRow, Fields, Gap, Host, Kind, ModeRow, Named, Rewrites, argument, call, internal,
};

pub const HOST: Host = Host {
    name: "generic",
    title: "the generic form",
    source: "README.md, \"Other agents\"",
    checked: "2026-12-01",
    fields: Fields {
        event: &["/event"],
        session: &["/session"],
        workspace: &["/workspace"],
        cwd: &["/cwd", "/workspace"],
        mode: &["/mode"],
        id: &["/id"],
        workspace_variable: None,
    },
    events: &[
        about_session("session", Kind::Begins),
        of_tool("before", Kind::Uses),
        of_tool("after", Kind::Ends),
        of_tool("failed", Kind::Failed),
    ],
    modes: &[
        ModeRow { name: "plan", mode: Some(Mode::Plan), asks: true },
        ModeRow { name: "default", mode: None, asks: true },
        ModeRow { name: "unattended", mode: None, asks: false },
    ],
    tools: &[
        call(
            &["Bash"],
            "Bash",
            &[argument("command", &["command"]), argument("cwd", &["cwd"]), argument("timeout", &["timeout"])],
        ),
        call(
            &["Read"],
            "Read",
            &[argument("path", &["path"]), argument("offset", &["offset"]), argument("limit", &["limit"])],
        ),
        call(&["Write"], "Write", &[argument("path", &["path"]), argument("content", &["content"])]),
        call(
            &["Edit"],
            "Edit",
            &[
                argument("path", &["path"]),
                argument("old_string", &["old_string"]),
                argument("new_string", &["new_string"]),
                argument("replace_all", &["replace_all"]),
            ],
        ),
        call(&["ListDir"], "ListDir", &[argument("path", &["path"])]),
        call(&["Glob"], "Glob", &[argument("pattern", &["pattern"]), argument("path", &["path"])]),
        call(
            &["Grep"],
            "Grep",
            &[argument("pattern", &["pattern"]), argument("path", &["path"]), argument("include", &["include"])],
        ),
        internal(&["Internal"]),
    ],
    answers: Answers { goes_on, ask, block, block_code: 2, rewrite: no_rewrite },
    rewrites: Rewrites::No,
    gaps: &[Gap {
        when: "the program does not wait for the answer, or goes on with any other than exit code 0",
        closed_by: None,
        source: "README.md, \"Other agents\"",
    }],
};

const fn of_tool(name: &'static str, kind: Kind) -> EventRow {
    EventRow { name, kind, tool: Named::At(&["/tool"]), input: &["/arguments"], result: &["/result"], asks: false }
}

fn goes_on(_: &EventRow) -> Option<Value> {
    Some(json!({ "decision": "allow" }))
}

fn ask(_: &EventRow, reason: &str, _: Option<&Value>) -> Option<Value> {
    Some(json!({ "decision": "ask", "reason": reason }))
}

fn block(_: Option<&EventRow>, reason: &str) -> Option<Value> {
    Some(json!({ "decision": "deny", "reason": reason }))
}
