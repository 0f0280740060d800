//! Which variables a program that a shell starts gets: those that were exported. A script in a new shell does not see the
//! others: `d=build; sh -c 'rm -rf "$d"/*'` removes everything in `/`.

use std::rc::Rc;

use super::env::{Env, Value};
use super::walk::Walker;
use crate::facts::command::grammar::syntax::Word;
use crate::facts::command::words::text::is_known;

/// Under this name every variable is exported (`set -a`).
const ALL: &str = "*";

impl Env {
    pub fn export(&mut self, name: &str) {
        if !self.exported.contains(name) {
            Rc::make_mut(&mut self.exported).insert(name.to_owned());
        }
    }
}

impl Walker<'_> {
    /// `export name`, `declare -x name=value`.
    pub(crate) fn export(&mut self, words: &[Word]) {
        let named = |name: &str| words.first().and_then(Word::literal) == Some(name);
        let has = |letter| words.iter().filter_map(Word::literal).any(|w| w.starts_with('-') && w.contains(letter));
        if !(named("export") && !has('n') || has('x')) {
            return;
        }
        for word in words.iter().skip(1) {
            let name = word.as_assignment().map(|found| found.name).or_else(|| word.literal().map(str::to_owned));
            // A name that cannot be read may be any.
            self.env.export(name.as_deref().unwrap_or(ALL));
        }
    }

    /// `set -a`, `set -o allexport`.
    pub(crate) fn set_exports(&mut self, args: &[String]) {
        let all =
            |arg: &String| arg == "allexport" || arg.starts_with('-') && !arg.starts_with("--") && arg.contains('a');
        if args.iter().take_while(|arg| *arg != "--").any(all) {
            self.env.export(ALL);
        }
    }

    /// A new shell starts: what was not exported is not there. Names with capitals may have been in the environment from
    /// the beginning, so they keep what they were given.
    pub(crate) fn keep_exported(&mut self) {
        let exported = Rc::clone(&self.env.exported);
        if !self.env.functions.is_empty() {
            Rc::make_mut(&mut self.env.functions).retain(|name, _| exported.contains(name));
        }
        self.env.stack = Rc::default();
        self.env.aliases = Rc::default();
        self.env.attributes = Rc::default();
        self.env.references = Rc::default();
        self.env.debug = Rc::default();
        self.env.on_return = None;
        if self.env.variables.contains_key("IFS") {
            Rc::make_mut(&mut self.env.variables).remove("IFS");
        }
        if exported.contains(ALL) {
            return;
        }
        let hidden = |name: &String, value: &Value| {
            let local = !name.contains(|c: char| c.is_ascii_uppercase())
                && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            // What is unknown anyway says more than nothing.
            let known = !matches!(value, Value::Text(text) if !is_known(text));
            local && known && !exported.contains(name) && !self.prefix.iter().any(|(given, _)| given == name)
        };
        let names: Vec<String> = self
            .env
            .variables
            .iter()
            .filter(|(name, value)| hidden(name, value))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.env.set(&name, Value::Unset);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::Surroundings;
    use crate::facts::command::Guard;

    fn words(command: &str) -> Vec<String> {
        let understood = Guard::embedded().understand(command, &Surroundings::new("/home/alice/proj", "/home/alice"));
        let last = understood.sites.last().expect("something runs");
        last.words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_new_shell_has_only_what_was_exported() {
        for (command, last) in [
            ("v=k; sh -c 'deploy \"$v\"'", ""),
            ("v=k; export v; sh -c 'deploy \"$v\"'", "k"),
            ("export v=k; bash -c 'deploy \"$v\"'", "k"),
            ("declare -x v=k; bash -c 'deploy \"$v\"'", "k"),
            ("v=k sh -c 'deploy \"$v\"'", "k"),
            ("env v=k sh -c 'deploy \"$v\"'", "k"),
            ("v=k env sh -c 'deploy \"$v\"'", "k"),
            ("set -a; v=k; sh -c 'deploy \"$v\"'", "k"),
            ("v=k; (deploy \"$v\")", "k"),
            ("v=k; eval 'deploy \"$v\"'", "k"),
            ("V=k; sh -c 'deploy \"$V\"'", "k"),
        ] {
            assert_eq!(words(command), ["deploy", last], "{command}");
        }
    }

    #[test]
    fn what_is_not_there_leaves_the_root_directory() {
        let guard = Guard::embedded();
        let here = Surroundings::new("/home/alice/proj", "/home/alice");
        let found = |command: &str| !guard.analyse(command, &here).findings.is_empty();
        assert!(found("d=build; sh -c 'rm -rf \"$d\"/*'"));
        assert!(!found("export d=build; sh -c 'rm -rf \"$d\"/*'"));
        assert!(!found("d=build; sh -c \"rm -rf '$d'/*\""));
    }
}
