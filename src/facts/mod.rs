//! What is known of a call before anything runs, computed once. The firewall's stages see facts and nothing else, so
//! a decision can be replayed from the audit log and fuzzed without a file system.

pub mod command;
pub mod path;
pub mod scripts;
mod surroundings;
pub mod url;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::surroundings::{Scope, Surroundings, normalise};
use crate::call::Sensitivity;
use crate::facts::command::CommandFacts;
use crate::facts::path::PathFact;
use crate::facts::url::UrlFact;
use crate::sandbox::Tier;
use crate::verdict::Finding;

/// Everything a decision may depend on besides the call itself and the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub sensitivity: Sensitivity,
    /// Present where the tool runs a shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandFacts>,
    /// Every path that the call names, in its arguments or in its command, with where it lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathFact>,
    /// Present where the tool runs a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxFacts>,
    /// Every URL among the arguments of a tool that does not say what they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<UrlFact>,
    /// Present where the tool is one of an MCP server behind the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpFacts>,
    pub session: SessionFacts,
    /// When the facts were gathered.
    pub now: Timestamp,
    /// What gathering noticed about the call as a whole, such as an argument that policies cannot see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
}

/// The server's tool that is called, and what a person approved of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpFacts {
    pub server: String,
    /// `pinned`, `changed` or `new`.
    pub standing: String,
    /// Identifiers of what is noticed of the tool's description.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

/// The session's history so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    pub calls: u64,
    pub denials: u64,
    /// The session has read untrusted content.
    pub tainted: bool,
    /// The command runs a file that the same agent wrote earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrote: bool,
}

impl SandboxFacts {
    /// Of a program that somebody else runs, unconfined.
    pub fn unconfined() -> Self {
        SandboxFacts {
            profile: "none".to_owned(),
            requires: Tier::None,
            offers: Tier::None,
            network: true,
            missing: Vec::new(),
            ask_when_missing: false,
        }
    }

    /// Whether nothing confines the program, and nothing was meant to.
    pub fn is_none(&self) -> bool {
        *self == SandboxFacts::unconfined()
    }
}

/// The confinement asked for, and what this kernel offers of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFacts {
    pub profile: String,
    /// The weakest tier the profile accepts.
    pub requires: Tier,
    /// The tier that this kernel gives the profile.
    pub offers: Tier,
    pub network: bool,
    /// Required layers that this kernel cannot give, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The profile asks a reviewer, rather than refusing, where something required is missing.
    pub ask_when_missing: bool,
}
