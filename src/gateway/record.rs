//! What a call leaves behind: its records in the log, its approval, its session's count.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::approval::{
    Approval, ApprovalError, ApprovalId, Ask, CredentialError, Credentials, Exact, Grant, Lifetimes, Like, Preview,
    Reach, Requested, Role, Scope, Status, Store,
};
use crate::audit::read::ReadError;
use crate::audit::replay::{InForce, Kept, KeptError};
use crate::audit::{Change, Control, Decided, Event, Finished, Hashes, Log, LogError, Outcome, Rejected, Step, Ticket};
use crate::call::{Call, Digest, Request};
use crate::config::Config;
use crate::facts::path::Access;
use crate::facts::{Facts, SessionFacts};
use crate::gateway::ground::Ground;
use crate::gateway::preview;
use crate::sandbox::purge;
use crate::state::{DatabaseError, HostedCall, Process, Sessions, StateDir, StateError};
use crate::verdict::{Decision, Finding, Level, Severity, Verdict};

/// The state directory, open: the log, the approvals, the sessions, the credentials.
pub(super) struct State {
    dir: StateDir,
    log: Log,
    kept: Kept,
    approvals: Store,
    sessions: Sessions,
    credentials: Credentials,
}

/// What is recorded of a judgement.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub call: &'a Call,
    pub facts: &'a Facts,
    pub verdict: &'a Verdict,
    pub digest: Digest,
    pub frame: Digest,
    pub hashes: &'a Hashes,
    pub workspace: &'a Path,
}

impl State {
    /// Opens, and at first use makes, the state directory. Calls whose process died without an outcome are put on record,
    /// and the directories that they left are removed.
    pub fn open(config: &Config) -> Result<Self, RecordError> {
        let dir = StateDir::open(&config.places.state)?;
        let log = Log::open_with(&dir, config.file.audit.settings())?;
        log.settle()?;
        let scratch = config.places.scratch();
        // Nobody waits for it. Where there is no thread to be had, or the process ends before, the next start does it.
        let _ = std::thread::Builder::new().name("purge".to_owned()).spawn(move || purge(&scratch));
        Ok(State {
            log,
            kept: Kept::of(dir.path()),
            dir: dir.clone(),
            approvals: Store::open(&dir, lifetimes(config))?,
            sessions: Sessions::open(&dir)?,
            credentials: Credentials::open(&dir)?,
        })
    }

    /// Takes over what a new configuration says of the books.
    pub fn adopt(&self, config: &Config) {
        self.approvals.set_lifetimes(lifetimes(config));
    }

    /// Keeps the rules that decide, so that what they decide can be decided again.
    pub fn keep(&self, ground: &Ground) -> Result<(), RecordError> {
        let profile = serde_json::to_value(&*ground.profile).unwrap_or_default();
        let (hashes, firewall, packs) = (&ground.hashes(), &ground.firewall, &ground.packs);
        Ok(self.kept.keep(InForce { firewall, packs, profile: &profile, hashes })?)
    }

    /// Opens the log anew where it has stopped.
    pub fn reopen_log(&self) -> Result<(), RecordError> {
        Ok(self.log.reopen()?)
    }

    pub fn ready(&self) -> Result<(), RecordError> {
        match self.log.stopped() {
            Some(reason) => Err(LogError::Stopped { reason }.into()),
            None => Ok(()),
        }
    }

    pub fn sync(&self) -> Result<(), RecordError> {
        Ok(self.log.sync()?)
    }

    pub fn session(&self, id: &str) -> Result<SessionFacts, RecordError> {
        Ok(self.sessions.session(id)?)
    }

    /// Records a decision. One that lets a call run is on disk when this returns, unless `deferred` says that the call
    /// may run before.
    pub fn decided(&self, entry: &Entry<'_>, effective: Decision, how: How<'_>) -> Result<(), RecordError> {
        let event = Event::Decided(Box::new(decision(entry, effective, how)));
        // What can fail comes before the record that lets the call run.
        self.sessions.count(&entry.call.principal.session, effective)?;
        if effective == Decision::Allow || how.host_asks {
            let agent = &entry.call.principal.agent;
            self.sessions.wrote(agent, &written(entry.facts, entry.workspace), Timestamp::now())?;
        }
        let ticket = self.append(&event)?;
        if (effective == Decision::Allow || how.host_asks)
            && !how.deferred
            && let Err(error) = ticket.synced()
        {
            // The record may be there or not; where it is, it must not look like a call that ran.
            let _ = self.not_run(&entry.call.id, &error.to_string());
            return Err(RecordError::NotRun(error));
        }
        Ok(())
    }

