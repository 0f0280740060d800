//! What of a workspace stays as it is: files that make other programs run something, later and outside.

use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

use super::Failure;
use super::mounts::{self, attribute};

/// Read-only where they exist: git's hooks and configuration, and what editors and agents take orders from.
const READ_ONLY: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".vscode",
    ".idea",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".mcp.json",
    ".portcullis.toml",
    ".envrc",
];

/// Directories that hold some of these: mounted on themselves, so that they cannot be renamed away.
const PINNED: &[&str] = &[".git"];

/// Makes the protected parts of a workspace read-only, by mounts over themselves.
pub fn protect(workspace: &OwnedFd, path: &Path) -> Result<(), Failure> {
    for name in PINNED {
        if let Some(part) = open(workspace, name, OFlag::O_DIRECTORY)? {
            mounts::bind(&part, &path.join(name), 0, None)?;
        }
    }
    for name in READ_ONLY {
        // Looked up again, through what was mounted just now.
        if let Some(part) = open(workspace, name, OFlag::empty())? {
            mounts::bind(&part, &path.join(name), attribute::READ_ONLY, None)?;
        }
    }
    Ok(())
}

/// Opens a part of the workspace that is there, and is no link: a link's target is protected where it lies, or is not
/// the workspace's.
fn open(workspace: &OwnedFd, name: &str, flags: OFlag) -> Result<Option<OwnedFd>, Failure> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | flags)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(workspace, name, how) {
        Ok(part) => Ok(Some(part)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        Err(errno) => Err(Failure::new(format!("protect {name}"), errno)),
    }
}
