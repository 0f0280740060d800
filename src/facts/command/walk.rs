//! The abstract interpreter: follows a script as bash would run it, on abstract text. Branches are taken one after the
//! other with one environment; whatever might run is judged.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::env::{Env, Held, Value};
use super::expand::Field;
use super::limits::Limits;
use super::notes::{Act, Notes};
use super::parse::{Parsed, Problem, parse};
use super::rules::Guard;
use super::scripts::{Scripts, Seen};
use super::syntax::{Command, Connector, Item, Kind, List, Pipeline, Redirect, RedirectOperator, Span, Word};
use super::target::{Kind as Place, Kinds, Places, Target};
use super::text::{FETCHED, SECRET, UNKNOWN, has_unknown, inert, taint};
use crate::facts::Surroundings;
use crate::facts::path::Access;

/// How often a loop over known text is unrolled.
const ITERATIONS: usize = 200;

/// How many commands of any kind and turns of loops there may be for each program call that is looked at.
const STEPS: usize = 10;

/// Redirects of one command beyond which each counts like a program call.
const REDIRECTS: usize = 8;

/// A variable that `local` hides: its name, its value, its other values.
pub(super) type Hidden = (String, Option<Value>, Option<Vec<Value>>);

/// Work done so far, against the limits.
#[derive(Debug, Default)]
pub(super) struct Budget {
    sites: usize,
    steps: usize,
    words: usize,
    nested_bytes: usize,
    pattern_work: usize,
    expanded: usize,
}

