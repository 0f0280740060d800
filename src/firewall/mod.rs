//! The firewall: four stages, in this order, each a pure function of the call, its facts and its own configuration. All
//! stages always judge; their verdicts combine by maximum. Only this module can make a [`Cleared`].

mod command;
mod path;
pub mod policy;
mod sandbox;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::call::Call;
use crate::facts::Facts;
use crate::sandbox::Plan;
use crate::verdict::{Finding, Severity, Stage, StageVerdict, Verdict};

/// A call that the firewall let through: the only thing that [`crate::registry::Tool::execute`] takes.
#[derive(Debug)]
pub struct Cleared {
    call: Call,
    confinement: Option<Plan>,
}

impl Cleared {
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// How the call's program is to be confined, where it runs one.
    pub fn confinement(&self) -> Option<&Plan> {
        self.confinement.as_ref()
    }
}

/// Runs one stage. A stage that panics is a DENY: whatever it could not judge does not run.
fn guarded(stage: Stage, judge: impl FnOnce() -> Vec<Finding>) -> StageVerdict {
    let findings = catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| {
        vec![Finding::new(
            "firewall.stage-panicked",
            Severity::Deny,
            format!("the {stage} stage failed to judge this call; report this as a bug"),
        )]
    });
    StageVerdict::new(stage, findings)
}
