//! The abstract interpreter: follows a script as bash would run it, on abstract text. Branches are taken one after the
//! other with one environment; whatever might run is judged.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::attributes::Attributes;
use super::env::{Env, Value};
use super::flow::{Loop, Moved, Way};
use super::functions::Call;
use super::known::KnownTargets;
use crate::facts::Surroundings;
use crate::facts::command::effects::target::{Kinds, Places, Target};
use crate::facts::command::grammar::parse;
use crate::facts::command::grammar::parse::{Parsed, Problem, parse};
use crate::facts::command::grammar::parse_word;
use crate::facts::command::grammar::syntax::{
    Command, Item, Kind, List, Pipeline, Redirect, RedirectOperator, Span, Word,
};
use crate::facts::command::limits::Limits;
use crate::facts::command::notes::{Act, Notes};
use crate::facts::command::packs::rules::Guard;
use crate::facts::command::scripts::fetched::Unpacked;
use crate::facts::command::scripts::input::Files;
use crate::facts::command::scripts::{Scripts, Seen};
use crate::facts::command::words::alternatives::choice_key;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{FETCHED, PROGRAM, UNKNOWN, has_unknown, inert, taint};
use crate::facts::command::words::variables;

/// What things cost of the work that an analysis may do, about in nanoseconds.
mod cost {
    pub const SITE: usize = 800;
    pub const WORD: usize = 60;
    pub const STEP: usize = 400;
    pub const EXPANDED_BYTE: usize = 2;
    pub const PATTERN_STEP: usize = 6;
}

/// The cost of finding what an operand stands for: where that is known, and where it is not.
const LOOKED_UP: usize = 100;
const CLASSIFIED: usize = 500;
const CLASSIFIED_BYTE: usize = 24;

/// The cost of reading a nested script.
const PARSED: usize = 1_000;
const PARSED_BYTE: usize = 25;

/// The cost of a finding.
const FOUND: usize = 1_500;

/// A variable that `local` hides.
pub(crate) struct Hidden {
    pub name: String,
    pub value: Option<Value>,
    /// Its other values.
    pub others: Option<Vec<Value>>,
    pub attributes: Attributes,
    /// The name that it stands for.
    pub reference: Option<String>,
}

/// Work done so far, against the limits.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    sites: usize,
    steps: usize,
    words: usize,
    nested_bytes: usize,
    pattern_work: usize,
    expanded: usize,
    work: usize,
}

pub(crate) struct Walker<'a> {
    pub guard: &'a Guard,
    /// Where the text of files on disk comes from.
    pub source: &'a dyn Scripts,
    pub scripts: Seen,
    pub here: &'a Surroundings,
    pub limits: &'a Limits,
    pub env: Env,
    pub notes: Notes,
    /// Contents of files that the command itself made, by absolute path.
    pub files: HashMap<String, String>,
    /// Directories that hold what a fetched archive brought.
    pub unpacked: Vec<Unpacked>,
    /// The files on disk behind process substitutions, by the substitutions' paths.
    pub substituted: HashMap<String, Files>,
    /// What files may hold instead, where a write may not have happened.
    pub older: HashMap<String, Vec<String>>,
    /// Links that the command itself made: their paths, and where they lead.
    pub links: Vec<(String, String)>,
    /// How often traps ran between commands.
    pub trapped: usize,
    /// Programs under another name: copies and links that the command itself made.
    pub binaries: HashMap<String, String>,
    /// What operands were found to stand for.
    pub known: RefCell<KnownTargets>,
    /// Variables with several possible values that the command at hand read.
    pub reads: BTreeSet<String>,
    /// Substitutions that print one of several texts, of the command at hand.
    pub choices: Vec<(String, Vec<String>)>,
    /// Runs in which substitutions print what was chosen for them.
    pub forced: usize,
    /// What `local` hides, for each function being called.
    pub locals: Vec<Vec<Hidden>>,
    pub depth: usize,
    pub sites: usize,
    /// Commands of any kind and turns of loops so far.
    pub steps: usize,
    /// Steps of matching patterns against text so far.
    pub pattern_work: usize,
    /// Work that is none of these, about in nanoseconds.
    work: Cell<usize>,
    /// Words of all program calls so far.
    pub words: usize,
    pub nested_bytes: usize,
    pub next_descriptor: u32,
    /// Bytes that expansions gave so far.
    pub expanded: usize,
    /// Functions being called, innermost last.
    pub calls: Vec<Call>,
    /// The status of the last command, where it is known.
    pub status: Option<bool>,
    /// The status of the command before (`$?`).
    pub last: Option<bool>,
    /// Nothing that follows is reached.
    pub dead: bool,
    /// What runs here may not run.
    pub unsure: bool,
    /// The last command was a `cd` that may fail.
    pub moved: Option<Moved>,
    /// Loops being run, innermost last.
    pub loops: Vec<Loop>,
    /// Where functions and sourced scripts return to, innermost last.
    pub returns: Vec<Way>,
    /// Where the shell at hand exits to.
    pub exits: Way,
    /// The command at hand, for findings.
    pub span: Span,
    /// A word could not be expanded, perhaps: then its command did not run.
    pub broken: bool,
    /// The next program is no function (`command`, `builtin`).
    pub past_functions: bool,
    /// A tree walk gives the operands one by one: each call is part of a recursion.
    pub recursing: bool,
    /// The program at hand runs once for each of many things.
    pub bulk: bool,
    /// How many arguments were tried as commands.
    pub guesses: usize,
    /// What inline code printed.
    pub inline_output: String,
    /// What programs decoded, to tell where it runs.
    pub decoded: BTreeSet<String>,
    /// Environment of the program at hand alone (`NAME=value program`).
    pub prefix: Vec<(String, String)>,
}