pub(super) struct Walker<'a> {
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
    /// Programs under another name: copies and links that the command itself made.
    pub binaries: HashMap<String, String>,
    /// Variables with several possible values that the command at hand read.
    reads: BTreeSet<String>,
    /// What `local` hides, for each function being called.
    pub locals: Vec<Vec<Hidden>>,
    depth: usize,
    sites: usize,
    /// Commands of any kind and turns of loops so far.
    steps: usize,
    /// Steps of matching patterns against text so far.
    pub pattern_work: usize,
    /// Words of all program calls so far.
    words: usize,
    nested_bytes: usize,
    next_descriptor: u32,
    /// Bytes that expansions gave so far.
    pub expanded: usize,
    /// Functions being called, innermost last.
    pub calls: Vec<String>,
    /// The command at hand, for findings.
    pub span: Span,
    /// A tree walk gives the operands one by one: each call is part of a recursion.
    pub recursing: bool,
    /// The program at hand runs once for each of many things.
    pub bulk: bool,
    /// What inline code printed.
    pub inline_output: String,
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
            binaries: HashMap::new(),
            reads: BTreeSet::new(),
            locals: Vec::new(),
            depth: 0,
            sites: 0,
            steps: 0,
            pattern_work: 0,
            words: 0,
            nested_bytes: 0,
            next_descriptor: 60,
            expanded: 0,
            calls: Vec::new(),
            span: 0..0,
            recursing: false,
            bulk: false,
            inline_output: String::new(),
            prefix: Vec::new(),
        }
    }

    /// The command text itself.
    pub fn script(&mut self, text: &str) {
        let parsed = parse(text, None, self.limits);
        self.problem(parsed.problem.as_ref());
        self.list(&parsed.list);
        self.ending(0);
    }

    /// Runs the traps that a shell set, but for the `before` that it inherited.
    fn ending(&mut self, before: usize) {
        let traps = std::mem::take(&mut self.env.traps);
        for text in traps.iter().skip(before) {
            self.run_text(text);
        }
        // A trap may set another one.
        if !self.env.traps.is_empty() {
            self.deeper(|walker| walker.ending(0));
        }
    }

    fn problem(&mut self, problem: Option<&Problem>) {
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
        let result = run(self);
        if self.env.traps.len() > saved.traps.len() {
            self.ending(saved.traps.len());
        }
        self.env = saved;
        result
    }

    /// Text that runs as a script: `eval`, `sh -c`, decoded and fetched code. Gives what it prints.
    pub fn run_text(&mut self, text: &str) -> String {
        let trimmed = text.trim_start();
        if let Some(first) = trimmed.chars().next()
            && super::text::is_unknown(first)
        {
            let known_tail = trimmed.trim_start_matches(super::text::is_unknown);
            if trimmed.contains(FETCHED) {
                self.event("fetch-and-run");
            } else if known_tail.trim().is_empty() {
                self.event("run-unknown");
            }
        }
        self.nested_bytes += text.len();
        if self.nested_bytes > self.limits.nested_bytes {
            self.limited("bytes of nested scripts");
            return UNKNOWN.to_string();
        }
        let text = inert(text);
        let span = self.span.clone();
        self.deeper(|walker| {
            let Parsed { list, problem } = parse(&text, Some(span), walker.limits);
            walker.problem(problem.as_ref());
            walker.list(&list)
        })
        .unwrap_or_default()
    }

    // Lists and pipelines. Each gives the text that it prints, as far as it is known.

    pub fn list(&mut self, list: &List) -> String {
        let mut out = String::new();
        for item in list {
            if self.exhausted() {
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

    fn exhausted(&mut self) -> bool {
        let steps = self.limits.sites.saturating_mul(STEPS);
        if self.sites > self.limits.sites || self.steps > steps || self.words > self.limits.words_in_all {
            self.limited("number of commands");
            return true;
        }
        false
    }

    fn item(&mut self, item: &Item) -> String {
        if item.background {
            return self.subshell(|walker| walker.and_or(item));
        }
        self.and_or(item)
    }

    fn and_or(&mut self, item: &Item) -> String {
        let mut out = self.pipeline(&item.first);
        let mut failed_elsewhere = None;
        let base = self.env.held();
        let mut skipped = Vec::new();
        for (connector, pipeline) in &item.rest {
            match connector {
                // After `cd X &&` the directory is X.
                Connector::And => failed_elsewhere = self.env.cwd_if_failed.take().or(failed_elsewhere),
                // After `cd X || exit` too.
                Connector::Or if leaves(pipeline) => {
                    self.env.cwd_if_failed = None;
                    failed_elsewhere = None;
                }
                Connector::Or => {}
            }
            let before = self.env.held();
            let printed = self.pipeline(pipeline);
            if *connector == Connector::Or && leaves(pipeline) {
                // Who goes on did not run it.
                self.env.hold(before);
            } else {
                skipped.push(before);
            }
            out.push_str(&printed);
        }
        for held in skipped {
            self.join_with(&base, &held);
        }
        if failed_elsewhere.is_some() {
            self.env.cwd_if_failed = failed_elsewhere;
        }
        out
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> String {
        if let [command] = pipeline.commands.as_slice() {
            return self.command(command);
        }
        let mut printed: Option<String> = None;
        for command in &pipeline.commands {
            let stdin = printed.take();
            let text = self.subshell(|walker| {
                if let Some(stdin) = stdin {
                    walker.env.stdin = Some(stdin.into());
                }
                walker.command(command)
            });
            printed = Some(self.bounded(text));
        }
        printed.unwrap_or_default()
    }

    pub fn command(&mut self, command: &Command) -> String {
        self.steps += 1;
        let outer = std::mem::replace(&mut self.span, command.span.clone());
        let printed = self.deeper(|walker| walker.each_alternative(command)).unwrap_or_default();
        self.span = outer;
        printed
    }

    pub fn note_read(&mut self, name: &str) {
        let name = self.env.references.get(name).map_or(name, String::as_str);
        if self.env.alternatives.contains_key(name) {
            self.reads.insert(name.to_owned());
        }
    }

    /// A simple command runs once more for each other value of each variable that it reads; what it assigns may then
    /// hold the other values too.
    fn each_alternative(&mut self, command: &Command) -> String {
        let Kind::Simple { assignments, words } = &command.kind else { return self.command_here(command) };
        if self.env.alternatives.is_empty() {
            return self.command_here(command);
        }
        let before = self.env.clone();
        let outer = std::mem::take(&mut self.reads);
        let printed = self.command_here(command);
        let read = std::mem::replace(&mut self.reads, outer);
        let mut found: Vec<(String, Value)> = Vec::new();
        for name in &read {
            for value in before.alternatives.get(name).cloned().unwrap_or_default() {
                if self.exhausted() {
                    return printed;
                }
                self.steps += 1 + before.variables.len() / 16;
                let mut env = before.clone();
                env.set(name, value);
                let after = std::mem::replace(&mut self.env, env);
                let traps = self.env.traps.len();
                let reads = std::mem::take(&mut self.reads);
                self.command_here(command);
                self.reads = reads;
                if self.env.traps.len() > traps {
                    self.ending(traps);
                }
                if words.is_empty() || !assignments.is_empty() || words.first().and_then(Word::literal).is_some() {
                    let assigned = self.env.variables.iter().filter(|(key, value)| {
                        *key != name && after.variables.contains_key(*key) && after.variables.get(*key) != Some(value)
                    });
                    found.extend(assigned.map(|(key, value)| (key.clone(), value.clone())));
                }
                self.env = after;
            }
        }
        self.add_alternatives(found);
        // A substitution gives something else for each value too.
        self.reads.extend(read);
        printed
    }

    fn add_alternatives(&mut self, found: Vec<(String, Value)>) {
        for (name, value) in found {
            if !self.env.add_alternative(&name, value) {
                self.limited("values of a variable");
                self.env.set_text(&name, UNKNOWN);
            }
        }
    }

    /// Joins the variables of branches of which one ran: what differs may hold the value of any of them.
    fn join(&mut self, base: &Held, mut outcomes: Vec<Held>) {
        let Some(last) = outcomes.pop() else {
            self.env.hold(base.clone());
            return;
        };
        self.env.hold(last);
        for other in outcomes {
            self.join_with(base, &other);
        }
    }

    fn join_with(&mut self, base: &Held, other: &Held) {
        if Rc::ptr_eq(&other.variables, &self.env.variables) && Rc::ptr_eq(&other.alternatives, &self.env.alternatives)
        {
            return;
        }
        self.steps += other.variables.len() / 16;
        let mut found = Vec::new();
        for (name, value) in other.variables.iter() {
            let held = self.env.variables.get(name);
            if held == Some(value) {
                continue;
            }
            // The value that only this branch gave goes on; where another did, both do.
            if held.is_none() || held == base.variables.get(name) && base.variables.get(name) != Some(value) {
                let old = held.cloned();
                let others = self.env.alternatives.get(name).cloned().unwrap_or_default();
                self.env.set(name, value.clone());
                found.extend(others.into_iter().chain(old).map(|value| (name.clone(), value)));
            } else {
                found.push((name.clone(), value.clone()));
            }
        }
        for (name, values) in other.alternatives.iter() {
            found.extend(values.iter().map(|value| (name.clone(), value.clone())));
        }
        self.add_alternatives(found);
    }

    fn command_here(&mut self, command: &Command) -> String {
        let saved_stdin = self.env.stdin.clone();
        let saved_descriptors = Rc::clone(&self.env.descriptors);
        let outputs = self.redirects(&command.redirects);
        let keeps = matches!(&command.kind, Kind::Simple { words, .. }
            if words.first().and_then(Word::literal).is_some_and(|name| name == "exec") && words.len() == 1);
        let printed = self.kind(&command.kind);
        if !keeps && !command.redirects.is_empty() {
            self.env.stdin = saved_stdin;
            self.env.descriptors = saved_descriptors;
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
            Kind::While { condition, body } => self.while_clause(condition, body),
            Kind::For { name, words, body } => self.for_clause(name, words.as_deref(), body),
            Kind::ArithmeticFor { header, body } => {
                self.arithmetic(header);
                self.maybe(|walker| walker.list(body))
            }
            Kind::Case { subject, arms } => self.case_clause(subject, arms),
            Kind::Function { name, body } => {
                self.define(name, body);
                String::new()
            }
            Kind::Arithmetic(word) => {
                self.arithmetic(word);
                String::new()
            }
            Kind::Test(words) => {
                for word in words {
                    self.text(word);
                }
                String::new()
            }
        }
    }

    /// Each branch may run, and starts where the condition ended. The variables that they leave different hold the
    /// values of all of them.
    fn if_clause(&mut self, branches: &[(List, List)], otherwise: Option<&List>) -> String {
        let mut out = String::new();
        let base = self.env.held();
        let mut outcomes = Vec::new();
        for (condition, then) in branches {
            self.list(condition);
            let cwd = (self.env.cwd.clone(), self.env.cwd_if_failed.clone());
            let base = self.env.held();
            out.push_str(&self.list(then));
            if !ends_leaving(then) {
                outcomes.push(self.env.held());
            }
            self.env.hold(base);
            if self.env.cwd != cwd.0 {
                // Whether the branch ran is open.
                self.env.cwd_if_failed = Some(cwd.0);
            }
        }
        let leaving = otherwise.is_some_and(ends_leaving);
        if let Some(list) = otherwise {
            out.push_str(&self.list(list));
        }
        if !leaving {
            outcomes.push(self.env.held());
        }
        self.join(&base, outcomes);
        out
    }

    fn while_clause(&mut self, condition: &List, body: &List) -> String {
        self.maybe(|walker| walker.turns(condition, body))
    }

    /// What may not run at all.
    fn maybe(&mut self, run: impl FnOnce(&mut Self) -> String) -> String {
        let base = self.env.held();
        let out = run(self);
        self.join_with(&base, &base);
        out
    }

    fn turns(&mut self, condition: &List, body: &List) -> String {
        let mut out = String::new();
        for _ in 0..ITERATIONS {
            let before = self.env.stdin.clone();
            self.list(condition);
            let outer = std::mem::replace(&mut self.bulk, true);
            out.push_str(&self.list(body));
            self.bulk = outer;
            // Only a loop that eats known input turns again.
            let eaten = match (&before, &self.env.stdin) {
                (Some(before), Some(now)) => now.len() < before.len() && !now.trim().is_empty(),
                _ => false,
            };
            if !eaten || self.exhausted() {
                return self.bounded(out);
            }
        }
        self.limited("turns of a loop");
        out
    }

    fn for_clause(&mut self, name: &str, words: Option<&[Word]>, body: &List) -> String {
        let outer_reads = std::mem::take(&mut self.reads);
        let mut values: Vec<String> = match words {
            Some(words) => self.expand(words).into_iter().map(|field| field.text).collect(),
            None => match self.env.positional.clone() {
                Some(items) => items.iter().skip(1).cloned().collect(),
                None => vec![UNKNOWN.to_string()],
            },
        };
        let read = std::mem::replace(&mut self.reads, outer_reads);
        if let Some(words) = words {
            for name in &read {
                for value in self.env.alternatives.get(name).cloned().unwrap_or_default() {
                    let more = self.subshell(|walker| {
                        walker.env.set(name, value);
                        walker.expand(words)
                    });
                    for text in more.into_iter().map(|field| field.text) {
                        if !values.contains(&text) {
                            values.push(text);
                        }
                    }
                }
            }
        }
        let mut out = String::new();
        let base = self.env.held();
        let maybe = values.iter().any(|value| has_unknown(value));
        let many = values.len() > 1 || values.iter().any(|value| has_unknown(value));
        let outer = self.bulk;
        self.bulk |= many;
        for (turn, value) in values.into_iter().enumerate() {
            if turn == ITERATIONS {
                self.limited("turns of a loop");
                break;
            }
            self.steps += 1;
            // A glob that nobody expanded stands for the names it matches.
            self.env.set_text(name, value);
            out.push_str(&self.list(body));
            if self.exhausted() {
                break;
            }
        }
        self.bulk = outer;
        if maybe {
            self.join_with(&base, &base);
        }
        self.bounded(out)
    }

    fn case_clause(&mut self, subject: &Word, arms: &[(Vec<Word>, List)]) -> String {
        self.text(subject);
        let mut out = String::new();
        let base = self.env.held();
        let mut outcomes = Vec::new();
        let mut all = false;
        for (patterns, list) in arms {
            all |= patterns.iter().any(|pattern| pattern.literal().is_some_and(|text| text == "*"));
            for pattern in patterns {
                self.text(pattern);
            }
            let saved = (self.env.cwd.clone(), self.env.cwd_if_failed.clone());
            out.push_str(&self.list(list));
            (self.env.cwd, self.env.cwd_if_failed) = saved;
            if !ends_leaving(list) {
                outcomes.push(self.env.held());
            }
            self.env.hold(base.clone());
        }
        if !all {
            outcomes.push(base.clone());
        }
        self.join(&base, outcomes);
        out
    }

    // Substitutions.

    pub fn substitution(&mut self, list: &List) -> String {
        let text = self
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
        let text = text.trim_end_matches('\n');
        self.bounded(text.to_owned())
    }

    pub fn process_substitution(&mut self, list: &Rc<List>, reads: bool) -> String {
        let path = format!("/dev/fd/{}", self.next_descriptor);
        self.next_descriptor += 1;
        let text = self.deeper(|walker| walker.subshell(|walker| walker.list(list))).unwrap_or_default();
        if reads {
            self.files.insert(path.clone(), text);
        }
        path
    }

    /// `${name@P}` and prompts: the value is expanded like a heredoc.
    pub fn prompt(&mut self, text: &str) -> String {
        let span = self.span.clone();
        let word = {
            let mut parser = super::parse::Parser::new(text, Some(span), self.limits);
            parser.word_until(super::parse_word::Quoting::Heredoc, |_| false)
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

    /// Applies redirects; gives those that take the command's output, with whether they append.
    pub fn redirects(&mut self, redirects: &[Redirect]) -> Vec<Output> {
        let mut outputs = Vec::new();
        for (i, redirect) in redirects.iter().enumerate() {
            if !self.count_site_of_redirect(i) {
                self.limited("number of redirects");
                break;
            }
            let Some(word) = redirect.target.get() else { continue };
            use RedirectOperator as R;
            match redirect.operator {
                R::HereDocument => {
                    let text = self.text(word);
                    self.set_input(redirect.fd, text);
                }
                R::HereString => {
                    let text = self.text(word) + "\n";
                    self.set_input(redirect.fd, text);
                }
                R::Read => {
                    let path = self.text(word);
                    let text = self.read_file(&path, &redirect.span);
                    self.set_input(redirect.fd, text);
                }
                R::DuplicateInput => self.duplicate_input(redirect, word),
                R::ReadWrite => {
                    let path = self.text(word);
                    let text = self.read_file(&path, &redirect.span);
                    self.set_input(redirect.fd, text);
                    self.write_file(&path, true, &redirect.span);
                }
                R::DuplicateOutput if self.is_descriptor(word) => {}
                R::Write | R::Append | R::DuplicateOutput | R::Both => {
                    let append = redirect.operator == R::Append;
                    outputs.push(self.output(redirect, word, append));
                }
            }
        }
        outputs
    }

    fn is_descriptor(&mut self, word: &Word) -> bool {
        word.literal().is_some_and(|text| text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
    }

    fn duplicate_input(&mut self, redirect: &Redirect, word: &Word) {
        let text = self.text(word);
        if let Ok(number) = text.trim_end_matches('-').parse::<u32>()
            && let Some(content) = self.env.descriptors.get(&number).cloned()
        {
            self.set_input(redirect.fd, content);
        }
    }

    fn set_input(&mut self, fd: Option<u32>, text: String) {
        match fd {
            None | Some(0) => self.env.stdin = Some(text.into()),
            Some(number) => {
                self.files.insert(format!("/dev/fd/{number}"), text.clone());
                Rc::make_mut(&mut self.env.descriptors).insert(number, text);
            }
        }
    }

    fn output(&mut self, redirect: &Redirect, word: &Word, append: bool) -> Output {
        if let [super::syntax::Part::Process { list, reads: false }] = word.parts.as_slice() {
            return Output { path: None, process: Some(Rc::clone(list)), append, takes: true };
        }
        let path = self.text(word);
        self.write_file(&path, append, &redirect.span);
        let takes = !matches!(redirect.fd, Some(fd) if fd != 1);
        Output { path: Some(path), process: None, append, takes }
    }

    /// Sends what a command printed where its redirects say; what is left goes on.
    fn outputs(&mut self, outputs: Vec<Output>, printed: String) -> String {
        let mut printed = printed;
        for output in outputs {
            let text = if output.takes { std::mem::take(&mut printed) } else { String::new() };
            if let Some(list) = output.process {
                self.subshell(|walker| {
                    walker.env.stdin = Some(text.into());
                    walker.list(&list)
                });
            } else if let Some(path) = output.path {
                self.store(&path, text, output.append);
            }
        }
        printed
    }

    /// Remembers what a file holds now.
    pub fn store(&mut self, path: &str, text: String, append: bool) {
        let target = self.target(path);
        if target.kinds.has(Place::Network) && text.contains(SECRET) {
            self.event("send-secret");
        }
        if !target.is_known() || target.path.starts_with("/dev/") || self.files.len() > 256 {
            return;
        }
        if target.path.starts_with("/proc/sys") && text.trim() == "" {
            return;
        }
        self.persisted(&target, &text);
        let entry = self.files.entry(target.path).or_default();
        if append { entry.push_str(&text) } else { *entry = text }
    }

    /// What reading a path gives.
    pub fn read_file(&mut self, path: &str, span: &Span) -> String {
        let target = self.target(path);
        self.notes.path(&target, Access::Read, span.clone());
        self.acts_on(&[Act::new("read", target.kinds)]);
        self.content(&target)
    }

    pub fn content(&self, target: &Target) -> String {
        if let Some(text) = self.files.get(&target.path) {
            return text.clone();
        }
        if target.kinds.has(Place::Network) {
            FETCHED.to_string()
        } else if target.kinds.has(Place::Credential) || target.kinds.has(Place::DotEnv) {
            SECRET.to_string()
        } else if target.path == "/dev/null" {
            String::new()
        } else {
            UNKNOWN.to_string()
        }
    }

    fn write_file(&mut self, path: &str, append: bool, span: &Span) {
        let target = self.target(path);
        self.notes.path(&target, Access::Write, span.clone());
        let effect = if target.kinds.has(Place::Disk) {
            "write-device"
        } else if append {
            "append"
        } else {
            "overwrite"
        };
        self.acts_on(&[Act::new(effect, target.kinds)]);
    }

    // Targets and events.

    pub fn target(&self, text: &str) -> Target {
        let home = self.home();
        let places =
            |cwd| Places { here: self.here, cwd, home: &home, mounts: self.env.mounts.as_ref().map(|m| m.as_slice()) };
        let mut target = places(&self.env.cwd).target(text);
        // Where `cd` may have failed, a relative operand is what it would be there.
        if let Some(cwd) = &self.env.cwd_if_failed
            && !text.starts_with('/')
        {
            let other = places(cwd).target(text);
            if other.kinds.fatal() {
                target.kinds = target.kinds.union(other.kinds);
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
        self.guard.judge("", &[], acts, &|_| Kinds::default(), span, &mut self.notes);
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
        let span = self.span.clone();
        let mut notes = std::mem::take(&mut self.notes);
        let operand = |text: &str| self.target(text).kinds;
        self.guard.judge(program, args, &acts, &operand, span, &mut notes);
        self.notes = notes;
    }

    /// Counts a program call; false at the limit.
    pub fn count_site(&mut self, words: usize) -> bool {
        self.sites += 1;
        self.words += words;
        self.sites <= self.limits.sites && self.words <= self.limits.words_in_all
    }

    fn count_site_of_redirect(&mut self, position: usize) -> bool {
        if position < REDIRECTS { self.words <= self.limits.words_in_all } else { self.count_site(1) }
    }

    // Functions.

    fn define(&mut self, name: &str, body: &Rc<Command>) {
        Rc::make_mut(&mut self.env.functions).insert(name.to_owned(), Rc::clone(body));
        if super::forkbomb::is_bomb(name, body) {
            self.event("fork-bomb");
        }
    }

    pub fn call(&mut self, name: &str, body: &Rc<Command>, argv: &[Field]) -> String {
        if self.calls.iter().filter(|call| *call == name).count() >= 2 {
            // Recursion: its body is judged already.
            return UNKNOWN.to_string();
        }
        self.calls.push(name.to_owned());
        let items = argv.iter().map(|field| field.text.clone()).collect();
        let saved = self.env.positional.replace(Rc::new(items));
        self.locals.push(Vec::new());
        let printed = self.command(body);
        for (name, value, others) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            let variables = Rc::make_mut(&mut self.env.variables);
            match value {
                Some(value) => variables.insert(name.clone(), value),
                None => variables.remove(&name),
            };
            let alternatives = Rc::make_mut(&mut self.env.alternatives);
            match others {
                Some(others) => alternatives.insert(name, others),
                None => alternatives.remove(&name),
            };
        }
        self.env.positional = saved;
        self.calls.pop();
        printed
    }

    /// Assignments that change what later programs do.
    pub fn environment_changed(&mut self, name: &str, span: Span) {
        let Some(Value::Text(value)) = self.env.get(name) else { return };
        let value = value.clone();
        let outer = std::mem::replace(&mut self.span, span);
        super::variables::assigned(self, name, &value);
        self.span = outer;
    }
}

/// Where a command's output goes.
pub(super) struct Output {
    path: Option<String>,
    process: Option<Rc<List>>,
    append: bool,
    /// It takes standard output, not only another descriptor.
    takes: bool,
}

/// Whether a pipeline ends the shell: `exit`, `return`.
fn leaves(pipeline: &Pipeline) -> bool {
    let leaving = |command: &Command| match &command.kind {
        Kind::Simple { words, .. } => words
            .first()
            .and_then(Word::literal)
            .is_some_and(|name| matches!(name, "exit" | "return" | "continue" | "break")),
        Kind::Group(list) => list.iter().any(|item| leaves(&item.first)),
        _ => false,
    };
    matches!(pipeline.commands.as_slice(), [command] if leaving(command))
}

/// Whether a branch ends the shell, so that nothing after it sees what it assigned.
fn ends_leaving(list: &List) -> bool {
    list.last().is_some_and(|item| item.rest.is_empty() && !item.background && leaves(&item.first))
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
pub(super) fn passed(text: Option<&str>) -> String {
    let kind = text.filter(|text| has_unknown(text)).map_or_else(|| UNKNOWN.to_string(), taint);
    kind + "\n"
}
