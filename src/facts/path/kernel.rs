//! The kernel calls that resolution stands on, each with its retries.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

/// `openat2(2)` answers EAGAIN when a rename somewhere on the system makes `..` uncertain.
const RETRIES: usize = 128;

/// A file's identity, whatever its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    pub fn of(stat: &FileStat) -> Self {
        Identity { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// What kind of file something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
}

impl Kind {
    pub(super) fn of(stat: &FileStat) -> Self {
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => Kind::Directory,
            SFlag::S_IFLNK => Kind::Symlink,
            SFlag::S_IFIFO => Kind::Fifo,
            SFlag::S_IFSOCK => Kind::Socket,
            SFlag::S_IFCHR => Kind::CharacterDevice,
            SFlag::S_IFBLK => Kind::BlockDevice,
            _ => Kind::File,
        }
    }

    /// In words, for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::File => "regular file",
            Kind::Directory => "directory",
            Kind::Symlink => "symbolic link",
            Kind::Fifo => "named pipe",
            Kind::Socket => "socket",
            Kind::CharacterDevice => "character device",
            Kind::BlockDevice => "block device",
        }
    }
}

/// Opens through `openat2(2)`, with O_CLOEXEC, retrying what the kernel asks to retry.
pub(super) fn open_at(
    directory: impl AsFd,
    path: &Path,
    flags: OFlag,
    mode: Mode,
    resolve: ResolveFlag,
) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).mode(mode).resolve(resolve);
    let mut left = RETRIES;
    loop {
        match openat2(directory.as_fd(), path, how) {
            Err(Errno::EAGAIN | Errno::EINTR) if left > 0 => left -= 1,
            other => return other,
        }
    }
}

/// A handle that names a file without opening it: it never blocks, and nothing of the file's driver runs.
pub(super) fn locate_at(directory: impl AsFd, path: &Path, resolve: ResolveFlag) -> Result<OwnedFd, Errno> {
    open_at(directory, path, OFlag::O_PATH, Mode::empty(), resolve)
}

/// Opens what a handle already names. The link of `/proc` leads to the very file, whatever its name leads to by now.
pub(super) fn reopen(handle: &OwnedFd, flags: OFlag) -> Result<OwnedFd, Errno> {
    nix::fcntl::open(&link(handle), flags | OFlag::O_CLOEXEC | OFlag::O_NOCTTY | OFlag::O_NONBLOCK, Mode::empty())
}

/// Where a handle's file is now, as an absolute path without symbolic links.
pub(super) fn real_path(handle: &OwnedFd) -> Result<PathBuf, Errno> {
    nix::fcntl::readlink(&link(handle)).map(PathBuf::from)
}

pub(super) fn stat(handle: impl AsFd) -> Result<FileStat, Errno> {
    fstat(handle)
}

/// The mount that a handle was opened through; nothing before Linux 5.8.
pub(super) fn mount_id(handle: impl AsFd) -> Option<u64> {
    // SAFETY: a structure of integers; all zeroes are one.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string and the structure is ours; both outlive the call.
    let done = unsafe {
        libc::statx(handle.as_fd().as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_MNT_ID, &raw mut answer)
    };
    (done == 0 && answer.stx_mask & libc::STATX_MNT_ID != 0).then_some(answer.stx_mnt_id)
}

fn link(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}