    /// Records that a call which was let through did not run.
    pub fn not_run(&self, call: &str, reason: &str) -> Result<(), RecordError> {
        self.finished(Finished {
            call_id: call.to_owned(),
            outcome: Outcome::NotRun { reason: reason.to_owned() },
            ms: 0,
            output_bytes: 0,
            output_digest: None,
            notes: Vec::new(),
        })
        .map(drop)
    }

    /// Records the denial of a call whose own way on record went wrong, as well as that can be done still.
    pub fn fell(&self, entry: &Entry<'_>, request: &Request, error: &RecordError) {
        let event = Event::Decided(Box::new(decision(entry, Decision::Deny, How::default())));
        // A call that no record can hold is a request that was refused.
        if self.append(&event).is_err() {
            let _ = self.reject(request, &error.finding());
        }
        if let RecordError::Database(_) | RecordError::Approval(ApprovalError::Database(_)) = error {
            return;
        }
        // The count is of no weight beside the record.
        let _ = self.sessions.count(&request.principal.session, Decision::Deny);
    }

    pub fn bind(&self, session: &str, here: &Path) -> Result<PathBuf, RecordError> {
        Ok(self.sessions.bind(session, here, Timestamp::now())?)
    }

    /// Remembers a call that the agent's own program runs.
    pub fn hosted(&self, session: &str, key: &str, call: &HostedCall) -> Result<(), RecordError> {
        Ok(self.sessions.hosted(session, key, call)?)
    }

    pub fn hosted_ended(&self, session: &str, key: &str, now: Timestamp) -> Result<Vec<HostedCall>, RecordError> {
        Ok(self.sessions.ended(session, key, now)?)
    }

    /// Remembers that the session has read what nobody vouches for.
    pub fn taint(&self, session: &str) -> Result<(), RecordError> {
        Ok(self.sessions.taint(session)?)
    }

    pub fn has_written(&self, agent: &str, path: &Path) -> Result<bool, RecordError> {
        Ok(self.sessions.has_written(agent, path)?)
    }

    /// Records a request that was refused before it became a call.
    pub fn rejected(&self, request: &Request, finding: &Finding) -> Result<(), RecordError> {
        self.reject(request, finding)?;
        self.sessions.count(&request.principal.session, Decision::Deny)?;
        Ok(())
    }

    fn reject(&self, request: &Request, finding: &Finding) -> Result<(), LogError> {
        let rejected = |arguments| {
            Event::Rejected(Rejected {
                tool: request.tool.clone(),
                arguments,
                principal: request.principal.clone(),
                caller_id: request.caller_id.clone(),
                finding: finding.clone(),
            })
        };
        let recorded = self.append(&rejected(request.arguments.clone()));
        match recorded {
            // Arguments that no record can hold are named by what they are.
            Err(LogError::TooDeep | LogError::TooLarge { .. }) => self
                .append(&rejected(serde_json::json!({ "omitted": "too large or too deep for the record" })))
                .map(drop),
            other => other.map(drop),
        }
    }

    /// Appends to the log. A log that stopped after a failure is opened anew: it goes on when it is found sound.
    fn append(&self, event: &Event) -> Result<Ticket, LogError> {
        if self.log.stopped().is_some() {
            self.log.reopen()?;
        }
        self.log.append(event)
    }

    fn append_durable(&self, event: &Event) -> Result<(), LogError> {
        self.append(event)?.synced()
    }

    /// Records how a call ended.
    pub fn finished(&self, finished: Finished) -> Result<Ticket, RecordError> {
        Ok(self.append(&Event::Finished(finished))?)
    }

