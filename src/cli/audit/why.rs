//! `audit why`: every stage of a decision, the policy that decided, and what would have changed it.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use super::line::short;
use crate::audit::Decided;
use crate::audit::read::find_call;
use crate::audit::replay::{KeptError, Library};
use crate::cli::{Failure, exit, render};
use crate::config::Places;
use crate::firewall::Firewall;
use crate::gateway::{self, Judged};
use crate::verdict::{Decision, Finding, Severity, Stage, Verdict};

pub(super) fn run(log: &Path, call: &str, as_json: bool) -> Result<u8, Failure> {
    let view = find_call(log, call)?;
    let registry = crate::tools::all()?;
    let mut library = Library::new(&Places::from_env()?.state, gateway::definitions(&registry));
    let firewall = library.firewall(&view.decided.hashes);
    let decided = &view.decided;
    let policies = policies(decided, firewall.as_deref().ok());
    let changes = changes(decided, firewall.as_deref().ok());
    let mut out = render::out_or_data(as_json);
    if as_json {
        let told: Vec<_> = policies
            .iter()
            .map(|policy| json!({ "id": policy.id, "file": policy.file, "line": policy.line, "text": policy.text }))
            .collect();
        let value = json!({
            "call": decided.call.id, "seq": view.seq, "time": view.time, "answer": decided.effective,
            "verdict": decided.verdict, "policies": told, "would_change": changes,
        });
        writeln!(out, "{value}")?;
        return Ok(exit::OK);
    }
    writeln!(out, "call {}: {}", short(&decided.call.id), decided.effective)?;
    render::verdict(&mut out, &Judged::recorded(decided))?;
    for policy in &policies {
        writeln!(out, "\npolicy `{}` ({}:{}):", policy.id, policy.file, policy.line)?;
        for line in policy.text.lines() {
            writeln!(out, "    {}", render::line(line))?;
        }
    }
    if let Err(error) = &firewall {
        let why = match error {
            KeptError::Nameless => "the record is older than the keeping of rules".to_owned(),
            other => other.to_string(),
        };
        writeln!(out, "\nthe policies' texts are not at hand: {}", render::line(&why))?;
    }
    if !changes.is_empty() {
        writeln!(out, "\nwhat would have changed it:")?;
        for change in &changes {
            writeln!(out, "  - {}", render::line(change))?;
        }
    }
    for (time, step) in &view.approvals {
        let by = step.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        writeln!(out, "approval {} {:?}{by} at {time}", step.approval, step.step)?;
    }
    Ok(exit::OK)
}

/// A policy that spoke, as it was written.
struct Spoke {
    id: String,
    file: String,
    line: usize,
    text: String,
}

fn policies(decided: &Decided, firewall: Option<&Firewall>) -> Vec<Spoke> {
    let Some(firewall) = firewall else { return Vec::new() };
    let staged = decided.verdict.findings().filter(|(stage, _)| *stage == Some(Stage::Policy));
    staged
        .filter_map(|(_, finding)| firewall.policies.describe(&finding.id))
        .map(|policy| Spoke {
            id: policy.id.clone(),
            file: policy.file.to_string(),
            line: policy.line,
            text: policy.text.clone(),
        })
        .collect()
}

/// What would have led to another answer, a sentence each.
fn changes(decided: &Decided, firewall: Option<&Firewall>) -> Vec<String> {
    let verdict = &decided.verdict;
    let mut told = Vec::new();
    if let (Some(firewall), Some(facts)) = (firewall, &decided.facts) {
        for level in 1..=2_u8 {
            let then = firewall.judge(&decided.call, facts, level).stage(Stage::Policy);
            if verdict.stage(Stage::Policy) != Some(Decision::Allow) && then == Some(Decision::Allow) {
                let who = if level == 1 { "the operator" } else { "a reviewer" };
                told.push(format!("an approval by {who} (level {level}): the policies permit it then"));
                break;
            }
        }
    }
    let permits = |id: &str| {
        let policy = firewall.and_then(|firewall| firewall.policies.describe(id));
        policy.is_none_or(|policy| policy.effect == cedar_policy::Effect::Permit)
    };
    for (stage, finding) in verdict.findings().filter(|(_, finding)| finding.severity > Severity::Note) {
        let without = without(verdict, finding);
        // Without a policy that permits, nothing is permitted.
        let helps = stage != Some(Stage::Policy) || !permits(&finding.id);
        if helps && without < verdict.decision {
            told.push(format!(
                "without `{}`, which alone decided, the answer is {without}{}",
                finding.id,
                remedy(stage, finding)
            ));
        }
        if let Some(safer) = &finding.safer {
            told.push(format!("instead: {safer}"));
        }
    }
    if told.is_empty() && verdict.decision != Decision::Allow {
        let gravest: Vec<&str> = verdict
            .findings()
            .filter(|(_, finding)| finding.severity.decision() == verdict.decision)
            .map(|(_, finding)| finding.id.as_str())
            .collect();
        told.push(format!("nothing alone: {} stand against it together", gravest.join(", ")));
    }
    told.dedup();
    told
}

/// The decision when a finding is left out.
fn without(verdict: &Verdict, left_out: &Finding) -> Decision {
    let others = verdict.findings().map(|(_, finding)| finding).filter(|finding| *finding != left_out);
    others.map(|finding| finding.severity.decision()).max().unwrap_or(Decision::Allow)
}

/// Who could have let the finding pass, and how.
fn remedy(stage: Option<Stage>, finding: &Finding) -> &'static str {
    match (stage, finding.severity) {
        (_, Severity::Fatal) => "; nothing overrides it",
        (Some(Stage::Command), _) => "; an operator may configure an exception from it (`[[exceptions]]`)",
        (Some(Stage::Path), _) => "; a place in the workspace or in an extra root, or one that is not protected",
        (Some(Stage::Policy), _) => "; another policy",
        (Some(Stage::Sandbox), _) => "; another profile, or a kernel that confines more",
        (None, _) => "",
    }
}
