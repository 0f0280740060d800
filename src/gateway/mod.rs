//! The one way through: canonicalise, facts, firewall, approval, dispatch, audit. Every front calls [`Gateway::call`];
//! none decides anything itself.

mod checked;
mod generation;
mod ground;
mod health;
mod hosted;
mod metrics;
mod prepare;
mod preview;
mod record;
mod report;
mod servers;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::generation::Rules;
use self::ground::Ground;
pub use self::ground::RulesError;
pub(crate) use self::ground::{
    definitions, guard, packs, policy_sources, profiles, resolver, workspace_packs, workspace_policies,
};
pub use self::health::Health;
pub use self::hosted::{Ended, Hosted, Opinion, Pending};
use self::metrics::Latency;
pub use self::metrics::MetricsError;
pub use self::record::RecordError;
use self::record::{Entry, How, State};
pub(crate) use self::servers::registry;
pub use self::servers::{Discovered, ServerError};
use crate::approval::{
    Approval as Waiting, ApprovalError, ApprovalId, CredentialError, Exact, Grant, Preview, Reach, Role,
};
use crate::audit::{Change, Decided, Finished};
use crate::call::{Call, Digest, Origin, Principal, Request};
use crate::config::{Config, ConfigError, LOCAL_AGENT};
use crate::facts::Facts;
use crate::firewall::{Approval, Cleared, Prepared, policy};
use crate::registry::{self, Output, Registry, Sensitivity, Tool, ToolError};
use crate::sandbox::{DEFAULT_PROFILE, Kernel};
use crate::state::Sessions;
use crate::upstream::Upstreams;
use crate::verdict::{Decision, Finding, Severity, Verdict};

/// The finding of a call that ran and whose end is not in the log.
pub const END_NOT_RECORDED: &str = "audit.end-not-recorded";

/// One installation's gateway: the tools, the rules, and the log that every call goes through.
pub struct Gateway {
    /// The gateway's own tools.
    own: Registry,
    servers: Arc<Upstreams>,
    kernel: Kernel,
    /// Replaced as a whole by a reload; a call in progress keeps what it began with.
    rules: RwLock<Arc<Rules>>,
    state: OnceLock<Arc<State>>,
    /// The sessions' history, where only that is needed.
    sessions: OnceLock<Sessions>,
    latency: Latency,
    /// The last reload failed, so the rules are older than their files.
    stale: AtomicBool,
}

/// The finding that says that a reload failed.
pub(crate) const STALE: &str = "rules.stale";

/// On whose behalf calls come in, and where.
#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
    pub workspace: PathBuf,
    /// Whether every call is in this workspace. Otherwise a call's own working directory outside of it is the workspace of
    /// that call, as for the lines of `check --batch`.
    pub bound: bool,
    pub profile: String,
    pub allowed_tools: Option<Vec<String>>,
    /// Who answers for the session.
    pub operator: Option<String>,
    pub origin: Origin,
    /// Whether the gateway confines the programs of the calls. An agent's own program, which asks by a hook, runs them as it
    /// likes.
    pub confined: bool,
}

impl Caller {
    /// A request of this caller's.
    pub fn request(&self, tool: String, arguments: Value) -> Request {
        let principal = self.principal.clone();
        Request { tool, arguments, cwd: None, principal, origin: self.origin, caller_id: None }
    }
}

/// A call and the firewall's answer to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Judged {
    /// The name that the caller used.
    pub tool: String,
    /// Absent where the request is no call: no such tool, arguments that its schema refuses.
    pub call: Option<Call>,
    pub facts: Option<Facts>,
    pub verdict: Verdict,
}

impl Judged {
    /// A request that was refused before it became a call.
    pub fn refused(tool: String, reason: Finding) -> Self {
        Judged { tool, call: None, facts: None, verdict: Verdict::refused(reason) }
    }

