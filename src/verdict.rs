//! What the firewall answers: a [`Verdict`] made of a [`Decision`] and the [`Finding`]s of each [`Stage`].

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The answer to a call, in order of severity: verdicts combine by maximum.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Decision {
    Allow,
    /// A person must approve first.
    Ask(Level),
    Deny,
}

impl Decision {
    /// The word without the level: `allow`, `ask` or `deny`.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask(_) => "ask",
            Decision::Deny => "deny",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::Allow => f.write_str("ALLOW"),
            Decision::Ask(level) => write!(f, "ASK({})", level.number()),
            Decision::Deny => f.write_str("DENY"),
        }
    }
}

impl From<Decision> for &'static str {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => "allow",
            Decision::Ask(Level::Operator) => "ask(1)",
            Decision::Ask(Level::Reviewer) => "ask(2)",
            Decision::Deny => "deny",
        }
    }
}

impl TryFrom<String> for Decision {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "allow" => Ok(Decision::Allow),
            "ask(1)" => Ok(Decision::Ask(Level::Operator)),
            "ask(2)" => Ok(Decision::Ask(Level::Reviewer)),
            "deny" => Ok(Decision::Deny),
            _ => Err(format!("`{text}` is no decision: expected allow, ask(1), ask(2) or deny")),
        }
    }
}

/// Who has to approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Level 1: the session's operator.
    Operator,
    /// Level 2: a reviewer, who is another person.
    Reviewer,
}

impl Level {
    /// The number that policies see as `context.approval.level`.
    pub fn number(self) -> u8 {
        match self {
            Level::Operator => 1,
            Level::Reviewer => 2,
        }
    }
}

/// The firewall's stages, in the order in which they explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    Policy,
    Command,
    Path,
    Sandbox,
}

impl Stage {
    pub const ALL: [Stage; 4] = [Stage::Policy, Stage::Command, Stage::Path, Stage::Sandbox];

    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Policy => "policy",
            Stage::Command => "command",
            Stage::Path => "path",
            Stage::Sandbox => "sandbox",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much a finding weighs. Each severity has exactly one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; decides nothing.
    Note,
    /// The operator is asked.
    Warn,
    /// A reviewer is asked.
    Review,
    /// Refused; an operator may configure an exception.
    Deny,
    /// Refused, and nothing overrides it.
    Fatal,
}

impl Severity {
    pub fn decision(self) -> Decision {
        match self {
            Severity::Note => Decision::Allow,
            Severity::Warn => Decision::Ask(Level::Operator),
            Severity::Review => Decision::Ask(Level::Reviewer),
            Severity::Deny | Severity::Fatal => Decision::Deny,
        }
    }
}

/// One thing that a stage noticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable identifier, such as `fs.delete-root` or `path.outside-workspace`.
    pub id: String,
    pub severity: Severity,
    /// What is wrong, in a sentence for the agent and the auditor.
    pub message: String,
    /// What to do instead, if there is such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safer: Option<String>,
    /// Where in the command text it was seen, in bytes.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub span: Option<Range<usize>>,
    /// The program call that it is about, as its words were understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Box<str>>,
}

impl Finding {
    pub fn new(id: impl Into<String>, severity: Severity, message: impl Into<String>) -> Self {
        Finding { id: id.into(), severity, message: message.into(), safer: None, span: None, subject: None }
    }

    pub fn safer(mut self, advice: impl Into<String>) -> Self {
        self.safer = Some(advice.into());
        self
    }

    pub fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }
}

