//! Appending: many threads of many processes, one chain.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::audit::chain::Body;
use crate::audit::event::{Event, Retired, Rotated, Signed, Trouble, Unknown};
use crate::audit::growth::{Growth, replace};
use crate::audit::lock::{Held, LOCK_WAIT};
use crate::audit::note::{NoteError, Signer};
use crate::audit::redact::{RedactError, Redactor};
use crate::audit::sync::{GroupSync, Ticket};
use crate::audit::tail::Book;
use crate::audit::unfinished::Unfinished;
use crate::audit::volumes;
use crate::state::{Life, StateDir, StateError, private};

/// The audit log of a state directory, open for appending.
#[derive(Debug)]
pub struct Log {
    state: StateDir,
    settings: Settings,
    redactor: Redactor,
    writer: Mutex<Writer>,
}

/// How a log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A checkpoint is signed after this many records.
    pub checkpoint_every: u64,
    /// A file that has this many bytes is closed, and a new one begun.
    pub rotate_bytes: u64,
    /// How many closed files are kept; absent all of them.
    pub keep_files: Option<usize>,
    /// A file to which every checkpoint is appended: a place that somebody else keeps.
    pub ship_to: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { checkpoint_every: 1024, rotate_bytes: 256 << 20, keep_files: None, ship_to: None }
    }
}

#[derive(Debug)]
struct Writer {
    state: StateDir,
    lock: File,
    lock_path: PathBuf,
    book: Book,
    sync: Arc<GroupSync>,
    /// The last attempt waited for the lock in vain. Until one succeeds nobody waits: the callers that queue here would
    /// otherwise wait one after the other.
    busy: bool,
    /// Why nothing more is appended, and the first record that may be affected.
    stopped: Option<(String, u64)>,
}

/// Why a record was not written, or may not be on disk. No call may run on such an answer.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "another process has held {path} for {LOCK_WAIT:?}: end the process that hangs (`fuser {path}` names it)",
        path = path.display()
    )]
    Busy { path: PathBuf },
    #[error(
        "no space is left for the audit log {}: free some space; until then every call is denied", .0.display()
    )]
    Full(PathBuf),
    #[error("audit log {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the record cannot be written as JSON: {0}")]
    Json(serde_json::Error),
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error(transparent)]
    Redact(#[from] RedactError),
    #[error("{} was moved or replaced while this process wrote to it: restart the gateway", path.display())]
    Replaced { path: PathBuf },
    #[error(
        "{} lost {missing} bytes that were already written: somebody cut it; keep a copy, then restart the gateway",
        path.display()
    )]
    Shrunk { path: PathBuf, missing: u64 },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the audit log has stopped after a failure ({reason}): nothing is written until it is opened anew")]
    Stopped { reason: String },
    #[error(
        "line {lines} of the log is record {seq}: `portcullis audit verify` says what is wrong; no checkpoint is signed"
    )]
    Uncounted { lines: u64, seq: u64 },
    #[error("the record nests deeper than {} levels: send flatter arguments", super::MAX_DEPTH)]
    TooDeep,
    #[error("the record has {bytes} bytes, the longest allowed is {}: send shorter arguments", super::MAX_LINE)]
    TooLarge { bytes: usize },
}

impl LogError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> LogError + use<> {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::Full(path),
            _ => LogError::Io { path, source },
        }
    }

    /// Whether the error says something of the log, and not only of one record or one moment.
    fn stops(&self) -> bool {
        match self {
            LogError::Busy { .. }
            | LogError::Json(_)
            | LogError::Note(_)
            | LogError::Redact(_)
            | LogError::TooDeep
            | LogError::TooLarge { .. }
            | LogError::Uncounted { .. } => false,
            LogError::Full(_)
            | LogError::Io { .. }
            | LogError::Replaced { .. }
            | LogError::Shrunk { .. }
            | LogError::State(_)
            | LogError::Stopped { .. } => true,
        }
    }
}

