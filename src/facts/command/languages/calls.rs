//! Calls in inline code that start processes or touch files, by their names in the languages' standard libraries.

use super::call_names::*;
use super::call_values::pure;
use super::inline::{self, Language, Value};
use crate::facts::command::effects::programs;
use crate::facts::command::effects::target::{Kind, Kinds};
use crate::facts::command::notes::Act;
use crate::facts::command::shell::env;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{FETCHED, SECRET, UNKNOWN, has_unknown, is_unknown};
use crate::facts::path::Access;

/// Whether a name is one of the calls, for languages that call without parentheses and for functions given to functions.
pub(crate) fn is_call(name: &str) -> bool {
    let last = last_of(name);
    [RUN, RUN_IN_MODULE, DELETE_ALL, DELETE, WRITE, READ, EVAL, MOVE, COPY].iter().any(|list| list.contains(&last))
        || matches!(
            last,
            "glob"
                | "chmod"
                | "open"
                | "pack"
                | "chown"
                | "print"
                | "puts"
                | "say"
                | "echo"
                | "kill"
                | "rmdir"
                | "join"
                | "send"
                | "require"
                | "chmod_R"
                | "chown_R"
        )
}

/// The last part of a path, without the marks of Ruby and Elixir.
fn last_of(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default().trim_end_matches(['!', '?'])
}

/// Names that stand for a known text.
pub(crate) fn constant(walker: &Walker<'_>, name: &str) -> Value {
    match name {
        "Dir.home" | "process.env.HOME" | "$HOME" | "Path.home" | "HOME" => Value::Text(walker.home()),
        "os.sep" | "path.sep" | "os.path.sep" | "File.SEPARATOR" => Value::Text("/".to_owned()),
        "True" | "true" | "TRUE" => Value::Text("true".to_owned()),
        "False" | "false" | "FALSE" => Value::Text("false".to_owned()),
        "sys.executable" | "process.execPath" => Value::Text("python3".to_owned()),
        "None" | "null" | "nil" | "undefined" => Value::Unknown,
        _ => match name.strip_prefix("process.env.").or_else(|| name.strip_prefix("Bun.env.")) {
            Some(key) => variable(walker, key),
            None => Value::Unknown,
        },
    }
}

fn variable(walker: &Walker<'_>, name: &str) -> Value {
    if name == "HOME" {
        return Value::Text(walker.home());
    }
    match walker.env.get(name) {
        Some(env::Value::Text(text)) => Value::Text(text.clone()),
        _ => Value::Unknown,
    }
}

/// What stands under a key of a thing: a member of a module, a variable of the environment.
pub(crate) fn member(walker: &Walker<'_>, value: &Value, key: &str) -> Value {
    let Value::Path(path) = value else { return Value::Unknown };
    if path == "Dir" {
        // `Dir["/*"]` of Ruby.
        return Value::Text(key.chars().map(text::glob_char).collect());
    }
    match last_of(path) {
        "environ" | "env" | "ENV" | "_ENV" | "_SERVER" | "ENVIRON" => variable(walker, key),
        // Tables of all that there is.
        "" | "globals" | "locals" | "modules" | "globalThis" | "window" | "global" | "_G" | "__builtins__"
        | "builtins" | "__builtin__" | "GLOBALS" | "sys.modules" => Value::Path(key.to_owned()),
        "__dict__" => Value::Path(format!("{}.{key}", path.trim_end_matches(".__dict__"))),
        _ if has_unknown(key) || key.is_empty() => Value::Unknown,
        _ => Value::Path(format!("{path}.{key}")),
    }
}

