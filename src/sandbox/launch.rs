//! The launcher: the gateway's side of running a program confined.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};

use super::capture::Capture;
use super::helper::{HELPER_ARGUMENT, MAX_DESCRIPTORS};
use super::plan::{Plan, fd_number};
use super::profile::Reach;
use super::scratch::{Cleaner, Scratch};
use super::seccomp::{self, Openings};
use super::wire::{Job, Limits, REPORT_MAX, Report};

/// From SIGTERM to SIGKILL when a program runs out of time.
const GRACE: Duration = Duration::from_secs(2);
/// How long what a program leaves behind may go on, to finish its output.
const LINGER: Duration = Duration::from_millis(250);
/// How long output is read on after the last process ended. Nobody holds the pipes then, but for a mistake.
const DRAIN: Duration = Duration::from_millis(500);
/// How much later than everything above the supervisor may answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// No program runs longer, whatever a profile says.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Runs programs confined, through a helper process that it starts when first needed and that ends with it.
#[derive(Debug)]
pub struct Launcher {
    /// The helper's executable, held open: what stands under its name later is never run.
    executable: File,
    helper: Mutex<Option<Helper>>,
    cleaner: Cleaner,
}

/// A program to run under a plan.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program, looked up in the plan's `PATH` unless it holds a slash, and its arguments.
    pub arguments: Vec<String>,
    /// At most the profile's limit.
    pub timeout: Duration,
    pub streams: Streams,
}

/// Where a program's standard streams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// No input; output is kept, beginning and end, up to the profile's limit.
    Capture,
    /// This process's own.
    PassThrough,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    pub stdout: Capture,
    pub stderr: Capture,
    pub elapsed: Duration,
    /// Processes that even SIGKILL did not end in time.
    pub left_behind: bool,
}

/// The way a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program's own exit code.
    Exited(i32),
    /// Ended by a signal. SIGSYS means that a system call filter killed it.
    Signalled(i32),
    /// Ended because its time was up.
    TimedOut(Duration),
}

/// Why a program did not run, or what became of it is not known.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program never ran.
    #[error("{step}: {}", Errno::from_raw(*errno).desc())]
    Setup { step: String, errno: i32 },
    /// The program may have run.
    #[error("the supervisor of the program went away without an answer")]
    Lost,
    /// The caller gave up; the program and all that it started was ended.
    #[error("cancelled")]
    Cancelled,
}

impl LaunchError {
    /// The exit code that tells of it: 126 and 127 as in shells for a program that cannot be run or found, else 125.
    pub fn exit_code(&self) -> u8 {
        match self {
            LaunchError::Setup { step, errno: libc::ENOENT } if step == "exec" => 127,
            LaunchError::Setup { step, .. } if step == "exec" => 126,
            _ => 125,
        }
    }

    fn setup(step: &str, error: &io::Error) -> Self {
        LaunchError::Setup { step: step.to_owned(), errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
    }
}

impl Launcher {
    /// A launcher whose helper is this very executable; its `main` must call [`super::helper_main`].
    pub fn new() -> io::Result<Self> {
        Self::with_helper(Path::new("/proc/self/exe"))
    }

    /// A launcher whose helper is another executable.
    pub fn with_helper(executable: &Path) -> io::Result<Self> {
        let executable = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(executable)?;
        Ok(Launcher { executable, helper: Mutex::new(None), cleaner: Cleaner::new()? })
    }

    /// Runs a program and waits for its end. A caller that drops the future ends the program and all that it started.
    pub async fn run(self: &Arc<Self>, plan: Plan, program: Program) -> Result<Outcome, LaunchError> {
        let (watched, held) = io::pipe().map_err(|e| LaunchError::setup("make a pipe", &e))?;
        let launcher = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || launcher.run_while(&plan, &program, Some(watched.as_fd())));
        let outcome = task.await.unwrap_or(Err(LaunchError::Lost));
        drop(held);
        outcome
    }

    /// Runs a program, blocking this thread until its end.
    pub fn run_blocking(&self, plan: &Plan, program: &Program) -> Result<Outcome, LaunchError> {
        self.run_while(plan, program, None)
    }

