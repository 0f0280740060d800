//! What an analysis collects: effects, programs, paths, hosts, findings.

use std::collections::{BTreeSet, HashSet};

use super::sites::Recorder;
use super::syntax::Span;
use super::target::{Kinds, Target};
use super::{CommandFacts, Effect, Parse, PathUse};
use crate::facts::path::Access;
use crate::verdict::{Finding, Severity};

/// Found where a bound, or a syntax error, left something unjudged.
pub(super) const NOT_ANALYSED: &str = "command.not-fully-analysed";

/// One effect of a command on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub effect: &'static str,
    pub kinds: Kinds,
    pub recursive: bool,
}

impl Act {
    pub fn new(effect: &'static str, kinds: Kinds) -> Self {
        Act { effect, kinds, recursive: false }
    }

    pub fn recursive(mut self, recursive: bool) -> Self {
        self.recursive = recursive;
        self
    }
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    programs: BTreeSet<String>,
    effects: BTreeSet<Effect>,
    hosts: BTreeSet<String>,
    paths: Vec<PathUse>,
    known_paths: HashSet<(Option<String>, Access)>,
    findings: Vec<Finding>,
    /// Found already: rule and place.
    seen: HashSet<(String, usize)>,
    partial: bool,
    opaque: bool,
    most: usize,
    dropped: bool,
    /// Keeps each call, where that was asked for.
    pub recorder: Option<Box<Recorder>>,
}

/// The most paths that are listed.
const PATHS: usize = 1_000;

impl Notes {
    pub fn new(findings: usize) -> Self {
        Notes { most: findings, ..Notes::default() }
    }

    pub fn program(&mut self, name: &str) {
        if !self.programs.contains(name) {
            self.programs.insert(name.to_owned());
        }
    }

    pub fn effect(&mut self, name: &str) {
        if !self.effects.iter().any(|effect| effect.0 == name) {
            self.effects.insert(Effect(name.to_owned()));
        }
    }

    pub fn host(&mut self, host: &str) {
        if !host.is_empty() && self.hosts.len() < PATHS {
            self.hosts.insert(host.to_owned());
        }
    }

    pub fn path(&mut self, target: &Target, access: Access, span: Span) {
        if let Some(recorder) = &mut self.recorder {
            recorder.path(target, access);
        }
        if target.path.starts_with("/dev/fd/") || target.kinds.has(super::target::Kind::Container) {
            return;
        }
        let path = target.name();
        if !self.known_paths.insert((path.clone(), access)) {
            return;
        }
        if self.paths.len() >= PATHS {
            self.limited("number of paths", span);
            return;
        }
        self.paths.push(PathUse { path, access, span: Some(span) });
    }

    pub fn partial(&mut self) {
        self.partial = true;
    }

    /// Whether a rule was found here already.
    pub fn is_found(&self, id: &str, at: usize) -> bool {
        self.seen.contains(&(id.to_owned(), at))
    }

    pub fn finding(&mut self, finding: Finding) {
        let at = finding.span.as_ref().map_or(0, |span| span.start);
        if !self.seen.insert((finding.id.clone(), at)) {
            return;
        }
        if self.findings.len() < self.most {
            self.findings.push(finding);
            return;
        }
        // Never at the cost of a graver one.
        self.dropped = true;
        if let Some(least) = self.findings.iter_mut().min_by_key(|kept| kept.severity)
            && least.severity < finding.severity
        {
            *least = finding;
        }
    }

    /// Something was left out because of a limit.
    pub fn limited(&mut self, what: &str, span: Span) {
        self.partial = true;
        if self.findings.iter().any(|finding| finding.id == NOT_ANALYSED) {
            return;
        }
        let message = format!("the command was not analysed to its end: the limit of {what} was reached");
        self.finding(Finding::new(NOT_ANALYSED, Severity::Warn, message).at(span).safer("run it in smaller steps"));
    }

    pub fn unparsed(&mut self, what: &str, span: Span) {
        self.partial = true;
        let message = format!("part of the command is not valid bash ({what}), so it cannot be judged");
        self.finding(Finding::new(NOT_ANALYSED, Severity::Warn, message).at(span));
    }

    pub fn opaque(&mut self, message: &str) {
        self.opaque = true;
        self.finding(Finding::new(NOT_ANALYSED, Severity::Warn, message));
    }

    pub fn into_facts(mut self) -> CommandFacts {
        if self.dropped {
            let message = "more findings than are listed here: the gravest are kept";
            self.findings.push(Finding::new("command.more-findings", Severity::Note, message));
        }
        // A stable sort: the gravest first, otherwise in the order of the command.
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let parse = match (self.opaque, self.partial) {
            (true, _) => Parse::Opaque,
            (false, true) => Parse::Partial,
            (false, false) => Parse::Complete,
        };
        CommandFacts {
            parse,
            programs: self.programs,
            effects: self.effects,
            hosts: self.hosts,
            paths: self.paths,
            findings: self.findings,
        }
    }
}
