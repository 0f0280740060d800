//! Confinement of programs: [`Profile`]s say what a program may touch, [`Kernel`] what this machine can give, a [`Plan`]
//! puts the two together for one place, and the [`Launcher`] runs a program under it.
//!
//! There are two kinds of tier. *landlock*: Landlock, seccomp, no_new_privs, no capabilities, resource limits. *full* puts
//! namespaces, a minimal root directory and a user that nobody else is around the same; *full-user* does so for a gateway
//! that is not root, in a user namespace. What a tier does not stop is said by [`Kernel::limitations`]. The order of the
//! steps stands in `helper/mod.rs` and `helper/confine.rs`.

mod capture;
mod cgroup;
mod denials;
mod helper;
mod kernel;
mod launch;
mod leftovers;
mod plan;
mod profile;
mod profiles;
mod pty;
mod scratch;
mod seccomp;
mod streams;
mod terminal;
mod toolchains;
mod wire;

use serde::{Deserialize, Serialize};

pub use self::capture::Capture;
pub use self::denials::Denial;
pub use self::helper::{HELPER_ARGUMENT, helper_main};
pub use self::kernel::{Kernel, Layer};
pub(crate) use self::launch::NOT_ALL_KEPT;
pub use self::launch::{Conversation, End, LaunchError, Launcher, Outcome, Program};
pub use self::leftovers::Leftover;
pub use self::plan::{Host, Plan, PlanError};
pub(crate) use self::profile::is_dangerous;
pub use self::profile::{
    DEFAULT_PROFILE, Environment, Filesystem, GrantPath, LandlockAbi, Limits, Network, Process, Profile, ProfileError,
    Reach, WhenMissing,
};
pub use self::profiles::Profiles;
pub(crate) use self::scratch::purge;
pub use self::streams::Streams;

/// How strongly a kernel can confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// No confinement.
    None,
    /// Landlock, seccomp, no_new_privs, rlimits, no capabilities.
    Landlock,
    /// As `Full`, in a user namespace of the gateway's own user: the kernel sees that user.
    FullUser,
    /// All of `Landlock` inside namespaces of its own, with a minimal root, as a user that nobody else is.
    Full,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::None => "none",
            Tier::Landlock => "landlock",
            Tier::FullUser => "full-user",
            Tier::Full => "full",
        }
    }

    /// Whether programs have namespaces and a root directory of their own.
    pub fn is_full(self) -> bool {
        self >= Tier::FullUser
    }
}
