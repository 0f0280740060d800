//! `portcullis audit`: read and verify the log.

mod line;
mod prove;
mod query;
mod replay;
mod report;
mod show;
mod verify;
mod when;
mod why;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use self::line::line;
use crate::audit::export::export;
use crate::audit::read;
use crate::audit::{self, Record};
use crate::cli::args::AuditCommand;
use crate::cli::{Failure, exit, render};
use crate::config::Places;

pub(super) fn run(command: AuditCommand) -> Result<u8, Failure> {
    match command {
        AuditCommand::Tail { lines, follow, json } => tail(&log()?, lines, follow, json),
        AuditCommand::Timeline { session, json } => query::timeline(&session, json),
        AuditCommand::Query(args) => query::query(args),
        AuditCommand::Sql { query, schema: _, json } => query::sql(query.as_deref(), json),
        AuditCommand::Why { call, json } => why::run(&log()?, &call, json),
        AuditCommand::Show { call, json } => show::run(&log()?, &call, json),
        AuditCommand::Verify { path, key, checkpoints, rederive, json } => {
            verify::run(&path.map_or_else(log, Ok)?, verify::Against { key, checkpoints, rederive }, json)
        }
        AuditCommand::Export { form, since } => {
            let since = since.as_deref().map(when::when).transpose()?;
            export(&log()?, since, form, &mut BufWriter::new(render::out_or_data(true)))?;
            Ok(exit::OK)
        }
        AuditCommand::Report { since } => report::run(&log()?, since.as_deref()),
        AuditCommand::Replay(args) => replay::run(&args),
        AuditCommand::Checkpoint => prove::checkpoint(),
        AuditCommand::Key => prove::key(),
        AuditCommand::Prove { record, since } => prove::prove(record, since.as_deref()),
        AuditCommand::CheckProof { path, key } => prove::check(&path, &key),
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

fn tail(log: &Path, lines: usize, follow: bool, json: bool) -> Result<u8, Failure> {
    let mut out = render::out_or_data(json);
    let mut show = |record: &Record| -> Result<(), Failure> {
        if json {
            writeln!(out, "{}", serde_json::to_string(record)?)?;
        } else {
            writeln!(out, "{}", render::line(&line(record)))?;
        }
        Ok(out.flush()?)
    };
    let mut next = 0;
    for record in read::last(log, lines)? {
        show(&record)?;
        next = record.seq.saturating_add(1);
    }
    if lines == 0 {
        next = read::newest(log)?.next().transpose()?.map_or(0, |record| record.seq.saturating_add(1));
    }
    if !follow {
        return Ok(exit::OK);
    }
    loop {
        thread::sleep(FOLLOW);
        let mut fresh = Vec::new();
        for record in read::newest(log)? {
            // A line that is being written is read the next time.
            let Ok(record) = record else { break };
            if record.seq < next {
                break;
            }
            fresh.push(record);
        }
        for record in fresh.iter().rev() {
            show(record)?;
            next = record.seq.saturating_add(1);
        }
    }
}

/// How often a log that is followed is looked at.
const FOLLOW: Duration = Duration::from_millis(200);
