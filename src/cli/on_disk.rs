//! Commands that are only looked at, with the scripts of a workspace that they would run.

use crate::cli::Failure;
use crate::facts::Surroundings;
use crate::facts::command::{CommandFacts, Guard, Understanding};
use crate::facts::path::{Protection, Resolver};
use crate::facts::scripts::OnDisk;

/// A guard in its surroundings. Nobody is known to have written any of the files.
pub(super) struct Looking<'a> {
    guard: &'a Guard,
    here: &'a Surroundings,
    resolver: Resolver,
}

impl<'a> Looking<'a> {
    /// # Errors
    ///
    /// When the workspace or an extra root cannot be opened.
    pub fn new(guard: &'a Guard, here: &'a Surroundings) -> Result<Self, Failure> {
        let failed = |e: &dyn std::error::Error| Failure::usage(e.to_string());
        let protection = Protection::new(Vec::new()).map_err(|e| failed(&e))?;
        let resolver = Resolver::open(here, protection).map_err(|e| failed(&e))?;
        Ok(Looking { guard, here, resolver })
    }

    pub fn analyse(&self, command: &str) -> CommandFacts {
        self.guard.analyse_with(command, self.here, &self.scripts())
    }

    pub fn understand(&self, command: &str) -> Understanding {
        self.guard.understand_with(command, self.here, &self.scripts())
    }

    fn scripts(&self) -> OnDisk<'_> {
        OnDisk { resolver: &self.resolver, here: self.here, wrote: &|_| false }
    }
}
