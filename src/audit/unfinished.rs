//! Which allowed calls have no outcome yet, found by reading on from where the last reader stopped.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::Deserialize;

use crate::audit::chain::Header;
use crate::audit::event::Unknown;
use crate::audit::lines::{End, Lines};
use crate::audit::{LogError, log_file};
use crate::call::Origin;
use crate::state::{Process, StateDir, private};
use crate::verdict::Decision;

/// The calls that a line speaks of, as far as it matters here.
pub(super) enum Mention {
    /// A call was judged. The process is the one that runs it if it is allowed, where that is the gateway's.
    Decided { id: String, effective: Decision, process: Option<Process> },
    /// A call has its outcome, or is recorded to have none.
    Ended { id: String, unknown: bool },
}

impl Mention {
    /// What a line that is sound says. Lines of other kinds, and what a newer version writes differently, say nothing.
    pub(super) fn of(kind: &str, line: &[u8]) -> Option<Mention> {
        #[derive(Deserialize)]
        struct Decided {
            call: Id,
            effective: Decision,
            process: Process,
        }
        #[derive(Deserialize)]
        struct Id {
            id: String,
            origin: Origin,
        }
        #[derive(Deserialize)]
        struct Ended {
            call_id: String,
        }
        match kind {
            "decided" => {
                let Decided { call, effective, process } = serde_json::from_slice(line).ok()?;
                // The end of the process that judged it says nothing of what another one runs.
                let process = (call.origin != Origin::Hook).then_some(process);
                Some(Mention::Decided { id: call.id, effective, process })
            }
            "finished" | "unknown" => {
                let Ended { call_id } = serde_json::from_slice(line).ok()?;
                Some(Mention::Ended { id: call_id, unknown: kind == "unknown" })
            }
            _ => None,
        }
    }
}

/// The allowed calls without an outcome.
pub(super) struct Unfinished {
    log: File,
    path: PathBuf,
    /// Holds the place from which a later reader has to start.
    settled: File,
    settled_path: PathBuf,
    offset: u64,
    calls: HashMap<String, (Process, u64)>,
}

impl Unfinished {
    pub(super) fn open(state: &StateDir) -> Result<Self, LogError> {
        let path = log_file(state.path());
        let settled_path = state.audit().join("settled");
        let log = private().read(true).open(&path).map_err(LogError::io(&path))?;
        let settled = private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&settled_path)
            .map_err(LogError::io(&settled_path))?;
        let mut unfinished = Unfinished { log, path, settled, settled_path, offset: 0, calls: HashMap::new() };
        unfinished.offset = unfinished.saved().map_err(LogError::io(&unfinished.settled_path))?;
        Ok(unfinished)
    }

    /// The saved place, or the log's start where that is no start of a line.
    fn saved(&self) -> io::Result<u64> {
        let mut text = Vec::new();
        (&self.settled).take(64).read_to_end(&mut text)?;
        let offset: u64 = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let mut byte = [0];
        let starts_a_line = match offset.checked_sub(1) {
            None => true,
            Some(newline) if offset <= self.log.metadata()?.len() => {
                self.log.read_at(&mut byte, newline)? == 1 && byte == *b"\n"
            }
            Some(_) => false,
        };
        Ok(if starts_a_line { offset } else { 0 })
    }

    /// Reads on to the last complete line.
    pub(super) fn read_on(&mut self) -> Result<(), LogError> {
        let io = LogError::io(&self.path);
        self.read_lines().map_err(io)
    }

    fn read_lines(&mut self) -> io::Result<()> {
        self.log.seek(SeekFrom::Start(self.offset))?;
        let mut lines = Lines::new(BufReader::with_capacity(1 << 16, &self.log), self.offset);
        while let Some(line) = lines.next()? {
            if line.end == End::Missing {
                break;
            }
            self.offset = line.next;
            let Ok(header) = Header::parse(line.bytes) else { continue };
            match Mention::of(&header.kind, line.bytes) {
                Some(Mention::Decided { id, effective: Decision::Allow, process: Some(process) }) => {
                    self.calls.insert(id, (process, line.offset));
                }
                Some(Mention::Ended { id, .. }) => {
                    self.calls.remove(&id);
                }
                Some(Mention::Decided { .. }) | None => {}
            }
        }
        Ok(())
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = Unknown> {
        self.calls.iter().map(|(id, (process, _))| Unknown { call_id: id.clone(), process: process.clone() })
    }

    /// Saves where a later reader has to start: at the first call that is still open, or at the end.
    pub(super) fn save(&self) -> Result<(), LogError> {
        let start = self.calls.values().map(|(_, offset)| *offset).min().unwrap_or(self.offset);
        self.settled.write_all_at(format!("{start:020}\n").as_bytes(), 0).map_err(LogError::io(&self.settled_path))
    }
}
