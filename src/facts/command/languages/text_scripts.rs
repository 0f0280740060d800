//! The small languages of awk, sed and m4, as far as they run commands and write files.

use std::collections::HashMap;

use super::inline::Language;
use super::inline_lex::{Token, tokens};
use crate::facts::command::effects::programs;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{UNKNOWN, inert};
use crate::facts::command::wrappers::options::Options;
use crate::facts::command::wrappers::shells;

/// How many lines of the input are followed.
const LINES: usize = 16;

/// The text of a file that an option names; `-` is the input.
fn text_of(walker: &mut Walker<'_>, path: &str) -> Option<String> {
    if path == "-" || path == "/dev/stdin" {
        return walker.env.stdin.as_deref().map(str::to_owned);
    }
    let target = walker.target(path);
    walker.with_file(&target, |_, text| text.to_owned())
}

/// sed(1): the `e` command and flag run text, `w` writes a file.
pub(crate) fn sed(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "efl", &["expression", "file", "line-length"]);
    let mut scripts = options.values('e');
    scripts.extend(options.long_values("expression"));
    for path in options.values('f').into_iter().chain(options.long_values("file")) {
        scripts.extend(text_of(walker, &path));
    }
    if scripts.is_empty() && options.values('f').is_empty() {
        scripts.extend(options.operands.first().cloned());
    }
    for script in scripts {
        sed_script(walker, &inert(&script));
    }
}

fn sed_script(walker: &mut Walker<'_>, script: &str) {
    let mut rest = script;
    while !rest.is_empty() {
        rest = after_address(rest.trim_start_matches(|c: char| c.is_whitespace() || ";{}".contains(c)));
        let Some(command) = rest.chars().next() else { return };
        let tail = rest.get(command.len_utf8()..).unwrap_or_default();
        let line = tail.split('\n').next().unwrap_or_default();
        let after_line = tail.get(line.len()..).unwrap_or_default();
        match command {
            's' => {
                let Some((parts, tail)) = divided(tail) else { return };
                let flags_end = tail.find([';', '\n', '}']).unwrap_or(tail.len());
                let (flags, tail) = tail.split_at_checked(flags_end).unwrap_or((tail, ""));
                substitution(walker, &parts, flags);
                rest = tail;
            }
            'y' => {
                let Some((_, tail)) = divided(tail) else { return };
                rest = tail;
            }
            'e' => {
                if line.trim().is_empty() {
                    // It runs the line at hand.
                    shells::stdin(walker);
                } else {
                    walker.subshell(|walker| walker.run_text(line));
                }
                rest = after_line;
            }
            'w' | 'W' => {
                let acts = programs::write_to(walker, line.trim(), "overwrite");
                walker.judge("sed", &[], &acts);
                rest = after_line;
            }
            'a' | 'i' | 'c' | 'r' | 'R' | '#' => rest = after_line,
            ':' | 'b' | 't' | 'T' => {
                rest = tail.get(tail.find([';', '\n', '}']).unwrap_or(tail.len())..).unwrap_or_default()
            }
            _ => rest = tail,
        }
    }
}

/// What follows the addresses of a command of sed.
fn after_address(text: &str) -> &str {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let regex = match c {
            '/' => Some(('/', 1)),
            '\\' => rest.chars().nth(1).map(|divider| (divider, 1 + divider.len_utf8())),
            _ => None,
        };
        if let Some((divider, skip)) = regex {
            let mut escaped = false;
            let body = rest.get(skip..).unwrap_or_default();
            let end = body.char_indices().find(|(_, c)| {
                let found = *c == divider && !escaped;
                escaped = *c == '\\' && !escaped;
                found
            });
            let Some((end, _)) = end else { return "" };
            rest = body.get(end + divider.len_utf8()..).unwrap_or_default().trim_start_matches(['I', 'M']);
        } else if c.is_ascii_digit() || "$,~+! ".contains(c) {
            rest = rest.get(1..).unwrap_or_default();
        } else {
            break;
        }
    }
    rest
}

/// The two parts of `s/a/b/` after the letter, and what follows.
fn divided(text: &str) -> Option<([String; 2], &str)> {
    let divider = text.chars().next()?;
    let mut parts = [String::new(), String::new()];
    let mut at = 0;
    let mut chars = text.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        let part = parts.get_mut(at)?;
        if c == '\\' {
            let (_, next) = chars.next()?;
            if next != divider {
                part.push('\\');
            }
            part.push(next);
        } else if c == divider {
            at += 1;
            if at == 2 {
                return Some((parts, text.get(i + c.len_utf8()..).unwrap_or_default()));
            }
        } else {
            part.push(c);
        }
    }
    None
}

