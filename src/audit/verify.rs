//! Proving the chain: every line is JSON, numbered, and carries the hash of the line before it.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::audit::chain::{Header, zeros};
use crate::audit::lines::{End, Line, Lines};
use crate::audit::lock::Held;
use crate::audit::tail::{Head, HeadAt};
use crate::audit::unfinished::Mention;
use crate::audit::{LogError, MAX_LINE, read::CallState};
use crate::call::Digest;
use crate::state::Process;
use crate::verdict::Decision;

/// How many breaks are described; the others are counted.
const DESCRIBED: usize = 100;

/// What a log holds, and whether it is whole.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub records: u64,
    /// Bytes of complete lines.
    pub bytes: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub calls: Calls,
    /// Allowed calls without an outcome, by id: still running, or their process is gone.
    pub unfinished: Vec<(String, CallState)>,
    /// How many `recovered` records there are: each says that the log was once found damaged.
    pub recovered: u64,
    /// The first breaks, in the order of the file.
    pub breaks: Vec<Break>,
    /// Breaks beyond those that are described.
    pub more_breaks: u64,
    /// The file ends in the middle of a line.
    pub torn: Option<Torn>,
    pub head: HeadState,
}

/// Counts of calls by what was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    pub allowed: u64,
    pub asked: u64,
    pub denied: u64,
    /// Requests that never became a call.
    pub rejected: u64,
    pub finished: u64,
    /// Calls that are recorded as `unknown`.
    pub unknown: u64,
}

/// A place where the chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// From 1.
    pub line: u64,
    /// Where the line starts, in bytes.
    pub offset: u64,
    pub flaw: Flaw,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Flaw {
    /// The line carries another hash than the line before it has: that line was altered, or lines between the two were
    /// removed, added or moved.
    Prev {
        expected: Digest,
        found: Digest,
    },
    Seq {
        expected: u64,
        found: u64,
    },
    TooLong,
    Unreadable {
        error: String,
    },
}

/// An incomplete last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Torn {
    pub offset: u64,
    pub bytes: u64,
}

/// What the `head` file beside the log says. Only it can tell that the last lines are missing or altered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum HeadState {
    /// There is none, as beside a copy of a log.
    Absent,
    /// It names the last record and its hash.
    Agrees,
    /// It names record `seq`, which has other bytes now.
    Altered {
        seq: u64,
        expected: Digest,
    },
    /// It names record `seq`, which is missing.
    Cut {
        seq: u64,
    },
    /// It names an earlier record, as after a crash: the next append brings it up to date.
    Lags {
        records: u64,
    },
    Unreadable,
}

impl Report {
    /// Whether nothing is missing, altered or torn, as far as the chain and the head file can tell.
    pub fn sound(&self) -> bool {
        let head = match self.head {
            HeadState::Absent | HeadState::Agrees | HeadState::Lags { .. } => true,
            HeadState::Altered { .. } | HeadState::Cut { .. } | HeadState::Unreadable => false,
        };
        head && self.breaks.is_empty() && self.torn.is_none()
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {}): {}", self.line, self.offset, self.flaw)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Prev { expected, found } => write!(
                f,
                "`prev` is {found}, but the line before hashes to {expected}: that line was altered, or lines between \
                 them were removed, added or moved"
            ),
            Flaw::Seq { expected, found } => write!(f, "`seq` is {found}, expected {expected}"),
            Flaw::TooLong => write!(f, "longer than {MAX_LINE} bytes, so not written by this program"),
            Flaw::Unreadable { error } => write!(f, "not a record: {error}"),
        }
    }
}

/// Reads a whole log and checks it. Memory grows with the calls that are unfinished at the same time, not with the log.
pub fn verify(log: &Path) -> Result<Report, LogError> {
    let file = File::open(log).map_err(LogError::io(log))?;
    let (head, size) = snapshot(&file, log)?;
    let mut check = Check::new(head);
    let mut lines = Lines::new(BufReader::with_capacity(1 << 18, file.take(size)), 0);
    while let Some(line) = lines.next().map_err(LogError::io(log))? {
        check.line(&line);
    }
    Ok(check.finish())
}

