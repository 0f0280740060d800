//! The mount calls, each with a name for the step that it is.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;

use super::Failure;

/// Attributes of a mount (mount_setattr(2)).
pub mod attribute {
    pub const READ_ONLY: u64 = 0x1;
    pub const NO_SUID: u64 = 0x2;
    pub const NO_DEVICES: u64 = 0x4;
    pub const NO_EXEC: u64 = 0x8;
    pub const IDMAP: u64 = 0x0010_0000;
}

const OPEN_TREE_CLONE: u32 = 1;
const OPEN_TREE_CLOEXEC: u32 = 0o2_000_000;
const AT_EMPTY_PATH: u32 = 0x1000;
const AT_RECURSIVE: u32 = 0x8000;
const MOVE_FROM_EMPTY_PATH: u32 = 0x4;
const MOVE_TO_EMPTY_PATH: u32 = 0x40;

/// As the kernel reads it.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// A copy of what is mounted at a file, and below it where `whole`, that is not attached anywhere yet.
pub fn copy(of: &impl AsFd, whole: bool, name: &str) -> Result<OwnedFd, Failure> {
    let recursive = if whole { AT_RECURSIVE } else { 0 };
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive;
    // SAFETY: the path is a C string; the descriptor that comes back belongs to nobody else.
    let answer = unsafe { libc::syscall(libc::SYS_open_tree, of.as_fd().as_raw_fd(), c"".as_ptr(), flags) };
    owned(answer).map_err(|errno| Failure::new(format!("copy the mount of {name}"), errno))
}

/// Sets attributes of a mount and of all below it; with a user namespace the owners of files are mapped by it.
pub fn set(tree: &impl AsFd, attributes: u64, owners: Option<&OwnedFd>, name: &str) -> Result<(), Failure> {
    change(tree, attributes, owners, AT_EMPTY_PATH | AT_RECURSIVE, name)
}

fn change(tree: &impl AsFd, attributes: u64, owners: Option<&OwnedFd>, flags: u32, name: &str) -> Result<(), Failure> {
    let idmap = if owners.is_some() { attribute::IDMAP } else { 0 };
    let user_namespace = owners.map_or(0, |fd| u64::from(fd.as_raw_fd().unsigned_abs()));
    let wanted = Attributes { set: attributes | idmap, clear: 0, propagation: libc::MS_PRIVATE, user_namespace };
    // SAFETY: the structure has the size that is passed along and outlives the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<Attributes>(),
        )
    };
    done(answer).map_err(|errno| Failure::new(format!("set the attributes of {name}"), errno))
}

/// Attaches a mount at a path.
pub fn attach(tree: &impl AsFd, at: &Path) -> Result<(), Failure> {
    let path = CString::new(at.as_os_str().as_bytes());
    let path = path.map_err(|_| Failure::new(format!("attach {}", at.display()), Errno::EINVAL))?;
    move_to(tree, libc::AT_FDCWD, &path, 0, at)
}

/// Copies a mount, sets its attributes, and attaches it over what a handle names, wherever that is by now.
pub fn bind_over(of: &impl AsFd, over: &impl AsFd, at: &Path, attributes: u64) -> Result<(), Failure> {
    let name = at.to_string_lossy();
    let tree = copy(of, true, &name)?;
    set(&tree, attributes, None, &name)?;
    move_to(&tree, over.as_fd().as_raw_fd(), c"", MOVE_TO_EMPTY_PATH, at)
}

fn move_to(tree: &impl AsFd, to: RawFd, path: &CStr, flags: u32, at: &Path) -> Result<(), Failure> {
    // SAFETY: both paths are C strings that outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            to,
            path.as_ptr(),
            MOVE_FROM_EMPTY_PATH | flags,
        )
    };
    done(answer).map_err(|errno| Failure::new(format!("attach {}", at.display()), errno))
}

/// Makes a directory a read-only mount of its own; what is mounted below it stays as it is.
pub fn close(directory: &impl AsFd, at: &Path) -> Result<(), Failure> {
    let name = at.to_string_lossy();
    let tree = copy(directory, true, &name)?;
    change(&tree, attribute::READ_ONLY, None, AT_EMPTY_PATH, &name)?;
    attach(&tree, at)
}

/// Copies a mount, sets its attributes, and attaches it.
pub fn bind(of: &impl AsFd, at: &Path, attributes: u64, owners: Option<&OwnedFd>) -> Result<(), Failure> {
    let name = at.to_string_lossy();
    let tree = copy(of, true, &name)?;
    set(&tree, attributes, owners, &name)?;
    attach(&tree, at)
}

/// A new file system, mounted but not attached anywhere yet.
pub fn fresh(kind: &str, options: &[(&str, &str)], attributes: u64) -> Result<OwnedFd, Failure> {
    const FLAG_CLOEXEC: u32 = 1;
    const SET_STRING: u32 = 1;
    const CREATE: u32 = 6;
    let failed = |errno| Failure::new(format!("mount {kind}"), errno);
    let text = |text: &str| CString::new(text).map_err(|_| failed(Errno::EINVAL));
    let kind_name = text(kind)?;
    // SAFETY: strings outlive the calls; descriptors that come back belong to nobody else.
    unsafe {
        let context = owned(libc::syscall(libc::SYS_fsopen, kind_name.as_ptr(), FLAG_CLOEXEC)).map_err(failed)?;
        let configure = |command: u32, key: *const libc::c_char, value: *const libc::c_char| {
            done(libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), command, key, value, 0)).map_err(failed)
        };
        for (key, value) in options {
            let (key, value) = (text(key)?, text(value)?);
            configure(SET_STRING, key.as_ptr(), value.as_ptr())?;
        }
        configure(CREATE, std::ptr::null(), std::ptr::null())?;
        let attributes = u32::try_from(attributes).unwrap_or(u32::MAX);
        owned(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FLAG_CLOEXEC, attributes)).map_err(failed)
    }
}

fn done(answer: libc::c_long) -> Result<(), Errno> {
    if answer < 0 { Err(Errno::last()) } else { Ok(()) }
}

fn owned(answer: libc::c_long) -> Result<OwnedFd, Errno> {
    match RawFd::try_from(answer) {
        // SAFETY: a descriptor that the kernel just made.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Errno::last()),
    }
}
