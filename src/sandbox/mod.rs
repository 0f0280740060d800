//! Confinement of programs: profiles, what this kernel offers, and the launcher.

use serde::{Deserialize, Serialize};

/// How strongly a kernel can confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// No confinement.
    None,
    /// Landlock, seccomp, no_new_privs, rlimits, no capabilities.
    Landlock,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::None => "none",
            Tier::Landlock => "landlock",
        }
    }
}
