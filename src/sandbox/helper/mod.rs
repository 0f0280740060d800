//! The helper: this executable again, in a process of its own that has one thread, no environment and none of the
//! gateway's memory.
//!
//! It gets a template, forks *supervisors*, each of which prepares what the template says before there is a call, takes
//! one job from a socket (descriptor 0), confines itself step by step, forks the program, waits, and ends whatever the
//! program leaves behind. Starting from a small waiting process instead of executing the gateway's binary for each call
//! saves most of the cost. When the socket closes, because the gateway is gone, the helper exits.
//!
//! ```text
//! gateway ──job──► helper ──fork──► supervisor ──fork──► program
//!    ◄───────────── report ─────────────┘ Landlock layer 1    └ layer 2: cannot signal or trace the supervisor
//! ```
//!
//! In the full tiers a process between helper and supervisor makes the namespaces, and the supervisor is the first
//! process in them: what is in there ends with it, and nothing in there can signal it.

mod confine;
mod layers;
mod memory_files;
mod monitor;
mod mounts;
mod namespaces;
mod privileges;
mod program;
mod protect;
mod root;
mod stage;
mod supervise;
mod wards;

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;

use self::stage::Stage;
use super::cgroup::Places;
use super::wire::{Job, REPORT_MAX, Report, Template};

/// The first argument that turns this executable into the helper.
pub const HELPER_ARGUMENT: &str = "__sandbox";

/// The home directory of programs in the full tiers.
pub(super) const PRIVATE_HOME: &str = "/home/agent";

/// The step that fails where a supervisor does not find the workspace in the file systems that it knows.
pub(super) const WORKSPACE_MOVED: &str = "find the workspace";

/// The step that fails where a protected path is not where it was found.
pub(super) const WARD_MOVED: &str = "find a protected path again";

/// The most descriptors that come with a job.
pub(super) const MAX_DESCRIPTORS: usize = 8;

/// Runs the helper until the gateway closes its socket. Call it first thing in `main` when the first argument is
/// [`HELPER_ARGUMENT`], before any thread is started.
pub fn helper_main() -> std::process::ExitCode {
    match wait_for_jobs() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(errno) => {
            eprintln!("portcullis: sandbox helper: {}", errno.desc());
            std::process::ExitCode::from(70)
        }
    }
}

/// Keeps one supervisor waiting for the next job, so that no job waits for a fork.
fn wait_for_jobs() -> Result<(), Errno> {
    prepare()?;
    let Some((template, filter)) = receive_template()? else { return Ok(()) };
    let groups = if template.tier.is_full() { Places::find() } else { Places::default() };
    groups.sweep();
    loop {
        let (taken, take) = io::pipe().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
        // SAFETY: this process has one thread, so the child may do whatever it likes.
        match unsafe { libc::fork() } {
            0 => {
                drop(taken);
                take_one_job(&template, &filter, &groups, take)
            }
            // Too many processes for now: the next job waits in the socket.
            -1 => std::thread::sleep(Duration::from_millis(10)),
            _supervisor => {
                drop(take);
                if !has_taken(taken) {
                    return Ok(());
                }
            }
        }
    }
}

/// The first message is the template; `None` when the connection was closed before it came.
fn receive_template() -> Result<Option<(Template, Vec<u8>)>, Errno> {
    let Some(mut descriptors) = receive(0)? else { return Ok(None) };
    let file = descriptors.pop().ok_or(Errno::EBADMSG)?;
    Template::read(std::fs::File::from(file)).map(Some).map_err(|_| Errno::EBADMSG)
}

/// Waits until the supervisor has taken a job; false when it went away without one, for the connection is closed.
fn has_taken(mut taken: io::PipeReader) -> bool {
    taken.read_exact(&mut [0]).is_ok()
}

/// A supervisor's life: one job. Never returns.
fn take_one_job(template: &Template, filter: &[u8], groups: &Places, mut take: io::PipeWriter) -> ! {
    // What went wrong is told to who sends the job.
    let stage = Stage::prepare(template, filter, groups);
    if let Ok(Some(descriptors)) = receive(0) {
        // Without the helper there is nobody to tell.
        let _ = take.write_all(&[1]);
        drop(take);
        serve(template, stage, descriptors);
    }
    // SAFETY: ends this process, without running what the helper registered for its own end.
    unsafe { libc::_exit(0) }
}

/// Leaves the gateway's session and directory, lets supervisors be reaped by themselves, and keeps other programs of this
/// user from looking into this process.
fn prepare() -> Result<(), Errno> {
    // A wish, not a layer: when memory runs out, it is a sandbox that should go, not the gateway.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
    limit_core_dumps()?;
    nix::unistd::chdir("/")?;
    // SAFETY: these calls take numbers alone. Descriptors from 3 on belong to nobody here: the gateway passes none.
    unsafe {
        Errno::result(libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32))?;
        libc::setsid();
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        Errno::result(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
    }
    Ok(())
}

