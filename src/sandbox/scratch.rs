//! A call's private home and temporary directory, removed after the call.

use std::ffi::{CString, OsStr};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// A directory with `tmp` in it, mode 0700, that goes away with this value.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    dir: File,
}

impl Scratch {
    /// Makes one below `base`, and `base` too where it is missing. A base of another user's is refused.
    pub fn new(base: &Path) -> io::Result<Self> {
        let owner = fs::symlink_metadata(base).or_else(|_| {
            DirBuilder::new().recursive(true).mode(0o700).create(base)?;
            fs::symlink_metadata(base)
        })?;
        if !owner.is_dir() || std::os::unix::fs::MetadataExt::uid(&owner) != nix::unistd::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the scratch directory belongs to somebody else",
            ));
        }
        let path = base.join(unique_name());
        DirBuilder::new().mode(0o700).create(&path)?;
        let dir = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(&path)?;
        let scratch = Scratch { path, dir };
        DirBuilder::new().mode(0o700).create(scratch.tmp())?;
        Ok(scratch)
    }

    pub fn dir(&self) -> &File {
        &self.dir
    }

    pub fn home(&self) -> &Path {
        &self.path
    }

    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Most programs leave nothing.
        if fs::remove_dir(self.tmp()).and_then(|()| fs::remove_dir(&self.path)).is_ok() {
            return;
        }
        // What cannot be removed stays behind in the gateway's own directory, where nobody else reads it.
        if let Ok(dir) = self.dir.try_clone() {
            let _ = empty(&OwnedFd::from(dir));
        }
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes scratch directories on a thread of its own: no caller waits for a file system to forget. What is still there
/// when the cleaner goes is removed before it is gone.
#[derive(Debug)]
pub struct Cleaner {
    queue: Option<mpsc::Sender<Scratch>>,
    thread: Option<JoinHandle<()>>,
}

impl Cleaner {
    pub fn new() -> io::Result<Self> {
        let (queue, waiting) = mpsc::channel::<Scratch>();
        let clean = move || waiting.into_iter().for_each(drop);
        let thread = std::thread::Builder::new().name("scratch".to_owned()).spawn(clean)?;
        Ok(Cleaner { queue: Some(queue), thread: Some(thread) })
    }

    /// Removes a directory soon; now, where the thread is gone.
    pub fn remove(&self, scratch: Scratch) {
        if let Some(queue) = &self.queue {
            // What cannot be sent comes back, and is dropped here.
            let _ = queue.send(scratch);
        }
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Unique on this machine while the process number is; the counter tells the calls of one process apart.
fn unique_name() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
    format!("{}-{}-{nanos:08x}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Empties a directory whatever a program left in it: however deep, with a few descriptors and no recursion, and without
/// ever following a link. A directory's directories are moved up beside it before it is removed.
fn empty(top: &OwnedFd) -> nix::Result<()> {
    let mut moved = 0u64;
    loop {
        let mut left = 0;
        for (name, is_dir) in entries(top)? {
            if is_dir {
                left += 1;
                flatten(top, &name, &mut moved)?;
            } else {
                unlinkat(top, name.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
            }
        }
        if left == 0 {
            return Ok(());
        }
    }
}

/// Removes one directory of `top`: its files are removed, its directories become `top`'s.
fn flatten(top: &OwnedFd, name: &CString, moved: &mut u64) -> nix::Result<()> {
    // The program may have taken its own permissions away.
    fchmodat(top, name.as_c_str(), Mode::S_IRWXU, FchmodatFlags::FollowSymlink)?;
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let dir = openat(top, name.as_c_str(), flags, Mode::empty())?;
    for (entry, is_dir) in entries(&dir)? {
        if is_dir {
            // A directory can only be moved by who may write it, for its `..` changes.
            fchmodat(&dir, entry.as_c_str(), Mode::S_IRWXU, FchmodatFlags::FollowSymlink)?;
            loop {
                *moved += 1;
                match renameat(&dir, entry.as_c_str(), top, OsStr::from_bytes(format!(".moved-{moved}").as_bytes())) {
                    Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                    other => break other?,
                }
            }
        } else {
            unlinkat(&dir, entry.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
        }
    }
    unlinkat(top, name.as_c_str(), UnlinkatFlags::RemoveDir)
}

/// The names in a directory, and whether each is a directory itself.
fn entries(dir: &OwnedFd) -> nix::Result<Vec<(CString, bool)>> {
    let mut open = Dir::openat(dir, ".", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut found = Vec::new();
    for entry in open.iter() {
        let entry = entry?;
        let name = entry.file_name().to_owned();
        if name.as_bytes() == b"." || name.as_bytes() == b".." {
            continue;
        }
        let is_dir = match entry.file_type() {
            Some(kind) => kind == Type::Directory,
            None => {
                let mode = fstatat(dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?.st_mode;
                mode & libc::S_IFMT == libc::S_IFDIR
            }
        };
        found.push((name, is_dir));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_goes_away_with_whatever_is_in_it() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let scratch = Scratch::new(base.path()).unwrap();
        std::os::unix::fs::symlink(outside.path(), scratch.home().join("link")).unwrap();
        fs::write(scratch.home().join(".moved-1"), "a name that the removal would use").unwrap();
        let locked = scratch.tmp().join("locked");
        fs::create_dir_all(locked.join("in/side")).unwrap();
        fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        deep(&scratch, 3000);
        drop(scratch);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "something was left behind");
        assert!(outside.path().join("kept").exists(), "a link was followed");
    }

    /// A tree deeper than any path name and than a process has descriptors.
    fn deep(scratch: &Scratch, depth: usize) {
        let mut dir: OwnedFd = scratch.dir().try_clone().unwrap().into();
        for _ in 0..depth {
            nix::sys::stat::mkdirat(&dir, "directory", Mode::S_IRWXU).unwrap();
            dir = openat(&dir, "directory", OFlag::O_DIRECTORY, Mode::empty()).unwrap();
        }
    }
}
