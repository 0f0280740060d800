//! The rules of all packs, indexed for matching, and the guard that analyses commands with them.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::{OverrideEntry, PackError, PackProblem, PackSource, RuleEntry, Trust};
use crate::call::Digest;
use crate::facts::Surroundings;
use crate::facts::command::CommandFacts;
use crate::facts::command::effects::target::Kinds;
use crate::facts::command::effects::telling;
use crate::facts::command::grammar::syntax::Span;
use crate::facts::command::limits::Limits;
use crate::facts::command::notes::{Act, Notes};
use crate::facts::command::scripts::{NoScripts, Scripts};
use crate::facts::command::shell::exec;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::sites::Understanding;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{has_unknown, inert, sanitise};
use crate::verdict::{Finding, Severity};

/// Our own packs, by subject.
const EMBEDDED: &[(&str, &str)] = &[
    ("filesystem.toml", include_str!("../../../../policies/commands/filesystem.toml")),
    ("disks.toml", include_str!("../../../../policies/commands/disks.toml")),
    ("system.toml", include_str!("../../../../policies/commands/system.toml")),
    ("privilege.toml", include_str!("../../../../policies/commands/privilege.toml")),
    ("remote-code.toml", include_str!("../../../../policies/commands/remote-code.toml")),
    ("credentials.toml", include_str!("../../../../policies/commands/credentials.toml")),
    ("persistence.toml", include_str!("../../../../policies/commands/persistence.toml")),
    ("git.toml", include_str!("../../../../policies/commands/git.toml")),
    ("containers.toml", include_str!("../../../../policies/commands/containers.toml")),
    ("kubernetes.toml", include_str!("../../../../policies/commands/kubernetes.toml")),
    ("cloud.toml", include_str!("../../../../policies/commands/cloud.toml")),
    ("databases.toml", include_str!("../../../../policies/commands/databases.toml")),
    ("packages.toml", include_str!("../../../../policies/commands/packages.toml")),
    ("networks.toml", include_str!("../../../../policies/commands/networks.toml")),
    ("gateway.toml", include_str!("../../../../policies/commands/gateway.toml")),
    ("windows-macos.toml", include_str!("../../../../policies/commands/windows-macos.toml")),
    ("unicode.toml", include_str!("../../../../policies/commands/unicode.toml")),
];

/// Analyses commands with a set of rule packs.
#[derive(Clone, Debug)]
pub struct Guard {
    rules: Vec<Rule>,
    by_program: HashMap<String, Vec<usize>>,
    /// Rules for programs by prefix (`mkfs.*`).
    by_prefix: Vec<(String, usize)>,
    /// Rules for any program, by effect.
    by_effect: HashMap<String, Vec<usize>>,
    hash: Digest,
    limits: Limits,
}

/// A rule, for listings.
#[derive(Clone, Debug)]
pub struct Rule {
    pub id: String,
    pub severity: Severity,
    pub reason: String,
    /// A command to use instead.
    pub safer: Option<String>,
    /// The pack's file.
    pub pack: String,
    /// Where its pack says it, counted from 1.
    pub line: usize,
    pub references: Vec<String>,
    /// Commands that it finds, for documentation.
    pub examples: Vec<String>,
    /// Commands that it does not find.
    pub counterexamples: Vec<String>,
    /// What it asks of a call, as its pack says it.
    pub predicates: Vec<(&'static str, Vec<String>)>,
    program: Vec<String>,
    subcommand: Vec<Vec<String>>,
    option: Vec<String>,
    and_option: Vec<String>,
    no_option: Vec<String>,
    arg: Vec<Like>,
    no_arg: Vec<Like>,
    operand: Kinds,
    effect: Vec<String>,
    target: Kinds,
    no_target: Kinds,
    recursive: Option<bool>,
    bare: Option<bool>,
    adds: Vec<String>,
    /// Whether it is from one of our own packs.
    own: bool,
    in_scripts: bool,
}

/// One program call, as rules see it.
struct Site<'s> {
    args: &'s [String],
    acts: &'s [Act],
    operand: &'s dyn Fn(&str) -> Kinds,
    /// The arguments as patterns see them, made where a rule first asks.
    plain: OnceCell<Vec<String>>,
}

