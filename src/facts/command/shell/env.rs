//! What a shell knows at a point of the script.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::attributes::Attributes;
use super::directories::Stack;
use crate::facts::command::grammar::syntax::Command;
use crate::facts::command::scripts::input::Files;
use crate::facts::command::words::text::UNKNOWN;

/// The state that subshells copy. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Env {
    pub variables: Rc<HashMap<String, Value>>,
    /// Other values that variables may hold, where branches that may or may not have run left them different.
    pub alternatives: Rc<HashMap<String, Vec<Value>>>,
    /// `declare -n`: names that stand for other names.
    pub references: Rc<HashMap<String, String>>,
    /// What `declare` said of names.
    pub attributes: Rc<HashMap<String, Attributes>>,
    /// What a name is as a function: several where branches left it different, `None` for no function.
    pub functions: Rc<HashMap<String, Vec<Option<Rc<Command>>>>>,
    pub aliases: Rc<HashMap<String, String>>,
    /// The working directory, as abstract text.
    pub cwd: String,
    /// Where the shell may be instead: a `cd` may have failed, or not have run.
    pub other_cwds: Vec<String>,
    pub old_cwd: Option<String>,
    /// The directories of `pushd`.
    pub stack: Rc<Stack>,
    /// `None` in the outermost script, whose parameters nobody knows.
    pub positional: Option<Rc<Vec<String>>>,
    /// What standard input holds, where that is known to be redirected.
    pub stdin: Option<Rc<str>>,
    /// The files on disk that standard input consists of, where it does.
    pub input: Option<Files>,
    /// What other descriptors hold.
    pub descriptors: Rc<HashMap<u32, String>>,
    /// Inside a container: where host directories are mounted, as (inside, on the host).
    pub mounts: Option<Rc<Vec<(String, String)>>>,
    /// Commands that run between others.
    pub debug: Rc<Vec<String>>,
    /// None of them has run yet.
    pub debug_fresh: bool,
    /// Commands that run when this shell ends.
    pub traps: Rc<Vec<String>>,
    pub expand_aliases: bool,
    /// The shell goes by POSIX, as `sh` does.
    pub posix: bool,
    /// What runs when a function or a sourced script returns (`trap ... RETURN`).
    pub on_return: Option<Rc<str>>,
    /// Variables that programs get.
    pub exported: Rc<HashSet<String>>,
    /// On another machine: what is read and run there is not this machine's.
    pub remote: bool,
}

/// How many other values of a variable are followed.
const ALTERNATIVES: usize = 8;

/// Under this name the positional parameters have other values.
pub(crate) const POSITIONAL: &str = "@";

/// How many other directories and functions of one name are followed.
const OTHERS: usize = 4;

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Array(Vec<(String, String)>),
    /// Known not to be set.
    Unset,
}

impl Env {
    pub fn new(cwd: String) -> Self {
        Env {
            variables: Rc::default(),
            alternatives: Rc::default(),
            references: Rc::default(),
            attributes: Rc::default(),
            functions: Rc::default(),
            aliases: Rc::default(),
            cwd,
            other_cwds: Vec::new(),
            old_cwd: None,
            stack: Rc::default(),
            positional: None,
            stdin: None,
            input: None,
            descriptors: Rc::default(),
            mounts: None,
            debug: Rc::default(),
            debug_fresh: false,
            traps: Rc::default(),
            expand_aliases: false,
            posix: false,
            on_return: None,
            exported: Rc::default(),
            remote: false,
        }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        if self.alternatives.contains_key(name) {
            Rc::make_mut(&mut self.alternatives).remove(name);
        }
        match value {
            Value::Array(items) if name == POSITIONAL => {
                self.positional = Some(Rc::new(items.into_iter().map(|(_, item)| item).collect()));
            }
            value => {
                Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
            }
        }
    }

    /// Sets `$0` and the positional parameters.
    pub fn set_positional(&mut self, items: Vec<String>) {
        if self.alternatives.contains_key(POSITIONAL) {
            Rc::make_mut(&mut self.alternatives).remove(POSITIONAL);
        }
        self.positional = Some(Rc::new(items));
    }

    /// The positional parameters as a value.
    pub fn positional_value(&self) -> Option<Value> {
        let items = self.positional.as_ref()?;
        Some(Value::Array(items.iter().enumerate().map(|(i, item)| (i.to_string(), item.clone())).collect()))
    }

    /// All values that a variable may hold here.
    pub fn values(&self, name: &str) -> Vec<Value> {
        let first = if name == POSITIONAL { self.positional_value() } else { self.variables.get(name).cloned() };
        first.into_iter().chain(self.alternatives.get(name).cloned().unwrap_or_default()).collect()
    }

