//! The supervisor's confinement of itself, in an order that works: what opens things first, what closes calls last.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};

use landlock::RulesetCreated;
use libc::{sock_filter, sock_fprog};
use nix::errno::Errno;

use super::memory_files::MemoryFiles;
use super::stage::{Private, Stage};
use super::{Failure, layers, namespaces, privileges, step};
use crate::sandbox::Tier;
use crate::sandbox::cgroup::Group;
use crate::sandbox::wire::{Job, Template};

/// The program's standard streams; /dev/null where there is no input.
pub struct Streams {
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// The directories that are granted by descriptor.
pub struct Places {
    pub workspace: OwnedFd,
    /// In the landlock tier, as is the next.
    pub cwd: Option<OwnedFd>,
    pub scratch: Option<OwnedFd>,
}

/// What the program's own part still needs.
pub struct Ready {
    pub inner: Option<RulesetCreated>,
    pub cwd: OwnedFd,
    /// Where the kernel has no switch of its own for this sandbox.
    pub memory_files: Option<MemoryFiles>,
    /// The workspace, in the full tiers.
    pub workspace: Option<OwnedFd>,
    pub group: Group,
}

/// Everything that needs neither the job nor, later, a call that the filter refuses: before there is a job, where the
/// root directory stays the machine's.
pub fn begin(template: &Template, filter: Vec<sock_filter>) -> Result<Option<MemoryFiles>, Failure> {
    own_session()?;
    lock(template, None)?;
    if template.seccomp { filter_calls(filter, true) } else { Ok(None) }
}

/// Installs the filter, and before it what has memory files looked at: the filter may refuse that.
fn filter_calls(filter: Vec<sock_filter>, watch: bool) -> Result<Option<MemoryFiles>, Failure> {
    let memory_files = if watch { MemoryFiles::watch()? } else { None };
    install(filter)?;
    Ok(memory_files)
}

/// Confines this process for a job. Each step that fails is fatal and named.
pub fn confine(
    template: &Template,
    job: &Job,
    stage: Stage,
    streams: Streams,
    mut places: Places,
) -> Result<Ready, Failure> {
    connect(streams)?;
    let Stage { layers, memory_files, private } = stage;
    let Some(Private { identity, root, filter, group }) = private else {
        let cwd = places.cwd.take().ok_or(Failure::new("enter the working directory", Errno::EBADF))?;
        let layers = layers.admit(template, job, &places)?;
        layers::restrict(layers.outer, "landlock")?;
        return Ok(Ready { inner: layers.inner, cwd, memory_files, workspace: None, group: Group::default() });
    };
    own_session()?;
    places.workspace = root.complete(job, &places.workspace, &identity)?;
    let layers = layers.admit(template, job, &places)?;
    let cwd = open_cwd(job, &places)?;
    lock(template, Some((identity.user, identity.group)))?;
    namespaces::die_with_parent()?;
    layers::restrict(layers.outer, "landlock")?;
    let memory_files = if template.seccomp { filter_calls(filter, template.tier != Tier::Full)? } else { None };
    Ok(Ready { inner: layers.inner, cwd, memory_files, workspace: Some(places.workspace), group })
}

/// Gives up every privilege, for good.
fn lock(template: &Template, user: Option<(u32, u32)>) -> Result<(), Failure> {
    privileges::drop_all(user.filter(|_| template.tier == Tier::Full))?;
    // SAFETY: calls with numbers alone; umask cannot fail.
    unsafe {
        libc::umask(0o022);
        step("no_new_privs", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        // A change of user may have undone it.
        step("close this process to others", libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0)).map(drop)
    }
}

/// A session of its own, and the parent of whatever the program leaves behind.
fn own_session() -> Result<(), Failure> {
    // SAFETY: these calls take numbers alone. The helper ignores SIGCHLD; who waits for a child must not.
    unsafe {
        step("close_range", libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC))?;
        step("setsid", libc::setsid())?;
        step("become subreaper", libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
    Ok(())
}

/// Puts the streams on descriptors 0, 1 and 2.
fn connect(streams: Streams) -> Result<(), Failure> {
    let stdin = match streams.stdin {
        Some(stdin) => stdin,
        None => OpenOptions::new().read(true).open("/dev/null").map_err(|e| Failure::io("open /dev/null", &e))?.into(),
    };
    for (from, to) in [(stdin, 0), (streams.stdout, 1), (streams.stderr, 2)] {
        // SAFETY: both are numbers; the target is a standard stream, which no owner closes.
        step("connect the standard streams", unsafe { libc::dup2(from.as_raw_fd(), to) })?;
    }
    Ok(())
}

/// Opens the working directory: below the workspace's handle without leaving it, elsewhere without symbolic links.
fn open_cwd(job: &Job, places: &Places) -> Result<OwnedFd, Failure> {
    use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
    let name = "enter the working directory";
    let resolve = if job.cwd_in_workspace {
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS
    } else {
        ResolveFlag::RESOLVE_NO_SYMLINKS
    };
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC).resolve(resolve);
    let path = if job.cwd.is_empty() { "." } else { job.cwd.as_str() };
    openat2(&places.workspace, path, how).map_err(|errno| Failure::new(name, errno))
}

/// Installs the seccomp program.
fn install(mut instructions: Vec<sock_filter>) -> Result<(), Failure> {
    let length = u16::try_from(instructions.len()).map_err(|_| Failure::new("seccomp", Errno::E2BIG))?;
    let program = sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    // SAFETY: the program points to `length` instructions that outlive the call.
    step("seccomp", unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0u32, &raw const program)
    })
    .map(drop)
}

/// The program, as it came with the template.
pub fn decode(program: &[u8]) -> Vec<sock_filter> {
    program
        .as_chunks::<8>()
        .0
        .iter()
        .map(|[a, b, jt, jf, k @ ..]| sock_filter {
            code: u16::from_ne_bytes([*a, *b]),
            jt: *jt,
            jf: *jf,
            k: u32::from_ne_bytes(*k),
        })
        .collect()
}
