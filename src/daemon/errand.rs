//! What the thin clients ask of the daemon, and do themselves where no daemon runs: the same words, the same way.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::Role;
use crate::call::{Digest, Request};
use crate::config::Places;
use crate::gateway::{Caller, Gateway, OpenError};

/// Where the errands' routes begin; they are there on the Unix socket alone.
pub const CALL: &str = "/errand/call";
pub const JUDGE: &str = "/errand/judge";

/// Tells the daemon which installation the client belongs to.
pub const INSTALLATION: &str = "portcullis-installation";

/// A call as the command line describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errand {
    pub agent: Option<String>,
    pub session: String,
    pub workspace: Option<PathBuf>,
    /// The client's current directory.
    pub here: PathBuf,
    pub cwd: Option<PathBuf>,
    pub tool: String,
    /// The arguments as JSON text, so that their nesting is measured alike on both sides.
    pub arguments: String,
}

/// Why an errand is no call.
#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    #[error("the arguments are not valid JSON: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("PORTCULLIS_TOKEN is the credential of agent `{0}`; leave --agent out")]
    OtherAgent(String),
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Errand {
    /// Whose call it is. An agent that presents its credential is that agent and no other; a person may call as any.
    ///
    /// # Errors
    ///
    /// When the agent is not configured, or the workspace holds the gateway's own directories.
    pub fn caller(&self, gateway: &Gateway, presented: Option<&Role>) -> Result<Caller, ErrandError> {
        let agent = match presented {
            Some(Role::Agent(name)) if self.agent.as_ref().is_some_and(|asked| asked != name) => {
                return Err(ErrandError::OtherAgent(name.clone()));
            }
            Some(Role::Agent(name)) => Some(name.as_str()),
            Some(Role::Operator(_) | Role::Reviewer(_)) | None => self.agent.as_deref(),
        };
        Ok(gateway.caller_from(agent, &self.session, self.workspace.as_deref(), &self.here)?)
    }

    /// The request that it describes.
    ///
    /// # Errors
    ///
    /// When the arguments are no JSON.
    pub fn request(&self, caller: &Caller) -> Result<Request, ErrandError> {
        let arguments: Value = serde_json::from_str(&self.arguments)?;
        Ok(Request { cwd: self.cwd.clone(), ..caller.request(self.tool.clone(), arguments) })
    }
}

/// What a client and the daemon must have in common to give the same answers: the version and the places.
pub fn installation(places: &Places) -> String {
    let same = serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "places": format!("{places:?}") });
    Digest::of_json(&same).to_string()
}