/// A place in a text as `[start, end]`, on every front. What earlier versions wrote, `{"start", "end"}`, is read as well.
pub(crate) mod span {
    use std::ops::Range;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Pair([usize; 2]),
        Named { start: usize, end: usize },
    }

    pub fn serialize<S: Serializer>(span: &Option<Range<usize>>, to: S) -> Result<S::Ok, S::Error> {
        span.as_ref().map(|span| [span.start, span.end]).serialize(to)
    }

    /// The same of a place that is always known.
    pub fn pair<S: Serializer>(span: &Range<usize>, to: S) -> Result<S::Ok, S::Error> {
        [span.start, span.end].serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Range<usize>>, D::Error> {
        Ok(Option::<Written>::deserialize(from)?.map(|written| match written {
            Written::Pair([start, end]) | Written::Named { start, end } => start..end,
        }))
    }
}

/// One stage's judgement. Its decision follows from its findings and from nothing else.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageVerdict {
    pub stage: Stage,
    pub decision: Decision,
    pub findings: Vec<Finding>,
}

impl StageVerdict {
    /// The verdict that these findings amount to; without findings the stage has no objection.
    pub fn new(stage: Stage, findings: Vec<Finding>) -> Self {
        let decision = findings.iter().map(|f| f.severity.decision()).max().unwrap_or(Decision::Allow);
        StageVerdict { stage, decision, findings }
    }
}

/// The firewall's judgement of a call.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    /// What was noticed about the call as a whole, before any stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
    pub stages: Vec<StageVerdict>,
}

impl Verdict {
    /// Combines the stages' verdicts and the notes by maximum. Of no verdict at all, DENY.
    pub fn combine(notes: Vec<Finding>, stages: Vec<StageVerdict>) -> Self {
        let noted = notes.iter().map(|f| f.severity.decision()).max().unwrap_or(Decision::Allow);
        let decision = stages.iter().map(|s| s.decision).max().unwrap_or(Decision::Deny).max(noted);
        Verdict { decision, notes, stages }
    }

    /// A call that never reached the stages: it is denied, for this reason.
    pub fn refused(reason: Finding) -> Self {
        Verdict { decision: Decision::Deny, notes: vec![reason], stages: Vec::new() }
    }

    /// Adds an objection to the call as a whole.
    pub fn object(&mut self, finding: Finding) {
        self.decision = self.decision.max(finding.severity.decision());
        self.notes.push(finding);
    }

    /// Every finding, the notes first, then in the order of the stages.
    pub fn findings(&self) -> impl Iterator<Item = (Option<Stage>, &Finding)> {
        let staged = self.stages.iter().flat_map(|s| s.findings.iter().map(move |f| (Some(s.stage), f)));
        self.notes.iter().map(|f| (None, f)).chain(staged)
    }

    /// The decision of one stage.
    pub fn stage(&self, stage: Stage) -> Option<Decision> {
        self.stages.iter().find(|s| s.stage == stage).map(|s| s.decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_order_by_severity() {
        assert!(Decision::Allow < Decision::Ask(Level::Operator));
        assert!(Decision::Ask(Level::Operator) < Decision::Ask(Level::Reviewer));
        assert!(Decision::Ask(Level::Reviewer) < Decision::Deny);
    }

    #[test]
    fn a_place_is_a_pair_and_the_old_form_is_read() {
        let finding = Finding::new("a", Severity::Warn, "").at(3..8);
        let written = serde_json::to_string(&finding).unwrap();
        assert!(written.contains(r#""span":[3,8]"#), "{written}");
        let old = written.replace("[3,8]", r#"{"start":3,"end":8}"#);
        for text in [written, old] {
            assert_eq!(serde_json::from_str::<Finding>(&text).unwrap(), finding);
        }
    }

    #[test]
    fn i2_no_verdict_at_all_is_a_deny() {
        assert_eq!(Verdict::combine(Vec::new(), Vec::new()).decision, Decision::Deny);
    }

    #[test]
    fn i2_a_stage_decides_by_its_gravest_finding() {
        let verdict = StageVerdict::new(
            Stage::Path,
            vec![
                Finding::new("a", Severity::Warn, ""),
                Finding::new("b", Severity::Deny, ""),
                Finding::new("c", Severity::Note, ""),
            ],
        );
        assert_eq!(verdict.decision, Decision::Deny);
    }
}
