//! Lisps (Emacs, Guile, Racket, Common Lisp, Clojure): the calls that run programs or delete files.

use crate::facts::command::effects::programs;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{UNKNOWN, escapes, inert};
use crate::facts::path::Access;

/// The most forms that are looked at.
const FORMS: usize = 10_000;

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Symbol(String),
    List(Vec<Value>),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Symbol(_) | Value::List(_) => UNKNOWN.to_string(),
        }
    }
}

/// Runs code as far as it runs programs.
pub(crate) fn run(walker: &mut Walker<'_>, code: &str) {
    let code = inert(code);
    let mut rest = code.as_str();
    let mut left = FORMS;
    while !rest.trim_start().is_empty() && left > 0 {
        match walker.deeper(|walker| form(walker, rest, &mut left)) {
            Some((_, tail)) if tail.len() < rest.len() => rest = tail,
            _ => break,
        }
    }
    if left == 0 {
        walker.limited("inline code");
    }
}

/// One form, evaluated, and what follows it.
fn form<'c>(walker: &mut Walker<'_>, text: &'c str, left: &mut usize) -> (Value, &'c str) {
    *left = left.saturating_sub(1);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '`' | ',' | '#' | '@'));
    let Some(c) = text.chars().next() else { return (Value::Symbol(String::new()), "") };
    match c {
        ';' => {
            let tail = text.split_once('\n').map_or("", |(_, tail)| tail);
            (Value::Symbol(String::new()), tail)
        }
        '"' => {
            let (body, tail) = string(text);
            (Value::Text(escapes(body, true)), tail)
        }
        '(' | '[' | '{' => {
            let mut items = Vec::new();
            let mut rest = text.get(1..).unwrap_or_default();
            loop {
                rest = rest.trim_start();
                match rest.chars().next() {
                    None => break,
                    Some(')' | ']' | '}') => {
                        rest = rest.get(1..).unwrap_or_default();
                        break;
                    }
                    Some(_) if *left == 0 => {
                        rest = "";
                        break;
                    }
                    Some(_) => {
                        let inner = rest;
                        let Some((value, tail)) = walker.deeper(|walker| form(walker, inner, left)) else {
                            return (Value::Symbol(String::new()), "");
                        };
                        items.push(value);
                        rest = tail;
                    }
                }
            }
            (call(walker, items), rest)
        }
        ')' | ']' | '}' => (Value::Symbol(String::new()), text.get(1..).unwrap_or_default()),
        _ => {
            let end = text.find(|c: char| c.is_whitespace() || "()[]{}\";".contains(c)).unwrap_or(text.len());
            let (name, tail) = text.split_at_checked(end).unwrap_or((text, ""));
            (Value::Symbol(name.to_owned()), tail)
        }
    }
}

fn string(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (text.get(1..i).unwrap_or_default(), text.get(i + 1..).unwrap_or_default()),
            _ => {}
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}

/// What a form does; its value where that is a text.
fn call(walker: &mut Walker<'_>, items: Vec<Value>) -> Value {
    let Some(Value::Symbol(name)) = items.first() else { return Value::List(items) };
    let rest = items.get(1..).unwrap_or_default();
    let texts = || -> Vec<String> {
        rest.iter()
            .flat_map(|value| match value {
                Value::List(items) => {
                    items.iter().filter(|item| matches!(item, Value::Text(_))).map(Value::text).collect()
                }
                Value::Text(text) => vec![text.clone()],
                Value::Symbol(_) => Vec::new(),
            })
            .collect()
    };
    let plain = name.rsplit(['/', ':']).next().unwrap_or_default();
    match plain {
        "shell-command"
        | "shell-command-to-string"
        | "async-shell-command"
        | "call-process-shell-command"
        | "system"
        | "start-process-shell-command"
        | "process-lines-shell"
        | "eshell-command"
        | "shell-command-on-region"
        | "run-shell-command"
        | "compile"
        | "open-input-pipe"
        | "open-pipe" => {
            // A name of the process or a region may come first.
            let text = rest.iter().rfind(|value| matches!(value, Value::Text(_))).map(Value::text).unwrap_or_default();
            let printed = walker.subshell(|walker| walker.run_text(&text));
            Value::Text(printed)
        }
        "call-process"
        | "start-process"
        | "process-lines"
        | "make-process"
        | "process-file"
        | "start-file-process"
        | "system*"
        | "run-program"
        | "sh"
        | "shell"
        | "process"
        | "execlp"
        | "execl"
        | "primitive-fork-exec"
        | "invoke" => {
            let mut argv = texts();
            if matches!(plain, "start-process" | "start-file-process") && argv.len() > 2 {
                // The name of the process and its buffer.
                argv.drain(..2);
            } else if matches!(plain, "execlp" | "execl") && !argv.is_empty() {
                argv.remove(0);
            }
            let printed = match argv.as_slice() {
                [] => String::new(),
                [only] if only.contains(' ') => walker.subshell(|walker| walker.run_text(only)),
                _ => walker.subshell(|walker| walker.exec_texts(argv)),
            };
            Value::Text(printed)
        }
        "delete-directory"
        | "delete-file"
        | "delete-files"
        | "delete-directory-tree"
        | "delete-dir"
        | "delete-tree"
        | "rmdir" => {
            let recursive = rest.len() > 1 || plain.ends_with("tree") || plain.ends_with("files");
            let paths: Vec<String> = rest.first().map(Value::text).into_iter().collect();
            let acts = walker.acts("delete", &paths, recursive, Access::Delete);
            walker.judge("inline-code", &[], &acts);
            Value::Symbol(String::new())
        }
        "write-region"
        | "append-to-file"
        | "spit"
        | "write-file"
        | "call-with-output-file"
        | "with-output-to-file"
        | "with-temp-file" => {
            let path = if matches!(plain, "write-region" | "append-to-file") { rest.get(2) } else { rest.first() };
            if let Some(Value::Text(path)) = path {
                let acts = programs::write_to(walker, path, "overwrite");
                walker.judge("inline-code", &[], &acts);
            }
            Value::Symbol(String::new())
        }
        "concat" | "string-append" | "str" => {
            let text: String = rest.iter().map(Value::text).collect();
            walker.expanded += text.len();
            if text.len() > walker.text_limit() { Value::Symbol(String::new()) } else { Value::Text(text) }
        }
        "expand-file-name" | "file" | "getenv" | "identity" => {
            rest.first().cloned().unwrap_or(Value::Symbol(String::new()))
        }
        "list" => Value::List(rest.to_vec()),
        _ => Value::List(items),
    }
}
