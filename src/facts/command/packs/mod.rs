//! Rule packs as files: TOML, read strictly. Every problem names file, line and column.

pub(super) mod lints;
#[cfg(test)]
mod lints_tests;
pub(super) mod rules;

use serde::Deserialize;
use toml::Spanned;

use crate::facts::command::effects::target::Kinds;
use crate::verdict::Severity;

/// The text of a pack, and who wrote it.
#[derive(Clone, Debug)]
pub struct PackSource {
    /// The file's name, for messages.
    pub file: String,
    pub text: String,
    pub trust: Trust,
}

/// Who stands behind a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// From a workspace: may add rules and raise severities, nothing else.
    Workspace,
    /// From the operator's configuration: may also lower what is not fatal.
    User,
    /// Part of this program.
    Own,
}

/// Why a pack cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct PackError {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    pub problem: PackProblem,
}

/// What is wrong with a pack.
#[derive(Debug, thiserror::Error)]
pub enum PackProblem {
    #[error("{0}")]
    Syntax(String),
    #[error("unknown severity `{0}`: the severities are fatal, deny, review, warn, note")]
    Severity(String),
    #[error("unknown target `{name}`: the targets are {}", Kinds::names().join(", "))]
    Target { name: String },
    #[error("a second rule with the id `{0}`: ids are unique over all packs; use [[override]] to change a severity")]
    DuplicateId(String),
    #[error("no rule has the id `{0}`")]
    UnknownId(String),
    #[error("rule `{0}` matches everything: give it a program, an effect or a target")]
    Unconditional(String),
    #[error("`{id}` may not be lowered here: {why}")]
    Lowered { id: String, why: &'static str },
    /// What does no harm and is most likely not meant.
    #[error("rule `{id}` {what}")]
    Lint { id: String, what: String },
    #[error("rule `{id}`: the example `{example}` {fault}")]
    Example { id: String, example: String, fault: &'static str },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PackFile {
    #[serde(default)]
    pub rule: Vec<RuleEntry>,
    #[serde(default, rename = "override")]
    pub overrides: Vec<OverrideEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideEntry {
    pub id: Spanned<String>,
    pub severity: Spanned<String>,
}

/// A rule as a pack writes it. All predicates that are given must hold; within a list, one suffices unless said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleEntry {
    pub id: Spanned<String>,
    pub severity: Spanned<String>,
    /// What is wrong, for people and agents.
    pub reason: String,
    /// A command to use instead.
    #[serde(default)]
    pub safer: Option<String>,
    /// Where more is said about it.
    #[serde(default)]
    pub references: Vec<String>,
    /// Programs by base name; a trailing `*` stands for any end.
    #[serde(default)]
    pub program: Vec<String>,
    /// The first words after the program's own options.
    #[serde(default)]
    pub subcommand: Vec<String>,
    /// One of these options.
    #[serde(default)]
    pub option: Vec<String>,
    /// A second list of which one option must be given too.
    #[serde(default)]
    pub and_option: Vec<String>,
    /// None of these options.
    #[serde(default)]
    pub no_option: Vec<String>,
    /// One argument matches one of these patterns (`*` and `?`, any case).
    #[serde(default)]
    pub arg: Vec<String>,
    /// No argument matches one of these.
    #[serde(default)]
    pub no_arg: Vec<String>,
    /// One operand is of one of these kinds.
    pub operand: Option<Spanned<Vec<String>>>,
    /// One effect of the call is one of these ...
    #[serde(default)]
    pub effect: Vec<String>,
    /// ... on one of these kinds of targets ...
    pub target: Option<Spanned<Vec<String>>>,
    /// ... and on none of these ...
    pub no_target: Option<Spanned<Vec<String>>>,
    /// ... recursively, or not.
    #[serde(default)]
    pub recursive: Option<bool>,
    /// The program runs with no arguments at all.
    #[serde(default)]
    pub bare: Option<bool>,
    /// Effects that the call is said to have where the rule fires.
    #[serde(default)]
    pub adds: Vec<String>,
    /// Whether it speaks of what scripts on disk do too that somebody else wrote. What depends on how they are called
    /// says nothing there.
    #[serde(default = "yes")]
    pub in_scripts: bool,
    /// Commands that the rule must find.
    #[serde(default, rename = "match")]
    pub matches: Vec<Spanned<String>>,
    /// Commands that it must not find.
    #[serde(default)]
    pub not_match: Vec<Spanned<String>>,
}

fn yes() -> bool {
    true
}

impl RuleEntry {
    /// What it asks of a call, by the pack's own names.
    pub fn predicates(&self) -> Vec<(&'static str, Vec<String>)> {
        let kinds =
            |kinds: &Option<Spanned<Vec<String>>>| kinds.as_ref().map(|k| k.get_ref().clone()).unwrap_or_default();
        let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string()).into_iter().collect();
        let all = [
            ("program", self.program.clone()),
            ("subcommand", self.subcommand.clone()),
            ("option", self.option.clone()),
            ("and_option", self.and_option.clone()),
            ("no_option", self.no_option.clone()),
            ("arg", self.arg.clone()),
            ("no_arg", self.no_arg.clone()),
            ("operand", kinds(&self.operand)),
            ("effect", self.effect.clone()),
            ("target", kinds(&self.target)),
            ("no_target", kinds(&self.no_target)),
            ("recursive", flag(self.recursive)),
            ("bare", flag(self.bare)),
        ];
        all.into_iter().filter(|(_, words)| !words.is_empty()).collect()
    }
}

impl PackSource {
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(&self.text).matches('\n').count() + 1
    }

    pub(crate) fn read(&self) -> Result<PackFile, PackError> {
        toml::from_str(&self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, PackProblem::Syntax(error.message().to_owned()))
        })
    }

    pub(crate) fn error(&self, at: usize, problem: PackProblem) -> PackError {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = self.line(at);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        PackError { file: self.file.clone(), line, column, problem }
    }

    pub(crate) fn severity(&self, text: &Spanned<String>) -> Result<Severity, PackError> {
        Ok(match text.get_ref().as_str() {
            "fatal" => Severity::Fatal,
            "deny" => Severity::Deny,
            "review" => Severity::Review,
            "warn" => Severity::Warn,
            "note" => Severity::Note,
            other => return Err(self.error(text.span().start, PackProblem::Severity(other.to_owned()))),
        })
    }

    pub(crate) fn kinds(&self, names: Option<&Spanned<Vec<String>>>) -> Result<Kinds, PackError> {
        let Some(names) = names else { return Ok(Kinds::default()) };
        Kinds::parse(names.get_ref()).map_err(|name| self.error(names.span().start, PackProblem::Target { name }))
    }
}
