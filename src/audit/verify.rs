//! Proving the chain: every line is JSON, numbered, and carries the hash of the line before it.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use crate::audit::chain::{Header, content, zeros};
use crate::audit::event::{Retired, Rotated, Signed};
use crate::audit::lines::{End, Line};
use crate::audit::lock::Held;
use crate::audit::merkle::{Tree, leaf};
use crate::audit::note::{Checkpoint, Verifier};
use crate::audit::tail::{Head, HeadAt};
use crate::audit::unfinished::Mention;
use crate::audit::volumes::{self, Volume, VolumeLines};
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
    /// How many files the log has.
    pub files: usize,
    /// The first record that is there; those before it were removed by the retention.
    pub starts_at: u64,
    /// The Merkle root over all lines.
    pub root: Digest,
    /// How many checkpoints are in the log and hold.
    pub checkpoints: u64,
    /// Whether there was a key to check their signatures with.
    pub signatures_checked: bool,
    /// What became of each checkpoint that was kept elsewhere.
    pub kept: Vec<(Checkpoint, Agreement)>,
}

/// Whether a log still is what a checkpoint of it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The first lines are those that were signed.
    Agrees,
    /// The log had more lines then.
    Cut,
    /// The lines are others.
    Differs,
    /// The checkpoint is of another log, or of one that was begun anew with another key.
    OtherLog,
    /// Its lines were removed by the retention since, so that it says nothing of those that are left.
    TooOld,
}

/// What a verification relies on besides the log.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Who signs for this log. Without it the key beside the log is taken, if there is one.
    pub key: Option<Verifier>,
    /// Checkpoints that were kept elsewhere, signatures checked.
    pub kept: Vec<Checkpoint>,
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
    /// The file's name.
    pub file: String,
    /// From 1, in that file.
    pub line: u64,
    /// Where the line starts, in bytes.
    pub offset: u64,
    pub flaw: Flaw,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Flaw {
    /// A checkpoint in the log that does not hold.
    Checkpoint {
        error: String,
    },
    /// Records are missing before this line, and no record says that the retention removed them.
    Missing {
        from: u64,
        to: u64,
    },
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
        let kept = self.kept.iter().all(|(_, found)| matches!(found, Agreement::Agrees | Agreement::TooOld));
        head && kept && self.breaks.is_empty() && self.torn.is_none()
    }
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file != "log.jsonl" {
            write!(f, "{} ", self.file)?;
        }
        write!(f, "line {} (byte {}): {}", self.line, self.offset, self.flaw)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Checkpoint { error } => write!(f, "the checkpoint does not hold: {error}"),
            Flaw::Missing { from, to } => write!(
                f,
                "the records {from} to {to} before it are missing, and nothing says that the retention removed them: a file \
                 was taken away"
            ),
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
    verify_with(log, Trust::default())
}

