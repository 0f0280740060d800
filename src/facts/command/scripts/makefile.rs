//! make(1): the recipes of a makefile that a goal reaches, and what reading the makefile runs itself. Conditionals count
//! as if each branch were taken; what other makefiles say is unknown.

use std::collections::{HashMap, HashSet};

use crate::facts::command::shell::env::Value;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{MAYBE, UNKNOWN, has_unknown};
use crate::facts::command::wrappers::options::Options;

/// Targets that are followed.
const TARGETS: usize = 400;
/// Depth of variables in variables.
const DEPTH: usize = 24;
/// Makefiles that include each other are followed so deep.
const INCLUDES: usize = 4;
/// Bytes that one text may become.
const LONGEST: usize = 32 * 1024;

pub(crate) fn make(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "fCIoWE", &["file", "makefile", "directory", "!jobs", "eval", "include-dir"]);
    let dry = ['n', 'q', 't'].into_iter().any(|short| options.has(short))
        || [("dry-run", 3), ("just-print", 2), ("recon", 3), ("question", 1), ("touch", 1)]
            .into_iter()
            .any(|(long, least)| options.has_long(long, least));
    let given = Given { operands: &options.operands, dry };
    let shell = args.iter().find_map(|arg| arg.strip_prefix("SHELL="));
    walker.subshell(|walker| {
        if let Some(text) = shell {
            walker.run_text(text);
        }
        for dir in options.values('C').into_iter().chain(options.long_values("directory")) {
            let target = walker.target(&dir);
            walker.env.cwd = if target.is_known() { target.path } else { UNKNOWN.to_string() };
            walker.env.other_cwds.clear();
        }
        for text in options.long_values("eval").into_iter().chain(options.values('E')) {
            run(walker, &text, &given);
        }
        let named: Vec<String> = ["file", "makefile"].iter().flat_map(|long| options.long_values(long)).collect();
        files(walker, options.values('f').into_iter().chain(named).collect(), &given);
    });
}

/// What make was asked.
struct Given<'a> {
    /// Goals and assignments.
    operands: &'a [String],
    /// Nothing is made: only what is expanded, and lines that say so themselves, run all the same.
    dry: bool,
}

fn files(walker: &mut Walker<'_>, mut named: Vec<String>, given: &Given<'_>) {
    if named.is_empty() {
        let usual = ["GNUmakefile", "makefile", "Makefile"].into_iter();
        let found = usual.map(str::to_owned).find(|name| {
            let target = walker.target(name);
            walker.has_file(&target)
        });
        named.push(found.unwrap_or_else(|| "Makefile".to_owned()));
    }
    let part = given.operands.join(" ");
    for path in named {
        if path == "-" || path == "/dev/stdin" {
            let input = walker.env.stdin.clone();
            input.into_iter().for_each(|text| run(walker, &text, given));
            continue;
        }
        let target = walker.target(&path);
        if !walker.has_file(&target) {
            walker.watch_unpacked(&target, false);
        }
        match walker.files.get(&target.path).cloned() {
            Some(text) => run(walker, &text, given),
            None => drop(walker.with_part(&target, &part, |walker, text| run(walker, text, given))),
        }
    }
}

/// The text with those of the makefiles that it includes by name, where these are known.
fn included(walker: &mut Walker<'_>, text: &str, depth: usize) -> String {
    if depth >= INCLUDES || !text.contains("include ") {
        return text.to_owned();
    }
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(line);
        out.push('\n');
        for name in include_names(line).filter(|name| !name.contains('$')) {
            let target = walker.target(name);
            let inner = match walker.files.get(&target.path).cloned() {
                Some(text) => Some(text),
                None => walker.with_part(&target, "include", |_, text| text.to_owned()),
            };
            if let Some(inner) = inner.filter(|inner| out.len() + inner.len() <= LONGEST * 8) {
                out.push_str(&included(walker, &inner, depth + 1));
            }
        }
    }
    out
}

/// The makefiles that a line includes.
fn include_names(line: &str) -> impl Iterator<Item = &str> {
    let mut words = line.split_whitespace();
    let includes =
        !line.starts_with('\t') && words.next().is_some_and(|word| matches!(word, "include" | "-include" | "sinclude"));
    words.filter(move |_| includes).take_while(|word| !word.starts_with('#'))
}