impl Log {
    /// Opens the log of a state directory, creating it where it is missing. A torn end is set aside, recorded, and the log
    /// continued.
    pub fn open(state: &StateDir) -> Result<Self, LogError> {
        Self::open_with(state, Settings::default())
    }

    /// The same, kept in another way than usual.
    pub fn open_with(state: &StateDir, settings: Settings) -> Result<Self, LogError> {
        let mut writer = Writer::open(state)?;
        writer.locked(|book, _| book.settle(None).map(drop))?;
        let redactor = Redactor::new(state);
        Ok(Log { state: state.clone(), settings, redactor, writer: Mutex::new(writer) })
    }

    /// Appends a record. It is in the kernel's hands, safe from a crash of the process, when this returns; the ticket waits
    /// for the disk.
    pub fn append(&self, event: &Event) -> Result<Ticket, LogError> {
        let body = Body::redacted(event, &self.redactor)?;
        let mut writer = self.lock();
        writer.ready()?;
        let appended = writer.locked(|book, sync| {
            let tail = book.settle(None)?;
            book.append(tail, &body)?;
            Ok(sync.written(tail.seq))
        });
        let ticket = writer.note(appended)?;
        let full = writer.book.size() >= self.settings.rotate_bytes;
        drop(writer);
        // What fails here fails again and is said then; the record itself is written.
        if full && let Err(error) = self.rotate() {
            tracing::warn!(%error, "the audit log's file cannot be closed");
        }
        if ticket.seq().saturating_add(1).is_multiple_of(self.settings.checkpoint_every.max(1))
            && let Err(error) = self.checkpoint()
        {
            tracing::warn!(%error, "no checkpoint of the audit log");
        }
        Ok(ticket)
    }

    /// Signs the log as it is, puts the checkpoint on record, and ships it once it is on disk. Gives the signed note.
    pub fn checkpoint(&self) -> Result<String, LogError> {
        let signer = Signer::open(&self.state)?;
        // Most of the reading happens without the lock, so that other writers need not wait for it.
        let mut growth = Growth::open(&super::log_file(self.state.path()));
        growth.read_on()?;
        let mut writer = self.lock();
        writer.ready()?;
        let signed = writer.locked(|book, sync| {
            let tail = book.settle(None)?;
            growth.read_on()?;
            let note = sign(&growth, &signer, tail.seq)?;
            book.append(tail, &Body::of(&Event::Checkpoint(Signed { note: note.clone() }))?)?;
            growth.keep()?;
            Ok((sync.written(tail.seq), note))
        });
        let (ticket, note) = writer.note(signed)?;
        drop(writer);
        ticket.synced()?;
        self.ship(&note)?;
        Ok(note)
    }

    /// Closes the growing file, begins a new one, and removes what the retention does not keep.
    pub fn rotate(&self) -> Result<(), LogError> {
        let signer = Signer::open(&self.state)?;
        let mut growth = Growth::open(&super::log_file(self.state.path()));
        growth.read_on()?;
        let mut writer = self.lock();
        writer.ready()?;
        let note = writer.locked(|book, _| {
            let tail = book.settle(None)?;
            growth.read_on()?;
            let note = sign(&growth, &signer, tail.seq)?;
            let peaks = growth.tree.peaks().to_vec();
            let rotated = |closed| Event::Rotated(Rotated { closed, note: note.clone(), peaks });
            book.rotate(tail, rotated)?;
            growth.keep()?;
            Ok(note)
        })?;
        writer.renew_sync()?;
        drop(writer);
        self.ship(&note)?;
        self.retire()
    }

