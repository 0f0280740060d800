//! The analysed shell command: which programs it would run with which words, what effects that has, and which rules of
//! the packs object. Nothing is executed or looked up in the file system here.
//!
//! The way of a command: [`Guard::analyse`] (`packs/rules`) parses it (`grammar`), and the interpreter (`shell`) follows it
//! as bash would, with an environment, resolving `words` on abstract text. `shell/exec` hands each program to who knows
//! it: the shell's own (`shell/builtins`), programs that run other programs (`wrappers`), interpreters of other
//! `languages`, files on disk that it runs (`scripts`); or reads its `effects` on kinds of targets. The rules of the
//! `packs` decide which of that is a finding (`notes`). `limits` holds every bound. [`Guard::understand`] keeps each call
//! with its words as well (`sites`), for explanations and for the comparison with bash.
//!
//! # Effects
//!
//! Policies see these names in `context.command.effects`:
//!
//! | on | effects |
//! |---|---|
//! | files | `read` (its content is shown or passed on), `inspect` (looked into), `create`, `overwrite`, `append`, `edit`, `truncate`, `shred`, `move`, `link` (and `link-to` what it points at), `delete`, `delete-empty` (rmdir), `unpack` (files land in a directory) |
//! | disks | `write-device`, `format`, `partition` |
//! | rights | `permission` (with `permission.setuid`, `permission.world-writable`, `permission.lock`, or `permission.narrow` instead), `ownership`, `privilege` |
//! | the machine | `mount`, `kernel`, `kill` (`kill-all`, `kill-gateway`), `power`, `security-service`, `fork-bomb`, `persistence`, `schedules`, `package-install`, `package-remove` |
//! | the network | `fetch`, `fetch-and-run`, `send`, `send-secret`, `listen`, `reverse-shell`, `remote-exec`, `container-escape`, `mount-host` (a container gets a home directory) |
//! | secrets | `credential-read` |
//! | what others share | `history-rewrite`, `git.push.force` and its like, `publish`, `cloud-change`, `cloud-destroy`, `db-destroy`, `db-program` (a database's server runs a program, or reads and writes files) |
//! | what cannot be seen | `obfuscation` (decoded text that runs), `run-unknown`, `environment-program`, `environment-loader`, `deceptive-text`, `lookalike-host`, `history-off`, `unresolved` (a program's name cannot be known) |
//!
//! `bulk` marks a program that runs once for each of many things. An effect need not be a finding: most of these happen every day, and it is for policies to say where they may not.
//! What the effects are on, policies see in `context.command.scopes` (root, system, home, other-home, workspace, temp,
//! device, gateway, outside, unknown) and `context.paths.protected`; rules of packs see the finer kinds of `target`.

mod effects;
mod grammar;
mod languages;
mod limits;
mod notes;
mod packs;
mod scripts;
mod shell;
mod sites;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_effects;
#[cfg(test)]
mod tests_run;
mod words;
mod wrappers;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::limits::Limits;
pub use self::packs::lints::lint;
pub use self::packs::rules::{Guard, Rule};
pub use self::packs::{PackError, PackProblem, PackSource, Trust};
pub use self::scripts::{Content, NoScripts, Read, Script, ScriptFact, Scripts};
pub use self::sites::{Element, Opened, Site, SiteEffect, SiteKind, SitePath, Text, Understanding};
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
    /// The files on disk that it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptFact>,
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

impl Borrow<str> for Effect {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A path that a command uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathUse {
    /// The absolute path as far as it is known by name; `None` when it cannot be known.
    pub path: Option<String>,
    pub access: Access,
    /// The place in the command that names it, in bytes.
    #[serde(default, with = "crate::verdict::span")]
    pub span: Option<Range<usize>>,
}
