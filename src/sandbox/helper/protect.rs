//! What of a workspace stays as it is: files that make other programs run something, later and outside.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};

use super::Failure;
use super::mounts::{self, attribute};
use super::namespaces::Identity;
use crate::sandbox::leftovers::ORDERS;

/// What git runs, in a repository's directory.
const GIT: &[&str] = &["hooks", "config", "config.worktree"];

/// How many directories of the workspace, and how many submodules, are looked at for repositories.
const NESTED: usize = 256;

/// Makes the protected parts of a workspace read-only, by mounts over themselves.
pub fn protect(workspace: &OwnedFd, path: &Path, identity: &Identity) -> Result<(), Failure> {
    for name in ORDERS {
        keep(workspace, path, name)?;
    }
    repository(workspace, path, ".git", identity)?;
    // The file of a linked worktree; what a directory holds is dealt with by now.
    if open(workspace, ".git", OFlag::O_DIRECTORY)?.is_none() {
        keep(workspace, path, ".git")?;
    }
    for name in directories(workspace, ".") {
        let inner = format!("{name}/.git");
        if open(workspace, &format!("{inner}/HEAD"), OFlag::empty())?.is_some() {
            repository(workspace, path, &inner, identity)?;
        }
    }
    Ok(())
}

/// Protects a repository: its directory cannot be renamed away, for it is a mount, and hooks and configuration in it are
/// read-only, those of its submodules too.
fn repository(workspace: &OwnedFd, path: &Path, git: &str, identity: &Identity) -> Result<(), Failure> {
    let Some(directory) = open(workspace, git, OFlag::O_DIRECTORY)? else { return Ok(()) };
    let at = path.join(git);
    mounts::bind(&directory, &at, 0, None)?;
    // Looked up through the mount that was made just now.
    open(workspace, git, OFlag::O_DIRECTORY)?.map_or(Ok(()), |git| keep_git(&git, &at, identity))
}

/// Makes what git runs read-only, in a repository's directory.
pub fn keep_git(git: &OwnedFd, path: &Path, identity: &Identity) -> Result<(), Failure> {
    if open(git, "HEAD", OFlag::empty())?.is_some() {
        make_hooks(git, identity);
    }
    for name in GIT {
        keep(git, path, name)?;
    }
    for module in directories(git, "modules") {
        for name in GIT {
            keep(git, path, &format!("modules/{module}/{name}"))?;
        }
    }
    Ok(())
}

/// A repository without a directory for hooks gets an empty one: what is not there cannot be kept as it is. Where that
/// fails, the directory cannot be made by the program either.
fn make_hooks(git: &OwnedFd, identity: &Identity) {
    // SAFETY: calls with numbers alone. Files of the workspace belong to the program's user, as this mount shows them.
    unsafe {
        libc::setfsgid(identity.group);
        libc::setfsuid(identity.user);
    }
    let _ = mkdirat(git, "hooks", Mode::from_bits_truncate(0o755));
    // SAFETY: as above.
    unsafe {
        libc::setfsuid(libc::geteuid());
        libc::setfsgid(libc::getegid());
    }
}

/// Keeps a file of the gateway's own as it is. The directories above it become mounts too, so that none can be renamed
/// away and made anew.
pub fn keep_own(workspace: &OwnedFd, path: &Path, name: &str) -> Result<(), Failure> {
    let mut above: Vec<&Path> =
        Path::new(name).ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).collect();
    above.reverse();
    for directory in above.into_iter().filter_map(Path::to_str) {
        // Looked up through what was mounted before.
        let Some(found) = open(workspace, directory, OFlag::O_DIRECTORY)? else { return Ok(()) };
        mounts::bind(&found, &path.join(directory), 0, None)?;
    }
    keep(workspace, path, name)
}

/// Makes one part read-only where it exists.
fn keep(workspace: &OwnedFd, path: &Path, name: &str) -> Result<(), Failure> {
    // Looked up through what was mounted before.
    match open(workspace, name, OFlag::empty())? {
        Some(part) => mounts::bind(&part, &path.join(name), attribute::READ_ONLY, None),
        None => Ok(()),
    }
}

/// The directories in a directory of the workspace, as far as they are looked at.
fn directories(workspace: &OwnedFd, name: &str) -> Vec<String> {
    let Ok(Some(directory)) = open_as(workspace, name, OFlag::O_RDONLY | OFlag::O_DIRECTORY) else { return Vec::new() };
    let Ok(mut directory) = Dir::from_fd(directory) else { return Vec::new() };
    let plain = |name: &str| !matches!(name, "." | ".." | ".git" | "node_modules" | "target");
    let entries = directory.iter().filter_map(Result::ok).filter(|entry| entry.file_type() == Some(Type::Directory));
    let names = entries.filter_map(|entry| CString::from(entry.file_name()).into_string().ok());
    names.filter(|name| plain(name)).take(NESTED).collect()
}

/// Opens a part of the workspace that is there, and is no link: a link's target is protected where it lies, or is not
/// the workspace's.
fn open(workspace: &OwnedFd, name: &str, flags: OFlag) -> Result<Option<OwnedFd>, Failure> {
    open_as(workspace, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | flags)
}

fn open_as(workspace: &OwnedFd, name: &str, flags: OFlag) -> Result<Option<OwnedFd>, Failure> {
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
    match openat2(workspace, name, how) {
        Ok(part) => Ok(Some(part)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        Err(errno) => Err(Failure::new(format!("protect {name}"), errno)),
    }
}
