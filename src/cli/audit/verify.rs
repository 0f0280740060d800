//! `audit verify`: whether the log is whole, and which line and byte is not.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::audit::note::{Checkpoint, Verifier, notes};
use crate::audit::read::CallState;
use crate::audit::replay::{Dissent, Library, Rederived, rederive};
use crate::audit::{self, Agreement, HeadState, Report, Trust};
use crate::cli::{Failure, exit, render};
use crate::config::Places;
use crate::gateway;

/// What else than the log a verification goes by.
pub(super) struct Against {
    pub key: Option<String>,
    pub checkpoints: Vec<PathBuf>,
    /// Whether every call is decided again.
    pub rederive: bool,
}

impl Against {
    /// Reads the key and the checkpoints. A checkpoint that the given key did not sign is an error.
    fn trust(self) -> Result<Trust, Failure> {
        let key: Option<Verifier> = self.key.map(|key| key.trim().parse()).transpose()?;
        let mut kept = Vec::new();
        for path in self.checkpoints {
            let unreadable = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
            let text = fs::read_to_string(&path).map_err(|e| unreadable(&e))?;
            let before = kept.len();
            for note in notes(&text) {
                let read = match &key {
                    Some(key) => key.open(&note),
                    None => Checkpoint::parse(&note),
                };
                kept.push(read.map_err(|e| unreadable(&e))?);
            }
            if kept.len() == before {
                return Err(unreadable(&"holds no checkpoint"));
            }
        }
        Ok(Trust { key, kept })
    }
}

pub(super) fn run(log: &Path, against: Against, as_json: bool) -> Result<u8, Failure> {
    let rederive = against.rederive;
    let report = audit::verify_with(log, against.trust()?)?;
    let rederived = if rederive { Some(again(log)?) } else { None };
    let honest = rederived.as_ref().is_none_or(Rederived::honest);
    let code = if report.sound() && honest { exit::OK } else { exit::DENIED };
    if as_json {
        writeln!(io::stdout(), "{}", report_json(&report, rederived.as_ref())?)?;
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
        writeln!(out, "  {id}: {}", super::show::state(*state))?;
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
    let files = if report.files > 1 { format!("{} files, ", report.files) } else { String::new() };
    let signed =
        if report.signatures_checked || report.checkpoints == 0 { "" } else { ", signatures NOT checked: no key" };
    writeln!(out, "tree: {files}{} checkpoints hold{signed}; root {}", report.checkpoints, report.root)?;
    if report.starts_at > 0 {
        writeln!(out, "note   it starts at record {}: the retention removed those before", report.starts_at)?;
    }
    for (checkpoint, found) in &report.kept {
        writeln!(out, "{}", kept(checkpoint, *found))?;
    }
    if let Some(rederived) = &rederived {
        told(&mut out, rederived)?;
    }
    writeln!(out, "{}", if report.sound() { "the chain is whole" } else { "the log is NOT sound" })?;
    Ok(code)
}

/// What became of a checkpoint that was kept elsewhere.
fn kept(checkpoint: &Checkpoint, found: Agreement) -> String {
    let size = checkpoint.size;
    match found {
        Agreement::Agrees => format!("kept   the first {size} lines are those that the checkpoint signs"),
        Agreement::Cut => {
            format!("BROKEN the log had {size} lines when the checkpoint was signed: some were taken away")
        }
        Agreement::Differs => {
            format!("BROKEN the first {size} lines are not those that were signed: the log was altered or written anew")
        }
        Agreement::OtherLog => {
            format!("BROKEN the checkpoint is of {}, and this log is another one or was begun anew", checkpoint.origin)
        }
        Agreement::TooOld => format!("note   the checkpoint of {size} lines is older than the files that are left"),
    }
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

/// Decides every call again, under the rules that were kept.
fn again(log: &Path) -> Result<Rederived, Failure> {
    let registry = crate::tools::all()?;
    let mut library = Library::new(&Places::from_env()?.state, gateway::definitions(&registry));
    Ok(rederive(log, &mut library)?)
}

fn told(out: &mut impl Write, rederived: &Rederived) -> io::Result<()> {
    let Rederived { reproduced, undetermined, without_rules, why, dissents, more } = rederived;
    writeln!(out, "rederived: {reproduced} calls are what their rules say")?;
    if *undetermined > 0 {
        writeln!(out, "note   {undetermined} calls cannot be decided again: what the rules read was redacted")?;
    }
    if *without_rules > 0 {
        writeln!(out, "BROKEN {without_rules} calls cannot be decided again: {}", render::line(&why.join("; ")))?;
    }
    for Dissent { seq, call, recorded, derived, why } in dissents {
        writeln!(
            out,
            "BROKEN record {seq}, call {call}: recorded {recorded}, derived {derived}: {}",
            render::line(why)
        )?;
    }
    if *more > 0 {
        writeln!(out, "BROKEN and {more} more calls")?;
    }
    Ok(())
}

fn report_json(report: &Report, rederived: Option<&Rederived>) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(report)?;
    if let Some(calls) = value.get_mut("calls").and_then(Value::as_object_mut) {
        calls.insert("unknown".to_owned(), Value::from(report.calls.unknown + unknown(report)));
    }
    if let Some(map) = value.as_object_mut() {
        map.insert("sound".to_owned(), Value::from(report.sound()));
        if let Some(rederived) = rederived {
            map.insert("honest".to_owned(), Value::from(rederived.honest()));
            map.insert("rederived".to_owned(), serde_json::to_value(rederived)?);
        }
    }
    Ok(value)
}
