//! The end of the log: where the next record goes, and what to do when the end is not as an append leaves it.
//!
//! Everything here happens under the log's file lock.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::audit::LogError;
use crate::audit::chain::{Body, Header, compose, zeros};
use crate::audit::event::{Event, Opened, Recovered, Trouble};
use crate::audit::lines::{line_before, line_start};
use crate::call::Digest;
use crate::state::{Process, StateDir, private, sync_directory};

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// The sequence number of the next record.
    pub seq: u64,
    /// What it chains to.
    pub prev: Digest,
    /// Length of the file in bytes.
    pub size: u64,
}

/// The log file with its head file.
#[derive(Debug)]
pub(super) struct Book {
    dir: PathBuf,
    path: PathBuf,
    file: File,
    head: File,
    /// Where the log ended when this process last looked.
    tail: Option<Tail>,
}

impl Book {
    pub(super) fn open(state: &StateDir) -> Result<Self, LogError> {
        let dir = state.audit();
        let path = super::log_file(state.path());
        let head_path = dir.join("head");
        let file = private().read(true).append(true).create(true).open(&path).map_err(LogError::io(&path))?;
        let head = private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&head_path)
            .map_err(LogError::io(&head_path))?;
        Ok(Book { dir, path, file, head, tail: None })
    }

    /// The number of the next record, as far as this process knows.
    pub(super) fn seq(&self) -> u64 {
        self.tail.map_or(0, |tail| tail.seq)
    }

    /// Another handle of the log file.
    pub(super) fn handle(&self) -> Result<File, LogError> {
        self.file.try_clone().map_err(LogError::io(&self.path))
    }

    /// Finds the true end of the log: other processes append too. An end that no append leaves behind is made whole, and
    /// what was found is recorded. `extra` is recorded with it.
    pub(super) fn settle(&mut self, extra: Option<Trouble>) -> Result<Tail, LogError> {
        let size = size_of_named(&self.file, &self.path)?;
        match self.tail {
            Some(tail) if tail.size == size && extra.is_none() => return Ok(tail),
            Some(tail) if size < tail.size => {
                return Err(LogError::Shrunk { path: self.path.clone(), missing: tail.size - size });
            }
            _ => {}
        }
        let tail = self.last_sound(size)?;
        let mut troubles = Vec::new();
        if tail.size < size {
            troubles.push(self.set_aside(tail.size, size)?);
        }
        troubles.extend(self.compare_with_head(tail)?);
        troubles.extend(extra);
        let tail = self.mend(tail, size, troubles)?;
        self.tail = Some(tail);
        Ok(tail)
    }

    /// Appends a record. [`Self::settle`] has just said where.
    pub(super) fn append(&mut self, tail: Tail, body: &Body) -> Result<Tail, LogError> {
        let bytes = compose(tail.seq, tail.prev, body);
        let next = after(tail, &bytes);
        if let Err(e) = (&self.file).write_all(&bytes).and_then(|()| self.write_head(next)) {
            // Half a line must not stay for the others. If this fails too, they set it aside.
            let cut = self.file.set_len(tail.size);
            return Err(match cut {
                Ok(()) => LogError::io(&self.path)(e),
                Err(cut) => LogError::io(&self.path)(io::Error::new(e.kind(), format!("{e} (and {cut})"))),
            });
        }
        self.tail = Some(next);
        Ok(next)
    }

    /// The end of the last line that can be read.
    fn last_sound(&self, size: u64) -> Result<Tail, LogError> {
        let io = LogError::io(&self.path);
        let found = (|| {
            let mut end = line_start(&self.file, size)?;
            while end > 0 {
                if let Some(line) = line_before(&self.file, end)? {
                    if let Ok(header) = Header::parse(&line.bytes) {
                        let prev = Digest::of(&line.bytes);
                        return Ok(Tail { seq: header.seq.saturating_add(1), prev, size: end });
                    }
                    end = line.offset;
                } else {
                    end = line_start(&self.file, end - 1)?;
                }
            }
            Ok(Tail { seq: 0, prev: zeros(), size: 0 })
        })();
        found.map_err(io)
    }

    /// Copies the bytes from `start` to `end` into a file of their own.
    fn set_aside(&self, start: u64, end: u64) -> Result<Trouble, LogError> {
        let name = format!("torn-{}-{}", Timestamp::now().strftime("%Y%m%dT%H%M%S%.6fZ"), std::process::id());
        let path = self.dir.join(&name);
        let copy = || -> io::Result<Digest> {
            let mut target = private().write(true).create_new(true).open(&path)?;
            let mut hasher = Sha256::new();
            let mut block = [0; 65536];
            let mut at = start;
            while at < end {
                let room = usize::try_from(end - at).unwrap_or(block.len()).min(block.len());
                let part = block.get_mut(..room).unwrap_or_default();
                self.file.read_exact_at(part, at)?;
                hasher.update(&*part);
                target.write_all(part)?;
                at += room as u64;
            }
            target.sync_all()?;
            Ok(Digest::from_bytes(hasher.finalize().into()))
        };
        let sha256 = copy().map_err(|e| {
            // A copy that is not whole is no copy; the fragment itself still stands in the log.
            let _ = fs::remove_file(&path);
            LogError::io(&path)(e)
        })?;
        sync_directory(&self.dir)?;
        Ok(Trouble::Torn { bytes: end - start, sha256, file: name })
    }

    /// What the head file says against the end that was found. It is written after the line, so it may lag behind.
    fn compare_with_head(&self, tail: Tail) -> Result<Option<Trouble>, LogError> {
        let head = match Head::read(&self.head).map_err(LogError::io(&self.dir.join("head")))? {
            Head::At(at) => at,
            Head::Empty if tail.size == 0 => return Ok(None),
            Head::Empty | Head::Unreadable => return Ok(Some(Trouble::Headless)),
        };
        if head.size > tail.size {
            let rebooted = head.boot != Process::current().boot;
            return Ok(Some(Trouble::Cut { from: tail.seq, to: head.seq, last: head.hash, rebooted }));
        }
        let found = if head.size == tail.size {
            tail.prev
        } else {
            // Where no line ends there, the lines are not those that the head was written for.
            let line = line_before(&self.file, head.size).map_err(LogError::io(&self.path))?;
            Digest::of(line.map(|line| line.bytes).unwrap_or_default())
        };
        Ok((found != head.hash).then_some(Trouble::Altered { seq: head.seq, expected: head.hash, found }))
    }

    /// Records the troubles in place of the bytes after the tail, in one write: a crash leaves either the fragment, which
    /// is found again, or the record of it.
    fn mend(&mut self, tail: Tail, size: u64, troubles: Vec<Trouble>) -> Result<Tail, LogError> {
        let process = Process::current().clone();
        let gateway = env!("CARGO_PKG_VERSION").to_owned();
        let opened = (tail.seq == 0).then(|| Event::Opened(Opened { gateway, process: process.clone() }));
        let recovered =
            troubles.into_iter().map(|t| Event::Recovered(Recovered { trouble: t, process: process.clone() }));
        let (mut bytes, mut next) = (Vec::new(), tail);
        for event in opened.into_iter().chain(recovered) {
            let line = compose(next.seq, next.prev, &Body::of(&event)?);
            next = after(next, &line);
            bytes.extend_from_slice(&line);
        }
        if bytes.is_empty() {
            return Ok(next);
        }
        let write = || -> io::Result<()> {
            // pwrite(2) on a file opened with O_APPEND would append.
            let file = private().write(true).open(&self.path)?;
            file.write_all_at(&bytes, tail.size)?;
            if next.size < size {
                file.set_len(next.size)?;
            }
            file.sync_data()?;
            self.write_head(next)
        };
        if let Err(e) = write() {
            // As in `append`. A fragment that is overwritten in part stays torn: its copy lies beside the log.
            if size == tail.size {
                let _ = self.file.set_len(size);
            }
            return Err(LogError::io(&self.path)(e));
        }
        sync_directory(&self.dir)?;
        Ok(next)
    }

    fn write_head(&self, tail: Tail) -> io::Result<()> {
        let boot = Some(Process::current().boot.as_str()).filter(|boot| !boot.is_empty()).unwrap_or("-");
        // Fixed width, so that one write replaces it whole.
        let line = format!("{:020} {:020} {} {boot:36}\n", tail.seq.saturating_sub(1), tail.size, tail.prev);
        self.head.write_all_at(line.as_bytes(), 0)
    }
}

