//! Where the kernel itself says that a path leads.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2, readlink};

/// What a path names, opened as a mere name, and where it lies.
pub(super) fn ask_kernel(path: &Path, follow: bool) -> Result<(OwnedFd, PathBuf), Errno> {
    let flags = if follow { OFlag::O_PATH } else { OFlag::O_PATH | OFlag::O_NOFOLLOW };
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let handle = loop {
        match openat2(AT_FDCWD, path, how) {
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            other => break other?,
        }
    };
    let landing = readlink(Path::new(&format!("/proc/self/fd/{}", handle.as_raw_fd())))?;
    Ok((handle, landing.into()))
}
