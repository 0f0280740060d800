//! The policy stage's judgement: Cedar's two answers, asked at rising levels of approval, make three.

use std::collections::BTreeMap;

use cedar_policy::{Effect, Entities, Request};

use crate::call::Call;
use crate::facts::Facts;
use crate::firewall::policy::load::Policies;
use crate::firewall::policy::request::Action;
use crate::firewall::policy::shape::Residue;
use crate::firewall::policy::slice::{Outcome, Rule, evaluate};
use crate::verdict::{Finding, Severity};

/// The highest level of approval there is: a reviewer's.
pub(super) const HIGHEST: u8 = 2;
/// The most resources that one call is judged for, and the most files that it touches besides.
const MAX_RESOURCES: usize = 64;
const MAX_TOUCHED: usize = 4096;

/// Judges a call as if an approval of `level` had been given: 0 nobody, 1 the session's operator, 2 a reviewer.
///
/// ALLOW where the policies allow at that level. Otherwise the first higher level that allows makes it ASK of that level,
/// and its findings are what stood in the way. Where none does, DENY. Whatever keeps the policies from being evaluated
/// as they are written is a DENY too: Cedar itself would skip such a policy.
pub fn judge(call: &Call, facts: &Facts, policies: &Policies, level: u8) -> Vec<Finding> {
    let Some(action) = policies.actions.get(&call.tool) else {
        let message = format!("no policy can speak of the tool `{}`: it is not in the policy schema", call.tool);
        return vec![Finding::new("policy.unknown-tool", Severity::Deny, message)];
    };
    let (question, residue) = match action.question(call, facts) {
        Ok(question) => question,
        Err(why) => {
            let message = format!("this call cannot be put to the policies: {why}");
            return vec![Finding::new("policy.no-request", Severity::Deny, message)];
        }
    };
    let mut findings = of_arguments(action, &residue);
    if question.resources.len() > MAX_RESOURCES {
        let message = format!("the call names more than {MAX_RESOURCES} files; name fewer in one call");
        findings.push(Finding::new("policy.too-many-resources", Severity::Deny, message));
        return findings;
    }
    if question.touched.len() > MAX_TOUCHED {
        let message = format!("the call touches more than {MAX_TOUCHED} files of which policies speak; touch fewer");
        findings.push(Finding::new("policy.too-many-resources", Severity::Deny, message));
        return findings;
    }
    let mut answers = Answers::default();
    for (resource, entities) in &question.resources {
        let ask = |level| question.at(level, resource);
        let all = Put { action, ask, around: entities, besides: false };
        answers.add(all.of_resource(call, level.min(HIGHEST)));
    }
    for (resource, entities) in &question.touched {
        let ask = |level| question.at(level, resource);
        let place: &str = resource.eid().as_ref();
        let besides = Put { action, ask, around: entities, besides: true };
        let of = |finding: Finding| {
            let message = format!("{}: `{place}`", finding.message);
            Finding { message, ..finding }
        };
        answers.add(besides.of_resource(call, level.min(HIGHEST)).into_iter().map(of).collect());
    }
    findings.extend(answers.0.into_values());
    findings
}

/// What the policies do not see of the arguments.
fn of_arguments(action: &Action, residue: &Residue) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !action.typed() {
        let message = "the tool's parameters have no form in the policy language, so policies see the facts alone";
        findings.push(Finding::new("policy.opaque-arguments", Severity::Note, message));
    } else if !residue.hidden.is_empty() {
        let message = format!("policies cannot see {}", list(&residue.hidden));
        findings.push(Finding::new("policy.hidden-argument", Severity::Note, message));
    }
    if !residue.unfit.is_empty() {
        let message = format!("policies would decide without {}: its value has no form there", list(&residue.unfit));
        findings.push(Finding::new("policy.unfit-argument", Severity::Deny, message));
    }
    findings
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One finding for each policy: the gravest, where several resources are judged.
#[derive(Default)]
struct Answers(BTreeMap<String, Finding>);

