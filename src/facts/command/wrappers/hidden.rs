//! Programs that nobody listed may run their arguments: a destructive command among them is judged as one.

use super::shells;
use crate::facts::command::effects::programs::HIDDEN;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::wrappers;

/// How many arguments of one program may be the start of a command, and how many are tried in all.
const STARTS: usize = 4;
const GUESSES: usize = 200;

/// The cost of keeping one thing that is known, to go back to it.
const KEPT: usize = 60;

/// Options by which programs take a command line.
const TEXTS: &[&str] = &[
    "-c",
    "-e",
    "-x",
    "--command",
    "--cmd",
    "--exec",
    "--execute",
    "--run",
    "--shell",
    "--eval",
    "--script",
    "--hook",
];

impl Walker<'_> {
    pub(crate) fn hidden_command(&mut self, args: &[String]) {
        let base = |arg: &String| arg.rsplit('/').next().unwrap_or_default().to_owned();
        let start = args.iter().position(|arg| HIDDEN.contains(&base(arg).as_str()));
        if let Some(start) = start
            && start + 1 < args.len()
        {
            let argv = args.get(start..).unwrap_or_default().to_vec();
            self.subshell(|walker| walker.exec_texts(argv));
        }
        // What is less sure to be a command counts only where it would be refused.
        let runs = |name: &str| self.guard.has_program(name) || wrappers::has(name) || shells::NAMES.contains(&name);
        let starts: Vec<usize> = args
            .iter()
            .enumerate()
            .filter(|(i, arg)| Some(*i) != start && i + 1 < args.len() && !arg.starts_with('-') && runs(&base(arg)))
            .map(|(i, _)| i)
            .take(STARTS)
            .collect();
        for start in starts {
            let argv = args.get(start..).unwrap_or_default().to_vec();
            self.if_refused(|walker| {
                walker.exec_texts(argv);
            });
        }
        for (i, arg) in args.iter().enumerate() {
            let text = match arg.split_once('=') {
                Some((option, text)) if TEXTS.contains(&option) => Some(text.to_owned()),
                _ if TEXTS.contains(&arg.as_str()) => args.get(i + 1).cloned(),
                _ => None,
            };
            if let Some(text) = text.filter(|text| text.contains(' ')) {
                self.if_refused(|walker| {
                    walker.run_text(&text);
                });
            }
        }
    }

    /// Runs what may not run at all: it leaves no trace unless it is refused.
    fn if_refused(&mut self, run: impl FnOnce(&mut Self)) {
        if self.guesses >= GUESSES {
            self.limited("number of possible commands in arguments");
            return;
        }
        self.guesses += 1;
        self.spend(KEPT * (self.notes.size() + self.files.len()));
        let before = self.notes.clone();
        let files = self.files.clone();
        self.subshell(run);
        if self.notes.refusals() == before.refusals() {
            self.notes = before;
            self.files = files;
        }
    }
}
