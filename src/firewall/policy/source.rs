//! A text of policies, and who stands behind it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A file of policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The path, or another name that tells a person where to look.
    pub name: Arc<str>,
    pub text: Arc<str>,
    pub trust: Trust,
}

/// Who stands behind a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The operator, or this program itself: anything goes.
    Operator,
    /// A workspace: it may only tighten, so it may only forbid.
    Workspace,
}

impl Source {
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>, trust: Trust) -> Self {
        Source { name: name.into(), text: text.into(), trust }
    }
}
