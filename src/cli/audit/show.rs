//! `audit show`: one call, who, what, why, and what came of it.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use super::line::outcome;
use crate::audit::read::{self, CallState};
use crate::cli::{Failure, exit, render};
use crate::gateway::Judged;

pub(super) fn run(log: &Path, call: &str, json: bool) -> Result<u8, Failure> {
    let view = read::find_call(log, call)?;
    let mut out = render::out_or_data(json);
    if json {
        let records = json!({
            "seq": view.seq, "time": view.time, "state": view.state, "decided": view.decided,
            "approvals": view.approvals, "finished": view.finished,
        });
        writeln!(out, "{records}")?;
        return Ok(exit::OK);
    }
    let decided = &view.decided;
    let principal = &decided.call.principal;
    writeln!(out, "call      {}", decided.call.id)?;
    writeln!(out, "time      {}  (record {})", view.time, view.seq)?;
    writeln!(
        out,
        "who       {} in session {}, mode {}, by {}",
        principal.agent,
        principal.session,
        principal.mode,
        decided.call.origin.as_str()
    )?;
    writeln!(out, "in        {}", render::line(&decided.call.cwd.to_string_lossy()))?;
    for (name, value) in &decided.call.arguments {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(out, "{:<9} {}", render::line(name), render::block(&shown))?;
    }
    writeln!(out, "answer    {} (state: {})", decided.effective, state(view.state))?;
    writeln!(out, "digest    {}", decided.digest)?;
    for (time, step) in &view.approvals {
        let by = step.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        writeln!(out, "approval  {} {:?}{by} at {time}", step.approval, step.step)?;
    }
    if let Some((time, finished)) = &view.finished {
        writeln!(
            out,
            "ended     {} after {} ms, {} bytes of output, at {time}",
            outcome(&finished.outcome),
            finished.ms,
            finished.output_bytes
        )?;
    }
    writeln!(out)?;
    render::verdict(&mut out, &Judged::recorded(decided))?;
    Ok(exit::OK)
}

pub(super) fn state(state: CallState) -> &'static str {
    match state {
        CallState::Asked => "waits for, or waited for, a person",
        CallState::Denied => "denied",
        CallState::Finished => "finished",
        CallState::OutcomeUnknown => "started, outcome unknown",
        CallState::Running => "running",
    }
}
