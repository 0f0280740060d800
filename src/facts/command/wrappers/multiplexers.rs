//! Terminal multiplexers: windows that run a command, keys that are typed into one.

use super::exec_or_text;
use super::options::{Options, command_after, shell_words};
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;

/// What a command of tmux does with its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Runs them, as one text or as a program with arguments.
    Runs,
    /// Types them.
    Types,
    /// Runs the first in a shell and the others as commands of tmux.
    Chooses,
    /// Runs what follows so many operands as a command of tmux.
    Commands(usize),
    /// Sets an option, whose value may be a command.
    Sets,
    /// Reads commands of tmux from files.
    Sources,
}

/// Name, alias, options with a value, what it does. Names may be abbreviated.
const TMUX: &[(&str, &str, &str, Does)] = &[
    ("new-session", "new", "cefFnstxy", Does::Runs),
    ("new-window", "neww", "ceFnt", Does::Runs),
    ("split-window", "splitw", "ceFlpt", Does::Runs),
    ("respawn-pane", "respawnp", "cet", Does::Runs),
    ("respawn-window", "respawnw", "cet", Does::Runs),
    ("run-shell", "run", "cdt", Does::Runs),
    ("pipe-pane", "pipep", "t", Does::Runs),
    ("display-popup", "popup", "bcdehsStTwxy", Does::Runs),
    ("if-shell", "if", "t", Does::Chooses),
    ("send-keys", "send", "cNt", Does::Types),
    ("set-hook", "set-hook", "t", Does::Commands(1)),
    ("bind-key", "bind", "NT", Does::Commands(1)),
    ("confirm-before", "confirm", "cpt", Does::Commands(0)),
    ("set-option", "set", "t", Does::Sets),
    ("set-window-option", "setw", "t", Does::Sets),
    ("set-environment", "setenv", "t", Does::Sets),
    ("source-file", "source", "t", Does::Sources),
];

/// tmux(1) and its kin.
pub(crate) fn tmux(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    const VALUED: &str = "cfLST";
    let (_, commands) = command_after(args, VALUED, &[], 0, false);
    let own = args.get(..args.len().saturating_sub(commands.len())).unwrap_or_default();
    let options = Options::read(own, VALUED, &[]);
    for text in options.values('c') {
        walker.subshell(|walker| walker.run_text(&text));
    }
    for path in options.values('f') {
        source(walker, &path);
    }
    tmux_commands(walker, commands);
    String::new()
}

fn tmux_commands(walker: &mut Walker<'_>, words: &[String]) {
    // A command ends at `;`, alone or at the end of a word.
    let mut command: Vec<String> = Vec::new();
    for word in words {
        match word.strip_suffix(';') {
            Some(rest) if !rest.ends_with('\\') => {
                command.extend((!rest.is_empty()).then(|| rest.to_owned()));
                walker.deeper(|walker| tmux_command(walker, &command));
                command.clear();
            }
            _ => command.push(word.clone()),
        }
    }
    walker.deeper(|walker| tmux_command(walker, &command));
}

fn tmux_text(walker: &mut Walker<'_>, text: &str) {
    for line in text.lines() {
        tmux_commands(walker, &shell_words(line));
    }
}

