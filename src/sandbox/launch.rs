//! The launcher: the gateway's side of running a program confined.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};
use tokio::sync::oneshot;

use super::capture::Capture;
use super::denials::{self, Denial};
use super::helper::{HELPER_ARGUMENT, MAX_DESCRIPTORS, PRIVATE_HOME, WARD_MOVED, WORKSPACE_MOVED};
use super::leftovers::{self, Leftover};
use super::plan::{Plan, fd_number};
use super::profile::Reach;
use super::scratch::{Cleaner, Scratch};
use super::streams::{Ends, Stream, Streams};
use super::wire::{self, Breach, Job, Limits, REPORT_MAX, Report, memory_file};
use crate::facts::path::{Ward, Wards};

/// From SIGTERM to SIGKILL when a program runs out of time.
const GRACE: Duration = Duration::from_secs(2);
/// How long what a program leaves behind may go on, to finish its output.
const LINGER: Duration = Duration::from_millis(250);
/// How long output is read on after the last process ended. Nobody holds the pipes then, but for a mistake.
const DRAIN: Duration = Duration::from_millis(500);
/// How much later than everything above the supervisor may answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Helpers that are kept waiting, each for plans of one kind.
const MAX_HELPERS: usize = 4;
/// How often a call is tried whose protected paths are being moved.
const ATTEMPTS: usize = 8;
/// The most protected paths that are kept from one program: each is a mount.
const MOST_WARDS: usize = 1024;
/// No program runs longer, whatever a profile says.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Said of a call where a workspace is larger than what is looked at.
pub(crate) const NOT_ALL_KEPT: &str =
    "the workspace is too large to look for protected paths in all of it: deep ones were open to the command";

