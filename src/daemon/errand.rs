//! What the thin clients ask of the daemon, and do themselves where no daemon runs: the same words, the same way.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{Role, Status, presented_token};
use crate::call::{Digest, Origin, Request};
use crate::config::Places;
use crate::gateway::{Caller, Gateway, OpenError, RecordError, RulesError};
use crate::registry;

/// Where the errands' routes begin; they are there on the Unix socket alone.
pub const CALL: &str = "/errand/call";
pub const JUDGE: &str = "/errand/judge";
pub const OFFERS: &str = "/errand/offers";

/// Tells the daemon which installation the client belongs to.
pub const INSTALLATION: &str = "portcullis-installation";

/// A call as a thin client describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errand {
    pub agent: Option<String>,
    pub session: String,
    pub workspace: Option<PathBuf>,
    /// The client's current directory.
    pub here: PathBuf,
    pub cwd: Option<PathBuf>,
    /// Whether `cwd` may name another workspace where none was chosen: for questions about calls that are made elsewhere.
    pub roams: bool,
    pub tool: String,
    /// The arguments as JSON text, so that their nesting is measured alike on both sides.
    pub arguments: String,
    pub origin: Origin,
    /// The agent's own identifier for the call, for the record.
    pub caller_id: Option<String>,
    /// Whether a client that goes away takes the call back: what it started is then ended. Otherwise it runs to its end.
    pub while_connected: bool,
}

/// Whose calls an errand's are, and what they could be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offers {
    pub agent: String,
    pub workspace: PathBuf,
    /// The tools that the caller could ever be allowed, as clients list them, in the registry's order.
    pub tools: Vec<Value>,
}

/// Where an approval stands: what matters here of the answer of `GET /api/pending/{id}`.
#[derive(Clone, Debug, Deserialize)]
pub struct Standing {
    pub status: Status,
    /// Why a person refused it.
    pub reason: Option<String>,
}

/// Why an errand is no call.
#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    #[error("the arguments are not valid JSON: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("{} is outside of {}, where agent `{agent}` works: choose a directory in there", chosen.display(), workspace.display())]
    Elsewhere { agent: String, chosen: PathBuf, workspace: PathBuf },
    #[error("PORTCULLIS_TOKEN is the credential of agent `{0}`; leave --agent out")]
    OtherAgent(String),
    #[error("the session's name `{0}` holds a `/`: an agent that presents its credential chooses one without")]
    Session(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Rules(#[from] RulesError),
}

impl Errand {
    /// Whose call it is. A person may call as any agent and anywhere. An agent that presents its credential is that agent
    /// and no other, stays in its workspace, or in `home` where its configuration names none, and its sessions are apart
    /// from those of others.
    ///
    /// # Errors
    ///
    /// When the agent is not configured, or the workspace holds the gateway's own directories.
    pub fn caller(
        &self,
        gateway: &Gateway,
        presented: Option<&Role>,
        home: Option<&Path>,
    ) -> Result<Caller, ErrandError> {
        let by = |agent, session: &str| {
            let caller = gateway.caller_from(agent, session, self.workspace.as_deref(), &self.here)?;
            Ok::<_, OpenError>(Caller { origin: self.origin, bound: caller.bound || !self.roams, ..caller })
        };
        let Some(Role::Agent(name)) = presented else { return Ok(by(self.agent.as_deref(), &self.session)?) };
        if self.agent.as_ref().is_some_and(|asked| asked != name) {
            return Err(ErrandError::OtherAgent(name.clone()));
        }
        if self.session.contains('/') {
            return Err(ErrandError::Session(self.session.clone()));
        }
        let caller = by(Some(name), &format!("{name}/{}", self.session))?;
        let own = gateway.config().agent(Some(name)).map_err(OpenError::from)?.workspace;
        let Some(own) = own.as_deref().or(home) else { return Ok(caller) };
        let real = own.canonicalize().unwrap_or_else(|_| own.to_owned());
        // One that cannot be looked up now could lead elsewhere in the next moment.
        let known = caller.workspace.canonicalize().is_ok_and(|path| path == caller.workspace);
        if !known || !caller.workspace.starts_with(&real) {
            let chosen = caller.workspace;
            return Err(ErrandError::Elsewhere { agent: name.clone(), chosen, workspace: real });
        }
        Ok(Caller { bound: true, ..caller })
    }

    /// The request that it describes.
    ///
    /// # Errors
    ///
    /// When the arguments are no JSON.
    pub fn request(&self, caller: &Caller) -> Result<Request, ErrandError> {
        let arguments = crate::json::parse(self.arguments.as_bytes())?;
        let caller_id = self.caller_id.clone();
        Ok(Request { cwd: self.cwd.clone(), caller_id, ..caller.request(self.tool.clone(), arguments) })
    }

    /// What this caller could ever be allowed.
    ///
    /// # Errors
    ///
    /// When the workspace's rules cannot be used, so that nothing is allowed.
    pub fn offers(gateway: &Gateway, caller: &Caller) -> Result<Offers, ErrandError> {
        let tools = gateway.offers(caller)?.iter().map(|tool| registry::listed(tool.definition())).collect();
        Ok(Offers { agent: caller.principal.agent.clone(), workspace: caller.workspace.clone(), tools })
    }
}

/// Whom the credential in `PORTCULLIS_TOKEN` speaks for, where there is one.
///
/// # Errors
///
/// When it is not known to this gateway.
pub(crate) fn presented(gateway: &Gateway) -> Result<Option<Role>, RecordError> {
    presented_token()?.map(|token| gateway.role_of(&token)).transpose()
}

/// What a client and the daemon must have in common to give the same answers: the version and the places.
pub fn installation(places: &Places) -> String {
    let same = serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "places": format!("{places:?}") });
    Digest::of_json(&same).to_string()
}
