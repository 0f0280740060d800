//! The system call filter, compiled once in the gateway.
//!
//! One program with a binary search over the call's number. The kernel walks a filter for every number when it is
//! installed, so a chain of comparisons, which is what a general compiler makes of a list, costs most of a millisecond
//! each time a program starts; this costs next to nothing, then and on every call.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use libc::{c_long, sock_filter};

/// What a profile opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Openings {
    pub internet: bool,
    pub unix_sockets: bool,
    pub trace: bool,
    /// Processes, network and interprocess communication are the sandbox's own, and nothing outside it has a name inside.
    pub private: bool,
}

/// The filter for these openings, as the kernel takes it: 8 bytes an instruction. Compiled once for each combination.
pub fn filter(openings: Openings) -> &'static [u8] {
    static COMPILED: [OnceLock<Vec<u8>>; 16] = [const { OnceLock::new() }; 16];
    let index = [openings.internet, openings.unix_sockets, openings.trace, openings.private]
        .iter()
        .fold(0, |index, open| index << 1 | usize::from(*open));
    // Four bits cannot be out of range; an empty program would be refused by the kernel.
    COMPILED.get(index).map_or(&[], |slot| slot.get_or_init(|| encode(&compile(&answers(openings)))))
}

/// The errno that a call is answered with.
type Answer = i32;

/// When a call is answered without being made: by the first of these that holds. 0 is the answer of one that was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule(Vec<Case>);

/// Holds where all conditions do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    answer: Answer,
    conditions: Vec<Condition>,
}

/// A condition on 32 bits of an argument: the lower ones, which is all that the kernel looks at where we compare, but for
/// pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    argument: u8,
    upper: bool,
    mask: u32,
    value: u32,
    /// Holds where masked argument and value are the same, or else where they differ.
    same: bool,
}

type Rules = BTreeMap<u32, Rule>;

/// The last system call that these rules were written for (mseal(2), Linux 6.10). The numbers after it, and the x32
/// numbers on x86, which begin at 0x4000_0000, do not exist.
const LAST_KNOWN: u32 = 462;

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

fn answers(openings: Openings) -> Rules {
    let mut rules = absent();
    if openings.private {
        // Space that is taken without writing is not seen by who counts what is written; programs write instead.
        rules.extend(all(libc::EOPNOTSUPP, &[libc::SYS_fallocate]));
    } else {
        rules.extend(attributes());
    }
    rules.extend(refused(openings));
    rules
}

/// The program: another architecture kills, what is unknown does not exist, then the rules.
fn compile(rules: &Rules) -> Vec<sock_filter> {
    const ARCHITECTURE: u32 = 4;
    const NUMBER: u32 = 0;
    let mut program = vec![
        load(ARCHITECTURE),
        jump(libc::BPF_JEQ, AUDIT_ARCH, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(libc::BPF_JGT, LAST_KNOWN, 0, 1),
        answer(errno(libc::ENOSYS)),
    ];
    program.extend(search(&spans(rules)));
    program
}

/// From a first number on, up to the next span, calls are treated alike; `None` is allowed.
type Span<'a> = (u32, Option<&'a Rule>);

fn spans(rules: &Rules) -> Vec<Span<'_>> {
    let mut spans: Vec<Span<'_>> = vec![(0, None)];
    for (number, rule) in rules {
        // What follows the last rule begins with this number, unless this rule says otherwise.
        if spans.last().is_some_and(|(start, _)| start == number) {
            spans.pop();
        }
        if spans.last().is_none_or(|(_, last)| *last != Some(rule)) {
            spans.push((*number, Some(rule)));
        }
        spans.push((number + 1, None));
    }
    // Neighbours that are treated alike are one span.
    spans.dedup_by(|next, before| next.1 == before.1);
    spans
}

