//! Redirects, and what files that the command made itself hold.

use std::rc::Rc;

use super::names;
use super::walk::Walker;
use crate::facts::command::effects::target::{Kind as Place, Kinds, Target};
use crate::facts::command::grammar::syntax::{List, Part, Redirect, RedirectOperator, Span, Word};
use crate::facts::command::notes::Act;
use crate::facts::command::words::text::{FETCHED, PROGRAM, SECRET, UNKNOWN, is_unknown};
use crate::facts::path::Access;

/// Where a command's output goes.
pub(crate) struct Output {
    path: Option<String>,
    process: Option<Rc<List>>,
    append: bool,
    /// It takes standard output, not only another descriptor.
    takes: bool,
}

/// What is in these is not to leave the machine.
const SECRETS: Kinds = Kinds::of(Place::Credential).and(Place::DotEnv).and(Place::History);

/// Redirects of one command beyond which each counts like a program call.
const REDIRECTS: usize = 8;

impl Walker<'_> {
    /// Applies redirects; gives those that take the command's output, with whether they append.
    pub(crate) fn redirects(&mut self, redirects: &[Redirect]) -> Vec<Output> {
        let mut outputs = Vec::new();
        for (i, redirect) in redirects.iter().enumerate() {
            if !self.count_site_of_redirect(i) {
                self.limited("number of redirects");
                break;
            }
            let Some(word) = redirect.target.get() else { continue };
            use RedirectOperator as R;
            match redirect.operator {
                R::HereDocument => {
                    let text = self.text(word);
                    self.set_input(redirect.fd, text);
                }
                R::HereString => {
                    let text = self.text(word) + "\n";
                    self.set_input(redirect.fd, text);
                }
                R::Read => {
                    let path = self.redirect_path(word);
                    let text = self.read_file(&path, &redirect.span);
                    let unread = matches!(redirect.fd, None | Some(0)) && text.chars().all(is_unknown);
                    self.set_input(redirect.fd, text);
                    if unread {
                        let file = self.target(&path);
                        self.input_is(file.is_known().then(|| vec![file]));
                    }
                }
                R::DuplicateInput => self.duplicate_input(redirect, word),
                R::ReadWrite => {
                    let path = self.redirect_path(word);
                    let text = self.read_file(&path, &redirect.span);
                    self.set_input(redirect.fd, text);
                    self.write_file(&path, true, &redirect.span);
                }
                R::DuplicateOutput if self.is_descriptor(word) => {}
                R::Write | R::Append | R::DuplicateOutput | R::Both => {
                    let append = redirect.operator == R::Append;
                    outputs.push(self.output(redirect, word, append));
                }
            }
        }
        outputs
    }

    /// Where a redirect leads: the globs of its word are alive, and match one file.
    fn redirect_path(&mut self, word: &Word) -> String {
        match word.parts.as_slice() {
            [Part::Literal(text)] if text.chars().all(is_unknown) => {
                // Code that is unknown, and perhaps nothing: then the next word is the file.
                self.notes.effect("unresolved");
                text.clone()
            }
            [Part::Literal(text)] if !text.contains(['~', '*', '?', '[']) => text.clone(),
            _ => {
                let path = self.joined_pattern(word);
                self.bounded(path)
            }
        }
    }

    fn is_descriptor(&mut self, word: &Word) -> bool {
        word.literal().is_some_and(|text| text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
    }

    fn duplicate_input(&mut self, redirect: &Redirect, word: &Word) {
        let text = self.text(word);
        if let Ok(number) = text.trim_end_matches('-').parse::<u32>()
            && let Some(content) = self.env.descriptors.get(&number).cloned()
        {
            self.set_input(redirect.fd, content);
        }
    }

    fn set_input(&mut self, fd: Option<u32>, text: String) {
        match fd {
            None | Some(0) => self.env.stdin = Some(text.into()),
            Some(number) => {
                self.substituted.remove(&format!("/dev/fd/{number}"));
                self.files.insert(format!("/dev/fd/{number}"), text.clone());
                Rc::make_mut(&mut self.env.descriptors).insert(number, text);
            }
        }
    }

    fn output(&mut self, redirect: &Redirect, word: &Word, append: bool) -> Output {
        if let [Part::Process { list, reads: false }] = word.parts.as_slice() {
            return Output { path: None, process: Some(Rc::clone(list)), append, takes: true };
        }
        let path = self.redirect_path(word);
        self.write_file(&path, append, &redirect.span);
        let takes = !matches!(redirect.fd, Some(fd) if fd != 1);
        Output { path: Some(path), process: None, append, takes }
    }

    /// Sends what a command printed where its redirects say; what is left goes on.
    pub(crate) fn outputs(&mut self, outputs: Vec<Output>, printed: String) -> String {
        let mut printed = printed;
        for output in outputs {
            let text = if output.takes { std::mem::take(&mut printed) } else { String::new() };
            if let Some(list) = output.process {
                self.subshell(|walker| {
                    walker.env.stdin = Some(text.into());
                    walker.list(&list)
                });
            } else if let Some(path) = output.path {
                self.store(&path, text, output.append);
            }
        }
        printed
    }

    /// Remembers what a file holds now.
    pub(crate) fn store(&mut self, path: &str, text: String, append: bool) {
        let target = self.target(path);
        if target.kinds.has(Place::Network) && text.contains(SECRET) {
            self.event("send-secret");
        }
        if !target.is_known()
            || (target.path.starts_with("/dev/") && !target.path.starts_with("/dev/shm/"))
            || self.files.len() > 256
        {
            return;
        }
        if target.path.starts_with("/proc/sys") && text.trim() == "" {
            return;
        }
        self.persisted(&target, &text);
        if let Some(program) = text.strip_prefix(PROGRAM) {
            self.binaries.insert(target.path, program.to_owned());
            return;
        }
        self.binaries.remove(&target.path);
        if self.unsure
            && let Some(old) = self.files.get(&target.path).cloned()
        {
            let older = self.older.entry(target.path.clone()).or_default();
            if older.len() < 4 {
                older.push(old);
            }
        }
        let entry = self.files.entry(target.path).or_default();
        if append { entry.push_str(&text) } else { *entry = text }
    }

    /// What reading a path gives.
    pub(crate) fn read_file(&mut self, path: &str, span: &Span) -> String {
        let target = self.target(path);
        self.notes.path(&target, Access::Read, span.clone());
        self.acts_on(&[Act::new("read", target.kinds)]);
        self.content(&target)
    }

    pub(crate) fn content(&self, target: &Target) -> String {
        if let Some(text) = self.files.get(&target.path) {
            return text.clone();
        }
        if let Some(number) = names::descriptor(&target.path) {
            let text = if number == 0 {
                self.env.stdin.as_deref()
            } else {
                self.env.descriptors.get(&number).map(String::as_str)
            };
            return text.map_or_else(|| UNKNOWN.to_string(), str::to_owned);
        }
        if let Some(name) = self.binaries.get(&target.path) {
            return format!("{PROGRAM}{name}");
        }
        if let Some(text) = names::program_text(&target.path) {
            return text;
        }
        if target.kinds.has(Place::Network) {
            FETCHED.to_string()
        } else if target.kinds.meets(SECRETS) || target.path == "/etc/passwd" {
            SECRET.to_string()
        } else if target.path == "/dev/null" {
            String::new()
        } else {
            UNKNOWN.to_string()
        }
    }

    fn write_file(&mut self, path: &str, append: bool, span: &Span) {
        let target = self.target(path);
        self.notes.path(&target, Access::Write, span.clone());
        self.record_write(path, &target, append, span);
        let effect = if target.kinds.has(Place::Disk) {
            "write-device"
        } else if append {
            "append"
        } else {
            "overwrite"
        };
        self.acts_on(&[Act::new(effect, target.kinds)]);
    }

    fn count_site_of_redirect(&mut self, position: usize) -> bool {
        if position < REDIRECTS { self.words <= self.limits.words_in_all } else { self.count_site(1) }
    }
}
