//! What a grant covers, and what it does not.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval::{ApprovalId, Like, Scope};
use crate::call::Digest;
use crate::verdict::{Decision, Level, Severity, Stage, Verdict};

/// A finding as the person saw it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seen {
    /// Absent for what was noticed about the call as a whole.
    pub stage: Option<Stage>,
    pub id: String,
    pub severity: Severity,
    /// Of its words and what they are about: the same rule may object to another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<Digest>,
}

impl Seen {
    /// The findings of a verdict that ask for approval, in a fixed order.
    pub fn of(verdict: &Verdict) -> Vec<Seen> {
        let asks = verdict.findings().filter(|(_, finding)| finding.severity > Severity::Note);
        let mut seen: Vec<Seen> = asks
            .map(|(stage, f)| {
                let says = Some(Digest::of_json(&json!([f.message, f.span, f.subject])));
                Seen { stage, id: f.id.clone(), severity: f.severity, says }
            })
            .collect();
        seen.sort();
        seen
    }
}

/// A recorded approval: of one call for one use, or as its scope says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub id: ApprovalId,
    /// The call that was approved.
    pub digest: Digest,
    pub session: String,
    pub level: Level,
    pub findings: Vec<Seen>,
    /// Who granted it.
    pub by: String,
    pub expires: Timestamp,
    pub scope: Scope,
    /// What tells whether another command is like the one that was approved.
    pub like: Option<Like>,
}

/// Why a grant does not let a call through.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncovered {
    #[error("the call is denied now, which no approval overrides")]
    Denied,
    #[error("the approval does not name the finding `{id}`: ask again")]
    Finding { id: String },
    #[error("the approval is of level {}, and the call needs level {} now: ask again", .has.number(), .needs.number())]
    Level { has: Level, needs: Level },
    #[error("the approval is for another call: something about the call or the configuration has changed since")]
    OtherCall,
}

impl Grant {
    /// Whether the grant covers this call as it is judged now, before the granted level is applied.
    pub fn covers(&self, digest: &Digest, verdict: &Verdict) -> Result<(), Uncovered> {
        if self.digest != *digest {
            return Err(Uncovered::OtherCall);
        }
        self.covers_verdict(verdict)
    }

    /// Whether the grant covers a call that is like the approved one, where it was given for such calls.
    pub fn covers_like(&self, like: &Like, verdict: &Verdict) -> Result<(), Uncovered> {
        match (&self.scope, &self.like) {
            (Scope::Prefix { words }, Some(granted)) if granted.admits(words, like) => self.covers_verdict(verdict),
            _ => Err(Uncovered::OtherCall),
        }
    }

    fn covers_verdict(&self, verdict: &Verdict) -> Result<(), Uncovered> {
        match verdict.decision {
            Decision::Deny => return Err(Uncovered::Denied),
            Decision::Ask(needs) if needs > self.level => return Err(Uncovered::Level { has: self.level, needs }),
            Decision::Ask(_) | Decision::Allow => {}
        }
        // Each finding that was seen covers one like it: a second one of the same rule was not seen.
        let mut unused = self.findings.clone();
        for finding in Seen::of(verdict) {
            match unused.iter().position(|seen| *seen == finding) {
                Some(at) => drop(unused.swap_remove(at)),
                None => return Err(Uncovered::Finding { id: finding.id }),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Finding, StageVerdict};

    fn verdict(findings: &[(&str, Severity)]) -> Verdict {
        let findings = findings.iter().map(|(id, severity)| Finding::new(*id, *severity, "")).collect();
        Verdict::combine(Vec::new(), vec![StageVerdict::new(Stage::Command, findings)])
    }

    #[test]
    fn i4_a_grant_covers_the_place_that_a_finding_spoke_of() {
        let spoken = |message: &str| {
            let finding = Finding::new("path.protected", Severity::Warn, message);
            Verdict::combine(Vec::new(), vec![StageVerdict::new(Stage::Path, vec![finding])])
        };
        let digest = Digest::of("call");
        let grant = Grant {
            id: ApprovalId::random().unwrap(),
            digest,
            session: "s".into(),
            level: Level::Operator,
            findings: Seen::of(&spoken("`lnk` is protected (`.envrc`)")),
            by: "alice".into(),
            expires: Timestamp::MAX,
            scope: Scope::Call,
            like: None,
        };
        assert_eq!(grant.covers(&digest, &spoken("`lnk` is protected (`.envrc`)")), Ok(()));
        let other = grant.covers(&digest, &spoken("`lnk` is protected (`.github/workflows/*`)"));
        assert_eq!(other, Err(Uncovered::Finding { id: "path.protected".into() }));
    }

    #[test]
    fn i4_a_grant_covers_what_was_seen_and_nothing_else() {
        let digest = Digest::of("call");
        let grant = |level, findings: &[(&str, Severity)]| Grant {
            id: ApprovalId::random().unwrap(),
            digest,
            session: "s".into(),
            level,
            findings: Seen::of(&verdict(findings)),
            by: "alice".into(),
            expires: Timestamp::MAX,
            scope: Scope::Call,
            like: None,
        };
        let one = grant(Level::Operator, &[("a", Severity::Warn), ("b", Severity::Warn)]);
        let finding = |id: &str| Err(Uncovered::Finding { id: id.into() });
        for (now, expected) in [
            (vec![("a", Severity::Warn), ("b", Severity::Warn)], Ok(())),
            (vec![("b", Severity::Warn), ("n", Severity::Note)], Ok(())),
            (vec![], Ok(())),
            (vec![("a", Severity::Warn), ("c", Severity::Warn)], finding("c")),
            (vec![("a", Severity::Warn), ("a", Severity::Warn)], finding("a")),
            (vec![("a", Severity::Review)], Err(Uncovered::Level { has: Level::Operator, needs: Level::Reviewer })),
            (vec![("a", Severity::Deny)], Err(Uncovered::Denied)),
        ] {
            assert_eq!(one.covers(&digest, &verdict(&now)), expected, "judged now: {now:?}");
        }
        assert_eq!(one.covers(&Digest::of("other"), &verdict(&[])), Err(Uncovered::OtherCall));
        let two = grant(Level::Reviewer, &[("a", Severity::Warn), ("r", Severity::Review)]);
        assert_eq!(
            two.covers(&digest, &verdict(&[("a", Severity::Review)])),
            finding("a"),
            "a finding that became graver was not seen"
        );
    }
}
