//! Capabilities and securebits.

use nix::errno::Errno;

use super::{Failure, step};

const NO_SECUREBIT_UNLOCKED: libc::c_ulong = 0b1110_1111;
const CAPABILITY_VERSION: u32 = 0x2008_0522;
const CAP_SETPCAP: u32 = 8;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// Effective, permitted and inheritable, for capabilities 0 to 31 and 32 to 63.
type Sets = [[u32; 3]; 2];

/// Drops every capability for good, and makes sure that none is left.
///
/// The bounding set and the securebits matter only to a process that has capabilities, and only such a process may
/// change them; for the others no_new_privs closes the way back. With a user and group, this process becomes them.
pub fn drop_all(program: Option<(u32, u32)>) -> Result<(), Failure> {
    let before = get()?;
    let may_change =
        before.first().is_some_and(|low| low.first().is_some_and(|effective| effective & (1 << CAP_SETPCAP) != 0));
    if may_change {
        drop_bounding_set()?;
        // SAFETY: prctl with numbers alone. NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE set, all locked.
        step("lock the securebits", unsafe { libc::prctl(libc::PR_SET_SECUREBITS, NO_SECUREBIT_UNLOCKED, 0, 0, 0) })?;
    }
    if let Some((user, group)) = program {
        become_user(user, group)?;
    }
    // SAFETY: prctl with numbers alone.
    step("clear the ambient capabilities", unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    })?;
    let header = Header { version: CAPABILITY_VERSION, pid: 0 };
    let none: Sets = [[0; 3]; 2];
    // SAFETY: header and data have the layout of capset(2) version 3 and outlive the call.
    step("drop the capabilities", unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) })?;
    if get()? == none { Ok(()) } else { Err(Failure::new("drop the capabilities", Errno::EPERM)) }
}

/// The securebits keep the capabilities through this, so that they are dropped in one place, and checked.
fn become_user(user: u32, group: u32) -> Result<(), Failure> {
    // SAFETY: an empty list is not read; the other calls take numbers alone.
    unsafe {
        step("leave all groups", libc::setgroups(0, std::ptr::null()))?;
        step("change the group", libc::setresgid(group, group, group))?;
        step("change the user", libc::setresuid(user, user, user)).map(drop)
    }
}

fn get() -> Result<Sets, Failure> {
    let header = Header { version: CAPABILITY_VERSION, pid: 0 };
    let mut sets: Sets = [[0; 3]; 2];
    // SAFETY: header and data have the layout of capget(2) version 3 and outlive the call.
    step("read the capabilities", unsafe { libc::syscall(libc::SYS_capget, &raw const header, &raw mut sets) })?;
    Ok(sets)
}

/// Until the kernel says that there is no such capability.
fn drop_bounding_set() -> Result<(), Failure> {
    for capability in 0..64 {
        // SAFETY: prctl with numbers alone.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } < 0 {
            return match Errno::last() {
                Errno::EINVAL if capability > 0 => Ok(()),
                errno => Err(Failure::new("drop the bounding set", errno)),
            };
        }
    }
    Ok(())
}