    /// What was judged of a call that is on record.
    pub fn recorded(decided: &Decided) -> Self {
        Judged {
            tool: decided.call.tool.clone(),
            call: Some(decided.call.clone()),
            facts: decided.facts.clone(),
            verdict: decided.verdict.clone(),
        }
    }

    /// The shell command that the call would run.
    pub fn command(&self) -> Option<&str> {
        self.call.as_ref().and_then(|c| c.text("command"))
    }
}

/// What came of a call.
#[must_use]
#[derive(Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// A person has to approve; then the same call is made again.
    Asks(Asks),
    Denied(Judged),
    /// It was let through and ran.
    Done(Done),
}

/// A call that waits for a person.
#[derive(Debug, Serialize, Deserialize)]
pub struct Asks {
    pub judged: Judged,
    pub pending: Box<Waiting>,
}

/// A call that ran.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// The call's id in the audit log.
    pub call: String,
    pub judged: Judged,
    pub result: Result<Output, ToolError>,
}

/// On whose word a call runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Grant,
    /// Of a call that asks, in a mode that answers.
    Mode,
    Verdict,
}

/// What happens to a judged call next.
enum Next {
    Ask(Box<Waiting>),
    Deny,
    /// A person was asked for it before and said no.
    Refused(Finding),
    Run(Box<Cleared>, By),
}

