//! What a tool is, apart from how it runs.

use serde_json::Value;

pub use crate::call::Sensitivity;
use crate::facts::path::Access;

/// What a tool is, for models, policies and people.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: &'static str,
    /// For a model.
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub sensitivity: Sensitivity,
    /// The policy groups (`Action::"edit"`, ...) that the tool belongs to besides its sensitivity.
    pub groups: &'static [&'static str],
    /// Which arguments name something that facts are gathered of.
    pub subjects: &'static [Subject],
    /// The most bytes of output that are passed on.
    pub max_output: usize,
}

/// An argument whose value is more than text.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A path, and what the tool does with it.
    Path { argument: &'static str, access: Access },
    /// A directory that is read with everything below it.
    Tree { argument: &'static str },
    /// A shell command that the tool runs, confined.
    Command { argument: &'static str },
}

impl Subject {
    /// The argument that names a path, and what the tool does there.
    pub fn path(&self) -> Option<(&'static str, Access)> {
        match *self {
            Subject::Path { argument, access } => Some((argument, access)),
            Subject::Tree { argument } => Some((argument, Access::Read)),
            Subject::Command { .. } => None,
        }
    }
}
