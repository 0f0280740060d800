//! Proving that the log is honest: every recorded call is decided again under the rules that its record names.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use crate::audit::event::{ApprovalEvent, Content, Decided, Event, Record, Step};
use crate::audit::read::{ReadError, records};
use crate::audit::redact::is_redacted;
use crate::audit::replay::Library;
use crate::verdict::{Decision, Finding, Verdict};

/// How many dissents are described.
const DESCRIBED: usize = 100;

/// Findings about a call as a whole that come after its judgement.
const LATER: &[&str] = &[
    "approval.not-covered",
    "approval.refused",
    "approval.standing",
    "approval.too-many",
    "audit.unavailable",
    "rules.stale",
];

/// Whether a finding says what came of the call after it was judged.
pub(super) fn is_later(id: &str) -> bool {
    LATER.contains(&id)
}

/// What deciding everything again came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rederived {
    /// Calls whose record is what the rules say.
    pub reproduced: u64,
    /// Calls that cannot be decided again: what the record says was redacted.
    pub undetermined: u64,
    /// Calls whose rules are not kept.
    pub without_rules: u64,
    /// Why the first of them have none.
    pub why: Vec<String>,
    /// Calls whose record is not what the rules say.
    pub dissents: Vec<Dissent>,
    /// Dissents beyond those that are described.
    pub more: u64,
}

impl Rederived {
    /// Whether every call was reproduced, as far as it can be.
    pub fn honest(&self) -> bool {
        self.dissents.is_empty() && self.without_rules == 0
    }
}

/// A record that is not what the rules say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dissent {
    pub seq: u64,
    pub call: String,
    pub recorded: Decision,
    pub derived: Decision,
    pub why: String,
}

/// Decides every call again.
///
/// # Errors
///
/// When the log cannot be read.
pub fn rederive(log: &Path, library: &mut Library<'_>) -> Result<Rederived, ReadError> {
    let mut found = Rederived::default();
    let mut grants = HashMap::new();
    for record in records(log)? {
        let Record { seq, content: Content::Event(event), .. } = record? else { continue };
        match event {
            Event::Decided(decided) => found.decide(seq, &decided, &mut grants, library),
            Event::Approval(step) if matches!(step.step, Step::Granted | Step::Consumed) => {
                grants.entry(step.approval.clone()).or_insert_with(Vec::new).push(step);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The steps of each approval so far.
type Grants = HashMap<String, Vec<ApprovalEvent>>;

impl Rederived {
    fn decide(&mut self, seq: u64, decided: &Decided, grants: &mut Grants, library: &mut Library<'_>) {
        let Some(facts) = &decided.facts else {
            // Nothing but a denial can be made without facts.
            return match decided.effective {
                Decision::Deny => self.reproduced += 1,
                _ => self.dissent(seq, decided, Decision::Deny, "it was let through without facts".to_owned()),
            };
        };
        let firewall = match library.firewall(&decided.hashes) {
            Ok(firewall) => firewall,
            Err(error) => {
                self.without_rules += 1;
                let why = error.to_string();
                if self.why.len() < 5 && !self.why.contains(&why) {
                    self.why.push(why);
                }
                return;
            }
        };
        let mut derived = firewall.judge(&decided.call, facts, 0);
        if let Some(why) = differs(&decided.verdict, &derived) {
            if redacted(decided) {
                self.undetermined += 1;
            } else {
                self.dissent(seq, decided, derived.decision, why);
            }
            return;
        }
        // What was objected after the judgement only makes it stricter.
        for note in decided.verdict.notes.iter().filter(|note| is_later(&note.id)) {
            derived.object(note.clone());
        }
        match consistent(decided, firewall.effective(&decided.call, &derived), grants) {
            Ok(()) => self.reproduced += 1,
            Err(why) => self.dissent(seq, decided, derived.decision, why),
        }
    }

    fn dissent(&mut self, seq: u64, decided: &Decided, derived: Decision, why: String) {
        if self.dissents.len() >= DESCRIBED {
            self.more += 1;
            return;
        }
        self.dissents.push(Dissent { seq, call: decided.call.id.clone(), recorded: decided.effective, derived, why });
    }
}

/// What tells the recorded judgement from the derived one, if anything does.
fn differs(recorded: &Verdict, derived: &Verdict) -> Option<String> {
    let notes = |verdict: &Verdict| -> Vec<Finding> {
        verdict.notes.iter().filter(|note| !is_later(&note.id)).cloned().collect()
    };
    for (was, is) in recorded.stages.iter().zip(&derived.stages) {
        if was != is {
            return Some(format!("the {} stage says other things than its record", is.stage));
        }
    }
    if recorded.stages.len() != derived.stages.len() {
        return Some("a stage is missing from the record".to_owned());
    }
    (notes(recorded) != notes(derived)).then(|| "what was noticed about the call as a whole differs".to_owned())
}

/// Whether the answer follows from the judgement and what people said.
fn consistent(decided: &Decided, derived: Decision, grants: &mut Grants) -> Result<(), String> {
    match (decided.effective, derived, &decided.grant) {
        (Decision::Allow, Decision::Allow, _) => Ok(()),
        (Decision::Allow, Decision::Ask(needed), Some(grant)) => {
            let steps = grants.get(grant).map(Vec::as_slice).unwrap_or_default();
            let granted = steps.iter().any(|step| {
                step.step == Step::Granted
                    && step.level >= needed
                    && (step.scope.is_some() || step.digest == decided.digest)
            });
            if granted { Ok(()) } else { Err(format!("the grant {grant} is not on record for this call and level")) }
        }
        (recorded, derived, _) if recorded == derived => Ok(()),
        (recorded, derived, _) => Err(format!("the answer was {recorded}, and follows as {derived}")),
    }
}

/// Whether anything in the record that a stage reads was redacted.
fn redacted(decided: &Decided) -> bool {
    serde_json::to_string(&decided.call.arguments).is_ok_and(|text| is_redacted(&text))
        || serde_json::to_string(&decided.facts).is_ok_and(|text| is_redacted(&text))
}
