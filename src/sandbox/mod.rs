//! Confinement of programs: [`Profile`]s say what a program may touch, [`Kernel`] what this machine can give, a [`Plan`]
//! puts the two together for one place, and the [`Launcher`] runs a program under it.
//!
//! There is one tier so far, *landlock*: Landlock, seccomp, no_new_privs, no capabilities, resource limits. What it does
//! not stop is said by [`Kernel::limitations`]. The order of the steps stands in `helper/confine.rs`; what makes mounts
//! and namespaces belongs before the Landlock layers are built there.

mod capture;
mod helper;
mod kernel;
mod launch;
mod plan;
mod profile;
mod scratch;
mod seccomp;
mod wire;

use serde::{Deserialize, Serialize};

pub use self::capture::Capture;
pub use self::helper::{HELPER_ARGUMENT, helper_main};
pub use self::kernel::{Kernel, Layer};
pub use self::launch::{End, LaunchError, Launcher, Outcome, Program, Streams};
pub use self::plan::{Host, Plan, PlanError};
pub(crate) use self::scratch::purge;
pub use self::profile::{
    DEFAULT_PROFILE, Environment, Filesystem, GrantPath, LandlockAbi, Limits, Network, Process, Profile, ProfileError,
    Profiles, Reach, WhenMissing,
};

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
