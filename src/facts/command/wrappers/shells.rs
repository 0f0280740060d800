//! Shells: their scripts run through the same interpreter.

use crate::facts::command::shell::names;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{FETCHED, UNKNOWN, has_unknown};
use crate::facts::path::Access;

pub(crate) const NAMES: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ksh93",
    "mksh",
    "ash",
    "fish",
    "rbash",
    "csh",
    "tcsh",
    "oksh",
    "yash",
    "lksh",
    "pdksh",
    "zsh5",
    "hush",
    "posh",
    "sash",
    "elvish",
    "nu",
    "xonsh",
    "rc",
    "es",
    "osh",
    "ysh",
    "rzsh",
    "bash5",
    "busybox-sh",
];

/// What a shell was asked to run.
enum Script {
    /// `-c text`, then `$0` and the parameters.
    Text(String, Vec<String>),
    File(String, Vec<String>),
    /// Standard input, with parameters.
    Input(Vec<String>),
}

pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    if !NAMES.contains(&name) {
        return None;
    }
    walker.judge(name, args, &[]);
    let script = read_arguments(walker, args);
    let posix = !matches!(name, "bash" | "bash5" | "rbash" | "zsh" | "zsh5" | "rzsh");
    Some(walker.subshell(|walker| {
        (walker.env.posix, walker.env.expand_aliases) = (posix, posix);
        match script {
            Script::Text(text, parameters) => {
                set_parameters(walker, parameters);
                walker.run_text(&text)
            }
            Script::File(path, parameters) => {
                let mut items = vec![path.clone()];
                items.extend(parameters);
                set_parameters(walker, items);
                file(walker, &path)
            }
            Script::Input(parameters) => {
                let mut items = vec!["bash".to_owned()];
                items.extend(parameters);
                set_parameters(walker, items);
                stdin(walker)
            }
        }
    }))
}

fn set_parameters(walker: &mut Walker<'_>, items: Vec<String>) {
    walker.keep_exported();
    walker.import_functions();
    let items = if items.is_empty() { vec!["bash".to_owned()] } else { items };
    walker.env.set_positional(items);
}

fn read_arguments(walker: &mut Walker<'_>, args: &[String]) -> Script {
    let (mut i, mut command, mut input) = (0, false, false);
    while let Some(arg) = args.get(i) {
        match arg.as_str() {
            "--" | "-" => {
                i += 1;
                break;
            }
            "--rcfile" | "--init-file" => {
                if let Some(path) = args.get(i + 1) {
                    walker.subshell(|walker| file(walker, path));
                }
                i += 1;
            }
            "-o" | "+o" | "-O" | "+O" => i += 1,
            "--command" => command = true,
            long if long.starts_with("--") => {
                if let Some(text) = long.strip_prefix("--command=") {
                    return Script::Text(text.to_owned(), Vec::new());
                }
            }
            cluster if cluster.len() > 1 && cluster.starts_with(['-', '+']) => {
                command |= cluster.contains('c') && cluster.starts_with('-');
                input |= cluster.contains('s') && cluster.starts_with('-');
                // `-eo pipefail`: the last letter takes the next argument.
                if cluster.ends_with(['o', 'O']) {
                    i += 1;
                }
            }
            _ => break,
        }
        i += 1;
    }
    let rest = args.get(i..).unwrap_or_default();
    // `bash -c -- text`.
    let rest = if command { rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest) } else { rest };
    match rest.split_first() {
        Some((text, parameters)) if command => Script::Text(text.clone(), parameters.to_vec()),
        Some((path, parameters)) if !input => Script::File(path.clone(), parameters.to_vec()),
        _ => Script::Input(rest.to_vec()),
    }
}

/// A shell that reads its commands from standard input.
pub(crate) fn stdin(walker: &mut Walker<'_>) -> String {
    if let Some(printed) = walker.run_input(|walker, text| walker.run_text(text)) {
        return printed;
    }
    let Some(text) = walker.env.stdin.take() else { return String::new() };
    walker.run_text(&text)
}

fn file(walker: &mut Walker<'_>, path: &str) -> String {
    if names::descriptor(path) == Some(0) {
        return stdin(walker);
    }
    let target = walker.target(path);
    let span = walker.span.clone();
    walker.notes.path(&target, Access::Execute, span);
    for text in walker.older.get(&target.path).cloned().unwrap_or_default() {
        walker.subshell(|walker| walker.run_text(&text));
    }
    let run = |walker: &mut Walker<'_>, text: &str| {
        if text.contains(FETCHED) && has_unknown(text.trim_start().get(..4).unwrap_or(text)) {
            walker.event("fetch-and-run");
            return String::new();
        }
        walker.run_text(text)
    };
    if names::descriptor(path).is_some() {
        if let Some(printed) = walker.run_substituted(&target, run) {
            return printed;
        }
        let text = walker.content(&target);
        return run(walker, &text);
    }
    walker.with_file(&target, run).unwrap_or_else(|| UNKNOWN.to_string())
}