    /// Removes the oldest closed files beyond those that are kept, each after it is on record.
    fn retire(&self) -> Result<(), LogError> {
        let Some(kept) = self.settings.keep_files else { return Ok(()) };
        let log = super::log_file(self.state.path());
        let mut writer = self.lock();
        writer.ready()?;
        let retired = writer.locked(|book, sync| {
            let mut volumes = volumes::open_all(&log).map_err(LogError::io(&log))?;
            volumes.pop();
            let surplus = volumes.len().saturating_sub(kept);
            let firsts: Vec<u64> = volumes.iter().filter_map(|volume| volume.first).skip(1).collect();
            for (volume, next) in volumes.into_iter().zip(firsts).take(surplus) {
                let tail = book.settle(None)?;
                let from = volume.first.unwrap_or(0);
                let (file, to, bytes) = (volume.name(), next.saturating_sub(1), volume.size);
                book.append(tail, &Body::of(&Event::Retired(Retired { file, from, to, bytes }))?)?;
                sync.written(tail.seq).synced()?;
                fs::remove_file(&volume.path).map_err(LogError::io(&volume.path))?;
            }
            Ok(())
        });
        writer.note(retired)
    }

    /// Gives a checkpoint to whoever keeps them.
    fn ship(&self, note: &str) -> Result<(), LogError> {
        let latest = self.state.audit().join("checkpoint");
        replace(&latest, note.as_bytes()).map_err(LogError::io(&latest))?;
        if let Some(path) = &self.settings.ship_to {
            let mut file = File::options().append(true).create(true).open(path).map_err(LogError::io(path))?;
            io::Write::write_all(&mut file, note.as_bytes()).map_err(LogError::io(path))?;
        }
        Ok(())
    }

    /// Appends a record and waits until it is on disk. Gives its place in the log.
    pub fn append_durable(&self, event: &Event) -> Result<u64, LogError> {
        let ticket = self.append(event)?;
        ticket.synced()?;
        Ok(ticket.seq())
    }

    /// Waits until everything that this process appended is on disk.
    pub fn sync(&self) -> Result<(), LogError> {
        let sync = Arc::clone(&self.lock().sync);
        sync.wait_for_all()
    }

    /// How many records of this process are not known to be on disk.
    pub fn unsynced(&self) -> u64 {
        self.lock().sync.lag()
    }

    /// Why this log takes no more records, if it stopped.
    pub fn stopped(&self) -> Option<String> {
        self.lock().ready().err().map(|e| e.to_string())
    }

    /// Opens a stopped log anew. It goes on when its end is sound and the disk takes a record of what happened.
    pub fn reopen(&self) -> Result<(), LogError> {
        let mut writer = self.lock();
        let Some((reason, from)) = writer.failure() else { return Ok(()) };
        let mut fresh = Writer::open(&self.state)?;
        fresh.locked(|book, _| book.settle(Some(Trouble::Stopped { reason, from })).map(drop))?;
        *writer = fresh;
        Ok(())
    }

