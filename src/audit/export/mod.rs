//! The log in other systems' forms. What is exported is what is on record, so secrets are redacted in it.

mod ocsf;
mod otlp;

use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;

use crate::audit::event::{Content, Decided, Event, Finished, Record};
use crate::audit::read::{ReadError, records};
use crate::verdict::Decision;

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A table of the calls.
    Csv,
    /// The records as they are, one JSON object a line.
    Jsonl,
    /// Events of the Open Cybersecurity Schema Framework, one JSON object a line: API Activity, and Process Activity for
    /// commands that ran.
    Ocsf,
    /// Spans in the JSON form of the OpenTelemetry protocol, one batch a line.
    Otlp,
}

/// Why an export broke off.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the table cannot be written: {0}")]
    Csv(#[from] csv::Error),
    #[error("the export cannot be written: {0}")]
    Io(#[from] io::Error),
    #[error("a record has no form as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Writes the records since a time in a form.
///
/// # Errors
///
/// When the log cannot be read, or the target not be written.
pub fn export(log: &Path, since: Option<Timestamp>, form: Form, out: &mut dyn Write) -> Result<(), ExportError> {
    let recent = |record: &Record| since.is_none_or(|since| record.time >= since);
    match form {
        Form::Jsonl => {
            for record in records(log)? {
                let record = record?;
                if recent(&record) {
                    writeln!(out, "{}", serde_json::to_string(&record)?)?;
                }
            }
        }
        Form::Csv => table(log, recent, out)?,
        Form::Ocsf => each_call(log, recent, |call| {
            for event in ocsf::events(call) {
                writeln!(out, "{}", serde_json::to_string(&event)?)?;
            }
            Ok(())
        })?,
        Form::Otlp => each_call(log, recent, |call| Ok(writeln!(out, "{}", otlp::batch(call))?))?,
    }
    Ok(out.flush()?)
}

/// A step of a call: that it was judged, or that it ended.
pub(super) struct Step<'a> {
    pub seq: u64,
    pub time: Timestamp,
    pub decided: &'a Decided,
    /// Absent as long as the call runs, and where it does not.
    pub ended: Option<&'a Finished>,
    /// The hash that the record chains to.
    pub prev: String,
}

/// Shows every call that was not let through when it was judged, and every other when it ended. Calls that have not
/// ended come last.
fn each_call(
    log: &Path,
    recent: impl Fn(&Record) -> bool,
    mut show: impl FnMut(&Step<'_>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut open = std::collections::BTreeMap::new();
    for record in records(log)? {
        let record = record?;
        if !recent(&record) {
            continue;
        }
        let Record { seq, time, prev, content: Content::Event(event), .. } = record else { continue };
        match event {
            Event::Decided(decided) if decided.effective == Decision::Allow => {
                open.insert(decided.call.id.clone(), (seq, time, prev.to_string(), decided));
            }
            Event::Decided(decided) => {
                show(&Step { seq, time, decided: &decided, ended: None, prev: prev.to_string() })?;
            }
            Event::Finished(finished) => {
                if let Some((seq, time, prev, decided)) = open.remove(&finished.call_id) {
                    show(&Step { seq, time, decided: &decided, ended: Some(&finished), prev })?;
                }
            }
            _ => {}
        }
    }
    for (seq, time, prev, decided) in open.into_values() {
        show(&Step { seq, time, decided: &decided, ended: None, prev })?;
    }
    Ok(())
}

const COLUMNS: [&str; 14] = [
    "seq", "time", "call", "session", "agent", "origin", "tool", "subject", "cwd", "verdict", "answer", "rule",
    "outcome", "ms",
];

fn table(log: &Path, recent: impl Fn(&Record) -> bool, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(COLUMNS)?;
    each_call(log, recent, |step| {
        let Step { seq, time, decided, ended, .. } = step;
        let call = &decided.call;
        let outcome = ended.map(|finished| serde_json::to_value(&finished.outcome)).transpose()?;
        let outcome = outcome.as_ref().and_then(|value| value.get("result")?.as_str()).unwrap_or_default();
        let rule = decided.reason().map_or("", |finding| finding.id.as_str());
        let ms = ended.map(|finished| finished.ms.to_string()).unwrap_or_default();
        let cells = [
            seq.to_string(),
            time.to_string(),
            call.id.clone(),
            call.principal.session.clone(),
            call.principal.agent.clone(),
            call.origin.as_str().to_owned(),
            call.tool.clone(),
            decided.subject(),
            call.cwd.to_string_lossy().into_owned(),
            decided.verdict.decision.to_string(),
            decided.effective.to_string(),
            rule.to_owned(),
            outcome.to_owned(),
            ms,
        ];
        Ok(table.write_record(cells.iter().map(|cell| inert(cell)))?)
    })?;
    Ok(table.flush()?)
}

/// A cell that no spreadsheet takes for a formula: what agents write gets into it.
fn inert(cell: &str) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{cell}") } else { cell.to_owned() }
}