impl Gateway {
    /// Loads policies, packs and profiles. The state directory is not touched until a call is made.
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration, with file, line and column.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        Self::with_kernel(config, Kernel::probe().clone())
    }

    /// The same, for a kernel that is said to offer less than this one does.
    ///
    /// # Errors
    ///
    /// As [`Gateway::open`].
    pub fn with_kernel(config: Config, kernel: Kernel) -> Result<Self, OpenError> {
        let own = crate::tools::all()?;
        let servers = Arc::new(Upstreams::new(&config.places.state).map_err(crate::tools::SetupError::Launcher)?);
        let rules = RwLock::new(Arc::new(Rules::load(Arc::new(config), &own, &servers)?));
        Ok(Gateway {
            own,
            servers,
            kernel,
            rules,
            state: OnceLock::new(),
            sessions: OnceLock::new(),
            latency: Latency::new(),
            stale: AtomicBool::new(false),
        })
    }

    /// Loads configuration and rules again, all or nothing. Where something is wrong the old ones stay in force; either
    /// way it goes on record. A log that had stopped is opened anew.
    ///
    /// # Errors
    ///
    /// What is wrong with the new ones, or with the record.
    pub fn reload(&self) -> Result<(), OpenError> {
        let old = self.rules();
        let before = old.base.policies.hash();
        let state = self.state()?;
        state.reopen_log()?;
        let loaded = Config::load(old.config.places.clone()).map_err(OpenError::from);
        match loaded.and_then(|config| Ok(Rules::load(Arc::new(config), &self.own, &self.servers)?)) {
            Ok(rules) => {
                let (was, is) = (old.configuration(), rules.configuration());
                if was != is {
                    state.control(Change::ConfigurationChanged, "reloaded".to_owned(), was, Some(is))?;
                }
                let after = rules.base.policies.hash();
                state.control(Change::PolicyLoaded, "reloaded".to_owned(), before, Some(after))?;
                let config = Arc::clone(&rules.config);
                // A server that is configured otherwise is another one, and starts when it is called.
                let left = |server: &str| config.file.upstreams.keys().any(|name| name.as_str() == server);
                self.servers.retain(left);
                *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
                self.stale.store(false, Ordering::Relaxed);
                // Tokens come last: who reads one may use it at once.
                state.adopt(&config);
                Ok(())
            }
            Err(error) => {
                self.stale.store(true, Ordering::Relaxed);
                state.control(Change::PolicyFailed, error.to_string(), before, None)?;
                Err(error)
            }
        }
    }

    /// What the firewall would answer. Runs nothing and records nothing.
    pub fn judge(&self, caller: &Caller, request: Request) -> Judged {
        let mut judged = self.judged(caller, request);
        judged.verdict.notes.extend(self.staleness());
        judged
    }

    fn judged(&self, caller: &Caller, request: Request) -> Judged {
        let tool = request.tool.clone();
        match self.prepare(caller, request) {
            Ok((ground, prepared)) => {
                let mut verdict = ground.firewall.judge(&prepared.call, &prepared.facts, 0);
                if ground.firewall.effective(&prepared.call, &verdict) != verdict.decision {
                    verdict.notes.push(standing());
                }
                Judged { tool, call: Some(prepared.call), facts: Some(prepared.facts), verdict }
            }
            Err(reason) => Judged::refused(tool, reason),
        }
    }

    /// Says from now on, with every call, that it is judged by older rules than there are on disk.
    pub(crate) fn hold_old_rules(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// What every answer says while the rules are older than their files. What is wrong with those is for the operator.
    fn staleness(&self) -> Option<Finding> {
        let message = "the configuration was changed and cannot be used, so the rules from before are in force: \
                       `portcullis doctor` says what is wrong with it";
        self.stale.load(Ordering::Relaxed).then(|| Finding::new(STALE, Severity::Note, message))
    }

    /// Makes a call, the whole way.
    pub async fn call(&self, caller: &Caller, request: Request) -> Outcome {
        self.call_unless(caller, request, std::future::pending()).await
    }

    /// The same, for a caller who may take the call back: once `cancelled` is ready, what the call started is ended. A
    /// call that was cleared goes on record with its end in every case.
    pub async fn call_unless(
        &self,
        caller: &Caller,
        request: Request,
        cancelled: impl Future<Output = ()> + Send + 'static,
    ) -> Outcome {
        let (tool, begun) = (request.tool.clone(), Instant::now());
        let state = match self.state() {
            Ok(state) => state,
            Err(error) => return Outcome::Denied(Judged::refused(tool, error.finding())),
        };
        let (ground, prepared) = match self.prepare(caller, request.clone()) {
            Ok(ready) => ready,
            Err(reason) => {
                let recorded = state.rejected(&request, &reason);
                let mut judged = Judged::refused(tool, reason);
                recorded.err().into_iter().for_each(|error| judged.verdict.object(error.finding()));
                return Outcome::Denied(judged);
            }
        };
        let (call, facts, digest, frame) =
            (prepared.call.clone(), prepared.facts.clone(), prepared.digest, prepared.frame);
        let verdict = ground.firewall.judge(&call, &facts, 0);
        let next = decide(&state, &ground, prepared, &verdict, caller);
        self.latency.took(begun.elapsed());
        let mut judged = Judged { tool, call: Some(call), facts: Some(facts), verdict };
        judged.verdict.notes.extend(self.staleness());
        match next {
            Ok(Next::Run(cleared, by)) => {
                if by == By::Mode {
                    judged.verdict.notes.push(standing());
                }
                self.dispatch(state, &ground.registry, *cleared, judged, cancelled).await
            }
            Ok(Next::Ask(pending)) => Outcome::Asks(Asks { judged, pending }),
            Ok(Next::Deny) => Outcome::Denied(judged),
            Ok(Next::Refused(finding)) => {
                judged.verdict.object(finding);
                Outcome::Denied(judged)
            }
            Err(error) => {
                judged.verdict.object(error.finding());
                let told = matches!(error, RecordError::NotRun(_));
                if let (Some(call), Some(facts), false) = (&judged.call, &judged.facts, told) {
                    let (verdict, hashes, workspace) = (&judged.verdict, &ground.hashes(), ground.workspace());
                    state.fell(&Entry { call, facts, verdict, digest, frame, hashes, workspace }, &request, &error);
                }
                Outcome::Denied(judged)
            }
        }
    }

    /// Runs what was cleared, and records how it ended. The call runs to its end, and its end goes on record, even
    /// where nobody waits for it any more.
    async fn dispatch(
        &self,
        state: Arc<State>,
        registry: &Registry,
        cleared: Cleared,
        mut judged: Judged,
        cancelled: impl Future<Output = ()> + Send + 'static,
    ) -> Outcome {
        let call = cleared.call().id.clone();
        let Some(tool) = registry.get(&cleared.call().tool).cloned() else {
            let reason = "the tool went away while the call was judged; make the call again";
            let _ = state.not_run(&call, reason);
            judged.verdict.object(Finding::new("call.tool-gone", Severity::Deny, reason));
            return Outcome::Denied(judged);
        };
        let call_id = call.clone();
        let session = cleared.call().principal.session.clone();
        let untrusted = tool.definition().upstream.as_ref().is_some_and(|foreign| !foreign.trusted);
        let for_model = cleared.call().origin != Origin::Cli;
        let task = tokio::spawn(async move {
            let started = Instant::now();
            let mut run = tokio::spawn({
                let tool = Arc::clone(&tool);
                async move { tool.execute(cleared).await }
            });
            let unexpected =
                |_| Err(ToolError::Failed("the tool failed unexpectedly; please report this as a bug".to_owned()));
            let mut result = tokio::select! {
                ran = &mut run => ran.unwrap_or_else(unexpected),
                () = cancelled => {
                    // A launched program ends with the future that waits for it.
                    run.abort();
                    let _ = run.await;
                    Err(ToolError::Cancelled)
                }
            };
            if untrusted && let Err(error) = state.taint(&session) {
                // What cannot be remembered as untrusted is not passed on.
                result = Err(ToolError::Failed(format!("the call ran, and its result is held back: {error}")));
            }
            let text = result.as_ref().map_or_else(ToString::to_string, |output| output.text.clone());
            let recorded = state.finished(Finished {
                call_id,
                outcome: record::outcome(&result),
                ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                output_bytes: text.len() as u64,
                output_digest: Some(Digest::of(&text)),
                notes: record::notes(&result),
            });
            result = match result {
                Ok(output) => Ok(Output { text: registry::clip(output.text, tool.definition().max_output), ..output }),
                Err(ToolError::Failed(text)) if for_model => Err(ToolError::Failed(registry::with_hint(&text))),
                Err(error) => Err(error),
            };
            (result, recorded)
        });
        let result = match task.await {
            Ok((result, recorded)) => {
                if let Err(error) = recorded {
                    let message = format!("the call ran, and its end could not be put on record: {error}");
                    judged.verdict.notes.push(Finding::new(END_NOT_RECORDED, Severity::Note, message));
                }
                result
            }
            Err(_) => Err(ToolError::Failed("the call was cut off; the audit log has what is known of it".to_owned())),
        };
        Outcome::Done(Done { call, judged, result })
    }
}

