//! The system call filters, compiled once in the gateway.
//!
//! seccompiler gives one program one answer, so there are four, and the kernel takes the strictest of their answers:
//! what is not of this architecture or unknown, what is refused (`EPERM`), what is said not to exist (`ENOSYS`: callers
//! fall back), and extended attributes (`EOPNOTSUPP`: `cp -a` goes on).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use libc::{c_long, sock_filter};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// What a profile opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Openings {
    pub internet: bool,
    pub unix_sockets: bool,
    pub trace: bool,
}

/// Programs in the order of installation, as the kernel takes them.
#[derive(Clone, Debug)]
pub struct Filters {
    /// Instructions of each program.
    pub lengths: Vec<u16>,
    /// All instructions, 8 bytes each.
    pub bytes: Vec<u8>,
}

/// The filters cannot be compiled for this machine.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the system call filters cannot be compiled: {0}")]
pub struct FilterError(String);

impl From<seccompiler::BackendError> for FilterError {
    fn from(error: seccompiler::BackendError) -> Self {
        FilterError(error.to_string())
    }
}

impl Filters {
    /// The filters for these openings. Compiled once for each combination.
    pub fn get(openings: Openings) -> Result<&'static Filters, FilterError> {
        static COMPILED: [OnceLock<Result<Filters, FilterError>>; 8] = [const { OnceLock::new() }; 8];
        let index =
            usize::from(openings.internet) | usize::from(openings.unix_sockets) << 1 | usize::from(openings.trace) << 2;
        let slot = COMPILED.get(index).ok_or_else(|| FilterError("no such combination".to_owned()))?;
        slot.get_or_init(|| compile(openings)).as_ref().map_err(Clone::clone)
    }
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile(openings: Openings) -> Result<Filters, FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let build = |rules: Rules, errno: i32| -> Result<BpfProgram, FilterError> {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        Ok(SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()?)
    };
    let programs = [
        build(absent(), libc::ENOSYS)?,
        build(attributes(), libc::EOPNOTSUPP)?,
        build(refused(openings)?, libc::EPERM)?,
    ];
    let mut filters = Filters { lengths: Vec::new(), bytes: Vec::new() };
    // seccompiler's programs begin with the check that kills what is not of this architecture.
    filters.push(unknown_numbers().map(|i| (i.code, i.jt, i.jf, i.k)))?;
    for program in programs {
        filters.push(program.into_iter().map(|i| (i.code, i.jt, i.jf, i.k)))?;
    }
    Ok(filters)
}

impl Filters {
    fn push(&mut self, program: impl IntoIterator<Item = (u16, u8, u8, u32)>) -> Result<(), FilterError> {
        let before = self.bytes.len();
        for (code, jt, jf, k) in program {
            self.bytes.extend_from_slice(&code.to_ne_bytes());
            self.bytes.extend_from_slice(&[jt, jf]);
            self.bytes.extend_from_slice(&k.to_ne_bytes());
        }
        let length = (self.bytes.len() - before) / size_of::<sock_filter>();
        self.lengths.push(u16::try_from(length).map_err(|_| FilterError("a program is too long".to_owned()))?);
        Ok(())
    }
}

/// The last system call that these filters were written for (mseal(2), Linux 6.10). The numbers after it, and the x32
/// numbers on x86, which begin at 0x4000_0000, do not exist.
const LAST_KNOWN: u32 = 462;