/// Judges what making the goals among the operands runs.
fn run(walker: &mut Walker<'_>, text: &str, given: &Given<'_>) {
    let text = included(walker, text, 0);
    let mut makefile = Makefile::read(&text);
    let mut goals = Vec::new();
    for operand in given.operands {
        match operand.split_once('=') {
            Some((name, value)) => {
                makefile.variables.insert(name.trim_end_matches([':', '+', '?']).to_owned(), value.to_owned());
            }
            None => goals.push(operand.clone()),
        }
    }
    let cwd = walker.env.cwd.clone();
    makefile.variables.insert("CURDIR".to_owned(), cwd);
    let mut work = Work { walker, makefile: &makefile, bytes: LONGEST * 8, dry: false };
    for text in &makefile.read_at_once {
        // What is computed while the makefile is read runs whatever the goal is.
        work.expanded(text, &[]);
    }
    // Makefiles are made before any goal, dry run or not.
    let made: Vec<String> = ["GNUmakefile", "makefile", "Makefile"].into_iter().map(str::to_owned).collect();
    let named = |name: &String| makefile.rules.iter().any(|rule| rule.targets.split_whitespace().any(|it| it == name));
    work.make(made.into_iter().chain(makefile.includes.iter().cloned()).filter(named).collect());
    work.dry = given.dry;
    if goals.is_empty() {
        let chosen = makefile.variables.get(".DEFAULT_GOAL").cloned();
        let first = || {
            let names = makefile.rules.iter().flat_map(|rule| rule.targets.split_whitespace());
            names.filter(|name| !name.starts_with('.') && !name.contains('%')).map(str::to_owned).next()
        };
        goals.extend(chosen.or_else(first));
    }
    work.make(goals);
}

struct Rule {
    targets: String,
    needs: String,
    recipe: Vec<String>,
}

#[derive(Default)]
struct Makefile {
    variables: HashMap<String, String>,
    rules: Vec<Rule>,
    /// Texts that are expanded as they are read.
    read_at_once: Vec<String>,
    /// Other makefiles, which are made first where a rule says how.
    includes: Vec<String>,
    one_shell: bool,
}

impl Makefile {
    fn read(text: &str) -> Self {
        let mut makefile = Makefile::default();
        let mut lines = text.lines();
        let mut define: Option<(String, String)> = None;
        let mut in_rule = false;
        while let Some(line) = lines.next() {
            let mut line = line.to_owned();
            while line.ends_with('\\')
                && let Some(next) = lines.next()
            {
                line.push('\n');
                line.push_str(next);
            }
            if let Some((name, body)) = &mut define {
                if line.trim() == "endef" {
                    makefile.variables.insert(std::mem::take(name), std::mem::take(body));
                    define = None;
                } else {
                    body.push_str(&line);
                    body.push('\n');
                }
                continue;
            }
            if let Some(recipe) = line.strip_prefix('\t')
                && in_rule
            {
                makefile.rules.last_mut().into_iter().for_each(|rule| rule.recipe.push(recipe.to_owned()));
                continue;
            }
            let line = uncommented(&line).replace("\\\n", " ");
            let line = line.trim();
            if let Some(name) = line.strip_prefix("define ") {
                define = Some((name.trim_end_matches(['=', ':', ' ']).trim().to_owned(), String::new()));
            } else if !line.is_empty() {
                in_rule = makefile.line(line) || (in_rule && is_conditional(line));
            }
        }
        makefile
    }

    /// A line outside of recipes; whether it starts a rule.
    fn line(&mut self, line: &str) -> bool {
        let line = ["export ", "override ", "private ", "unexport "]
            .iter()
            .fold(line, |line, word| line.strip_prefix(word).unwrap_or(line).trim_start());
        if is_conditional(line) {
            self.read_at_once.push(line.to_owned());
            return false;
        }
        if self.assignment(line) {
            return false;
        }
        let mut names = include_names(line).map(str::to_owned).peekable();
        if names.peek().is_some() {
            self.read_at_once.push(line.to_owned());
            self.includes.extend(names);
            return false;
        }
        if line.starts_with('$') && !line.contains(':') {
            self.read_at_once.push(line.to_owned());
            return false;
        }
        let Some((targets, rest)) = split_rule(line) else { return false };
        let rest = rest.trim_start_matches(':');
        let (needs, recipe) = match rest.split_once(';') {
            Some((needs, recipe)) => (needs, Some(recipe.to_owned())),
            None => (rest, None),
        };
        if self.assignment(needs.trim()) {
            return false;
        }
        self.one_shell |= targets.trim() == ".ONESHELL";
        let rule = Rule {
            targets: targets.trim().to_owned(),
            needs: needs.replace('|', " "),
            recipe: recipe.into_iter().collect(),
        };
        self.rules.push(rule);
        true
    }

