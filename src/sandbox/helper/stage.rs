//! What a supervisor does before there is a call: everything that no call changes.

use libc::sock_filter;

use super::layers::{self, Layers};
use super::memory_files::MemoryFiles;
use super::namespaces::{self, Identity};
use super::root::{self, Root};
use super::{Failure, confine};
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
}

impl Stage {
    /// Prepares this process. In the full tiers the process that returns is another one than that which called.
    pub fn prepare(template: &Template, filter: &[u8]) -> Result<Self, Failure> {
        let filter = confine::decode(filter);
        if !template.tier.is_full() {
            let layers = layers::build(template)?;
            let memory_files = confine::begin(template, filter)?;
            return Ok(Stage { layers, memory_files, private: None });
        }
        let identity = namespaces::enter(template)?;
        let root = root::build(template, &identity)?;
        let private = Some(Private { identity, root, filter });
        Ok(Stage { layers: layers::build(template)?, memory_files: None, private })
    }
}
