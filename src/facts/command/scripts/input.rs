//! Files on disk that reach an interpreter through its standard input or a process substitution: `bash < x.sh`,
//! `cat x.sh | bash`, `source <(cat x.sh)`. Where each byte of the input comes from such files they are judged like
//! scripts that are named.

use std::rc::Rc;

use crate::facts::command::effects::target::Target;
use crate::facts::command::grammar::syntax::{Command, Kind, Word};
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::{UNKNOWN, is_unknown};

/// Programs that pass on what their operands hold, and nothing else.
const PASSING: &[&str] = &["cat", "bat"];

/// An input that consists of files: the text as the analysis has it, to tell that it is still the same, and the files.
pub(crate) type Files = (Rc<str>, Rc<Vec<Target>>);

impl Walker<'_> {
    /// The files that a program of a pipeline passes on, where it does nothing else.
    pub(crate) fn passed_files(&mut self, command: &Command) -> Option<Vec<Target>> {
        let Kind::Simple { assignments, words } = &command.kind else { return None };
        let (name, operands) = words.split_first()?;
        let name = name.literal()?;
        let plain = PASSING.contains(&name)
            && assignments.is_empty()
            && command.redirects.is_empty()
            && !self.env.functions.contains_key(name)
            && !self.env.aliases.contains_key(name);
        let operands: Option<Vec<&str>> = operands.iter().map(Word::literal).collect();
        let operands = operands.filter(|operands| plain && !operands.is_empty())?;
        let paths = operands.into_iter().filter(|operand| !operand.starts_with('-') || *operand == "-");
        let files: Vec<Target> = paths.map(|path| self.target(path)).collect();
        let open = |target: &Target| target.is_known() && !self.files.contains_key(&target.path);
        (!files.is_empty() && files.iter().all(open)).then_some(files)
    }

    /// Remembers that the standard input of what follows is a text that came from files.
    pub(crate) fn input_is(&mut self, files: Option<Vec<Target>>) {
        self.env.input = match (&self.env.stdin, files) {
            (Some(text), Some(files)) if text.chars().all(is_unknown) => Some((Rc::clone(text), Rc::new(files))),
            _ => None,
        };
    }

    /// Runs the files that standard input consists of; `None` where it holds anything else, or one cannot be read.
    pub(crate) fn run_input(&mut self, run: impl FnMut(&mut Self, &str) -> String) -> Option<String> {
        let (text, files) = self.env.input.clone()?;
        let same = self.env.stdin.as_ref().is_some_and(|stdin| Rc::ptr_eq(stdin, &text));
        if same { self.run_all(&files, run) } else { None }
    }

    /// The same for the files behind a process substitution.
    pub(crate) fn run_substituted(
        &mut self,
        target: &Target,
        run: impl FnMut(&mut Self, &str) -> String,
    ) -> Option<String> {
        let (text, files) = self.substituted.get(&target.path).cloned()?;
        let same = self.files.get(&target.path).is_some_and(|held| **held == *text);
        if same { self.run_all(&files, run) } else { None }
    }

    fn run_all(&mut self, files: &[Target], mut run: impl FnMut(&mut Self, &str) -> String) -> Option<String> {
        let mut printed = String::new();
        for file in files {
            printed.push_str(&self.with_file(file, &mut run)?);
        }
        Some(printed)
    }

    /// Remembers which files a process substitution gives.
    pub(crate) fn substituted_is(&mut self, path: &str, command: Option<&Command>) {
        let Some(files) = command.and_then(|command| self.passed_files(command)) else { return };
        let text: Rc<str> = UNKNOWN.to_string().repeat(files.len()).into();
        self.substituted.insert(path.to_owned(), (text, Rc::new(files)));
    }
}
