//! Group commit: of all callers that wait for the disk at once, one syncs for everybody.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::audit::LogError;

/// Syncs one file for many threads.
#[derive(Debug)]
pub(super) struct GroupSync {
    file: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What was handed to the kernel, and what of it the kernel said to be on disk.
    written: Mark,
    synced: Mark,
    /// Somebody is syncing.
    led: bool,
    /// Why a sync failed. After that the kernel may have dropped what it could not write: no later success counts.
    failed: Option<String>,
}

/// A moment in the appends of this process.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// How many records this process had appended.
    count: u64,
    /// The number after the last of them.
    next_seq: u64,
}

/// A record that was appended, and may still have to reach the disk.
#[derive(Debug)]
pub struct Ticket {
    sync: Arc<GroupSync>,
    number: u64,
    seq: u64,
}

impl Ticket {
    /// The record's place in the log.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Waits until the record is on disk (fdatasync(2)).
    pub fn synced(&self) -> Result<(), LogError> {
        self.sync.wait(self.number)
    }
}

impl GroupSync {
    pub(super) fn new(file: File) -> Self {
        GroupSync { file, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Notes a record whose bytes were written. Called in the order of the records.
    pub(super) fn written(self: &Arc<Self>, seq: u64) -> Ticket {
        let mut state = self.lock();
        state.written = Mark { count: state.written.count + 1, next_seq: seq.saturating_add(1) };
        Ticket { sync: Arc::clone(self), number: state.written.count, seq }
    }

    /// Waits for everything that was written so far.
    pub(super) fn wait_for_all(&self) -> Result<(), LogError> {
        let written = self.lock().written.count;
        self.wait(written)
    }

    /// How many records are not known to be on disk.
    pub(super) fn lag(&self) -> u64 {
        let state = self.lock();
        state.written.count.saturating_sub(state.synced.count)
    }

    /// Why a sync failed, and the first record that may have missed the disk.
    pub(super) fn failure(&self) -> Option<(String, u64)> {
        let state = self.lock();
        state.failed.clone().map(|reason| (reason, state.synced.next_seq))
    }

    fn wait(&self, number: u64) -> Result<(), LogError> {
        let mut state = self.lock();
        loop {
            if state.synced.count >= number {
                return Ok(());
            }
            if let Some(reason) = &state.failed {
                return Err(LogError::Stopped { reason: reason.clone() });
            }
            if state.led {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.led = true;
            let target = state.written;
            drop(state);
            let outcome = self.sync_file();
            state = self.lock();
            state.led = false;
            match outcome {
                Ok(()) => state.synced = target,
                Err(e) => state.failed = Some(format!("the disk did not take the audit log: {e}")),
            }
            self.changed.notify_all();
        }
    }

    fn sync_file(&self) -> io::Result<()> {
        loop {
            match self.file.sync_data() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i3_a_failed_sync_fails_every_waiter_and_all_that_come_later() {
        // A pipe cannot be synced: fdatasync(2) answers EINVAL.
        let (_reader, writer) = io::pipe().unwrap();
        let sync = Arc::new(GroupSync::new(File::from(std::os::fd::OwnedFd::from(writer))));
        let tickets: Vec<Ticket> = (0..8).map(|seq| sync.written(seq)).collect();
        std::thread::scope(|scope| {
            for ticket in &tickets {
                scope.spawn(|| assert!(matches!(ticket.synced(), Err(LogError::Stopped { .. }))));
            }
        });
        assert!(matches!(sync.written(8).synced(), Err(LogError::Stopped { .. })));
        assert!(sync.failure().is_some());
    }
}