/// The head and the size of the log at one moment: no append is under way where there is a lock to be had.
fn snapshot(file: &File, log: &Path) -> Result<(Option<Head>, u64), LogError> {
    let beside = |name: &str| -> Result<_, LogError> {
        let path = log.with_file_name(name);
        match File::open(&path) {
            Ok(file) => Ok(Some((file, path))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(LogError::io(&path)(e)),
        }
    };
    let lock = beside("lock")?;
    let _held = lock.as_ref().map(|(lock, path)| Held::shared(lock, path)).transpose()?;
    let head = beside("head")?.map(|(head, path)| Head::read(&head).map_err(LogError::io(&path))).transpose()?;
    let size = file.metadata().map_err(LogError::io(log))?.len();
    Ok((head, size))
}

/// The state of a verification between two lines.
struct Check {
    report: Report,
    head: Option<HeadAt>,
    /// The number and `prev` that the next line must have; after a line without a hash, any will do.
    seq: u64,
    prev: Option<Digest>,
    /// Records after the one that the head names.
    beyond_head: Option<u64>,
    open: HashMap<String, Process>,
}

impl Check {
    fn new(head: Option<Head>) -> Self {
        let (head, state) = match head {
            None | Some(Head::Empty) => (None, HeadState::Absent),
            Some(Head::Unreadable) => (None, HeadState::Unreadable),
            Some(Head::At(head)) => {
                let cut = HeadState::Cut { seq: head.seq };
                (Some(head), cut)
            }
        };
        let report = Report {
            records: 0,
            bytes: 0,
            first: None,
            last: None,
            calls: Calls::default(),
            unfinished: Vec::new(),
            recovered: 0,
            breaks: Vec::new(),
            more_breaks: 0,
            torn: None,
            head: state,
        };
        Check { report, head, seq: 0, prev: Some(zeros()), beyond_head: None, open: HashMap::new() }
    }

    fn line(&mut self, line: &Line<'_>) {
        match line.end {
            End::Missing => {
                self.report.torn = Some(Torn { offset: line.offset, bytes: line.next - line.offset });
                return;
            }
            End::TooLong => {
                self.flaw(line, Flaw::TooLong);
                self.prev = None;
            }
            End::Newline => {
                match Header::parse(line.bytes) {
                    Ok(header) => self.record(line, &header),
                    Err(e) => self.flaw(line, Flaw::Unreadable { error: e.to_string() }),
                }
                self.prev = Some(Digest::of(line.bytes));
            }
        }
        self.seq = self.seq.saturating_add(1);
        self.report.records += 1;
        self.report.bytes = line.next;
        self.compare_with_head(line);
    }

    fn record(&mut self, line: &Line<'_>, header: &Header<'_>) {
        if header.seq != self.seq {
            self.flaw(line, Flaw::Seq { expected: self.seq, found: header.seq });
            self.seq = header.seq;
        }
        if let Some(expected) = self.prev
            && expected != header.prev
        {
            self.flaw(line, Flaw::Prev { expected, found: header.prev });
        }
        self.report.first.get_or_insert(header.time);
        self.report.last = Some(header.time);
        let calls = &mut self.report.calls;
        match (&*header.kind, Mention::of(&header.kind, line.bytes)) {
            (_, Some(Mention::Decided { id, effective, process })) => match effective {
                Decision::Allow => {
                    calls.allowed += 1;
                    self.open.extend(process.map(|process| (id, process)));
                }
                Decision::Ask(_) => calls.asked += 1,
                Decision::Deny => calls.denied += 1,
            },
            (_, Some(Mention::Ended { id, unknown })) => {
                *(if unknown { &mut calls.unknown } else { &mut calls.finished }) += 1;
                self.open.remove(&id);
            }
            ("rejected", None) => calls.rejected += 1,
            ("recovered", None) => self.report.recovered += 1,
            (_, None) => {}
        }
    }

    fn compare_with_head(&mut self, line: &Line<'_>) {
        let Some(head) = &self.head else { return };
        if let Some(beyond) = &mut self.beyond_head {
            *beyond += 1;
        } else if self.seq == head.seq.saturating_add(1) {
            self.beyond_head = Some(0);
            // By its number, and not by its place: where a record before it has another length now, it lies elsewhere.
            let moved = !self.report.breaks.is_empty();
            let agrees = self.prev == Some(head.hash) && (moved || line.next == head.size);
            self.report.head = match agrees {
                true => HeadState::Agrees,
                false => HeadState::Altered { seq: head.seq, expected: head.hash },
            };
        }
    }

    fn flaw(&mut self, line: &Line<'_>, flaw: Flaw) {
        if self.report.breaks.len() < DESCRIBED {
            self.report.breaks.push(Break { line: line.number, offset: line.offset, flaw });
        } else {
            self.report.more_breaks += 1;
        }
    }

    fn finish(self) -> Report {
        let mut report = self.report;
        if let (HeadState::Agrees, Some(records @ 1..)) = (&report.head, self.beyond_head) {
            report.head = HeadState::Lags { records };
        }
        report.unfinished = self.open.into_iter().map(|(id, process)| (id, CallState::unfinished(&process))).collect();
        report.unfinished.sort_by(|a, b| a.0.cmp(&b.0));
        report
    }
}
