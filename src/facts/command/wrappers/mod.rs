//! Programs that run the command in their arguments, as `wrapper_table` describes them, and those that need more than a
//! table: env, su, xargs, parallel, bwrap.

pub(super) mod find;
pub(super) mod hidden;
pub(super) mod launchers;
pub(super) mod multiplexers;
pub(super) mod options;
pub(super) mod remote;
pub(super) mod shells;
pub(super) mod wrapper_table;

use std::rc::Rc;

use self::options::{Options, command_after, shell_words};
use self::wrapper_table::{Runs, Wrapper};
use crate::facts::command::shell::env::Value;
use crate::facts::command::shell::exec;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{UNKNOWN, is_known};
use crate::facts::command::words::variables;

/// A wrapper whose arguments no table describes.
type Special = fn(&mut Walker<'_>, &str, &[String]) -> String;

fn special(name: &str) -> Option<Special> {
    Some(match name {
        "env" | "genv" => env,
        "su" | "runuser" => su,
        "xargs" | "gxargs" => xargs,
        "parallel" | "sem" | "env_parallel" => parallel,
        "capsh" => capsh,
        "bwrap" => bwrap,
        "start-stop-daemon" => start_stop_daemon,
        "tmux" | "tmate" | "byobu" | "psmux" => self::multiplexers::tmux,
        "screen" => self::multiplexers::screen,
        _ if is_loader(name) => loader,
        _ => return None,
    })
}

/// The dynamic linker runs the program that it is given.
fn is_loader(name: &str) -> bool {
    name == "ld.so" || ((name.starts_with("ld-linux") || name.starts_with("ld-musl")) && name.contains(".so"))
}

/// Wrappers that are in no table.
const OTHERS: &[&str] =
    &["env", "su", "runuser", "xargs", "parallel", "ssh", "docker", "podman", "chroot", "tmux", "screen"];

/// The names of all wrappers.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    wrapper_table::names().chain(OTHERS.iter().copied())
}

pub(crate) fn has(name: &str) -> bool {
    wrapper_table::has(name) || OTHERS.contains(&name)
}

/// Runs what a wrapper runs; `None` where the program is none.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Option<String> {
    if remote::runs(name) {
        return remote::run(walker, name, args);
    }
    if let Some(special) = special(name) {
        walker.judge(name, args, &[]);
        return Some(special(walker, name, args));
    }
    let (wrapper, rest) = Wrapper::of(name, args)?;
    walker.judge(name, args, &[]);
    // Without a command it prints the variables of the agent that it started.
    if name == "ssh-agent" && args.iter().all(|arg| arg.starts_with('-')) {
        return Some(String::new());
    }
    Some(unwrap(walker, wrapper, name, args, rest))
}

fn unwrap(walker: &mut Walker<'_>, wrapper: &Wrapper, name: &str, args: &[String], rest: &[String]) -> String {
    let (assignments, argv) = match wrapper.runs {
        Runs::After(words) => (Vec::new(), after(rest, words)),
        Runs::Nothing | Runs::Each => (Vec::new(), &[] as &[String]),
        Runs::Arguments | Runs::Shell => {
            let rest = match rest.split_first() {
                Some((first, tail)) if name == "setarch" && !first.starts_with('-') => tail,
                _ => rest,
            };
            // `ip -all netns exec` takes no name.
            let all = name == "ip" && args.iter().any(|arg| matches!(arg.as_str(), "-all" | "-a" | "--all"));
            let operands = if all { 0 } else { wrapper.operands };
            command_after(rest, wrapper.short, wrapper.long, operands, wrapper.assignments)
        }
    };
    // Its own options end where the command starts.
    let own = args.get(..args.len().saturating_sub(argv.len())).unwrap_or_default();
    let options = Options::read(own, wrapper.short, wrapper.long);
    let mut argv = argv.to_vec();
    let directory = Wrapper::values(&options, wrapper.directory).into_iter().next_back();
    let shell = match name {
        "watch" => !options.has('x') && !options.has_long("exec", 2),
        "entr" => options.has('s'),
        "watchexec" => !options.has('n'),
        _ => wrapper.runs == Runs::Shell,
    };
    if name == "entr" {
        let found = walker.env.stdin.as_deref().and_then(|text| text.lines().next()).map(str::to_owned);
        let found = found.unwrap_or_else(|| UNKNOWN.to_string());
        argv = argv.iter().map(|arg| fill(walker, arg, "/_", &found)).collect();
    }
    if let ("hatch", Some(first)) = (name, argv.first_mut())
        && let Some((_, program)) = first.split_once(':')
    {
        // `hatch run environment:program`.
        *first = program.to_owned();
    }
    let mut printed = own_texts(walker, wrapper, &options, directory.as_deref());
    if argv.is_empty() {
        if matches!(name, "sudo" | "doas" | "run0" | "newgrp" | "sg") && walker.env.stdin.is_some() {
            // An interactive shell reads its input.
            return self::shells::stdin(walker);
        }
        return if printed.is_empty() { UNKNOWN.to_string() } else { printed };
    }
    printed += &with_variables(walker, &assignments, |walker| {
        walker.subshell(|walker| {
            enter(walker, directory.as_deref());
            if shell { walker.run_text(&argv.join(" ")) } else { exec_or_text(walker, argv) }
        })
    });
    printed
}

