//! The firewall: four stages, in this order, each a pure function of the call, its facts and its own configuration. All
//! stages always judge; their verdicts combine by maximum. Only this module can make a [`Cleared`].

mod command;
mod path;
pub mod policy;
mod sandbox;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::approval::{Grant, Like, Scope};
use crate::call::{Call, Digest};
use crate::config::Exception;
use crate::facts::Facts;
use crate::facts::path::{Handle, Handles};
use crate::firewall::policy::{Policies, standing_level};
use crate::sandbox::Plan;
use crate::verdict::{Decision, Finding, Severity, Stage, StageVerdict, Verdict};

/// What the stages judge by, besides the call and its facts. One firewall never changes: a reload makes a new one, so
/// that a call is judged, approved and cleared by the same rules.
#[derive(Clone, Debug)]
pub struct Firewall {
    pub policies: Arc<Policies>,
    /// Whether file tools and commands must stay inside the workspace and the extra roots.
    pub restrict_to_workspace: bool,
    /// What an operator excepted in this workspace.
    pub exceptions: Arc<[Exception]>,
}

/// A call ready to be judged: what it is, what is known of it, and what it would be run with.
#[derive(Debug)]
pub struct Prepared {
    pub call: Call,
    pub facts: Facts,
    /// The files that the facts are about, as the tool will use them.
    pub handles: Handles,
    /// The confinement, where the tool runs a program.
    pub plan: Option<Plan>,
    /// What binds judged, approved and executed together.
    pub digest: Digest,
    /// The same without the arguments and what they lead to: what binds grants for calls that are alike.
    pub frame: Digest,
}

/// A call that the firewall let through: the only thing that [`crate::registry::Tool::execute`] takes.
///
/// Nobody else can make one (invariant I1):
///
/// ```compile_fail,E0451
/// use portcullis::firewall::{Cleared, Prepared};
///
/// fn forge(prepared: Prepared) -> Cleared {
///     Cleared { prepared }
/// }
/// ```
#[derive(Debug)]
pub struct Cleared {
    prepared: Prepared,
}

impl Cleared {
    pub fn call(&self) -> &Call {
        &self.prepared.call
    }

    /// The file that an argument named, as it was checked.
    pub fn handle(&self, argument: &str) -> Option<&Handle> {
        self.prepared.handles.get(argument)
    }

    /// The confinement that a program is to run in.
    pub fn confinement(&self) -> Option<&Plan> {
        self.prepared.plan.as_ref()
    }
}

/// What speaks for a call that asks.
#[derive(Clone, Copy, Debug)]
pub enum Approval<'a> {
    /// Nothing but the principal's mode.
    Standing,
    /// A person granted it.
    Granted(&'a Grant),
}

impl Firewall {
    /// The order of the stages. `level` is what has been approved: 0 nobody, 1 the operator, 2 a reviewer.
    pub fn judge(&self, call: &Call, facts: &Facts, level: u8) -> Verdict {
        let stages = vec![
            guarded(Stage::Policy, || policy::judge(call, facts, &self.policies, level)),
            guarded(Stage::Command, || command::judge(call, facts, &self.exceptions)),
            guarded(Stage::Path, || path::judge(call, facts, self.restrict_to_workspace)),
            guarded(Stage::Sandbox, || sandbox::judge(call, facts)),
        ];
        settle(call, Verdict::combine(facts.notes.clone(), stages))
    }

    /// The answer to a call when nobody is asked: its verdict, less what the principal's mode grants in advance.
    pub fn effective(&self, call: &Call, verdict: &Verdict) -> Decision {
        match verdict.decision {
            Decision::Ask(level) if level.number() <= standing(call, verdict) => Decision::Allow,
            decision => decision,
        }
    }

    /// Clears a call whose verdict is ALLOW, or ASK where the approval covers it. The policies must then permit it with
    /// the approved level, and every other objection must be one that the approval names.
    ///
    /// # Errors
    ///
    /// The verdict that stands against the call.
    pub fn clear(&self, prepared: Prepared, approval: Approval<'_>) -> Result<Cleared, Verdict> {
        self.check(&prepared, approval).map(|()| Cleared { prepared })
    }

    /// The same for a call that somebody else runs.
    ///
    /// # Errors
    ///
    /// As [`Firewall::clear`].
    pub fn check(&self, prepared: &Prepared, approval: Approval<'_>) -> Result<(), Verdict> {
        let Prepared { call, facts, digest, frame, .. } = prepared;
        let mut verdict = self.judge(call, facts, 0);
        if verdict.decision == Decision::Allow {
            return Ok(());
        }
        let level = match approval {
            Approval::Standing => standing(call, &verdict),
            Approval::Granted(grant) => {
                let covered = match &grant.scope {
                    Scope::Call | Scope::Same => grant.covers(digest, &verdict),
                    Scope::Prefix { .. } => grant.covers_like(&Like::of(call, facts, *frame), &verdict),
                };
                if let Err(uncovered) = covered {
                    verdict.object(Finding::new("approval.not-covered", Severity::Warn, uncovered.to_string()));
                    return Err(verdict);
                }
                grant.level.number()
            }
        };
        let asked_within = matches!(verdict.decision, Decision::Ask(needed) if needed.number() <= level);
        let permitted = self.judge(call, facts, level).stage(Stage::Policy) == Some(Decision::Allow);
        if asked_within && permitted { Ok(()) } else { Err(verdict) }
    }
}

/// Runs one stage. A stage that panics is a DENY: whatever it could not judge does not run.
fn guarded(stage: Stage, judge: impl FnOnce() -> Vec<Finding>) -> StageVerdict {
    let findings = catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| {
        let message =
            format!("the {stage} stage failed to judge this call, so it is denied; please report this as a bug");
        vec![Finding::new("firewall.stage-panicked", Severity::Deny, message)]
    });
    StageVerdict::new(stage, findings)
}

/// Findings that say that a bound was hit or a part could not be read, so that graver ones may be missing.
const UNJUDGED: &[&str] =
    &["command.not-fully-analysed", "command.script-not-analysed", "path.not-fully-checked", "url.not-fully-checked"];

/// What the principal's mode answers in advance: nothing where something that asks was left unjudged. It answers for
/// what was seen, and whoever could exhaust a bound would choose what that is.
fn standing(call: &Call, verdict: &Verdict) -> u8 {
    let mut asking = verdict.findings().map(|(_, finding)| finding).filter(|finding| finding.severity > Severity::Note);
    if asking.any(|finding| UNJUDGED.contains(&finding.id.as_str())) { 0 } else { standing_level(&call.principal) }
}

/// Where nobody is there to answer, what asks is denied, unless the mode granted it in advance.
fn settle(call: &Call, mut verdict: Verdict) -> Verdict {
    let asks = matches!(verdict.decision, Decision::Ask(level) if level.number() > standing(call, &verdict));
    if call.principal.unattended && asks {
        let message = "this needs an approval, and nobody is there to give it: the agent is configured as unattended";
        verdict.object(Finding::new("approval.unattended", Severity::Deny, message));
    }
    verdict
}
