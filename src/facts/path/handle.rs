//! What was judged, held open: the only thing that tools work on.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, ResolveFlag, renameat, renameat2};
use nix::sys::stat::{FileStat, Mode, fchmod, fstatat, mkdirat};
use nix::unistd::{Gid, LinkatFlags, Uid, UnlinkatFlags, fchown, linkat, unlinkat};
use uuid::Uuid;

use super::ground::Ground;
use super::kernel::{Identity, Kind, open_at, reopen, stat};
use super::name::LONGEST_NAME;
use super::walk::{Walk, WalkError};

/// A path that was judged, held open. Whatever happens to its name in the meantime, this is still the file, and a new
/// file is made in the very directory that was looked at.
#[derive(Clone, Debug)]
pub struct Handle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ground: Arc<Ground>,
    shown: String,
    landing: PathBuf,
    found: Option<Found>,
    obstacle: Errno,
    /// Only where the call writes.
    place: Option<Result<Place, Errno>>,
}

/// A file that exists, by an `O_PATH` handle.
#[derive(Debug)]
pub(super) struct Found {
    pub handle: OwnedFd,
    pub stat: FileStat,
}

/// Where a file is written: a directory that exists, directories that do not exist yet, and the file's name.
#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    missing: Vec<OsString>,
    name: OsString,
}

/// Why a tool could not work on a handle.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{path}` is a {}, not a {}", kind.noun(), wanted.noun())]
    WrongKind { path: String, kind: Kind, wanted: Kind },
    #[error("`{0}` has changed since the call was judged, so nothing was written: look at it again")]
    Changed(String),
    #[error("`{0}` was opened for reading alone")]
    ReadOnly(String),
    #[error("`{path}` could not be {what}: {reason}")]
    System { path: String, what: &'static str, reason: io::Error },
}

/// A file's state when it was read, to write back only what was based on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    identity: Identity,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &FileStat) -> Self {
        Stamp {
            identity: Identity::of(stat),
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

impl Handle {
    pub(super) fn new(
        ground: Arc<Ground>,
        shown: String,
        landing: PathBuf,
        found: Option<Found>,
        obstacle: Errno,
        place: Option<Result<Place, Errno>>,
    ) -> Self {
        Handle { inner: Arc::new(Inner { ground, shown, landing, found, obstacle, place }) }
    }

    /// What to call it: relative to the workspace where it is inside.
    pub fn shown(&self) -> &str {
        &self.inner.shown
    }

    /// What was there when it was judged; nothing where it did not exist.
    pub fn kind(&self) -> Option<Kind> {
        self.inner.found.as_ref().map(|found| Kind::of(&found.stat))
    }

    /// Device and inode of what was judged, or why there was nothing.
    pub(crate) fn judged(&self) -> Result<(u64, u64), Errno> {
        let found = self.inner.found.as_ref().map(|found| (found.stat.st_dev, found.stat.st_ino));
        found.ok_or(self.inner.obstacle)
    }

    /// Opens the file for reading, and takes its state at that moment. Only regular files are opened.
    pub fn open_file(&self) -> Result<(File, Stamp), HandleError> {
        let found = self.expect(Kind::File)?;
        let handle = reopen(&found.handle, OFlag::O_RDONLY).map_err(|e| self.failed("opened", e))?;
        let stamp = Stamp::of(&stat(&handle).map_err(|e| self.failed("opened", e))?);
        Ok((File::from(handle), stamp))
    }

    /// Where it lies, without links.
    pub(super) fn landing(&self) -> &Path {
        &self.inner.landing
    }

    /// Walks the directory, or lists it where `depth` is 1.
    pub fn walk(&self, ignore_files: bool, depth: usize) -> Result<Walk, HandleError> {
        let found = self.expect(Kind::Directory)?;
        let handle =
            reopen(&found.handle, OFlag::O_RDONLY | OFlag::O_DIRECTORY).map_err(|e| self.failed("opened", e))?;
        Walk::start(Arc::clone(&self.inner.ground), handle, &self.inner.landing, ignore_files, depth)
            .map_err(|WalkError(reason)| self.failed("listed", reason))
    }

    /// Writes the whole file: into a new file beside it, synced, that then takes its name. A reader sees the old
    /// content or the new. Missing directories are made. With `based_on`, nothing is written where the file is no
    /// longer in that state. An existing file keeps its mode and owner, not its
    /// extended attributes, and a hard link is broken, not written through.
    ///
    /// Says whether the file is new.
    pub fn write(&self, content: &[u8], based_on: Option<Stamp>) -> Result<bool, HandleError> {
        if let Some(found) = &self.inner.found
            && Kind::of(&found.stat) != Kind::File
        {
            let kind = Kind::of(&found.stat);
            return Err(HandleError::WrongKind { path: self.shown().to_owned(), kind, wanted: Kind::File });
        }
        let place = match &self.inner.place {
            None => return Err(HandleError::ReadOnly(self.shown().to_owned())),
            Some(Err(reason)) => return Err(self.failed("written", *reason)),
            Some(Ok(place)) => place,
        };
        let made;
        let directory = if place.missing.is_empty() {
            &place.directory
        } else {
            made = place.make_directories().map_err(|e| self.failed("given its directory", e))?;
            &made
        };
        self.write_in(directory, &place.name, content, based_on)
    }

    fn write_in(
        &self,
        directory: &OwnedFd,
        name: &OsStr,
        content: &[u8],
        based_on: Option<Stamp>,
    ) -> Result<bool, HandleError> {
        let judged = self.inner.found.as_ref().map(|found| &found.stat);
        let draft = Draft::create(directory, judged).map_err(|e| self.failed("written", e))?;
        let mut file = &draft.file;
        file.write_all(content).and_then(|()| file.sync_all()).map_err(|e| self.system("written", e))?;
        let there = occupant(directory, name).map_err(|e| self.failed("written", e))?;
        let same = there.as_ref().map(Identity::of) == judged.map(Identity::of);
        let current = based_on.is_none() || there.as_ref().map(Stamp::of) == based_on;
        if !same || !current {
            return Err(HandleError::Changed(self.shown().to_owned()));
        }
        match draft.publish(name, judged.is_none()) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return Err(HandleError::Changed(self.shown().to_owned())),
            Err(reason) => return Err(self.failed("written", reason)),
        }
        // The name is durable once its directory is.
        reopen(directory, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
            .and_then(nix::unistd::fsync)
            .map_err(|e| self.failed("synced", e))?;
        Ok(judged.is_none())
    }

    fn expect(&self, wanted: Kind) -> Result<&Found, HandleError> {
        match &self.inner.found {
            None if self.inner.obstacle == Errno::ENOENT => Err(HandleError::Missing(self.shown().to_owned())),
            None => Err(self.failed("found", self.inner.obstacle)),
            Some(found) => match Kind::of(&found.stat) {
                kind if kind == wanted => Ok(found),
                kind => Err(HandleError::WrongKind { path: self.shown().to_owned(), kind, wanted }),
            },
        }
    }

    fn failed(&self, what: &'static str, reason: Errno) -> HandleError {
        self.system(what, reason.into())
    }

    fn system(&self, what: &'static str, reason: io::Error) -> HandleError {
        HandleError::System { path: self.shown().to_owned(), what, reason }
    }
}

/// Nothing below a root is opened through a link, or out of it.
fn strict() -> ResolveFlag {
    ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS
}

impl Place {
    /// Opens the deepest directory that exists on the way to a file. `inner` is relative to the root, without links.
    pub fn open(root: &OwnedFd, inner: &Path) -> Result<Self, Errno> {
        let name = inner.file_name().ok_or(Errno::EISDIR)?.to_owned();
        // Known before any directory is made on the way.
        if inner.iter().any(|name| name.len() > LONGEST_NAME) {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut parent = inner.parent().unwrap_or(Path::new(""));
        let mut missing = Vec::new();
        loop {
            let path = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            match open_at(root, path, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty(), strict()) {
                Ok(directory) => {
                    missing.reverse();
                    return Ok(Place { directory, missing, name });
                }
                Err(Errno::ENOENT) => match parent.file_name() {
                    Some(last) => missing.push(last.to_owned()),
                    None => return Err(Errno::ENOENT),
                },
                Err(other) => return Err(other),
            }
            parent = parent.parent().unwrap_or(Path::new(""));
        }
    }

    /// What has the file's name now.
    pub fn occupant(&self) -> Result<Option<FileStat>, Errno> {
        match self.missing.first() {
            None => occupant(&self.directory, &self.name),
            // Something has come to stand where nothing was.
            Some(first) => occupant(&self.directory, first)?.map_or(Ok(None), |_| Err(Errno::EEXIST)),
        }
    }

    /// The deepest directory that exists on the way to the file.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    fn make_directories(&self) -> Result<OwnedFd, Errno> {
        let mut here = self.directory.try_clone().map_err(|_| Errno::EMFILE)?;
        for name in &self.missing {
            match mkdirat(&here, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(other) => return Err(other),
            }
            here = open_at(&here, Path::new(name), OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty(), strict())?;
        }
        Ok(here)
    }
}

fn occupant(directory: impl AsFd, name: &OsStr) -> Result<Option<FileStat>, Errno> {
    match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::ENOENT) => Ok(None),
        Err(other) => Err(other),
    }
}

