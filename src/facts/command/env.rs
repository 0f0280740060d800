//! What a shell knows at a point of the script.

use std::collections::HashMap;
use std::rc::Rc;

use super::syntax::Command;

/// The state that subshells copy. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Env {
    pub variables: Rc<HashMap<String, Value>>,
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
    }

    pub fn set_text(&mut self, name: &str, value: impl Into<String>) {
        self.set(name, Value::Text(value.into()));
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        let name = self.references.get(name).map_or(name, String::as_str);
        self.variables.get(name)
    }
}