/// Runs programs confined, through helper processes that it starts when first needed and that end with it.
#[derive(Debug)]
pub struct Launcher {
    /// The helper's executable, held open: what stands under its name later is never run.
    executable: File,
    /// One for each kind of plan in use, the one used last at the end.
    helpers: Mutex<Vec<Helper>>,
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

/// A program that is spoken to while it runs. Its errors are kept for its outcome.
#[derive(Debug)]
pub struct Conversation {
    /// The program's standard input.
    pub input: OwnedFd,
    /// The program's standard output.
    pub output: OwnedFd,
    /// Held while it shall run: dropped, it ends with all that it started.
    pub alive: io::PipeWriter,
    pub ended: oneshot::Receiver<Result<Outcome, LaunchError>>,
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
    /// What a failed program was refused, as its own messages have it: a guess.
    pub denials: Vec<Denial>,
    /// What it left in the workspace for other programs to run.
    pub leftovers: Vec<Leftover>,
    /// The workspace was too large to look for protected paths in all of it.
    pub not_all_kept: bool,
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
    /// Ended because it used more memory than this, in bytes, all its processes together.
    OutOfMemory(u64),
    /// Ended because it wrote more than this, in bytes, to the workspace's file system.
    OutOfSpace(u64),
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
    #[error(
        "{count} protected paths would have to be kept from the program, and {MOST_WARDS} can be: protect the directories \
         that hold them, as `DIR/**`"
    )]
    TooManyWards { count: usize },
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
        Ok(Launcher { executable, helpers: Mutex::new(Vec::new()), cleaner: Cleaner::new()? })
    }

    /// Runs a program and waits for its end. A caller that drops the future ends the program and all that it started.
    pub async fn run(self: &Arc<Self>, plan: Plan, program: Program) -> Result<Outcome, LaunchError> {
        let (watched, held) = io::pipe().map_err(|e| LaunchError::setup("make a pipe", &e))?;
        let launcher = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || {
            let ends = |limit| Ends::make(program.streams, limit);
            launcher.run_while(&plan, &program, Some(watched.as_fd()), &ends)
        });
        let outcome = task.await.unwrap_or(Err(LaunchError::Lost));
        drop(held);
        outcome
    }

    /// Runs a program, blocking this thread until its end.
    pub fn run_blocking(&self, plan: &Plan, program: &Program) -> Result<Outcome, LaunchError> {
        self.run_while(plan, program, None, &|limit| Ends::make(program.streams, limit))
    }

    /// Starts a program to speak to. It has a thread of its own, because it may run for days.
    ///
    /// # Errors
    ///
    /// When there are no pipes or no thread for it. What goes wrong later is told by `ended`.
    pub fn converse(self: &Arc<Self>, plan: Plan, arguments: Vec<String>) -> Result<Conversation, LaunchError> {
        let setup = |error: io::Error| LaunchError::setup("make a pipe", &error);
        let (watched, alive) = io::pipe().map_err(setup)?;
        let (stdin, input) = io::pipe().map_err(setup)?;
        let (output, stdout) = io::pipe().map_err(setup)?;
        let (tell, ended) = oneshot::channel();
        let launcher = Arc::clone(self);
        let program = Program { arguments, timeout: plan.wall_limit(), streams: Streams::Capture };
        let run = move || {
            let ends = |limit| Ends::piped(stdin.try_clone()?.into(), stdout.try_clone()?.into(), limit);
            let outcome = launcher.run_while(&plan, &program, Some(watched.as_fd()), &ends);
            // Nobody may wait any more.
            let _ = tell.send(outcome);
        };
        let thread = std::thread::Builder::new().name("conversation".to_owned()).spawn(run);
        thread.map_err(|error| LaunchError::setup("start a thread", &error))?;
        Ok(Conversation { input: input.into(), output: output.into(), alive, ended })
    }

    /// Runs a program while the other end of `alive` is held.
    fn run_while(
        &self,
        plan: &Plan,
        program: &Program,
        alive: Option<BorrowedFd<'_>>,
        ends: &dyn Fn(usize) -> io::Result<Ends>,
    ) -> Result<Outcome, LaunchError> {
        let (mut attempts, mut helpers) = (0..ATTEMPTS, 0..1);
        loop {
            match self.try_run(plan, program, alive, ends) {
                // What was prepared before this call does not know a file system that was mounted since.
                Err(LaunchError::Setup { step, .. })
                    if step == WORKSPACE_MOVED && helpers.next().is_some() && self.forget_helper(plan) => {}
                // Something else moved it in the meantime.
                Err(LaunchError::Setup { step, .. }) if step == WARD_MOVED && attempts.next().is_some() => {}
                other => return other,
            }
        }
    }

    fn try_run(
        &self,
        plan: &Plan,
        program: &Program,
        alive: Option<BorrowedFd<'_>>,
        ends: &dyn Fn(usize) -> io::Result<Ends>,
    ) -> Result<Outcome, LaunchError> {
        let (started, begun) = (Instant::now(), SystemTime::now());
        plan.make_caches().map_err(|e| LaunchError::setup("make the caches", &e))?;
        let scratch = match plan.tier().is_full() {
            true => None,
            false => Some(
                Scratch::new(plan.scratch_base()).map_err(|e| LaunchError::setup("make the scratch directory", &e))?,
            ),
        };
        let wards = plan.wards();
        if wards.all.len() > MOST_WARDS {
            return Err(LaunchError::TooManyWards { count: wards.all.len() });
        }
        let job = job(plan, program, scratch.as_ref(), &wards);
        let file = job
            .encode()
            .map_err(io::Error::from)
            .and_then(|json| memory_file(&json))
            .map_err(|e| LaunchError::setup("write the job", &e))?;
        let (control, far_control) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .map_err(|errno| LaunchError::setup("make a socket", &errno.into()))?;
        let ends = ends(plan.output_limit()).map_err(|e| LaunchError::setup("make the standard streams", &e))?;
        let Ends { stdin, stdout, stderr, out, terminal } = ends;
        let mut descriptors = vec![file.as_fd(), far_control.as_fd(), plan.workspace_dir().as_fd()];
        descriptors.extend([stdout.as_fd(), stderr.as_fd()]);
        if let Some(stdin) = &stdin {
            descriptors.push(stdin.as_fd());
        }
        let cwd = if scratch.is_some() { Some(open_cwd(&job, plan.workspace_dir())?) } else { None };
        descriptors.extend(cwd.as_ref().map(AsFd::as_fd));
        descriptors.extend(scratch.as_ref().map(|scratch| scratch.dir().as_fd()));
        self.send(plan, &descriptors)?;
        drop((far_control, stdin, stdout, stderr));
        let patience = started + job.timeout + GRACE + LINGER + PATIENCE;
        let followed = Run { control, alive, patience }.follow(out);
        drop(terminal);
        if let Some(scratch) = scratch {
            self.cleaner.remove(scratch);
        }
        let (report, stdout, stderr) = followed?;
        let (end, left_behind) = end_of(report, &job)?;
        let denials = match end {
            End::Exited(0) => Vec::new(),
            _ => denials::guess(&plan.scene(&wards), &messages(&stdout, &stderr)),
        };
        let elapsed = started.elapsed();
        let leftovers = if job.workspace_writable { leftovers::look(plan.workspace_dir(), begun) } else { Vec::new() };
        let not_all_kept = wards.cut_off;
        Ok(Outcome { end, stdout, stderr, elapsed, left_behind, denials, leftovers, not_all_kept })
    }

    /// Hands a job to the plan's helper, which is started, or started again, when it is not there.
    fn send(&self, plan: &Plan, descriptors: &[BorrowedFd<'_>]) -> Result<(), LaunchError> {
        let numbers: Vec<i32> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        debug_assert!(numbers.len() <= MAX_DESCRIPTORS);
        let template = plan.template();
        let mut helpers = self.helpers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = helpers.iter().position(|helper| helper.template == *template) {
            let running = helpers.remove(at);
            if running.send(&numbers).is_ok() {
                helpers.push(running);
                return Ok(());
            }
        }
        if helpers.len() >= MAX_HELPERS {
            // The one that was not used for longest. What it has started goes on by itself.
            helpers.remove(0);
        }
        let fresh =
            Helper::start(&self.executable, template).map_err(|e| LaunchError::setup("start the helper", &e))?;
        let sent = fresh.send(&numbers).map_err(|errno| LaunchError::setup("reach the helper", &errno.into()));
        helpers.push(fresh);
        sent
    }

    /// Lets the plan's helper go; false where there was none.
    fn forget_helper(&self, plan: &Plan) -> bool {
        let mut helpers = self.helpers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = helpers.len();
        helpers.retain(|helper| helper.template != *plan.template());
        helpers.len() < before
    }
}

