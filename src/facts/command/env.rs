//! What a shell knows at a point of the script.

use std::collections::HashMap;
use std::rc::Rc;

use super::syntax::Command;

/// The state that subshells copy. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Env {
    pub variables: Rc<HashMap<String, Value>>,
    /// Other values that variables may hold, where branches that may or may not have run left them different.
    pub alternatives: Rc<HashMap<String, Vec<Value>>>,
    /// `declare -n`: names that stand for other names.
    pub references: Rc<HashMap<String, String>>,
    pub functions: Rc<HashMap<String, Rc<Command>>>,
    pub aliases: Rc<HashMap<String, String>>,
    /// The working directory, as abstract text.
    pub cwd: String,
    /// Where the shell would still be if the last `cd` failed.
    pub cwd_if_failed: Option<String>,
    pub old_cwd: Option<String>,
    /// `None` in the outermost script, whose parameters nobody knows.
    pub positional: Option<Rc<Vec<String>>>,
    /// What standard input holds, where that is known to be redirected.
    pub stdin: Option<Rc<str>>,
    /// What other descriptors hold.
    pub descriptors: Rc<HashMap<u32, String>>,
    /// Inside a container: where host directories are mounted, as (inside, on the host).
    pub mounts: Option<Rc<Vec<(String, String)>>>,
    /// Commands that run when this shell ends.
    pub traps: Rc<Vec<String>>,
    pub expand_aliases: bool,
    /// On another machine: what is read and run there is not this machine's.
    pub remote: bool,
}

/// How many other values of a variable are followed.
const ALTERNATIVES: usize = 8;

/// The variables at a point of the script.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub variables: Rc<HashMap<String, Value>>,
    pub alternatives: Rc<HashMap<String, Vec<Value>>>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
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
            functions: Rc::default(),
            aliases: Rc::default(),
            cwd,
            cwd_if_failed: None,
            old_cwd: None,
            positional: None,
            stdin: None,
            descriptors: Rc::default(),
            mounts: None,
            traps: Rc::default(),
            expand_aliases: false,
            remote: false,
        }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
        if self.alternatives.contains_key(name) {
            Rc::make_mut(&mut self.alternatives).remove(name);
        }
    }

    pub fn held(&self) -> Held {
        Held { variables: Rc::clone(&self.variables), alternatives: Rc::clone(&self.alternatives) }
    }

    pub fn hold(&mut self, held: Held) {
        self.variables = held.variables;
        self.alternatives = held.alternatives;
    }

    /// One more value that a variable may hold; false where there are too many.
    pub fn add_alternative(&mut self, name: &str, value: Value) -> bool {
        if self.variables.get(name) == Some(&value) {
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
