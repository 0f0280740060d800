//! A record in one line.

use crate::audit::{Content, Decided, Event, Outcome, Record};

/// The record, without its newline. Nothing in it has been made safe for a terminal.
pub(super) fn line(record: &Record) -> String {
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
            Event::Checkpoint(_) => "checkpoint signed".to_owned(),
            Event::Retired(r) => format!("retired    {}: records {} to {} were removed", r.file, r.from, r.to),
            Event::Rotated(r) => format!("rotated    goes on from {}", r.closed),
            Event::Control(c) => format!("control    {:?}: {}", c.change, c.detail),
        },
        Content::Foreign { kind, .. } => format!("{kind:<10} (written by a newer version)"),
    };
    format!("{} {:>6}  {told}", record.time.strftime("%F %T"), record.seq)
}

/// The end of an id, which names the call: the beginning of a UUID v7 is the time, the same for calls that are close.
pub(super) fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(12)..).unwrap_or(id)
}

/// The tool and the argument that says most.
pub(super) fn subject(decided: &Decided) -> String {
    let flat: String = decided.subject().chars().take(80).collect();
    let why = decided.reason().map_or("", |finding| finding.id.as_str());
    format!("{} {flat}  [{why}]", decided.call.tool)
}

pub(super) fn outcome(outcome: &Outcome) -> String {
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