    pub fn control(
        &self,
        change: Change,
        detail: String,
        before: Digest,
        after: Option<Digest>,
    ) -> Result<(), RecordError> {
        let control = Control { change, detail, before: Some(before), after, by: None };
        self.append_durable(&Event::Control(control))?;
        Ok(())
    }

    /// Makes the call wait for a person, and records that it does. Without a named operator, the one who owns the state
    /// directory answers for the session.
    pub fn ask(&self, entry: &Entry<'_>, level: Level, operator: Option<&str>) -> Result<Approval, RecordError> {
        let own = self.own_operator()?;
        let operator = operator.unwrap_or(own.name());
        let (call, digest, verdict) = (entry.call, entry.digest, entry.verdict);
        let like = Some(Like::of(call, entry.facts, entry.frame));
        let ask = Ask { call, digest, verdict, paths: &entry.facts.paths, level, operator, like };
        let Requested { approval, fresh, superseded } = self.approvals.request(&ask, Timestamp::now())?;
        if let Some(superseded) = superseded {
            self.append(&Event::Approval(superseded.event(Step::Expired)))?;
        }
        if fresh {
            self.append(&Event::Approval(approval.event(Step::Requested)))?;
        }
        self.decided(entry, Decision::Ask(level), How { pending: Some(&approval), ..How::default() })?;
        Ok(approval)
    }

    pub fn find_grant(&self, entry: &Entry<'_>) -> Result<Option<Grant>, RecordError> {
        let (session, now) = (&entry.call.principal.session, Timestamp::now());
        if let Some(grant) = self.approvals.find_grant(&entry.digest, session, now)? {
            return Ok(Some(grant));
        }
        let like = Like::of(entry.call, entry.facts, entry.frame);
        let alike = self.approvals.grants_like(&like, session, now)?;
        Ok(alike.into_iter().find(|grant| grant.covers_like(&like, entry.verdict).is_ok()))
    }

    /// What a person said who refused this very call, where its caller was not told yet. It is told once.
    pub fn refusal(&self, entry: &Entry<'_>) -> Result<Option<Finding>, RecordError> {
        let told = self.approvals.tell_refusal(&entry.digest, &entry.call.principal.session, Timestamp::now())?;
        Ok(told.map(|approval| {
            let reason = approval.reason.as_deref().unwrap_or("no reason was given");
            let message = format!("a person was asked for this call and refused it: {reason}");
            Finding::new("approval.refused", Severity::Deny, message)
        }))
    }

    /// Uses a grant up, durably: of two callers with the same grant exactly one gets past here.
    pub fn consume(&self, grant: &Grant) -> Result<(), RecordError> {
        let used = self.approvals.consume(grant, Timestamp::now())?;
        let step = if grant.scope == Scope::Call { Step::Consumed } else { Step::Used };
        self.append(&Event::Approval(used.event(step)))?;
        Ok(())
    }

    /// Whom a presented token speaks for.
    pub fn role_of(&self, token: &str) -> Result<Role, RecordError> {
        Ok(self.credentials.role_of(token)?)
    }

    pub fn agent_token(&self, name: &str) -> Result<PathBuf, RecordError> {
        Ok(self.credentials.agent_token(name)?)
    }

    /// The operator whose token lies in the state directory.
    pub fn own_operator(&self) -> Result<Role, RecordError> {
        let token = self.credentials.operator_token()?;
        self.role_of(token.expose())
    }

    pub fn grant(&self, id: &ApprovalId, by: &Role, reach: Reach) -> Result<Grant, RecordError> {
        let record = |approval: &Approval| Ok(self.append_durable(&Event::Approval(approval.event(Step::Granted)))?);
        self.approvals.grant_once(id, by, reach, Timestamp::now(), record)
    }

    pub fn approval(&self, id: &ApprovalId) -> Result<Approval, RecordError> {
        Ok(self.approvals.get(id)?)
    }

    pub fn refuse(&self, id: &ApprovalId, by: &Role, reason: Option<&str>) -> Result<(), RecordError> {
        let approval = self.approvals.refuse(id, by, reason, Timestamp::now())?;
        self.append_durable(&Event::Approval(approval.event(Step::Refused)))?;
        Ok(())
    }