/// Evaluates a call and applies what it does.
pub(crate) fn call(
    walker: &mut Walker<'_>,
    language: Language,
    name: &str,
    receiver: Option<&Value>,
    args: &[Value],
) -> Value {
    let last = last_of(name);
    let first = args.first();
    if let Some(value) = indirect(walker, language, name, receiver, args) {
        return value;
    }
    if prints(name) {
        let texts = args.iter().filter(|arg| !matches!(arg, Value::Named(..))).map(Value::text);
        let text = texts.collect::<Vec<_>>().join(" ");
        walker.inline_output.push_str(&text);
        walker.inline_output.push('\n');
        return Value::Unknown;
    }
    if let Some(value) = pure(walker, name, last, receiver, args) {
        return value;
    }
    let builtin = name == "eval"
        || (language == Language::Python && matches!(name, "exec" | "builtins.exec" | "__builtins__.exec"));
    if (EVAL.contains(&last) && (builtin || name == "builtins.eval"))
        || (EVAL.contains(&last)
            && !matches!(last, "eval" | "exec" | "compile")
            && matches!(first, Some(Value::Text(_))))
    {
        evaluate(walker, language, args);
        return Value::Unknown;
    }
    if runs(language, name, last, receiver) && !args.is_empty() {
        return process(walker, name, last, args);
    }
    if let Some(value) = started(walker, last, receiver, args) {
        return value;
    }
    effects(walker, name, last, receiver, args)
}

fn prints(name: &str) -> bool {
    matches!(
        name,
        "print"
            | "puts"
            | "say"
            | "console.log"
            | "echo"
            | "println"
            | "printf"
            | "io.write"
            | "process.stdout.write"
            | "sys.stdout.write"
            | "IO.puts"
            | "print_string"
            | "putStrLn"
            | "cat"
            | "System.out.println"
            | "disp"
    )
}

/// Functions that are reached through others: `send`, `call_user_func`, `getattr(...)`, `.apply(...)`.
fn indirect(
    walker: &mut Walker<'_>,
    language: Language,
    name: &str,
    receiver: Option<&Value>,
    args: &[Value],
) -> Option<Value> {
    let last = last_of(name);
    let owner = name.strip_suffix(last)?.trim_end_matches('.');
    let rest = args.get(1..).unwrap_or_default();
    let text = |value: Option<&Value>| match value {
        Some(Value::Text(text) | Value::Path(text)) => text.clone(),
        _ => UNKNOWN.to_string(),
    };
    match last {
        "send" | "public_send" | "__send__" | "instance_exec" if language == Language::Ruby => {
            let method = text(args.first());
            let path = if owner.is_empty() { method } else { format!("{owner}.{method}") };
            Some(known_call(walker, language, &path, receiver, rest))
        }
        "const_get" | "method" | "instance_method" if language == Language::Ruby => {
            Some(Value::Path(text(args.first())))
        }
        "call_user_func" | "register_shutdown_function" => {
            Some(known_call(walker, language, &text(args.first()), None, rest))
        }
        "array_map" | "array_walk" | "array_filter" => {
            for item in rest {
                let items = match item {
                    Value::List(items) => items.as_slice(),
                    other => std::slice::from_ref(other),
                };
                for item in items.iter().take(16) {
                    known_call(walker, language, &text(args.first()), None, std::slice::from_ref(item));
                }
            }
            Some(Value::Unknown)
        }
        "call_user_func_array" | "apply" if owner.is_empty() => {
            let list = match args.get(1) {
                Some(Value::List(items)) => items.clone(),
                _ => rest.to_vec(),
            };
            Some(known_call(walker, language, &text(args.first()), None, &list))
        }
        "getattr" | "attrgetter" if args.len() > 1 => Some(member(walker, args.first()?, &text(args.get(1)))),
        "globals" | "locals" | "vars" if args.is_empty() => Some(Value::Path(last.to_owned())),
        "call" | "bind" if is_call(owner) && !owner.is_empty() && language == Language::Node => {
            Some(known_call(walker, language, owner, None, rest))
        }
        "apply" if is_call(owner) => match args.get(1) {
            Some(Value::List(items)) => Some(known_call(walker, language, owner, None, items)),
            _ => Some(known_call(walker, language, owner, None, rest)),
        },
        "call" if language == Language::Ruby && is_call(owner) => Some(known_call(walker, language, owner, None, args)),
        _ => None,
    }
}

