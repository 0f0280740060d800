//! Words to fields: every expansion of bash, on abstract text.

use std::borrow::Cow;

use super::braces;
use super::operators::PATTERN_WORK;
use super::text::{
    CLOSE, MAYBE, OPEN, TOKEN, UNKNOWN, glob_char, has_glob, has_unknown, inert, is_known, matches_within,
};
use crate::facts::command::grammar::syntax::{Parameter, Part, Span, Word};
use crate::facts::command::shell::env::Value;
use crate::facts::command::shell::walk::Walker;

/// One argument after all expansions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub text: String,
    pub span: Span,
}

/// Fields under construction.
struct Fields {
    done: Vec<Field>,
    current: String,
    /// Something (perhaps an empty quote) makes the current field exist.
    started: bool,
    span: Span,
    /// Whether unquoted expansions are split and globs are alive.
    split: bool,
    separators: String,
    /// What `"$*"` is joined with.
    joint: String,
    /// In the word of `${name-word}`: what is not quoted is split.
    inside: bool,
    /// Blanks ended the last field: a separator that is none belongs to the same end.
    after_blanks: bool,
}

impl Fields {
    fn push(&mut self, text: &str) {
        self.started = true;
        self.current.push_str(text);
    }

    fn push_split(&mut self, text: &str) {
        if !self.split {
            self.push(text);
            return;
        }
        for c in text.chars() {
            if !self.separators.contains(c) {
                self.started = true;
                self.current.push(glob_char(c));
            } else if c.is_ascii_whitespace() {
                self.after_blanks |= self.started;
                self.end();
            } else if self.started || self.after_blanks {
                self.end();
                self.after_blanks = false;
            } else {
                // Nothing between two separators, unless they are blanks, is an empty field.
                self.done.push(Field { text: String::new(), span: self.span.clone() });
            }
            self.after_blanks &= !self.started;
        }
    }

    fn end(&mut self) {
        if self.started {
            self.started = false;
            let text = finish(std::mem::take(&mut self.current));
            self.done.push(Field { text, span: self.span.clone() });
        }
    }
}

/// Settles what only a whole field can tell: brackets that are not closed, parameters that are most likely empty.
fn finish(mut text: String) -> String {
    if text.contains(OPEN) || text.contains(CLOSE) {
        let closed = text.find(OPEN).is_some_and(|open| text.rfind(CLOSE).is_some_and(|close| close > open));
        if !closed {
            text = text.replace(OPEN, "[").replace(CLOSE, "]");
        }
    }
    if text.contains(MAYBE) {
        let rest = text.replace(MAYBE, "");
        text = if rest.is_empty() { UNKNOWN.to_string() } else { rest };
    }
    text
}

/// What a parameter holds.
pub(crate) enum Held {
    Text(String),
    /// `$@` and `${a[@]}`; joined into one where `star` and quoted.
    List {
        items: Vec<String>,
        star: bool,
    },
    Unset,
    Unknown,
}