    /// Runs a program while the other end of `alive` is held.
    fn run_while(&self, plan: &Plan, program: &Program, alive: Option<BorrowedFd<'_>>) -> Result<Outcome, LaunchError> {
        let started = Instant::now();
        let scratch =
            Scratch::new(plan.scratch_base()).map_err(|e| LaunchError::setup("make the scratch directory", &e))?;
        let (job, filter) = job(plan, program, &scratch);
        let file = job.write(filter).map_err(|e| LaunchError::setup("write the job", &e))?;
        let (control, far_control) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(|errno| LaunchError::setup("make a socket", &errno.into()))?;
        let pipe = || io::pipe().map_err(|e| LaunchError::setup("make a pipe", &e));
        let ((stdout, far_stdout), (stderr, far_stderr)) = (pipe()?, pipe()?);
        let own = (io::stdin(), io::stdout(), io::stderr());
        let mut descriptors =
            vec![file.as_fd(), far_control.as_fd(), plan.workspace_dir().as_fd(), scratch.dir().as_fd()];
        match program.streams {
            Streams::Capture => descriptors.extend([far_stdout.as_fd(), far_stderr.as_fd()]),
            Streams::PassThrough => descriptors.extend([own.1.as_fd(), own.2.as_fd(), own.0.as_fd()]),
        }
        self.send(&descriptors)?;
        drop((far_control, far_stdout, far_stderr));
        let patience = started + job.timeout + GRACE + LINGER + PATIENCE;
        let run = Run { control, alive, patience, limit: plan.output_limit() };
        let followed = run.follow(stdout, stderr);
        self.cleaner.remove(scratch);
        let (report, stdout, stderr) = followed?;
        let (end, left_behind) = end_of(report, job.timeout)?;
        Ok(Outcome { end, stdout, stderr, elapsed: started.elapsed(), left_behind })
    }

    /// Hands a job to the helper, which is started, or started again, when it is not there.
    fn send(&self, descriptors: &[BorrowedFd<'_>]) -> Result<(), LaunchError> {
        let numbers: Vec<i32> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        debug_assert!(numbers.len() <= MAX_DESCRIPTORS);
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*helper
            && running.send(&numbers).is_ok()
        {
            return Ok(());
        }
        let fresh = Helper::start(&self.executable).map_err(|e| LaunchError::setup("start the helper", &e))?;
        let sent = fresh.send(&numbers).map_err(|errno| LaunchError::setup("reach the helper", &errno.into()));
        *helper = Some(fresh);
        sent
    }
}

/// A running helper.
#[derive(Debug)]
struct Helper {
    /// `None` only while it is being dropped.
    socket: Option<OwnedFd>,
    process: Child,
}

impl Helper {
    fn start(executable: &File) -> io::Result<Self> {
        let (socket, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let process = Command::new(format!("/proc/self/fd/{}", fd_number(executable)))
            .arg0("portcullis")
            .arg(HELPER_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Helper { socket: Some(socket), process })
    }

    fn send(&self, descriptors: &[i32]) -> nix::Result<()> {
        let socket = self.socket.as_ref().ok_or(Errno::EPIPE)?;
        let message = [io::IoSlice::new(&[0])];
        let rights = [ControlMessage::ScmRights(descriptors)];
        sendmsg::<()>(socket.as_raw_fd(), &message, &rights, MsgFlags::MSG_NOSIGNAL, None).map(drop)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The helper ends when its socket does.
        self.socket = None;
        let _ = self.process.wait();
    }
}

/// The job, and the seccomp program that goes with it.
fn job(plan: &Plan, program: &Program, scratch: &Scratch) -> (Job, &'static [u8]) {
    let profile = plan.profile();
    let openings = Openings {
        internet: profile.network.internet,
        unix_sockets: profile.network.unix_sockets,
        trace: profile.process.trace,
    };
    let filter = if plan.seccomp() { seccomp::filter(openings) } else { &[] };
    let relative = plan.cwd().strip_prefix(plan.workspace()).ok();
    let mut environment: Vec<String> =
        plan.environment().iter().map(|(name, value)| format!("{name}={value}")).collect();
    environment.push(format!("HOME={}", scratch.home().display()));
    environment.push(format!("TMPDIR={}", scratch.tmp().display()));
    let limits = &profile.limits;
    let job = Job {
        arguments: program.arguments.clone(),
        environment,
        cwd: relative.unwrap_or(plan.cwd()).to_string_lossy().into_owned(),
        cwd_in_workspace: relative.is_some(),
        workspace_writable: profile.filesystem.workspace == Reach::Write,
        grants: plan.grants().to_vec(),
        landlock_abi: plan.landlock_abi(),
        tcp_denied: !profile.network.internet,
        limits: Limits {
            cpu_seconds: limits.cpu_seconds.map(u64::from),
            file_bytes: limits.file_bytes,
            open_files: limits.open_files.get(),
            processes: limits.processes.get(),
        },
        timeout: program.timeout.min(plan.wall_limit()).min(LONGEST),
        grace: GRACE,
        linger: LINGER,
        seccomp: plan.seccomp(),
        stdin: program.streams == Streams::PassThrough,
    };
    (job, filter)
}

fn end_of(report: Report, timeout: Duration) -> Result<(End, bool), LaunchError> {
    match report {
        Report::Failed { step, errno } => Err(LaunchError::Setup { step, errno }),
        Report::Ended { timed_out: true, left_behind, .. } => Ok((End::TimedOut(timeout), left_behind)),
        Report::Ended { status, left_behind, .. } if libc::WIFSIGNALED(status) => {
            Ok((End::Signalled(libc::WTERMSIG(status)), left_behind))
        }
        Report::Ended { status, left_behind, .. } => Ok((End::Exited(libc::WEXITSTATUS(status)), left_behind)),
    }
}

/// A program that runs, seen from the gateway.
struct Run<'a> {
    control: OwnedFd,
    /// Readable when the caller gave up.
    alive: Option<BorrowedFd<'a>>,
    /// When to stop waiting for an answer.
    patience: Instant,
    limit: usize,
}

impl Run<'_> {
    /// Reads the output and waits for the report. Dropping `self` makes the supervisor end everything.
    fn follow(self, stdout: PipeReader, stderr: PipeReader) -> Result<(Report, Capture, Capture), LaunchError> {
        let mut streams = [Stream::new(stdout, self.limit), Stream::new(stderr, self.limit)];
        let mut report = None;
        let mut until = self.patience;
        loop {
            let open = streams.iter().any(|s| s.pipe.is_some());
            if report.is_some() && !open {
                break;
            }
            let Some(ready) = self.wait(&streams, report.is_none(), until) else { break };
            for (stream, ready) in streams.iter_mut().zip(ready.streams) {
                if ready {
                    stream.read();
                }
            }
            if ready.control && report.is_none() {
                report = Some(self.receive()?);
                until = Instant::now() + DRAIN;
            }
            if ready.given_up {
                return Err(LaunchError::Cancelled);
            }
        }
        let [stdout, stderr] = streams;
        report.map(|report| (report, stdout.capture, stderr.capture)).ok_or(LaunchError::Lost)
    }

