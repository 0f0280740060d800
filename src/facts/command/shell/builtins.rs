//! Builtins of the shell that change its state or run text.

use std::rc::Rc;

use super::attributes::Attributes;
use super::directories;
use super::env::{POSITIONAL, Value};
use super::flow::Way;
use super::names;
use super::read;
use super::walk::Walker;
use crate::facts::command::effects::programs;
use crate::facts::command::effects::target;
use crate::facts::command::effects::target::Kind;
use crate::facts::command::notes::Act;
use crate::facts::command::words::expand::names_joined;
use crate::facts::command::words::producers;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{UNKNOWN, has_glob, has_unknown, inert, is_known};
use crate::facts::command::wrappers::options::Options;
use crate::facts::path::Access;

/// Runs a builtin; `None` where the name is none, or one that is judged like a program.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    match name {
        ":" | "true" | "false" | "test" | "[" | "return" | "exit" | "logout" | "break" | "continue" | "let" => {
            control(walker, name, args);
            Some(String::new())
        }
        "wait" | "jobs" | "fg" | "bg" | "shift" | "times" | "umask" | "getopts" | "enable" | "bind" | "complete"
        | "compgen" | "compopt" | "disown" | "suspend" | "hash" | "caller" | "ulimit" => {
            if name == "shift" {
                shift(walker, args);
            }
            names::run(walker, name, args);
            Some(String::new())
        }
        "cd" | "pushd" | "popd" | "dirs" => {
            match name {
                "cd" => directories::change(walker, args),
                "pushd" => directories::push(walker, args),
                "popd" => directories::pop(walker, args),
                _ => return Some(directories::list(walker, args)),
            }
            Some(String::new())
        }
        "pwd" => Some(format!("{}\n", walker.env.cwd)),
        "set" => Some(set(walker, args)),
        "unset" => {
            unset(walker, args);
            Some(String::new())
        }
        "shopt" => {
            if args.iter().any(|arg| arg == "expand_aliases") {
                walker.env.expand_aliases = !args.iter().any(|arg| arg == "-u");
            }
            Some(String::new())
        }
        "alias" => {
            alias(walker, args);
            Some(String::new())
        }
        "unalias" => {
            let aliases = Rc::make_mut(&mut walker.env.aliases);
            aliases.retain(|name, _| !args.contains(name) && !args.iter().any(|arg| arg == "-a"));
            Some(String::new())
        }
        "eval" => {
            let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
            if args.iter().any(|arg| has_glob(arg)) {
                walker.notes.splits();
            }
            Some(walker.run_here(&args.join(" ")))
        }
        "source" | "." => Some(source(walker, args)),
        "trap" => {
            let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
            if let [text, _, ..] = args
                && !text.starts_with('-')
            {
                walker.set_trap(text, args.get(1..).unwrap_or_default());
            }
            if let [text, signals @ ..] = args
                && text == "-"
                && signals.iter().any(|signal| signal.eq_ignore_ascii_case("RETURN"))
            {
                walker.env.on_return = None;
            }
            Some(String::new())
        }
        "read" => {
            read::read(walker, args);
            Some(String::new())
        }
        "mapfile" | "readarray" => {
            read::mapfile(walker, args);
            Some(String::new())
        }
        "printf" if args.first().is_some_and(|arg| arg == "-v") => {
            let text = producers::printf(args.get(2..).unwrap_or_default());
            walker.give(args.get(1)?, Value::Text(names_joined(text)));
            Some(String::new())
        }
        "command" => command(walker, args),
        "builtin" => {
            walker.past_functions = true;
            Some(walker.exec_texts(args.to_vec()))
        }
        "exec" => {
            let options = Options::read(args, "a", &[]);
            let argv = options.operands_from_first(args);
            if argv.is_empty() {
                return Some(String::new());
            }
            let printed = walker.exec_texts(argv);
            walker.leave_shell();
            Some(printed)
        }
        "which" | "whence" if args.len() == 1 => Some(names::place_of(walker, args.first()?) + "\n"),
        "type" | "which" | "whereis" | "help" | "whatis" | "apropos" => Some(UNKNOWN.to_string() + "\n"),
        _ => None,
    }
}

