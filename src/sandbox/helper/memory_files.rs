//! Memory files (memfd_create(2)) that hold data and cannot be executed, where the kernel's own switch is out of reach:
//! `vm.memfd_noexec` belongs to root, and without a process namespace it is the whole machine's.
//!
//! The kernel hands the supervisor each call that would make an executable one. The supervisor makes the same file with
//! `MFD_NOEXEC_SEAL` and puts it in the program's place. Only numbers are looked at, so that nothing can be changed in
//! between; the file's name is lost.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_uint, c_ulong, sock_filter, sock_fprog};
use nix::errno::Errno;

use super::{Failure, step};

const NAME: &CStr = c"sandboxed";

/// seccomp_unotify(2); the sizes of the structures are part of the numbers.
const RECEIVE: c_ulong = 0xc050_2100;
const SEND: c_ulong = 0xc018_2101;
const ADD_DESCRIPTOR: c_ulong = 0x4018_2103;
const ADD_AND_SEND: u32 = 2;

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

/// As the kernel fills it in: the call's number, architecture and arguments come last.
#[repr(C)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: c_int,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct Addition {
    id: u64,
    flags: u32,
    from: u32,
    to: u32,
    descriptor_flags: u32,
}

/// The end at which those calls arrive.
#[derive(Debug)]
pub struct MemoryFiles(OwnedFd);

impl MemoryFiles {
    /// From here on calls of this process's children that would make executable memory files arrive here. `None` where the
    /// kernel (before 6.3) has no files that cannot be executed. Needs no_new_privs.
    pub fn watch() -> Result<Option<Self>, Failure> {
        match make(libc::MFD_CLOEXEC) {
            Err(Errno::EINVAL) => return Ok(None),
            other => drop(other.map_err(|errno| Failure::new("make a memory file", errno))?),
        }
        let mut filter = filter();
        let length = u16::try_from(filter.len()).map_err(|_| Failure::new("watch memory files", Errno::E2BIG))?;
        let program = sock_fprog { len: length, filter: filter.as_mut_ptr() };
        // SAFETY: the program points to `length` instructions that outlive the call; the descriptor is new.
        unsafe {
            let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            let set = libc::SECCOMP_SET_MODE_FILTER;
            let answer = step("watch memory files", libc::syscall(libc::SYS_seccomp, set, flags, &raw const program))?;
            let descriptor = RawFd::try_from(answer).map_err(|_| Failure::new("watch memory files", Errno::EBADF))?;
            Ok(Some(MemoryFiles(OwnedFd::from_raw_fd(descriptor))))
        }
    }

    /// Readable when a call waits.
    pub fn waiting(&self) -> &OwnedFd {
        &self.0
    }

    /// Answers one call. A process that is gone by now needs no answer.
    pub fn answer(&self) {
        // SAFETY: all-zero is a valid notification, as the kernel wants it; it outlives the call.
        let asked = unsafe {
            let mut asked: Notification = std::mem::zeroed();
            if libc::ioctl(self.0.as_raw_fd(), RECEIVE, &raw mut asked) < 0 {
                return;
            }
            asked
        };
        // The kernel looks at the lower half as well.
        let flags = asked.arguments[1] as c_uint;
        let refused = match sealed(flags) {
            Ok(file) if self.put(asked.id, &file, flags) => return,
            Ok(_) => Errno::EMFILE,
            Err(errno) => errno,
        };
        let response = Response { id: asked.id, value: 0, error: -(refused as i32), flags: 0 };
        // SAFETY: the structure outlives the call.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SEND, &raw const response) };
    }

    /// Makes the file the result of the call.
    fn put(&self, id: u64, file: &OwnedFd, flags: c_uint) -> bool {
        let descriptor_flags = if flags & libc::MFD_CLOEXEC == 0 { 0 } else { libc::O_CLOEXEC.unsigned_abs() };
        let from = file.as_raw_fd().unsigned_abs();
        let addition = Addition { id, flags: ADD_AND_SEND, from, to: 0, descriptor_flags };
        // SAFETY: the structure outlives the call; the descriptor is open.
        unsafe { libc::ioctl(self.0.as_raw_fd(), ADD_DESCRIPTOR, &raw const addition) >= 0 }
    }
}

/// A memory file as the program asked for, but for execution. One that is asked for to be executed is refused, as the
/// kernel's own switch does it.
fn sealed(flags: c_uint) -> Result<OwnedFd, Errno> {
    if flags & libc::MFD_EXEC != 0 {
        return Err(Errno::EACCES);
    }
    let file = make(flags | libc::MFD_CLOEXEC)?;
    if flags & libc::MFD_ALLOW_SEALING == 0 {
        // SAFETY: the descriptor is open; the call takes numbers alone.
        Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SEAL) })?;
    }
    Ok(file)
}

fn make(flags: c_uint) -> Result<OwnedFd, Errno> {
    // SAFETY: the name is a C string; the descriptor is new.
    unsafe {
        let descriptor = Errno::result(libc::memfd_create(NAME.as_ptr(), flags | libc::MFD_NOEXEC_SEAL))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Calls of memfd_create(2) without `MFD_NOEXEC_SEAL` arrive; every other call is for the other filter to judge.
fn filter() -> [sock_filter; 8] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    // The lower half of the second argument.
    let flags = 24 + if cfg!(target_endian = "big") { 4 } else { 0 };
    let of = |code: u32, jt, jf, k| sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k };
    [
        of(LOAD, 0, 0, 4),
        of(EQUAL, 0, 5, AUDIT_ARCH),
        of(LOAD, 0, 0, 0),
        of(EQUAL, 0, 3, u32::try_from(libc::SYS_memfd_create).unwrap_or(u32::MAX)),
        of(LOAD, 0, 0, flags),
        of(ANY_BIT, 1, 0, libc::MFD_NOEXEC_SEAL),
        of(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        of(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
