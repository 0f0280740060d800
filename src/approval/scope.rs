//! How far a grant reaches.

use serde::{Deserialize, Serialize};

/// What a grant covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "covers", rename_all = "kebab-case")]
pub enum Scope {
    /// The call that asked, once.
    Call,
    /// The same call for the rest of the session.
    Same,
    /// In the session, commands that begin with these words.
    Prefix { words: Vec<String> },
}
