//! Showing what happened: the last records, one call as a whole, everything in order.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::audit::chain::{Header, Unreadable, parse};
use crate::audit::event::{ApprovalEvent, Content, Decided, Event, Finished, Record};
use crate::audit::lines::{End, Lines, line_before, line_start};
use crate::audit::unfinished::Mention;
use crate::state::{Life, Process};
use crate::verdict::Decision;

/// The fewest characters of a call's id that name it.
const MIN_PREFIX: usize = 4;

/// Why a log, or a call in it, cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("`{prefix}` names {} calls: give more of the id, such as {}", .ids.len(), .ids.join(" or "))]
    Ambiguous { prefix: String, ids: Vec<String> },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} byte {offset}: not a record: {source}; `portcullis audit verify` says what is broken", path.display())]
    NoRecord { path: PathBuf, offset: u64, source: Unreadable },
    #[error("no call whose id starts with `{0}` is in the log")]
    NotFound(String),
    #[error("`{0}` is too short: give at least {MIN_PREFIX} characters of the call's id")]
    TooShort(String),
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallState {
    /// A person was asked; a granted call comes back as a call of its own.
    Asked,
    Denied,
    Finished,
    /// Started, and nothing says how it ended.
    OutcomeUnknown,
    Running,
}

impl CallState {
    /// The state of an allowed call that has no outcome.
    pub(super) fn unfinished(process: &Process) -> Self {
        match process.life() {
            Life::Alive | Life::Unknowable => CallState::Running,
            Life::Gone => CallState::OutcomeUnknown,
        }
    }
}

/// Everything that the log says of one call.
#[derive(Clone, Debug, Serialize)]
pub struct CallView {
    pub seq: u64,
    pub time: Timestamp,
    pub decided: Box<Decided>,
    /// The steps of the approval that the call asked for, or whose grant it used.
    pub approvals: Vec<(Timestamp, ApprovalEvent)>,
    pub finished: Option<(Timestamp, Finished)>,
    pub state: CallState,
}

/// All records, in order. An incomplete last line is left out: `verify` speaks of it.
pub fn records(log: &Path) -> Result<Records, ReadError> {
    let file = File::open(log).map_err(io_error(log))?;
    Ok(Records { path: log.to_owned(), lines: Lines::new(BufReader::with_capacity(1 << 16, file), 0) })
}

/// The records from the last one back.
pub fn newest(log: &Path) -> Result<Newest, ReadError> {
    let file = File::open(log).map_err(io_error(log))?;
    let size = file.metadata().map_err(io_error(log))?.len();
    let end = line_start(&file, size).map_err(io_error(log))?;
    Ok(Newest { path: log.to_owned(), file, end })
}

/// The last `count` records, the oldest of them first.
pub fn last(log: &Path, count: usize) -> Result<Vec<Record>, ReadError> {
    let mut records = newest(log)?.take(count).collect::<Result<Vec<_>, _>>()?;
    records.reverse();
    Ok(records)
}

/// The call whose id starts with `prefix`.
pub fn find_call(log: &Path, prefix: &str) -> Result<CallView, ReadError> {
    if prefix.len() < MIN_PREFIX {
        return Err(ReadError::TooShort(prefix.to_owned()));
    }
    let mut ids: Vec<String> = Vec::new();
    let (mut decided, mut finished, mut unknown) = (None, None, false);
    let mut lines = records(log)?.lines;
    while let Some(line) = lines.next().map_err(io_error(log))? {
        let unreadable = no_record(log, line.offset);
        if line.end == End::Missing {
            break;
        }
        let kind = match Header::parse(line.bytes) {
            Ok(header) => header.kind,
            Err(e) => return Err(unreadable(e)),
        };
        let Some(Mention::Decided { id, .. } | Mention::Ended { id, .. }) = Mention::of(&kind, line.bytes) else {
            continue;
        };
        if !id.starts_with(prefix) {
            continue;
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
        match parse(line.bytes).map_err(unreadable)? {
            Record { seq, time, content: Content::Event(Event::Decided(d)), .. } => decided = Some((seq, time, d)),
            Record { time, content: Content::Event(Event::Finished(f)), .. } => finished = Some((time, f)),
            _ => unknown = true,
        }
    }
    let (1, Some((seq, time, decided))) = (ids.len(), decided) else {
        return Err(match ids.len() {
            0 | 1 => ReadError::NotFound(prefix.to_owned()),
            _ => ReadError::Ambiguous { prefix: prefix.to_owned(), ids },
        });
    };
    let state = match decided.effective {
        Decision::Deny => CallState::Denied,
        Decision::Ask(_) => CallState::Asked,
        Decision::Allow if finished.is_some() => CallState::Finished,
        Decision::Allow if unknown => CallState::OutcomeUnknown,
        Decision::Allow => CallState::unfinished(&decided.process),
    };
    let approvals = approvals_of(log, &decided)?;
    Ok(CallView { seq, time, decided, approvals, finished, state })
}

fn approvals_of(log: &Path, decided: &Decided) -> Result<Vec<(Timestamp, ApprovalEvent)>, ReadError> {
    let mut steps = Vec::new();
    if decided.grant.is_none() && decided.pending.is_none() {
        return Ok(steps);
    }
    for record in records(log)? {
        if let Record { time, content: Content::Event(Event::Approval(step)), .. } = record?
            && [&decided.grant, &decided.pending].contains(&&Some(step.approval.clone()))
        {
            steps.push((time, step));
        }
    }
    Ok(steps)
}

/// See [`records`].
pub struct Records {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
}

/// See [`newest`].
pub struct Newest {
    path: PathBuf,
    file: File,
    end: u64,
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.lines.next() {
            Err(e) => return Some(Err(io_error(&self.path)(e))),
            Ok(line) => line.filter(|line| line.end != End::Missing)?,
        };
        Some(parse(line.bytes).map_err(no_record(&self.path, line.offset)))
    }
}

impl Iterator for Newest {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match line_before(&self.file, self.end) {
            Err(e) => Some(Err(io_error(&self.path)(e))),
            Ok(line) => {
                let line = line?;
                self.end = line.offset;
                Some(parse(&line.bytes).map_err(no_record(&self.path, line.offset)))
            }
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ReadError + use<> {
    let path = path.to_owned();
    move |source| ReadError::Io { path, source }
}

fn no_record(path: &Path, offset: u64) -> impl FnOnce(Unreadable) -> ReadError + use<> {
    let path = path.to_owned();
    move |source| ReadError::NoRecord { path, offset, source }
}