/// Builtins that decide what runs next.
fn control(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    let count = || args.first().and_then(|arg| arg.parse::<usize>().ok()).unwrap_or(1);
    // The status that `return` and `exit` give.
    let status = |walker: &Walker<'_>| match args.first() {
        Some(arg) => arg.parse::<u64>().ok().map(|code| code % 256 == 0),
        None => walker.last,
    };
    match name {
        "false" => walker.status = Some(false),
        "test" | "[" => walker.status = walker.test(args),
        "return" => {
            walker.status = status(walker);
            walker.leave_function();
        }
        "exit" | "logout" => {
            walker.status = status(walker);
            walker.leave_shell();
        }
        "break" => walker.leave_loop(count(), false),
        "continue" => walker.leave_loop(count(), true),
        "let" => {
            for arg in args {
                walker.arithmetic_status(arg);
            }
        }
        _ => walker.status = Some(true),
    }
}

/// A count that is too high, or no number, shifts nothing.
fn shift(walker: &mut Walker<'_>, args: &[String]) {
    walker.note_read(POSITIONAL);
    let Some(items) = walker.env.positional.clone() else { return };
    let most = items.len().saturating_sub(1);
    let shifted = |count: usize| -> Vec<String> {
        items.first().into_iter().chain(items.iter().skip(count.saturating_add(1))).cloned().collect()
    };
    // An item that is unknown may be several.
    let open = items.iter().skip(1).any(|item| has_unknown(item));
    let count = args.first().map_or(Ok(1), |arg| arg.trim().parse::<usize>());
    match count {
        _ if args.first().is_some_and(|arg| has_unknown(arg)) => {
            walker.env.set_positional(shifted(1));
            for count in (0..=most).filter(|count| *count != 1) {
                let items = shifted(count).into_iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect();
                let mut env = walker.env.clone();
                walker.add_alternative(&mut env, POSITIONAL, Value::Array(items));
                walker.env = env;
            }
        }
        // What a glob matches beyond the first name stays.
        Ok(count) if items.iter().take(count.saturating_add(1)).skip(1).any(|item| has_glob(item)) => {
            let mut kept = shifted(count);
            for item in items.iter().take(count.saturating_add(1)).skip(1).filter(|item| has_glob(item)).rev() {
                kept.insert(1.min(kept.len()), item.clone());
            }
            walker.env.set_positional(kept);
            let items = shifted(count).into_iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect();
            let mut env = walker.env.clone();
            walker.add_alternative(&mut env, POSITIONAL, Value::Array(items));
            walker.env = env;
        }
        Ok(count) if count <= most || open => {
            walker.env.set_positional(shifted(count));
            walker.status = (!open).then_some(true);
        }
        _ => walker.status = Some(false),
    }
}

/// `unset`: variables, items of arrays, functions; a name that is no variable is a function.
fn unset(walker: &mut Walker<'_>, args: &[String]) {
    let has =
        |letter| args.iter().take_while(|arg| *arg != "--").any(|arg| arg.starts_with('-') && arg.contains(letter));
    let (functions, variables, references) = (has('f'), has('v'), has('n'));
    for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
        if arg == "HISTFILE" {
            walker.event("history-off");
        }
        let item = arg.split_once('[').map(|(_, index)| index.trim_end_matches(']').to_owned());
        let name = walker.name_operand(arg);
        if references {
            Rc::make_mut(&mut walker.env.references).remove(&name);
            continue;
        }
        let real = walker.referred(&name);
        let held = walker.env.get(&name).is_some_and(|value| *value != Value::Unset);
        if !functions && !walker.env.attributes_of(&real).readonly {
            match item.filter(|index| !matches!(index.as_str(), "@" | "*")) {
                Some(index) => walker.unset_item(&real, &index),
                None => {
                    walker.env.set(&real, Value::Unset);
                    walker.env.set_attributes(&real, Attributes::default());
                }
            }
        }
        if functions || !variables && !held {
            Rc::make_mut(&mut walker.env.functions).remove(&name);
        }
    }
}

