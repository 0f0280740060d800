//! Calls that an agent's own program runs: they go the way of every call up to the verdict, and what is answered is on record
//! before the answer. How they ended is recorded where the program reports it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalError, Grant};
use crate::audit::{Finished, Hashes, Outcome};
use crate::call::{Digest, Origin, Request};
use crate::firewall::{Approval, Prepared};
use crate::gateway::ground::Ground;
use crate::gateway::record::{Entry, How, RecordError, State};
use crate::gateway::{Caller, Gateway, may_ride};
use crate::state::HostedCall;
use crate::tools::hosted::{HOST_TOOL, wrapped};
use crate::verdict::{Decision, Finding, Level, Severity, Verdict};

/// One use of a tool by an agent's program. It may be several calls: a patch writes several files.
#[derive(Clone, Debug)]
pub struct Hosted {
    pub requests: Vec<Request>,
    /// The name by which the program will report the end.
    pub key: String,
    /// Whether the program is known to ask a person where it is told to.
    pub asks: bool,
}

/// What the gateway says of it.
#[must_use]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opinion {
    pub decision: Decision,
    /// What speaks against it, the gravest first.
    pub findings: Vec<Finding>,
    /// The approvals that it waits for, where the gateway asks a person itself.
    pub pending: Vec<Pending>,
}

/// An approval that a use of a tool waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pending {
    pub id: String,
    pub level: Level,
    pub expires: Timestamp,
}

/// How a use of a tool ended, as the agent's program tells it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The exit code of a command, where it is told.
    pub code: Option<i32>,
    /// Why it failed, where it did.
    pub failure: Option<String>,
    pub output_bytes: u64,
    pub output_digest: Option<Digest>,
    /// It brought something into the session that a stranger may have written.
    pub untrusted: bool,
}

impl Opinion {
    /// A use that is denied for a reason that is no finding of the firewall.
    pub fn refused(finding: Finding) -> Self {
        Opinion { decision: Decision::Deny, findings: vec![finding], pending: Vec::new() }
    }

    fn of(decision: Decision, items: &[Item], pending: Vec<Pending>) -> Self {
        let mut findings: Vec<Finding> = Vec::new();
        for (_, finding) in items.iter().flat_map(|item| item.verdict.findings()) {
            if finding.severity > Severity::Note && !findings.iter().any(|known| known.message == finding.message) {
                findings.push(finding.clone());
            }
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Opinion { decision, findings, pending }
    }
}

/// One judged call of a use.
struct Item {
    ground: Arc<Ground>,
    hashes: Hashes,
    prepared: Prepared,
    verdict: Verdict,
    answer: Answer,
}

/// What happens to it.
enum Answer {
    Clear,
    Granted(Box<Grant>),
    Ask(Level),
    Deny,
}

impl Item {
    fn entry(&self) -> Entry<'_> {
        Entry {
            call: &self.prepared.call,
            facts: &self.prepared.facts,
            verdict: &self.verdict,
            digest: self.prepared.digest,
            frame: self.prepared.frame,
            hashes: &self.hashes,
            workspace: self.ground.workspace(),
        }
    }

    fn decision(&self) -> Decision {
        match self.answer {
            Answer::Clear | Answer::Granted(_) => Decision::Allow,
            Answer::Ask(level) => Decision::Ask(level),
            Answer::Deny => Decision::Deny,
        }
    }
}