    fn assignment(&mut self, line: &str) -> bool {
        let Some(at) = line.find('=') else { return false };
        let (head, value) = line.split_at_checked(at).unwrap_or_default();
        let value = value.get(1..).unwrap_or_default().trim();
        let name = head.trim_end_matches([':', '?', '+', '!']).trim();
        let operator = head.get(name.len()..).unwrap_or_default().trim();
        let plain = |c: char| c.is_alphanumeric() || "_.-/%@".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            return false;
        }
        match operator {
            "+" => {
                let held = self.variables.entry(name.to_owned()).or_default();
                held.push(' ');
                held.push_str(value);
            }
            "?" if self.variables.contains_key(name) => {}
            "!" => {
                self.read_at_once.push(format!("$(shell {value})"));
                self.variables.insert(name.to_owned(), UNKNOWN.to_string());
            }
            _ => drop(self.variables.insert(name.to_owned(), value.to_owned())),
        }
        if operator.starts_with(':') {
            self.read_at_once.push(value.to_owned());
        }
        true
    }
}

/// The targets of a rule and what follows its colon. Colons inside of references are none.
fn split_rule(line: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in line.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return Some((line.get(..at)?, line.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

fn is_conditional(line: &str) -> bool {
    let word = line.split([' ', '\t', '(']).next().unwrap_or_default();
    matches!(word, "ifeq" | "ifneq" | "ifdef" | "ifndef" | "else" | "endif")
}

fn uncommented(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && before != '\\' {
            return line.get(..at).unwrap_or(line);
        }
        before = c;
    }
    line
}

/// Making goals.
struct Work<'w, 'a, 'm> {
    walker: &'w mut Walker<'a>,
    makefile: &'m Makefile,
    /// Bytes that expansions may still give.
    bytes: usize,
    /// Recipes are shown, not run.
    dry: bool,
}

impl Work<'_, '_, '_> {
    fn make(&mut self, goals: Vec<String>) {
        let makefile = self.makefile;
        // Every rule's names are expanded once.
        let rules: Vec<(Vec<String>, Vec<String>, &Rule)> = makefile
            .rules
            .iter()
            .map(|rule| {
                let words = |text: String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                (words(self.expanded(&rule.targets, &[])), words(self.expanded(&rule.needs, &[])), rule)
            })
            .collect();
        let mut waiting = goals;
        let mut done = HashSet::new();
        while let Some(name) = waiting.pop() {
            if !done.insert(name.clone()) {
                continue;
            }
            if done.len() > TARGETS {
                self.walker.limited("number of make targets");
                return;
            }
            let fits = |target: &String| *target == name || has_unknown(target) || fits_pattern(target, &name);
            for (targets, needs, rule) in rules.iter().filter(|(targets, ..)| targets.iter().any(fits)) {
                if !targets.iter().all(|target| target.contains('%')) {
                    waiting.extend(needs.iter().cloned());
                }
                self.recipe(rule, &name, needs);
            }
        }
    }

    fn recipe(&mut self, rule: &Rule, name: &str, needs: &[String]) {
        let first = needs.first().cloned().unwrap_or_default();
        let own = [("@", name.to_owned()), ("<", first), ("^", needs.join(" ")), ("+", needs.join(" "))];
        let lines: Vec<String> = rule
            .recipe
            .iter()
            .map(|line| self.expanded(line.trim_start().trim_start_matches(['@', '-', '+']), &own))
            .collect();
        let dry = self.dry;
        // What is only shown was expanded all the same; a line with `+`, or of make itself, runs.
        let runs = |line: &str| !dry || is_exempt(line);
        let texts = match self.makefile.one_shell {
            true if rule.recipe.first().is_some_and(|line| runs(line)) => vec![lines.join("\n")],
            true => Vec::new(),
            false => {
                let shown = lines.into_iter().zip(&rule.recipe);
                shown.filter(|(_, line)| runs(line)).map(|(text, _)| text).collect()
            }
        };
        for text in texts {
            self.walker.subshell(|walker| walker.run_text(text.trim_start_matches(['@', '-', '+', ' ', '\t'])));
        }
    }

    fn expanded(&mut self, text: &str, own: &[(&str, String)]) -> String {
        let mut out = String::new();
        self.expand_into(&mut out, text, own, 0);
        out
    }

    fn expand_into(&mut self, out: &mut String, text: &str, own: &[(&str, String)], depth: usize) {
        let mut rest = text;
        while let Some((head, tail)) = rest.split_once('$') {
            out.push_str(head);
            self.bytes = self.bytes.saturating_sub(head.len() + 1);
            if depth >= DEPTH || self.bytes == 0 || out.len() > LONGEST {
                self.walker.limited("expansion of makefile variables");
                out.push(UNKNOWN);
                return;
            }
            rest = match tail.chars().next() {
                Some('$') => {
                    out.push('$');
                    tail.get(1..).unwrap_or_default()
                }
                Some('(' | '{') => {
                    let (name, after) = reference(tail);
                    self.reference(out, name, own, depth);
                    after
                }
                Some(c) => {
                    let (name, after) = tail.split_at_checked(c.len_utf8()).unwrap_or_default();
                    self.reference(out, name, own, depth);
                    after
                }
                None => "",
            };
        }
        out.push_str(rest);
    }

    fn reference(&mut self, out: &mut String, name: &str, own: &[(&str, String)], depth: usize) {
        if let Some((_, value)) = own.iter().find(|(key, _)| *key == name) {
            out.push_str(value);
            return;
        }
        if let Some((function, arguments)) = name.split_once([' ', '\t']) {
            return self.function(out, function, arguments, own, depth);
        }
        if let Some(value) = self.makefile.variables.get(name) {
            let value = value.clone();
            return self.expand_into(out, &value, own, depth + 1);
        }
        match (name, self.walker.env.get(name)) {
            (_, Some(Value::Text(value))) => out.push_str(&value.clone()),
            ("HOME", _) => out.push_str(&self.walker.home()),
            ("PWD", _) => out.push_str(&self.walker.env.cwd.clone()),
            ("MAKE", _) => out.push_str(if self.dry { "make -n" } else { "make" }),
            ("RM", _) => out.push_str("rm -f"),
            ("CC", _) => out.push_str("cc"),
            ("CXX", _) => out.push_str("c++"),
            ("AR", _) => out.push_str("ar"),
            // Set by whoever builds a package, empty for everybody else.
            ("DESTDIR", _) => {}
            // It may come from the environment, or from a makefile that is included.
            _ => out.push(MAYBE),
        }
    }

    /// `$(shell ...)` runs; what functions give is not computed.
    fn function(&mut self, out: &mut String, function: &str, arguments: &str, own: &[(&str, String)], depth: usize) {
        let mut text = String::new();
        self.expand_into(&mut text, arguments, own, depth + 1);
        match function {
            "shell" => {
                let printed = self.walker.subshell(|walker| walker.run_text(&text));
                let printed = printed.trim_end().replace('\n', " ");
                if printed.is_empty() { out.push(UNKNOWN) } else { out.push_str(&printed) }
            }
            "strip" | "abspath" | "realpath" | "sort" | "addprefix" if !text.contains(',') => out.push_str(text.trim()),
            "info" | "warning" | "error" => {}
            _ => out.push(UNKNOWN),
        }
    }
}

/// The text of a reference that starts with its bracket, and what follows it.
fn reference(text: &str) -> (&str, &str) {
    let close = if text.starts_with('(') { ')' } else { '}' };
    let open = if close == ')' { '(' } else { '{' };
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return (text.get(1..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
            }
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}

/// Whether a line of a recipe runs in a dry run too.
fn is_exempt(line: &str) -> bool {
    let marks = line.trim_start().chars().take_while(|c| "@-+ ".contains(*c)).any(|c| c == '+');
    marks || line.contains("$(MAKE)") || line.contains("${MAKE}")
}

fn fits_pattern(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('%') else { return false };
    has_unknown(name) || (name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail))
}