fn tmux_command(walker: &mut Walker<'_>, command: &[String]) {
    let Some((name, rest)) = command.split_first() else { return };
    // Formats run what stands in `#(...)`.
    for part in rest.iter().flat_map(|arg| arg.split("#(").skip(1)) {
        let text = part.rsplit_once(')').map_or(part, |(text, _)| text).to_owned();
        walker.subshell(|walker| walker.run_text(&text));
    }
    let known = TMUX.iter().find(|(full, alias, ..)| name == full || name == alias);
    let Some((full, _, valued, does)) =
        known.or_else(|| TMUX.iter().find(|(full, ..)| full.starts_with(name.as_str())))
    else {
        return;
    };
    let (_, operands) = command_after(rest, valued, &[], 0, false);
    let own = rest.get(..rest.len().saturating_sub(operands.len())).unwrap_or_default();
    let options = Options::read(own, valued, &[]);
    match does {
        Does::Runs if *full == "run-shell" && options.has('C') => tmux_text(walker, &operands.join(" ")),
        Does::Runs => {
            let directory = options.values('c').into_iter().next();
            let argv = operands.to_vec();
            walker.subshell(|walker| {
                if let Some(directory) = directory {
                    walker.env.cwd = walker.target(&directory).path;
                }
                exec_or_run(walker, argv)
            });
        }
        Does::Types => {
            let text: String = operands.iter().map(|key| typed(key)).collect();
            walker.subshell(|walker| walker.run_text(&text));
        }
        Does::Chooses => {
            if let Some((condition, commands)) = operands.split_first() {
                if !options.has('F') {
                    walker.subshell(|walker| walker.run_text(condition));
                }
                for text in commands {
                    tmux_text(walker, text);
                }
            }
        }
        Does::Commands(skip) => match operands.get(*skip..).unwrap_or_default() {
            [text] => tmux_text(walker, text),
            words => tmux_commands(walker, words),
        },
        Does::Sets => {
            if let [name, text, ..] = operands
                && (name.starts_with("default-") || name.ends_with("-command"))
            {
                walker.subshell(|walker| walker.run_text(text));
            }
        }
        Does::Sources => {
            for path in operands {
                source(walker, path);
            }
        }
    }
}

/// One operand is a shell's text, several are a program and its arguments.
fn exec_or_run(walker: &mut Walker<'_>, argv: Vec<String>) -> String {
    match argv.as_slice() {
        [] => String::new(),
        [text] => walker.run_text(text),
        _ => walker.exec_texts(argv),
    }
}

fn source(walker: &mut Walker<'_>, path: &str) {
    let target = walker.target(path);
    walker.with_file(&target, |walker, text| tmux_text(walker, text));
}

/// What a key types.
fn typed(key: &str) -> &str {
    match key {
        "Enter" | "KPEnter" | "C-m" | "C-j" | "^M" => "\n",
        "Space" => " ",
        "Tab" | "C-i" => "\t",
        _ => key,
    }
}

/// screen(1).
pub(crate) fn screen(walker: &mut Walker<'_>, _: &str, args: &[String]) -> String {
    const VALUED: &str = "cehpsStT";
    let (_, argv) = command_after(args, VALUED, &["!version"], 0, false);
    let own = args.get(..args.len().saturating_sub(argv.len())).unwrap_or_default();
    let options = Options::read(own, VALUED, &[]);
    for shell in options.values('s') {
        walker.run_text(&shell);
    }
    for path in options.values('c') {
        let target = walker.target(&path);
        walker.with_file(&target, |walker, text| {
            for line in text.lines() {
                screen_command(walker, &shell_words(line));
            }
        });
    }
    let argv = argv.to_vec();
    if options.has('X') {
        screen_command(walker, &argv);
    } else if !options.has('r') && !options.has('x') && !options.has('R') && !argv.is_empty() {
        walker.subshell(|walker| exec_or_text(walker, argv));
    }
    String::new()
}

fn screen_command(walker: &mut Walker<'_>, command: &[String]) {
    let Some((name, rest)) = command.split_first() else { return };
    match name.as_str() {
        "stuff" | "paste" => {
            let text = text::escapes(&rest.join(" ").replace("^M", "\n"), true);
            walker.subshell(|walker| walker.run_text(&text));
        }
        "exec" | "screen" | "shell" | "hardcopy_exec" => {
            // `exec` takes a pattern of descriptors first.
            let (_, argv) = command_after(rest, "tT", &[], 0, false);
            let argv: Vec<String> =
                argv.iter().skip_while(|arg| arg.chars().all(|c| ".!:|".contains(c))).cloned().collect();
            walker.subshell(|walker| exec_or_text(walker, argv));
        }
        "eval" => {
            for text in rest {
                let words = shell_words(text);
                walker.deeper(|walker| screen_command(walker, &words));
            }
        }
        "at" | "bind" => {
            walker.deeper(|walker| screen_command(walker, rest.get(1..).unwrap_or_default()));
        }
        "backtick" => {
            let argv = rest.get(3..).unwrap_or_default().to_vec();
            walker.subshell(|walker| exec_or_text(walker, argv));
        }
        _ => {}
    }
}