fn search(spans: &[Span<'_>]) -> Vec<sock_filter> {
    let (left, right) = spans.split_at(spans.len() / 2);
    let (true, Some((first, _))) = (!left.is_empty(), right.first()) else {
        return spans.first().and_then(|(_, rule)| *rule).map_or_else(|| vec![answer(libc::SECCOMP_RET_ALLOW)], check);
    };
    let left = search(left);
    let mut program = match u8::try_from(left.len()) {
        Ok(near) => vec![jump(libc::BPF_JGE, *first, near, 0)],
        // Too far for a conditional jump.
        Err(_) => vec![jump(libc::BPF_JGE, *first, 0, 1), always(left.len())],
    };
    program.extend(left);
    program.extend(search(right));
    program
}

/// Answers one call by its arguments.
fn check(rule: &Rule) -> Vec<sock_filter> {
    let mut program = Vec::new();
    for case in &rule.0 {
        let mut body = vec![answer(errno(case.answer))];
        for condition in case.conditions.iter().rev() {
            let over = u8::try_from(body.len()).unwrap_or(u8::MAX);
            let (holds, fails) = if condition.same { (0, over) } else { (over, 0) };
            let half = if condition.upper { 4 } else { 0 };
            let mut test = vec![load(16 + 8 * u32::from(condition.argument) + half)];
            if condition.mask != u32::MAX {
                test.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, condition.mask));
            }
            test.push(jump(libc::BPF_JEQ, condition.value, holds, fails));
            test.extend(body);
            body = test;
        }
        program.extend(body);
        if case.conditions.is_empty() {
            return program;
        }
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

/// Loads a 32-bit word of `seccomp_data`: number, architecture, instruction pointer, six arguments of 64 bits, whose
/// lower half comes first on the little-endian machines that we build for.
fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

fn jump(comparison: u32, value: u32, holds: u8, fails: u8) -> sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, holds, fails, value)
}

fn always(over: usize) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, u32::try_from(over).unwrap_or(u32::MAX))
}

fn answer(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

fn errno(errno: Answer) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    // Codes are below 256.
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k }
}

fn encode(program: &[sock_filter]) -> Vec<u8> {
    let bytes = |i: &sock_filter| {
        let ([a, b], [w, x, y, z]) = (i.code.to_ne_bytes(), i.k.to_ne_bytes());
        [a, b, i.jt, i.jf, w, x, y, z]
    };
    program.iter().flat_map(bytes).collect()
}

/// What is said not to exist. clone3(2) hides its flags behind a pointer, and libc falls back to clone(2) on `ENOSYS`
/// alone; openat2(2) hides a mode that may carry a set-user-ID bit; io_uring runs calls past the filters; the mount calls
/// and their like have no use here.
fn absent() -> Rules {
    /// No libc constant yet: statmount, listmount, lsm_get_self_attr, lsm_set_self_attr, lsm_list_modules.
    const NEWER: [c_long; 5] = [457, 458, 459, 460, 461];
    let mut rules = all(
        libc::ENOSYS,
        &[
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
        ],
    );
    rules.extend(all(libc::ENOSYS, &NEWER));
    rules
}

/// Setting extended attributes: they are metadata, which Landlock does not see. Reading them is harmless.
fn attributes() -> Rules {
    all(
        libc::EOPNOTSUPP,
        &[
            libc::SYS_setxattr,
            libc::SYS_lsetxattr,
            libc::SYS_fsetxattr,
            libc::SYS_removexattr,
            libc::SYS_lremovexattr,
            libc::SYS_fremovexattr,
        ],
    )
}

/// What no profile opens.
const REFUSED: &[c_long] = &[
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
    // Keys, which belong to the user, not to the sandbox.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Other processes.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_vmsplice,
];

/// Interprocess communication by names that the whole machine shares.
const SHARED: &[c_long] = &[
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
];

fn refused(openings: Openings) -> Rules {
    let mut rules = all(libc::EPERM, REFUSED);
    if !openings.private {
        rules.extend(all(libc::EPERM, SHARED));
        rules.extend(other_processes());
    }
    if openings.private {
        rules.extend(first_process());
    }
    for (call, case) in core_limit() {
        // After what is said of other processes by the same call.
        rules.entry(number(call)).or_default().0.push(case);
    }
    rules.extend(old_calls());
    if !openings.trace {
        rules.extend(all(libc::EPERM, &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev]));
    }
    rules.extend(namespaces_and_personality());
    rules.extend(terminals());
    rules.extend(set_id_bits());
    rules.extend(sockets(openings));
    rules
}

#[cfg(target_arch = "x86_64")]
fn old_calls() -> Rules {
    all(
        libc::EPERM,
        &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_ustat, libc::SYS_sysfs, libc::SYS_uselib],
    )
}

#[cfg(not(target_arch = "x86_64"))]
fn old_calls() -> Rules {
    Rules::new()
}

fn namespaces_and_personality() -> Rules {
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
    // Query, none, and ADDR_NO_RANDOMIZE, which debuggers set.
    let personality = [[0, 0xffff_ffff, 0x0004_0000].map(|value| differs(0, value)).to_vec()];
    Rules::from([
        refuse(libc::SYS_clone, NAMESPACES.map(|flag| vec![has(0, flag)])),
        refuse(libc::SYS_personality, personality),
    ])
}

