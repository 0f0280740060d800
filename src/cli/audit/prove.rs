//! Checkpoints and proofs for somebody who has not got the log.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::audit::note::{Signer, Verifier};
use crate::audit::read::{ReadError, find_call};
use crate::audit::{Log, Of, Proof, Wanted, log_file, prove as proof_of};
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::state::StateDir;

/// The log of this installation, open for a checkpoint.
fn open() -> Result<(StateDir, Log), Failure> {
    let config = Config::from_env()?;
    super::log()?;
    let state = StateDir::open(&config.places.state)?;
    let log = Log::open_with(&state, config.file.audit.settings())?;
    Ok((state, log))
}

pub(super) fn checkpoint() -> Result<u8, Failure> {
    let (_, log) = open()?;
    write!(render::out_or_data(true), "{}", log.checkpoint()?)?;
    Ok(exit::OK)
}

pub(super) fn key() -> Result<u8, Failure> {
    let (state, _) = open()?;
    writeln!(render::out_or_data(true), "{}", Signer::open(&state)?.verifier())?;
    Ok(exit::OK)
}

pub(super) fn prove(record: Option<String>, since: Option<&Path>) -> Result<u8, Failure> {
    let (state, log) = open()?;
    let path = log_file(state.path());
    let wanted = match (record, since) {
        (_, Some(since)) => {
            let earlier = fs::read_to_string(since);
            Wanted::Since(earlier.map_err(|e| Failure::usage(format!("{}: {e}", since.display())))?)
        }
        (Some(record), None) => Wanted::Record(number(&path, &record)?),
        (None, None) => {
            return Err(Failure::usage("name a record by its number, a call by its id, or --since a checkpoint"));
        }
    };
    let proof = proof_of(&path, &log.checkpoint()?, wanted)?;
    writeln!(render::out_or_data(true), "{}", serde_json::to_string(&proof)?)?;
    Ok(exit::OK)
}

/// A record's number, or that of the record in which a call was decided.
fn number(log: &Path, record: &str) -> Result<u64, ReadError> {
    match record.parse() {
        Ok(number) => Ok(number),
        Err(_) => Ok(find_call(log, record)?.seq),
    }
}

pub(super) fn check(path: &Path, key: &str) -> Result<u8, Failure> {
    let key: Verifier = key.trim().parse()?;
    let wrong = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
    let proof: Proof = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
    let now = proof.check(&key).map_err(|e| Failure { message: e.to_string(), code: exit::DENIED })?;
    let mut out = render::out();
    match &proof.of {
        Of::Inclusion { seq, line, .. } => {
            writeln!(out, "record {seq} is in the log {} of {} lines:", now.origin, now.size)?;
            writeln!(out, "{}", render::line(line))?;
        }
        Of::Consistency { .. } => {
            writeln!(out, "the log {} of {} lines only added to the earlier one", now.origin, now.size)?;
        }
    }
    Ok(exit::OK)
}