    /// Records `unknown` for every allowed call whose process is gone without an outcome. Done when a gateway starts; the
    /// log is read from where the last time ended.
    pub fn settle(&self) -> Result<Vec<Unknown>, LogError> {
        let mut unfinished = Unfinished::open(&self.state)?;
        // Most of the reading happens without the lock, so that other writers need not wait for it.
        unfinished.read_on()?;
        let mut writer = self.lock();
        writer.ready()?;
        let settled = writer.locked(|book, sync| {
            let mut tail = book.settle(None)?;
            unfinished.read_on()?;
            let lost: Vec<Unknown> = unfinished.calls().filter(|call| call.process.life() == Life::Gone).collect();
            for call in &lost {
                let next = book.append(tail, &Body::of(&Event::Unknown(call.clone()))?)?;
                sync.written(tail.seq);
                tail = next;
            }
            unfinished.read_on()?;
            unfinished.save()?;
            Ok(lost)
        });
        writer.note(settled)
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic in between leaves at worst an end that `settle` finds and mends.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Log {
    /// Records that rode on the next sync get one.
    fn drop(&mut self) {
        let _ = self.sync();
    }
}

impl Writer {
    fn open(state: &StateDir) -> Result<Self, LogError> {
        let lock_path = state.audit().join("lock");
        let lock = private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(LogError::io(&lock_path))?;
        let book = Book::open(state)?;
        let sync = Arc::new(GroupSync::new(book.handle()?));
        Ok(Writer { state: state.clone(), lock, lock_path, book, sync, busy: false, stopped: None })
    }

    fn ready(&self) -> Result<(), LogError> {
        match self.failure() {
            Some((reason, _)) => Err(LogError::Stopped { reason }),
            None => Ok(()),
        }
    }

    fn failure(&self) -> Option<(String, u64)> {
        self.sync.failure().or_else(|| self.stopped.clone())
    }

    /// Does something while no other process appends.
    fn locked<T>(
        &mut self,
        work: impl FnOnce(&mut Book, &Arc<GroupSync>) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let wait = if self.busy { Duration::ZERO } else { LOCK_WAIT };

        let held = Held::exclusive(&self.lock, &self.lock_path, wait);
        self.busy = matches!(held, Err(LogError::Busy { .. }));
        let _held = held?;
        if self.book.was_closed()? {
            // What this process wrote to the file was synced when it was closed.
            self.book = Book::open(&self.state)?;
            self.sync = Arc::new(GroupSync::new(self.book.handle()?));
        }
        work(&mut self.book, &self.sync)
    }

    /// After this process closed the file itself: the next records wait for the new one.
    fn renew_sync(&mut self) -> Result<(), LogError> {
        self.sync = Arc::new(GroupSync::new(self.book.handle()?));
        Ok(())
    }

    /// Stops the log where an error says that it must.
    fn note<T>(&mut self, result: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(e) = &result
            && e.stops()
        {
            self.stopped = Some((e.to_string(), self.book.seq()));
        }
        result
    }
}

/// A checkpoint of a log that ends before record `next`.
fn sign(growth: &Growth, signer: &Signer, next: u64) -> Result<String, LogError> {
    let lines = growth.tree.size();
    if lines != next {
        return Err(LogError::Uncounted { lines, seq: next });
    }
    Ok(signer.sign(lines, growth.tree.root()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Content, Finished, Outcome, Recovered, log_file, read};

    #[test]
    fn i3_a_failed_sync_stops_the_log_until_it_is_opened_anew_and_that_is_recorded() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(temp.path().join("s")).unwrap();
        let log = Log::open(&state).unwrap();
        let event = Event::Finished(Finished {
            call_id: "c".into(),
            outcome: Outcome::Ok,
            ms: 0,
            output_bytes: 0,
            output_digest: None,
            notes: Vec::new(),
        });
        log.append_durable(&event).unwrap();
        // A disk that fails to sync: a pipe, for which fdatasync(2) answers EINVAL.
        let (_reader, writer) = io::pipe().unwrap();
        log.lock().sync = Arc::new(GroupSync::new(File::from(std::os::fd::OwnedFd::from(writer))));
        let ticket = log.append(&event).unwrap();
        assert!(matches!(ticket.synced(), Err(LogError::Stopped { .. })), "the record was said to be on disk");
        assert!(matches!(log.append(&event), Err(LogError::Stopped { .. })), "the log took another record");
        assert!(log.stopped().is_some_and(|why| why.contains("did not take")), "{:?}", log.stopped());
        log.reopen().unwrap();
        assert!(matches!(ticket.synced(), Err(LogError::Stopped { .. })), "an old failure was forgotten");
        log.append_durable(&event).unwrap();
        let records: Vec<_> = read::records(&log_file(state.path())).unwrap().map(Result::unwrap).collect();
        let Content::Event(Event::Recovered(Recovered { trouble: Trouble::Stopped { from, .. }, .. })) =
            &records[3].content
        else {
            panic!("the failure is not on record: {records:?}");
        };
        assert_eq!((*from, records.len()), (0, 5), "records from 0 on may have missed the disk that failed");
    }
}
