//! Starting the program, waiting for it, and ending everything that it started.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libc::pid_t;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::confine::{Places, Ready, Streams, confine};
use super::memory_files::MemoryFiles;
use super::monitor::{self, Monitor};
use super::program::{Image, Start};
use super::stage::Stage;
use super::{Failure, report, step};
use crate::sandbox::cgroup::Group;
use crate::sandbox::wire::{Breach, Job, Report, Template};

/// How long the helper tries to end what a program left behind. Only what the kernel itself holds on to (a process in
/// uninterruptible sleep) takes longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stands for a time limit that the clock cannot hold.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Confines this process, runs the program and reports its end. On an error nothing ran.
pub fn run(
    template: &Template,
    job: &Job,
    stage: Stage,
    streams: Streams,
    places: Places,
    control: OwnedFd,
) -> Result<(), Failure> {
    let image = Image::of(job)?;
    let children = child_signals()?;
    // SAFETY: getppid and getpid cannot fail.
    let (helper, supervisor) = unsafe { (libc::getppid(), libc::getpid()) };
    let own_namespace = template.tier.is_full();
    let ready = confine(template, job, stage, streams, places)?;
    let Ready { inner, cwd, memory_files, workspace, mut group } = ready;
    group.limit(&job.limits).map_err(|error| Failure::io("limit the control group", &error))?;
    let mut start =
        Start { job, own_namespace, inner, cwd, image: &image, supervisor, control: &control, group: &mut group };
    let program = start.program()?;
    let monitor = workspace.map(|workspace| Monitor::new(&job.limits, workspace));
    let sealed = own_namespace || signals_are_scoped(helper);
    let started = Instant::now();
    let mut watch = Watch { program, status: None, children, control, started, sealed, monitor, memory_files, group };
    watch.let_go_of_streams();
    watch.until_the_end(job);
    Ok(())
}

/// Whether Landlock keeps this process from signalling others: proved by a signal to the helper, which is the same user.
/// Only then may "all processes" be signalled.
fn signals_are_scoped(helper: pid_t) -> bool {
    // SAFETY: signal 0 only asks for permission.
    helper > 1 && unsafe { libc::kill(helper, 0) } < 0 && Errno::last() == Errno::EPERM
}