/// A file that is not finished. It goes away unless it is published.
struct Draft<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    file: File,
    published: bool,
}

impl<'a> Draft<'a> {
    /// A new file has the usual mode; one that takes an existing file's place has its mode and owner.
    fn create(directory: &'a OwnedFd, like: Option<&FileStat>) -> Result<Self, Errno> {
        let name = OsString::from(format!(".portcullis-{}.tmp", Uuid::now_v7().simple()));
        let mode = Mode::from_bits_truncate(if like.is_some() { 0o600 } else { 0o666 });
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let handle = open_at(directory, Path::new(&name), flags, mode, strict())?;
        let draft = Draft { directory, name, file: File::from(handle), published: false };
        if let Some(like) = like {
            let own = stat(&draft.file)?;
            if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid) {
                // An ordinary user cannot give files away, and then the file becomes the user's.
                match fchown(&draft.file, Some(Uid::from_raw(like.st_uid)), Some(Gid::from_raw(like.st_gid))) {
                    Ok(()) | Err(Errno::EPERM) => {}
                    Err(other) => return Err(other),
                }
            }
            // Never the set-id bits: they were given to the old content.
            fchmod(&draft.file, Mode::from_bits_truncate(like.st_mode & 0o1777))?;
        }
        Ok(draft)
    }

    /// Gives the file its name. A new file never takes the place of one that is there (EEXIST).
    fn publish(mut self, name: &OsStr, new: bool) -> Result<(), Errno> {
        if new {
            match renameat2(self.directory, self.name.as_os_str(), self.directory, name, RenameFlags::RENAME_NOREPLACE)
            {
                // Not every file system knows the flag; a hard link never replaces anything either.
                Err(Errno::EINVAL | Errno::ENOSYS) => {
                    linkat(self.directory, self.name.as_os_str(), self.directory, name, LinkatFlags::empty())?;
                    return Ok(());
                }
                other => other?,
            }
        } else {
            renameat(self.directory, self.name.as_os_str(), self.directory, name)?;
        }
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published {
            let _ = unlinkat(self.directory, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}
