//! Showing what happened: the last records, one call as a whole, everything in order.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use crate::audit::chain::{Header, Unreadable, parse};
use crate::audit::event::{ApprovalEvent, Content, Decided, Event, Finished, Record};
use crate::audit::lines::{End, line_before, line_start};
use crate::audit::unfinished::Mention;
use crate::audit::volumes::{self, Volume, VolumeLines};
use crate::state::{Life, Process};
use crate::verdict::Decision;

/// The fewest characters of a call's id that name it.
const MIN_PART: usize = 4;

/// How many calls are named where an id is ambiguous.
const MAX_NAMED: usize = 5;

/// Why a log, or a call in it, cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("`{part}` names {} calls or more: give more of the id, such as {}", .ids.len(), .ids.join(" or "))]
    Ambiguous { part: String, ids: Vec<String> },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} byte {offset}: not a record: {source}; `portcullis audit verify` says what is broken", path.display())]
    NoRecord { path: PathBuf, offset: u64, source: Unreadable },
    #[error("no call whose id starts or ends with `{0}` is in the log")]
    NotFound(String),
    #[error("`{0}` is too short: give at least {MIN_PART} characters of the call's id")]
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
    Ok(Records { lines: lines(log)? })
}

/// The records from the last one back.
pub fn newest(log: &Path) -> Result<Newest, ReadError> {
    let mut newest = Newest { rest: volumes::open_all(log).map_err(io_error(log))?, current: None };
    newest.open_next()?;
    Ok(newest)
}

fn lines(log: &Path) -> Result<VolumeLines, ReadError> {
    Ok(VolumeLines::new(volumes::open_all(log).map_err(io_error(log))?))
}

/// The last `count` records, the oldest of them first.
pub fn last(log: &Path, count: usize) -> Result<Vec<Record>, ReadError> {
    let mut records = newest(log)?.take(count).collect::<Result<Vec<_>, _>>()?;
    records.reverse();
    Ok(records)
}