/// Typing into a terminal from outside it. The kernel looks at 32 bits of the request (CVE-2019-10063).
fn terminals() -> Rules {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    const TIOCCONS: u32 = 0x541d;
    Rules::from([refuse(libc::SYS_ioctl, [TIOCSTI, TIOCLINUX, TIOCCONS].map(|request| vec![equals(1, request)]))])
}

/// Files that would run as their owner for whoever finds them outside the sandbox.
fn set_id_bits() -> Rules {
    const FCHMODAT2: c_long = 452;
    const BITS: [i32; 2] = [0o4000, 0o2000];
    let mode = |argument| BITS.map(|bit| vec![has(argument, bit)]);
    // The mode counts only where open makes a file: O_CREAT, or the bit that is O_TMPFILE's own.
    let opening = |flags, argument| {
        [libc::O_CREAT, 0o20_000_000]
            .into_iter()
            .flat_map(move |makes| BITS.map(|bit| vec![has(flags, makes), has(argument, bit)]))
    };
    let mut rules = Rules::from([
        refuse(libc::SYS_fchmod, mode(1)),
        refuse(libc::SYS_fchmodat, mode(2)),
        refuse(FCHMODAT2, mode(2)),
        refuse(libc::SYS_mknodat, mode(2)),
        refuse(libc::SYS_openat, opening(2, 3)),
    ]);
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        refuse(libc::SYS_chmod, mode(1)),
        refuse(libc::SYS_creat, mode(1)),
        refuse(libc::SYS_mknod, mode(1)),
        refuse(libc::SYS_open, opening(1, 2)),
    ]);
    rules
}

