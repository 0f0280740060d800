//! The servers behind the gateway, for the people who add them and approve their tools.

use std::sync::Arc;

use serde_json::Value;

use crate::audit::Change;
use crate::call::Digest;
use crate::config::{Config, Reach, UpstreamName};
use crate::gateway::prepare::ConfineError;
use crate::gateway::{Caller, Gateway, OpenError, RecordError, RulesError};
use crate::registry::{Confined, Registry};
use crate::upstream::{Listing, Pins, PinsError, ServerPins, UpstreamError, Upstreams, Whom};
use crate::verdict::Finding;

/// The gateway's own tools and those that are pinned of the configured servers, where no gateway is open.
///
/// # Errors
///
/// When the tools cannot be set up, or the pins not be read.
pub(crate) fn registry(config: &Config) -> Result<Registry, OpenError> {
    let mut registry = crate::tools::all()?;
    if !config.file.upstreams.is_empty() {
        let state = &config.places.state;
        let servers = Arc::new(Upstreams::new(state).map_err(crate::tools::SetupError::Launcher)?);
        let pins = Pins::load(state).map_err(RulesError::from)?;
        crate::upstream::register(&mut registry, config, &pins, &servers);
    }
    Ok(registry)
}

/// What a server says of itself, and how that stands with what is pinned.
pub struct Discovered {
    pub listing: Listing,
    /// Its answer to `initialize`.
    pub about: Value,
    pub pinned: ServerPins,
}

/// Why a server cannot be looked at, or its tools not be approved.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("there is no server `{name}` in the configuration: there {}", list(known))]
    Unknown { name: String, known: Vec<String> },
    #[error("the server `{server}` cannot be confined: {error}")]
    Confine { server: String, error: String },
    #[error(transparent)]
    Pins(#[from] PinsError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

fn list(known: &[String]) -> String {
    match known {
        [] => "is none; `portcullis mcp add` adds one".to_owned(),
        [one] => format!("is {one}"),
        several => format!("are {}", several.join(", ")),
    }
}

impl Gateway {
    /// Starts a server, or connects to it, for this caller, and asks it for its tools. What is not pinned is recorded as
    /// waiting for a person.
    ///
    /// # Errors
    ///
    /// What keeps the server from answering.
    pub async fn discover(&self, caller: &Caller, server: &str) -> Result<Discovered, ServerError> {
        let rules = self.rules();
        let upstreams = &rules.config.file.upstreams;
        let Some((name, upstream)) = upstreams.iter().find(|(name, _)| name.as_str() == server) else {
            let known = upstreams.keys().map(ToString::to_string).collect();
            return Err(ServerError::Unknown { name: server.to_owned(), known });
        };
        let plan = match &upstream.reach {
            Reach::Stdio(stdio) => {
                let ground = rules.ground(&caller.workspace, &caller.profile)?;
                let confined = Confined::of(stdio);
                let failed =
                    |error: ConfineError| ServerError::Confine { server: server.to_owned(), error: error.to_string() };
                Some(self.server_plan(&rules, &ground, name.as_str(), &confined).map_err(failed)?.0)
            }
            Reach::Http(_) => None,
        };
        let whom = Whom { agent: &caller.principal.agent, plan: plan.as_ref() };
        let (listing, about, pinned) = self.servers.discover(&whom, name.as_str(), upstream).await?;
        Ok(Discovered { listing, about, pinned })
    }

    /// Approves what a server offers: these tools, or all. It goes on record. Gives the names of what was approved.
    ///
    /// # Errors
    ///
    /// When that cannot be written.
    pub fn approve_tools(&self, server: &UpstreamName, tools: Option<&[String]>) -> Result<Vec<String>, ServerError> {
        let state = self.config().places.state.clone();
        let digest = |pins: &Pins| Digest::of_json(&serde_json::to_value(pins.of(server.as_str())).unwrap_or_default());
        let before = digest(&Pins::load(&state)?);
        let approved = Pins::approve(&state, server.as_str(), tools)?;
        let after = digest(&Pins::load(&state)?);
        let detail = format!("{server}: {}", approved.join(", "));
        self.state()?.control(Change::ToolsPinned, detail, before, Some(after))?;
        Ok(approved)
    }

    /// Servers' tools that cannot be offered, and why.
    pub fn refused_tools(&self) -> Vec<Finding> {
        self.rules().refused.clone()
    }
}