/// The call with this id, or the only one whose id starts or ends with `part`: ids sort by time, so that those of one day
/// start alike. Lines that cannot be read are passed over: `verify` speaks of them.
pub fn find_call(log: &Path, part: &str) -> Result<CallView, ReadError> {
    if part.len() < MIN_PART {
        return Err(ReadError::TooShort(part.to_owned()));
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    each_line(log, |kind, offset, bytes| {
        let Some(Mention::Decided { id, .. } | Mention::Ended { id, .. }) = Mention::of(kind, bytes) else {
            return Ok(());
        };
        if !(id.starts_with(part) || id.ends_with(part)) {
            return Ok(());
        }
        let known = candidates.iter().position(|candidate| candidate.id == id);
        if known.is_none() && (id == part || candidates.len() < MAX_NAMED) {
            candidates.push(Candidate { id: id.clone(), decided: None, finished: None, unknown: false });
        }
        let at = known.unwrap_or(candidates.len().saturating_sub(1));
        // Beyond the limit only an exact match is still of interest.
        if let Some(candidate) = candidates.get_mut(at).filter(|candidate| candidate.id == id) {
            candidate.note(parse(bytes).map_err(no_record(log, offset))?);
        }
        Ok(())
    })?;
    if let Some(exact) = candidates.iter().position(|candidate| candidate.id == part) {
        candidates = vec![candidates.swap_remove(exact)];
    }
    match (candidates.pop(), candidates.is_empty()) {
        (Some(candidate), true) => candidate.view(log)?.ok_or_else(|| ReadError::NotFound(part.to_owned())),
        (Some(last), false) => {
            let ids = candidates.into_iter().map(|candidate| candidate.id).chain([last.id]).collect();
            Err(ReadError::Ambiguous { part: part.to_owned(), ids })
        }
        (None, _) => Err(ReadError::NotFound(part.to_owned())),
    }
}

/// What was found of a call so far.
struct Candidate {
    id: String,
    decided: Option<(u64, Timestamp, Box<Decided>)>,
    finished: Option<(Timestamp, Finished)>,
    unknown: bool,
}

impl Candidate {
    fn note(&mut self, record: Record) {
        let Record { seq, time, content: Content::Event(event), .. } = record else { return };
        match event {
            Event::Decided(decided) => self.decided = Some((seq, time, decided)),
            Event::Finished(finished) => self.finished = Some((time, finished)),
            Event::Unknown(_) => self.unknown = true,
            Event::Approval(_)
            | Event::Checkpoint(_)
            | Event::Control(_)
            | Event::Opened(_)
            | Event::Recovered(_)
            | Event::Rejected(_)
            | Event::Retired(_)
            | Event::Rotated(_) => {}
        }
    }

    fn view(self, log: &Path) -> Result<Option<CallView>, ReadError> {
        let Some((seq, time, decided)) = self.decided else { return Ok(None) };
        let state = match decided.effective {
            Decision::Deny => CallState::Denied,
            Decision::Ask(_) => CallState::Asked,
            Decision::Allow if self.finished.is_some() => CallState::Finished,
            Decision::Allow if self.unknown => CallState::OutcomeUnknown,
            Decision::Allow => CallState::unfinished(&decided.process),
        };
        let approvals = approvals_of(log, &decided)?;
        Ok(Some(CallView { seq, time, decided, approvals, finished: self.finished, state }))
    }
}

fn approvals_of(log: &Path, decided: &Decided) -> Result<Vec<(Timestamp, ApprovalEvent)>, ReadError> {
    let mut steps = Vec::new();
    let ours: Vec<&String> = decided.grant.iter().chain(&decided.pending).collect();
    if ours.is_empty() {
        return Ok(steps);
    }
    each_line(log, |kind, offset, bytes| {
        if kind != "approval" {
            return Ok(());
        }
        if let Record { time, content: Content::Event(Event::Approval(step)), .. } =
            parse(bytes).map_err(no_record(log, offset))?
            && ours.contains(&&step.approval)
        {
            steps.push((time, step));
        }
        Ok(())
    })?;
    Ok(steps)
}

/// Calls `visit` with the kind, the place and the bytes of every line that has a header.
fn each_line(log: &Path, mut visit: impl FnMut(&str, u64, &[u8]) -> Result<(), ReadError>) -> Result<(), ReadError> {
    let mut lines = lines(log)?;
    while let Some((_, _, line)) = lines.next().map_err(io_error(log))? {
        if line.end == End::Newline
            && let Ok(header) = Header::parse(line.bytes)
        {
            visit(&header.kind, line.offset, line.bytes)?;
        }
    }
    Ok(())
}

/// See [`records`].
pub struct Records {
    lines: VolumeLines,
}

/// See [`newest`].
pub struct Newest {
    /// The volumes before the current one.
    rest: Vec<Volume>,
    /// The volume that is read, and where its unread lines end.
    current: Option<(Volume, u64)>,
}

impl Newest {
    fn open_next(&mut self) -> Result<(), ReadError> {
        self.current = match self.rest.pop() {
            None => None,
            Some(volume) => {
                let end = line_start(&volume.file, volume.size).map_err(io_error(&volume.path))?;
                Some((volume, end))
            }
        };
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Record>, ReadError> {
        while let Some((volume, end)) = &mut self.current {
            if let Some(line) = line_before(&volume.file, *end).map_err(io_error(&volume.path))? {
                *end = line.offset;
                return parse(&line.bytes).map(Some).map_err(no_record(&volume.path, line.offset));
            }
            self.open_next()?;
        }
        Ok(None)
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.lines.next() {
            Ok(Some((_, path, line))) if line.end != End::Missing => {
                Some(parse(line.bytes).map_err(no_record(path, line.offset)))
            }
            Ok(_) => None,
            Err(e) => Some(Err(io_error(&self.lines.path())(e))),
        }
    }
}

impl Iterator for Newest {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
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
