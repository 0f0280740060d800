//! Where the paths of a call land. Resolution goes through `openat2(2)` under a handle of the workspace; the tool later
//! works on the very handle that was checked, never on the name again.

mod arguments;
mod beyond;
mod gather;
mod ground;
mod handle;
mod kernel;
mod listing;
mod mounts;
mod name;
mod predict;
mod protection;
mod resolver;
mod walk;
mod wards;

use serde::{Deserialize, Serialize};

pub use self::arguments::{ArgumentPath, path_arguments};
pub use self::beyond::beyond;
pub use self::gather::{Handles, Place, gather};
pub use self::ground::GroundError;
pub use self::handle::{Handle, HandleError, Stamp};
pub use self::kernel::Kind;
pub use self::protection::{Guarded, ProtectedRule, Protection, ProtectionError, standard_rules};
pub use self::resolver::Resolver;
pub use self::walk::{Entry, Opened, Walk};
pub use self::wards::{Hold, Ward, Wards};
use crate::facts::Scope;

/// What [`PathFact::argument`] says of a path inside a command.
pub const COMMAND: &str = "command";

/// What a call wants to do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Read,
    Write,
    Delete,
    Execute,
}

impl Access {
    /// Whether the access changes what it touches.
    pub fn changes(self) -> bool {
        matches!(self, Access::Write | Access::Delete)
    }
}

/// One path of a call and where it lands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFact {
    /// The argument that named it, or `command` for a path inside a command.
    pub argument: String,
    /// The path as it was given.
    pub given: String,
    pub access: Access,
    pub scope: Scope,
    /// Where it lands after symbolic links, relative to the workspace where it is inside. Absent for every place
    /// outside, so that the answer does not tell what exists there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lands: Option<String>,
    /// The protected glob that it matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<Protected>,
    /// Why it cannot be used at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What could not be looked at because a limit was hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
}

impl PathFact {
    /// Where it lands, should that not be what was given, word for word.
    pub fn elsewhere(&self) -> Option<&str> {
        let given = self.given.strip_prefix("./").unwrap_or(&self.given);
        self.lands.as_deref().filter(|lands| *lands != given.trim_end_matches('/'))
    }
}

/// A protected path's rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    pub glob: String,
    pub action: ProtectedAction,
}

/// What happens to a call that touches a protected path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtectedAction {
    Ask,
    Deny,
}