impl Walker<'_> {
    /// All the fields of a command's words.
    pub(crate) fn expand(&mut self, words: &[Word]) -> Vec<Field> {
        let mut fields = Vec::with_capacity(words.len());
        for word in words {
            self.expand_word(word, &mut fields);
            if fields.len() > self.limits.words {
                self.limited("words");
                fields.truncate(self.limits.words);
                break;
            }
            if self.exhausted() {
                break;
            }
        }
        self.spend(fields.len() * EXPANDED_FIELD);
        fields
    }

    /// Whether a pattern matches; perhaps where that is too much work.
    pub(crate) fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let all = PATTERN_WORK.saturating_sub(self.pattern_work);
        let mut left = all;
        let matched = matches_within(pattern, text, &mut left);
        self.pattern_work += all - left;
        matched.unwrap_or_else(|| {
            self.limited("work of matching patterns");
            true
        })
    }

    fn expand_word(&mut self, word: &Word, out: &mut Vec<Field>) {
        if let [Part::Literal(text)] = word.parts.as_slice()
            && !text.contains(['~', '{', '}', '*', '?', '[', ']', MAYBE])
        {
            out.push(Field { text: text.clone(), span: word.span.clone() });
            return;
        }
        if braces::are_open(&word.parts) {
            out.push(Field { text: UNKNOWN.to_string(), span: word.span.clone() });
            return;
        }
        let mut fields = self.fields(word.span.clone(), true);
        match braces::expand(&word.parts, self.limits.words) {
            None => self.parts(&word.parts, false, true, &mut fields),
            Some(found) => {
                self.spend(found.work);
                if !found.complete {
                    self.limited("brace expansion");
                }
                for parts in found.words {
                    if self.exhausted() {
                        break;
                    }
                    self.parts(&parts, false, true, &mut fields);
                    fields.end();
                }
            }
        }
        fields.end();
        out.append(&mut fields.done);
    }

    fn fields(&self, span: Span, split: bool) -> Fields {
        let separators = match self.env.get("IFS") {
            Some(Value::Text(text)) => text.clone(),
            _ => " \t\n".to_owned(),
        };
        Fields {
            done: Vec::new(),
            current: String::new(),
            started: false,
            span,
            split,
            joint: separators.chars().next().map(String::from).unwrap_or_default(),
            separators,
            inside: false,
            after_blanks: false,
        }
    }

    /// A word as one text: redirect targets, here-strings, `case` subjects.
    pub(crate) fn text(&mut self, word: &Word) -> String {
        match word.parts.as_slice() {
            [Part::Literal(text)] if !text.contains(['~', MAYBE]) => text.clone(),
            _ => inert(&self.text_of_names(word)),
        }
    }

    /// The same for an assignment: names of files that a substitution printed are still any.
    pub(crate) fn text_of_names(&mut self, word: &Word) -> String {
        if let [Part::Literal(text)] = word.parts.as_slice()
            && !text.contains(['~', MAYBE])
        {
            return text.clone();
        }
        let mut fields = self.fields(word.span.clone(), false);
        self.parts(&word.parts, false, true, &mut fields);
        let text =
            fields.done.into_iter().map(|field| field.text).chain([fields.current]).collect::<Vec<_>>().join(" ");
        self.bounded(finish(text))
    }

    fn patterns(&mut self, word: &Word) -> Vec<String> {
        let mut fields = self.fields(word.span.clone(), true);
        fields.separators.clear();
        self.parts(&word.parts, false, true, &mut fields);
        let last = Some(fields.current).filter(|_| fields.started || fields.done.is_empty());
        fields.done.into_iter().map(|field| field.text).chain(last).collect()
    }

    /// A word as a pattern: its unquoted globs are alive. What bash makes of several words depends on where they stand.
    pub(crate) fn pattern(&mut self, word: &Word) -> String {
        match self.patterns(word).as_mut_slice() {
            [] => String::new(),
            [pattern] => finish(std::mem::take(pattern)),
            _ => UNKNOWN.to_string(),
        }
    }

    /// The same of all its words.
    pub(crate) fn joined_pattern(&mut self, word: &Word) -> String {
        finish(self.patterns(word).join(" "))
    }

    /// Cuts a text that grew beyond its limit; what is cut off is unknown, and said.
    pub(crate) fn bounded(&mut self, mut text: String) -> String {
        self.expanded += text.len();
        let limit = self.text_limit();
        if text.len() > limit {
            self.limited("expanded text");
            let mut end = limit;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push(UNKNOWN);
        }
        text
    }

    /// How long one text may become. Once the command has spent its budget, only short texts are followed.
    pub(crate) fn text_limit(&self) -> usize {
        if self.expanded > self.limits.text_in_all { self.limits.text.min(1024) } else { self.limits.text }
    }

    fn parts(&mut self, parts: &[Part], quoted: bool, head: bool, out: &mut Fields) {
        for (i, part) in parts.iter().enumerate() {
            if out.current.len() > self.text_limit() {
                self.limited("expanded text");
                out.current.push(UNKNOWN);
                return;
            }
            match part {
                Part::Literal(text) => {
                    let rest = match split_at_tilde(text) {
                        _ if !head || i > 0 => text,
                        Some((name, value)) if out.split => {
                            out.push(name);
                            self.tilde(value, parts.len() == 1, out)
                        }
                        _ => self.tilde(text, parts.len() == 1, out),
                    };
                    if quoted {
                        out.push(rest);
                        continue;
                    }
                    if out.inside {
                        out.push_split(rest);
                        continue;
                    }
                    for c in rest.chars() {
                        out.started = true;
                        out.current.push(if out.split { glob_char(c) } else { c });
                    }
                }
                Part::Quoted(text) => out.push(text),
                Part::Double(inner) => {
                    let outer = std::mem::replace(&mut out.inside, false);
                    // `"$@"` of nothing is no field at all.
                    if !matches!(inner.as_slice(), [Part::Parameter(p)] if is_list(p)) {
                        out.started = true;
                    }
                    self.parts(inner, true, false, out);
                    out.inside = outer;
                }
                Part::Parameter(parameter) => self.parameter(parameter, quoted, out),
                Part::Substitution(list) => {
                    let text = self.substitution(list);
                    if quoted {
                        out.push(&names_joined(text));
                    } else {
                        self.splits(&text);
                        out.push_split(&text);
                    }
                }
                Part::Arithmetic(word) => {
                    let text = self.arithmetic(word);
                    out.push(&text);
                }
                Part::Process { list, reads } => {
                    let path = self.process_substitution(list, *reads);
                    out.push(&path);
                }
                Part::Array(words) => {
                    let fields = self.expand(words);
                    for field in fields {
                        out.push(&field.text);
                        out.end();
                    }
                }
            }
        }
    }

    /// Expands a tilde prefix into `out` and gives what follows it.
    fn tilde<'t>(&mut self, text: &'t str, whole: bool, out: &mut Fields) -> &'t str {
        let Some(rest) = text.strip_prefix('~') else { return text };
        let (user, tail) = rest.find('/').map_or((rest, ""), |i| rest.split_at_checked(i).unwrap_or((rest, "")));
        if tail.is_empty() && !whole {
            return text;
        }
        let home = match user {
            "" => self.home(),
            "+" => self.chosen_cwd(),
            // Where no `cd` worked it is text.
            "-" if !self.env.other_cwds.is_empty() => UNKNOWN.to_string(),
            "-" => self.env.old_cwd.clone().unwrap_or_else(|| UNKNOWN.to_string()),
            _ if user.trim_start_matches(['+', '-']).parse::<usize>().is_ok() => match self.env.stack.is_empty() {
                true if user.trim_start_matches(['+', '-']) == "0" => self.env.cwd.clone(),
                true => return text,
                false => UNKNOWN.to_string(),
            },
            "root" => "/root".to_owned(),
            _ if has_unknown(user) => UNKNOWN.to_string(),
            _ if user.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && user.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) =>
            {
                format!("/home/{user}")
            }
            _ => return text,
        };
        out.push(&home);
        tail
    }

    /// The working directory. Where it may be another one, the command at hand runs again for each.
    fn chosen_cwd(&mut self) -> String {
        if self.env.other_cwds.is_empty() {
            return self.env.cwd.clone();
        }
        let key = format!(" {}", self.env.cwd);
        if self.forced > 0
            && let Some(Value::Text(text)) = self.env.variables.get(&key)
        {
            return text.clone();
        }
        self.add_choice(key, self.env.other_cwds.clone());
        self.env.cwd.clone()
    }

    pub(crate) fn home(&self) -> String {
        self.home_text().into_owned()
    }

    pub(crate) fn home_text(&self) -> Cow<'_, str> {
        match self.env.get("HOME") {
            Some(Value::Text(text)) => text.into(),
            _ => self.here.home.to_string_lossy(),
        }
    }

    // Parameters.

    fn parameter(&mut self, parameter: &Parameter, quoted: bool, out: &mut Fields) {
        // Looked at before the operator too: what it makes of a long text is work as well.
        let held = self.held(parameter);
        let held = self.within_limit(held);
        let Some(held) = self.substituted(parameter, held, quoted, out) else { return };
        let held = self.operate(parameter, held);
        let held = self.within_limit(held);
        match held {
            Held::Unset => {
                if quoted && !is_list(parameter) {
                    out.push("");
                }
            }
            Held::Unknown => out.push(&UNKNOWN.to_string()),
            Held::Text(text) if quoted => out.push(&text),
            Held::Text(text) => {
                self.splits(&text);
                out.push_split(&text);
            }
            Held::List { items, star: true } if quoted => {
                let joined = items.join(&out.joint);
                out.push(&joined);
            }
            Held::List { items, .. } => {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.end();
                    }
                    if quoted {
                        out.push(item);
                    } else if item.is_empty() && !out.separators.contains(|c: char| c.is_ascii_whitespace()) {
                        // It stays or not, by what else separates.
                        out.push(&UNKNOWN.to_string());
                    } else {
                        self.splits(item);
                        out.push_split(item);
                    }
                }
            }
        }
    }

    /// Names of files that nothing quotes: those with blanks in them become several words.
    fn splits(&mut self, text: &str) {
        if has_glob(text) {
            self.notes.splits();
        }
    }

    /// `${name-word}` and `${name+word}`: the word stands in the place of the parameter, with its quotes; `None` where it
    /// does.
    fn substituted(&mut self, parameter: &Parameter, held: Held, quoted: bool, out: &mut Fields) -> Option<Held> {
        let operator = parameter.operator.trim_start_matches(':');
        let Some(word) = parameter.argument.as_ref().filter(|_| matches!(operator, "-" | "+") && !parameter.length)
        else {
            return Some(held);
        };
        let mut absent = self.is_absent(parameter, &held);
        if operator == "+" && absent.is_none() {
            absent = Some(self.chosen_absence(word));
        }
        if absent == Some(operator == "+") {
            return Some(if operator == "+" { Held::Unset } else { held });
        }
        let lists = word.parts.iter().any(|part| matches!(part, Part::Parameter(_) | Part::Double(_)));
        if quoted && !lists {
            let text = self.text(word);
            out.push(&text);
            return None;
        }
        let outer = std::mem::replace(&mut out.inside, !quoted);
        self.parts(&word.parts, quoted, !quoted, out);
        out.inside = outer;
        None
    }

    /// Whether a variable of which nobody knows is taken for absent: the command runs again with the other answer.
    fn chosen_absence(&mut self, word: &Word) -> bool {
        let key = format!(" {word:p}");
        if self.forced > 0 && self.env.variables.contains_key(&key) {
            return true;
        }
        self.add_choice(key, vec![String::new()]);
        false
    }

    pub(super) fn is_absent(&self, parameter: &Parameter, held: &Held) -> Option<bool> {
        let colon = parameter.operator.starts_with(':');
        match held {
            Held::Unset => Some(true),
            Held::Unknown => None,
            Held::Text(text) if text.contains(MAYBE) => None,
            Held::Text(text) => Some(colon && text.is_empty()),
            Held::List { items, .. } if colon => Some(items.iter().all(String::is_empty) && items.len() < 2),
            Held::List { items, .. } => Some(items.is_empty()),
        }
    }

    fn within_limit(&mut self, held: Held) -> Held {
        let size = match &held {
            Held::Text(text) => text.len(),
            Held::List { items, .. } => items.iter().map(|item| item.len() + 16).sum(),
            Held::Unset | Held::Unknown => 0,
        };
        self.expanded += size;
        if matches!(held, Held::Text(_)) && size > self.text_limit() {
            self.limited("expanded text");
            return Held::Unknown;
        }
        held
    }

    fn held(&mut self, parameter: &Parameter) -> Held {
        if parameter.indirect {
            return self.indirect(parameter);
        }
        let index = parameter.index.as_ref().map(|word| self.text(word));
        let Some(text) = index else { return self.variable(&parameter.name, None) };
        match self.variable(&parameter.name, Some(&text)) {
            Held::Unset | Held::Unknown if !parameter.name.is_empty() => {
                let index = self.index_of(&parameter.name, &text);
                self.variable(&parameter.name, Some(&index))
            }
            held => held,
        }
    }

    /// `${!name}` is the variable that `name` names; `${!name[@]}` are its keys.
    fn indirect(&mut self, parameter: &Parameter) -> Held {
        if is_all(parameter) {
            return match self.env.get(&parameter.name) {
                Some(Value::Array(items)) => {
                    Held::List { items: items.iter().map(|(key, _)| key.clone()).collect(), star: false }
                }
                _ => Held::Unknown,
            };
        }
        if parameter.name == "#" && self.env.posix {
            // `$!` without what `#` cuts.
            return Held::Unknown;
        }
        match self.variable(&parameter.name, None) {
            Held::Text(name) if is_known(&name) && !name.is_empty() => self.named(&name),
            _ => Held::Unknown,
        }
    }

    /// The variable of a name that is known as text, whose subscript is code.
    fn named(&mut self, name: &str) -> Held {
        match name.split_once('[') {
            Some((_, index)) => {
                let index = index.trim_end_matches(']').to_owned();
                let name = self.name_operand(name);
                let index = if matches!(index.as_str(), "@" | "*") { index } else { self.index_of(&name, &index) };
                self.variable(&name, Some(&index))
            }
            None => self.variable(name, None),
        }
    }

    pub(crate) fn variable(&mut self, name: &str, index: Option<&str>) -> Held {
        self.note_read(name);
        if let Some(other) = self.env.references.get(name).filter(|other| other.contains('[')).cloned() {
            return self.named(&other);
        }
        let positional = self.env.positional.clone();
        match name {
            "@" | "*" => {
                return match positional {
                    Some(items) => Held::List { items: items.iter().skip(1).cloned().collect(), star: name == "*" },
                    None => Held::Text(MAYBE.to_string()),
                };
            }
            "#" => {
                // A glob may be several.
                let count = positional
                    .filter(|items| !items.iter().skip(1).any(|item| has_glob(item)))
                    .map(|items| items.len().saturating_sub(1).to_string());
                return Held::Text(count.unwrap_or_else(|| TOKEN.to_string()));
            }
            "?" | "$" | "!" | "-" => return Held::Text(TOKEN.to_string()),
            _ => {}
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return match (positional, name.parse::<usize>()) {
                (Some(items), Ok(n)) if items.iter().take(n).skip(1).any(|item| has_glob(item)) => Held::Unknown,
                (Some(items), Ok(n)) => items.get(n).map_or(Held::Unset, |item| Held::Text(item.clone())),
                (None, Ok(0)) => Held::Text("bash".to_owned()),
                _ => Held::Text(MAYBE.to_string()),
            };
        }
        match (self.env.get(name), index) {
            // No `cd` worked, perhaps.
            _ if name == "OLDPWD" && !self.env.other_cwds.is_empty() => Held::Unknown,
            (Some(Value::Unset), _) => Held::Unset,
            (Some(Value::Array(items)), Some("@" | "*")) => {
                Held::List { items: items.iter().map(|(_, value)| value.clone()).collect(), star: index == Some("*") }
            }
            (Some(Value::Array(items)), index) => item(items, index.unwrap_or("0")),
            (Some(Value::Text(text)), None | Some("0" | "@" | "*")) => Held::Text(text.clone()),
            (Some(Value::Text(_)), Some(_)) => Held::Unset,
            (None, _) if name == "PWD" => Held::Text(self.chosen_cwd()),
            (None, _) => self.inherited(name),
        }
    }

    /// Variables that a session has without setting them.
    fn inherited(&self, name: &str) -> Held {
        let text = match name {
            "HOME" => self.home(),
            "OLDPWD" => match &self.env.old_cwd {
                Some(cwd) => cwd.clone(),
                None => return Held::Unknown,
            },
            "USER" | "LOGNAME" => match self.here.home.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => return Held::Unknown,
            },
            "SHELL" | "BASH" => "/bin/bash".to_owned(),
            "IFS" => " \t\n".to_owned(),
            "PATH" => "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            "PPID" => super::text::KEEPER.to_string(),
            "UID" | "EUID" | "RANDOM" | "SRANDOM" | "SECONDS" | "LINENO" | "BASHPID" | "HOSTNAME" | "EPOCHSECONDS"
            | "HOSTTYPE" | "OSTYPE" | "MACHTYPE" | "BASH_VERSION" | "COLUMNS" | "LINES" => TOKEN.to_string(),
            _ => return Held::Unknown,
        };
        Held::Text(text)
    }

    // Arithmetic.

    /// Runs the commands inside an arithmetic expression; the value where it is simple.
    pub(crate) fn arithmetic(&mut self, word: &Word) -> String {
        let text = self.text(word);
        let value = self.arithmetic_text(&text);
        // By zero, perhaps.
        let divides = value.chars().eq([TOKEN]) && text.contains(['/', '%']);
        self.broken |= is_known(&text) && (divides || value.chars().eq([UNKNOWN]));
        value
    }
}