/// A call by a name that was worked out; one that cannot be known may be any.
fn known_call(
    walker: &mut Walker<'_>,
    language: Language,
    name: &str,
    receiver: Option<&Value>,
    args: &[Value],
) -> Value {
    if has_unknown(name) {
        walker.notes.partial();
        walker.notes.effect("unresolved");
        return Value::Unknown;
    }
    walker.deeper(|walker| call(walker, language, name, receiver, args)).unwrap_or(Value::Unknown)
}

fn evaluate(walker: &mut Walker<'_>, language: Language, args: &[Value]) {
    // `Function("a", "code")`: the code is the last one.
    let code =
        args.iter().rev().find(|arg| matches!(arg, Value::Text(_))).map_or_else(|| UNKNOWN.to_string(), Value::text);
    if code.contains(FETCHED) {
        walker.event("fetch-and-run");
    } else if code.chars().all(is_unknown) {
        unresolved(walker);
    } else if code.len() > walker.text_limit() {
        walker.limited("inline code");
    } else {
        walker.expanded += code.len();
        walker.deeper(|walker| inline::run(walker, language, &code));
    }
}

/// What runs cannot be known.
fn unresolved(walker: &mut Walker<'_>) {
    walker.notes.partial();
    walker.notes.effect("unresolved");
    walker.event("run-unknown");
}

/// Whether a call starts a process.
fn runs(language: Language, name: &str, last: &str, receiver: Option<&Value>) -> bool {
    let strong = RUN.contains(&last);
    match receiver {
        // A method of a value may be called the same and be harmless (`pattern.exec(text)`).
        Some(_) => strong && last != "system",
        None if strong => true,
        None if RUN_IN_MODULE.contains(&last) => {
            let owner = name.strip_suffix(last).unwrap_or_default().trim_end_matches('.');
            if owner.is_empty() {
                return matches!(
                    last,
                    "exec" | "spawn" | "run" | "execute" | "shell" | "sh" | "command" | "Cmd" | "unix" | "dos"
                ) && !(language == Language::Python && last == "exec");
            }
            let known = |part: &str| MODULES.contains(&part) || part.eq_ignore_ascii_case("child_process");
            owner.split(['.', '/']).any(known)
        }
        None => false,
    }
}

/// Whether a function with this name surely runs what it is given.
fn surely_runs(name: &str, last: &str) -> bool {
    RUN.contains(&last)
        || name.split('.').any(|part| matches!(part, "subprocess" | "child_process" | "os" | "Kernel" | "Open3"))
}

/// Text that a shell runs, or a program with its arguments.
pub(crate) fn shell(walker: &mut Walker<'_>, value: &Value) -> Value {
    process(walker, "system", "system", std::slice::from_ref(value))
}

fn process(walker: &mut Walker<'_>, name: &str, last: &str, args: &[Value]) -> Value {
    let positional: Vec<&Value> = args.iter().filter(|arg| !matches!(arg, Value::Named(..))).collect();
    let named = |key: &str| named(args, key);
    let positional = if positional.is_empty() { named("args").into_iter().collect() } else { positional };
    // `spawn("x", {shell: true})`, options of the environment and the working directory.
    let directory = match named("cwd").or_else(|| named("chdir")) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let Some(mut argv) = arguments(name, last, &positional) else {
        return Value::Text(String::new());
    };
    // `new Deno.Command("rm", {args: ["-rf"]})`.
    if let (Some(Value::List(items)), Err(program)) = (named("args"), &argv)
        && !positional.is_empty()
        && !matches!(positional.first(), Some(Value::List(_)))
    {
        argv = Ok(std::iter::once(program.clone()).chain(items.iter().map(Value::text)).collect());
    }
    let known = match &argv {
        Ok(argv) => argv.first().is_some_and(|program| !program.chars().all(is_unknown)),
        Err(text) => !text.chars().all(is_unknown),
    };
    if !known {
        if surely_runs(name, last) {
            unresolved(walker);
        }
        return Value::Unknown;
    }
    let printed = walker.subshell(|walker| {
        if let Some(directory) = directory {
            walker.env.cwd = walker.target(&directory).path;
            walker.env.other_cwds.clear();
        }
        match argv {
            Ok(argv) => walker.exec_texts(argv),
            Err(text) => walker.run_text(text.trim_start_matches(['|', '-']).trim_end_matches('|')),
        }
    });
    // What is only put together here is started later, by a method of it.
    if matches!(last, "Command" | "Process" | "ProcessBuilder" | "new") { Value::Unknown } else { Value::Text(printed) }
}

