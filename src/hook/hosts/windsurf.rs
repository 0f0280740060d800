//! Windsurf (Cascade). It looks at the exit code alone.

use super::{about_session, no_ask, no_block, no_rewrite, silence};
use crate::hook::host::{Answers, EventRow, Fields, Gap, Host, Is, Kind, Named, Rewrites, ToolRow, argument, call};

const DOCS: &str = "https://docs.windsurf.com/windsurf/cascade/hooks";

pub const HOST: Host = Host {
    name: "windsurf",
    title: "Windsurf",
    source: DOCS,
    checked: "2026-11-30",
    fields: Fields {
        event: &["/agent_action_name"],
        session: &["/trajectory_id"],
        workspace: &[],
        cwd: &["/tool_info/cwd"],
        mode: &[],
        id: &[],
        workspace_variable: Some("ROOT_WORKSPACE_PATH"),
    },
    events: &[
        about_session("pre_user_prompt", Kind::Prompt),
        event("pre_run_command", Kind::Uses, Named::Always("run_command"), &["/tool_info"]),
        event("pre_read_code", Kind::Uses, Named::Always("read_code"), &["/tool_info"]),
        event("pre_write_code", Kind::Uses, Named::Always("write_code"), &["/tool_info"]),
        event("pre_mcp_tool_use", Kind::Uses, MCP, &["/tool_info/mcp_tool_arguments"]),
        event("post_run_command", Kind::Ends, Named::Always("run_command"), &["/tool_info"]),
        event("post_read_code", Kind::Ends, Named::Always("read_code"), &["/tool_info"]),
        event("post_write_code", Kind::Ends, Named::Always("write_code"), &["/tool_info"]),
        event("post_mcp_tool_use", Kind::Ends, MCP, &["/tool_info/mcp_tool_arguments"]),
    ],
    modes: &[],
    tools: &[
        call(&["run_command"], "Bash", &[argument("command", &["command_line"])]),
        call(&["read_code"], "Read", &[argument("path", &["file_path"])]),
        ToolRow {
            names: &["write_code"],
            is: Is::Edits { path: &["file_path"], list: "edits", old: "old_string", new: "new_string" },
            untrusted: false,
        },
    ],
    answers: Answers { goes_on: silence, ask: no_ask, block: no_block, block_code: 2, rewrite: no_rewrite },
    rewrites: Rewrites::No,
    gaps: &[Gap {
        when: "the hook cannot be started, is killed, exceeds the agent's time-out, or ends with another code than 2",
        closed_by: None,
        source: DOCS,
    }],
};

const MCP: Named = Named::Mcp { server: "/tool_info/mcp_server_name", tool: "/tool_info/mcp_tool_name" };

const fn event(name: &'static str, kind: Kind, tool: Named, input: &'static [&'static str]) -> EventRow {
    EventRow { name, kind, tool, input, result: &["/tool_info/mcp_result"], asks: false }
}
