//! Deciding the past again: under other rules, to see what they would have changed, or under the same, to see that the
//! log is honest.

mod kept;
mod rederive;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

pub use self::kept::{InForce, Kept, KeptError, Library, Settings};
pub use self::rederive::{Dissent, Rederived, rederive};
use crate::audit::event::{Content, Decided, Event, Record};
use crate::audit::read::{ReadError, records};
use crate::audit::redact::is_redacted;
use crate::facts::command::Guard;
use crate::facts::{Facts, Surroundings};
use crate::firewall::Firewall;
use crate::firewall::policy::Policies;
use crate::verdict::{Decision, Verdict};

/// How many examples of a flip are kept.
const EXAMPLES: usize = 5;

/// What the past is decided by now.
pub struct Rules<'a> {
    pub policies: Arc<Policies>,
    /// Analyses the commands again; without it the facts on record are judged.
    pub guard: Option<&'a Guard>,
    /// Where a call was, for analysing its command.
    pub surroundings: &'a dyn Fn(&Path) -> Surroundings,
    /// For records that name no settings that were kept.
    pub settings: Settings,
}

/// A call that would be answered otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flip {
    pub seq: u64,
    pub call: String,
    pub time: Timestamp,
    pub tool: String,
    pub subject: String,
    pub was: Decision,
    pub is: Decision,
    /// The finding that makes the difference: of the answer that is stricter.
    pub rule: String,
}

impl Flip {
    pub fn looser(&self) -> bool {
        self.is < self.was
    }
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// How many calls were decided again.
    pub calls: u64,
    /// How many of them are answered less strictly, and more strictly.
    pub looser: u64,
    pub stricter: u64,
    /// Calls that cannot be decided, because what a rule reads was redacted or is not on record. They are in no other
    /// count.
    pub undetermined: u64,
    /// How many calls went from the one answer to the other.
    pub matrix: BTreeMap<String, BTreeMap<String, u64>>,
    /// The flips by the rule that makes the difference, and by tool: how many became looser, and stricter.
    pub by_rule: BTreeMap<String, (u64, u64)>,
    pub by_tool: BTreeMap<String, (u64, u64)>,
    /// A few flips of each kind.
    pub examples: Vec<Flip>,
}

/// Decides every call on record since a time again.
///
/// # Errors
///
/// When the log cannot be read.
pub fn replay(
    log: &Path,
    since: Option<Timestamp>,
    rules: &Rules<'_>,
    library: &mut Library<'_>,
) -> Result<Replayed, ReadError> {
    let mut found = Replayed::default();
    for record in records(log)? {
        let Record { seq, time, content: Content::Event(Event::Decided(decided)), .. } = record? else { continue };
        if since.is_some_and(|since| time < since) {
            continue;
        }
        match again(&decided, rules, library) {
            None => found.undetermined += 1,
            Some(verdict) => found.add(seq, time, &decided, &verdict),
        }
    }
    Ok(found)
}

/// The verdict on a call on record under other rules. Absent where it cannot be known.
fn again(decided: &Decided, rules: &Rules<'_>, library: &mut Library<'_>) -> Option<Verdict> {
    let mut facts = decided.facts.clone()?;
    let settings = decided.hashes.settings.and_then(|hash| library.settings_once(hash));
    let settings = settings.unwrap_or_else(|| Arc::new(rules.settings.clone()));
    if let Some(guard) = rules.guard
        && facts.command.is_some()
    {
        facts = analysed(decided, facts, guard, rules)?;
    }
    if reads_redacted(decided, &facts, &rules.policies) {
        return None;
    }
    let firewall = Firewall {
        policies: Arc::clone(&rules.policies),
        restrict_to_workspace: settings.restrict_to_workspace,
        exceptions: settings.exceptions.clone().into(),
    };
    Some(firewall.judge(&decided.call, &facts, 0))
}

/// The facts with the command analysed again. Absent where the text was redacted, or files that it runs, which are not on
/// record, had a say.
fn analysed(decided: &Decided, mut facts: Facts, guard: &Guard, rules: &Rules<'_>) -> Option<Facts> {
    let command = facts.command.as_mut()?;
    let text = decided.call.text("command")?;
    if !command.scripts.is_empty() || is_redacted(text) {
        return None;
    }
    let workspace = decided.workspace.as_deref()?;
    let here = Surroundings { cwd: decided.call.cwd.clone(), ..(rules.surroundings)(workspace) };
    *command = guard.analyse(text, &here);
    Some(facts)
}

/// Whether a policy that can apply may read something that was redacted. That a policy names the place is enough.
fn reads_redacted(decided: &Decided, facts: &Facts, policies: &Policies) -> bool {
    let hidden: Vec<&String> = decided
        .call
        .arguments
        .iter()
        .filter(|(_, value)| is_redacted(&value.to_string()))
        .map(|(name, _)| name)
        .collect();
    let placed =
        facts.paths.iter().any(|path| is_redacted(&path.given) || path.lands.as_deref().is_some_and(is_redacted));
    let hosted = facts.command.iter().flat_map(|command| &command.hosts).any(|host| is_redacted(host));
    if hidden.is_empty() && !placed && !hosted {
        return false;
    }
    policies.iter().any(|policy| {
        let text = &policy.text;
        hidden.iter().any(|name| text.contains("input") && text.contains(name.as_str()))
            || placed && (text.contains("resource in") || text.contains("resource =="))
            || hosted && text.contains("hosts")
    })
}

impl Replayed {
    fn add(&mut self, seq: u64, time: Timestamp, decided: &Decided, verdict: &Verdict) {
        self.calls += 1;
        let (was, is) = (judged(&decided.verdict), verdict.decision);
        let word = |decision: Decision| <&str>::from(decision).to_owned();
        *self.matrix.entry(word(was)).or_default().entry(word(is)).or_default() += 1;
        if was == is {
            return;
        }
        let stricter = if is > was { verdict } else { &decided.verdict };
        let gravest = stricter.findings().map(|(_, finding)| finding).max_by_key(|finding| finding.severity);
        let rule = gravest.map_or_else(|| "no permit".to_owned(), |finding| finding.id.clone());
        let looser = is < was;
        for (counts, key) in [(&mut self.by_rule, &rule), (&mut self.by_tool, &decided.call.tool)] {
            let (loose, strict) = counts.entry(key.clone()).or_default();
            *(if looser { loose } else { strict }) += 1;
        }
        *(if looser { &mut self.looser } else { &mut self.stricter }) += 1;
        let alike = self.examples.iter().filter(|flip| (flip.was, flip.is, &flip.rule) == (was, is, &rule)).count();
        if alike < EXAMPLES {
            let (call, tool) = (decided.call.id.clone(), decided.call.tool.clone());
            self.examples.push(Flip { seq, call, time, tool, subject: decided.subject(), was, is, rule });
        }
    }
}

/// What the firewall said, without what was objected later: a person's refusal, a record that could not be kept.
fn judged(verdict: &Verdict) -> Decision {
    let noted = verdict.notes.iter().filter(|note| !rederive::is_later(&note.id)).map(|note| note.severity.decision());
    let staged = verdict.stages.iter().map(|stage| stage.decision);
    // Without stages nothing was judged.
    if verdict.stages.is_empty() { verdict.decision } else { noted.chain(staged).max().unwrap_or(verdict.decision) }
}