/// A keyword argument, or a member of an object among the arguments.
fn named<'v>(args: &'v [Value], key: &str) -> Option<&'v Value> {
    let of = |value: &'v Value| match value {
        Value::Named(name, value) if name == key => Some(&**value),
        _ => None,
    };
    args.iter().find_map(|arg| match arg {
        Value::List(items) => items.iter().find_map(of),
        other => of(other),
    })
}

/// The program and arguments that a call names, or else a shell's text.
fn arguments(name: &str, last: &str, positional: &[&Value]) -> Option<Result<Vec<String>, String>> {
    let texts = |items: &[Value]| items.iter().map(Value::text).collect::<Vec<String>>();
    // `os.posix_spawn(path, argv)` and `execv(path, argv)` give the program's own name twice.
    let twice = matches!(
        last,
        "execv" | "execvp" | "execve" | "execvpe" | "spawnv" | "spawnvp" | "posix_spawn" | "posix_spawnp"
    );
    let positional = match positional {
        // `os.spawnv(os.P_WAIT, path, argv)`, `pty.spawn`.
        [_, rest @ ..] if matches!(last, "spawnv" | "spawnvp" | "spawnl" | "spawnlp" | "spawnve") => rest,
        // `Popen3.capture({environment}, "x")`.
        [Value::List(items), rest @ ..]
            if !rest.is_empty() && !items.is_empty() && items.iter().all(|item| matches!(item, Value::Named(..))) =>
        {
            rest
        }
        all => all,
    };
    Some(match positional {
        [] => return None,
        [Value::List(items)] if matches!(items.as_slice(), [Value::Text(only)] if only.contains(' ')) => {
            Err(items.first().map(Value::text).unwrap_or_default())
        }
        [Value::List(items), rest @ ..] => {
            // `[program, name]` of Ruby.
            let mut argv = texts(items);
            argv.extend(rest.iter().filter(|value| matches!(value, Value::Text(_))).map(|value| value.text()));
            Ok(argv)
        }
        // `spawn("rm", ["-rf", "/"])`, `System.cmd("rm", ["-rf"])`.
        [program, Value::List(items), ..] if items.iter().any(|item| !matches!(item, Value::Named(..))) => {
            let items = texts(items).into_iter().skip(usize::from(twice));
            Ok(std::iter::once(program.text()).chain(items).collect())
        }
        // `system2("rm", "-rf /")` of R joins them.
        [program, Value::Text(rest), ..] if matches!(last, "system2" | "Start") => {
            Err(format!("{} {rest}", program.text()))
        }
        // `system("rm", "-rf", "/")`, `os.execlp("rm", "rm", "-rf")`.
        [program, Value::Text(_), ..]
            if !matches!(last, "popen" | "popen2" | "exec_command") || name.contains("IO") =>
        {
            let skip = 1 + usize::from(matches!(last, "execl" | "execlp" | "execle" | "spawnl" | "spawnlp"));
            let rest = positional.iter().skip(skip).filter(|value| !matches!(value, Value::Path(_)));
            if matches!(last, "exec" | "getoutput" | "shell_exec" | "execute") && name != last {
                return Some(Err(program.text()));
            }
            Ok(std::iter::once(program.text()).chain(rest.map(|value| value.text())).collect())
        }
        [text, ..] => Err(text.text()),
    })
}

