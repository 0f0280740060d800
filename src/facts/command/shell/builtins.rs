//! Builtins of the shell that change its state or run text.

use std::rc::Rc;

use super::env::Value;
use super::flow::{Moved, Way};
use super::names;
use super::walk::Walker;
use crate::facts::command::effects::programs;
use crate::facts::command::effects::target;
use crate::facts::command::effects::target::Kind;
use crate::facts::command::notes::Act;
use crate::facts::command::words::producers;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{UNKNOWN, has_unknown, inert, is_known, taint};
use crate::facts::command::wrappers::options::Options;
use crate::facts::path::Access;

/// Longer paths cannot be entered (`PATH_MAX` in limits.h).
const PATH_MAX: usize = 4096;

/// Runs a builtin; `None` where the name is none, or one that is judged like a program.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    match name {
        ":" | "true" | "false" | "test" | "[" | "return" | "exit" | "logout" | "break" | "continue" | "let" => {
            control(walker, name, args);
            Some(String::new())
        }
        "wait" | "jobs" | "fg" | "bg" | "shift" | "times" | "umask" | "getopts" | "enable" | "bind" | "complete"
        | "compgen" | "compopt" | "disown" | "suspend" | "dirs" | "hash" | "caller" | "ulimit" => {
            if name == "shift" {
                shift(walker, args);
            }
            names::run(walker, name, args);
            Some(String::new())
        }
        "cd" | "pushd" => {
            change_directory(walker, args);
            Some(String::new())
        }
        "popd" => {
            walker.env.cwd = walker.env.old_cwd.take().unwrap_or_else(|| UNKNOWN.to_string());
            Some(String::new())
        }
        "pwd" => Some(format!("{}\n", walker.env.cwd)),
        "set" => Some(set(walker, args)),
        "unset" => {
            for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
                if arg == "HISTFILE" {
                    walker.event("history-off");
                }
                let name = walker.name_operand(arg);
                walker.env.set(&name, Value::Unset);
                Rc::make_mut(&mut walker.env.functions).remove(&name);
            }
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
        "unalias" => Some(String::new()),
        "eval" => {
            let args = args.strip_prefix(&["--".to_owned()]).unwrap_or(args);
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
            Some(String::new())
        }
        "read" => {
            read(walker, args);
            Some(String::new())
        }
        "mapfile" | "readarray" => {
            mapfile(walker, args);
            Some(String::new())
        }
        "printf" if args.first().is_some_and(|arg| arg == "-v") => {
            let text = producers::printf(args.get(2..).unwrap_or_default());
            walker.give(args.get(1)?, Value::Text(text));
            Some(String::new())
        }
        "command" => command(walker, args),
        "builtin" => Some(walker.exec_texts(args.to_vec())),
        "exec" => {
            let options = Options::read(args, "a", &[]);
            let argv = options.operands_from_first(args);
            if argv.is_empty() {
                return Some(String::new());
            }
            Some(walker.exec_texts(argv))
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

fn shift(walker: &mut Walker<'_>, args: &[String]) {
    let count = args.first().and_then(|arg| arg.parse::<usize>().ok()).unwrap_or(1);
    walker.note_read("@");
    if let Some(items) = &walker.env.positional {
        let head = items.first().cloned().unwrap_or_default();
        let items = std::iter::once(head).chain(items.iter().skip(count.saturating_add(1)).cloned()).collect();
        walker.env.set_positional(items);
    }
}

fn change_directory(walker: &mut Walker<'_>, args: &[String]) {
    let operand = args.iter().find(|arg| !arg.starts_with('-') || *arg == "-");
    let destination = match operand.map(String::as_str) {
        None => walker.home(),
        Some("-") => match walker.env.get("OLDPWD") {
            Some(Value::Text(text)) => text.clone(),
            _ => walker.env.old_cwd.clone().unwrap_or_else(|| UNKNOWN.to_string()),
        },
        Some(path) => path.to_owned(),
    };
    let others = std::mem::take(&mut walker.env.other_cwds);
    let (target, sure) = enter(walker, &destination);
    let old = std::mem::replace(&mut walker.env.cwd, target);
    if !destination.starts_with('/') {
        for other in &others {
            let here = std::mem::replace(&mut walker.env.cwd, other.clone());
            let (reached, _) = enter(walker, &destination);
            walker.env.cwd = here;
            walker.env.may_be_in(reached);
        }
    }
    if let Some(Value::Text(places)) = walker.env.get("CDPATH").cloned()
        && !destination.starts_with(['/', '.'])
    {
        for place in places.split(':').filter(|place| !place.is_empty() && *place != ".").take(8) {
            let (reached, _) = enter(walker, &format!("{place}/{destination}"));
            walker.env.may_be_in(reached);
        }
    }
    if !sure {
        let reached = walker.env.other_cwds.clone();
        walker.moved = Some(Moved { cwd: old.clone(), others: others.clone(), reached });
        walker.env.may_be_in(old.clone());
        for other in others {
            walker.env.may_be_in(other);
        }
    }
    walker.status = sure.then_some(true);
    walker.env.old_cwd = Some(old.clone());
    walker.env.set_text("OLDPWD", old);
}

/// Where `cd` leads to, and whether it can be relied on to get there.
fn enter(walker: &Walker<'_>, destination: &str) -> (String, bool) {
    let target = walker.target(destination);
    if target.path.is_empty() || target.path.len() > PATH_MAX {
        return (UNKNOWN.to_string(), false);
    }
    // Places that are always there.
    let sure =
        target.kinds.fatal() || target.kinds.has(Kind::Workspace) || target.path == "/tmp" || destination == "..";
    (target.path, sure)
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
            let printed = walker.run_here(text);
            let mut way = walker.returns.pop().unwrap_or_default();
            walker.leave(&mut way);
            walker.arrive(way);
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

fn read(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "adinNptu", &[]);
    let descriptor = options.values('u').first().and_then(|number| number.parse::<u32>().ok()).filter(|fd| *fd != 0);
    let input: Option<Rc<str>> = match descriptor {
        Some(number) => walker.env.descriptors.get(&number).map(|text| text.as_str().into()),
        None => walker.env.stdin.clone(),
    };
    walker.status = input.as_deref().filter(|text| !has_unknown(text)).map(|text| text.contains('\n'));
    let line = match input {
        Some(text) => {
            let (line, rest) = text.split_once('\n').unwrap_or((&text, ""));
            // Where a line is unknown, more of its kind may follow.
            let more = if rest.is_empty() { taint(line) } else { rest.to_owned() };
            match descriptor {
                Some(number) => {
                    Rc::make_mut(&mut walker.env.descriptors).insert(number, more);
                }
                None => walker.env.stdin = Some(more.into()),
            }
            line.to_owned()
        }
        None => UNKNOWN.to_string(),
    };
    if let Some(name) = options.values('a').first() {
        let items = line.split_whitespace().enumerate().map(|(i, word)| (i.to_string(), word.to_owned())).collect();
        walker.give(name, Value::Array(items));
        return;
    }
    let names = if options.operands.is_empty() { vec!["REPLY".to_owned()] } else { options.operands };
    let separators = match walker.env.get("IFS") {
        Some(Value::Text(text)) => text.clone(),
        _ => " \t\n".to_owned(),
    };
    let mut rest = line.trim();
    for (i, name) in names.iter().enumerate() {
        let value = if i + 1 == names.len() {
            std::mem::take(&mut rest)
        } else {
            let (head, tail) = rest.split_once(|c| separators.contains(c)).unwrap_or((rest, ""));
            rest = tail.trim_start();
            head
        };
        // Whatever cannot be known of the line cannot be known of its words.
        let value = if value.is_empty() && !is_known(&line) { UNKNOWN.to_string() } else { value.to_owned() };
        walker.give(name, Value::Text(value));
    }
}

fn mapfile(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "dnOsuCc", &[]);
    for text in options.values('C') {
        // It is given the index and the line.
        walker.run_text(&format!("{text} {} {UNKNOWN}", text::TOKEN));
    }
    let name = options.operands.first().map_or("MAPFILE", String::as_str);
    let value = match walker.env.stdin.clone() {
        Some(text) if is_known(&text) => {
            Value::Array(text.lines().enumerate().map(|(i, line)| (i.to_string(), line.to_owned())).collect())
        }
        _ => Value::Text(UNKNOWN.to_string()),
    };
    walker.give(name, value);
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
    let functions = std::mem::take(&mut walker.env.functions);
    let printed = walker.exec_texts(rest.to_vec());
    walker.env.functions = functions;
    Some(printed)
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
