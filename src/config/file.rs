//! What `portcullis.toml` may say. An unknown key is an error, with its line and column.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use jiff::SignedDuration;
use serde::Deserialize;

use crate::audit::Settings;
use crate::call::{Digest, Mode};
use crate::config::exceptions::Entry;
use crate::config::fields;
use crate::config::upstreams::{Upstream, UpstreamName};
use crate::facts::command::Limits as Bounds;
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
    #[serde(default, deserialize_with = "fields::all_absolute")]
    pub read_roots: Vec<PathBuf>,
    /// Directories outside the workspace that may be read and written.
    #[serde(default, deserialize_with = "fields::all_absolute")]
    pub write_roots: Vec<PathBuf>,
    /// Further protected paths, besides the built-in ones.
    #[serde(default)]
    pub protect: Vec<ProtectedRule>,
    /// The sandbox profile for agents that name none.
    pub profile: Option<String>,
    /// Rules that an operator does not want to hold somewhere.
    #[serde(default)]
    pub exceptions: Vec<Entry>,
    /// How much of a command is analysed.
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub approval: Approval,
    #[serde(default)]
    pub audit: Audit,
    #[serde(default)]
    pub serve: Serve,
    /// MCP servers behind the gateway, by name.
    #[serde(default)]
    pub upstreams: BTreeMap<UpstreamName, Upstream>,
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

/// How much of a command is analysed, where less than usual, or more, is wanted. A limit that is hit is a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes of the command.
    pub bytes: Option<usize>,
    /// Nesting of commands in commands.
    pub depth: Option<usize>,
    /// Program calls that are followed, loops unrolled.
    pub sites: Option<usize>,
    /// Bytes that expansions may give in all.
    pub expansion: Option<usize>,
}

impl Limits {
    /// The most that may be asked for: the analysis stays bounded.
    const MOST: [(&'static str, usize); 4] =
        [("bytes", 1 << 20), ("depth", 160), ("sites", 10_000), ("expansion", 4 << 20)];

    /// A limit beyond what is possible, with the most that is.
    pub fn excessive(&self) -> Option<(&'static str, usize)> {
        let given = [self.bytes, self.depth, self.sites, self.expansion];
        Self::MOST
            .into_iter()
            .zip(given)
            .find(|((_, most), given)| given.is_some_and(|given| given > *most))
            .map(|x| x.0)
    }

    /// What is said here, else below.
    pub fn over(self, below: Self) -> Self {
        Limits {
            bytes: self.bytes.or(below.bytes),
            depth: self.depth.or(below.depth),
            sites: self.sites.or(below.sites),
            expansion: self.expansion.or(below.expansion),
        }
    }

    /// The bounds of an analysis with these in the place of the usual ones.
    pub fn set(&self, usual: Bounds) -> Bounds {
        Bounds {
            bytes: self.bytes.unwrap_or(usual.bytes),
            depth: self.depth.unwrap_or(usual.depth),
            sites: self.sites.unwrap_or(usual.sites),
            text_in_all: self.expansion.unwrap_or(usual.text_in_all),
            text: usual.text.min(self.expansion.unwrap_or(usual.text)),
            ..usual
        }
    }
}

/// How long approvals last.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// How long a request waits for an answer, such as `10m`.
    #[serde(default, deserialize_with = "fields::duration")]
    pub pending: Option<SignedDuration>,
    /// How long a grant may be used.
    #[serde(default, deserialize_with = "fields::duration")]
    pub grant: Option<SignedDuration>,
    /// How long a grant for the session lasts, such as `8h`.
    #[serde(default, deserialize_with = "fields::duration")]
    pub session: Option<SignedDuration>,
    /// How many calls of a session may ask in a minute; more are denied, and counted.
    pub per_minute: Option<std::num::NonZero<u32>>,
}

/// How the audit log is kept.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// A checkpoint is signed after this many records.
    pub checkpoint_every: Option<std::num::NonZero<u64>>,
    /// The log's file is closed, and a new one begun, when it has this many bytes.
    pub rotate_bytes: Option<std::num::NonZero<u64>>,
    /// How many closed files are kept; all of them where absent.
    pub keep_files: Option<usize>,
    /// A file to which every checkpoint is appended: on another disk, or one that another host collects.
    #[serde(default, deserialize_with = "fields::absolute")]
    pub ship_checkpoints_to: Option<PathBuf>,
}

impl Audit {
    /// The same for the log.
    pub fn settings(&self) -> Settings {
        let usual = Settings::default();
        Settings {
            checkpoint_every: self.checkpoint_every.map_or(usual.checkpoint_every, std::num::NonZero::get),
            rotate_bytes: self.rotate_bytes.map_or(usual.rotate_bytes, std::num::NonZero::get),
            keep_files: self.keep_files,
            ship_to: self.ship_checkpoints_to.clone(),
        }
    }
}

/// The daemon.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The loopback address of the HTTP interface, such as `127.0.0.1:8460`; port 0 takes any that is free.
    #[serde(default, deserialize_with = "fields::listen")]
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
    #[serde(default, deserialize_with = "fields::absolute")]
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
    #[serde(default, deserialize_with = "fields::token_if_any")]
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
    #[serde(deserialize_with = "fields::token")]
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