/// Programs that are put together first: `Command::new("rm").arg("/").status()`, `["rm", "/"].execute()`.
fn started(walker: &mut Walker<'_>, last: &str, receiver: Option<&Value>, args: &[Value]) -> Option<Value> {
    match (receiver?, last) {
        (Value::List(items), "arg" | "args") => {
            let mut items = items.clone();
            for arg in args {
                match arg {
                    Value::List(more) => items.extend(more.iter().cloned()),
                    other => items.push(other.clone()),
                }
            }
            Some(Value::List(items))
        }
        (
            value @ (Value::List(_) | Value::Text(_)),
            "execute" | "spawn" | "status" | "output" | "start" | "lazyLines" | "sh",
        ) if args.is_empty() => Some(shell(walker, value)),
        (
            value @ Value::List(_),
            "lineStream" | "inheritIO" | "redirectErrorStream" | "stdout" | "stdin" | "stderr",
        ) => Some(value.clone()),
        _ => None,
    }
}

fn effects(walker: &mut Walker<'_>, name: &str, last: &str, receiver: Option<&Value>, args: &[Value]) -> Value {
    // An object of options, such as `{ recursive: true, force: true }`, is no path either.
    let is_option = |arg: &Value| match arg {
        Value::List(items) => !items.is_empty() && items.iter().all(|item| matches!(item, Value::Named(..))),
        arg => matches!(arg, Value::Named(..)),
    };
    let positional: Vec<&Value> = args.iter().filter(|arg| !is_option(arg)).collect();
    // A collection has methods of these names too.
    if COMMON.contains(&last)
        && !matches!(receiver, None | Some(Value::Path(_)))
        && !(matches!(receiver, Some(Value::Text(_)))
            && positional.len() <= usize::from(matches!(last, "rename" | "move" | "copy" | "open" | "write")))
    {
        return Value::Unknown;
    }
    if let Some(value) = through_programs(walker, name, last, receiver, &positional) {
        return value;
    }
    // `removeItem(atPath: "/")`.
    let labelled = ["atPath", "at", "path", "file"].iter().find_map(|key| named(args, key));
    let positional = if positional.is_empty() { labelled.into_iter().collect() } else { positional };
    let path = match receiver {
        Some(value) if positional.is_empty() || matches!(last, "write_text" | "write_bytes") => value.text(),
        _ => positional.first().map(|value| value.text()).unwrap_or_default(),
    };
    let paths: Vec<String> = match positional.first() {
        Some(Value::List(items)) => items.iter().map(Value::text).collect(),
        Some(_) if last == "unlink" || last.starts_with("rm") => positional.iter().map(|value| value.text()).collect(),
        _ => vec![path.clone()],
    };
    if path.is_empty() {
        return Value::Unknown;
    }
    let recursive = asks_recursion(args);
    let acts = if DELETE_ALL.contains(&last) {
        walker.acts("delete", &paths, true, Access::Delete)
    } else if DELETE.contains(&last) {
        walker.acts("delete", &paths, recursive || (last == "removeSync" && !name.starts_with("Deno")), Access::Delete)
    } else if WRITE.contains(&last) || (last == "write" && name.contains("File")) {
        programs::write_to(walker, &path, "overwrite")
    } else if matches!(last, "open" | "fopen" | "openSync" | "File" | "OpenFile") && !path.contains("://") {
        return open(walker, &path, &positional);
    } else if READ.contains(&last) && !path.contains("://") {
        walker.acts("read", &paths, false, Access::Read)
    } else if FETCH.contains(&last) && path.contains("://") {
        walker.notes.effect("fetch");
        return Value::Text(FETCHED.to_string());
    } else {
        return Value::Unknown;
    };
    let secret = acts.iter().any(|act| act.effect == "read" && act.kinds.has(Kind::Credential));
    walker.judge("inline-code", &[], &acts);
    Value::Text(if secret { SECRET } else { UNKNOWN }.to_string())
}

