//! The analysed shell command: which programs it would run with which words, what effects that has, and which rules of
//! the packs object. Nothing is executed or looked up in the file system here.

//!
//! The way of a command: [`Guard::analyse`] parses it (`parse`, `parse_word`, `parse_redirect` into `syntax`), the
//! interpreter (`walk`, `flow`, `branches`, `alternatives`, `redirects`, `functions`, `exec`) follows it with an
//! environment (`env`), resolving words (`expand`, `assign`, `braces`, `arithmetic`, `conditions`, `text`), names and
//! links (`names`, `links`). `exec` hands a program to the shell's own (`builtins`), to programs that run other programs
//! (`wrappers` by `wrapper_table`, `remote`, `multiplexers`, `shells`; options of ordinary programs in `launchers`, their
//! own command languages in `consoles`, unlisted ones in `hidden`), to other languages (`interpreters`: `inline` with its
//! lexer, evaluator and the libraries in `calls`, `tcl`, `lisp`, `text_scripts`, `windows`; files on disk in `scripts`,
//! `makefile`, `projects`), or reads its effects (`programs`, `files`, `network`, `databases`, `machine`, `kill`,
//! `find`, `git`) on kinds of targets (`target`) and its output (`producers`). The rules of the packs (`packs`,
//! `rules`) decide which of that is a finding (`notes`). `limits` holds every bound. [`Guard::understand`] keeps each call
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
//! | the network | `fetch`, `fetch-and-run`, `send`, `send-secret`, `listen`, `reverse-shell`, `remote-exec`, `container-escape` |
//! | secrets | `credential-read` |
//! | what others share | `history-rewrite`, `git.push.force` and its like, `publish`, `cloud-change`, `cloud-destroy`, `db-destroy` |
//! | what cannot be seen | `obfuscation` (decoded text that runs), `run-unknown`, `environment-program`, `environment-loader`, `deceptive-text`, `lookalike-host`, `history-off`, `unresolved` (a program's name cannot be known) |
//!
//! `bulk` marks a program that runs once for each of many things. An effect need not be a finding: most of these happen every day, and it is for policies to say where they may not.
//! What the effects are on, policies see in `context.command.scopes` (root, system, home, other-home, workspace, temp,
//! device, gateway, outside, unknown) and `context.paths.protected`; rules of packs see the finer kinds of `target`.

mod alternatives;
mod arithmetic;
mod assign;
mod braces;
mod branches;
mod builtins;
mod call_names;
mod call_values;
mod calls;
mod conditions;
mod consoles;
mod databases;
mod env;
mod exec;
mod expand;
mod exports;
mod files;
mod find;
mod flow;
mod forkbomb;
mod functions;
mod git;
#[cfg(test)]
mod grammar_tests;
mod hidden;
mod inline;
mod inline_eval;
mod inline_lex;
mod inline_statements;
#[cfg(test)]
mod interpreter_tests;
mod interpreters;
mod kill;
mod launchers;
mod limits;
mod links;
mod lints;
#[cfg(test)]
mod lints_tests;
mod lisp;
mod machine;
mod makefile;
mod multiplexers;
mod names;
mod network;
mod notes;
mod options;
mod packs;
mod parse;
mod parse_redirect;
mod parse_word;
mod places;
mod producers;
mod programs;
mod projects;
mod redirects;
mod remote;
mod rules;
mod scripts;
#[cfg(test)]
mod scripts_tests;
mod shells;
mod sites;
mod syntax;
mod target;
mod tcl;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_effects;
#[cfg(test)]
mod tests_run;
mod text;
mod text_scripts;
mod variables;
mod walk;
mod windows;
mod wrapper_table;
mod wrappers;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::limits::Limits;
pub use self::lints::lint;
pub use self::packs::{PackError, PackProblem, PackSource, Trust};
pub use self::rules::{Guard, Rule};
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

/// A path that a command uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathUse {
    /// The absolute path as far as it is known by name; `None` when it cannot be known.
    pub path: Option<String>,
    pub access: Access,
    /// The place in the command that names it, in bytes.
    pub span: Option<Range<usize>>,
}
