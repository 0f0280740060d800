//! Simple commands: which program a name is, and who looks at its arguments.

use std::rc::Rc;

use super::attributes::Attributes;
use super::builtins;
use super::env::Value;
use super::flow::Way;
use super::walk::{Hidden, Walker};
use crate::facts::command::effects::files;
use crate::facts::command::effects::machine;
use crate::facts::command::effects::programs;
use crate::facts::command::effects::target::Kinds;
use crate::facts::command::grammar::syntax::{Assignment, Command, Word};
use crate::facts::command::languages::interpreters;
use crate::facts::command::notes::Act;
use crate::facts::command::scripts;
use crate::facts::command::scripts::projects;
use crate::facts::command::sites::SiteKind;
use crate::facts::command::words::braces;
use crate::facts::command::words::expand::Field;
use crate::facts::command::words::producers;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{
    FETCHED, SECRET, UNKNOWN, has_glob, has_unknown, inert, is_known, matches, show,
};
use crate::facts::command::words::variables;
use crate::facts::command::wrappers;
use crate::facts::command::wrappers::shells;
use crate::facts::path::Access;

/// So many decoded texts are remembered.
const DECODED: usize = 64;

/// Builtins whose operands are assignments.
const DECLARATIONS: &[&str] = &["export", "declare", "typeset", "local", "readonly"];