fn asks_recursion(args: &[Value]) -> bool {
    let on =
        |key: &str, value: &Value| key.eq_ignore_ascii_case("recursive") && !value.text().eq_ignore_ascii_case("false");
    args.iter().any(|arg| match arg {
        Value::List(items) => items.iter().any(|item| matches!(item, Value::Named(key, value) if on(key, value))),
        Value::Named(key, value) => on(key, value),
        _ => false,
    })
}

/// Calls that a program of the same name stands for.
fn through_programs(
    walker: &mut Walker<'_>,
    name: &str,
    last: &str,
    receiver: Option<&Value>,
    positional: &[&Value],
) -> Option<Value> {
    let mut argv: Vec<String> = Vec::new();
    match last {
        "chmod" | "lchmod" | "chmodSync" | "chmod_R" | "fchmodat" => {
            // Languages differ in the order; the mode is the number.
            let mode = positional.iter().find_map(|value| match value {
                Value::Number(mode) => Some(format!("{mode:o}")),
                _ => None,
            });
            let paths = receiver
                .into_iter()
                .chain(positional.iter().copied())
                .filter(|value| !matches!(value, Value::Number(_) | Value::Path(_)));
            let mut paths: Vec<String> = paths.map(Value::text).collect();
            argv.push("chmod".to_owned());
            if last == "chmod_R" {
                argv.push("-R".to_owned());
            }
            let mode = match mode {
                Some(mode) => mode,
                None if paths.len() > 1 => paths.pop()?,
                None => return None,
            };
            argv.push(mode);
            argv.extend(paths);
        }
        "chown" | "lchown" | "chownSync" | "chown_R" => {
            argv.push("chown".to_owned());
            if last == "chown_R" {
                argv.push("-R".to_owned());
            }
            argv.push("x".to_owned());
            argv.extend(
                positional
                    .iter()
                    .filter(|value| matches!(value, Value::Text(_) | Value::Unknown))
                    .map(|value| value.text()),
            );
        }
        "kill" | "killpg" | "posix_kill" if name == last || name.starts_with("os.") || name.contains("rocess") => {
            argv.push("kill".to_owned());
            argv.push("-9".to_owned());
            argv.push("--".to_owned());
            // The signal is first in perl and ruby, the process elsewhere.
            let skip = usize::from(name == last || name == "Process.kill");
            let ids = positional.iter().skip(skip).take(if skip == 0 { 1 } else { 8 });
            argv.extend(ids.filter_map(|value| match value {
                Value::Number(id) => Some(id.to_string()),
                Value::Text(id) => Some(id.clone()),
                _ => None,
            }));
        }
        _ if MOVE.contains(&last) || COPY.contains(&last) => {
            let [.., to] = positional else { return None };
            let from = match receiver {
                Some(Value::Text(path)) => path.clone(),
                _ if positional.len() > 1 => positional.first()?.text(),
                _ => return None,
            };
            argv.push(if MOVE.contains(&last) { "mv" } else { "cp" }.to_owned());
            argv.push("--".to_owned());
            argv.push(from);
            argv.push(positional.get(1).unwrap_or(to).text());
        }
        _ => return None,
    }
    walker.subshell(|walker| walker.exec_texts(argv));
    Some(Value::Unknown)
}