    /// Waits for something to read; `None` when the time is up.
    fn wait(&self, streams: &[Stream; 2], unanswered: bool, until: Instant) -> Option<Ready> {
        let [stdout, stderr] = streams.each_ref().map(|stream| stream.pipe.as_ref().map(AsFd::as_fd));
        let control = unanswered.then(|| self.control.as_fd());
        let watched = [stdout, stderr, control, self.alive];
        let mut events: Vec<PollFd<'_>> =
            watched.iter().flatten().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        let left = until.saturating_duration_since(Instant::now());
        let millis = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        match poll(&mut events, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)) {
            Ok(0) if Instant::now() >= until => return None,
            Ok(_) => {}
            Err(_) => return Some(Ready::default()),
        }
        // The events are those of the descriptors that are there, in their order.
        let mut events = events.iter();
        let [stdout, stderr, control, given_up] =
            watched.map(|fd| fd.and_then(|_| events.next()).and_then(PollFd::any).unwrap_or(false));
        Some(Ready { streams: [stdout, stderr], control, given_up })
    }

    fn receive(&self) -> Result<Report, LaunchError> {
        let mut text = [0u8; REPORT_MAX];
        let length = nix::sys::socket::recv(self.control.as_raw_fd(), &mut text, MsgFlags::empty()).unwrap_or(0);
        serde_json::from_slice(text.get(..length).unwrap_or_default()).map_err(|_| LaunchError::Lost)
    }
}

/// What there is to do.
#[derive(Default)]
struct Ready {
    streams: [bool; 2],
    control: bool,
    given_up: bool,
}

/// An output stream and what is kept of it.
struct Stream {
    /// `None` at the end of the stream.
    pipe: Option<PipeReader>,
    capture: Capture,
    buffer: Vec<u8>,
}

impl Stream {
    fn new(pipe: PipeReader, limit: usize) -> Self {
        Stream { pipe: Some(pipe), capture: Capture::new(limit), buffer: vec![0; 64 * 1024] }
    }

    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut self.buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => self.capture.push(self.buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}