impl Site<'_> {
    /// Whether an argument matches one of these patterns.
    fn has_like(&self, patterns: &[Like]) -> bool {
        !patterns.is_empty()
            && self
                .plain
                .get_or_init(|| self.args.iter().map(|arg| Like::plain(arg)).collect())
                .iter()
                .any(|arg| patterns.iter().any(|pattern| pattern.matches(arg)))
    }
}

impl Guard {
    /// The guard with our own packs.
    pub fn embedded() -> Self {
        Self::load(&[]).unwrap_or_else(|error| {
            // The packs are part of the program, and a test loads them. Without rules nothing may pass for judged.
            let mut guard = Guard::empty();
            guard.limits.bytes = 0;
            guard.hash = Digest::of(error.to_string());
            guard
        })
    }

    fn empty() -> Self {
        Guard {
            rules: Vec::new(),
            by_program: HashMap::new(),
            by_prefix: Vec::new(),
            by_effect: HashMap::new(),
            hash: Digest::of(""),
            limits: Limits::default(),
        }
    }

    /// Our own packs and `more`. The examples of `more` are checked.
    pub fn load(more: &[PackSource]) -> Result<Self, PackError> {
        let guard = Guard::read(more)?;
        match guard.failing_examples(more)?.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(guard),
        }
    }

    /// The same without a look at the examples: for packs whose examples were checked before.
    pub fn read(more: &[PackSource]) -> Result<Self, PackError> {
        let own = EMBEDDED.iter().map(|(file, text)| PackSource {
            file: (*file).to_owned(),
            text: (*text).to_owned(),
            trust: Trust::Own,
        });
        let sources: Vec<PackSource> = own.chain(more.iter().cloned()).collect();
        let mut guard = Guard::empty();
        let mut texts = String::new();
        for source in &sources {
            let file = source.read()?;
            for entry in &file.rule {
                guard.add(source, entry)?;
            }
            for entry in &file.overrides {
                guard.override_severity(source, entry)?;
            }
            texts.push_str(&format!("{:?} {} {}\n", source.trust, source.text.len(), source.text));
        }
        guard.hash = Digest::of(texts);
        Ok(guard)
    }

    /// Every example of these packs that does not hold.
    ///
    /// # Errors
    ///
    /// When a pack cannot be read at all.
    pub fn failing_examples(&self, packs: &[PackSource]) -> Result<Vec<PackError>, PackError> {
        let mut failing = Vec::new();
        for source in packs {
            for entry in &source.read()?.rule {
                failing.extend(self.check_examples(source, entry));
            }
        }
        Ok(failing)
    }

    /// Binds decisions to the rules that made them.
    pub fn hash(&self) -> Digest {
        self.hash
    }

    /// All rules, in the order of the packs.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// With other bounds than the usual ones.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Analyses a command line. Never fails: what cannot be analysed is a finding. Files that it runs are not looked at.
    pub fn analyse(&self, command: &str, here: &Surroundings) -> CommandFacts {
        self.analyse_with(command, here, &NoScripts)
    }

    /// The same, with the files on disk that the command runs.
    pub fn analyse_with(&self, command: &str, here: &Surroundings, scripts: &dyn Scripts) -> CommandFacts {
        self.walk(command, Walker::new(self, scripts, here, &self.limits)).into_facts()
    }

    /// As [`Guard::analyse`], with every call and every redirect that the analysis followed.
    pub fn understand(&self, command: &str, here: &Surroundings) -> Understanding {
        self.understand_with(command, here, &NoScripts)
    }

    /// The same, with the files on disk that the command runs.
    pub fn understand_with(&self, command: &str, here: &Surroundings, scripts: &dyn Scripts) -> Understanding {
        let mut walker = Walker::new(self, scripts, here, &self.limits);
        walker.notes.recorder = Some(Box::default());
        let mut notes = self.walk(command, walker);
        let recorder = notes.recorder.take().unwrap_or_default();
        recorder.into_understanding(notes.into_facts())
    }

    fn walk(&self, command: &str, mut walker: Walker<'_>) -> Notes {
        if command.len() > self.limits.bytes {
            walker.notes.opaque("the command is longer than what is analysed; run it in smaller steps");
            // What fits is still judged: it can only make the verdict graver.
            let mut end = self.limits.bytes;
            while !command.is_char_boundary(end) {
                end -= 1;
            }
            walker.script(&sanitise(command.get(..end).unwrap_or_default()));
        } else {
            walker.script(&sanitise(command));
        }
        if command.contains('\0') {
            walker.notes.unparsed("a NUL character", 0..0);
        }
        walker.notes.scripts = walker.script_facts();
        walker.notes
    }

    fn add(&mut self, source: &PackSource, entry: &RuleEntry) -> Result<(), PackError> {
        let id = entry.id.get_ref().clone();
        let at = entry.id.span().start;
        if self.rules.iter().any(|rule| rule.id == id) {
            return Err(source.error(at, PackProblem::DuplicateId(id)));
        }
        if entry.program.is_empty() && entry.effect.is_empty() {
            return Err(source.error(at, PackProblem::Unconditional(id)));
        }
        let patterns = |texts: &[String]| texts.iter().map(|text| Like::new(text)).collect::<Vec<_>>();
        let rule = Rule {
            severity: source.severity(&entry.severity)?,
            reason: entry.reason.clone(),
            safer: entry.safer.clone(),
            pack: source.file.clone(),
            line: source.line(at),
            references: entry.references.clone(),
            examples: entry.matches.iter().map(|text| text.get_ref().clone()).collect(),
            counterexamples: entry.not_match.iter().map(|text| text.get_ref().clone()).collect(),
            predicates: entry.predicates(),
            program: entry.program.clone(),
            subcommand: entry.subcommand.iter().map(|words| words.split(' ').map(str::to_owned).collect()).collect(),
            option: entry.option.clone(),
            and_option: entry.and_option.clone(),
            no_option: entry.no_option.clone(),
            arg: patterns(&entry.arg),
            no_arg: patterns(&entry.no_arg),
            operand: source.kinds(entry.operand.as_ref())?,
            effect: entry.effect.clone(),
            target: source.kinds(entry.target.as_ref())?,
            no_target: source.kinds(entry.no_target.as_ref())?,
            recursive: entry.recursive,
            bare: entry.bare,
            adds: entry.adds.clone(),
            in_scripts: entry.in_scripts,
            own: source.trust == Trust::Own,
            id,
        };
        let index = self.rules.len();
        for program in &rule.program {
            match program.strip_suffix('*') {
                Some(prefix) => self.by_prefix.push((prefix.to_owned(), index)),
                None => self.by_program.entry(program.clone()).or_default().push(index),
            }
        }
        if rule.program.is_empty() {
            for effect in &rule.effect {
                self.by_effect.entry(effect.clone()).or_default().push(index);
            }
        }
        self.rules.push(rule);
        Ok(())
    }

    fn override_severity(&mut self, source: &PackSource, entry: &OverrideEntry) -> Result<(), PackError> {
        let severity = source.severity(&entry.severity)?;
        let id = entry.id.get_ref();
        let at = entry.id.span().start;
        let Some(rule) = self.rules.iter_mut().find(|rule| rule.id == *id) else {
            return Err(source.error(at, PackProblem::UnknownId(id.clone())));
        };
        if severity < rule.severity {
            let why = if rule.severity == Severity::Fatal {
                Some("nothing overrides a fatal rule")
            } else if source.trust == Trust::Workspace {
                Some("what lies in a workspace may only raise")
            } else {
                None
            };
            if let Some(why) = why {
                return Err(source.error(at, PackProblem::Lowered { id: id.clone(), why }));
            }
        }
        rule.severity = severity;
        Ok(())
    }

    /// The examples that do not hold: a `match` that is not found, a `not_match` that is, advice that is refused itself.
    fn check_examples(&self, source: &PackSource, entry: &RuleEntry) -> Vec<PackError> {
        let id = entry.id.get_ref();
        let here = Surroundings::new("/home/user/workspace", "/home/user");
        let fault = |example: &str, fault: &'static str, at: usize| {
            source.error(at, PackProblem::Example { id: id.clone(), example: example.to_owned(), fault })
        };
        let found = |example: &str| self.analyse(example, &here).findings.iter().any(|finding| finding.id == *id);
        let mut failing = Vec::new();
        for example in entry.matches.iter().filter(|example| !found(example.get_ref())) {
            failing.push(fault(example.get_ref(), "of `match` is not found", example.span().start));
        }
        for example in entry.not_match.iter().filter(|example| found(example.get_ref())) {
            failing.push(fault(example.get_ref(), "of `not_match` is found", example.span().start));
        }
        if let Some(safer) = &entry.safer
            && self.analyse(safer, &here).findings.iter().any(|finding| finding.severity >= Severity::Deny)
        {
            failing.push(fault(safer, "given as `safer` is refused itself", entry.id.span().start));
        }
        failing
    }

    /// Programs that rules name.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.by_program.contains_key(name)
    }

    /// A program that rules name and that a pattern matches; the first by name, so that the answer is always the same.
    pub(crate) fn program_like(&self, pattern: &str) -> Option<&str> {
        self.by_program.keys().map(String::as_str).filter(|name| text::matches(pattern, name)).min()
    }

    /// Applies every rule that can apply to one program call.
    pub(crate) fn judge(
        &self,
        program: &str,
        args: &[String],
        acts: &[Act],
        operand: &dyn Fn(&str) -> Kinds,
        span: Span,
        notes: &mut Notes,
    ) {
        let site = Site { args, acts, operand, plain: OnceCell::new() };
        let named = self.by_program.get(program).into_iter().flatten().copied();
        let prefixed = self
            .by_prefix
            .iter()
            .filter(|(prefix, _)| !program.is_empty() && program.starts_with(prefix.as_str()))
            .map(|(_, i)| *i);
        let effects =
            acts.iter().enumerate().filter(|(i, act)| !acts.iter().take(*i).any(|before| before.effect == act.effect));
        let by_effect = effects.filter_map(|(_, act)| self.by_effect.get(act.effect)).flatten().copied();
        for index in named.chain(prefixed).chain(by_effect) {
            let Some(rule) = self.rules.get(index) else { continue };
            if !rule.in_scripts && notes.in_script_of_others() || !rule.applies(&site) {
                continue;
            }
            // What a program does to its operands is no matter of its options here: its acts say so. Whether the programs
            // of others' packs honour a dry run is not known.
            if rule.own && !rule.program.is_empty() && rule.effect.is_empty() && telling::only_tells(program, args) {
                continue;
            }
            for effect in &rule.adds {
                notes.effect(effect);
            }
            if notes.is_found(&rule.id, span.start) {
                continue;
            }
            let mut message = rule.reason.clone();
            if !program.is_empty() {
                message = format!("{message}: `{}`", exec::shown(program, args));
            }
            let mut finding = Finding::new(&rule.id, rule.severity, message).at(span.clone());
            finding.safer = rule.safer.clone();
            finding.subject = (!program.is_empty()).then(|| exec::subject(program, args).into());
            notes.finding(finding);
        }
    }
}

