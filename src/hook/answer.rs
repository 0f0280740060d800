//! What an agent's own program is told: standard output, standard error and exit code.

use serde_json::Value;

use crate::gateway::Opinion;
use crate::hook::host::{EventRow, Host, Kind};
use crate::verdict::{Decision, Finding};

/// The answer to one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

impl Answer {
    /// Nothing is said: the program goes on as if there were no hook.
    pub fn goes_on(host: &Host, row: &EventRow) -> Self {
        Answer { stdout: text((host.answers.goes_on)(row)), stderr: String::new(), code: 0 }
    }

    /// The program does not do it. `row` is absent where it is not known what it would do.
    pub fn block(host: &Host, row: Option<&EventRow>, reason: &str) -> Self {
        let reason = plain(reason);
        let stdout = text((host.answers.block)(row, &reason));
        Answer { stdout, stderr: format!("{reason}\n"), code: host.answers.block_code }
    }

    /// The program asks a person, or does not do it where it is not known to ask.
    pub fn ask(host: &Host, row: &EventRow, reason: &str, input: Option<&Value>) -> Self {
        // The program is at its prompt already; to say nothing leaves it to the person.
        if row.kind == Kind::Permission {
            return Answer::goes_on(host, row);
        }
        match (host.answers.ask)(row, &plain(reason), input) {
            Some(answer) => Answer { stdout: text(Some(answer)), stderr: String::new(), code: 0 },
            None => Answer::block(host, Some(row), reason),
        }
    }

    /// The program goes on with another input.
    pub fn rewritten(host: &Host, row: &EventRow, input: &Value, reason: &str) -> Self {
        match (host.answers.rewrite)(row, input, &plain(reason)) {
            Some(answer) => Answer { stdout: text(Some(answer)), stderr: String::new(), code: 0 },
            None => {
                Answer::block(host, Some(row), "this agent takes no rewritten input, so nothing can be confined here")
            }
        }
    }
}

/// What speaks against a use of a tool, and what to do about it.
pub fn reason(opinion: &Opinion) -> String {
    let mut text = match opinion.decision {
        Decision::Deny => "Portcullis denies this".to_owned(),
        Decision::Ask(_) if opinion.pending.is_empty() => "Portcullis asks".to_owned(),
        Decision::Ask(_) => "Portcullis asks a person first, so this does not run now".to_owned(),
        Decision::Allow => return String::new(),
    };
    let findings: Vec<String> = opinion.findings.iter().take(6).map(told).collect();
    if !findings.is_empty() {
        text.push_str(": ");
        text.push_str(&findings.join("; "));
    }
    if !opinion.pending.is_empty() {
        let ids: Vec<&str> = opinion.pending.iter().map(|pending| pending.id.as_str()).collect();
        text.push_str(&format!(
            ". Pending: {}. A person can answer in a terminal of their own with `portcullis approvals grant ID`; then make \
             exactly the same call again. Do not try another way around it",
            ids.join(", ")
        ));
    }
    text
}

fn told(finding: &Finding) -> String {
    let safer = finding.safer.as_ref().map(|safer| format!(" (instead: {safer})")).unwrap_or_default();
    format!("{} [{}]{safer}", finding.message, finding.id)
}

fn text(value: Option<Value>) -> String {
    value.map(|value| format!("{value}\n")).unwrap_or_default()
}

/// Without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}
