//! The tools there are: lookup, coercion, validation, filtering, output limits.

use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::path::Access;
use crate::firewall::Cleared;

/// Whether a tool needs a confirmation under the default policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    Safe,
    Sensitive,
}

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
    /// A shell command that the tool runs, confined.
    Command { argument: &'static str },
}

/// A tool that the gateway can run.
pub trait Tool: Send + Sync {
    fn definition(&self) -> &Definition;

    /// Runs a call that the firewall cleared. Nothing else can be run: only the firewall makes a [`Cleared`].
    fn execute(&self, cleared: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>>;
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub text: String,
    /// The same as data, for callers that can take it.
    pub structured: Option<Value>,
    /// The tool ran and says that it failed (a command with a non-zero exit code, for one).
    pub is_error: bool,
}

/// Why a cleared call could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The tool did its best and failed; the text tells the model why and what to try.
    #[error("{0}")]
    Failed(String),
    #[error("the sandbox could not be set up: {0}")]
    Setup(String),
}