fn substitution(walker: &mut Walker<'_>, parts: &[String; 2], flags: &str) {
    let [pattern, replacement] = parts;
    let (flags, file) = flags.split_once('w').map_or((flags, None), |(flags, file)| (flags, Some(file.trim())));
    if flags.contains('e') {
        let input = walker.env.stdin.clone();
        let mut texts = Vec::new();
        for line in input.iter().flat_map(|text| text.lines()).take(LINES) {
            let literal = !pattern.contains(['.', '*', '[', '^', '$', '\\', '(']);
            texts.push(if literal && line.len() < 4096 {
                line.replacen(pattern.as_str(), replacement, 1)
            } else {
                replacement.replace('&', line)
            });
        }
        if texts.is_empty() {
            texts.push(replacement.replace('&', &UNKNOWN.to_string()));
        }
        for text in texts {
            if text.len() > walker.text_limit() {
                walker.limited("expanded text");
                continue;
            }
            walker.expanded += text.len();
            walker.subshell(|walker| walker.run_text(&text));
        }
    }
    if let Some(path) = file {
        let acts = programs::write_to(walker, path, "overwrite");
        walker.judge("sed", &[], &acts);
    }
}

/// awk(1): `system("...")`, `"..." | getline`, `print | "..."`, `print > "..."`.
pub(crate) fn awk(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "Ffvei", &["field-separator", "file", "assign", "source", "include", "exec"]);
    let mut programs = options.values('e');
    programs.extend(options.long_values("source"));
    let mut files = options.values('f');
    files.extend(options.long_values("file"));
    let mut operands = options.operands.as_slice();
    if programs.is_empty() && files.is_empty() {
        programs.extend(operands.first().cloned());
        operands = operands.get(1..).unwrap_or_default();
    }
    for path in files {
        programs.extend(text_of(walker, &path));
    }
    let assigned = options.values('v').into_iter().chain(options.long_values("assign")).chain(operands.iter().cloned());
    let variables: HashMap<String, String> = assigned
        .filter_map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let separator = options.values('F').into_iter().next();
    for program in programs {
        let code = inert(&program);
        let (tokens, complete) = tokens(Language::Awk, &code);
        if !complete {
            walker.limited("inline code");
        }
        // Programs that look at their input are followed for each line.
        let lines: Vec<String> = match walker.env.stdin.as_deref() {
            Some(text) if code.contains(['$', '|']) || code.contains("system") => {
                text.lines().take(LINES).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let lines = if lines.is_empty() { vec![UNKNOWN.to_string()] } else { lines };
        for line in lines {
            let mut awk = Awk { variables: variables.clone(), line, separator: separator.clone() };
            awk.run(walker, &tokens);
        }
    }
}

struct Awk {
    variables: HashMap<String, String>,
    line: String,
    separator: Option<String>,
}

impl Awk {
    fn run(&mut self, walker: &mut Walker<'_>, tokens: &[Token]) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let is = |by: usize, c: char| tokens.get(at + by) == Some(&Token::Punctuation(c));
            match token {
                Token::Name(name) if is(1, '=') && !is(2, '=') => {
                    let (value, end) = self.concatenated(walker, tokens, at + 2);
                    if let Some(value) = value {
                        self.variables.insert(name.clone(), value);
                    }
                    // What stands there may be a command that is read from.
                    at = if end > at + 2 && tokens.get(end) != Some(&Token::Punctuation('|')) { end } else { at + 2 };
                }
                Token::Name(name) if name == "system" => {
                    let (text, end) = self.concatenated(walker, tokens, at + 1);
                    self.shell(walker, text);
                    at = end.max(at + 1);
                }
                Token::Name(name) if matches!(name.as_str(), "print" | "printf") => {
                    at = self.print(walker, tokens, at + 1)
                }
                _ => {
                    let (text, end) = self.concatenated(walker, tokens, at);
                    let piped = tokens.get(end) == Some(&Token::Punctuation('|'));
                    let coprocess = usize::from(tokens.get(end + 1) == Some(&Token::Punctuation('&')));
                    if piped && matches!(tokens.get(end + 1 + coprocess), Some(Token::Name(name)) if name == "getline")
                    {
                        self.shell(walker, text);
                    }
                    at = end.max(at + 1);
                }
            }
        }
    }

    fn shell(&self, walker: &mut Walker<'_>, text: Option<String>) {
        if let Some(text) = text {
            walker.subshell(|walker| {
                walker.env.stdin = None;
                walker.run_text(&text)
            });
        }
    }

    /// `print a, b | "command"`, `print > "file"`.
    fn print(&mut self, walker: &mut Walker<'_>, tokens: &[Token], start: usize) -> usize {
        let mut at = start;
        let mut printed = Vec::new();
        loop {
            let (text, end) = self.concatenated(walker, tokens, at);
            printed.extend(text);
            at = end;
            if tokens.get(at) != Some(&Token::Punctuation(',')) {
                break;
            }
            at += 1;
        }
        let printed = if printed.is_empty() { self.line.clone() } else { printed.join(" ") };
        match tokens.get(at) {
            Some(Token::Punctuation('|')) => {
                let from = at + 1 + usize::from(tokens.get(at + 1) == Some(&Token::Punctuation('&')));
                let (command, end) = self.concatenated(walker, tokens, from);
                if let Some(command) = command {
                    walker.subshell(|walker| {
                        walker.env.stdin = Some(printed.into());
                        walker.run_text(&command)
                    });
                }
                end.max(from)
            }
            Some(Token::Punctuation('>')) => {
                let append = tokens.get(at + 1) == Some(&Token::Punctuation('>'));
                let from = at + 1 + usize::from(append);
                let (path, end) = self.concatenated(walker, tokens, from);
                if let Some(path) = path {
                    let acts = programs::write_to(walker, &path, if append { "append" } else { "overwrite" });
                    walker.judge("awk", &[], &acts);
                    walker.store(&path, printed, append);
                }
                end.max(from)
            }
            _ => at.max(start),
        }
    }

    /// Values that stand beside each other are one text.
    fn concatenated(&self, walker: &mut Walker<'_>, tokens: &[Token], start: usize) -> (Option<String>, usize) {
        let mut out: Option<String> = None;
        let mut at = start;
        let mut open = 0_usize;
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Text(text) => out.get_or_insert_default().push_str(text),
                Token::Number(number) => out.get_or_insert_default().push_str(&number.to_string()),
                Token::Name(name)
                    if matches!(
                        name.as_str(),
                        "getline" | "print" | "printf" | "system" | "close" | "next" | "exit" | "in"
                    ) =>
                {
                    break;
                }
                Token::Name(name)
                    if tokens.get(at + 1) == Some(&Token::Punctuation('=')) && at > start && !name.starts_with('$') =>
                {
                    break;
                }
                Token::Name(name) => {
                    let value = self.value(name);
                    walker.expanded += value.len();
                    out.get_or_insert_default().push_str(&value);
                }
                Token::Punctuation('(') => open += 1,
                Token::Punctuation(')') if open > 0 => {
                    open -= 1;
                    if open == 0 && tokens.get(start) == Some(&Token::Punctuation('(')) {
                        at += 1;
                        break;
                    }
                }
                _ => break,
            }
            if out.as_ref().is_some_and(|text| text.len() > walker.text_limit()) {
                walker.limited("expanded text");
                return (Some(UNKNOWN.to_string()), at + 1);
            }
            at += 1;
        }
        (out, at)
    }

    fn value(&self, name: &str) -> String {
        if let Some(field) = name.strip_prefix('$') {
            let parts: Vec<&str> = match self.separator.as_deref() {
                Some(separator) if !separator.is_empty() && separator != " " => self.line.split(separator).collect(),
                _ => self.line.split_whitespace().collect(),
            };
            let found = match field {
                "0" => return self.line.clone(),
                "NF" => parts.last().copied(),
                _ => field.parse::<usize>().ok().and_then(|n| parts.get(n.checked_sub(1)?)).copied(),
            };
            return found.map_or_else(|| UNKNOWN.to_string(), str::to_owned);
        }
        self.variables.get(name).cloned().unwrap_or_else(|| UNKNOWN.to_string())
    }
}

/// m4(1): `esyscmd(...)` and `syscmd(...)`.
pub(crate) fn m4(walker: &mut Walker<'_>, args: &[String]) {
    let mut texts: Vec<String> = walker.env.stdin.as_deref().map(str::to_owned).into_iter().collect();
    for path in args.iter().filter(|arg| !arg.starts_with('-')) {
        texts.extend(text_of(walker, path));
    }
    for text in texts {
        for part in text.split("syscmd(").skip(1).take(64) {
            let command = part.trim_start_matches(['`', '[', ' ']);
            let command = command.split(['\'', ']', ')']).next().unwrap_or_default();
            walker.subshell(|walker| walker.run_text(command));
        }
    }
}