/// The way from a verdict to what happens next, with every step on record before the one after it.
fn decide(
    state: &State,
    ground: &Ground,
    prepared: Prepared,
    verdict: &Verdict,
    caller: &Caller,
) -> Result<Next, RecordError> {
    let (call, facts, digest, frame) = (prepared.call.clone(), prepared.facts.clone(), prepared.digest, prepared.frame);
    let entry = Entry {
        call: &call,
        facts: &facts,
        verdict,
        digest,
        frame,
        hashes: &ground.hashes(),
        workspace: ground.workspace(),
    };
    let ask = |level| state.ask(&entry, level, caller.operator.as_deref()).map(|a| Next::Ask(Box::new(a)));
    let deny = |entry: &Entry<'_>| state.decided(entry, Decision::Deny, How::default()).map(|()| Next::Deny);

    state.keep(ground)?;
    let grant = match ground.firewall.effective(&call, verdict) {
        Decision::Allow => None,
        Decision::Ask(level) => match state.find_grant(&entry)? {
            Some(grant) => Some(grant),
            None => {
                let Some(finding) = state.refusal(&entry)? else { return ask(level) };
                let mut verdict = verdict.clone();
                verdict.object(finding.clone());
                deny(&Entry { verdict: &verdict, ..entry })?;
                return Ok(Next::Refused(finding));
            }
        },
        Decision::Deny => return deny(&entry),
    };
    let approval = grant.as_ref().map_or(Approval::Standing, Approval::Granted);
    let cleared = match ground.firewall.clear(prepared, approval) {
        Ok(cleared) => cleared,
        Err(verdict) => {
            let entry = Entry { verdict: &verdict, ..entry };
            return match verdict.decision {
                Decision::Ask(level) => {
                    state.ask(&entry, level, caller.operator.as_deref()).map(|a| Next::Ask(Box::new(a)))
                }
                Decision::Allow | Decision::Deny => deny(&entry),
            };
        }
    };
    if let Some(grant) = &grant {
        match state.consume(grant) {
            // Somebody else used it in the same moment: this call asks for one of its own.
            Err(RecordError::Approval(ApprovalError::NotGranted { .. })) => return ask(grant.level),
            used => used?,
        }
    }
    let deferred = may_ride(verdict, &facts);
    state.decided(&entry, Decision::Allow, How { deferred, grant: grant.as_ref(), ..How::default() })?;
    let by = match (&grant, verdict.decision) {
        (Some(_), _) => By::Grant,
        (None, Decision::Ask(_)) => By::Mode,
        (None, Decision::Allow | Decision::Deny) => By::Verdict,
    };
    Ok(Next::Run(Box::new(cleared), by))
}

