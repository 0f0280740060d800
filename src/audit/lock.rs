//! The file lock that makes many writers take turns.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::audit::LogError;
use crate::audit::tail::size_of_named;

/// How long anybody waits for other processes' appends, each of which takes microseconds.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The lock (flock(2)), held.
pub(super) struct Held<'a>(&'a File);

impl<'a> Held<'a> {
    /// For appending.
    pub(super) fn exclusive(lock: &'a File, path: &Path, wait: Duration) -> Result<Self, LogError> {
        Self::take(lock, path, wait, File::try_lock)
    }

    /// For looking at the log while nobody appends.
    pub(super) fn shared(lock: &'a File, path: &Path) -> Result<Self, LogError> {
        Self::take(lock, path, LOCK_WAIT, File::try_lock_shared)
    }

    /// flock(2) can wait, but not with a deadline: a process that was stopped with the lock would hang everybody.
    fn take(
        lock: &'a File,
        path: &Path,
        wait: Duration,
        attempt: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, LogError> {
        let deadline = Instant::now() + wait;
        let mut tries = 0_u32;
        loop {
            match attempt(lock) {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tries < 50 => thread::yield_now(),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err(LogError::Busy { path: path.to_owned() });
                }
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_micros(200)),
                Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(e)) => return Err(LogError::io(path)(e)),
            }
            tries = tries.saturating_add(1);
        }
        let held = Held(lock);
        // Two processes with two lock files would both append.
        size_of_named(lock, path)?;
        Ok(held)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Explicit: a child that was just forked holds a copy of the handle until it executes its program.
        let _ = self.0.unlock();
    }
}