/// The command lines in a wrapper's own options and, where each is one, operands.
fn own_texts(walker: &mut Walker<'_>, wrapper: &Wrapper, options: &Options, directory: Option<&str>) -> String {
    let mut texts = Wrapper::values(options, wrapper.text);
    if wrapper.runs == Runs::Each {
        texts.extend(options.operands.iter().cloned());
    }
    if wrapper.names.contains(&"strace") {
        texts.extend(options.values('o').iter().filter_map(|to| to.strip_prefix(['|', '!']).map(str::to_owned)));
    }
    let mut printed = String::new();
    for text in texts {
        printed.push_str(&walker.subshell(|walker| {
            enter(walker, directory);
            walker.run_text(&text)
        }));
    }
    printed
}

/// What follows the first of some words; the word may hold the first argument (`--exec=rm`).
fn after<'a>(args: &'a [String], words: &[&str]) -> &'a [String] {
    let at = args.iter().position(|arg| words.contains(&arg.as_str()));
    at.and_then(|at| args.get(at + 1..)).unwrap_or_default()
}

/// A text with a value in place of each mark, within the bounds of expansions.
pub(crate) fn fill(walker: &mut Walker<'_>, text: &str, mark: &str, value: &str) -> String {
    let marks = if mark.is_empty() { 0 } else { text.matches(mark).count() };
    if marks == 0 {
        return text.to_owned();
    }
    let size = text.len().saturating_add(marks.saturating_mul(value.len()));
    walker.expanded = walker.expanded.saturating_add(size);
    if size > walker.text_limit() {
        walker.limited("expanded text");
        return UNKNOWN.to_string();
    }
    text.replace(mark, value)
}

/// The directory that an option names is the command's.
fn enter(walker: &mut Walker<'_>, directory: Option<&str>) {
    if let Some(directory) = directory {
        walker.env.cwd = walker.target(directory).path;
        walker.env.other_cwds.clear();
    }
}

/// A program with arguments, or a single text that a shell splits.
pub(crate) fn exec_or_text(walker: &mut Walker<'_>, argv: Vec<String>) -> String {
    match argv.as_slice() {
        [only] if only.contains(char::is_whitespace) => walker.run_text(only),
        _ => walker.exec_texts(argv),
    }
}

/// `bwrap`: some of its options take two values.
fn bwrap(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    const PAIRS: &[&str] = &[
        "bind",
        "ro-bind",
        "dev-bind",
        "symlink",
        "setenv",
        "file",
        "bind-data",
        "ro-bind-data",
        "chmod",
        "bind-fd",
        "ro-bind-fd",
    ];
    let Some((wrapper, _)) = Wrapper::of(name, args) else { return String::new() };
    let mut single = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let option = arg.strip_prefix("--").map(|option| option.trim_end_matches("-try")).unwrap_or_default();
        match option {
            "" => {
                single.push(arg.clone());
                single.extend(args.by_ref().cloned());
            }
            "overlay" => _ = args.nth(2),
            _ if PAIRS.contains(&option) => _ = args.nth(1),
            _ if wrapper.long.contains(&option) => {
                single.push(arg.clone());
                single.extend(args.next().cloned());
            }
            _ => single.push(arg.clone()),
        }
    }
    unwrap(walker, wrapper, name, &single, &single)
}