impl<'a> Walker<'a> {
    pub fn new(guard: &'a Guard, source: &'a dyn Scripts, here: &'a Surroundings, limits: &'a Limits) -> Self {
        Walker {
            guard,
            source,
            scripts: Seen::default(),
            here,
            limits,
            env: Env::new(here.cwd.to_string_lossy().into_owned()),
            notes: Notes::new(limits.findings),
            files: HashMap::new(),
            unpacked: Vec::new(),
            substituted: HashMap::new(),
            older: HashMap::new(),
            links: Vec::new(),
            trapped: 0,
            binaries: HashMap::new(),
            known: RefCell::default(),
            reads: BTreeSet::new(),
            choices: Vec::new(),
            forced: 0,
            locals: Vec::new(),
            depth: 0,
            sites: 0,
            steps: 0,
            pattern_work: 0,
            work: Cell::new(0),
            words: 0,
            nested_bytes: 0,
            next_descriptor: 60,
            expanded: 0,
            calls: Vec::new(),
            status: None,
            last: None,
            dead: false,
            unsure: false,
            moved: None,
            loops: Vec::new(),
            returns: Vec::new(),
            exits: Way::default(),
            span: 0..0,
            broken: false,
            past_functions: false,
            recursing: false,
            bulk: false,
            guesses: 0,
            inline_output: String::new(),
            decoded: BTreeSet::new(),
            prefix: Vec::new(),
        }
    }

    /// The command text itself.
    pub fn script(&mut self, text: &str) {
        let parsed = parse(text, None, self.limits);
        self.problem(parsed.problem.as_ref());
        self.watch_forks(&parsed.list);
        self.list(&parsed.list);
        let mut way = std::mem::take(&mut self.exits);
        self.leave(&mut way);
        self.arrive(way);
        self.dead = false;
        self.ending(0);
    }

    /// Runs the traps that a shell set, but for the `before` that it inherited.
    pub fn ending(&mut self, before: usize) {
        let traps = std::mem::take(&mut self.env.traps);
        for text in traps.iter().skip(before) {
            self.run_text(text);
        }
        // A trap may set another one.
        if !self.env.traps.is_empty() {
            self.deeper(|walker| walker.ending(0));
        }
    }

    pub fn problem(&mut self, problem: Option<&Problem>) {
        match problem {
            None => {}
            Some(Problem::Syntax { what, at }) => self.notes.unparsed(what, *at..*at),
            Some(Problem::TooDeep { at }) => self.notes.limited("nesting depth", *at..*at),
            Some(Problem::TooMuchWork { at }) => self.notes.limited("parsing work", *at..*at),
        }
    }