/// Calls that change a process by its number.
const BY_NUMBER: [c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];
/// Those that say first what kind of number it is, and the kind that means all processes of a user.
const BY_KIND: [(c_long, u32); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Calls that change another process of the same user: only 0, oneself, is let through.
fn other_processes() -> Rules {
    by_process(|argument| differs(argument, 0))
}

/// Calls that slow the first process of the sandbox down, which watches over the others and is the same user.
fn first_process() -> Rules {
    by_process(|argument| equals(argument, 1))
}

fn by_process(which: impl Fn(u8) -> Condition) -> Rules {
    let numbers = BY_NUMBER.map(|call| refuse(call, [vec![which(0)]]));
    let kinds = BY_KIND.map(|(call, user)| refuse(call, [vec![which(1)], vec![equals(0, user)]]));
    numbers.into_iter().chain(kinds).collect()
}

/// The limit of core dumps stays as it is, and who lowers it is told that it worked: 0 would let the machine's handler have
/// them (core(5), `core_pattern` with a pipe), which is a program of root's, outside.
fn core_limit() -> [(c_long, Case); 3] {
    let resource = |argument| equals(argument, libc::RLIMIT_CORE);
    let case = |conditions| Case { answer: 0, conditions };
    // A null pointer only asks, and one of which either half is not null is none.
    let [lower, upper] = [false, true].map(|upper| Condition { upper, ..differs(2, 0) });
    [
        (libc::SYS_setrlimit, case(vec![resource(0)])),
        (libc::SYS_prlimit64, case(vec![resource(1), lower])),
        (libc::SYS_prlimit64, case(vec![resource(1), upper])),
    ]
}

/// Socket families are an allow list; so are types and protocols within them.
fn sockets(openings: Openings) -> Rules {
    const TYPE: u32 = 0xf;
    let (internet, unix) = (openings.internet || openings.private, openings.unix_sockets || openings.private);
    let mut families = Vec::new();
    if internet {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if unix {
        families.push(libc::AF_UNIX);
    }
    // Without a family this is the empty list of conditions, which always holds.
    let mut socket = vec![families.iter().map(|family| differs(0, family.unsigned_abs())).collect()];
    if internet {
        // Of netlink only the routing tables, which getaddrinfo and `ip addr` ask.
        socket.push(vec![equals(0, libc::AF_NETLINK.unsigned_abs()), differs(2, 0)]);
        // No raw sockets, no protocol but the default, TCP and UDP (6, 17): MPTCP and SCTP go past Landlock.
        for family in [libc::AF_INET, libc::AF_INET6].map(i32::unsigned_abs) {
            socket.push(vec![equals(0, family), masked(1, TYPE, libc::SOCK_RAW.unsigned_abs())]);
            socket.push(vec![equals(0, family), differs(2, 0), differs(2, 6), differs(2, 17)]);
        }
    }
    let mut pair = vec![vec![differs(0, libc::AF_UNIX.unsigned_abs())]];
    if !openings.private {
        // Unix stream pairs alone: a datagram pair can be connected again, to a socket outside.
        pair.push(vec![masked(1, TYPE, libc::SOCK_DGRAM.unsigned_abs())]);
        pair.push(vec![masked(1, TYPE, libc::SOCK_RAW.unsigned_abs())]);
    }
    Rules::from([refuse(libc::SYS_socket, socket), refuse(libc::SYS_socketpair, pair)])
}

fn all(answer: Answer, calls: &[c_long]) -> Rules {
    calls.iter().map(|call| (number(*call), Rule(vec![Case { answer, conditions: Vec::new() }]))).collect()
}

/// A call that is refused (`EPERM`) when all conditions of one list hold.
fn refuse(call: c_long, when: impl IntoIterator<Item = Vec<Condition>>) -> (u32, Rule) {
    let case = |conditions| Case { answer: libc::EPERM, conditions };
    (number(call), Rule(when.into_iter().map(case).collect()))
}

fn number(call: c_long) -> u32 {
    // System calls' numbers are small and positive; no call has this one.
    u32::try_from(call).unwrap_or(LAST_KNOWN)
}

fn equals(argument: u8, value: u32) -> Condition {
    masked(argument, u32::MAX, value)
}

fn differs(argument: u8, value: u32) -> Condition {
    Condition { argument, upper: false, mask: u32::MAX, value, same: false }
}

fn masked(argument: u8, mask: u32, value: u32) -> Condition {
    Condition { argument, upper: false, mask, value, same: true }
}

/// All bits are set.
fn has(argument: u8, bits: i32) -> Condition {
    masked(argument, bits.cast_unsigned(), bits.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would; answers the action.
    fn run(program: &[sock_filter], number: u32, architecture: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut word) = (0, 0u32);
        loop {
            let i = &program[at];
            let (jt, jf) = (usize::from(i.jt), usize::from(i.jf));
            at += 1;
            match u32::from(i.code) {
                0x20 => {
                    word = match i.k {
                        0 => number,
                        4 => architecture,
                        k if k % 8 == 4 => u32::try_from(arguments[(k as usize - 16) / 8] >> 32).unwrap(),
                        k => u32::try_from(arguments[(k as usize - 16) / 8] & 0xffff_ffff).unwrap(),
                    }
                }
                0x54 => word &= i.k,
                0x05 => at += i.k as usize,
                0x15 => at += if word == i.k { jt } else { jf },
                0x25 => at += if word > i.k { jt } else { jf },
                0x35 => at += if word >= i.k { jt } else { jf },
                0x06 => return i.k,
                other => panic!("instruction {other:#x} at {at}"),
            }
        }
    }

    /// What the rules say, without a program.
    fn expected(rules: &Rules, number: u32, arguments: [u64; 6]) -> u32 {
        let Some(rule) = rules.get(&number) else {
            return if number > LAST_KNOWN { errno(libc::ENOSYS) } else { libc::SECCOMP_RET_ALLOW };
        };
        let holds = |c: &Condition| {
            let whole = arguments[usize::from(c.argument)];
            let word = (if c.upper { whole >> 32 } else { whole & 0xffff_ffff }) as u32;
            (word & c.mask == c.value) == c.same
        };
        let case = rule.0.iter().find(|case| case.conditions.iter().all(holds));
        case.map_or(libc::SECCOMP_RET_ALLOW, |case| errno(case.answer))
    }

    fn combinations() -> impl Iterator<Item = Openings> {
        (0..16).map(|n| Openings {
            internet: n & 1 != 0,
            unix_sockets: n & 2 != 0,
            trace: n & 4 != 0,
            private: n & 8 != 0,
        })
    }

    #[test]
    fn the_program_says_what_the_rules_say() {
        let words = [
            0,
            1,
            2,
            3,
            6,
            10,
            16,
            17,
            0x41,
            0x5412,
            0o755,
            0o4755,
            0o2755,
            0o20_000_100,
            0x1000_0000,
            0xffff_ffff,
            1 << 32 | 0x5412,
        ];
        for openings in combinations() {
            let rules = answers(openings);
            let program = compile(&rules);
            for number in (0..600).chain([0x4000_0000, 0x4000_0029, u32::MAX]) {
                let tried = if rules.get(&number).is_some_and(|rule| !rule.0[0].conditions.is_empty()) {
                    &words[..]
                } else {
                    &words[..1]
                };
                for a in tried {
                    for b in tried {
                        for c in tried {
                            for arguments in [[*a, *b, *c, 0o4755, 0, 0], [*a, *b, *c, 0o644, 0, 0]] {
                                let is = run(&program, number, AUDIT_ARCH, arguments);
                                let should = expected(&rules, number, arguments);
                                assert_eq!(is, should, "{openings:?}: call {number} with {arguments:x?}");
                            }
                        }
                    }
                }
            }
            assert_eq!(run(&program, 0, 0x4000_0003, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS, "another architecture");
            assert!(program.len() < 1000, "{} instructions: the kernel takes 4096, and time for each", program.len());
        }
    }

    #[test]
    fn what_the_machine_shares_is_refused_where_nothing_is_private() {
        for openings in combinations() {
            let program = compile(&answers(openings));
            for (call, arguments, errno) in [
                (libc::SYS_prlimit64, [77, 0, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_setpriority, [0, 77, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_setxattr, [0; 6], libc::EOPNOTSUPP),
                (libc::SYS_shmget, [0; 6], libc::EPERM),
                (libc::SYS_mq_open, [0; 6], libc::EPERM),
                (libc::SYS_socketpair, [1, 2, 0, 0, 0, 0], libc::EPERM),
            ] {
                let is = run(&program, number(call), AUDIT_ARCH, arguments);
                let should = if openings.private { libc::SECCOMP_RET_ALLOW } else { super::errno(errno) };
                assert_eq!(is, should, "{openings:?}: call {call} with {arguments:x?}");
            }
        }
    }

    #[test]
    fn what_matters_is_refused_whatever_is_open() {
        for openings in combinations() {
            let program = compile(&answers(openings));
            for (call, arguments, errno) in [
                (libc::SYS_mount, [0; 6], libc::EPERM),
                (libc::SYS_bpf, [0; 6], libc::EPERM),
                (libc::SYS_keyctl, [0; 6], libc::EPERM),
                (libc::SYS_clone3, [0; 6], libc::ENOSYS),
                (libc::SYS_io_uring_setup, [0; 6], libc::ENOSYS),
                (libc::SYS_ioctl, [0, 1 << 32 | 0x5412, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_clone, [0x1000_0011, 0, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_socket, [40, 1, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_socketpair, [2, 1, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_socket, [2, 3, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_socket, [2, 1, 262, 0, 0, 0], libc::EPERM),
                (libc::SYS_socket, [16, 3, 9, 0, 0, 0], libc::EPERM),
                (libc::SYS_fchmodat, [0, 0, 0o4755, 0, 0, 0], libc::EPERM),
                (libc::SYS_setrlimit, [4, 0x1000, 0, 0, 0, 0], 0),
                (libc::SYS_prlimit64, [0, 4, 0x1000, 0, 0, 0], 0),
                (libc::SYS_prlimit64, [0, 4, 1 << 32, 0, 0, 0], 0),
                (libc::SYS_sched_setscheduler, [1, 0, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_sched_setaffinity, [1, 0, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_setpriority, [1, 1, 19, 0, 0, 0], libc::EPERM),
                (libc::SYS_setpriority, [2, 0, 19, 0, 0, 0], libc::EPERM),
                (libc::SYS_ioprio_set, [3, 0, 0, 0, 0, 0], libc::EPERM),
                (libc::SYS_ioprio_set, [1, 1, 0, 0, 0, 0], libc::EPERM),
            ] {
                let is = run(&program, number(call), AUDIT_ARCH, arguments);
                assert_eq!(is, super::errno(errno), "{openings:?}: call {call} with {arguments:x?}");
            }
            for (call, arguments) in [
                (libc::SYS_read, [0; 6]),
                (libc::SYS_clone, [0x11, 0, 0, 0, 0, 0]),
                (libc::SYS_socketpair, [1, 0x8_0001, 0, 0, 0, 0]),
                (libc::SYS_ioctl, [0, 0x5401, 0, 0, 0, 0]),
                (libc::SYS_landlock_restrict_self, [0; 6]),
                (libc::SYS_prlimit64, [0, 4, 0, 0x1000, 0, 0]),
                (libc::SYS_prlimit64, [0, 7, 0x1000, 0, 0, 0]),
                (libc::SYS_sched_setaffinity, [0; 6]),
                (libc::SYS_setpriority, [0, 0, 5, 0, 0, 0]),
            ] {
                let is = run(&program, number(call), AUDIT_ARCH, arguments);
                assert_eq!(is, libc::SECCOMP_RET_ALLOW, "{openings:?}: call {call} with {arguments:x?}");
            }
        }
    }
}