fn unknown_numbers() -> [sock_filter; 4] {
    let code = |c: u32| u16::try_from(c).unwrap_or_default();
    let load = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
    let greater = code(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K);
    let answer = code(libc::BPF_RET | libc::BPF_K);
    [
        // The number is the first word of seccomp_data.
        sock_filter { code: load, jt: 0, jf: 0, k: 0 },
        sock_filter { code: greater, jt: 0, jf: 1, k: LAST_KNOWN },
        sock_filter { code: answer, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs() },
        sock_filter { code: answer, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

/// What is said not to exist. clone3(2) hides its flags behind a pointer, and libc falls back to clone(2) on `ENOSYS`
/// alone; openat2(2) hides a mode that may carry a set-user-ID bit; io_uring runs calls past the filters; the mount calls
/// and their like have no use here.
fn absent() -> Rules {
    /// No libc constant yet: statmount, listmount, lsm_get_self_attr, lsm_set_self_attr, lsm_list_modules.
    const NEWER: [c_long; 5] = [457, 458, 459, 460, 461];
    let mut rules = all(&[
        libc::SYS_clone3,
        libc::SYS_openat2,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_memfd_secret,
    ]);
    rules.extend(all(&NEWER));
    rules
}

/// Setting extended attributes: they are metadata, which Landlock does not see. Reading them is harmless.
fn attributes() -> Rules {
    all(&[
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
    ])
}

fn refused(openings: Openings) -> Result<Rules, FilterError> {
    let mut rules = all(&[
        // Mounts, roots, namespaces.
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_setns,
        libc::SYS_unshare,
        // The kernel and the machine.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_syslog,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_adjtimex,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_vhangup,
        libc::SYS_fanotify_init,
        libc::SYS_fanotify_mark,
        libc::SYS_lookup_dcookie,
        libc::SYS_nfsservctl,
        // Files by handle, past every path.
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        // Keys and interprocess communication, which belong to the user, not to the sandbox.
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_semctl,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        // Other processes.
        libc::SYS_kcmp,
        libc::SYS_pidfd_getfd,
        libc::SYS_process_madvise,
        libc::SYS_process_mrelease,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
        libc::SYS_vmsplice,
    ]);
    rules.extend(old_calls());
    if !openings.trace {
        rules.extend(all(&[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev]));
    }
    rules.extend(namespaces_and_personality()?);
    rules.extend(terminals()?);
    rules.extend(set_id_bits()?);
    rules.extend(other_processes()?);
    rules.extend(sockets(openings)?);
    Ok(rules)
}

#[cfg(target_arch = "x86_64")]
fn old_calls() -> Rules {
    all(&[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_ustat, libc::SYS_sysfs, libc::SYS_uselib])
}

#[cfg(not(target_arch = "x86_64"))]
fn old_calls() -> Rules {
    Rules::new()
}

fn namespaces_and_personality() -> Result<Rules, FilterError> {
    // CLONE_NEWTIME is not valid for clone(2): its bit is the exit signal's there.
    const NAMESPACES: [i32; 7] = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let clone = NAMESPACES.into_iter().map(|flag| rule([bits(0, flag)?])).collect::<Result<_, _>>()?;
    // Query, none, and ADDR_NO_RANDOMIZE, which debuggers set.
    let personality = rule([differs(0, 0)?, differs(0, 0xffff_ffff)?, differs(0, 0x0004_0000)?])?;
    Ok(Rules::from([(libc::SYS_clone, clone), (libc::SYS_personality, vec![personality])]))
}

/// Typing into a terminal from outside it. The kernel looks at 32 bits of the request (CVE-2019-10063).
fn terminals() -> Result<Rules, FilterError> {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    const TIOCCONS: u32 = 0x541d;
    let requests = [TIOCSTI, TIOCLINUX, TIOCCONS].map(|request| rule([equals(1, request)?]));
    Ok(Rules::from([(libc::SYS_ioctl, requests.into_iter().collect::<Result<_, _>>()?)]))
}

/// Files that would run as their owner for whoever finds them outside the sandbox.
fn set_id_bits() -> Result<Rules, FilterError> {
    let mode = |argument| -> Result<Vec<SeccompRule>, FilterError> {
        Ok(vec![rule([bits(argument, 0o4000)?])?, rule([bits(argument, 0o2000)?])?])
    };
    // The mode counts only where open makes a file: O_CREAT, or the bit that is O_TMPFILE's own.
    let opening = |flags, argument| -> Result<Vec<SeccompRule>, FilterError> {
        let mut rules = Vec::new();
        for makes in [libc::O_CREAT, 0o20_000_000] {
            for bit in [0o4000, 0o2000] {
                rules.push(rule([bits(flags, makes)?, bits(argument, bit)?])?);
            }
        }
        Ok(rules)
    };
    const FCHMODAT2: c_long = 452;
    let mut rules = Rules::from([
        (libc::SYS_fchmod, mode(1)?),
        (libc::SYS_fchmodat, mode(2)?),
        (FCHMODAT2, mode(2)?),
        (libc::SYS_mknodat, mode(2)?),
        (libc::SYS_openat, opening(2, 3)?),
    ]);
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        (libc::SYS_chmod, mode(1)?),
        (libc::SYS_creat, mode(1)?),
        (libc::SYS_mknod, mode(1)?),
        (libc::SYS_open, opening(1, 2)?),
    ]);
    Ok(rules)
}

/// Calls that change another process of the same user by its number: only 0, oneself, is let through.
fn other_processes() -> Result<Rules, FilterError> {
    let first = || -> Result<Vec<SeccompRule>, FilterError> { Ok(vec![rule([differs(0, 0)?])?]) };
    let second = || -> Result<Vec<SeccompRule>, FilterError> { Ok(vec![rule([differs(1, 0)?])?]) };
    Ok(Rules::from([
        (libc::SYS_prlimit64, first()?),
        (libc::SYS_sched_setaffinity, first()?),
        (libc::SYS_sched_setscheduler, first()?),
        (libc::SYS_sched_setparam, first()?),
        (libc::SYS_sched_setattr, first()?),
        (libc::SYS_setpriority, second()?),
        (libc::SYS_ioprio_set, second()?),
    ]))
}

/// Socket families are an allow list; so are types and protocols within them.
fn sockets(openings: Openings) -> Result<Rules, FilterError> {
    let mut families = Vec::new();
    if openings.internet {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if openings.unix_sockets {
        families.push(libc::AF_UNIX);
    }
    let mut socket = Vec::new();
    if families.is_empty() {
        return Ok(Rules::from([(libc::SYS_socket, socket), (libc::SYS_socketpair, socket_pairs()?)]));
    }
    let others = families.iter().map(|family| differs(0, family.unsigned_abs())).collect::<Result<Vec<_>, _>>()?;
    socket.push(rule(others)?);
    if openings.internet {
        // Of netlink only the routing tables, which getaddrinfo and `ip addr` ask.
        socket.push(rule([equals(0, libc::AF_NETLINK.unsigned_abs())?, differs(2, 0)?])?);
        // No raw sockets, no protocol but the default, TCP and UDP (6, 17): MPTCP and SCTP go past Landlock.
        for family in [libc::AF_INET, libc::AF_INET6] {
            let family = family.unsigned_abs();
            socket.push(rule([equals(0, family)?, masked(1, 0xf, libc::SOCK_RAW.unsigned_abs())?])?);
            socket.push(rule([equals(0, family)?, differs(2, 0)?, differs(2, 6)?, differs(2, 17)?])?);
        }
    }
    Ok(Rules::from([(libc::SYS_socket, socket), (libc::SYS_socketpair, socket_pairs()?)]))
}

/// Unix stream pairs alone: a datagram pair can be connected again, to a socket outside.
fn socket_pairs() -> Result<Vec<SeccompRule>, FilterError> {
    Ok(vec![
        rule([differs(0, libc::AF_UNIX.unsigned_abs())?])?,
        rule([masked(1, 0xf, libc::SOCK_DGRAM.unsigned_abs())?])?,
        rule([masked(1, 0xf, libc::SOCK_RAW.unsigned_abs())?])?,
    ])
}

fn all(numbers: &[c_long]) -> Rules {
    numbers.iter().map(|number| (*number, Vec::new())).collect()
}

fn rule(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, FilterError> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u32) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())?)
}

fn equals(argument: u8, value: u32) -> Result<SeccompCondition, FilterError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u32) -> Result<SeccompCondition, FilterError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u32, value: u32) -> Result<SeccompCondition, FilterError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask.into()), value)
}

fn bits(argument: u8, bits: i32) -> Result<SeccompCondition, FilterError> {
    masked(argument, bits.cast_unsigned(), bits.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_compiles_to_programs_of_the_length_it_says() {
        for n in 0..8 {
            let openings = Openings { internet: n & 1 != 0, unix_sockets: n & 2 != 0, trace: n & 4 != 0 };
            let filters = Filters::get(openings).unwrap();
            let total: usize = filters.lengths.iter().map(|l| usize::from(*l)).sum();
            assert_eq!(filters.lengths.len(), 4, "{openings:?}");
            assert_eq!(total * size_of::<sock_filter>(), filters.bytes.len(), "{openings:?}");
            assert!(
                filters.lengths.iter().all(|l| *l < 4096),
                "{openings:?}: the kernel takes 4096 instructions at most"
            );
        }
    }
}
