//! Other names for programs, and commands that the shell runs when something else happens: `hash -p`, completions,
//! `command_not_found_handle`, functions from the environment, `trap ... DEBUG`.

use std::rc::Rc;

use super::env::Value;
use super::walk::Walker;
use crate::facts::command::effects::programs;
use crate::facts::command::words::expand::Field;
use crate::facts::command::words::text::{PROGRAM, TOKEN};
use crate::facts::command::wrappers::options::Options;

/// How often the text of a trap that runs between commands is looked at.
const TRAPPED: usize = 16;

/// Builtins that name programs or run text on some occasion.
pub(crate) fn run(walker: &mut Walker<'_>, name: &str, args: &[String]) {
    match name {
        "hash" => {
            let options = Options::read(args, "p", &[]);
            for path in options.values('p') {
                for name in &options.operands {
                    walker.remember_program(name, &path);
                }
            }
        }
        "enable" if !Options::read(args, "f", &[]).values('f').is_empty() => walker.event("environment-loader"),
        "complete" | "compgen" => completion(walker, args),
        "wait" => {
            for name in Options::read(args, "p", &[]).values('p') {
                walker.give(&name, Value::Text(TOKEN.to_string()));
            }
        }
        "getopts" => {
            if let Some(name) = args.get(1) {
                walker.give(name, Value::Text(TOKEN.to_string()));
            }
        }
        "bind" => {
            for text in Options::read(args, "fqrumx", &[]).values('x') {
                walker.run_text(text.split_once(':').map_or("", |(_, text)| text).trim_matches(['"', ' ']));
            }
        }
        _ => {}
    }
}

fn completion(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "oAGWFCXPS", &[]);
    for text in options.values('C') {
        walker.run_text(&text);
    }
    // The words are expanded.
    for text in options.values('W') {
        walker.subshell(|walker| walker.prompt(&text));
    }
    for name in options.values('F') {
        if walker.env.functions.contains_key(&name) {
            walker.subshell(|walker| walker.exec_texts(vec![name]));
        }
    }
}

/// The descriptor that a path stands for.
pub(crate) fn descriptor(path: &str) -> Option<u32> {
    if path == "/dev/stdin" {
        return Some(0);
    }
    let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?;
    number.parse().ok()
}

/// What stands for the contents of a program's file: its name.
pub(crate) fn program_text(path: &str) -> Option<String> {
    let (directory, name) = path.rsplit_once('/')?;
    let known = directory.ends_with("/bin") || directory.ends_with("/sbin");
    (known && !name.is_empty()).then(|| format!("{PROGRAM}{name}"))
}

/// Where a program is, as `command -v` and `which` say it.
pub(crate) fn place_of(walker: &Walker<'_>, name: &str) -> String {
    let program =
        programs::is_familiar(name) || walker.guard.has_program(name) || programs::DESTRUCTIVE.contains(&name);
    if program && !walker.env.functions.contains_key(name) { format!("/usr/bin/{name}") } else { name.to_owned() }
}

impl Walker<'_> {
    /// The file that a name without a slash is, where the script set `PATH` to a place where it made one.
    pub(crate) fn in_path(&self, name: &str) -> Option<String> {
        let Some(Value::Text(places)) = self.env.get("PATH") else { return None };
        if self.files.is_empty() && self.binaries.is_empty() {
            return None;
        }
        places.split(':').take(16).map(|place| format!("{}/{name}", if place.is_empty() { "." } else { place })).find(
            |path| {
                let path = self.target(path).path;
                self.files.contains_key(&path) || self.binaries.contains_key(&path)
            },
        )
    }

    /// The shell runs `path` for `name` (`hash -p`, `BASH_CMDS`).
    pub(crate) fn remember_program(&mut self, name: &str, path: &str) {
        if let Some(program) = self.program_of(path) {
            self.binaries.insert(name.to_owned(), program);
        }
    }

    /// `command_not_found_handle`, where a name is no program that is known.
    pub(crate) fn not_found(&mut self, name: &str, argv: &[Field]) {
        const HANDLES: &[&str] = &["command_not_found_handle", "command_not_found_handler"];
        if programs::is_familiar(name) || self.guard.has_program(name) {
            return;
        }
        for handle in HANDLES {
            for body in self.env.functions.get(*handle).cloned().unwrap_or_default().into_iter().flatten() {
                let first = Field { text: (*handle).to_owned(), span: self.span.clone() };
                let argv: Vec<Field> = std::iter::once(first).chain(argv.iter().cloned()).collect();
                self.subshell(|walker| walker.call(handle, &body, &argv));
            }
        }
    }

    /// Functions that a shell takes from its environment (`BASH_FUNC_name%%`).
    pub(crate) fn import_functions(&mut self) {
        let mut found = Vec::new();
        for (key, value) in self.env.variables.iter() {
            if let Some(name) = key.strip_prefix("BASH_FUNC_").and_then(|rest| rest.strip_suffix("%%"))
                && let Value::Text(text) = value
                && text.starts_with("()")
            {
                found.push(format!("{name}{text}"));
            }
        }
        for text in found {
            self.run_text(&text);
        }
    }

    /// Traps of DEBUG and ERR run between commands, with what variables hold then.
    pub(crate) fn between_commands(&mut self) {
        if self.trapped >= TRAPPED {
            return;
        }
        self.trapped += 1;
        let texts = std::mem::take(&mut self.env.debug);
        let status = self.status;
        for text in texts.iter() {
            // It runs in this shell, or not: nobody knows which commands fail.
            let before = self.env.clone();
            self.run_here(text);
            let after = std::mem::replace(&mut self.env, before.clone());
            if !self.dead {
                self.env = self.joined(before, after);
            }
            self.dead = false;
        }
        self.status = status;
        self.env.debug = texts;
        self.env.debug_fresh = false;
    }

    /// A signal that the shell may send to itself: its traps run now.
    pub(crate) fn signalled(&mut self) {
        if self.trapped >= TRAPPED {
            return;
        }
        self.trapped += 1;
        let texts = Rc::clone(&self.env.traps);
        for text in texts.iter() {
            self.subshell(|walker| {
                walker.env.traps = Rc::default();
                walker.run_text(text)
            });
        }
    }

    /// A function or a sourced script returns.
    pub(crate) fn returned(&mut self) {
        if let Some(text) = self.env.on_return.take()
            && !self.dead
        {
            let status = self.status;
            self.run_here(&text);
            self.status = status;
            self.env.on_return.get_or_insert(text);
        }
    }

    /// A signal's trap, which runs at the end, or between commands.
    pub(crate) fn set_trap(&mut self, text: &str, signals: &[String]) {
        let between =
            |signal: &String| matches!(signal.trim_start_matches("SIG").to_ascii_uppercase().as_str(), "DEBUG" | "ERR");
        if signals.iter().any(between) {
            Rc::make_mut(&mut self.env.debug).push(text.to_owned());
            self.env.debug_fresh = true;
        }
        if signals.iter().any(|signal| signal.trim_start_matches("SIG").eq_ignore_ascii_case("RETURN")) {
            self.env.on_return = (!text.is_empty()).then(|| text.into());
        }
        // It runs at the end too, with the variables of then.
        Rc::make_mut(&mut self.env.traps).push(text.to_owned());
    }
}
