//! The program's own part, between fork and exec.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;

use super::confine::Ready;
use super::{Failure, layers, step};
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

/// Finishes the confinement and becomes the program. Returns only on failure.
pub fn become_program(job: &Job, own_namespace: bool, ready: Ready, image: &Image, supervisor: libc::pid_t) -> Failure {
    match prepare(job, own_namespace, ready, supervisor) {
        Ok(()) => image.exec(),
        Err(failure) => failure,
    }
}

fn prepare(job: &Job, own_namespace: bool, ready: Ready, supervisor: libc::pid_t) -> Result<(), Failure> {
    layers::restrict(ready.inner, "landlock inner layer")?;
    // SAFETY: these calls take numbers alone.
    unsafe {
        step("setsid", libc::setsid())?;
        step("set the death signal", libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // The supervisor may have died before the death signal was set.
        if libc::getppid() != supervisor {
            return Err(Failure::new("supervisor is gone", Errno::ESRCH));
        }
    }
    enter(&ready.cwd)?;
    // Where processes are counted for this sandbox alone, the number is the profile's.
    let others = if own_namespace { 0 } else { running() };
    limit(&job.limits, others)?;
    default_signals()
}

fn enter(cwd: &OwnedFd) -> Result<(), Failure> {
    // SAFETY: the descriptor is open.
    step("enter the working directory", unsafe { libc::fchdir(cwd.as_raw_fd()) }).map(drop)
}

/// Hard limits equal the soft ones: nothing inside can raise them. A limit that is lower already stays.
fn limit(limits: &Limits, others: u64) -> Result<(), Failure> {
    let wanted = [
        ("core", libc::RLIMIT_CORE, Some(0)),
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

/// Every signal as a program expects it, none blocked. Rust ignores SIGPIPE, and execve(2) keeps that.
fn default_signals() -> Result<(), Failure> {
    // SAFETY: an empty set is made before it is used; signals that cannot be changed refuse, which is as well.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        step("unblock signals", libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut())).map(drop)
    }
}
