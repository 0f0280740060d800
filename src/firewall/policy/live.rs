//! The set of policies in force, replaced as a whole or not at all.

use std::sync::{Arc, PoisonError, RwLock};

use crate::firewall::policy::diagnostic::PolicyError;
use crate::firewall::policy::load::Policies;
use crate::firewall::policy::source::Source;
use crate::registry::Definition;

/// Holds the current policies. A decision takes the set once and keeps it to the end, whatever is loaded meanwhile.
#[derive(Debug)]
pub struct Live {
    current: RwLock<Arc<Policies>>,
}

impl Live {
    pub fn new(policies: Policies) -> Self {
        Live { current: RwLock::new(Arc::new(policies)) }
    }

    /// The set in force.
    pub fn current(&self) -> Arc<Policies> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a new set into force and returns the one before it. A set that does not load changes nothing.
    pub fn reload(&self, sources: Vec<Source>, tools: &[&Definition]) -> Result<Arc<Policies>, PolicyError> {
        let fresh = Arc::new(Policies::load(sources, tools)?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::replace(&mut *current, fresh))
    }
}
