//! The one way through: canonicalise, facts, firewall, approval, dispatch, audit. Every front calls [`Gateway::call`];
//! none decides anything itself.

mod ground;
mod record;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::ground::{Base, Ground};
use self::record::State;
use crate::approval::{Approver, Grant, Pending};
use crate::audit;
use crate::call::{Call, Digest, Origin, Principal, Request};
use crate::config::{Config, ConfigError};
use crate::facts::{Facts, SessionFacts};
use crate::firewall::{Approval, Cleared, Prepared};
use crate::registry::{self, Output, Registry, Tool, ToolError};
use crate::sandbox::Kernel;
use crate::verdict::{Decision, Finding, Severity, Verdict};

/// One installation's gateway: the tools, the rules, and the log that every call goes through.
pub struct Gateway {
    config: Config,
    registry: Registry,
    kernel: Kernel,
    base: RwLock<Arc<Base>>,
    /// What each workspace adds to the base, made when its first call comes.
    grounds: Mutex<HashMap<PathBuf, Arc<Ground>>>,
    state: OnceLock<State>,
}

/// On whose behalf calls come in, and where.
#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
    pub workspace: PathBuf,
    /// Whether the workspace was chosen; otherwise it is just the current directory.
    pub bound: bool,
    pub profile: String,
    pub allowed_tools: Option<Vec<String>>,
    pub operator: Option<String>,
    pub origin: Origin,
}

impl Caller {
    /// A request of this caller's.
    pub fn request(&self, tool: String, arguments: Value) -> Request {
        let principal = self.principal.clone();
        Request { tool, arguments, cwd: None, principal, origin: self.origin, caller_id: None }
    }
}

/// A call and the firewall's answer to it.
#[derive(Clone, Debug)]
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

    /// The shell command that the call would run.
    pub fn command(&self) -> Option<&str> {
        self.call.as_ref().and_then(|c| c.text("command"))
    }
}

/// What came of a call.
#[must_use]
#[derive(Debug)]
pub enum Outcome {
    /// A person has to approve; then the same call is made again.
    Asks(Asks),
    Denied(Judged),
    /// It was let through and ran.
    Done(Done),
}

/// A call that waits for a person.
#[derive(Debug)]
pub struct Asks {
    pub judged: Judged,
    pub pending: Pending,
}

/// A call that ran.
#[derive(Debug)]
pub struct Done {
    /// The call's id in the audit log.
    pub call: String,
    pub judged: Judged,
    pub result: Result<Output, ToolError>,
}

impl Gateway {
    /// Loads policies, packs and profiles. The state directory is not touched until a call is made.
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration, with file, line and column.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let registry = crate::tools::all();
        let base = Base::load(&config, &registry)?;
        Ok(Gateway {
            config,
            registry,
            kernel: Kernel::probe(),
            base: RwLock::new(Arc::new(base)),
            grounds: Mutex::default(),
            state: OnceLock::new(),
        })
    }

    /// Loads the rules again. Where they are wrong the old ones stay in force.
    ///
    /// # Errors
    ///
    /// What is wrong with the new ones.
    pub fn reload(&self) -> Result<(), OpenError> {
        let before = self.base().policies.hash();
        let loaded = Base::load(&self.config, &self.registry);
        if let Ok(state) = self.state() {
            state.control(&loaded, before);
        }
        *self.base.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded?);
        self.grounds.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    fn base(&self) -> Arc<Base> {
        Arc::clone(&self.base.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The caller that an agent's name, a session and perhaps a workspace stand for.
    ///
    /// # Errors
    ///
    /// When the agent is not configured, or the workspace holds the gateway's own directories.
    pub fn caller(&self, agent: Option<&str>, session: &str, workspace: Option<&Path>) -> Result<Caller, OpenError> {
        let agent = self.config.agent(agent)?;
        let chosen = workspace.map(Path::to_owned).or(agent.workspace);
        let bound = chosen.is_some();
        let workspace = std::path::absolute(chosen.unwrap_or_else(|| PathBuf::from(".")))
            .map_err(|source| ConfigError::Read { path: PathBuf::from("."), source })?;
        self.config.places.refuse_inside(&workspace)?;
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
            profile: agent.profile.or(self.config.file.profile.clone()).unwrap_or_else(|| DEFAULT_PROFILE.to_owned()),
            allowed_tools: agent.allowed_tools,
            operator: agent.operator,
            origin: Origin::Cli,
        })
    }

    /// What the firewall would answer. Runs nothing and records nothing.
    pub fn judge(&self, caller: &Caller, request: Request) -> Judged {
        let tool = request.tool.clone();
        match self.prepare(caller, request) {
            Ok((ground, prepared)) => {
                let verdict = ground.firewall.judge(&prepared.call, &prepared.facts, 0);
                Judged { tool, call: Some(prepared.call), facts: Some(prepared.facts), verdict }
            }
            Err(reason) => Judged::refused(tool, reason),
        }
    }

    /// Makes a call, the whole way.
    pub async fn call(&self, caller: &Caller, request: Request) -> Outcome {
        let tool = request.tool.clone();
        let state = match self.state() {
            Ok(state) => state,
            Err(error) => return Outcome::Denied(Judged::refused(tool, record::unavailable(&error))),
        };
        let (ground, prepared) = match self.prepare(caller, request.clone()) {
            Ok(prepared) => prepared,
            Err(reason) => {
                let reason = state.rejected(&request, reason);
                return Outcome::Denied(Judged::refused(tool, reason));
            }
        };
        let verdict = ground.firewall.judge(&prepared.call, &prepared.facts, 0);
        let effective = ground.firewall.effective(&prepared.call, &verdict);
        let mut judged =
            Judged { tool, call: Some(prepared.call.clone()), facts: Some(prepared.facts.clone()), verdict };
        let entry = record::Entry { judged: &judged, digest: prepared.digest, hashes: ground.hashes(&prepared) };

        let grant = match effective {
            Decision::Allow => None,
            Decision::Ask(_) => match state.usable_grant(&entry) {
                Ok(Some(grant)) => Some(grant),
                Ok(None) => return state.ask(entry, caller).unwrap_or_else(|reason| deny(judged, reason)),
                Err(reason) => return deny(judged, reason),
            },
            Decision::Deny => {
                let recorded = state.decided(&entry, effective, None, false);
                if let Err(reason) = recorded {
                    judged.verdict.object(reason);
                }
                return Outcome::Denied(judged);
            }
        };
        let approval = grant.as_ref().map_or(Approval::Standing, Approval::Granted);
        let cleared = match ground.firewall.clear(prepared, approval) {
            Ok(cleared) => cleared,
            Err(verdict) => {
                judged.verdict = verdict;
                let entry = record::Entry { judged: &judged, ..entry };
                return match judged.verdict.decision {
                    Decision::Ask(_) => state.ask(entry, caller).unwrap_or_else(|reason| deny(judged, reason)),
                    _ => {
                        let recorded = state.decided(&entry, Decision::Deny, None, false);
                        recorded.err().into_iter().for_each(|reason| judged.verdict.object(reason));
                        Outcome::Denied(judged)
                    }
                };
            }
        };
        // The grant is spent, and the decision on disk, before anything runs.
        if let Some(grant) = &grant
            && let Err(reason) = state.consume(grant)
        {
            return deny(judged, reason);
        }
        let deferred = may_ride(&cleared, &judged.verdict);
        if let Err(reason) = state.decided(&entry, Decision::Allow, grant.as_ref(), deferred) {
            return deny(judged, reason);
        }
        self.dispatch(state, cleared, judged).await
    }
}