fn after(tail: Tail, line: &[u8]) -> Tail {
    let content = line.strip_suffix(b"\n").unwrap_or(line);
    Tail { seq: tail.seq.saturating_add(1), prev: Digest::of(content), size: tail.size + line.len() as u64 }
}

/// The size of an open file, which must still be the one that its name leads to.
pub(super) fn size_of_named(file: &File, path: &Path) -> Result<u64, LogError> {
    let open = file.metadata().map_err(LogError::io(path))?;
    let named = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        other => Some(other.map_err(LogError::io(path))?),
    };
    match named {
        Some(named) if (named.dev(), named.ino()) == (open.dev(), open.ino()) => Ok(open.len()),
        Some(_) | None => Err(LogError::Replaced { path: path.to_owned() }),
    }
}

/// What the head file says.
pub(super) enum Head {
    At(HeadAt),
    Empty,
    Unreadable,
}

/// The end of the log when its last record was appended.
pub(super) struct HeadAt {
    /// The last record's number and the hash of its line.
    pub seq: u64,
    pub hash: Digest,
    /// Length of the log in bytes.
    pub size: u64,
    /// The boot in which it was written.
    pub boot: String,
}

impl Head {
    pub(super) fn read(mut file: &File) -> io::Result<Self> {
        let mut text = Vec::new();
        io::Seek::rewind(&mut file)?;
        file.take(1024).read_to_end(&mut text)?;
        if text.is_empty() {
            return Ok(Head::Empty);
        }
        Ok(Self::parse(&text).map_or(Head::Unreadable, Head::At))
    }

    fn parse(text: &[u8]) -> Option<HeadAt> {
        let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
        let mut fields = text.split_ascii_whitespace();
        let (seq, size) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (hash, boot) = (fields.next()?.parse().ok()?, fields.next()?.to_owned());
        Some(HeadAt { seq, hash, size, boot })
    }
}