fn set(walker: &mut Walker<'_>, args: &[String]) -> String {
    if args.is_empty() {
        // It prints every variable.
        return text::SECRET.to_string();
    }
    walker.set_exports(args);
    let mut rest = args;
    let mut tracing = false;
    while let Some((arg, tail)) = rest.split_first() {
        if arg == "--" {
            let items = std::iter::once("bash".to_owned()).chain(tail.iter().cloned()).collect();
            walker.env.set_positional(items);
            return String::new();
        }
        if !arg.starts_with('-') && !arg.starts_with('+') {
            let items = std::iter::once("bash".to_owned()).chain(rest.iter().cloned()).collect();
            walker.env.set_positional(items);
            break;
        }
        tracing |= arg.starts_with('-') && arg.contains('x') || arg == "xtrace";
        rest = if arg == "-o" || arg == "+o" { tail.get(1..).unwrap_or_default() } else { tail };
    }
    if tracing && let Some(Value::Text(prompt)) = walker.env.get("PS4").cloned() {
        walker.prompt(&prompt);
    }
    String::new()
}

fn alias(walker: &mut Walker<'_>, args: &[String]) {
    for arg in args {
        if let Some((name, text)) = arg.split_once('=') {
            Rc::make_mut(&mut walker.env.aliases).insert(name.to_owned(), inert(text));
        }
    }
}

fn source(walker: &mut Walker<'_>, args: &[String]) -> String {
    let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
    let Some(path) = args.first() else { return String::new() };
    let target = walker.target(path);
    let span = walker.span.clone();
    walker.notes.path(&target, Access::Read, span);
    for text in walker.older.get(&target.path).cloned().unwrap_or_default() {
        walker.subshell(|walker| walker.run_text(&text));
    }
    let run = |walker: &mut Walker<'_>, text: &str| match text {
        // What a program prints to be sourced (`source <(kubectl completion bash)`) is common and unknown.
        text if has_unknown(text) && !text.contains(text::FETCHED) => String::new(),
        text => {
            walker.returns.push(Way::default());
            // Without arguments it has the caller's.
            let outer = walker.env.positional.clone();
            if let [_, _, ..] = args {
                let head = outer.as_ref().and_then(|items| items.first().cloned()).unwrap_or_else(|| "bash".to_owned());
                let given = args.iter().skip(1).cloned();
                walker.env.set_positional(std::iter::once(head).chain(given).collect());
            }
            let printed = walker.run_here(text);
            if args.len() > 1 && !walker.dead {
                walker.env.positional = outer;
            }
            let mut way = walker.returns.pop().unwrap_or_default();
            walker.leave(&mut way);
            walker.arrive(way);
            walker.returned();
            printed
        }
    };
    if let Some(number) = names::descriptor(&target.path) {
        let found = if number == 0 { walker.run_input(run) } else { walker.run_substituted(&target, run) };
        if let Some(printed) = found {
            return printed;
        }
        let text = walker.content(&target);
        return run(walker, &text);
    }
    walker.with_file(&target, run).unwrap_or_default()
}

/// `command -v name` prints where the name is; anything else runs it past functions.
fn command(walker: &mut Walker<'_>, args: &[String]) -> Option<String> {
    let mut rest = args;
    while let Some((arg, tail)) = rest.split_first() {
        match arg.as_str() {
            "-v" | "-V" | "-pv" | "-pV" => {
                let name = tail.first()?;
                return Some(names::place_of(walker, name) + "\n");
            }
            "-p" | "--" => rest = tail,
            _ => break,
        }
    }
    walker.past_functions = true;
    Some(walker.exec_texts(rest.to_vec()))
}

impl Walker<'_> {
    /// Something was written where it runs by itself later.
    pub(crate) fn persisted(&mut self, target: &target::Target, text: &str) {
        if target.kinds.has(Kind::Startup)
            && is_known(text)
            && !text.trim().is_empty()
            && !target.path.contains("/.ssh/")
        {
            let text = text.to_owned();
            self.subshell(|walker| {
                walker.acts_on(&[Act::new("schedules", target.kinds)]);
                if target.path.contains("cron") {
                    programs::cron_lines(walker, &text);
                } else {
                    walker.run_text(&text);
                }
            });
        }
    }
}
