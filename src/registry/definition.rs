//! What a tool is, apart from how it runs.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::call::Digest;
pub use crate::call::Sensitivity;
use crate::config::Stdio;
use crate::facts::path::Access;
use crate::verdict::Finding;

/// What a tool is, for models, policies and people.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: Cow<'static, str>,
    /// For a model.
    pub description: Cow<'static, str>,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub sensitivity: Sensitivity,
    /// The policy groups (`Action::"edit"`, ...) that the tool belongs to besides its sensitivity.
    pub groups: &'static [&'static str],
    /// Which arguments name something that facts are gathered of.
    pub subjects: &'static [Subject],
    /// The most bytes of output that are passed on.
    pub max_output: usize,
    /// Where the tool is one of an MCP server behind the gateway.
    pub upstream: Option<Arc<Foreign>>,
}

/// What is known of a tool that an MCP server behind the gateway has.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name there.
    pub original: String,
    /// The tool as the server listed it and a person approved it, with every field.
    pub listed: Value,
    /// Names what was pinned; a call's digest binds it.
    pub pin: Digest,
    pub standing: Standing,
    /// What is noticed of the tool's description, and what stands against calling it.
    pub findings: Vec<Finding>,
    /// The confinement of the server, where it is a program.
    pub confinement: Option<Confined>,
    /// Whether policies see the arguments.
    pub typed: bool,
    /// Whether the operator vouches for what the server answers. Otherwise its answers taint the session.
    pub trusted: bool,
}

/// How a server that is a program is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    pub profile: String,
    /// Directories besides those that all programs may use.
    pub read_roots: Vec<PathBuf>,
    pub write_roots: Vec<PathBuf>,
}

impl Confined {
    /// As the server's configuration says.
    pub fn of(stdio: &Stdio) -> Self {
        Confined {
            profile: stdio.profile.clone(),
            read_roots: stdio.read_roots.clone(),
            write_roots: stdio.write_roots.clone(),
        }
    }
}

/// Where a server's tool stands with the people who approve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what was approved.
    Pinned,
    /// The server defines it otherwise by now.
    Changed,
    /// Nobody approved it yet.
    New,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Pinned => "pinned",
            Standing::Changed => "changed",
            Standing::New => "new",
        }
    }
}

/// An argument whose value is more than text.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A path, and what the tool does with it.
    Path { argument: &'static str, access: Access },
    /// A directory that is read with everything below it.
    Tree { argument: &'static str },
    /// A shell command that the tool runs, confined.
    Command { argument: &'static str },
}

impl Subject {
    /// The argument that names a path, and what the tool does there.
    pub fn path(&self) -> Option<(&'static str, Access)> {
        match *self {
            Subject::Path { argument, access } => Some((argument, access)),
            Subject::Tree { argument } => Some((argument, Access::Read)),
            Subject::Command { .. } => None,
        }
    }
}
