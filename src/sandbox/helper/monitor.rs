//! Memory and disk space of a whole sandbox, looked at from its first process again and again: the kernel limits them for
//! single processes and files alone. What grows faster than one look after the other is still stopped, a little late.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use nix::sys::statfs::{TMPFS_MAGIC, fstatfs, statfs};

use super::PRIVATE_HOME;
use super::root::PRIVATE;
use crate::sandbox::wire::{Breach, Limits};

/// How often to look. A look at ten processes costs about a tenth of a millisecond.
pub const INTERVAL: Duration = Duration::from_millis(60);

/// What is watched, and what there was when the program began.
pub struct Monitor {
    memory: u64,
    disk: u64,
    workspace: OwnedFd,
    free: u64,
}

impl Monitor {
    pub fn new(limits: &Limits, workspace: OwnedFd) -> Self {
        let free = free(&workspace).unwrap_or(0);
        Monitor { memory: limits.memory_bytes, disk: limits.disk_bytes, workspace, free }
    }

    /// The limit that is exceeded now.
    pub fn breach(&self) -> Option<Breach> {
        let memory = resident().saturating_add(in_memory_files());
        if memory > self.memory && proportional().saturating_add(in_memory_files()) > self.memory {
            return Some(Breach::Memory);
        }
        self.too_much_written().then_some(Breach::Disk)
    }

    /// The file system lost more space than is allowed, and it was this sandbox that took it: others write too.
    fn too_much_written(&self) -> bool {
        let Some(now) = free(&self.workspace) else { return false };
        if self.free.saturating_sub(now) <= self.disk {
            return false;
        }
        let in_memory = fstatfs(&self.workspace).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC);
        let (written, all_known) = written();
        in_memory || !all_known || written > self.disk / 2
    }
}

fn free(at: &OwnedFd) -> Option<u64> {
    let fs = fstatfs(at).ok()?;
    fs.blocks_free().checked_mul(u64::try_from(fs.block_size()).ok()?)
}

/// What files in the private directories take, empty ones too.
fn in_memory_files() -> u64 {
    /// About what the kernel needs for a file and its name.
    const FILE: u64 = 1024;
    let used = |path: &&str| {
        let fs = statfs(Path::new(path)).ok()?;
        let files = fs.files().saturating_sub(fs.files_free()).saturating_mul(FILE);
        let blocks = fs.blocks().saturating_sub(fs.blocks_free());
        Some(blocks.saturating_mul(u64::try_from(fs.block_size()).ok()?).saturating_add(files))
    };
    PRIVATE.iter().chain([&PRIVATE_HOME]).filter_map(used).sum()
}

/// The processes of this process's own namespace.
fn processes() -> impl Iterator<Item = String> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.parse::<u32>().is_ok())
}

/// Resident memory of all processes; what several share counts for each.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let pages = |pid: String| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        text.split(' ').nth(1)?.parse::<u64>().ok()
    };
    processes().filter_map(pages).sum::<u64>().saturating_mul(PAGE)
}

/// Resident memory of all processes; what several share is divided among them. Asked only when the sum above is too much,
/// for the kernel walks all their pages for it. A process that does not let itself be looked into counts in full.
fn proportional() -> u64 {
    let bytes = |pid: String| -> Option<u64> {
        let of = |file: &str, key: &str| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some(of("smaps_rollup", "Pss:").or_else(|| of("status", "VmRSS:"))?.saturating_mul(1024))
    };
    processes().filter_map(bytes).sum()
}

/// Bytes that all processes, those that ended too, have written to disks, less what was taken back before it got there;
/// and whether each of them let itself be looked into.
fn written() -> (u64, bool) {
    let (mut sum, mut all_known) = (0u64, true);
    for pid in processes() {
        let text = match std::fs::read_to_string(format!("/proc/{pid}/io")) {
            Ok(text) => text,
            // It ended since it was listed; what it wrote counts for who waited for it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => continue,
            Err(_) => {
                all_known = false;
                continue;
            }
        };
        let field = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)).and_then(|value| value.trim().parse::<u64>().ok())
        };
        match (field("write_bytes:"), field("cancelled_write_bytes:")) {
            (Some(wrote), Some(cancelled)) => sum = sum.saturating_add(wrote.saturating_sub(cancelled)),
            _ => all_known = false,
        }
    }
    (sum, all_known)
}