impl Rule {
    fn applies(&self, site: &Site<'_>) -> bool {
        self.bare.is_none_or(|bare| bare == site.args.is_empty())
            && self.acts(site)
            && (self.subcommand.is_empty() || self.subcommand.iter().any(|words| has_subcommand(site.args, words)))
            && (self.option.is_empty() || self.option.iter().any(|option| has_option(site.args, option, true)))
            && (self.and_option.is_empty() || self.and_option.iter().any(|option| has_option(site.args, option, true)))
            && !self.no_option.iter().any(|option| has_option(site.args, option, false))
            && (self.arg.is_empty() || site.has_like(&self.arg))
            && !site.has_like(&self.no_arg)
            && (self.operand == Kinds::default() || self.operand(site))
    }

    fn acts(&self, site: &Site<'_>) -> bool {
        if self.effect.is_empty() && self.target == Kinds::default() && self.recursive.is_none() {
            return true;
        }
        site.acts.iter().any(|act| {
            (self.effect.is_empty() || self.effect.iter().any(|effect| effect == act.effect))
                && (self.target == Kinds::default() || act.kinds.meets(self.target))
                && !act.kinds.meets(self.no_target)
                && self.recursive.is_none_or(|recursive| recursive == act.recursive)
        })
    }

    fn operand(&self, site: &Site<'_>) -> bool {
        site.args.iter().any(|arg| {
            let text = match arg.split_once('=') {
                Some((key, value)) if !key.contains('/') => value,
                _ if arg.starts_with('-') => return false,
                _ => arg,
            };
            !text.is_empty() && (site.operand)(text).meets(self.operand)
        })
    }
}

