//! Which allowed calls have no outcome yet, found by reading on from where the last reader stopped.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::Deserialize;

use crate::audit::chain::Header;
use crate::audit::event::Unknown;
use crate::audit::lines::End;
use crate::audit::volumes::{self, Place, VolumeLines};
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
    path: PathBuf,
    /// Holds the place from which a later reader has to start.
    settled: File,
    settled_path: PathBuf,
    place: Place,
    calls: HashMap<String, (Process, Place)>,
}

impl Unfinished {
    pub(super) fn open(state: &StateDir) -> Result<Self, LogError> {
        let path = log_file(state.path());
        let settled_path = state.audit().join("settled");
        let settled = private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&settled_path)
            .map_err(LogError::io(&settled_path))?;
        let (place, calls) = (Place::default(), HashMap::new());
        let mut unfinished = Unfinished { path, settled, settled_path, place, calls };
        unfinished.place = unfinished.saved().map_err(LogError::io(&unfinished.settled_path))?;
        Ok(unfinished)
    }

    /// The saved place, or the log's start where that is no start of a line.
    fn saved(&self) -> io::Result<Place> {
        let mut text = Vec::new();
        (&self.settled).take(64).read_to_end(&mut text)?;
        let text = String::from_utf8(text).unwrap_or_default();
        let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0));
        let place = Place { offset: numbers.next().unwrap_or(0), volume: numbers.next().unwrap_or(0) };
        let volumes = volumes::open_all(&self.path)?;
        let Some(volume) = volumes.iter().find(|volume| volume.first.unwrap_or(0) == place.volume) else {
            return Ok(Place::default());
        };
        let mut byte = [0];
        let starts_a_line = match place.offset.checked_sub(1) {
            None => true,
            Some(newline) if place.offset <= volume.size => {
                volume.file.read_at(&mut byte, newline)? == 1 && byte == *b"\n"
            }
            Some(_) => false,
        };
        Ok(if starts_a_line { place } else { Place::default() })
    }

    /// Reads on to the last complete line.
    pub(super) fn read_on(&mut self) -> Result<(), LogError> {
        let io = LogError::io(&self.path);
        self.read_lines().map_err(io)
    }

    fn read_lines(&mut self) -> io::Result<()> {
        let mut lines = VolumeLines::from(volumes::open_all(&self.path)?, self.place)?;
        while let Some((volume, _, line)) = lines.next()? {
            if line.end == End::Missing {
                break;
            }
            self.place = Place { volume, offset: line.next };
            let Ok(header) = Header::parse(line.bytes) else { continue };
            match Mention::of(&header.kind, line.bytes) {
                Some(Mention::Decided { id, effective: Decision::Allow, process: Some(process) }) => {
                    self.calls.insert(id, (process, Place { volume, offset: line.offset }));
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
        let open = self.calls.values().map(|(_, place)| *place).min_by_key(|place| (place.volume, place.offset));
        let start = open.unwrap_or(self.place);
        let text = format!("{:020} {:020}\n", start.offset, start.volume);
        self.settled.write_all_at(text.as_bytes(), 0).map_err(LogError::io(&self.settled_path))
    }
}