/// An item of an array; unknown where its index, or that of any item, is.
fn item(items: &[(String, String)], index: &str) -> Held {
    let numeric = |text: &str| text.parse::<i64>().ok();
    let index = match numeric(index) {
        Some(back) if back < 0 => {
            let last = items.iter().filter_map(|(key, _)| numeric(key)).max();
            last.map_or_else(String::new, |last| (last + 1).saturating_add(back).to_string())
        }
        _ => index.to_owned(),
    };
    match items.iter().rfind(|(key, _)| *key == index) {
        Some((_, value)) => Held::Text(value.clone()),
        None if !is_known(&index) || items.iter().any(|(key, _)| !is_known(key)) => Held::Unknown,
        None if numeric(&index).is_none() && !index.is_empty() => Held::Unknown,
        None => Held::Unset,
    }
}

/// `NAME=` and what follows, where that starts with a tilde: arguments that look like assignments have their tilde
/// expanded too.
fn split_at_tilde(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if named && value.starts_with('~') { text.split_at_checked(name.len() + 1) } else { None }
}

/// Names of files that were joined to one text: which, nobody knows.
pub(crate) fn names_joined(text: String) -> String {
    if !has_glob(&text) {
        return text;
    }
    let known = |word: &str| if has_glob(word) { UNKNOWN.to_string() } else { word.to_owned() };
    text.split(' ').map(known).collect::<Vec<_>>().join(" ")
}

/// `$@`, `${a[@]}`: in double quotes a word for each item, and none for none.
fn is_list(parameter: &Parameter) -> bool {
    let index = parameter.index.as_ref().and_then(Word::literal);
    parameter.name == "@" || index == Some("@")
}

fn is_all(parameter: &Parameter) -> bool {
    parameter.index.as_ref().and_then(Word::literal).is_some_and(|index| index == "@" || index == "*")
}

/// The cost of a field.
const EXPANDED_FIELD: usize = 100;