impl Answers {
    fn add(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            match self.0.get_mut(&finding.id) {
                Some(known) if known.severity >= finding.severity => {}
                Some(known) => *known = finding,
                None => drop(self.0.insert(finding.id.clone(), finding)),
            }
        }
    }
}

/// A question about one resource.
struct Put<'a, F> {
    action: &'a Action,
    ask: F,
    around: &'a Entities,
    /// Whether the call only touches it: then forbids that look at the resource speak, and no permit is needed.
    besides: bool,
}

impl<F: Fn(u8) -> Request> Put<'_, F> {
    fn evaluate(&self, level: u8, staged_only: bool) -> Outcome<'_> {
        let wanted = |rule: &Rule| {
            (rule.staged || !staged_only) && (!self.besides || rule.effect == Effect::Forbid && rule.placed)
        };
        evaluate(&self.action.slice, wanted, &(self.ask)(level), self.around)
    }

    fn of_resource(&self, call: &Call, level: u8) -> Vec<Finding> {
        let granted = self.evaluate(level, false);
        if !granted.errors.is_empty() {
            return errors(&granted);
        }
        if granted.allows() || self.besides && granted.forbids.is_empty() {
            return granted.permits.iter().map(|rule| finding(rule, Severity::Note)).collect();
        }
        let Outcome { mut permits, mut forbids, .. } = granted;
        let mut findings = Vec::new();
        for higher in level + 1..=HIGHEST {
            // What does not look at the approval answers the same at every level.
            let staged = self.evaluate(higher, true);
            if !staged.errors.is_empty() {
                return errors(&staged);
            }
            let stand: Vec<&Rule> = fixed(&forbids).chain(staged.forbids).collect();
            let permit: Vec<&Rule> = fixed(&permits).chain(staged.permits).collect();
            let gone = forbids.iter().filter(|rule| stand.iter().all(|other| other.id != rule.id));
            findings.extend(gone.map(|rule| finding(rule, asks(higher))));
            if permits.is_empty() {
                findings.extend(permit.iter().map(|rule| finding(rule, asks(higher))));
            }
            (forbids, permits) = (stand, permit);
            if forbids.is_empty() && (self.besides || !permits.is_empty()) {
                return findings;
            }
        }
        findings.extend(forbids.iter().map(|rule| finding(rule, Severity::Deny)));
        if permits.is_empty() && !self.besides {
            findings.push(no_permit(call));
        }
        findings
    }
}

fn fixed<'a>(rules: &[&'a Rule]) -> impl Iterator<Item = &'a Rule> {
    rules.iter().copied().filter(|rule| !rule.staged)
}

/// What an approval of this level is worth: the severity that asks for it.
fn asks(level: u8) -> Severity {
    if level <= 1 { Severity::Warn } else { Severity::Review }
}

/// A policy's own words. They present and never decide.
fn finding(rule: &Rule, severity: Severity) -> Finding {
    let verb = match rule.effect {
        Effect::Permit => "permits",
        Effect::Forbid => "forbids",
    };
    let message = rule.reason.clone().unwrap_or_else(|| format!("the policy `{}` {verb} this", rule.id));
    let finding = Finding::new(&*rule.id, severity, message);
    match &rule.safer {
        Some(advice) if severity > Severity::Note => finding.safer(advice),
        _ => finding,
    }
}

fn errors(outcome: &Outcome<'_>) -> Vec<Finding> {
    let of = |(rule, why): &(&Rule, String)| {
        let message = format!("the policy `{}` could not be evaluated, so nothing it guards may run: {why}", rule.id);
        Finding::new(format!("policy.error.{}", rule.id), Severity::Deny, message)
    };
    outcome.errors.iter().map(of).collect()
}

fn no_permit(call: &Call) -> Finding {
    let who = &call.principal;
    let name = who.sub_agent.as_ref().map_or_else(|| who.agent.clone(), |sub| format!("{sub} of {}", who.agent));
    let message = format!(
        "no policy permits `{}` here, not even with an approval (agent `{name}`, mode `{}`): a permit for the action \
         `{}` or one of its groups is missing",
        call.tool, who.mode, call.tool
    );
    Finding::new("policy.no-permit", Severity::Deny, message)
}