    pub fn revoke(&self, id: &ApprovalId, by: &Role) -> Result<(), RecordError> {
        let approval = self.approvals.revoke(id, by, Timestamp::now())?;
        self.append_durable(&Event::Approval(approval.event(Step::Revoked)))?;
        Ok(())
    }

    /// Where the state lies.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn unsynced(&self) -> u64 {
        self.log.unsynced()
    }

    /// The approvals that wait for an answer.
    pub fn waiting(&self) -> Result<Vec<Approval>, RecordError> {
        let now = Timestamp::now();
        let pending = self.approvals.list(Some(Status::Pending))?;
        Ok(pending.into_iter().filter(|approval| approval.expires > now).collect())
    }

    /// The grants that are in force.
    pub fn grants(&self) -> Result<Vec<Approval>, RecordError> {
        let now = Timestamp::now();
        let granted = self.approvals.list(Some(Status::Granted))?;
        Ok(granted.into_iter().filter(|approval| approval.expires > now).collect())
    }

    pub fn withheld(&self) -> Result<Vec<(String, u64)>, RecordError> {
        Ok(self.approvals.withheld(Timestamp::now())?)
    }

    /// What each scope that can be granted would have allowed of the last calls on record.
    pub fn previews(&self, id: &ApprovalId) -> Result<Vec<Preview>, RecordError> {
        let approval = self.approvals.get(id)?;
        let exact = self.approvals.exact(id)?;
        let log = crate::audit::log_file(self.path());
        Ok(preview::of(&approval, exact.as_ref(), &log)?)
    }

    pub fn exact(&self, id: &ApprovalId) -> Result<Option<Exact>, RecordError> {
        Ok(self.approvals.exact(id)?)
    }

    /// The approvals that wait, with their exact calls. Those whose time is over are ended, and recorded as such.
    pub fn pending(&self) -> Result<Vec<(Approval, Exact)>, RecordError> {
        for expired in self.approvals.expire(Timestamp::now())? {
            self.append(&Event::Approval(expired.event(Step::Expired)))?;
        }
        let mut waiting = Vec::new();
        for approval in self.approvals.list(Some(Status::Pending))? {
            if let Some(exact) = self.approvals.exact(&approval.id)? {
                waiting.push((approval, exact));
            }
        }
        Ok(waiting)
    }
}

fn decision(entry: &Entry<'_>, effective: Decision, how: How<'_>) -> Decided {
    Decided {
        call: entry.call.clone(),
        facts: Some(entry.facts.clone()),
        verdict: entry.verdict.clone(),
        effective,
        digest: entry.digest,
        workspace: Some(entry.workspace.to_owned()),
        hashes: entry.hashes.clone(),
        deferred: how.deferred,
        grant: how.grant.map(|g| g.id.to_string()),
        pending: how.pending.map(|p| p.id.to_string()),
        process: Process::current().clone(),
    }
}

/// Effects by which a command gives a file content of the agent's choosing.
const AUTHORS: &[&str] = &["overwrite", "append", "edit", "move", "link", "fetch"];
/// Programs that make files from sources: what they write is not the agent's own text.
const COMPILERS: &[&str] = &[
    "ar", "as", "c++", "cargo", "cc", "clang", "clang++", "cmake", "dotnet", "g++", "gcc", "ghc", "go", "javac",
    "kotlinc", "ld", "make", "ninja", "rustc", "swiftc", "tsc", "zig",
];

/// The files that a call writes, where an agent can run them later.
fn written(facts: &Facts, workspace: &Path) -> Vec<PathBuf> {
    let authored = facts.command.as_ref().is_none_or(|command| {
        command.effects.iter().any(|effect| AUTHORS.contains(&effect.0.as_str()))
            && !command.programs.iter().any(|program| COMPILERS.contains(&program.as_str()))
    });
    let paths = facts.paths.iter().filter(|path| path.access == Access::Write && authored);
    paths.filter_map(|path| crate::facts::scripts::place(path, workspace)).collect()
}

fn lifetimes(config: &Config) -> Lifetimes {
    let standard = Lifetimes::default();
    Lifetimes {
        pending: config.file.approval.pending.unwrap_or(standard.pending),
        grant: config.file.approval.grant.unwrap_or(standard.grant),
        session: config.file.approval.session.unwrap_or(standard.session),
        per_minute: config.file.approval.per_minute.map_or(standard.per_minute, std::num::NonZero::get),
    }
}

