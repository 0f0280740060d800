//! What goes between the launcher and its helper: one [`Job`] in, one [`Report`] out.
//!
//! A job is a memory file: the length of its JSON in four bytes, little-endian, the JSON, then the seccomp program as
//! the kernel takes it. It comes with descriptors in an `SCM_RIGHTS` message and never stands in argv or environment.

use std::io::{self, Read, Seek, Write};
use std::os::fd::FromRawFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

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

/// One program to run, confined.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub arguments: Vec<String>,
    /// `NAME=value`, complete.
    pub environment: Vec<String>,
    /// Relative to the workspace where `cwd_in_workspace`, else absolute.
    pub cwd: String,
    pub cwd_in_workspace: bool,
    pub workspace_writable: bool,
    pub grants: Vec<Grant>,
    pub landlock_abi: u32,
    /// Landlock handles TCP, and grants none.
    pub tcp_denied: bool,
    pub limits: Limits,
    pub timeout: Duration,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// How long processes that the program leaves behind may finish what they do.
    pub linger: Duration,
    /// A seccomp program follows the JSON. Without one nothing is filtered, which a reviewer accepted.
    pub seccomp: bool,
    /// Whether a descriptor for standard input comes along; /dev/null otherwise.
    pub stdin: bool,
}

/// Resource limits, as setrlimit(2) takes them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    pub cpu_seconds: Option<u64>,
    pub file_bytes: u64,
    pub open_files: u64,
    pub processes: u64,
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
        timed_out: bool,
        /// Processes that could not be ended within the helper's patience.
        left_behind: bool,
    },
}

/// The most bytes of a report.
pub const REPORT_MAX: usize = 1024;

impl Job {
    /// Writes a job and its seccomp program to a new memory file.
    pub fn write(&self, filter: &[u8]) -> io::Result<std::fs::File> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut whole = Vec::with_capacity(4 + json.len() + filter.len());
        whole.extend_from_slice(&length.to_le_bytes());
        whole.extend_from_slice(&json);
        whole.extend_from_slice(filter);
        let mut file = memory_file()?;
        file.write_all(&whole)?;
        file.rewind()?;
        Ok(file)
    }

    /// Reads a job and its seccomp program.
    pub fn read(mut file: std::fs::File) -> io::Result<(Job, Vec<u8>)> {
        let mut whole = Vec::new();
        file.read_to_end(&mut whole)?;
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (length, rest) = whole.split_first_chunk::<4>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
        let (json, filter) = rest.split_at_checked(length).ok_or_else(short)?;
        Ok((serde_json::from_slice(json)?, filter.to_vec()))
    }
}

fn memory_file() -> io::Result<std::fs::File> {
    // SAFETY: the name is a C string; the descriptor that comes back belongs to nobody else.
    unsafe {
        let fd = libc::memfd_create(c"portcullis-job".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(std::fs::File::from_raw_fd(fd)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_way() {
        let job = Job {
            arguments: vec!["bash".into(), "-c".into(), "é\n\"".into()],
            environment: vec!["A=1".into()],
            cwd: String::new(),
            cwd_in_workspace: true,
            workspace_writable: true,
            grants: vec![Grant { path: "/usr".into(), access: Access::Read, directory: true, required: false }],
            landlock_abi: 7,
            tcp_denied: true,
            limits: Limits { cpu_seconds: None, file_bytes: 1, open_files: 2, processes: 3 },
            timeout: Duration::from_millis(1500),
            grace: Duration::ZERO,
            linger: Duration::ZERO,
            seccomp: true,
            stdin: false,
        };
        let (back, filter) = Job::read(job.write(&[7; 16]).unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{job:?}"));
        assert_eq!(filter, [7; 16]);
    }
}