/// An option as given: alone, in a cluster, or with a value attached. Long ones may lack their last letters, as getopt(3)
/// accepts them.
fn has_option(args: &[String], option: &str, abbreviated: bool) -> bool {
    if option == "--" {
        return args.iter().any(|arg| arg == "--");
    }
    args.iter().take_while(|arg| *arg != "--").any(|arg| {
        if let Some(long) = option.strip_prefix("--") {
            let Some(given) = arg.strip_prefix("--") else { return false };
            let given = given.split('=').next().unwrap_or_default();
            given == long
                || (abbreviated && given.len() >= 5 && long.starts_with(given) && given.len() + 3 >= long.len())
        } else {
            match (option.strip_prefix('-'), arg.strip_prefix('-')) {
                (Some(short), Some(given)) if short.chars().count() == 1 => {
                    !given.starts_with('-') && given.contains(short)
                }
                _ => arg.eq_ignore_ascii_case(option),
            }
        }
    })
}

/// Whether the operands start with these words. An operand right after an option may be that option's value (`git -C
/// dir push`, `docker compose -f file down`), and is passed over.
fn has_subcommand(args: &[String], words: &[String]) -> bool {
    let mut words = words.iter();
    let mut wanted = words.next();
    let mut after_option = false;
    for arg in args {
        let Some(word) = wanted else { return true };
        if arg.starts_with('-') {
            after_option = !arg.contains('=');
        } else if arg == word {
            wanted = words.next();
            after_option = false;
        } else if std::mem::take(&mut after_option) {
        } else {
            return false;
        }
    }
    wanted.is_none()
}

