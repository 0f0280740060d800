//! `portcullis audit`: read and verify the log.

mod line;
mod prove;
mod show;
mod verify;

use std::io::Write;
use std::path::{Path, PathBuf};

use self::line::line;
use crate::audit;
use crate::audit::read;
use crate::cli::args::AuditCommand;
use crate::cli::{Failure, exit, render};
use crate::config::Places;

pub(super) fn run(command: AuditCommand) -> Result<u8, Failure> {
    match command {
        AuditCommand::Tail { lines, json } => tail(&log()?, lines, json),
        AuditCommand::Show { call, json } => show::run(&log()?, &call, json),
        AuditCommand::Verify { path, key, checkpoints, json } => {
            verify::run(&path.map_or_else(log, Ok)?, verify::Against { key, checkpoints }, json)
        }
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