/// A running helper.
#[derive(Debug)]
struct Helper {
    /// `None` only while it is being dropped.
    socket: Option<OwnedFd>,
    process: Child,
    /// What it prepares for.
    template: Arc<[u8]>,
}

impl Helper {
    fn start(executable: &File, template: &Arc<[u8]>) -> io::Result<Self> {
        let (socket, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let process = Command::new(format!("/proc/self/fd/{}", fd_number(executable)))
            .arg0("portcullis")
            .arg(HELPER_ARGUMENT)
            .env_clear()
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .spawn()?;
        let helper = Helper { socket: Some(socket), process, template: Arc::clone(template) };
        helper.send(&[fd_number(&memory_file(template)?)])?;
        Ok(helper)
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

fn job(plan: &Plan, program: &Program, scratch: Option<&Scratch>, wards: &Wards) -> Job {
    let profile = plan.profile();
    let relative = plan.cwd().strip_prefix(plan.workspace()).ok();
    let mut environment: Vec<String> =
        plan.environment().iter().map(|(name, value)| format!("{name}={value}")).collect();
    match scratch {
        Some(scratch) => {
            environment.push(format!("HOME={}", scratch.home().display()));
            environment.push(format!("TMPDIR={}", scratch.tmp().display()));
        }
        None => environment.extend([format!("HOME={PRIVATE_HOME}"), "TMPDIR=/tmp".to_owned()]),
    }
    let limits = &profile.limits;
    Job {
        arguments: program.arguments.clone(),
        environment,
        cwd: relative.unwrap_or(plan.cwd()).to_string_lossy().into_owned(),
        cwd_in_workspace: relative.is_some(),
        workspace: plan.workspace().to_string_lossy().into_owned(),
        workspace_writable: profile.filesystem.workspace == Reach::Write,
        own: plan.own().to_vec(),
        wards: wards.all.iter().map(on_the_wire).collect(),
        limits: Limits {
            cpu_seconds: limits.cpu_seconds.map(u64::from),
            file_bytes: limits.file_bytes,
            open_files: limits.open_files.get(),
            processes: limits.processes.get(),
            memory_bytes: limits.memory_bytes.get(),
            disk_bytes: limits.disk_bytes.get(),
        },
        timeout: program.timeout.min(plan.wall_limit()).min(LONGEST),
        grace: GRACE,
        linger: LINGER,
        terminal: program.streams == Streams::Terminal,
    }
}

fn on_the_wire(ward: &Ward) -> wire::Ward {
    wire::Ward { path: ward.path.clone().into(), hold: ward.hold, device: ward.device, inode: ward.inode }
}

/// Opens the working directory: below the workspace's handle without leaving it, elsewhere without symbolic links.
fn open_cwd(job: &Job, workspace: &File) -> Result<OwnedFd, LaunchError> {
    use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
    let resolve = if job.cwd_in_workspace {
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS
    } else {
        ResolveFlag::RESOLVE_NO_SYMLINKS
    };
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).resolve(resolve);
    let path = if job.cwd.is_empty() { "." } else { job.cwd.as_str() };
    openat2(workspace, path, how).map_err(|errno| LaunchError::setup("enter the working directory", &errno.into()))
}

/// What a program has said of itself: errors first, for the last lines count most.
fn messages(stdout: &Capture, stderr: &Capture) -> String {
    const MOST: usize = 64 << 10;
    format!("{}\n{}", stdout.text(MOST), stderr.text(MOST))
}

fn end_of(report: Report, job: &Job) -> Result<(End, bool), LaunchError> {
    let (status, breach, left_behind) = match report {
        Report::Failed { step, errno } => return Err(LaunchError::Setup { step, errno }),
        Report::Ended { status, breach, left_behind } => (status, breach, left_behind),
    };
    let end = match breach {
        Some(Breach::Time) => End::TimedOut(job.timeout),
        Some(Breach::Memory) => End::OutOfMemory(job.limits.memory_bytes),
        Some(Breach::Disk) => End::OutOfSpace(job.limits.disk_bytes),
        None if libc::WIFSIGNALED(status) => End::Signalled(libc::WTERMSIG(status)),
        None => End::Exited(libc::WEXITSTATUS(status)),
    };
    Ok((end, left_behind))
}

/// A program that runs, seen from the gateway.
struct Run<'a> {
    control: OwnedFd,
    /// Readable when the caller gave up.
    alive: Option<BorrowedFd<'a>>,
    /// When to stop waiting for an answer.
    patience: Instant,
}

impl Run<'_> {
    /// Reads the output and waits for the report. Dropping `self` makes the supervisor end everything.
    fn follow(self, mut streams: [Stream; 2]) -> Result<(Report, Capture, Capture), LaunchError> {
        let mut report = None;
        let mut until = self.patience;
        loop {
            let open = streams.iter().any(|s| s.source().is_some());
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
        let (stdout, stderr) = (stdout.into_capture(), stderr.into_capture());
        report.map(|report| (report, stdout, stderr)).ok_or(LaunchError::Lost)
    }

    /// Waits for something to read; `None` when the time is up.
    fn wait(&self, streams: &[Stream; 2], unanswered: bool, until: Instant) -> Option<Ready> {
        let [stdout, stderr] = streams.each_ref().map(Stream::source);
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
