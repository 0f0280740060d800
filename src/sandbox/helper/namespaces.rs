//! Namespaces, and who a program is in them.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use libc::pid_t;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use super::{Failure, step};
use crate::sandbox::Tier;
use crate::sandbox::cgroup::{Group, Places};
use crate::sandbox::wire::Template;

/// The first of the users that programs are: above all that people, services and containers are given (systemd's
/// "Users, Groups, UIDs and GIDs"), below where a signed number ends.
const FIRST_USER: u32 = 0x7000_0000;

/// Who a program is.
#[derive(Debug)]
pub struct Identity {
    /// User and group that the kernel sees.
    pub user: u32,
    pub group: u32,
    /// Maps the workspace's owner to that user, on mounts; absent where they are the same.
    pub owners: Option<OwnedFd>,
}

/// A process that is the first of its namespaces.
pub struct First {
    pub identity: Identity,
    /// For the program that it starts.
    pub group: Group,
}

/// Puts this process into namespaces of its own and goes on as the first process in them; the process that called waits
/// for that one, and ends with it.
pub fn enter(template: &Template, groups: &Places) -> Result<First, Failure> {
    let group = groups.make();
    match fork_first(template) {
        Ok((identity, None)) => {
            die_with_parent()?;
            Ok(First { identity, group })
        }
        Ok((_, Some(first))) => wait_for(first, group),
        Err(failure) => {
            group.remains().remove();
            Err(failure)
        }
    }
}

/// In the first process there is nobody to wait for.
fn fork_first(template: &Template) -> Result<(Identity, Option<pid_t>), Failure> {
    let identity = if template.tier == Tier::Full { fresh_user(template)? } else { same_user()? };
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if template.private_network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(|errno| Failure::new("make the namespaces", errno))?;
    if template.private_network {
        loopback_up()?;
    }
    // SAFETY: this process has one thread, so the child may do whatever it likes.
    let first = step("fork the first process", unsafe { libc::fork() })?;
    Ok((identity, (first != 0).then_some(first)))
}

/// The kernel kills this process when its parent ends. To be set again after every change of user.
pub fn die_with_parent() -> Result<(), Failure> {
    // SAFETY: prctl with numbers alone.
    step("set the death signal", unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

fn wait_for(first: pid_t, group: Group) -> ! {
    let remains = group.remains();
    // SAFETY: numbers alone; nothing that is closed here is used any more.
    unsafe {
        let mut from = 0;
        for kept in remains.descriptors() {
            if kept > from {
                libc::syscall(libc::SYS_close_range, from, kept - 1, 0u32);
            }
            from = kept + 1;
        }
        libc::syscall(libc::SYS_close_range, from, u32::MAX, 0u32);
        // A child that nobody else reaps.
        while libc::waitpid(first, std::ptr::null_mut(), 0) < 0 && Errno::last() == Errno::EINTR {}
    }
    remains.remove();
    // SAFETY: ends this process, without running what the helper registered for its own end.
    unsafe { libc::_exit(0) }
}

/// A user that no other process is: no two processes of a machine have one number at a time.
fn fresh_user(template: &Template) -> Result<Identity, Failure> {
    let user = FIRST_USER + std::process::id();
    let owners = owner_map(template.owner, user)?;
    Ok(Identity { user, group: user, owners: Some(owners) })
}

/// The same user, in a user namespace that knows nobody else.
fn same_user() -> Result<Identity, Failure> {
    let failed = |name: &'static str| move |error: io::Error| Failure::io(name, &error);
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| Failure::new("make the user namespace", errno))?;
    // The kernel gives the files of a process that cannot be dumped to root.
    // SAFETY: prctl with numbers alone.
    step("open the maps", unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) })?;
    write("/proc/self/setgroups", "deny").map_err(failed("give up the groups"))?;
    write("/proc/self/uid_map", &format!("{user} {user} 1")).map_err(failed("map the user"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1")).map_err(failed("map the group"))?;
    // SAFETY: prctl with numbers alone.
    step("close the maps", unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
    Ok(Identity { user, group, owners: None })
}

/// A user namespace in which a file's owner and the program's user have changed places, and everybody else stays. It is
/// made by a process that ends at once; the descriptor keeps it.
fn owner_map((user, group): (u32, u32), program: u32) -> Result<OwnedFd, Failure> {
    let name = "map the workspace's owner";
    let failed = |error: io::Error| Failure::io(name, &error);
    let (mut ready, mut made) = io::pipe().map_err(failed)?;
    // SAFETY: this process has one thread, so the child may do whatever it likes.
    let holder = step(name, unsafe { libc::fork() })?;
    if holder == 0 {
        drop(ready);
        let unshared = unshare(CloneFlags::CLONE_NEWUSER).is_ok();
        if unshared && io::Write::write_all(&mut made, &[1]).is_ok() {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
        // SAFETY: ends this process, without running what others registered for their end.
        unsafe { libc::_exit(0) }
    }
    drop(made);
    let mut map = || -> io::Result<OwnedFd> {
        ready.read_exact(&mut [0])?;
        write(&format!("/proc/{holder}/uid_map"), &exchanged(user, program))?;
        write(&format!("/proc/{holder}/gid_map"), &exchanged(group, program))?;
        Ok(std::fs::File::open(format!("/proc/{holder}/ns/user"))?.into())
    };
    let mapped = map();
    // SAFETY: the child is this process's own; it is reaped by itself, for nobody listens to its end.
    unsafe {
        libc::kill(holder, libc::SIGKILL);
        libc::waitpid(holder, std::ptr::null_mut(), 0);
    }
    mapped.map_err(failed)
}

/// The map in which two numbers have changed places.
fn exchanged(a: u32, b: u32) -> String {
    let (low, high) = (a.min(b), a.max(b));
    let spans = [
        (0, 0, low),
        (low, high, 1),
        (low + 1, low + 1, high - low - 1),
        (high, low, 1),
        (high + 1, high + 1, u32::MAX - high - 1),
    ];
    spans.iter().filter(|(_, _, count)| *count > 0).map(|(from, to, count)| format!("{from} {to} {count}\n")).collect()
}

fn write(path: &str, text: &str) -> io::Result<()> {
    // One write: the kernel takes a map once.
    std::fs::write(path, text)
}

/// A new network has its loopback down.
fn loopback_up() -> Result<(), Failure> {
    let name = "bring the loopback up";
    // SAFETY: all-zero is a valid ifreq, which outlives the calls; the socket is closed here and nowhere else.
    unsafe {
        let socket = step(name, libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
        let up = step(name, libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request)).map(drop);
        libc::close(socket);
        up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_users_change_places_and_everybody_else_stays() {
        assert_eq!(
            exchanged(0, 5),
            "0 5 1\n1 1 4\n5 0 1\n6 6 4294967289\n",
            "whoever is not mapped cannot be the owner of anything"
        );
        let map = exchanged(1000, FIRST_USER);
        assert_eq!(map.lines().count(), 5);
        let total: u64 = map.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total, u64::from(u32::MAX), "somebody is missing");
    }
}
