//! What a directory holds, read through a handle.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, ResolveFlag};
use nix::sys::stat::{FileStat, Mode, fstatat};

use super::kernel::{Kind, open_at};

/// The entries of a directory, sorted by name, without `.` and `..`.
#[derive(Debug)]
pub(super) struct Listing {
    directory: OwnedFd,
    pub entries: Vec<(OsString, Kind)>,
    /// The directory holds more entries than are listed.
    pub truncated: bool,
}

/// Entries of one directory that are listed.
pub(super) const MOST_ENTRIES: usize = 200_000;

impl Listing {
    /// Lists a directory, following no link on the way to it; `path` is absolute, or relative to `base`.
    pub fn open(base: impl AsFd, path: &Path) -> Result<Self, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let directory = open_at(base, path, flags, Mode::empty(), ResolveFlag::RESOLVE_NO_SYMLINKS)?;
        let again = directory.try_clone().map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or_default()))?;
        let mut listing = Listing { directory, entries: Vec::new(), truncated: false };
        for entry in Dir::from_fd(again)?.iter() {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            if listing.entries.len() == MOST_ENTRIES {
                listing.truncated = true;
                break;
            }
            let kind = match entry.file_type() {
                Some(kind) => kind_of(kind),
                None => match listing.stat(&name) {
                    Some(stat) => Kind::of(&stat),
                    None => continue,
                },
            };
            listing.entries.push((name, kind));
        }
        listing.entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(listing)
    }

    /// An entry's metadata; nothing where it has gone away.
    pub fn stat(&self, name: &OsStr) -> Option<FileStat> {
        fstatat(&self.directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }
}

fn kind_of(kind: Type) -> Kind {
    match kind {
        Type::File => Kind::File,
        Type::Directory => Kind::Directory,
        Type::Symlink => Kind::Symlink,
        Type::Fifo => Kind::Fifo,
        Type::Socket => Kind::Socket,
        Type::CharacterDevice => Kind::CharacterDevice,
        Type::BlockDevice => Kind::BlockDevice,
    }
}
