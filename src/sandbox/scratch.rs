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
use std::time::Duration;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat};
use nix::unistd::{Pid, UnlinkatFlags, unlinkat};

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
        // Tells a later start that somebody is there; the kernel takes it away with the last process that has it.
        dir.try_lock()?;
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

/// Removes what gateways that were killed left below `base`: directories of this module's that nobody holds, and whose
/// process is gone. A process number can have been given away since, so a directory that nobody holds is removed once it
/// is older than [`TAKEN`], too.
pub fn purge(base: &Path) {
    let own = fs::symlink_metadata(base).is_ok_and(|found| {
        found.is_dir() && std::os::unix::fs::MetadataExt::uid(&found) == nix::unistd::geteuid().as_raw()
    });
    let Some(entries) = own.then(|| fs::read_dir(base).ok()).flatten() else { return };
    for entry in entries.flatten() {
        let Some(owner) = owner(&entry.file_name()) else { continue };
        let path = entry.path();
        let open = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(&path);
        let Ok(dir) = open else { continue };
        let age = dir.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok()).unwrap_or_default();
        let gone = nix::sys::signal::kill(owner, None) == Err(Errno::ESRCH);
        if (gone || age > TAKEN) && dir.try_lock().is_ok() {
            drop(Scratch { path, dir });
        }
    }
}

/// Within this time a directory that was made is locked.
const TAKEN: Duration = Duration::from_secs(60);

/// The process that made a directory of this name. None where the name is not one of [`unique_name`].
fn owner(name: &OsStr) -> Option<Pid> {
    let mut parts = name.to_str()?.split('-');
    let (pid, call, nanos) = (parts.next()?, parts.next()?, parts.next()?);
    let ours = parts.next().is_none() && call.parse::<u64>().is_ok() && u32::from_str_radix(nanos, 16).is_ok();
    pid.parse::<i32>().ok().filter(|pid| ours && *pid > 0).map(Pid::from_raw)
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

    #[test]
    fn only_what_dead_gateways_left_is_purged() {
        let base = tempfile::tempdir().unwrap();
        let dead = {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        let (alive, nobody) = (std::process::id(), i32::MAX);
        let held = Scratch::new(base.path()).unwrap();
        // Held, and of a process that is gone here: of another container, say.
        let elsewhere = base.path().join(format!("{nobody}-1-00000000"));
        fs::create_dir(&elsewhere).unwrap();
        let lock = File::open(&elsewhere).unwrap();
        lock.lock().unwrap();
        let old = std::time::SystemTime::now() - 2 * TAKEN;
        for (name, age) in [("0", None), ("1", Some(old))] {
            for pid in [dead, alive] {
                let dir = base.path().join(format!("{pid}-{name}0-0000000a"));
                fs::create_dir_all(dir.join("tmp/in")).unwrap();
                age.into_iter().for_each(|age| File::open(&dir).unwrap().set_modified(age).unwrap());
            }
        }
        for other in ["notes", "1-2", "1-2-3-4", "x-1-00000000", "-1-1-00000000", "0-1-00000000"] {
            fs::create_dir(base.path().join(other)).unwrap();
        }
        fs::write(base.path().join(format!("{dead}-7-00000000")), "a file").unwrap();
        let before = fs::read_dir(base.path()).unwrap().count();
        purge(base.path());
        let names = |pid: u32, call: &str| base.path().join(format!("{pid}-{call}0-0000000a")).exists();
        assert!(!names(dead, "0") && !names(dead, "1"), "what a dead gateway left is still there");
        assert!(names(alive, "0"), "a directory that is just being made was taken away");
        assert!(!names(alive, "1"), "an old one whose process number lives on stays for ever");
        assert!(held.tmp().exists() && elsewhere.exists(), "somebody's directory was taken away");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), before - 3, "something else was removed");
        purge(&base.path().join("missing"));
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