impl Gateway {
    /// The workspace of a session: where it began. `here` is where it begins if it does so now.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn bind(&self, session: &str, here: &Path) -> Result<PathBuf, RecordError> {
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        self.state()?.bind(session, &here)
    }

    /// Judges a use of a tool, and puts the answer on record: where it is to run, before this returns.
    pub fn opinion(&self, caller: &Caller, hosted: Hosted) -> Opinion {
        let answered = self.state().and_then(|state| {
            let items = match self.judged_all(&state, caller, hosted.requests) {
                Ok(items) => items,
                Err(opinion) => return Ok(opinion),
            };
            answer(&state, caller, items, &hosted.key, hosted.asks)
        });
        answered.unwrap_or_else(|error| Opinion::refused(error.finding()))
    }

    /// Records how a use ended. What was never judged is not recorded. Gives the calls.
    ///
    /// # Errors
    ///
    /// When it cannot be recorded.
    pub fn reported(&self, session: &str, key: &str, ended: &Ended) -> Result<Vec<String>, RecordError> {
        let state = self.state()?;
        if ended.untrusted {
            state.taint(session)?;
        }
        let now = Timestamp::now();
        let calls = state.hosted_ended(session, key, now)?;
        for call in &calls {
            let outcome = match (&ended.failure, ended.code) {
                (None, Some(code)) => Outcome::Exited { code },
                (None, None) => Outcome::Ok,
                (Some(message), _) => Outcome::ToolError { message: message.clone() },
            };
            let mut notes = vec!["as the agent's own program reports it".to_owned()];
            if call.asked {
                notes.push("a person let it run at the agent's own prompt".to_owned());
            }
            let ms = u64::try_from(now.as_millisecond() - call.at.as_millisecond()).unwrap_or(0);
            state.finished(Finished {
                call_id: call.call.clone(),
                outcome,
                ms,
                output_bytes: ended.output_bytes,
                output_digest: ended.output_digest,
                notes,
            })?;
        }
        Ok(calls.into_iter().map(|call| call.call).collect())
    }

    /// Judges every call of a use. A request that is no call ends it.
    fn judged_all(&self, state: &State, caller: &Caller, requests: Vec<Request>) -> Result<Vec<Item>, Opinion> {
        let mut items = Vec::new();
        for request in requests {
            let request = self.known(request);
            let (ground, prepared) = self.prepare(caller, request.clone()).map_err(|reason| {
                let recorded = state.rejected(&request, &reason);
                let mut opinion = Opinion::refused(reason);
                opinion.findings.extend(recorded.err().map(|error| error.finding()));
                opinion
            })?;
            let verdict = ground.firewall.judge(&prepared.call, &prepared.facts, 0);
            let effective = ground.firewall.effective(&prepared.call, &verdict);
            let hashes = ground.hashes();
            let mut item = Item { ground, hashes, prepared, verdict, answer: Answer::Deny };
            match effective {
                Decision::Allow => item.answer = Answer::Clear,
                Decision::Deny => {}
                Decision::Ask(level) => {
                    let entry = item.entry();
                    let spoken = state.find_grant(&entry).and_then(|grant| match grant {
                        Some(grant) => Ok((Answer::Granted(Box::new(grant)), None)),
                        None => state.refusal(&entry).map(|refused| match refused {
                            Some(finding) => (Answer::Deny, Some(finding)),
                            None => (Answer::Ask(level), None),
                        }),
                    });
                    let (answer, objection) = spoken.unwrap_or_else(|error| (Answer::Deny, Some(error.finding())));
                    objection.into_iter().for_each(|finding| item.verdict.object(finding));
                    item.answer = answer;
                }
            }
            items.push(item);
        }
        Ok(items)
    }

    /// A tool that the gateway does not know is judged as one that only the agent's program has.
    fn known(&self, request: Request) -> Request {
        if self.registry().has(&request.tool) || request.origin != Origin::Hook {
            return request;
        }
        let arguments = wrapped(&request.tool, &request.arguments);
        Request { tool: HOST_TOOL.to_owned(), arguments, ..request }
    }
}

/// Answers for all the calls of a use together: it runs as a whole, or not at all.
fn answer(state: &State, caller: &Caller, items: Vec<Item>, key: &str, asks: bool) -> Result<Opinion, RecordError> {
    // Of no call at all, DENY.
    let decision = items.iter().map(Item::decision).max().unwrap_or(Decision::Deny);
    match decision {
        Decision::Deny => deny(state, items),
        Decision::Ask(_) => ask(state, caller, items, key, asks),
        Decision::Allow => allow(state, caller, items, key),
    }
}