    /// Goes on with another account of the work done.
    pub fn exchange_budget(&mut self, other: &mut Budget) {
        use std::mem::swap;
        swap(&mut self.sites, &mut other.sites);
        swap(&mut self.steps, &mut other.steps);
        swap(&mut self.words, &mut other.words);
        swap(&mut self.nested_bytes, &mut other.nested_bytes);
        swap(&mut self.pattern_work, &mut other.pattern_work);
        swap(&mut self.expanded, &mut other.expanded);
        swap(self.work.get_mut(), &mut other.work);
    }

    /// Notes that a limit cut the analysis short.
    pub fn limited(&mut self, what: &str) {
        self.notes.limited(what, self.span.clone());
    }

    /// One level of running deeper (scripts in scripts, functions, substitutions); `None` at the limit.
    pub fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= self.limits.depth {
            self.limited("depth of commands in commands");
            return None;
        }
        self.depth += 1;
        let result = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || run(self));
        self.depth -= 1;
        Some(result)
    }

    /// Runs with a copy of the environment, which is dropped afterwards.
    pub fn subshell<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.env.clone();
        let exits = std::mem::take(&mut self.exits);
        let loops = std::mem::take(&mut self.loops);
        let dead = self.dead;
        let result = run(self);
        let mut way = std::mem::replace(&mut self.exits, exits);
        self.leave(&mut way);
        let status = way.status;
        self.arrive(way);
        self.copied(&saved);
        if self.env.traps.len() > saved.traps.len() {
            self.dead = false;
            self.ending(saved.traps.len());
        }
        self.loops = loops;
        self.env = saved;
        self.dead = dead;
        self.moved = None;
        self.status = status;
        result
    }

    /// Text that runs as a script of its own: decoded and fetched code, commands that variables and files hold. Gives
    /// what it prints.
    pub fn run_text(&mut self, text: &str) -> String {
        let loops = std::mem::take(&mut self.loops);
        let (returns, exits) = (std::mem::take(&mut self.returns), std::mem::take(&mut self.exits));
        let printed = self.run_here(text);
        let mut way = std::mem::replace(&mut self.exits, exits);
        self.leave(&mut way);
        self.arrive(way);
        self.dead = false;
        (self.loops, self.returns) = (loops, returns);
        printed
    }

    /// Text that runs as if it stood here (`eval`).
    pub fn run_here(&mut self, text: &str) -> String {
        let trimmed = text.trim_start();
        if let Some(first) = trimmed.chars().next()
            && text::is_unknown(first)
        {
            if first == PROGRAM {
                self.event("run-unknown");
                return UNKNOWN.to_string();
            }
            let known_tail = trimmed.trim_start_matches(text::is_unknown);
            if trimmed.contains(FETCHED) {
                self.event("fetch-and-run");
            } else if known_tail.trim().is_empty() {
                self.event("run-unknown");
            }
        }
        if !self.decoded.is_empty() && self.decoded.contains(trimmed.trim_end()) {
            self.event("obfuscation");
        }
        // A line of which nothing is known runs like the rest.
        let blind = |line: &str| !line.trim().is_empty() && line.trim().chars().all(|c| c == UNKNOWN);
        if has_unknown(text) && text.lines().skip(1).any(blind) {
            self.event("run-unknown");
        }
        self.nested_bytes += text.len();
        if self.nested_bytes > self.limits.nested_bytes {
            self.limited("bytes of nested scripts");
            return UNKNOWN.to_string();
        }
        self.spend(PARSED + text.len() * PARSED_BYTE);
        let text = inert(text);
        let span = self.span.clone();
        self.deeper(|walker| {
            let Parsed { list, problem } = parse(&text, Some(span), walker.limits);
            walker.problem(problem.as_ref());
            walker.watch_forks(&list);
            walker.list(&list)
        })
        .unwrap_or_default()
    }

    /// Scripts that start themselves, or anything else, without end.
    fn watch_forks(&mut self, list: &List) {
        let own = self.env.positional.as_ref().and_then(|items| items.first());
        if super::forkbomb::list_bombs(list, own.map(String::as_str)) {
            self.event("fork-bomb");
        }
    }

    // Lists and pipelines. Each gives the text that it prints, as far as it is known.

    pub fn list(&mut self, list: &List) -> String {
        let mut out = String::new();
        for item in list {
            if self.dead || self.exhausted() {
                break;
            }
            let printed = self.item(item);
            out.push_str(&printed);
            if out.len() > self.limits.text {
                out = self.bounded(out);
            }
        }
        out
    }

    pub fn exhausted(&mut self) -> bool {
        let what = if self.sites > self.limits.sites || self.words > self.limits.words_in_all {
            "number of commands"
        } else if self.done() > self.limits.work {
            "work"
        } else {
            return false;
        };
        self.limited(what);
        true
    }

    /// Takes note of work that nothing else counts.
    pub fn spend(&self, work: usize) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// The work done so far.
    fn done(&self) -> usize {
        let counted = [
            (self.sites, cost::SITE),
            (self.words, cost::WORD),
            (self.steps, cost::STEP),
            (self.expanded, cost::EXPANDED_BYTE),
            (self.pattern_work, cost::PATTERN_STEP),
        ];
        counted.iter().fold(self.work.get(), |sum, (count, cost)| sum.saturating_add(count.saturating_mul(*cost)))
    }

    /// How much work may still be done.
    pub fn remaining(&self) -> usize {
        self.limits.work.saturating_sub(self.done())
    }

    pub fn item(&mut self, item: &Item) -> String {
        if item.background {
            let printed = self.subshell(|walker| walker.and_or(item));
            self.status = Some(true);
            return printed;
        }
        self.and_or(item)
    }

    pub fn and_or(&mut self, item: &Item) -> String {
        if item.rest.is_empty() {
            let printed = self.pipeline(&item.first);
            self.moved = None;
            return printed;
        }
        let (printed, ends) = self.ends(item);
        self.settle(ends);
        printed
    }

    pub fn pipeline(&mut self, pipeline: &Pipeline) -> String {
        let printed = match pipeline.commands.as_slice() {
            [command] => self.command(command),
            commands => self.each_value(|walker| walker.piped(commands)),
        };
        if pipeline.negated {
            self.status = self.status.map(|status| !status);
            self.moved = None;
        }
        printed
    }

    fn piped(&mut self, commands: &[Command]) -> String {
        let mut printed: Option<String> = None;
        let mut files = None;
        for command in commands {
            let stdin = printed.take();
            let passed = self.passed_files(command);
            let before = std::mem::replace(&mut files, passed);
            let text = self.subshell(|walker| {
                if let Some(stdin) = stdin {
                    walker.env.stdin = Some(stdin.into());
                    walker.input_is(before);
                }
                walker.command(command)
            });
            printed = Some(self.bounded(text));
        }
        self.status = None;
        printed.unwrap_or_default()
    }

    pub fn command(&mut self, command: &Command) -> String {
        self.steps += 1;
        let outer = std::mem::replace(&mut self.span, command.span.clone());
        let printed = self.deeper(|walker| walker.each_alternative(command)).unwrap_or_default();
        self.span = outer;
        printed
    }

    pub fn command_here(&mut self, command: &Command) -> String {
        let keeps = command.redirects.is_empty()
            || matches!(&command.kind, Kind::Simple { words, .. }
                if words.first().and_then(Word::literal).is_some_and(|name| name == "exec") && words.len() == 1);
        let saved = (!keeps).then(|| (self.env.stdin.clone(), Rc::clone(&self.env.descriptors)));
        let outputs = self.redirects(&command.redirects);
        self.moved = None;
        // Held only where it is asked for: a second owner makes each assignment a copy.
        let before = (!self.env.debug.is_empty()).then(|| (Rc::clone(&self.env.variables), self.env.cwd.clone()));
        if self.env.debug_fresh && matches!(command.kind, Kind::Simple { .. }) {
            self.between_commands();
        }
        let printed = self.kind(&command.kind);
        let changed = |walker: &Self, (variables, cwd): (Rc<_>, String)| {
            !Rc::ptr_eq(&variables, &walker.env.variables) || cwd != walker.env.cwd
        };
        if before.is_some_and(|before| changed(self, before)) && !self.dead {
            self.between_commands();
        }
        if command.redirects.iter().any(|redirect| redirect.operator.may_fail()) {
            self.status = None;
        }
        if let Some((stdin, descriptors)) = saved {
            (self.env.stdin, self.env.descriptors) = (stdin, descriptors);
        }
        self.outputs(outputs, printed)
    }

    fn kind(&mut self, kind: &Kind) -> String {
        match kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words),
            Kind::Group(list) => self.list(list),
            Kind::Subshell(list) => self.subshell(|walker| walker.list(list)),
            Kind::Coprocess(command) => self.subshell(|walker| walker.command(command)),
            Kind::If { branches, otherwise } => self.if_clause(branches, otherwise.as_ref()),
            Kind::While { until, condition, body } => self.while_clause(*until, condition, body),
            Kind::For { name, words, chosen, body } => self.for_clause(name, words.as_deref(), *chosen, body),
            Kind::ArithmeticFor { header, body } => self.arithmetic_for(header, body),
            Kind::Case { subject, arms } => self.case_clause(subject, arms),
            Kind::Function { name, body } => {
                self.define(name, body);
                self.status = Some(true);
                String::new()
            }
            Kind::Arithmetic(word) => {
                let text = self.text(word);
                let before = (has_unknown(&text) || text.contains("()")).then(|| self.env.clone());
                self.arithmetic_status(&text);
                // What is unknown may be no expression, as nothing is none, and that changes nothing.
                if let Some(before) = before {
                    let after = self.env.clone();
                    let names: Vec<String> =
                        after.variables.keys().filter(|name| !before.variables.contains_key(*name)).cloned().collect();
                    self.env = self.joined(after, before);
                    for name in names {
                        let mut env = self.env.clone();
                        self.add_alternative(&mut env, &name, Value::Unset);
                        self.env = env;
                    }
                }
                String::new()
            }
            Kind::Test(words) => {
                self.status = self.double_bracket(words);
                String::new()
            }
        }
    }

    pub fn substitution(&mut self, list: &List) -> String {
        let key = choice_key(list);
        if self.forced > 0
            && let Some(Value::Text(text)) = self.env.variables.get(&key)
        {
            return text.clone();
        }
        let outer = std::mem::take(&mut self.broken);
        let mut text = self
            .deeper(|walker| {
                walker.subshell(|walker| match only_redirect(list) {
                    // `$(< file)` is the file.
                    Some(redirect) => {
                        walker.redirects(std::slice::from_ref(redirect));
                        walker.env.stdin.as_deref().unwrap_or(&UNKNOWN.to_string()).to_owned()
                    }
                    None => walker.list(list),
                })
            })
            .unwrap_or_else(|| UNKNOWN.to_string());
        if std::mem::replace(&mut self.broken, outer) && !text.is_empty() {
            text = UNKNOWN.to_string();
        }
        let text = text.trim_end_matches('\n');
        self.note_choice(key, list, text);
        self.bounded(text.to_owned())
    }

    pub fn process_substitution(&mut self, list: &Rc<List>, reads: bool) -> String {
        let path = format!("/dev/fd/{}", self.next_descriptor);
        self.next_descriptor += 1;
        let text = self.deeper(|walker| walker.subshell(|walker| walker.list(list))).unwrap_or_default();
        if reads {
            self.substituted_is(&path, only_command(list));
            self.files.insert(path.clone(), text);
        }
        path
    }

    /// `${name@P}` and prompts: the value is expanded like a heredoc.
    pub fn prompt(&mut self, text: &str) -> String {
        let span = self.span.clone();
        let word = {
            let mut parser = parse::Parser::new(text, Some(span), self.limits);
            parser.word_until(parse_word::Quoting::Heredoc, |_| false)
        };
        match word {
            Ok(word) => self.deeper(|walker| walker.text(&word)).unwrap_or_default(),
            Err(problem) => {
                self.problem(Some(&problem));
                UNKNOWN.to_string()
            }
        }
    }

    // Redirects.

    pub fn target(&self, text: &str) -> Target {
        let target = self.target_itself(text);
        if self.links.is_empty() { target } else { self.followed(target, true) }
    }

    /// A path whose last part is not followed where it is a link, unless a slash says so.
    pub fn named_target(&self, text: &str) -> Target {
        let target = self.target_itself(text);
        if self.links.is_empty() { target } else { self.followed(target, text.ends_with(['/', '.'])) }
    }

    pub fn target_itself(&self, text: &str) -> Target {
        let mut known = self.known.borrow_mut();
        known.attend(&self.env, self.home_text());
        self.spend(LOOKED_UP);
        if let Some(target) = known.targets.get(text) {
            return target.clone();
        }
        let (places, below) =
            if text.starts_with('/') { (1, 0) } else { (1 + self.env.other_cwds.len(), self.env.cwd.len()) };
        self.spend(places * (CLASSIFIED + (text.len() + below) * CLASSIFIED_BYTE));
        let target = self.found_target(text, &known.home);
        known.remember(text, &target);
        target
    }

    fn found_target(&self, text: &str, home: &str) -> Target {
        let places =
            |cwd| Places { here: self.here, cwd, home, mounts: self.env.mounts.as_ref().map(|m| m.as_slice()) };
        let mut target = places(&self.env.cwd).target(text);
        // Where `cd` may have failed, a relative operand is what it would be there.
        if !text.starts_with('/') {
            for cwd in &self.env.other_cwds {
                let other = places(cwd).target(text);
                if other.kinds.fatal() {
                    target.kinds = target.kinds.union(other.kinds);
                }
            }
        }
        target
    }

    /// Something that happens and is no program's own effect.
    pub fn event(&mut self, effect: &'static str) {
        self.acts_on(&[Act::new(effect, Kinds::default())]);
    }

    /// Effects without a program (redirects, events), judged by the rules.
    pub fn acts_on(&mut self, acts: &[Act]) {
        let span = self.span.clone();
        for act in acts {
            self.notes.effect(act.effect);
        }
        if let Some(recorder) = &mut self.notes.recorder {
            recorder.acts(acts);
        }
        let before = self.notes.found();
        self.guard.judge("", &[], acts, &|_| Kinds::default(), span, &mut self.notes);
        self.spend((self.notes.found() - before) * FOUND);
    }

    /// Judges one program call.
    pub fn judge(&mut self, program: &str, args: &[String], acts: &[Act]) {
        let mut acts = acts.to_vec();
        if self.bulk {
            acts.push(Act::new("bulk", Kinds::default()));
        }
        for act in &acts {
            self.notes.effect(act.effect);
        }
        if let Some(recorder) = &mut self.notes.recorder {
            recorder.acts(&acts);
        }
        let span = self.span.clone();
        let mut notes = std::mem::take(&mut self.notes);
        let operand = |text: &str| self.target(text).kinds;
        let before = notes.found();
        self.guard.judge(program, args, &acts, &operand, span, &mut notes);
        self.spend((notes.found() - before) * FOUND);
        self.notes = notes;
    }

    /// Counts a program call; false at the limit.
    pub fn count_site(&mut self, words: usize) -> bool {
        self.sites += 1;
        self.words += words;
        self.sites <= self.limits.sites && self.words <= self.limits.words_in_all && self.done() <= self.limits.work
    }

    // Functions.

    /// Assignments that change what later programs do.
    pub fn environment_changed(&mut self, name: &str, span: Span) {
        let Some(Value::Text(value)) = self.env.get(name) else { return };
        let value = value.clone();
        let outer = std::mem::replace(&mut self.span, span);
        variables::assigned(self, name, &value);
        self.span = outer;
    }
}

/// The command of a list that holds no other.
fn only_command(list: &List) -> Option<&Command> {
    let [Item { first, rest, .. }] = list.as_slice() else { return None };
    let [command] = first.commands.as_slice() else { return None };
    rest.is_empty().then_some(command)
}

/// The single `< file` of `$(< file)`.
fn only_redirect(list: &List) -> Option<&Redirect> {
    let [Item { first, rest, .. }] = list.as_slice() else { return None };
    let [Command { kind: Kind::Simple { assignments, words }, redirects, .. }] = first.commands.as_slice() else {
        return None;
    };
    match redirects.as_slice() {
        [redirect] if rest.is_empty() && assignments.is_empty() && words.is_empty() => {
            (redirect.operator == RedirectOperator::Read).then_some(redirect)
        }
        _ => None,
    }
}

/// The kinds of unknown that pass through a program that reads `text`.
pub(crate) fn passed(text: Option<&str>) -> String {
    let kind = text.filter(|text| has_unknown(text)).map_or_else(|| UNKNOWN.to_string(), taint);
    kind + "\n"
}
