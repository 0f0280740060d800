//! The Merkle tree over the log as far as it was read, kept beside the log so that a checkpoint need not read it all.
//! What is kept is a help and no evidence: `verify` reads every line.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::audit::LogError;
use crate::audit::chain::{Header, content};
use crate::audit::event::Rotated;
use crate::audit::lines::End;
use crate::audit::merkle::{Tree, leaf};
use crate::audit::volumes::{self, Place, VolumeLines};
use crate::call::Digest;
use crate::state::private;

/// The tree, and where the next line starts.
#[derive(Debug)]
pub(super) struct Growth {
    log: PathBuf,
    pub tree: Tree,
    place: Place,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    size: u64,
    peaks: Vec<Digest>,
    volume: u64,
    offset: u64,
}

impl Growth {
    /// As it was kept, or from the start.
    pub(super) fn open(log: &Path) -> Self {
        let log = log.to_owned();
        let kept = fs::read(file(&log)).ok().and_then(|text| serde_json::from_slice::<Kept>(&text).ok());
        let tree = kept.as_ref().and_then(|kept| Tree::from_peaks(kept.size, kept.peaks.clone()));
        match (kept, tree) {
            (Some(Kept { volume, offset, .. }), Some(tree)) => Growth { log, tree, place: Place { volume, offset } },
            _ => Growth { log, tree: Tree::default(), place: Place::default() },
        }
    }

    /// Reads on to the last complete line. What was kept for another log than this one is forgotten.
    pub(super) fn read_on(&mut self) -> Result<(), LogError> {
        let io = LogError::io(&self.log);
        let done = (|| {
            if !self.read()? {
                (self.tree, self.place) = (Tree::default(), Place::default());
                self.read()?;
            }
            Ok(())
        })();
        done.map_err(io)
    }

    /// Whether what was kept fits the lines that follow it.
    fn read(&mut self) -> io::Result<bool> {
        let volumes = volumes::open_all(&self.log)?;
        let known = volumes.iter().find(|volume| volume.first.unwrap_or(0) == self.place.volume);
        if self.place != Place::default() && known.is_none_or(|volume| self.place.offset > volume.size) {
            return Ok(false);
        }
        let mut fresh = self.place != Place::default();
        let mut lines = VolumeLines::from(volumes, self.place)?;
        while let Some((volume, _, line)) = lines.next()? {
            if line.end == End::Missing {
                break;
            }
            if self.tree.size() == 0
                && let Ok(header) = Header::parse(line.bytes)
                && header.seq > 0
                && let Ok(Rotated { peaks, .. }) = content(line.bytes)
                && let Some(base) = Tree::from_peaks(header.seq, peaks)
            {
                self.tree = base;
            }
            if fresh && Header::parse(line.bytes).ok().is_none_or(|header| header.seq != self.tree.size()) {
                return Ok(false);
            }
            fresh = false;
            self.tree.push(leaf(line.bytes));
            self.place = Place { volume, offset: line.next };
        }
        Ok(true)
    }

    /// Keeps what was read. Called with the log's lock held.
    pub(super) fn keep(&self) -> Result<(), LogError> {
        let path = file(&self.log);
        let kept = Kept {
            size: self.tree.size(),
            peaks: self.tree.peaks().to_vec(),
            volume: self.place.volume,
            offset: self.place.offset,
        };
        let text = serde_json::to_vec(&kept).map_err(LogError::Json)?;
        replace(&path, &text).map_err(LogError::io(&path))
    }
}

fn file(log: &Path) -> PathBuf {
    log.with_file_name("tree")
}

/// Gives a file its content at once, for whoever reads it.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut new = private().write(true).create(true).truncate(true).open(&draft)?;
    new.write_all(text)?;
    fs::rename(&draft, path)
}
