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
use crate::audit::volumes::{closed, closed_name};
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

    /// How long the growing file is.
    pub(super) fn size(&self) -> u64 {
        self.tail.map_or(0, |tail| tail.size)
    }

    /// Whether another process has closed our file and begun a new one: then our file bears a closed volume's name.
    pub(super) fn was_closed(&self) -> Result<bool, LogError> {
        let io = LogError::io(&self.path);
        let look = || -> io::Result<bool> {
            let ours = self.file.metadata()?;
            let same = |path: &Path| {
                fs::symlink_metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == (ours.dev(), ours.ino()))
            };
            Ok(!same(&self.path) && closed(&self.path)?.iter().rev().any(|(_, path)| same(path)))
        };
        look().map_err(io)
    }

    /// Closes the growing file under a name of its own and begins a new one with this record. Gives the closed file's
    /// name and the new end.
    ///
    /// A crash in between leaves no `log.jsonl`, or an empty one: the next writer goes on after the closed file.
    pub(super) fn rotate(&mut self, tail: Tail, first: impl FnOnce(String) -> Event) -> Result<Tail, LogError> {
        let io = |e| LogError::io(&self.path)(e);
        self.file.sync_data().map_err(io)?;
        let number = match line_first(&self.file).map_err(io)? {
            Some(line) => Header::parse(&line).map_or(0, |header| header.seq),
            None => return Ok(tail),
        };
        let name = closed_name(number);
        let body = Body::of(&first(name.clone()))?;
        let closed = self.dir.join(&name);
        match fs::hard_link(&self.path, &closed) {
            // Somebody died here before.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => drop(size_of_named(&self.file, &closed)?),
            other => other.map_err(io)?,
        }
        // The new file takes the name at once: at every moment there is one.
        let draft = self.path.with_extension("next");
        let fresh = private().read(true).append(true).create(true).truncate(false).open(&draft).map_err(io)?;
        fresh.set_len(0).map_err(io)?;
        let bytes = compose(tail.seq, tail.prev, &body);
        (&fresh).write_all(&bytes).and_then(|()| fresh.sync_data()).map_err(io)?;
        fs::rename(&draft, &self.path).map_err(io)?;
        sync_directory(&self.dir)?;
        self.file = fresh;
        let next = after(Tail { size: 0, ..tail }, &bytes);
        self.write_head(next).map_err(io)?;
        self.tail = Some(next);
        Ok(next)
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
            self.end_of_closed()
        })();
        found.map_err(io)
    }

    /// Where a growing file begins that has no line yet: after the last closed one.
    fn end_of_closed(&self) -> io::Result<Tail> {
        let start = Tail { seq: 0, prev: zeros(), size: 0 };
        let ours = self.file.metadata()?;
        for (_, path) in closed(&self.path)?.into_iter().rev() {
            let file = File::open(&path)?;
            let meta = file.metadata()?;
            if (meta.dev(), meta.ino()) == (ours.dev(), ours.ino()) {
                continue;
            }
            if let Some(line) = line_before(&file, meta.len())?
                && let Ok(header) = Header::parse(&line.bytes)
            {
                return Ok(Tail { seq: header.seq.saturating_add(1), prev: Digest::of(&line.bytes), size: 0 });
            }
        }
        Ok(start)
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
            Head::Empty if tail.seq == 0 => return Ok(None),
            // The growing file was begun, and the head not written since.
            Head::At(at) if self.begins_after(&at)? => return Ok(None),
            Head::At(at) => at,
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

    /// Whether the growing file's first line follows the record that the head names.
    fn begins_after(&self, head: &HeadAt) -> Result<bool, LogError> {
        let io = LogError::io(&self.path);
        let look = || -> io::Result<bool> {
            match line_first(&self.file)? {
                Some(line) => Ok(Header::parse(&line).is_ok_and(|first| {
                    head.seq.checked_add(1) == Some(first.seq) && first.prev == head.hash && first.kind == "rotated"
                })),
                None => {
                    let end = self.end_of_closed()?;
                    Ok(head.seq.checked_add(1) == Some(end.seq) && head.hash == end.prev)
                }
            }
        };
        look().map_err(io)
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

/// The first line of a file.
fn line_first(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut reader = io::BufReader::with_capacity(1 << 12, AtStart { file, at: 0 });
    let mut line = Vec::new();
    let most = super::MAX_LINE as u64 + 1;
    io::BufRead::read_until(&mut (&mut reader).take(most), b'\n', &mut line)?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}

/// Reads a file from its start, wherever its own position is.
struct AtStart<'a> {
    file: &'a File,
    at: u64,
}

impl Read for AtStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
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
