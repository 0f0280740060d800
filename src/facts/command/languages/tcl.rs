//! Tcl and expect: the commands that run programs, type into a shell, or delete files.

use std::collections::HashMap;

use crate::facts::command::effects::programs;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{UNKNOWN, inert};

/// The most commands of one script that are looked at.
const COMMANDS: usize = 2_000;

/// Runs a script as far as it runs programs.
pub(crate) fn run(walker: &mut Walker<'_>, code: &str) {
    let mut left = COMMANDS;
    let mut variables = HashMap::new();
    script(walker, &inert(code), &mut variables, &mut left);
    if left == 0 {
        walker.limited("inline code");
    }
}

type Variables = HashMap<String, String>;

fn script(walker: &mut Walker<'_>, code: &str, variables: &mut Variables, left: &mut usize) -> String {
    let mut result = String::new();
    let mut rest = code;
    while !rest.is_empty() && *left > 0 {
        *left -= 1;
        let (words, tail) = command(rest);
        rest = tail;
        let words: Vec<(String, bool)> = words;
        let values: Vec<String> = words
            .iter()
            .map(|(word, braced)| if *braced { word.clone() } else { substituted(walker, word, variables, left) })
            .collect();
        result = walker.deeper(|walker| evaluate(walker, &values, variables, left)).unwrap_or_default();
    }
    result
}

fn evaluate(walker: &mut Walker<'_>, words: &[String], variables: &mut Variables, left: &mut usize) -> String {
    let Some((name, rest)) = words.split_first() else { return String::new() };
    let first = rest.first().map(String::as_str).unwrap_or_default();
    match name.as_str() {
        "set" | "lappend" | "append" => {
            if let [name, value, ..] = rest {
                variables.insert(name.clone(), value.clone());
                return value.clone();
            }
            variables.get(first).cloned().unwrap_or_else(|| UNKNOWN.to_string())
        }
        // `exec rm -rf /`, `spawn -noecho bash`: options come first. A pipe is the shell's.
        "exec" | "spawn" | "exp_spawn" => {
            let argv: Vec<String> = rest.iter().skip_while(|word| word.starts_with('-')).cloned().collect();
            if argv.iter().any(|word| matches!(word.as_str(), "|" | "<" | ">" | "<<" | ">>" | "|&")) {
                return walker.subshell(|walker| walker.run_text(&argv.join(" ")));
            }
            if argv.is_empty() { String::new() } else { walker.subshell(|walker| walker.exec_texts(argv)) }
        }
        "system" => walker.subshell(|walker| walker.run_text(&rest.join(" "))),
        // What is typed into what was spawned.
        "send" | "exp_send" => {
            let text = rest.last().map(|text| text.replace('\r', "\n")).unwrap_or_default();
            walker.subshell(|walker| walker.run_text(&text))
        }
        "open" => match first.trim_start().strip_prefix('|') {
            Some(text) => walker.subshell(|walker| walker.run_text(text)),
            None => {
                let mode = rest.get(1).map(String::as_str).unwrap_or_default();
                let acts = if mode.contains(['w', 'a', '+']) {
                    programs::write_to(walker, first, "overwrite")
                } else {
                    walker.acts("read", &[first.to_owned()], false, crate::facts::path::Access::Read)
                };
                walker.judge("inline-code", &[], &acts);
                String::new()
            }
        },
        "file" => {
            let operands: Vec<String> = rest.iter().skip(1).filter(|word| !word.starts_with('-')).cloned().collect();
            let program: &[&str] = match first {
                "delete" => &["rm", "-r"],
                "rename" => &["mv"],
                "copy" => &["cp", "-r"],
                _ => return UNKNOWN.to_string(),
            };
            let argv = program.iter().map(|word| (*word).to_owned()).chain(operands).collect();
            walker.subshell(|walker| walker.exec_texts(argv))
        }
        "eval" | "uplevel" | "subst" | "after" | "catch" | "if" | "while" | "foreach" | "for" | "proc" | "expect"
        | "interact" | "namespace" | "try" | "time" | "exp_continue" => {
            bodies(walker, name, rest, variables, left);
            UNKNOWN.to_string()
        }
        "concat" | "list" | "join" => rest.join(" "),
        "format" | "string" => UNKNOWN.to_string(),
        _ => UNKNOWN.to_string(),
    }
}

