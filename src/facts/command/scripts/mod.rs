//! Files on disk that a command runs: their text is judged like inline code. The analysis does no input or output of its
//! own; it asks a [`Scripts`], which reads within its own bounds. What a script does can only add to what is found.

pub(super) mod fetched;
pub(super) mod input;
pub(super) mod makefile;
pub(super) mod projects;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::call::Digest;
use crate::facts::command::effects::target::Target;
use crate::facts::command::shell::walk::{Budget, Walker};
use crate::facts::command::words::text;
use crate::facts::command::words::text::sanitise;

/// Where the text of files comes from that a command runs.
pub trait Scripts {
    /// The file at an absolute path; `None` where there is none that may be looked at.
    fn read(&self, path: &str) -> Option<Script>;
}

/// No file is looked at.
#[derive(Clone, Copy, Debug)]
pub struct NoScripts;

impl Scripts for NoScripts {
    fn read(&self, _path: &str) -> Option<Script> {
        None
    }
}

/// A file as it was found.
#[derive(Clone, Debug)]
pub struct Script {
    pub content: Content,
    /// Of the content; where that was not read, of what tells this state of the file from another.
    pub digest: Digest,
    pub bytes: u64,
    /// The principal who runs it wrote it earlier.
    pub wrote: bool,
}

/// What was read of a file.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// No text: a compiled program, an archive, bytes that are not UTF-8.
    Binary,
    /// More bytes than are read.
    TooLarge,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Content::Binary => f.write_str("Binary"),
            Content::TooLarge => f.write_str("TooLarge"),
        }
    }
}

/// A file that the command runs, as facts and the record name it. An approval is bound to the digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFact {
    /// The absolute path, as the command names it.
    pub path: String,
    pub digest: Digest,
    pub bytes: u64,
    pub read: Read,
    /// The principal who runs it wrote it earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrote: bool,
}

/// How much of a file was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// Its text, as a language that is known.
    Judged,
    /// It was read and is in no language that is known.
    Unknown,
    Binary,
    TooLarge,
}

/// Files of one command that are looked at.
const FILES: usize = 48;
/// How often files may run in one command, however they call each other.
const RUNS: usize = 96;

/// What a walker knows of files on disk.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Every path that was asked for.
    known: HashMap<String, Option<Rc<Script>>>,
    /// The files that were found, in the order of the command.
    files: Vec<String>,
    judged: HashSet<String>,
    /// The path and the part of it that is being run, outermost first.
    running: Vec<(String, String)>,
    runs: usize,
    budget: Budget,
}

impl Walker<'_> {
    /// Runs the text of a file with `run`: of one that the command itself made, else of one on disk. `None` where its
    /// text is not known, or is being run already.
    pub(crate) fn with_file<T>(&mut self, target: &Target, run: impl FnOnce(&mut Self, &str) -> T) -> Option<T> {
        match self.files.get(&target.path).cloned() {
            Some(text) => Some(run(self, &text)),
            None => {
                let found = self.with_part(target, "", run);
                if found.is_none() && !self.has_file(target) {
                    self.watch_unpacked(target, false);
                }
                found
            }
        }
    }

    /// The same for a part of a file on disk, such as one script of a `package.json`: a part may run another one. All
    /// files share one budget, so that a long script leaves the command's own words judged to their end.
    pub(crate) fn with_part<T>(
        &mut self,
        target: &Target,
        part: &str,
        run: impl FnOnce(&mut Self, &str) -> T,
    ) -> Option<T> {
        let script = self.look_at(target)?;
        let Content::Text(text) = &script.content else { return None };
        let path = &target.path;
        let running = (path.clone(), part.to_owned());
        if self.scripts.running.contains(&running) {
            return None;
        }
        if self.scripts.runs >= RUNS {
            self.limited("number of scripts");
            return None;
        }
        self.scripts.runs += 1;
        self.scripts.judged.insert(path.clone());
        let outermost = self.scripts.running.is_empty();
        self.scripts.running.push(running);
        if outermost {
            self.swap_budget();
        }
        let outer = self.notes.enter(self.shown_script(path), script.wrote);
        let result = self.deeper(|walker| run(walker, &sanitise(text)));
        self.notes.leave(outer);
        if outermost {
            self.swap_budget();
        }
        self.scripts.running.pop();
        result
    }

    fn swap_budget(&mut self) {
        let mut budget = std::mem::take(&mut self.scripts.budget);
        self.exchange_budget(&mut budget);
        self.scripts.budget = budget;
    }

    /// A file on disk that the command runs.
    fn look_at(&mut self, target: &Target) -> Option<Rc<Script>> {
        if !target.is_known() || self.env.remote || self.env.mounts.is_some() {
            return None;
        }
        if let Some(known) = self.scripts.known.get(&target.path) {
            return known.clone();
        }
        if self.scripts.files.len() >= FILES {
            self.limited("number of scripts");
            return None;
        }
        let found = self.source.read(&target.path).map(Rc::new);
        if found.is_some() {
            self.scripts.files.push(target.path.clone());
        }
        self.scripts.known.insert(target.path.clone(), found.clone());
        found
    }

    /// Whether there is such a file, made by the command or on disk.
    pub(crate) fn has_file(&mut self, target: &Target) -> bool {
        self.files.contains_key(&target.path) || self.look_at(target).is_some()
    }

    /// A program that is run by its path: if it is a script on disk, it is judged as its first line says.
    pub(crate) fn program_on_disk(&mut self, written: &str, args: &[String]) {
        let target = self.target(written);
        let Some(script) = self.look_at(&target) else { return self.watch_unpacked(&target, true) };
        let Content::Text(text) = &script.content else { return };
        if self.scripts.running.iter().any(|(path, _)| *path == target.path) {
            return;
        }
        let mut argv = interpreter(text);
        argv.push(target.path);
        argv.extend(args.iter().cloned());
        self.subshell(|walker| walker.exec_texts(argv));
    }

    fn shown_script(&self, path: &str) -> String {
        let workspace = self.here.workspace.to_string_lossy();
        let inner = path.strip_prefix(workspace.as_ref()).and_then(|rest| rest.strip_prefix('/'));
        text::show(inner.unwrap_or(path))
    }

    /// What is told of the files, and whether the principal runs one of its own making that nobody could read.
    pub(crate) fn script_facts(&mut self) -> Vec<ScriptFact> {
        let seen = std::mem::take(&mut self.scripts);
        let fact = |path: String| {
            let script = seen.known.get(&path)?.as_ref()?;
            let read = match &script.content {
                Content::Text(_) if seen.judged.contains(&path) => Read::Judged,
                Content::Text(_) => Read::Unknown,
                Content::Binary => Read::Binary,
                Content::TooLarge => Read::TooLarge,
            };
            Some(ScriptFact { path, digest: script.digest, bytes: script.bytes, read, wrote: script.wrote })
        };
        let facts: Vec<ScriptFact> = seen.files.into_iter().filter_map(fact).collect();
        for fact in facts.iter().filter(|fact| fact.read != Read::Judged) {
            let shown = self.shown_script(&fact.path);
            self.notes.unread(&shown, fact.read, fact.wrote);
        }
        facts
    }
}

/// The words of a script's first line, or the shell where it names no interpreter.
pub(crate) fn interpreter(text: &str) -> Vec<String> {
    let line = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).unwrap_or_default();
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { vec!["sh".to_owned()] } else { words }
}
