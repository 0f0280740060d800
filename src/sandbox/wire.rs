//! What goes between the launcher and its helper: a [`Template`] once, then for each call one [`Job`] in and one
//! [`Report`] out.
//!
//! Template and job are memory files that come with descriptors in an `SCM_RIGHTS` message and never stand in argv or
//! environment. A template is the length of its JSON in four bytes, little-endian, the JSON, then the seccomp program as
//! the kernel takes it; a job is JSON alone.

use std::ffi::OsString;
use std::io::{self, Read, Seek, Write};
use std::os::fd::FromRawFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Tier;
use crate::facts::path::Hold;

/// What may be done beneath a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read and list, not execute: pseudo file systems.
    Look,
    /// Read, list, execute.
    Read,
    /// Everything but making device nodes.
    Write,
    /// Read and write: device nodes.
    Device,
    /// Read, write, ask with ioctl(2): terminals.
    Terminal,
}

/// A path and what may be done beneath it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub path: String,
    pub access: Access,
    /// A directory, when the plan was made; another kind of file by now is an error.
    pub directory: bool,
    /// That the path does not exist any more is an error.
    pub required: bool,
}

/// What all calls under plans of one kind have in common: what a supervisor can prepare before there is a call.
#[derive(Debug, Serialize, Deserialize)]
pub struct Template {
    pub tier: Tier,
    pub grants: Vec<Grant>,
    /// A granted repository of which hooks and configuration stay as they are.
    pub repository: Option<String>,
    /// Paths that lead through links to what is granted, for the full tiers.
    pub names: Vec<String>,
    pub landlock_abi: u32,
    /// Landlock handles TCP, and grants none.
    pub tcp_denied: bool,
    /// In the full tiers: a network of its own, with nothing in it but itself.
    pub private_network: bool,
    /// A seccomp program follows the JSON. Without one nothing is filtered, which a reviewer accepted.
    pub seccomp: bool,
    /// Whose the workspace is: user and group. In the full tier the program is, on disk, this user.
    pub owner: (u32, u32),
    /// The most bytes in each private directory of the full tiers.
    pub space_bytes: u64,
}

/// One program to run, confined.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub arguments: Vec<String>,
    /// `NAME=value`, complete.
    pub environment: Vec<String>,
    /// Relative to the workspace where `cwd_in_workspace`, else absolute.
    pub cwd: String,
    pub cwd_in_workspace: bool,
    /// The workspace's name; its descriptor comes along and is what counts.
    pub workspace: String,
    pub workspace_writable: bool,
    /// The gateway's own files in it, relative to it: they stay as they are, in the full tiers.
    pub own: Vec<String>,
    /// Protected paths, which are kept from the program, in the full tiers. What holds others comes before them.
    pub wards: Vec<Ward>,
    pub limits: Limits,
    pub timeout: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// How long processes that the program leaves behind may finish what they do.
    pub linger: Duration,
    /// The streams are a terminal, which becomes the program's own.
    pub terminal: bool,
}

/// A protected path, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ward {
    /// Absolute; any bytes.
    pub path: OsString,
    pub hold: Hold,
    /// What it was when it was found.
    pub device: u64,
    pub inode: u64,
}

/// Resource limits, as setrlimit(2) takes them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    pub cpu_seconds: Option<u64>,
    pub file_bytes: u64,
    pub open_files: u64,
    pub processes: u64,
    /// Of the whole sandbox, in the full tiers.
    pub memory_bytes: u64,
    /// Written to the workspace's file system, in the full tiers.
    pub disk_bytes: u64,
}

/// A limit that a program went over, and was ended for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Breach {
    Time,
    Memory,
    Disk,
}

/// How it went. The first report counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The program never ran.
    Failed { step: String, errno: i32 },
    /// The program ended, and everything it started with it.
    Ended {
        /// As waitpid(2) gives it.
        status: i32,
        breach: Option<Breach>,
        /// Processes that could not be ended within the helper's patience.
        left_behind: bool,
    },
}

/// The most bytes of a report.
pub const REPORT_MAX: usize = 1024;

impl Template {
    /// A template and its seccomp program, as they are sent.
    pub fn encode(&self, filter: &[u8]) -> serde_json::Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        // No template has four gigabytes; one that had would not be read.
        let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
        let mut whole = Vec::with_capacity(4 + json.len() + filter.len());
        whole.extend_from_slice(&length.to_le_bytes());
        whole.extend_from_slice(&json);
        whole.extend_from_slice(filter);
        Ok(whole)
    }

    /// Reads a template and its seccomp program.
    pub fn read(file: std::fs::File) -> io::Result<(Template, Vec<u8>)> {
        let whole = read_all(file)?;
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (length, rest) = whole.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
        let (json, filter) = rest.split_at_checked(length).ok_or_else(short)?;
        Ok((serde_json::from_slice(json)?, filter.to_vec()))
    }
}

impl Job {
    pub fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    pub fn read(file: std::fs::File) -> io::Result<Job> {
        Ok(serde_json::from_slice(&read_all(file)?)?)
    }
}

fn read_all(mut file: std::fs::File) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    file.read_to_end(&mut whole)?;
    Ok(whole)
}

/// A memory file with this content, to be read from its beginning.
pub fn memory_file(content: &[u8]) -> io::Result<std::fs::File> {
    let mut file = new_memory_file()?;
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

fn new_memory_file() -> io::Result<std::fs::File> {
    // SAFETY: the name is a C string; the descriptor that comes back belongs to nobody else.
    unsafe {
        let fd = libc::memfd_create(c"portcullis-job".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(std::fs::File::from_raw_fd(fd)) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn template_and_job_survive_the_way() {
        let template = Template {
            tier: Tier::Full,
            grants: vec![Grant { path: "/usr".into(), access: Access::Read, directory: true, required: false }],
            repository: None,
            names: vec!["/bin".into()],
            landlock_abi: 7,
            tcp_denied: true,
            private_network: true,
            seccomp: true,
            owner: (1000, 100),
            space_bytes: 1 << 30,
        };
        let file = memory_file(&template.encode(&[7; 16]).unwrap()).unwrap();
        let (back, filter) = Template::read(file).unwrap();
        assert_eq!(format!("{back:?}"), format!("{template:?}"));
        assert_eq!(filter, [7; 16]);
        let job = Job {
            arguments: vec!["bash".into(), "-c".into(), "é\n\"".into()],
            environment: vec!["A=1".into()],
            cwd: String::new(),
            cwd_in_workspace: true,
            workspace: "/ws".into(),
            workspace_writable: true,
            own: vec!["target/debug/portcullis".into()],
            wards: vec![Ward {
                path: OsString::from_vec(b"/ws/\xff".to_vec()),
                hold: Hold::Hidden,
                device: 1,
                inode: 2,
            }],
            limits: Limits {
                cpu_seconds: None,
                file_bytes: 1,
                open_files: 2,
                processes: 3,
                memory_bytes: 4,
                disk_bytes: 5,
            },
            timeout: Duration::from_millis(1500),
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            terminal: false,
        };
        let back = Job::read(memory_file(&job.encode().unwrap()).unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{job:?}"));
    }
}