/// A pattern of `*` and `?` for arguments, whatever their case.
#[derive(Clone, Debug)]
struct Like {
    /// With live globs.
    live: String,
    /// What stands before its first glob.
    head: String,
    /// The text between two stars, where that is all of it.
    inner: Option<String>,
}

impl Like {
    fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        let live = |c| match c {
            '*' => text::STAR,
            '?' => text::ONE,
            other => other,
        };
        let inner = text.strip_prefix('*').and_then(|rest| rest.strip_suffix('*'));
        Like {
            live: text.chars().map(live).collect(),
            head: text.split(['*', '?']).next().unwrap_or_default().to_owned(),
            inner: inner.filter(|inner| !inner.contains(['*', '?'])).map(str::to_owned),
        }
    }

    /// An argument as patterns see it. Something unknown in it matches only what matches anything.
    fn plain(arg: &str) -> String {
        let lower = inert(arg).to_lowercase();
        if !has_unknown(&lower) {
            return lower;
        }
        lower.chars().map(|c| if text::is_unknown(c) { '\u{FFFD}' } else { c }).collect()
    }

    fn matches(&self, plain: &str) -> bool {
        match &self.inner {
            Some(inner) => plain.contains(inner.as_str()),
            None => plain.starts_with(&self.head) && text::matches(&self.live, plain),
        }
    }
}

/// The examples of our own packs that do not hold.
#[cfg(test)]
pub(crate) fn check_own(guard: &Guard) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, text) in EMBEDDED {
        let source = PackSource { file: (*file).to_owned(), text: (*text).to_owned(), trust: Trust::Own };
        for entry in source.read().expect("the pack was read before").rule {
            problems.extend(guard.check_examples(&source, &entry).iter().map(ToString::to_string));
        }
    }
    problems
}
