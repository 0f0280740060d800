//! The files that a log consists of: `log.jsonl`, which grows, and closed volumes named `log-N.jsonl`, where N is the
//! number of their first record. Together they are one sequence of lines.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::audit::chain::Header;
use crate::audit::lines::{Line, Lines};

/// A file of the log, open for reading.
#[derive(Debug)]
pub(super) struct Volume {
    pub path: PathBuf,
    pub file: File,
    /// How many bytes of it are read.
    pub size: u64,
    /// The number of its first record; absent where its first line is none.
    pub first: Option<u64>,
}

impl Volume {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = File::open(&path)?;
        let size = file.metadata()?.len();
        let first = closed_first(&path).or_else(|| {
            let mut lines = Lines::new(BufReader::with_capacity(1 << 12, &file), 0);
            let line = lines.next().ok()??;
            Header::parse(line.bytes).ok().map(|header| header.seq)
        });
        Ok(Volume { path, file, size, first })
    }

    /// Its file name, for messages.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The name of a closed volume.
pub(super) fn closed_name(first: u64) -> String {
    format!("log-{first:020}.jsonl")
}

fn closed_first(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("log-")?.strip_suffix(".jsonl")?.parse().ok()
}

/// The closed volumes beside a log, the oldest first.
pub(super) fn closed(log: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    // Another name is a copy that stands alone.
    if log.file_name().is_none_or(|name| name != "log.jsonl") {
        return Ok(found);
    }
    for entry in fs::read_dir(log.parent().unwrap_or(Path::new(".")))? {
        let path = entry?.path();
        if let Some(first) = closed_first(&path) {
            found.push((first, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Every file of a log, in order, as it is at this moment.
pub(super) fn open_all(log: &Path) -> io::Result<Vec<Volume>> {
    // The growing one first: if it is closed in the meantime, it is found again under its new name.
    let current = Volume::open(log.to_owned())?;
    let meta = current.file.metadata()?;
    let mut volumes = Vec::new();
    for (_, path) in closed(log)? {
        let volume = Volume::open(path)?;
        let same = volume.file.metadata()?;
        if (same.dev(), same.ino()) != (meta.dev(), meta.ino()) {
            volumes.push(volume);
        }
    }
    volumes.push(current);
    Ok(volumes)
}

/// Where a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the volume's first record.
    pub volume: u64,
    /// Bytes into it.
    pub offset: u64,
}

/// Reads the lines of all volumes, one after the other.
pub(super) struct VolumeLines {
    /// Those still to come, the next one last.
    rest: Vec<Volume>,
    current: Option<Current>,
}

/// A file that is read: its path, its first record's number, its lines.
type Current = (PathBuf, u64, Lines<BufReader<Take<File>>>);

impl VolumeLines {
    /// From the first line on.
    pub(super) fn new(mut volumes: Vec<Volume>) -> Self {
        volumes.reverse();
        VolumeLines { rest: volumes, current: None }
    }

    /// From a place on: volumes before it are left out.
    pub(super) fn from(volumes: Vec<Volume>, place: Place) -> io::Result<Self> {
        let later = volumes.into_iter().filter(|volume| volume.first.unwrap_or(0) >= place.volume).collect();
        let mut lines = Self::new(later);
        if lines
            .rest
            .last()
            .is_some_and(|volume| volume.first.unwrap_or(0) == place.volume && place.offset <= volume.size)
        {
            lines.open_next(place.offset)?;
        }
        Ok(lines)
    }

    fn open_next(&mut self, offset: u64) -> io::Result<bool> {
        let Some(Volume { path, mut file, size, first }) = self.rest.pop() else { return Ok(false) };
        file.seek(SeekFrom::Start(offset))?;
        let reader = BufReader::with_capacity(1 << 17, file.take(size.saturating_sub(offset)));
        self.current = Some((path, first.unwrap_or(0), Lines::new(reader, offset)));
        Ok(true)
    }

    /// The next line, with the number that names its volume and the volume's path.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, &Path, Line<'_>)>> {
        // Two steps, because a line that is lent cannot be looked at and kept.
        loop {
            let more = match &mut self.current {
                Some((_, _, lines)) => lines.more()?,
                None => false,
            };
            if more {
                break;
            }
            if !self.open_next(0)? {
                return Ok(None);
            }
        }
        let Some((path, first, lines)) = &mut self.current else { return Ok(None) };
        Ok(lines.next()?.map(|line| (*first, path.as_path(), line)))
    }

    /// The file that the last line came from.
    pub(super) fn path(&self) -> PathBuf {
        self.current.as_ref().map(|(path, ..)| path.clone()).unwrap_or_default()
    }
}
