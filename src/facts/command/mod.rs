//! The analysed shell command: which programs it would run with which words, what effects that has, and which rules of
//! the packs object. Nothing is executed or looked up in the file system here.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::facts::path::Access;
use crate::verdict::Finding;

/// What is known of a command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandFacts {
    pub parse: Parse,
    /// The programs that would run, wrappers and what they wrap alike, by base name.
    pub programs: BTreeSet<String>,
    pub effects: BTreeSet<Effect>,
    /// Hosts named in arguments, without port.
    pub hosts: BTreeSet<String>,
    /// Paths that the command reads or writes.
    pub paths: Vec<PathUse>,
    /// The rules that fired, and what could not be analysed.
    pub findings: Vec<Finding>,
}

/// How much of the command was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parse {
    Complete,
    /// Some words, or some part, could not be resolved.
    Partial,
    /// Nothing is known.
    Opaque,
}

/// A kind of thing that a command does, by its name in policies (`context.command.effects.contains("delete")`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Effect(pub String);

/// A path that a command uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathUse {
    /// The absolute path as far as it is known by name; `None` when it cannot be known.
    pub path: Option<String>,
    pub access: Access,
    /// The place in the command that names it, in bytes.
    pub span: Option<Range<usize>>,
}