impl Walker<'_> {
    pub(crate) fn simple(&mut self, assignments: &[Assignment], words: &[Word]) -> String {
        let Some(first) = words.first() else {
            // The status is that of the last substitution, if there is one.
            self.status = Some(true);
            for assignment in assignments {
                if self.exhausted() {
                    break;
                }
                self.assign(assignment);
            }
            return String::new();
        };
        if first.literal().is_some_and(|name| DECLARATIONS.contains(&name)) {
            self.export(words);
            self.declare(words);
            let listed = words.iter().skip(1).all(|word| word.literal().is_some_and(|text| text.starts_with('-')));
            // Without a name they print every variable, but for `declare -f` and `-F`.
            let functions = words.iter().filter_map(Word::literal).any(|text| text.eq_ignore_ascii_case("-f"));
            return if listed && !functions { SECRET.to_string() } else { String::new() };
        }
        let argv = match first.literal().and_then(|name| Some((name, self.alias(name)?))) {
            Some((name, text)) => return self.aliased(name, text, words),
            None => self.expand(words),
        };
        if assignments.is_empty() {
            return self.exec(argv);
        }
        // The assignments are the program's environment; its own words were expanded without them.
        let outer = std::mem::take(&mut self.prefix);
        let mut saved = Vec::new();
        for assignment in assignments {
            if self.exhausted() {
                break;
            }
            saved.push((assignment.name.clone(), self.env.get(&assignment.name).cloned()));
            self.assign(assignment);
            if let Some(Value::Text(value)) = self.env.get(&assignment.name).cloned() {
                self.prefix.push((assignment.name.clone(), value));
            }
        }
        let prefix = self.prefix.clone();
        let program = argv.first().map(|field| field.text.clone()).unwrap_or_default();
        variables::for_program(self, &program, &prefix);
        let printed = self.exec(argv);
        self.prefix = outer;
        let variables = Rc::make_mut(&mut self.env.variables);
        for (name, value) in saved.into_iter().rev() {
            match value {
                Some(value) => variables.insert(name, value),
                None => variables.remove(&name),
            };
        }
        printed
    }

    /// `export`, `declare` and their like: assignments, as the grammar sees them.
    fn declare(&mut self, words: &[Word]) {
        let builtin = words.first().and_then(Word::literal).unwrap_or_default();
        let options: String =
            words.iter().skip(1).filter_map(Word::literal).filter(|word| word.starts_with('-')).collect();
        let local = !matches!(builtin, "export" | "readonly") && !options.contains('g');
        let references = options.contains('n');
        let words: Vec<Word> = words.iter().flat_map(|word| self.braced(word)).collect();
        let words = words.as_slice();
        for word in words.iter().skip(1) {
            let assignment = word.as_assignment();
            let name = assignment.as_ref().map_or_else(|| word.literal(), |found| Some(found.name.as_str()));
            let name = name.unwrap_or_default().to_owned();
            if local && self.hide(name.clone()) && assignment.is_none() {
                self.env.set(&name, Value::Unset);
            }
            let named = !name.starts_with(['-', '+']) && !name.is_empty();
            let readonly = named && self.attribute(builtin, words, &name);
            match assignment {
                Some(assignment) if references => {
                    let name = self.text(&assignment.value);
                    Rc::make_mut(&mut self.env.references).insert(assignment.name, name);
                }
                Some(assignment) => self.assign(&assignment),
                None => {
                    for field in self.expand(std::slice::from_ref(word)) {
                        self.declare_text(&field.text, references);
                    }
                }
            }
            if readonly {
                let attributes = Attributes { readonly, ..self.env.attributes_of(&name) };
                self.env.set_attributes(&name, attributes);
            }
        }
        self.notes.program(builtin);
        self.status = None;
    }

    /// The words that braces make of one: `declare x={k,l}` has two operands.
    fn braced(&mut self, word: &Word) -> Vec<Word> {
        match braces::expand(&word.parts, self.limits.words) {
            Some(found) => found.words.into_iter().map(|parts| Word { parts, span: word.span.clone() }).collect(),
            None => vec![word.clone()],
        }
    }

    /// An operand of `declare` that only its expansion made an assignment.
    fn declare_text(&mut self, text: &str, references: bool) {
        let Some((name, value)) = text.split_once('=') else {
            self.name_operand(text);
            return;
        };
        let name = name.trim_end_matches('+');
        if references {
            Rc::make_mut(&mut self.env.references).insert(name.to_owned(), value.to_owned());
            return;
        }
        let value = self.valued(name, inert(value));
        self.give(name, Value::Text(value));
    }

    /// The attributes that the options of a declaration give to a name. Whether it is readonly from then on.
    fn attribute(&mut self, builtin: &str, words: &[Word], name: &str) -> bool {
        if builtin == "export" {
            return false;
        }
        let real = self.referred(name);
        let name = if words.iter().filter_map(Word::literal).any(|word| word.starts_with('-') && word.contains('n')) {
            name
        } else {
            real.as_str()
        };
        let options = words.iter().skip(1).filter_map(Word::literal).filter(|word| word.starts_with(['-', '+']));
        let before = self.env.attributes_of(name);
        let attributes = options.fold(before, Attributes::with);
        self.env.set_attributes(name, Attributes { readonly: before.readonly, ..attributes });
        attributes.readonly || builtin == "readonly"
    }

    /// A variable that ends with the function at hand; false where it does already, or where there is none.
    fn hide(&mut self, name: String) -> bool {
        let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let Some(hidden) = self.locals.last_mut() else { return false };
        if !named || hidden.iter().any(|known| known.name == name) {
            return false;
        }
        hidden.push(Hidden {
            value: self.env.variables.get(&name).cloned(),
            others: self.env.alternatives.get(&name).cloned(),
            attributes: self.env.attributes_of(&name),
            reference: self.env.references.get(&name).cloned(),
            name: name.clone(),
        });
        if self.env.attributes.contains_key(&name) {
            Rc::make_mut(&mut self.env.attributes).remove(&name);
        }
        if self.env.references.contains_key(&name) {
            Rc::make_mut(&mut self.env.references).remove(&name);
        }
        true
    }

    fn alias(&self, name: &str) -> Option<String> {
        if !self.env.expand_aliases { None } else { self.env.aliases.get(name).cloned() }
    }

    fn aliased(&mut self, name: &str, text: String, words: &[Word]) -> String {
        let (mut text, mut rest) = (text, words.get(1..).unwrap_or_default());
        // After a blank at the end the next word may be an alias too.
        while text.ends_with([' ', '\t'])
            && let Some((next, tail)) = rest.split_first()
            && let Some(more) = next.literal().and_then(|name| self.alias(name))
            && text.len() < self.limits.text
        {
            text.push_str(&more);
            rest = tail;
        }
        let rest = self.expand(rest);
        let tail: Vec<String> = rest.iter().map(|field| quote(&field.text)).collect();
        if text.contains("<<") && text.contains('\n') {
            // The document is what follows the command that it stands for.
            self.notes.effect("unresolved");
        }
        // It is not expanded in what it stands for.
        let own = Rc::make_mut(&mut self.env.aliases).remove(name);
        let printed = self.run_here(&format!("{text} {}", tail.join(" ")));
        if let Some(own) = own {
            Rc::make_mut(&mut self.env.aliases).entry(name.to_owned()).or_insert(own);
        }
        printed
    }

    /// Runs a program with arguments, whoever asked for it. Gives what it prints.
    pub(crate) fn exec(&mut self, argv: Vec<Field>) -> String {
        if !self.count_site(argv.len()) {
            self.limited("number of commands");
            return UNKNOWN.to_string();
        }
        if self.notes.recorder.is_none() {
            return self.deeper(|walker| walker.exec_here(argv)).unwrap_or_else(|| UNKNOWN.to_string());
        }
        self.enter_site(&argv);
        let printed = self.deeper(|walker| walker.exec_here(argv)).unwrap_or_else(|| UNKNOWN.to_string());
        if let Some(recorder) = &mut self.notes.recorder {
            recorder.leave();
        }
        printed
    }

    pub(crate) fn exec_texts(&mut self, argv: Vec<String>) -> String {
        let span = self.span.clone();
        self.exec(argv.into_iter().map(|text| Field { text, span: span.clone() }).collect())
    }

    fn exec_here(&mut self, argv: Vec<Field>) -> String {
        let mut argv = argv;
        let past_functions = std::mem::take(&mut self.past_functions);
        let Some(head) = argv.first_mut() else { return String::new() };
        if !head.text.contains('/')
            && (past_functions || !self.env.functions.contains_key(&head.text))
            && let Some(path) = self.in_path(&head.text)
        {
            head.text = path;
        }
        self.deceptive(&argv);
        let Some(head) = argv.first() else { return String::new() };
        let args: Vec<String> = argv.iter().skip(1).map(|field| field.text.clone()).collect();
        let Some(name) = self.program_of(&head.text) else {
            return self.unknown_program(&head.text, &args);
        };
        self.last = self.status.take();
        match self.env.functions.get(&name).filter(|_| !past_functions).cloned() {
            None => self.run_program(&name, &head.text, &args),
            Some(bodies) => {
                self.site_is(SiteKind::Function);
                self.call_one_of(&name, &bodies, &argv, &args)
            }
        }
    }

    /// Calls what a name may be: one function, several where branches defined them, or a program too.
    fn call_one_of(&mut self, name: &str, bodies: &[Option<Rc<Command>>], argv: &[Field], args: &[String]) -> String {
        let written = argv.first().map_or(name, |field| field.text.as_str());
        let before = self.env.clone();
        let mut after = Way::default();
        let mut printed = String::new();
        for (i, body) in bodies.iter().enumerate() {
            self.enter(before.clone());
            let text = match body {
                Some(body) => self.call(name, body, argv),
                None => self.run_program(name, written, args),
            };
            if i == 0 {
                printed = text;
            }
            self.leave(&mut after);
        }
        self.arrive(after);
        printed
    }

    fn run_program(&mut self, name: &str, written: &str, args: &[String]) -> String {
        if written.contains('/') {
            if let Some(printed) = self.own_script(written, args) {
                return printed;
            }
            let target = self.target(written);
            let span = self.span.clone();
            self.notes.path(&target, Access::Execute, span);
            self.program_on_disk(written, args);
        }
        self.notes.program(name);
        projects::run(self, name, args);
        if name == "kill" && !self.env.traps.is_empty() {
            self.signalled();
        }
        if let [only] = args
            && (only == "--help" || only == "--version")
        {
            return UNKNOWN.to_string();
        }
        if let Some(printed) = builtins::run(self, name, args) {
            self.site_is(SiteKind::Builtin);
            return printed;
        }
        // What a program does itself, whatever it runs.
        let mut own = files::of_wrapper(self, name, args);
        own.extend(machine::acts(name, args));
        let manifest = matches!(name, "kubectl" | "oc") && args.iter().any(|arg| arg == "-" || arg == "-f-");
        if manifest && self.env.stdin.as_deref().is_some_and(|text| text.contains(FETCHED)) {
            own.push(Act::new("fetch-and-run", Kinds::default()));
        }
        self.acts_on(&own);
        if let Some(printed) = wrappers::run(self, name, args) {
            return printed;
        }
        if let Some(printed) = shells::run(self, name, args) {
            return printed;
        }
        if let Some(printed) = interpreters::run(self, name, args) {
            return printed;
        }
        let acts = programs::acts(self, name, args);
        self.judge(name, args, &acts);
        self.hosts(args);
        if !programs::is_familiar(name) && acts.is_empty() {
            self.hidden_command(args);
            let argv = std::iter::once(name).chain(args.iter().map(String::as_str));
            let argv: Vec<Field> = argv.map(|text| Field { text: text.to_owned(), span: self.span.clone() }).collect();
            self.not_found(name, &argv);
        }
        let printed = producers::output(self, name, args);
        let decodes = matches!(name, "base64" | "base32" | "basenc" | "xxd" | "openssl" | "rev" | "uudecode");
        if decodes && self.decoded.len() < DECODED && text::is_known(&printed) && !printed.trim().is_empty() {
            self.decoded.insert(printed.trim().to_owned());
        }
        printed
    }

    /// The program that a name stands for: its base name, through copies and links that the command made itself.
    pub(crate) fn program_of(&mut self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        let base = text.rsplit('/').next().unwrap_or_default();
        if has_unknown(base) || base.is_empty() {
            return None;
        }
        if has_glob(base) {
            // Which name it becomes depends on the files there are: the gravest one is assumed.
            let own =
                programs::DESTRUCTIVE.iter().copied().chain(wrappers::names()).chain(shells::NAMES.iter().copied());
            return own
                .into_iter()
                .find(|name| matches(base, name))
                .or_else(|| self.guard.program_like(base))
                .map(str::to_owned);
        }
        if text.contains('/') {
            let own = self.target_itself(text).path;
            let path = self.target(text).path;
            if let Some(name) = self.binaries.get(&own).or_else(|| self.binaries.get(&path)) {
                return Some(name.clone());
            }
            if path != own
                && let Some(base) = path.rsplit('/').next().filter(|base| is_known(base) && !base.is_empty())
            {
                return Some(base.to_owned());
            }
        }
        if let Some(name) = self.binaries.get(text) {
            return Some(name.clone());
        }
        // `=rm` is the path of rm in zsh.
        if let Some(rest) = base.strip_prefix('=')
            && (self.guard.has_program(rest) || programs::DESTRUCTIVE.contains(&rest))
        {
            return Some(rest.to_owned());
        }
        let lower = base.to_ascii_lowercase();
        for extension in [".exe", ".com", ".cmd"] {
            if let Some(stem) = lower.strip_suffix(extension) {
                return Some(stem.to_owned());
            }
        }
        if lower.contains('-') && programs::is_cmdlet(&lower) {
            return Some(lower);
        }
        Some(base.to_owned())
    }

    fn unknown_program(&mut self, text: &str, args: &[String]) -> String {
        self.notes.partial();
        self.notes.effect("unresolved");
        if text.contains(FETCHED) {
            self.event("fetch-and-run");
        }
        if args.iter().any(|arg| arg.contains(SECRET)) {
            self.event("send-secret");
        }
        self.hidden_command(args);
        UNKNOWN.to_string()
    }

    /// A file that the command itself wrote, run by its name.
    fn own_script(&mut self, written: &str, args: &[String]) -> Option<String> {
        let target = self.target(written);
        for text in self.older.get(&target.path).cloned().unwrap_or_default() {
            self.subshell(|walker| walker.run_text(&text));
        }
        let text = self.files.get(&target.path)?.clone();
        let span = self.span.clone();
        self.notes.path(&target, Access::Execute, span);
        let mut argv = scripts::interpreter(&text);
        argv.push(target.path);
        argv.extend(args.iter().cloned());
        Some(self.exec_texts(argv))
    }

    fn hosts(&mut self, args: &[String]) {
        for arg in args {
            let Some((_, rest)) = arg.split_once("://") else { continue };
            let authority = rest.split(['/', '?', '#', '"', '\'', ' ']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            let host = host.split(':').next().unwrap_or_default();
            if !host.is_empty() && !has_unknown(host) && !has_glob(host) {
                let lower = host.to_lowercase();
                if mixed_scripts(&lower) {
                    self.event("lookalike-host");
                }
                self.notes.host(&lower);
            }
        }
    }

    /// Text that looks like something else to a reader.
    fn deceptive(&mut self, argv: &[Field]) {
        if argv.iter().all(|field| field.text.is_ascii() && !field.text.contains('\r')) {
            return;
        }
        let name = argv.first().map(|field| field.text.as_str()).unwrap_or_default();
        let plain = |c: char| c.is_ascii() || text::is_unknown(c) || text::is_glob(c);
        let odd_name = !name.chars().all(plain)
            && name.chars().any(|c| c.is_ascii_alphanumeric() || invisible(c) || lookalike(c) || c.is_whitespace())
            || name.trim_end_matches('\r').contains('\r')
            || (name.ends_with('\r') && argv.len() > 1);
        let odd_argument = argv.iter().skip(1).any(|field| {
            let mut chars = field.text.chars();
            let first = chars.next().unwrap_or(' ');
            let next = chars.next();
            field.text.chars().any(invisible)
                || (dash(first) && next.is_some_and(|c| c.is_ascii_alphabetic()) && !field.text.contains(' '))
                || (field.text.chars().any(slash) && !field.text.contains(' '))
        });
        if odd_name || odd_argument {
            self.event("deceptive-text");
        }
    }

    /// Effects on paths that arguments name, judged under a program's name.
    pub(crate) fn acts(&mut self, effect: &'static str, paths: &[String], recursive: bool, access: Access) -> Vec<Act> {
        let mut acts = Vec::new();
        // A link's own name is what these act on.
        let itself = matches!(effect, "delete" | "move" | "link" | "inspect");
        for path in paths {
            let target = if itself { self.named_target(path) } else { self.target(path) };
            let span = self.span.clone();
            self.notes.path(&target, access, span);
            acts.push(Act::new(effect, target.kinds).recursive(recursive || self.recursing));
        }
        acts
    }

    /// The kinds of one operand.
    pub(crate) fn kinds_of(&self, path: &str) -> Kinds {
        self.target(path).kinds
    }
}