/// What led to a decision besides the verdict.
#[derive(Clone, Copy, Default)]
pub(super) struct How<'a> {
    pub deferred: bool,
    pub grant: Option<&'a Grant>,
    pub pending: Option<&'a Approval>,
    /// The agent's own program asks a person, and may run the call.
    pub host_asks: bool,
}

/// How a tool's answer is recorded.
pub(super) fn outcome(result: &Result<crate::registry::Output, crate::registry::ToolError>) -> Outcome {
    use crate::registry::{Output, ToolError};
    let field = |output: &Output, name: &str| output.of_own(name).cloned();
    match result {
        Ok(output) => {
            let number = |name: &str| field(output, name).and_then(|v| v.as_i64()).and_then(|n| i32::try_from(n).ok());
            if field(output, "timed_out") == Some(true.into()) {
                Outcome::TimedOut
            } else if let Some((_, limit)) = OVER.iter().find(|(name, _)| field(output, name) == Some(true.into())) {
                Outcome::OverLimit { limit: (*limit).to_owned() }
            } else if let Some(signal) = number("signal") {
                Outcome::Signaled { signal }
            } else if let Some(code) = number("exit_code") {
                Outcome::Exited { code }
            } else if output.is_error {
                Outcome::ToolError { message: crate::registry::clip(output.text.clone(), MOST_TOLD) }
            } else {
                Outcome::Ok
            }
        }
        Err(ToolError::Setup(message)) => Outcome::SetupFailed { message: message.clone() },
        Err(error) => Outcome::ToolError { message: error.to_string() },
    }
}

/// The most bytes of a tool's own error that a record keeps.
const MOST_TOLD: usize = 16 << 10;

/// Limits, as a tool's answer names them and as the record does.
const OVER: &[(&str, &str)] = &[("out_of_memory", "memory"), ("out_of_space", "disk space")];

/// What a tool's answer says of its confinement.
pub(super) fn notes(result: &Result<crate::registry::Output, crate::registry::ToolError>) -> Vec<String> {
    let notes = result.as_ref().ok().and_then(|output| output.of_own("notes")).and_then(|notes| notes.as_array());
    notes.into_iter().flatten().filter_map(|note| note.as_str().map(str::to_owned)).collect()
}

/// Why the gateway's own books could not be kept. No call runs on such an answer.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error(transparent)]
    Credential(#[from] CredentialError),
    #[error("the gateway's database cannot be used: {0}")]
    Database(#[from] DatabaseError),
    #[error("the rules in force cannot be kept for the record: {0}")]
    Kept(#[from] KeptError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The call was let through, and that could not be made durable. Its end is on record where the log takes it.
    #[error(transparent)]
    NotRun(LogError),
    #[error("the state directory cannot be used: {0}")]
    State(#[from] StateError),
}

impl RecordError {
    /// The finding that denies a call which cannot be recorded.
    pub fn finding(&self) -> Finding {
        if let RecordError::Approval(error @ (ApprovalError::TooMany { .. } | ApprovalError::TooOften { .. })) = self {
            return Finding::new("approval.too-many", Severity::Deny, error.to_string())
                .safer("wait until the operator has answered some of them, then make the call again");
        }
        Finding::new(
            "audit.unavailable",
            Severity::Deny,
            format!("the call cannot be put on record, so it does not run: {self}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Output;

    #[test]
    fn a_servers_data_is_not_read_as_the_gateways_own() {
        let structured = json!({ "exit_code": 0, "timed_out": true, "notes": ["all is well"] });
        let made = |raw| Output { text: "x".into(), structured: Some(structured.clone()), is_error: true, raw };
        let own = Ok(made(None));
        assert_eq!((outcome(&own), notes(&own).len()), (Outcome::TimedOut, 1));
        let servers = Ok(made(Some(json!({ "structuredContent": structured }))));
        assert_eq!((outcome(&servers), notes(&servers).len()), (Outcome::ToolError { message: "x".into() }, 0));
    }
}