/// A descriptor that becomes readable when a child ends; the signal itself stays blocked.
fn child_signals() -> Result<OwnedFd, Failure> {
    // SAFETY: the set is initialised before it is used and outlives the calls; the descriptor is new.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        step("block SIGCHLD", libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        let fd = step("signalfd", libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// What woke the supervisor.
enum Event {
    Child,
    /// The gateway closed the connection: it gave up, or is gone.
    Hangup,
    Timeout,
}

struct Watch {
    program: pid_t,
    /// The program's wait status, once it ended.
    status: Option<i32>,
    children: OwnedFd,
    control: OwnedFd,
    started: Instant,
    /// Signals cannot leave the sandbox.
    sealed: bool,
    /// In the full tiers, where the processes of the sandbox can be told from others.
    monitor: Option<Monitor>,
    memory_files: Option<MemoryFiles>,
    group: Group,
}

impl Watch {
    /// The streams are the program's: while this process held them, their readers would wait for it too.
    fn let_go_of_streams(&self) {
        for stream in 0..3 {
            // SAFETY: standard streams have no owner that would close them again.
            unsafe { libc::close(stream) };
        }
    }

    fn until_the_end(&mut self, job: &Job) {
        let mut breach = None;
        let mut deadline = self.started.checked_add(job.timeout).unwrap_or(self.started + FOREVER);
        while self.status.is_none() {
            match self.wait_until(self.next_look(deadline)) {
                Event::Child => {
                    self.reap();
                }
                Event::Hangup => {
                    self.end_all();
                    return;
                }
                Event::Timeout if Instant::now() < deadline => {
                    // Who uses up the machine gets no time to put things in order.
                    breach = self.monitor.as_ref().and_then(Monitor::breach);
                    if breach.is_some() {
                        break;
                    }
                }
                Event::Timeout if breach.is_none() => {
                    breach = Some(Breach::Time);
                    self.monitor = None;
                    deadline = Instant::now() + job.grace;
                    self.terminate();
                }
                Event::Timeout => break,
            }
        }
        if breach.is_none() && self.status.is_some() {
            self.linger(job.linger);
        }
        let left_behind = !self.end_all();
        // A program that cannot be ended has no status: it counts as killed, and as left behind.
        let status = self.status.unwrap_or(libc::SIGKILL);
        // A program that went on without a process that the kernel ended has ended well.
        if breach.is_none() && status != 0 && self.group.ran_out_of_memory() {
            breach = Some(Breach::Memory);
        }
        report(&self.control, &Report::Ended { status, breach, left_behind });
    }

    /// When to look at what the sandbox uses, or to stop it.
    fn next_look(&self, deadline: Instant) -> Instant {
        if self.monitor.is_some() { deadline.min(Instant::now() + monitor::INTERVAL) } else { deadline }
    }

    /// Asks the program's group to end. A stopped group has to be woken for it.
    fn terminate(&self) {
        // SAFETY: the program is this process's child, leads its group, and has not been reaped.
        unsafe {
            libc::kill(-self.program, libc::SIGTERM);
            libc::kill(-self.program, libc::SIGCONT);
        }
    }

    /// Lets what the program started finish, for a moment: `tee` in a process substitution ends after its shell.
    fn linger(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while !self.reap() {
            match self.wait_until(deadline) {
                Event::Child => {}
                Event::Hangup | Event::Timeout => return,
            }
        }
    }

    /// Kills every process of the sandbox but this one; true when none is left.
    fn end_all(&mut self) -> bool {
        let patience = Instant::now() + PATIENCE;
        while !self.reap() {
            if Instant::now() > patience {
                return false;
            }
            self.kill_all();
            self.wait_until(Instant::now() + Duration::from_millis(10));
        }
        true
    }

    /// With signals confined to the sandbox one call reaches all of it at once, so that nothing can outrun it by
    /// forking. Otherwise the children are killed; theirs become this process's children, and are next.
    fn kill_all(&self) {
        if self.sealed {
            // SAFETY: the signal stays in this process's namespace, or in this sandbox's domain, as `signals_are_scoped`
            // proved.
            unsafe { libc::kill(-1, libc::SIGKILL) };
            return;
        }
        let list = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let children = list.split_whitespace().filter_map(|pid| pid.parse::<pid_t>().ok());
        for child in children.chain(self.status.is_none().then_some(self.program)) {
            // SAFETY: these are this process's own children, which only it reaps.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }

    /// Reaps every child that ended; true when there is no child left.
    fn reap(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: the status outlives the call.
            match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
                0 => return false,
                -1 if Errno::last() == Errno::EINTR => {}
                -1 => return true,
                pid if pid == self.program => self.status = Some(status),
                _other => {}
            }
        }
    }

    fn wait_until(&self, deadline: Instant) -> Event {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, so that the deadline has passed when poll says so; a long wait takes several polls.
        let millis = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        let calls = self.memory_files.as_ref().map(|calls| calls.waiting().as_fd());
        let watched = [Some(self.children.as_fd()), Some(self.control.as_fd()), calls];
        let mut events: Vec<PollFd<'_>> =
            watched.iter().flatten().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        match poll(&mut events, timeout) {
            Ok(0) if Instant::now() >= deadline => return Event::Timeout,
            Ok(_) => {}
            Err(_) => return Event::Child,
        }
        let ready = |event: Option<&PollFd>| event.and_then(PollFd::any).unwrap_or(true);
        if ready(events.get(1)) {
            return Event::Hangup;
        }
        if let Some(calls) =
            self.memory_files.as_ref().filter(|_| events.get(2).is_some_and(|event| ready(Some(event))))
        {
            calls.answer();
        }
        self.clear_child_signals();
        Event::Child
    }

    fn clear_child_signals(&self) {
        let mut sink = [0u8; 16 * size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the buffer is valid for its length; the descriptor does not block.
        unsafe { libc::read(self.children.as_raw_fd(), sink.as_mut_ptr().cast(), sink.len()) };
    }
}