fn loader(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let (_, argv) = command_after(args, "", &["library-path", "preload", "audit", "argv0", "inhibit-rpath"], 0, false);
    let argv = argv.to_vec();
    if argv.is_empty() { String::new() } else { walker.exec_texts(argv) }
}

/// Runs with more environment.
fn with_variables(
    walker: &mut Walker<'_>,
    assignments: &[(String, String)],
    run: impl FnOnce(&mut Walker<'_>) -> String,
) -> String {
    if assignments.is_empty() {
        return run(walker);
    }
    let saved = Rc::clone(&walker.env.variables);
    for (name, value) in assignments {
        walker.env.set(name, Value::Text(value.clone()));
        walker.env.export(name);
        let span = walker.span.clone();
        walker.environment_changed(name, span);
    }
    let printed = run(walker);
    walker.env.variables = saved;
    printed
}

fn start_stop_daemon(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let options =
        Options::read(args, "axpnucNrPIkdOCgMR", &["exec", "startas", "pidfile", "name", "user", "chuid", "chdir"]);
    let Some(program) =
        options.long_values("exec").into_iter().chain(options.values('x')).chain(options.long_values("startas")).next()
    else {
        return String::new();
    };
    let mut argv = vec![program];
    argv.extend(options.operands.iter().cloned());
    walker.exec_texts(argv)
}

const ENV_VALUED: &str = "uCaS";
const ENV_LONG: &[&str] = &["unset", "chdir", "argv0", "split-string"];

/// env(1): its assignments are the command's environment, and `-S` splits a text into arguments.
fn env(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let args = split_strings(args);
    let (assignments, argv) = command_after(&args, ENV_VALUED, ENV_LONG, 0, true);
    let own = args.get(..args.len().saturating_sub(argv.len())).unwrap_or_default();
    let argv = argv.to_vec();
    if argv.is_empty() {
        // It prints the environment.
        return text::SECRET.to_string();
    }
    let options = Options::read(own, ENV_VALUED, ENV_LONG);
    let directory = options.values('C').into_iter().chain(options.long_values("chdir")).next_back();
    let program = argv.first().cloned().unwrap_or_default();
    variables::for_program(walker, &program, &assignments);
    with_variables(walker, &assignments, |walker| {
        walker.subshell(|walker| {
            enter(walker, directory.as_deref());
            walker.exec_texts(argv)
        })
    })
}

/// The arguments with the text of `-S` in its place.
fn split_strings(args: &[String]) -> Vec<String> {
    let mut expanded: Vec<String> = Vec::new();
    let mut rest = args;
    while let Some((arg, tail)) = rest.split_first() {
        let cluster = arg.starts_with('-') && !arg.starts_with("--");
        let at = if cluster { arg.char_indices().skip(1).find(|(_, c)| ENV_VALUED.contains(*c)) } else { None };
        let (text, tail) = if let Some((at, 'S')) = at {
            // `-vS text`, `-Stext`.
            match arg.get(at + 1..).unwrap_or_default() {
                "" => (tail.first().cloned(), tail.get(1..).unwrap_or_default()),
                attached => (Some(attached.to_owned()), tail),
            }
        } else if let Some((name, value)) =
            arg.strip_prefix("--").map(|long| long.split_once('=').unwrap_or((long, "")))
        {
            let split = !name.is_empty() && "split-string".starts_with(name);
            match (split, arg.contains('=')) {
                (true, true) => (Some(value.to_owned()), tail),
                (true, false) => (tail.first().cloned(), tail.get(1..).unwrap_or_default()),
                (false, _) => (None, tail),
            }
        } else {
            (None, tail)
        };
        match text {
            // A lone dash stands for `-i`.
            None if arg == "-" => expanded.push("-i".to_owned()),
            Some(text) => expanded.extend(shell_words(&text.replace("\\_", " "))),
            None if arg.starts_with('-') && arg.len() > 1 && arg != "--" => {
                expanded.push(arg.clone());
                if matches!(at, Some((at, _)) if at + 1 == arg.len()) {
                    expanded.extend(tail.first().cloned());
                    rest = tail.get(1..).unwrap_or_default();
                    continue;
                }
            }
            None => {
                expanded.extend(rest.iter().cloned());
                break;
            }
        }
        rest = tail;
    }
    expanded
}

fn su(walker: &mut Walker<'_>, name: &str, args: &[String]) -> String {
    let options = Options::read(
        args,
        "cgGswTu",
        &["command", "session-command", "group", "supp-group", "shell", "whitelist-environment", "user"],
    );
    let mut printed = String::new();
    for text in options
        .values('c')
        .into_iter()
        .chain(options.long_values("command"))
        .chain(options.long_values("session-command"))
    {
        printed.push_str(&walker.run_text(&text));
    }
    if name == "runuser" && !options.values('u').is_empty() {
        let argv = options.operands_from_first(args);
        if !argv.is_empty() {
            printed.push_str(&walker.exec_texts(argv));
        }
    } else if printed.is_empty() && walker.env.stdin.is_some() {
        return self::shells::stdin(walker);
    }
    printed
}

/// xargs(1): appends its input to the command.
fn xargs(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    const VALUED: &str = "adEIJLnPRSs";
    const LONG: &[&str] =
        &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var", "!replace", "!max-lines"];
    let (_, command) = command_after(args, VALUED, LONG, 0, false);
    let own = args.get(..args.len().saturating_sub(command.len())).unwrap_or_default();
    let options = Options::read(own, VALUED, LONG);
    let argv = if command.is_empty() { vec!["echo".to_owned()] } else { command.to_vec() };
    let input = match options.values('a').into_iter().chain(options.long_values("arg-file")).next() {
        Some(path) => {
            let span = walker.span.clone();
            walker.read_file(&path, &span)
        }
        None => walker.env.stdin.as_deref().map_or_else(|| UNKNOWN.to_string(), str::to_owned),
    };
    // `-i` and `--replace` may have their mark attached.
    let optional = own.iter().find_map(|arg| arg.strip_prefix("-i").or_else(|| arg.strip_prefix("--replace=")));
    let replace = options
        .values('I')
        .into_iter()
        .chain(optional.filter(|mark| !mark.is_empty()).map(str::to_owned))
        .next()
        .or_else(|| (options.has('i') || options.has_long("replace", 2)).then(|| "{}".to_owned()));
    let delimiter = options.values('d').into_iter().chain(options.long_values("delimiter")).next();
    let delimiter = delimiter.map(|text| text::escapes(&text, true));
    let null = options.has('0') || options.has_long("null", 2);
    let number = |short, long| {
        let given = options.values(short).into_iter().chain(options.long_values(long)).last();
        given.and_then(|text| text.parse::<usize>().ok()).filter(|count| *count > 0)
    };
    let lines =
        number('L', "max-lines").or_else(|| (options.has('l') || options.has_long("max-lines", 5)).then_some(1));
    let mut items = xargs_items(&input, replace.is_some(), null, delimiter);
    let most = walker.limits.words;
    if items.iter().map(Vec::len).sum::<usize>() > most {
        walker.limited("words");
        items.truncate(most);
    }
    let words: Vec<String> = items.iter().flatten().take(most).cloned().collect();
    // Lines of an unknown text may be one item, where nothing else ends it.
    let several = input.trim_end_matches('\n').contains('\n') && !input.contains('\0');
    let whole = (null && several && !is_known(&input)).then(|| vec![vec![input.clone()]]);
    let outer = std::mem::replace(&mut walker.bulk, true);
    let printed = match (replace, options.values('J').first()) {
        (Some(mark), _) if !mark.is_empty() => replaced(walker, &argv, &words, &mark),
        (_, Some(mark)) => {
            let argv =
                argv.iter().flat_map(|arg| if arg == mark { words.clone() } else { vec![arg.clone()] }).collect();
            walker.subshell(|walker| walker.exec_texts(argv))
        }
        _ => {
            let count = number('n', "max-args");
            let groups = match (count, lines) {
                (Some(count), None) => words.chunks(count).map(<[String]>::to_vec).collect(),
                (_, Some(count)) => items.chunks(count).map(<[Vec<String>]>::concat).collect(),
                _ => vec![words],
            };
            let printed = each_group(walker, &argv, groups, count);
            printed + &whole.map_or_else(String::new, |groups| each_group(walker, &argv, groups, None))
        }
    };
    walker.bulk = outer;
    printed
}

/// How many calls of one `xargs` are told apart.
const GROUPS: usize = 64;

/// How many names of files that a pattern stands for are told apart in a group.
const NAMES: usize = 3;

/// Runs a command with each group of words. Where one of them is unknown, nobody knows where the groups end.
fn each_group(walker: &mut Walker<'_>, argv: &[String], mut groups: Vec<Vec<String>>, count: Option<usize>) -> String {
    let open = groups.iter().flatten().any(|word| text::has_unknown(word));
    if groups.len() > GROUPS || open {
        groups = vec![groups.concat()];
    }
    if groups.is_empty() {
        groups.push(Vec::new());
    }
    if groups.iter().flatten().any(|word| text::has_glob(word)) {
        // Names with blanks in them are several, and the groups end elsewhere.
        match count {
            Some(count) if count <= NAMES && !groups.iter().flatten().any(|word| word.contains('/')) => {
                groups.extend((1..=count).map(|count| vec![text::TOKEN.to_string(); count]));
            }
            None if groups.len() <= 1 => {}
            _ => groups.push(vec![UNKNOWN.to_string()]),
        }
        walker.notes.splits();
    }
    let mut printed = String::new();
    for words in groups {
        let argv = argv.iter().cloned().chain(words).collect();
        printed.push_str(&walker.subshell(|walker| {
            // The command does not read the list as its own input.
            walker.env.stdin = None;
            walker.exec_texts(argv)
        }));
    }
    printed
}

/// The items of the list that xargs reads, by line; where something else ends items, each is a line.
fn xargs_items(input: &str, lines: bool, null: bool, delimiter: Option<String>) -> Vec<Vec<String>> {
    let one = |item: &str| vec![item.to_owned()];
    let ended = |end: &str| -> Vec<Vec<String>> {
        // What ends the last item begins no further one.
        let text = input.strip_suffix(end).unwrap_or(input);
        if input.is_empty() { Vec::new() } else { text.split(end).map(one).collect() }
    };
    match delimiter {
        Some(delimiter) if !delimiter.is_empty() => ended(&delimiter),
        // Whoever made the list may have written lines for it.
        _ if null && !is_known(input) => input.split(['\0', '\n']).filter(|item| !item.is_empty()).map(one).collect(),
        _ if null => ended("\0"),
        _ if lines => xargs_lines(input, true),
        _ => xargs_lines(input, false),
    }
}

/// Lines of words, with the quotes of xargs, which keep all but themselves; a backslash makes the next character ordinary,
/// the end of a line even. A line that ends in a blank goes on in the next. Where lines are items (`whole`), blanks inside
/// them end nothing.
fn xargs_lines(input: &str, whole: bool) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let (mut line, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let (mut quote, mut after_blank) = (None, false);
    let mut chars = input.chars();
    while let Some(c) = chars.next() {
        let blank = c == ' ' || c == '\t';
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, '\n') => {
                line.extend(word.take());
                if !line.is_empty() && (whole || !after_blank) {
                    lines.push(std::mem::take(&mut line));
                }
            }
            (None, _) if blank && (!whole || word.is_none()) => line.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
        after_blank = blank;
    }
    line.extend(word);
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

fn replaced(walker: &mut Walker<'_>, argv: &[String], words: &[String], mark: &str) -> String {
    let mut printed = String::new();
    let most = walker.limits.words_in_all / argv.len().max(1);
    if words.len() > most {
        walker.limited("words");
    }
    for word in words.iter().take(most.max(1)) {
        if walker.exhausted() {
            break;
        }
        let argv = argv.iter().map(|arg| fill(walker, arg, mark, word)).collect();
        printed.push_str(&walker.subshell(|walker| {
            walker.env.stdin = None;
            walker.exec_texts(argv)
        }));
    }
    printed
}

const PARALLEL_VALUED: &str = "jaSdNnLCIPsxEDW";
const PARALLEL_LONG: &[&str] = &[
    "jobs",
    "arg-file",
    "delay",
    "joblog",
    "timeout",
    "retries",
    "sshlogin",
    "sshloginfile",
    "colsep",
    "results",
    "tmpdir",
    "workdir",
    "wd",
    "tagstring",
    "!tag",
    "!compress",
    "trim",
    "tag-string",
    "max-args",
    "max-procs",
    "max-replace-args",
    "halt",
    "load",
    "memfree",
    "nice",
    "block",
    "recstart",
    "recend",
    "delimiter",
    "env",
    "basefile",
    "return",
    "profile",
    "rpl",
    "id",
    "semaphorename",
    "termseq",
    "limit",
    "compress-program",
    "decompress-program",
    "transferfile",
    "trc",
];

/// parallel(1): the command and its inputs after `:::`, or from standard input; texts run in a shell.
fn parallel(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let (_, rest) = command_after(args, PARALLEL_VALUED, PARALLEL_LONG, 0, false);
    let own = args.get(..args.len().saturating_sub(rest.len())).unwrap_or_default();
    let options = Options::read(own, PARALLEL_VALUED, PARALLEL_LONG);
    let end = rest.iter().position(|arg| arg.starts_with(":::")).unwrap_or(rest.len());
    let command = rest.get(..end).unwrap_or_default().join(" ");
    let mut sources: Vec<Vec<String>> = Vec::new();
    let mut files: Vec<String> = options.values('a').into_iter().chain(options.long_values("arg-file")).collect();
    let mut from_files = false;
    for arg in rest.get(end..).unwrap_or_default() {
        if arg.starts_with(":::") {
            from_files = arg.starts_with("::::");
            if !from_files {
                sources.push(Vec::new());
            }
        } else if from_files {
            files.push(arg.clone());
        } else if let Some(source) = sources.last_mut() {
            source.push(arg.clone());
        }
    }
    for path in files {
        let span = walker.span.clone();
        let text = walker.read_file(&path, &span);
        sources.push(text.lines().map(str::to_owned).collect());
    }
    if sources.is_empty() {
        let text = walker.env.stdin.as_deref().unwrap_or(&UNKNOWN.to_string()).to_owned();
        if options.has_long("pipe", 3) {
            // The command reads the input itself.
            return walker.subshell(|walker| walker.run_text(&command));
        }
        sources.push(text.lines().map(str::to_owned).collect());
    }
    if options.has_long("dry-run", 3) || options.has_long("dryrun", 4) {
        return UNKNOWN.to_string();
    }
    let mark = options.values('I').into_iter().next().unwrap_or_else(|| "{}".to_owned());
    let mut printed = String::new();
    for inputs in combinations(walker, &sources) {
        let text = parallel_text(walker, &command, &mark, &inputs);
        printed.push_str(&walker.subshell(|walker| {
            walker.env.stdin = None;
            walker.run_text(&text)
        }));
    }
    printed
}

/// Every choice of one value from each source.
fn combinations(walker: &mut Walker<'_>, sources: &[Vec<String>]) -> Vec<Vec<String>> {
    const MOST: usize = 256;
    let mut out: Vec<Vec<String>> = vec![Vec::new()];
    for source in sources {
        if out.len().saturating_mul(source.len()) > MOST {
            walker.limited("inputs of parallel");
        }
        out = out
            .iter()
            .flat_map(|head| source.iter().map(move |value| head.iter().chain([value]).cloned().collect()))
            .take(MOST)
            .collect();
    }
    out
}

/// The command line for some inputs: in place of the marks, or else at the end.
fn parallel_text(walker: &mut Walker<'_>, command: &str, mark: &str, inputs: &[String]) -> String {
    let all = inputs.join(" ");
    if command.is_empty() {
        return all;
    }
    let mut text = command.to_owned();
    let mut marked = false;
    for (mark, value) in [(mark, &all), ("{.}", &all), ("{/}", &all), ("{//}", &all), ("{/.}", &all)] {
        marked |= text.contains(mark);
        text = fill(walker, &text, mark, value);
    }
    for (i, input) in inputs.iter().enumerate() {
        for mark in [format!("{{{}}}", i + 1), format!("{{{}.}}", i + 1), format!("{{{}/}}", i + 1)] {
            marked |= text.contains(&mark);
            text = fill(walker, &text, &mark, input);
        }
    }
    if marked {
        return text;
    }
    let quoted: Vec<String> = inputs.iter().map(|input| exec::quote(input)).collect();
    format!("{text} {}", quoted.join(" "))
}

/// capsh(1) gives what follows `--` to bash.
fn capsh(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    let Some(at) = args.iter().position(|arg| arg == "--") else { return String::new() };
    let argv = std::iter::once("bash".to_owned()).chain(args.iter().skip(at + 1).cloned()).collect();
    walker.exec_texts(argv)
}