/// Said of a call for which nobody has to be asked although it asks.
fn standing() -> Finding {
    let message = "the principal's mode answers this for the operator: the call runs without asking";
    Finding::new("approval.standing", Severity::Note, message)
}

/// The one exception to "on disk before it runs": a safe tool that found nothing but unprotected files inside the
/// workspace changes nothing, so its record may ride the next sync.
fn may_ride(verdict: &Verdict, facts: &Facts) -> bool {
    let inside = facts.paths.iter().all(|p| {
        p.scope == crate::facts::Scope::Workspace && p.protected.is_none() && p.problem.is_none() && !p.access.changes()
    });
    facts.sensitivity == Sensitivity::Safe
        && facts.command.is_none()
        && inside
        && verdict.findings().all(|(_, f)| f.severity == Severity::Note)
}

/// Looking at the gateway, and answering approvals.
impl Gateway {
    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.rules().config)
    }

    /// The tools there are: the gateway's own, and those of the servers behind it.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.rules().registry)
    }

    /// The servers behind the gateway.
    pub fn servers(&self) -> &Arc<Upstreams> {
        &self.servers
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The caller that an agent's name, a session and perhaps a workspace stand for.
    ///
    /// # Errors
    ///
    /// When the agent is not configured, or the workspace holds the gateway's own directories.
    pub fn caller(&self, agent: Option<&str>, session: &str, workspace: Option<&Path>) -> Result<Caller, OpenError> {
        self.caller_from(agent, session, workspace, Path::new("."))
    }

    /// The same for somebody whose current directory is `here`.
    ///
    /// # Errors
    ///
    /// As [`Gateway::caller`].
    pub fn caller_from(
        &self,
        agent: Option<&str>,
        session: &str,
        workspace: Option<&Path>,
        here: &Path,
    ) -> Result<Caller, OpenError> {
        let config = self.config();
        let agent = config.agent(agent)?;
        let chosen = workspace.map(Path::to_owned).or(agent.workspace);
        let bound = chosen.is_some();
        let workspace = here.join(chosen.unwrap_or_default());
        // A workspace that is not there stays named as it was, and denies its calls.
        let workspace = workspace.canonicalize().or_else(|_| std::path::absolute(&workspace)).unwrap_or(workspace);
        config.places.refuse_inside(&workspace)?;
        let standard = || config.file.profile.clone().unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        Ok(Caller {
            principal: Principal {
                agent: agent.name,
                sub_agent: None,
                teams: agent.teams,
                session: session.to_owned(),
                mode: agent.mode,
                unattended: agent.unattended,
            },
            workspace,
            bound,
            profile: agent.profile.unwrap_or_else(standard),
            allowed_tools: agent.allowed_tools,
            operator: agent.operator,
            origin: Origin::Cli,
            confined: true,
        })
    }

    /// The tools that this caller could ever be allowed, in the registry's order: `allowed_tools` has them, and the
    /// policies do not refuse them at every level of approval whatever the arguments are. A tool that is left out is
    /// refused all the same when it is called.
    ///
    /// # Errors
    ///
    /// When the workspace's rules cannot be used, so that nothing is allowed.
    pub fn offers(&self, caller: &Caller) -> Result<Vec<Arc<dyn Tool>>, RulesError> {
        let ground = self.ground(&caller.workspace, &caller.profile)?;
        let allowed = |name: &str| caller.allowed_tools.as_ref().is_none_or(|names| names.iter().any(|n| n == name));
        let could = |name: &str| {
            policy::could_allow(&caller.principal, caller.origin.as_str(), name, &ground.firewall.policies)
        };
        let offered = |tool: &&Arc<dyn Tool>| {
            let definition = tool.definition();
            registry::is_listed(definition) && allowed(&definition.name) && could(&definition.name)
        };
        Ok(ground.registry.all().filter(offered).cloned().collect())
    }

    /// Where an approval stands.
    ///
    /// # Errors
    ///
    /// When there is no such approval, or the state directory cannot be used.
    pub fn approval(&self, id: &ApprovalId) -> Result<Waiting, RecordError> {
        self.state()?.approval(id)
    }

    /// The calls that wait for a person.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn pending(&self) -> Result<Vec<(Waiting, Exact)>, RecordError> {
        self.state()?.pending()
    }

    /// Lets a pending call run once.
    ///
    /// # Errors
    ///
    /// When there is no such call, it was answered already, or this person may not answer it.
    pub fn grant(&self, id: &ApprovalId, by: &Role) -> Result<Grant, RecordError> {
        self.grant_for(id, by, Reach::Call)
    }

    /// Lets a pending call run, and what else the person chose.
    ///
    /// # Errors
    ///
    /// As [`Gateway::grant`], and where such a scope is not to be had for this call.
    pub fn grant_for(&self, id: &ApprovalId, by: &Role, reach: Reach) -> Result<Grant, RecordError> {
        self.state()?.grant(id, by, reach)
    }

    /// Takes a grant back.
    ///
    /// # Errors
    ///
    /// When there is no such grant, or it was used up.
    pub fn revoke(&self, id: &ApprovalId, by: &Role) -> Result<(), RecordError> {
        self.state()?.revoke(id, by)
    }

    /// The grants that are in force.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn grants(&self) -> Result<Vec<Waiting>, RecordError> {
        self.state()?.grants()
    }

    /// Numbers for a monitoring system, in the text form of Prometheus.
    ///
    /// # Errors
    ///
    /// When the state directory or the index cannot be used.
    pub fn metrics(&self) -> Result<String, MetricsError> {
        metrics::text(&*self.state()?, &self.latency)
    }

    /// How many requests were withheld from the people in the last hour, by session.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn withheld(&self) -> Result<Vec<(String, u64)>, RecordError> {
        self.state()?.withheld()
    }

    /// What each scope that a pending call can be granted with would have allowed of the last calls.
    ///
    /// # Errors
    ///
    /// As [`Gateway::approval`].
    pub fn previews(&self, id: &ApprovalId) -> Result<Vec<Preview>, RecordError> {
        self.state()?.previews(id)
    }

    /// Refuses a pending call.
    ///
    /// # Errors
    ///
    /// As [`Gateway::grant`].
    pub fn refuse(&self, id: &ApprovalId, by: &Role, reason: Option<&str>) -> Result<(), RecordError> {
        self.state()?.refuse(id, by, reason)
    }

    /// Whom a presented token speaks for.
    ///
    /// # Errors
    ///
    /// When nobody is known by it. The token is in no error.
    pub fn role_of(&self, token: &str) -> Result<Role, RecordError> {
        let digest = Digest::of(token);
        let config = self.config();
        let file = &config.file;
        if let Some(agent) = file.agents.iter().find(|a| a.token_sha256 == Some(digest)) {
            return Ok(Role::Agent(agent.name.clone()));
        }
        if let Some(person) = file.operators.iter().find(|p| p.token_sha256 == digest) {
            return Ok(Role::Operator(person.name.clone()));
        }
        if let Some(person) = file.reviewers.iter().find(|p| p.token_sha256 == digest) {
            return Ok(Role::Reviewer(person.name.clone()));
        }
        let role = self.state()?.role_of(token)?;
        // Where the configuration names an agent's token, the one that the gateway once made for it counts no more.
        let named = |agent: &str| file.agents.iter().any(|a| a.name == agent && a.token_sha256.is_some());
        if let Role::Agent(name) = &role
            && named(name)
        {
            return Err(CredentialError::Unknown.into());
        }
        Ok(role)
    }

    /// The exact call that an approval is about. Absent once the approval has ended.
    ///
    /// # Errors
    ///
    /// As [`Gateway::approval`].
    pub fn exact(&self, id: &ApprovalId) -> Result<Option<Exact>, RecordError> {
        self.state()?.exact(id)
    }

    /// Makes tokens for the agents whose configuration names none (the built-in one where there is no other). Gives each
    /// agent's name and the file that holds its token.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn agent_tokens(&self) -> Result<Vec<(String, PathBuf)>, RecordError> {
        let config = self.config();
        let agents = &config.file.agents;
        let mut names: Vec<&str> =
            agents.iter().filter(|a| a.token_sha256.is_none()).map(|a| a.name.as_str()).collect();
        if agents.is_empty() {
            names.push(LOCAL_AGENT);
        }
        let state = self.state()?;
        names.into_iter().map(|name| Ok((name.to_owned(), state.agent_token(name)?))).collect()
    }

    /// Whether calls can be put on record.
    ///
    /// # Errors
    ///
    /// Why they cannot.
    pub fn ready(&self) -> Result<(), RecordError> {
        self.state()?.ready()
    }

    /// Waits until everything that was recorded is on disk.
    ///
    /// # Errors
    ///
    /// When the disk does not take it.
    pub fn sync(&self) -> Result<(), RecordError> {
        self.state()?.sync()
    }

    /// The operator who owns the state directory.
    ///
    /// # Errors
    ///
    /// When the state directory cannot be used.
    pub fn own_operator(&self) -> Result<Role, RecordError> {
        self.state()?.own_operator()
    }

    fn ground(&self, workspace: &Path, profile: &str) -> Result<Arc<Ground>, RulesError> {
        self.rules().ground(workspace, profile)
    }

    /// The rules in force. Where people approved servers' tools meanwhile, or a server offers others, they are made anew;
    /// where that fails the old ones stay, and calls say so.
    fn rules(&self) -> Arc<Rules> {
        let rules = Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner));
        if !rules.is_repinned() {
            return rules;
        }
        match Rules::load(Arc::clone(&rules.config), &self.own, &self.servers) {
            Ok(made) => {
                let made = Arc::new(made);
                *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&made);
                made
            }
            Err(error) => {
                tracing::warn!("the tools of servers cannot be loaded again: {error}");
                self.stale.store(true, Ordering::Relaxed);
                rules
            }
        }
    }

    fn state(&self) -> Result<Arc<State>, RecordError> {
        if let Some(state) = self.state.get() {
            return Ok(Arc::clone(state));
        }
        let opened = Arc::new(State::open(&self.config())?);
        Ok(Arc::clone(self.state.get_or_init(|| opened)))
    }
}

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error("the tools cannot be set up: {0}")]
    Tools(#[from] crate::tools::SetupError),
}