/// The same, with a key and with checkpoints that were kept elsewhere.
pub fn verify_with(log: &Path, mut trust: Trust) -> Result<Report, LogError> {
    let (head, volumes) = snapshot(log)?;
    if trust.key.is_none() {
        let beside = log.parent().and_then(Path::parent).map(|state| state.join("keys/audit.pub"));
        trust.key = beside.and_then(|path| fs::read_to_string(path).ok()).and_then(|text| text.trim().parse().ok());
    }
    let mut check = Check::new(head, trust);
    check.report.files = volumes.len();
    let mut lines = VolumeLines::new(volumes);
    let mut at = None;
    while let Some((_, path, line)) = lines.next().map_err(LogError::io(log))? {
        if at.as_deref() != Some(path) {
            at = Some(path.to_owned());
            check.file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        check.line(&line);
    }
    Ok(check.finish())
}

/// The head and the files of the log at one moment: no append is under way where there is a lock to be had.
fn snapshot(log: &Path) -> Result<(Option<Head>, Vec<Volume>), LogError> {
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
    Ok((head, volumes::open_all(log).map_err(LogError::io(log))?))
}

/// The state of a verification between two lines.
struct Check {
    report: Report,
    file: String,
    trust: Trust,
    tree: Tree,
    /// The records that are missing at the start, until a record says that they were removed.
    missing: Option<Break>,
    head: Option<HeadAt>,
    /// The number and `prev` that the next line must have; after a line without a hash, any will do.
    seq: u64,
    prev: Option<Digest>,
    /// Records after the one that the head names.
    beyond_head: Option<u64>,
    open: HashMap<String, Process>,
}

impl Check {
    fn new(head: Option<Head>, mut trust: Trust) -> Self {
        trust.kept.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.size));
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
            files: 0,
            starts_at: 0,
            root: Tree::default().root(),
            checkpoints: 0,
            signatures_checked: trust.key.is_some(),
            kept: Vec::new(),
        };
        let (file, tree) = (String::new(), Tree::default());
        Check {
            report,
            file,
            trust,
            tree,
            missing: None,
            head,
            seq: 0,
            prev: Some(zeros()),
            beyond_head: None,
            open: HashMap::new(),
        }
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
        self.tree.push(leaf(line.bytes));
        self.compare_with_kept();
        self.seq = self.seq.saturating_add(1);
        self.report.records += 1;
        self.report.bytes = line.next;
        self.compare_with_head(line);
    }

    fn record(&mut self, line: &Line<'_>, header: &Header<'_>) {
        self.checkpoint(line, header);
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

    /// What a line says of the tree before it.
    fn checkpoint(&mut self, line: &Line<'_>, header: &Header<'_>) {
        let note = match &*header.kind {
            "checkpoint" => match content::<Signed>(line.bytes) {
                Ok(signed) => signed.note,
                Err(e) => return self.flaw(line, Flaw::Unreadable { error: e.to_string() }),
            },
            "rotated" => match content::<Rotated>(line.bytes) {
                Ok(rotated) => {
                    self.begin_after(line, header, &rotated);
                    rotated.note
                }
                Err(e) => return self.flaw(line, Flaw::Unreadable { error: e.to_string() }),
            },
            "retired" => {
                if let Ok(Retired { from, to, .. }) = content::<Retired>(line.bytes) {
                    let missing = self.missing.as_ref().is_some_and(|missing| match missing.flaw {
                        Flaw::Missing { to: last, .. } => from <= to && to == last,
                        _ => false,
                    });
                    if missing {
                        self.missing = None;
                    }
                }
                return;
            }
            _ => return,
        };
        let read = match &self.trust.key {
            Some(key) => key.open(&note),
            None => Checkpoint::parse(&note),
        };
        let (size, root) = (self.tree.size(), self.tree.root());
        let error = match read {
            Err(error) => error.to_string(),
            Ok(checkpoint) if checkpoint.size != size => {
                format!("it is of {} lines, but {size} come before it", checkpoint.size)
            }
            Ok(checkpoint) if checkpoint.root != root => {
                format!("the lines before it were altered: their root is {root}, signed is {}", checkpoint.root)
            }
            Ok(_) => {
                self.report.checkpoints += 1;
                return;
            }
        };
        self.flaw(line, Flaw::Checkpoint { error });
    }

    /// The first line that is there may be one that a file begins with: what came before is in its tree.
    fn begin_after(&mut self, line: &Line<'_>, header: &Header<'_>, rotated: &Rotated) {
        if self.report.records > 0 || header.seq == 0 {
            return;
        }
        let Some(base) = Tree::from_peaks(header.seq, rotated.peaks.clone()) else { return };
        self.tree = base;
        self.seq = header.seq;
        self.prev = None;
        self.report.starts_at = header.seq;
        let flaw = Flaw::Missing { from: 0, to: header.seq - 1 };
        self.missing = Some(Break { file: self.file.clone(), line: line.number, offset: line.offset, flaw });
        for checkpoint in std::mem::take(&mut self.trust.kept) {
            if checkpoint.size < header.seq {
                self.report.kept.push((checkpoint, Agreement::TooOld));
            } else {
                self.trust.kept.push(checkpoint);
            }
        }
        self.compare_with_kept();
    }

    fn compare_with_kept(&mut self) {
        while let Some(checkpoint) = self.trust.kept.pop_if(|checkpoint| checkpoint.size == self.tree.size()) {
            let agrees = checkpoint.root == self.tree.root();
            self.report.kept.push((checkpoint, if agrees { Agreement::Agrees } else { Agreement::Differs }));
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
            self.report.breaks.push(Break { file: self.file.clone(), line: line.number, offset: line.offset, flaw });
        } else {
            self.report.more_breaks += 1;
        }
    }

    fn finish(self) -> Report {
        let mut report = self.report;
        report.root = self.tree.root();
        report.kept.extend(self.trust.kept.into_iter().map(|checkpoint| (checkpoint, Agreement::Cut)));
        if let Some(key) = &self.trust.key {
            for (checkpoint, found) in &mut report.kept {
                if checkpoint.origin != key.name() {
                    *found = Agreement::OtherLog;
                }
            }
        }
        if let Some(missing) = self.missing {
            report.breaks.insert(0, missing);
        }
        if let (HeadState::Agrees, Some(records @ 1..)) = (&report.head, self.beyond_head) {
            report.head = HeadState::Lags { records };
        }
        report.unfinished = self.open.into_iter().map(|(id, process)| (id, CallState::unfinished(&process))).collect();
        report.unfinished.sort_by(|a, b| a.0.cmp(&b.0));
        report
    }
}