/// With a limit of 0 a dump would still go to a handler of the machine's (core(5)): 1 stops it, and is too little for a file.
/// Where the limit is 0 already, only root can raise it; then [`super::kernel::Kernel::limitations`] tells. The filter keeps
/// programs from changing it.
fn limit_core_dumps() -> Result<(), Errno> {
    match nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 1, 1) {
        Err(Errno::EPERM) => Ok(()),
        other => other,
    }
}

/// A job's descriptors, in the order in which they are sent.
struct Delivery {
    job: OwnedFd,
    control: OwnedFd,
    workspace: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    stdin: Option<OwnedFd>,
    /// Not in the full tiers: there the working directory is another mount, and nothing else is shared.
    cwd: Option<OwnedFd>,
    scratch: Option<OwnedFd>,
}

impl Delivery {
    fn from(mut descriptors: Vec<OwnedFd>, template: &Template) -> Option<Self> {
        let mut last = || if template.tier.is_full() { Some(None) } else { Some(Some(descriptors.pop()?)) };
        let (scratch, cwd) = (last()?, last()?);
        let mut next = descriptors.into_iter();
        Some(Delivery {
            job: next.next()?,
            control: next.next()?,
            workspace: next.next()?,
            stdout: next.next()?,
            stderr: next.next()?,
            stdin: next.next(),
            cwd,
            scratch,
        })
    }
}

/// Does a job and reports what kept it from running.
fn serve(template: &Template, stage: Result<Stage, Failure>, descriptors: Vec<OwnedFd>) {
    let Some(delivery) = Delivery::from(descriptors, template) else { return };
    let control = delivery.control.try_clone();
    let outcome = stage.and_then(|stage| {
        let job = Job::read(std::fs::File::from(delivery.job)).map_err(|error| Failure::io("read the job", &error))?;
        let streams = confine::Streams { stdin: delivery.stdin, stdout: delivery.stdout, stderr: delivery.stderr };
        let places = confine::Places { workspace: delivery.workspace, cwd: delivery.cwd, scratch: delivery.scratch };
        supervise::run(template, &job, stage, streams, places, delivery.control)
    });
    if let (Err(failure), Ok(control)) = (outcome, control) {
        report(&control, &failure.into());
    }
}

/// A step that failed, and the kernel's reason.
#[derive(Debug)]
struct Failure {
    step: String,
    errno: i32,
}

impl Failure {
    fn new(step: impl Into<String>, errno: Errno) -> Self {
        Failure { step: step.into(), errno: errno as i32 }
    }

    fn io(step: impl Into<String>, error: &io::Error) -> Self {
        Failure { step: step.into(), errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
    }

    /// The step failed with the `errno` of the last call.
    fn last(step: impl Into<String>) -> Self {
        Failure::new(step, Errno::last())
    }
}

impl From<Failure> for Report {
    fn from(failure: Failure) -> Self {
        Report::Failed { step: failure.step, errno: failure.errno }
    }
}

/// Names a step whose call answers below zero on failure.
fn step<T: Default + PartialOrd>(name: &str, answer: T) -> Result<T, Failure> {
    if answer < T::default() { Err(Failure::last(name)) } else { Ok(answer) }
}

/// Sends a report. Where nobody listens any more, nobody is told.
fn report(control: &OwnedFd, report: &Report) {
    let mut text = serde_json::to_vec(report).unwrap_or_default();
    text.truncate(REPORT_MAX);
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::send(control.as_raw_fd(), text.as_ptr().cast(), text.len(), libc::MSG_NOSIGNAL) };
}

/// Receives one message's descriptors; `None` at the end of the connection.
fn receive(socket: RawFd) -> Result<Option<Vec<OwnedFd>>, Errno> {
    let mut byte = [0u8; 1];
    let mut data = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    // Room for the descriptors, aligned for cmsghdr.
    let mut room = [0u64; 16];
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&room);
    let length = loop {
        // SAFETY: the message points to buffers that outlive the call, with their true sizes.
        match Errno::result(unsafe { libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC) }) {
            Err(Errno::EINTR) => {}
            other => break other?,
        }
    };
    if length == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::with_capacity(MAX_DESCRIPTORS);
    // SAFETY: the kernel filled the control buffer; the macros walk it within msg_controllen. Each number is a new
    // descriptor that nobody else owns.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let numbers = libc::CMSG_DATA(header).cast::<RawFd>();
                for at in 0..bytes / size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(numbers.add(at).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(Some(descriptors))
}
