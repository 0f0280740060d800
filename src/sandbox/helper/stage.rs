//! What a supervisor does before there is a call: everything that no call changes.

use libc::sock_filter;

use super::layers::{self, Layers};
use super::memory_files::MemoryFiles;
use super::namespaces::{self, First, Identity};
use super::root::{self, Root};
use super::{Failure, confine};
use crate::sandbox::cgroup::{Group, Places};
use crate::sandbox::wire::Template;

/// A supervisor that only needs a job.
pub struct Stage {
    /// The layers with the profile's grants; the workspace is still missing.
    pub layers: Layers,
    /// In the landlock tier, where the kernel can.
    pub memory_files: Option<MemoryFiles>,
    /// In the full tiers.
    pub private: Option<Private>,
}

/// The namespaces that this process is the first in.
pub struct Private {
    pub identity: Identity,
    pub root: Root,
    /// To be installed last: it refuses the mounts that are still to be made.
    pub filter: Vec<sock_filter>,
    pub group: Group,
}

/// Ignores no signal but SIGPIPE and, until it has a child to wait for, SIGCHLD: whoever started the gateway may have ignored some, and programs would too. What is caught is
/// reset when they start. Signals that cannot be changed refuse, which is as well.
fn heed_signals() {
    for signal in (1..=64).filter(|signal| ![libc::SIGPIPE, libc::SIGCHLD].contains(signal)) {
        // SAFETY: takes numbers alone; all-zero is a valid sigaction.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

impl Stage {
    /// Prepares this process. In the full tiers the process that returns is another one than that which called.
    pub fn prepare(template: &Template, filter: &[u8], groups: &Places) -> Result<Self, Failure> {
        let filter = confine::decode(filter);
        heed_signals();
        if !template.tier.is_full() {
            let layers = layers::build(template)?;
            let memory_files = confine::begin(template, filter)?;
            return Ok(Stage { layers, memory_files, private: None });
        }
        let First { identity, group } = namespaces::enter(template, groups)?;
        let root = root::build(template, &identity)?;
        let private = Some(Private { identity, root, filter, group });
        Ok(Stage { layers: layers::build(template)?, memory_files: None, private })
    }
}
