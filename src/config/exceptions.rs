//! Exceptions: what an operator lets through although a command rule objects. They come from the operator's own files
//! alone, name one rule and where it does not hold, and end by themselves.

use std::fmt;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::config::{ConfigError, fields, position};
use crate::verdict::Finding;

/// An exception as a file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub rule: Spanned<String>,
    pub agent: Option<String>,
    #[serde(default, deserialize_with = "fields::absolute")]
    pub workspace: Option<PathBuf>,
    pub program: Option<String>,
    pub command: Option<String>,
    pub reason: Spanned<String>,
    pub expires: Spanned<String>,
}

/// One rule that does not hold somewhere, until some day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// The rule's id.
    pub rule: String,
    /// For this agent alone.
    pub agent: Option<String>,
    /// In this workspace alone.
    pub workspace: Option<PathBuf>,
    /// For calls of this program alone.
    pub program: Option<String>,
    /// For calls that begin with these words alone.
    pub command: Option<String>,
    pub reason: String,
    pub expires: Timestamp,
    pub place: Place,
}

/// Where a file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl Exception {
    /// Whether it is over.
    pub fn lapsed(&self, now: Timestamp) -> bool {
        now >= self.expires
    }

    /// Whether it speaks of this finding in a call of this agent's. Where it holds by workspace is known before.
    pub fn covers(&self, finding: &Finding, agent: &str) -> bool {
        let mut words = finding.subject.as_deref().unwrap_or_default().split_whitespace();
        let begins = |command: &str, mut words: std::str::SplitWhitespace<'_>| {
            command.split_whitespace().all(|word| words.next() == Some(word))
        };
        self.rule == finding.id
            && self.agent.as_deref().is_none_or(|name| name == agent)
            && self.command.as_deref().is_none_or(|command| begins(command, words.clone()))
            && self.program.as_deref().is_none_or(|program| words.next() == Some(program))
    }

    /// Where it holds, in words.
    pub fn scope(&self) -> String {
        let workspace = self.workspace.as_ref().map(|path| path.display().to_string());
        let parts =
            [("agent", &self.agent), ("workspace", &workspace), ("program", &self.program), ("command", &self.command)];
        let told = parts.iter().filter_map(|(name, value)| value.as_ref().map(|value| format!("{name} {value}")));
        told.collect::<Vec<_>>().join(", ")
    }
}

/// Reads the exceptions of one file.
pub(super) fn resolve(path: &Path, text: &str, entries: Vec<Entry>) -> Result<Vec<Exception>, ConfigError> {
    entries.into_iter().map(|entry| one(path, text, entry)).collect()
}

fn one(path: &Path, text: &str, entry: Entry) -> Result<Exception, ConfigError> {
    let at = |span: std::ops::Range<usize>| {
        let (line, column) = position(text, Some(span));
        Place { file: path.to_owned(), line, column }
    };
    let wrong = |span, message: String| {
        let Place { line, column, .. } = at(span);
        ConfigError::Invalid { path: path.to_owned(), line, column, message }
    };
    let place = at(entry.rule.span());
    let scoped =
        entry.agent.is_some() || entry.workspace.is_some() || entry.program.is_some() || entry.command.is_some();
    let empty = [&entry.program, &entry.command].iter().any(|text| text.as_ref().is_some_and(|t| t.trim().is_empty()));
    if !scoped || empty {
        let message = "an exception needs a scope: an agent, a workspace, a program, or a command's first words";
        return Err(wrong(entry.rule.span(), message.to_owned()));
    }
    if entry.reason.get_ref().trim().is_empty() {
        return Err(wrong(entry.reason.span(), "an exception needs a reason, for whoever audits it".to_owned()));
    }
    let expires = moment(entry.expires.get_ref()).ok_or_else(|| {
        let message = format!(
            "`{}` is no time: write a day such as \"2027-01-31\", or a time such as \"2027-01-31T18:00:00Z\"",
            entry.expires.get_ref()
        );
        wrong(entry.expires.span(), message)
    })?;
    Ok(Exception {
        rule: entry.rule.into_inner(),
        agent: entry.agent,
        workspace: entry.workspace.map(|path| path.canonicalize().unwrap_or(path)),
        program: entry.program,
        command: entry.command,
        reason: entry.reason.into_inner(),
        expires,
        place,
    })
}

/// A moment; of a day, its end in universal time.
fn moment(text: &str) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let day = text.parse::<Date>().ok()?;
    TimeZone::UTC.to_timestamp(day.checked_add(1.day()).ok()?.at(0, 0, 0, 0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::File;
    use crate::verdict::Severity;

    fn read(text: &str) -> Result<Vec<Exception>, String> {
        let path = Path::new("portcullis.toml");
        let file: File = crate::config::parse(path, text).map_err(|e| e.to_string())?;
        resolve(path, text, file.exceptions).map_err(|e| e.to_string())
    }

    #[test]
    fn an_exception_names_rule_scope_reason_and_end() {
        let good = "[[exceptions]]\nrule = \"a\"\nprogram = \"git\"\nreason = \"why\"\nexpires = \"2027-01-31\"\n";
        let found = read(good).unwrap();
        assert_eq!(found[0].expires.to_string(), "2027-02-01T00:00:00Z");
        assert_eq!((found[0].place.line, found[0].scope().as_str()), (2, "program git"));
        for (from, to, said) in [
            ("program = \"git\"\n", "", "portcullis.toml:2:8: an exception needs a scope"),
            ("\"git\"", "\" \"", "needs a scope"),
            ("\"why\"", "\"\"", "portcullis.toml:4:10: an exception needs a reason"),
            ("2027-01-31", "soon", "portcullis.toml:5:11: `soon` is no time"),
            ("reason = \"why\"\n", "", "missing field `reason`"),
            ("expires = \"2027-01-31\"\n", "", "missing field `expires`"),
            ("reason", "because", "portcullis.toml:4:1: unknown field"),
            ("program = \"git\"", "workspace = \"here\"", "`here` is no absolute path"),
        ] {
            let told = read(&good.replace(from, to)).unwrap_err();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn an_exception_covers_its_own_rule_and_scope() {
        let exception = |scope: &str| {
            let text = format!("[[exceptions]]\nrule = \"a\"\n{scope}\nreason = \"r\"\nexpires = \"2027-01-31\"\n");
            read(&text).unwrap().remove(0)
        };
        let finding = |id: &str, subject: Option<&str>| {
            let mut finding = Finding::new(id, Severity::Deny, "");
            finding.subject = subject.map(Into::into);
            finding
        };
        let push = finding("a", Some("git push --force origin main"));
        for (scope, covers) in [
            ("agent = \"x\"", true),
            ("agent = \"y\"", false),
            ("program = \"git\"", true),
            ("program = \"gi\"", false),
            ("command = \"git push --force origin\"", true),
            ("command = \"git push --force orig\"", false),
            ("command = \"git push --force origin main more\"", false),
            ("program = \"git\"\nagent = \"y\"", false),
        ] {
            assert_eq!(exception(scope).covers(&push, "x"), covers, "{scope}");
        }
        assert!(!exception("program = \"git\"").covers(&finding("b", Some("git push")), "x"), "another rule");
        assert!(!exception("program = \"git\"").covers(&finding("a", None), "x"), "nobody knows which program");
    }
}
