//! What a grant would have allowed, shown before it is given.

use std::collections::BTreeSet;
use std::path::Path;

use crate::approval::{Approval, Exact, Like, Preview, Scope};
use crate::audit::read::{self, ReadError};
use crate::audit::{Content, Decided, Event};
use crate::verdict::{Decision, Severity};

/// How many calls are looked at.
const CALLS: usize = 200;
/// How many examples are shown.
const EXAMPLES: usize = 2;

/// Looks at the last calls on record.
pub(super) fn of(approval: &Approval, exact: Option<&Exact>, log: &Path) -> Result<Vec<Preview>, ReadError> {
    let mut calls = Vec::new();
    for record in read::newest(log)? {
        if let Content::Event(Event::Decided(decided)) = record?.content {
            calls.push(decided);
            if calls.len() == CALLS {
                break;
            }
        }
    }
    let preview = |scope: Scope| {
        let allowed: Vec<&Decided> =
            calls.iter().map(|call| &**call).filter(|call| would_allow(approval, exact, &scope, call)).collect();
        let examples = allowed.iter().take(EXAMPLES).map(|call| call.subject()).collect();
        Preview { calls: calls.len(), allowed: allowed.len(), examples, scope }
    };
    Ok(approval.scopes().into_iter().map(preview).collect())
}

/// Whether a call asked, and a grant of this scope would have answered it: as far as the record tells, whose text may be
/// redacted. Sessions do not matter here: what such calls were before is what is of interest.
fn would_allow(approval: &Approval, exact: Option<&Exact>, scope: &Scope, decided: &Decided) -> bool {
    let (call, Some(facts)) = (&decided.call, &decided.facts) else { return false };
    let asked = matches!(decided.effective, Decision::Ask(level) if level <= approval.level);
    if !asked || call.tool != approval.tool || call.principal.agent != approval.agent {
        return false;
    }
    let seen: BTreeSet<&str> = approval.findings.iter().map(|seen| seen.id.as_str()).collect();
    let mut asking = decided.verdict.findings().map(|(_, finding)| finding).filter(|f| f.severity > Severity::Note);
    if !asking.all(|finding| seen.contains(finding.id.as_str())) {
        return false;
    }
    match scope {
        Scope::Call => decided.digest == approval.digest && call.id == approval.call_id,
        Scope::Same => exact.is_some_and(|exact| exact.call.arguments == call.arguments && exact.call.cwd == call.cwd),
        Scope::Prefix { words } => {
            // The frame of a past call is not on record: the place that it has in common stands for it.
            approval.like.as_ref().is_some_and(|like| like.admits(words, &Like::of(call, facts, like.frame)))
        }
    }
}