/// `open(path, mode)`: perl puts the handle first and the mode second.
fn open(walker: &mut Walker<'_>, path: &str, args: &[&Value]) -> Value {
    let texts: Vec<String> = args.iter().map(|value| value.text()).collect();
    let (path, mode) = match texts.as_slice() {
        [_, mode, path, ..] if mode.starts_with(['>', '<', '+', '|', '-']) => (path.as_str(), mode.as_str()),
        [_, path] if path.trim_end().ends_with('|') && path.len() > 1 => (path.trim_end().trim_end_matches('|'), "-|"),
        [_, path, ..] if path.starts_with(['>', '<']) => {
            (path.trim_start_matches(['>', '<', ' ']), if path.starts_with('>') { ">" } else { "<" })
        }
        [_, path] if path.starts_with('|') && path.len() > 1 => (path.trim_start_matches('|'), "|-"),
        [path, ..] if path.starts_with('|') => (path.trim_start_matches('|'), "|-"),
        [path, mode, ..] => (path.as_str(), mode.as_str()),
        _ => (path, "r"),
    };
    if mode.starts_with(['|', '-']) {
        let text = path.to_owned();
        walker.subshell(|walker| walker.run_text(&text));
        return Value::Unknown;
    }
    let acts = if mode.len() < 24 && mode.contains(['w', 'a', '+', 'x', '>']) {
        programs::write_to(walker, path, if mode.contains('a') { "append" } else { "overwrite" })
    } else {
        walker.acts("read", &[path.to_owned()], false, Access::Read)
    };
    let secret = acts.iter().any(|act| act.effect == "read" && act.kinds.has(Kind::Credential));
    walker.judge("inline-code", &[], &acts);
    if secret { Value::Text(SECRET.to_string()) } else { Value::Unknown }
}

/// Shapes that no single call shows: shells bound to sockets, endless forks.
pub(crate) fn patterns(walker: &mut Walker<'_>, code: &str) {
    let has = |text: &str| code.contains(text);
    let socket = ["socket", "Socket", "fsockopen", "\"net\"", "'net'", "net.connect", "createConnection", "TCPSocket"]
        .iter()
        .any(|word| has(word));
    let shell =
        ["dup2", "pty.spawn", "/bin/sh", "/bin/bash", "cmd.exe", "exec(", "spawn("].iter().any(|word| has(word));
    if socket && shell && (has("connect") || has("fsockopen") || has("new") || has("open")) {
        walker.acts_on(&[Act::new("reverse-shell", Kinds::default())]);
    }
    if endless_forks(code) {
        walker.acts_on(&[Act::new("fork-bomb", Kinds::default())]);
    }
}

/// A process that starts others, or itself, in a loop that never ends and waits for none.
fn endless_forks(code: &str) -> bool {
    let starts_itself = ["__file__", "argv[0]", "sys.executable", "$0", "__filename", "execPath"]
        .iter()
        .any(|word| code.contains(word));
    if !code.contains("fork") && !starts_itself {
        return false;
    }
    let plain: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let ends = ["wait", "exit", "accept", "exec(", "sleep", "break", "last;", "recv"];
    if ends.iter().any(|word| plain.contains(word)) {
        return false;
    }
    let loops = [
        "while1",
        "while(1)",
        "whileTrue",
        "while(true)",
        "whiletrue",
        "loop{",
        "loopdo",
        "for(;;)",
        "for{",
        "untilfalse",
        "until(0)",
        "whilefork",
        "redo",
        "while(fork",
        "whilenot0",
        "while!0",
        "goto",
        "forkwhile",
        "fork()while",
        "iter(int,1)",
        "foreverdo",
        "whileos.fork",
    ];
    let forks = [
        "fork()",
        "fork;",
        "fork}",
        "fork{}",
        "forkdo",
        "forkwhile",
        "os.fork",
        "fork&",
        "fork,",
        "fork)",
        "fork\n",
        "Process.fork",
        "pcntl_fork",
    ];
    let starts = ["Popen(", "system(", "spawn(", "subprocess.", "exec"];
    let looped = loops.iter().any(|shape| plain.contains(shape));
    let forked = forks.iter().any(|shape| plain.contains(shape)) || plain.ends_with("fork");
    let doubled = plain.contains("fork();fork()") || plain.contains("fork()&&fork()") || plain.contains("fork&&fork");
    (looped && (forked || (starts_itself && starts.iter().any(|shape| plain.contains(shape))))) || (doubled && looped)
}
