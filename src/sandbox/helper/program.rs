//! The program's own part, between fork and exec.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use landlock::RulesetCreated;
use nix::errno::Errno;

use super::{Failure, layers, report, step};
use crate::sandbox::cgroup::Group;
use crate::sandbox::wire::{Job, Limits};

/// Argument and environment vectors, made before the fork.
pub struct Image {
    /// The places to look for the program, in order.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    pub fn of(job: &Job) -> Result<Self, Failure> {
        let strings = |texts: &[String]| -> Result<Vec<CString>, Failure> {
            texts
                .iter()
                .map(|t| CString::new(t.as_str()).map_err(|_| Failure::new("arguments with a NUL", Errno::EINVAL)))
                .collect()
        };
        let program = job.arguments.first().ok_or(Failure::new("no program named", Errno::EINVAL))?;
        let candidates = if program.contains('/') {
            vec![program.clone()]
        } else {
            let path = job.environment.iter().find_map(|v| v.strip_prefix("PATH=")).unwrap_or("/usr/bin:/bin");
            path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| format!("{dir}/{program}")).collect()
        };
        Ok(Image {
            candidates: strings(&candidates)?,
            arguments: strings(&job.arguments)?,
            environment: strings(&job.environment)?,
        })
    }

    /// Becomes the program. Returns only on failure, with the step `exec`.
    fn exec(&self) -> Failure {
        let vector = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
        };
        let (arguments, environment) = (vector(&self.arguments), vector(&self.environment));
        let mut reason = Errno::ENOENT;
        for candidate in &self.candidates {
            // SAFETY: path and both null-terminated vectors point to strings that `self` owns.
            unsafe { libc::execve(candidate.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
            match Errno::last() {
                Errno::ENOENT | Errno::ENOTDIR => {}
                // Somewhere else on the search path there may be one that can be run.
                Errno::EACCES => reason = Errno::EACCES,
                errno => return Failure::new("exec", errno),
            }
        }
        Failure::new("exec", reason)
    }
}

/// What the program's own process needs, from its beginning to execve(2).
pub struct Start<'a> {
    pub job: &'a Job,
    pub own_namespace: bool,
    pub inner: Option<RulesetCreated>,
    pub cwd: OwnedFd,
    pub image: &'a Image,
    pub supervisor: libc::pid_t,
    pub control: &'a OwnedFd,
    pub group: &'a mut Group,
}

/// Room for what runs before execve(2), which calls nothing deep.
const STACK: usize = 256 << 10;

impl Start<'_> {
    /// Starts the program's process and waits until it is the program, or has reported why not. Until then it shares this
    /// process's memory, as with vfork(2): copying page tables costs a third of a millisecond.
    pub fn program(&mut self) -> Result<libc::pid_t, Failure> {
        let mut stack = vec![0u128; STACK / size_of::<u128>()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack is aligned and grows down from its end; it and `self` outlive the child's use of them, because
        // this process stands still until the child executes or exits. Descriptors and signal handlers are the child's own.
        let child = unsafe {
            let end = stack.as_mut_ptr_range().end;
            libc::clone(run, end.cast(), flags, std::ptr::from_mut(self).cast())
        };
        step("start the program's process", child)
    }

    /// Finishes the confinement and becomes the program. Returns only on failure.
    fn become_program(&mut self) -> Failure {
        match self.prepare() {
            Ok(()) => self.image.exec(),
            Err(failure) => failure,
        }
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        layers::restrict(self.inner.take(), "landlock inner layer")?;
        // SAFETY: these calls take numbers alone.
        unsafe {
            step("setsid", libc::setsid())?;
            step("set the death signal", libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The supervisor may have died before the death signal was set.
            if libc::getppid() != self.supervisor {
                return Err(Failure::new("supervisor is gone", Errno::ESRCH));
            }
            if self.job.terminal {
                step("take the terminal", libc::ioctl(0, libc::TIOCSCTTY, 0))?;
            }
        }
        enter(&self.cwd)?;
        self.group.enter();
        // Where processes are counted for this sandbox alone, the number is the profile's.
        let others = if self.own_namespace { 0 } else { running() };
        limit(&self.job.limits, others)?;
        default_signals()
    }
}

/// The child's part.
extern "C" fn run(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the parent passed its `Start`, and does not touch it before this process is gone from its memory.
    let start = unsafe { &mut *start.cast::<Start<'_>>() };
    let failure = start.become_program();
    report(start.control, &failure.into());
    // SAFETY: ends the process; nothing of the supervisor's is to be run here.
    unsafe { libc::_exit(125) }
}

fn enter(cwd: &OwnedFd) -> Result<(), Failure> {
    // SAFETY: the descriptor is open.
    step("enter the working directory", unsafe { libc::fchdir(cwd.as_raw_fd()) }).map(drop)
}

/// Hard limits equal the soft ones: nothing inside can raise them. A limit that is lower already stays.
fn limit(limits: &Limits, others: u64) -> Result<(), Failure> {
    let wanted = [
        // Nothing of a sandbox goes before the machine's own work.
        ("rtprio", libc::RLIMIT_RTPRIO, Some(0)),
        ("nice", libc::RLIMIT_NICE, Some(0)),
        ("cpu", libc::RLIMIT_CPU, limits.cpu_seconds),
        ("fsize", libc::RLIMIT_FSIZE, Some(limits.file_bytes)),
        ("nofile", libc::RLIMIT_NOFILE, Some(limits.open_files)),
        ("nproc", libc::RLIMIT_NPROC, Some(others.saturating_add(limits.processes))),
        ("memlock", libc::RLIMIT_MEMLOCK, Some(64 << 20)),
        ("msgqueue", libc::RLIMIT_MSGQUEUE, Some(0)),
    ];
    for (name, resource, value) in wanted {
        let Some(value) = value else { continue };
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure outlives both calls.
        unsafe {
            step("read a limit", libc::getrlimit(resource, &raw mut now))?;
            let value = value.min(now.rlim_max);
            let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
            if libc::setrlimit(resource, &raw const limit) < 0 {
                return Err(Failure::last(format!("limit {name}")));
            }
        }
    }
    Ok(())
}

/// How many processes the machine runs: an upper bound of what this user runs, in one call.
fn running() -> u64 {
    // SAFETY: all-zero is a valid sysinfo, which outlives the call.
    unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&raw mut info);
        u64::from(info.procs)
    }
}

/// Every signal as a program expects it, none blocked: the supervisor ignores none but SIGPIPE, and execve(2) keeps what is
/// ignored alone.
fn default_signals() -> Result<(), Failure> {
    // SAFETY: an empty set is made before it is used.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        step("unblock signals", libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut())).map(drop)
    }
}
