//! What a supervisor does before there is a call: everything that no call changes.

use libc::sock_filter;

use super::layers::{self, Layers};
use super::namespaces::{self, Identity};
use super::root::{self, Root};
use super::{Failure, confine};
use crate::sandbox::wire::Template;

/// A supervisor that only needs a job.
pub struct Stage {
    /// The layers with the profile's grants; the workspace is still missing.
    pub layers: Layers,
    pub filter: Vec<sock_filter>,
    /// In the full tiers.
    pub private: Option<Private>,
}

/// The namespaces that this process is the first in.
pub struct Private {
    pub identity: Identity,
    pub root: Root,
}

impl Stage {
    /// Prepares this process. In the full tiers the process that returns is another one than that which called.
    pub fn prepare(template: &Template, filter: &[u8]) -> Result<Self, Failure> {
        let private = if template.tier.is_full() {
            let identity = namespaces::enter(template)?;
            let root = root::build(template, &identity)?;
            Some(Private { identity, root })
        } else {
            None
        };
        Ok(Stage { layers: layers::build(template)?, filter: confine::decode(filter), private })
    }
}
