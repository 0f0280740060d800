//! What was in a file before the hook was put into it. It lies in the state directory, which no agent's tool can reach.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::call::Digest;
use crate::state::{StateDir, StateError, private};

/// One file that was changed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    pub path: PathBuf,
    /// Absent where there was no file.
    pub before: Option<String>,
    /// What was written.
    pub after: Digest,
    /// Directories that were made for it, the innermost first.
    pub made: Vec<PathBuf>,
}

/// The records of a state directory.
#[derive(Debug)]
pub struct Records {
    directory: PathBuf,
}

impl Records {
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn open(state: &StateDir) -> Result<Self, StateError> {
        Ok(Records { directory: state.path().join("installed") })
    }

    /// The record of a file that is still as it was written.
    pub fn of(&self, path: &Path, now: Option<&str>) -> Option<Record> {
        let record = self.read(path)?;
        (record.path == path && now.map(Digest::of) == Some(record.after)).then_some(record)
    }

    /// # Errors
    ///
    /// When it cannot be written.
    pub fn keep(&self, record: &Record) -> Result<(), StateError> {
        let file = self.file(&record.path);
        let io = |source| StateError::Io { path: file.clone(), source };
        fs::create_dir_all(&self.directory).map_err(io)?;
        let text = serde_json::to_vec(record).map_err(|error| io(error.into()))?;
        let mut opened = private().write(true).create(true).truncate(true).open(&file).map_err(io)?;
        opened.write_all(&text).and_then(|()| opened.sync_all()).map_err(io)
    }

    /// Takes the record of a file, whatever became of the file.
    ///
    /// # Errors
    ///
    /// When it is there and cannot be removed.
    pub fn forget(&self, path: &Path) -> Result<Option<Record>, StateError> {
        let record = self.read(path);
        let file = self.file(path);
        match fs::remove_file(&file) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(StateError::Io { path: file, source }),
            _ => Ok(record),
        }
    }

    fn read(&self, path: &Path) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.file(path)).ok()?).ok()
    }

    fn file(&self, path: &Path) -> PathBuf {
        self.directory.join(format!("{}.json", Digest::of(path.as_os_str().as_encoded_bytes())))
    }
}