/// Words that are scripts themselves.
fn bodies(walker: &mut Walker<'_>, name: &str, rest: &[String], variables: &mut Variables, left: &mut usize) {
    if name == "foreach"
        && let [variable, list, body] = rest
    {
        for item in list.split_whitespace().take(16) {
            variables.insert(variable.clone(), item.to_owned());
            script(walker, body, variables, left);
        }
        return;
    }
    if matches!(name, "eval" | "uplevel") {
        script(walker, &rest.join(" "), variables, left);
        return;
    }
    for word in rest {
        // A body has words of its own.
        if word.contains(char::is_whitespace) {
            script(walker, word, variables, left);
        }
    }
}

/// The words of the first command, with whether they stood in braces, and what follows it.
fn command(text: &str) -> (Vec<(String, bool)>, &str) {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', ';', '\n', '\r']);
    if rest.starts_with('#') {
        return (words, rest.split_once('\n').map_or("", |(_, tail)| tail));
    }
    while let Some(c) = rest.chars().next() {
        match c {
            '\n' | ';' => return (words, rest.get(1..).unwrap_or_default()),
            _ if c.is_whitespace() => rest = rest.trim_start_matches([' ', '\t', '\r']),
            '{' => {
                let (body, tail) = enclosed(rest, '{', '}');
                words.push((body.to_owned(), true));
                rest = tail;
            }
            '"' => {
                let (body, tail) = quoted(rest);
                words.push((body.to_owned(), false));
                rest = tail;
            }
            _ => {
                let (word, tail) = bare(rest);
                words.push((word.to_owned(), false));
                rest = tail;
            }
        }
    }
    (words, "")
}

/// What stands between brackets, and what follows.
fn enclosed(text: &str, open: char, close: char) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return (text.get(1..i).unwrap_or_default(), text.get(i + 1..).unwrap_or_default());
            }
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}

fn quoted(text: &str) -> (&str, &str) {
    let mut escaped = false;
    let mut depth = 0_usize;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '"' if depth == 0 => return (text.get(1..i).unwrap_or_default(), text.get(i + 1..).unwrap_or_default()),
            _ => {}
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}

fn bare(text: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ' ' | '\t' | '\n' | ';' if depth == 0 => return text.split_at_checked(i).unwrap_or((text, "")),
            _ => {}
        }
    }
    (text, "")
}

/// A word with its variables, escapes and commands in brackets worked out.
fn substituted(walker: &mut Walker<'_>, word: &str, variables: &mut Variables, left: &mut usize) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        if out.len() > walker.text_limit() {
            walker.limited("expanded text");
            return UNKNOWN.to_string();
        }
        let tail = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '[' => {
                let (body, tail) = enclosed(rest, '[', ']');
                let printed = if *left == 0 {
                    UNKNOWN.to_string()
                } else {
                    walker.deeper(|walker| script(walker, body, variables, left)).unwrap_or_default()
                };
                out.push_str(printed.trim_end_matches('\n'));
                rest = tail;
            }
            '$' => {
                let braced = tail.strip_prefix('{').and_then(|tail| tail.split_once('}'));
                let (name, tail) = braced.unwrap_or_else(|| {
                    let len =
                        tail.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':')).count();
                    tail.split_at_checked(len).unwrap_or((tail, ""))
                });
                match variables.get(name) {
                    Some(value) => {
                        walker.expanded += value.len();
                        out.push_str(value);
                    }
                    None => out.push(UNKNOWN),
                }
                rest = tail;
            }
            '\\' => {
                let len = tail.chars().next().map_or(0, char::len_utf8);
                let pair = rest.get(..1 + len).unwrap_or_default();
                out.push_str(&text::escapes(pair, true).replace('\\', ""));
                rest = tail.get(len..).unwrap_or_default();
            }
            _ => {
                out.push(c);
                rest = tail;
            }
        }
    }
    out
}