fn invisible(c: char) -> bool {
    matches!(c, '\u{200B}' | '\u{200C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
        | '\u{00AD}' | '\u{180E}' | '\u{3164}' | '\u{115F}' | '\u{1160}' | '\u{E0000}'..='\u{E007F}')
}

fn dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}')
}

fn slash(c: char) -> bool {
    matches!(c, '\u{FF0F}' | '\u{2044}' | '\u{2215}' | '\u{29F8}' | '\u{2571}')
}

/// Letters of other scripts that look like Latin ones.
fn lookalike(c: char) -> bool {
    matches!(c, '\u{0370}'..='\u{052F}' | '\u{FF00}'..='\u{FF5E}' | '\u{1D400}'..='\u{1D7FF}')
}

fn mixed_scripts(host: &str) -> bool {
    host.chars().any(|c| c.is_ascii_alphabetic()) && host.chars().any(|c| lookalike(c) || invisible(c))
}

/// A text as one word of a script again.
pub(crate) fn quote(text: &str) -> String {
    if !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@%+,~".contains(c) || has_unknown(&c.to_string()))
    {
        return text.to_owned();
    }
    if has_glob(text) || has_unknown(text) {
        return inert(text);
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Bytes of a call that a finding names.
const SUBJECT: usize = 1024;

/// A call in words, for what is configured about it.
pub(crate) fn subject(program: &str, args: &[String]) -> String {
    let mut out = program.to_owned();
    for arg in args {
        if out.len() > SUBJECT {
            break;
        }
        out.push(' ');
        out.push_str(&show(arg));
    }
    out
}

/// Arguments for people.
pub(crate) fn shown(program: &str, args: &[String]) -> String {
    let mut out = program.to_owned();
    for arg in args.iter().take(6) {
        out.push(' ');
        out.push_str(&show(arg));
    }
    if args.len() > 6 {
        out.push_str(" …");
    }
    out
}
