//! What `portcullis.toml` may say. An unknown key is an error, with its line and column.

use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::SignedDuration;
use serde::Deserialize;

use crate::call::{Digest, Mode};
use crate::facts::path::ProtectedRule;

/// A user's or machine's `portcullis.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The shipped policy set to build on.
    pub policy_set: Option<PolicySet>,
    /// Whether file tools and commands must stay inside the workspace and the extra roots.
    pub restrict_to_workspace: Option<bool>,
    /// Directories outside the workspace that may be read.
    #[serde(default)]
    pub read_roots: Vec<PathBuf>,
    /// Directories outside the workspace that may be read and written.
    #[serde(default)]
    pub write_roots: Vec<PathBuf>,
    /// Further protected paths, besides the built-in ones.
    #[serde(default)]
    pub protect: Vec<ProtectedRule>,
    /// The sandbox profile for agents that name none.
    pub profile: Option<String>,
    #[serde(default)]
    pub approval: Approval,
    #[serde(default)]
    pub serve: Serve,
    #[serde(default)]
    pub agents: Vec<Agent>,
    #[serde(default)]
    pub operators: Vec<Person>,
    #[serde(default)]
    pub reviewers: Vec<Person>,
}

/// The policy sets that come with the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicySet {
    /// Safe tools are permitted, the rest asks.
    #[default]
    Ask,
    /// What would ask is denied.
    Strict,
    /// Only the policies of the configuration directories.
    None,
}

/// How long approvals last.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// How long a request waits for an answer, such as `10m`.
    pub pending: Option<SignedDuration>,
    /// How long a grant may be used.
    pub grant: Option<SignedDuration>,
}

/// The daemon.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The loopback address of the HTTP interface, such as `127.0.0.1:8460`; port 0 takes any that is free.
    pub listen: Option<SocketAddr>,
}

/// An agent that may make calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub name: String,
    #[serde(default)]
    pub teams: Vec<String>,
    /// The directory it works in; the current one where absent.
    pub workspace: Option<PathBuf>,
    #[serde(default)]
    pub mode: Mode,
    /// Nobody is there to answer: what would ask is denied.
    #[serde(default)]
    pub unattended: bool,
    /// The tools it may use; all where absent.
    pub allowed_tools: Option<Vec<String>>,
    pub profile: Option<String>,
    /// SHA-256 of its token, in hexadecimal.
    pub token_sha256: Option<Digest>,
    /// The operator who answers for its sessions, and so is no reviewer of them.
    pub operator: Option<String>,
}

/// An operator or a reviewer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    pub name: String,
    /// SHA-256 of the person's token, in hexadecimal.
    pub token_sha256: Digest,
}

/// A workspace's `.portcullis.toml`: it can only tighten.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceFile {
    pub restrict_to_workspace: Option<bool>,
    #[serde(default)]
    pub protect: Vec<ProtectedRule>,
    /// A narrower sandbox profile than the agent's.
    pub profile: Option<String>,
}