fn deny(state: &State, mut items: Vec<Item>) -> Result<Opinion, RecordError> {
    for item in &mut items {
        if !matches!(item.answer, Answer::Deny) {
            let message = "another part of the same use of a tool is denied, so none of it runs";
            item.verdict.object(Finding::new("host.part-of-denied", Severity::Deny, message));
        }
        state.decided(&item.entry(), Decision::Deny, How::default())?;
    }
    Ok(Opinion::of(Decision::Deny, &items, Vec::new()))
}

fn ask(state: &State, caller: &Caller, items: Vec<Item>, key: &str, asks: bool) -> Result<Opinion, RecordError> {
    let asked = items.iter().filter_map(|item| match item.answer {
        Answer::Ask(level) => Some((item, level)),
        Answer::Clear | Answer::Granted(_) | Answer::Deny => None,
    });
    let level = asked.clone().map(|(_, level)| level).max().unwrap_or(Level::Reviewer);
    // Whoever sits at the agent's own prompt is its operator, and no reviewer.
    if asks && level == Level::Operator {
        let at = Timestamp::now();
        for item in &items {
            let how = How { host_asks: true, ..How::default() };
            state.decided(&item.entry(), Decision::Ask(level), how)?;
            remember(state, caller, item, key, true, at)?;
        }
        return Ok(Opinion::of(Decision::Ask(level), &items, Vec::new()));
    }
    let mut pending = Vec::new();
    for (item, level) in asked {
        let approval = state.ask(&item.entry(), level, caller.operator.as_deref())?;
        pending.push(Pending { id: approval.id.to_string(), level, expires: approval.expires });
    }
    Ok(Opinion::of(Decision::Ask(level), &items, pending))
}

fn allow(state: &State, caller: &Caller, items: Vec<Item>, key: &str) -> Result<Opinion, RecordError> {
    let at = Timestamp::now();
    for item in &items {
        // Judged once more, by the one function that can clear a call, with the grant.
        let approval = match &item.answer {
            Answer::Granted(grant) => Approval::Granted(grant),
            Answer::Clear | Answer::Ask(_) | Answer::Deny => Approval::Standing,
        };
        if let Err(verdict) = item.ground.firewall.check(&item.prepared, approval) {
            let entry = Entry { verdict: &verdict, ..item.entry() };
            state.decided(&entry, Decision::Deny, How::default())?;
            let findings = verdict.findings().map(|(_, finding)| finding.clone());
            let findings = findings.filter(|finding| finding.severity > Severity::Note).collect();
            return Ok(Opinion { decision: Decision::Deny, findings, pending: Vec::new() });
        }
    }
    for item in &items {
        let grant = match &item.answer {
            Answer::Granted(grant) => Some(grant.as_ref()),
            Answer::Clear | Answer::Ask(_) | Answer::Deny => None,
        };
        if let Some(grant) = grant {
            match state.consume(grant) {
                // Somebody else used it in the same moment.
                Err(RecordError::Approval(ApprovalError::NotGranted { .. })) => {
                    let message = "the approval was used by another call in the same moment: make this one again";
                    let finding = Finding::new("approval.used", Severity::Deny, message);
                    let mut verdict = item.verdict.clone();
                    verdict.object(finding.clone());
                    let entry = Entry { verdict: &verdict, ..item.entry() };
                    state.decided(&entry, Decision::Deny, How::default())?;
                    return Ok(Opinion::refused(finding));
                }
                used => used?,
            }
        }
        remember(state, caller, item, key, false, at)?;
        let deferred = may_ride(&item.verdict, &item.prepared.facts);
        let how = How { deferred, grant, ..How::default() };
        state.decided(&item.entry(), Decision::Allow, how)?;
    }
    Ok(Opinion::of(Decision::Allow, &items, Vec::new()))
}

fn remember(
    state: &State,
    caller: &Caller,
    item: &Item,
    key: &str,
    asked: bool,
    at: Timestamp,
) -> Result<(), RecordError> {
    let call = &item.prepared.call;
    let hosted = HostedCall { call: call.id.clone(), asked, at };
    state.hosted(&caller.principal.session, key, &hosted)
}
