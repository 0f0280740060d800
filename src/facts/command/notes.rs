//! What an analysis collects: effects, programs, paths, hosts, findings.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use crate::facts::command::CommandFacts;
use crate::facts::command::Effect;
use crate::facts::command::Parse;
use crate::facts::command::PathUse;
use crate::facts::command::effects::target;
use crate::facts::command::effects::target::{Kinds, Target};
use crate::facts::command::grammar::syntax::Span;
use crate::facts::command::scripts::{Read, ScriptFact};
use crate::facts::command::sites::Recorder;
use crate::facts::path::Access;
use crate::verdict::{Finding, Severity};

/// Found where a bound, or a syntax error, left something unjudged.
pub(crate) const NOT_ANALYSED: &str = "command.not-fully-analysed";

/// Found where a script on disk was not judged to its end.
const SCRIPT_NOT_ANALYSED: &str = "command.script-not-analysed";

/// One effect of a command on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
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

#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
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
    /// The files on disk that the command runs.
    pub scripts: Vec<ScriptFact>,
    /// The script on disk that is being judged: its name, and whether the principal wrote it or one that runs it.
    script: Option<(Rc<str>, bool)>,
}

/// The most paths that are listed.
const PATHS: usize = 4_096;

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
        if !self.effects.contains(name) {
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
        if target.path.starts_with("/dev/fd/") || target.kinds.has(target::Kind::Container) {
            return;
        }
        let path = target.name();
        // What a script does to the files that it is given is known where they are.
        if path.is_none() && self.script.is_some() {
            return;
        }
        if !self.known_paths.insert((path.clone(), access)) {
            return;
        }
        if self.paths.len() >= PATHS {
            self.limited("number of paths", span);
            return;
        }
        self.paths.push(PathUse { path, access, span: Some(span) });
    }

    /// The next site has names of files that nothing quotes.
    pub fn splits(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.splits();
        }
    }

    /// How much was found so far, kept or not.
    pub fn found(&self) -> usize {
        self.seen.len()
    }

    /// How many things are known.
    pub fn size(&self) -> usize {
        self.paths.len() + self.known_paths.len() + self.programs.len() + self.hosts.len() + self.seen.len()
    }

    pub fn partial(&mut self) {
        self.partial = true;
    }

    /// Whether a rule was found here already.
    pub fn is_found(&self, id: &str, at: usize) -> bool {
        self.seen.contains(&(id.to_owned(), at))
    }

    pub fn finding(&mut self, mut finding: Finding) {
        if let Some((script, _)) = &self.script {
            finding.message = format!("{} (in the script `{script}`)", finding.message);
        }
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

    /// How many findings refuse the command.
    pub fn refusals(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity >= Severity::Deny).count()
    }

    /// Something was left out because of a limit.
    pub fn limited(&mut self, what: &str, span: Span) {
        self.partial = true;
        if self.script.is_some() {
            return self.script_unfinished(&format!("the limit of {what} was reached"), span);
        }
        if self.findings.iter().any(|finding| finding.id == NOT_ANALYSED) {
            return;
        }
        let message = format!("the command was not analysed to its end: the limit of {what} was reached");
        self.finding(Finding::new(NOT_ANALYSED, Severity::Warn, message).at(span).safer("run it in smaller steps"));
    }

    pub fn unparsed(&mut self, what: &str, span: Span) {
        self.partial = true;
        if self.script.is_some() {
            return self.script_unfinished(&format!("part of it is not valid bash: {what}"), span);
        }
        let message = format!("part of the command is not valid bash ({what}), so it cannot be judged");
        self.finding(Finding::new(NOT_ANALYSED, Severity::Warn, message).at(span));
    }

    /// Enters a script on disk; gives what to hand to [`Notes::leave`].
    pub fn enter(&mut self, name: String, wrote: bool) -> Option<(Rc<str>, bool)> {
        let wrote = wrote || self.script.as_ref().is_some_and(|(_, wrote)| *wrote);
        self.script.replace((name.into(), wrote))
    }

    pub fn leave(&mut self, outer: Option<(Rc<str>, bool)>) {
        self.script = outer;
    }

    /// Whether a script on disk is being judged that the principal did not write.
    pub fn in_script_of_others(&self) -> bool {
        matches!(self.script, Some((_, false)))
    }

    /// Scripts that others wrote are run unread everywhere, and large ones are ordinary: then it is only said. One that
    /// the principal wrote itself needs an approval.
    fn script_unfinished(&mut self, why: &str, span: Span) {
        let wrote = self.script.as_ref().is_some_and(|(_, wrote)| *wrote);
        let severity = if wrote { Severity::Warn } else { Severity::Note };
        if self.findings.iter().any(|finding| finding.id == SCRIPT_NOT_ANALYSED && finding.severity >= severity) {
            return;
        }
        let mut finding = Finding::new(SCRIPT_NOT_ANALYSED, severity, format!("not judged to its end: {why}"));
        if wrote {
            finding = finding.safer("write a shorter script, or several");
        }
        self.finding(finding.at(span));
    }

    /// A file that the command runs could not be read as a script.
    pub fn unread(&mut self, name: &str, read: Read, wrote: bool) {
        let what = match read {
            Read::Judged => return,
            Read::Unknown => "is in no language that is known here",
            Read::Binary => "is no text",
            Read::TooLarge => "is larger than what is read",
        };
        if wrote {
            let message = format!("runs `{name}`, which this agent wrote earlier and which {what}");
            let finding = Finding::new("command.runs-what-it-wrote", Severity::Warn, message);
            self.finding(finding.safer("write it as a script in a usual language, so that it can be read"));
        } else if read == Read::TooLarge {
            let message = format!("`{name}` was not judged: it {what}");
            self.finding(Finding::new(SCRIPT_NOT_ANALYSED, Severity::Note, message));
        }
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
            scripts: self.scripts,
            findings: self.findings,
        }
    }
}
