//! `portcullis audit`: read and verify the log.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::audit::read::{self, CallState};
use crate::audit::{self, Content, Decided, Event, HeadState, Outcome, Record, Report};
use crate::cli::args::AuditCommand;
use crate::cli::{Failure, exit, render};
use crate::config::Places;
use crate::gateway::Judged;

pub(super) fn run(command: AuditCommand) -> Result<u8, Failure> {
    match command {
        AuditCommand::Tail { lines, json } => tail(&log()?, lines, json),
        AuditCommand::Show { call, json } => show(&log()?, &call, json),
        AuditCommand::Verify { path, json } => verify(&path.map_or_else(log, Ok)?, json),
    }
}

/// The configured log, which exists once a call was made.
fn log() -> Result<PathBuf, Failure> {
    let state = Places::from_env()?.state;
    let path = audit::log_file(&state);
    if path.exists() {
        return Ok(path);
    }
    if state.join("state.db").exists() {
        let message = format!("the audit log {} is MISSING, although this gateway has made calls", path.display());
        return Err(Failure { message, code: exit::DENIED });
    }
    Err(Failure::usage(format!(
        "there is no audit log at {} yet: it begins with the first `portcullis run`",
        path.display()
    )))
}

fn tail(log: &Path, lines: usize, json: bool) -> Result<u8, Failure> {
    let mut out = render::out_or_data(json);
    for record in read::last(log, lines)? {
        if json {
            writeln!(out, "{}", serde_json::to_string(&record)?)?;
        } else {
            writeln!(out, "{}", render::line(&line(&record)))?;
        }
    }
    Ok(exit::OK)
}

/// A record in one line.
fn line(record: &Record) -> String {
    let told = match &record.content {
        Content::Event(event) => match event {
            Event::Opened(o) => format!("opened     by portcullis {}", o.gateway),
            Event::Decided(d) => format!("{:<10} {}  {}", d.effective.to_string(), short(&d.call.id), subject(d)),
            Event::Finished(f) => format!("finished   {}  {} in {} ms", short(&f.call_id), outcome(&f.outcome), f.ms),
            Event::Unknown(u) => format!("unknown    {}  outcome unknown: its process is gone", short(&u.call_id)),
            Event::Recovered(r) => format!("recovered  {}", serde_json::to_string(&r.trouble).unwrap_or_default()),
            Event::Rejected(r) => format!("rejected   {}  {}", r.tool, r.finding.message),
            Event::Approval(a) => {
                let by = a.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
                format!("approval   {}  {:?}{by}", a.approval, a.step).to_lowercase()
            }
            Event::Control(c) => format!("control    {:?}: {}", c.change, c.detail),
        },
        Content::Foreign { kind, .. } => format!("{kind:<10} (written by a newer version)"),
    };
    format!("{} {:>6}  {told}", record.time.strftime("%F %T"), record.seq)
}

/// The end of an id, which names the call: the beginning of a UUID v7 is the time, the same for calls that are close.
fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(12)..).unwrap_or(id)
}

/// The tool and the argument that says most.
fn subject(decided: &Decided) -> String {
    let call = &decided.call;
    let said = ["command", "path", "pattern", "name"].into_iter().find_map(|name| call.text(name)).unwrap_or("");
    let flat: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect();
    let why = decided.verdict.findings().map(|(_, f)| f).max_by_key(|f| f.severity).map_or("", |f| f.id.as_str());
    format!("{} {flat}  [{why}]", call.tool)
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { code } => format!("exit {code}"),
        Outcome::NotRun { reason } => format!("not run: {reason}"),
        Outcome::Ok => "ok".to_owned(),
        Outcome::SetupFailed { message } => format!("set-up failed: {message}"),
        Outcome::Signaled { signal } => format!("signal {signal}"),
        Outcome::OverLimit { limit } => format!("over its limit of {limit}"),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::ToolError { message } => format!("failed: {}", message.lines().next().unwrap_or("")),
    }
}

fn show(log: &Path, call: &str, json: bool) -> Result<u8, Failure> {
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
    let judged = Judged {
        tool: decided.call.tool.clone(),
        call: Some(decided.call.clone()),
        facts: decided.facts.clone(),
        verdict: decided.verdict.clone(),
    };
    render::verdict(&mut out, &judged)?;
    Ok(exit::OK)
}

fn state(state: CallState) -> &'static str {
    match state {
        CallState::Asked => "waits for, or waited for, a person",
        CallState::Denied => "denied",
        CallState::Finished => "finished",
        CallState::OutcomeUnknown => "started, outcome unknown",
        CallState::Running => "running",
    }
}

fn verify(log: &Path, as_json: bool) -> Result<u8, Failure> {
    let report = audit::verify(log)?;
    let code = if report.sound() { exit::OK } else { exit::DENIED };
    if as_json {
        writeln!(io::stdout(), "{}", report_json(&report)?)?;
        return Ok(code);
    }
    let mut out = render::out();
    let calls = &report.calls;
    writeln!(out, "{}: {} records, {} bytes", log.display(), report.records, report.bytes)?;
    if let (Some(first), Some(last)) = (report.first, report.last) {
        writeln!(out, "from {first} to {last}")?;
    }
    writeln!(
        out,
        "calls: {} allowed ({} finished, {} outcome unknown), {} asked, {} denied, {} rejected",
        calls.allowed,
        calls.finished,
        calls.unknown + unknown(&report),
        calls.asked,
        calls.denied,
        calls.rejected
    )?;
    for (id, state) in &report.unfinished {
        writeln!(out, "  {id}: {}", self::state(*state))?;
    }
    if report.recovered > 0 {
        writeln!(out, "{} times the log was found damaged and made whole (see `recovered` records)", report.recovered)?;
    }
    for flaw in &report.breaks {
        writeln!(out, "BROKEN {flaw}")?;
    }
    if report.more_breaks > 0 {
        writeln!(out, "BROKEN and {} more places", report.more_breaks)?;
    }
    if let Some(torn) = report.torn {
        writeln!(
            out,
            "TORN   {} bytes without an end at byte {}; the next append sets them aside",
            torn.bytes, torn.offset
        )?;
    }
    if let Some(told) = head(&report.head) {
        writeln!(out, "{told}")?;
    }
    writeln!(out, "{}", if report.sound() { "the chain is whole" } else { "the log is NOT sound" })?;
    Ok(code)
}

/// Calls that nothing says the end of, and whose process is gone: the next writer will record them as unknown.
fn unknown(report: &Report) -> u64 {
    report.unfinished.iter().filter(|(_, state)| *state == CallState::OutcomeUnknown).count() as u64
}

fn head(head: &HeadState) -> Option<String> {
    match head {
        HeadState::Agrees | HeadState::Lags { .. } => None,
        HeadState::Absent => {
            Some("note   there is no head file beside it, so a cut tail could not be noticed".to_owned())
        }
        HeadState::Altered { seq, .. } => Some(format!("BROKEN record {seq} has other bytes than when it was written")),
        HeadState::Cut { seq } => {
            Some(format!("BROKEN the log went on to record {seq}: the records after the last are missing"))
        }
        HeadState::Unreadable => Some("BROKEN the head file beside it cannot be read".to_owned()),
    }
}

fn report_json(report: &Report) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(report)?;
    if let Some(calls) = value.get_mut("calls").and_then(Value::as_object_mut) {
        calls.insert("unknown".to_owned(), Value::from(report.calls.unknown + unknown(report)));
    }
    if let Some(map) = value.as_object_mut() {
        map.insert("sound".to_owned(), Value::from(report.sound()));
    }
    Ok(value)
}