    /// Another directory that the shell may be in.
    pub fn may_be_in(&mut self, cwd: String) {
        if self.cwd != cwd && !self.other_cwds.contains(&cwd) && self.other_cwds.len() <= OTHERS {
            // Beyond that it may be anywhere.
            self.other_cwds.push(if self.other_cwds.len() < OTHERS { cwd } else { UNKNOWN.to_string() });
        }
    }

    /// Whether nothing differs that a further turn of a loop could see.
    pub fn same(&self, other: &Env) -> bool {
        fn equal<T: PartialEq>(a: &Rc<T>, b: &Rc<T>) -> bool {
            Rc::ptr_eq(a, b) || a == b
        }
        self.cwd == other.cwd
            && self.other_cwds == other.other_cwds
            && equal(&self.stack, &other.stack)
            && self.stdin == other.stdin
            && self.positional == other.positional
            && self.traps == other.traps
            && self.functions.len() == other.functions.len()
            && equal(&self.descriptors, &other.descriptors)
            && equal(&self.alternatives, &other.alternatives)
            && equal(&self.variables, &other.variables)
    }

    /// Joins all but the variables: either state may be the shell's.
    pub fn join_rest(&mut self, other: &Env) {
        for cwd in std::iter::once(&other.cwd).chain(&other.other_cwds) {
            self.may_be_in(cwd.clone());
        }
        if !Rc::ptr_eq(&self.stack, &other.stack) && self.stack != other.stack {
            Rc::make_mut(&mut self.stack).join(&other.stack);
        }
        if !Rc::ptr_eq(&self.functions, &other.functions) {
            self.join_functions(other);
        }
        if !Rc::ptr_eq(&self.exported, &other.exported) {
            Rc::make_mut(&mut self.exported).extend(other.exported.iter().cloned());
        }
        if !Rc::ptr_eq(&self.aliases, &other.aliases) {
            let aliases = Rc::make_mut(&mut self.aliases);
            for (name, text) in other.aliases.iter() {
                aliases.entry(name.clone()).or_insert_with(|| text.clone());
            }
        }
        if !Rc::ptr_eq(&self.attributes, &other.attributes) {
            // What only one of them cannot change may have been changed.
            let names: Vec<String> = self.attributes.keys().chain(other.attributes.keys()).cloned().collect();
            for name in names {
                let (mine, theirs) = (self.attributes_of(&name), other.attributes_of(&name));
                let joined = Attributes {
                    integer: mine.integer || theirs.integer,
                    letters: mine.letters.or(theirs.letters),
                    keys: mine.keys || theirs.keys,
                    readonly: mine.readonly && theirs.readonly,
                };
                if joined != mine {
                    Rc::make_mut(&mut self.attributes).insert(name, joined);
                }
            }
        }
        if self.traps != other.traps {
            let traps = Rc::make_mut(&mut self.traps);
            for text in other.traps.iter() {
                if !traps.contains(text) {
                    traps.push(text.clone());
                }
            }
        }
        // The input that was read less gives more to judge.
        let len = |stdin: &Option<Rc<str>>| stdin.as_ref().map_or(0, |text| text.len());
        if len(&other.stdin) > len(&self.stdin) {
            self.stdin = other.stdin.clone();
        }
        self.expand_aliases |= other.expand_aliases;
        self.on_return = self.on_return.take().or_else(|| other.on_return.clone());
    }

    fn join_functions(&mut self, other: &Env) {
        let names: Vec<String> = self.functions.keys().chain(other.functions.keys()).cloned().collect();
        let none = vec![None];
        for name in names {
            let theirs = other.functions.get(&name).unwrap_or(&none);
            let mine = Rc::make_mut(&mut self.functions).entry(name).or_insert_with(|| none.clone());
            for body in theirs {
                let known = mine.iter().any(|own| match (own, body) {
                    (Some(own), Some(body)) => Rc::ptr_eq(own, body),
                    (None, None) => true,
                    _ => false,
                });
                if !known && mine.len() < OTHERS {
                    mine.push(body.clone());
                }
            }
        }
    }

    /// One more value that a variable may hold; false where there are too many.
    pub fn add_alternative(&mut self, name: &str, value: Value) -> bool {
        let same = if name == POSITIONAL {
            self.positional_value().as_ref() == Some(&value)
        } else {
            self.variables.get(name) == Some(&value)
        };
        if same {
            return true;
        }
        let others = Rc::make_mut(&mut self.alternatives).entry(name.to_owned()).or_default();
        if others.contains(&value) {
            return true;
        }
        if others.len() >= ALTERNATIVES {
            return false;
        }
        others.push(value);
        true
    }

    pub fn set_text(&mut self, name: &str, value: impl Into<String>) {
        self.set(name, Value::Text(value.into()));
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let name = self.references.get(name).map_or(name, String::as_str);
        self.variables.get(name)
    }
}
