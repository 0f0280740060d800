//! Stage: command. The findings of the command's analysis are the stage's findings, but for what an operator excepted;
//! nothing is judged twice here.

use crate::call::Call;
use crate::config::Exception;
use crate::facts::Facts;
use crate::verdict::{Finding, Severity};

/// Maps the facts of a command to findings. A tool without a command has none.
pub(super) fn judge(call: &Call, facts: &Facts, exceptions: &[Exception]) -> Vec<Finding> {
    let findings = facts.command.iter().flat_map(|command| &command.findings);
    findings.flat_map(|finding| excepted(call, facts, exceptions, finding)).collect()
}

/// The finding, or the exception in its place. One that is over excepts nothing, and says so.
fn excepted(call: &Call, facts: &Facts, exceptions: &[Exception], finding: &Finding) -> Vec<Finding> {
    if matches!(finding.severity, Severity::Fatal | Severity::Note) {
        return vec![finding.clone()];
    }
    let covering = || exceptions.iter().filter(|exception| exception.covers(finding, &call.principal.agent));
    let note = |id: &str, message: String| {
        let note = Finding::new(id, Severity::Note, message);
        match &finding.span {
            Some(span) => note.at(span.clone()),
            None => note,
        }
    };
    if let Some(exception) = covering().find(|exception| !exception.lapsed(facts.now)) {
        let Exception { rule, reason, expires, place, .. } = exception;
        let message = format!("`{rule}` is excepted until {expires:.0} ({reason}; {place}): {}", finding.message);
        return vec![note("command.excepted", message)];
    }
    let mut found = vec![finding.clone()];
    found.extend(covering().next().map(|exception| {
        let message = format!(
            "an exception from `{}` would cover this, and lapsed at {:.0} ({})",
            exception.rule, exception.expires, exception.place
        );
        note("command.exception-lapsed", message)
    }));
    found
}
