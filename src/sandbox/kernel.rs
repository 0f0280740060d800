//! What this kernel can give.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use super::Tier;
use super::cgroup::Places;
use super::profile::Profile;

/// What the running kernel offers for confinement, found out by asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Landlock's ABI version, 0 where there is none (landlock_create_ruleset(2)).
    pub landlock_abi: u32,
    /// Bit n-1 is set where erratum n is fixed (`LANDLOCK_CREATE_RULESET_ERRATA`); 0 where the kernel cannot say.
    pub landlock_errata: u32,
    /// seccomp(2) filters, with the actions that ours use.
    pub seccomp: bool,
    /// prctl(2) `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privs: bool,
    /// Namespaces may be made: as root, or as an ordinary user through a user namespace.
    pub namespaces: bool,
    /// mount_setattr(2), which idmapped mounts need.
    pub idmapped_mounts: bool,
    /// Where control groups can be made.
    pub groups: Places,
    /// The strongest tier that these allow.
    pub strongest: Tier,
    /// The gateway's effective user is root.
    pub root: bool,
}

/// A layer of the confinement that a profile can require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Landlock {
        needs: u32,
        has: u32,
    },
    Seccomp,
    NoNewPrivs,
    /// The namespaces of a full tier, and what is known of why there are none.
    Namespaces {
        needs: Tier,
        why: &'static str,
    },
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layer::Landlock { needs, has: 0 } => write!(f, "landlock ABI {needs} (this kernel has no Landlock)"),
            Layer::Landlock { needs, has } => write!(f, "landlock ABI {needs} (this kernel has {has})"),
            Layer::Seccomp => f.write_str("seccomp filters"),
            Layer::NoNewPrivs => f.write_str("no_new_privs"),
            Layer::Namespaces { needs, why } => write!(f, "tier {} ({why})", needs.as_str()),
        }
    }
}

impl Kernel {
    /// Asks the kernel, once in the life of the process.
    pub fn probe() -> &'static Kernel {
        static KERNEL: OnceLock<Kernel> = OnceLock::new();
        KERNEL.get_or_init(|| {
            let mut kernel = Kernel {
                landlock_abi: landlock_version(0b01),
                landlock_errata: landlock_version(0b10),
                seccomp: seccomp_available(),
                no_new_privs: no_new_privs_available(),
                namespaces: namespaces_available(),
                idmapped_mounts: mount_setattr_available(),
                groups: Places::find(),
                strongest: Tier::Landlock,
                root: nix::unistd::geteuid().is_root(),
            };
            if kernel.namespaces && kernel.idmapped_mounts {
                kernel.strongest = if kernel.root { Tier::Full } else { Tier::FullUser };
            }
            kernel
        })
    }

    /// This kernel as if it could give at most a tier. It can only pretend less.
    pub fn with_tier_at_most(&self, tier: Tier) -> Kernel {
        Kernel { strongest: self.strongest.min(tier), ..self.clone() }
    }

    /// Why this kernel has no full tier, and what to do about it; `None` where it has.
    pub fn without_full(&self) -> Option<&'static str> {
        if self.strongest.is_full() {
            None
        } else if !self.idmapped_mounts {
            Some("this kernel has no mount_setattr(2): Linux 5.12 or later is needed")
        } else if self.root {
            Some(
                "root may not make namespaces here: a container needs the capabilities SYS_ADMIN and SETUID and all user ids",
            )
        } else if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_some_and(|n| n > 0) {
            Some(
                "AppArmor keeps this user from making user namespaces: give the binary a profile with `userns,`, or set \
                 kernel.apparmor_restrict_unprivileged_userns=0",
            )
        } else if number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
            Some("user namespaces are for root alone: set kernel.unprivileged_userns_clone=1")
        } else {
            Some("this user may make no user namespaces: raise user.max_user_namespaces")
        }
    }

    /// This kernel as if it had Landlock only up to an ABI. It can only pretend less.
    pub fn with_landlock_at_most(&self, abi: u32) -> Kernel {
        Kernel { landlock_abi: self.landlock_abi.min(abi), ..self.clone() }
    }

    /// This kernel as if it had no seccomp filters.
    pub fn without_seccomp(&self) -> Kernel {
        Kernel { seccomp: false, ..self.clone() }
    }

    /// What the profile requires and this kernel cannot give.
    pub fn missing(&self, profile: &Profile) -> Vec<Layer> {
        let mut missing = Vec::new();
        if profile.requires == Tier::None {
            return missing;
        }
        let needs = profile.landlock_abi.number();
        if self.landlock_abi < needs {
            missing.push(Layer::Landlock { needs, has: self.landlock_abi });
        }
        if !self.seccomp {
            missing.push(Layer::Seccomp);
        }
        if !self.no_new_privs {
            missing.push(Layer::NoNewPrivs);
        }
        if self.strongest < profile.requires {
            let why = self.without_full().unwrap_or("only root's gateway can give it");
            missing.push(Layer::Namespaces { needs: profile.requires, why });
        }
        missing
    }

    /// The tier that the profile gets here.
    pub fn tier(&self, profile: &Profile) -> Tier {
        let whole = self.landlock_abi >= profile.landlock_abi.number() && self.seccomp && self.no_new_privs;
        if whole { self.strongest.min(profile.at_most.max(Tier::Landlock)) } else { Tier::None }
    }

    /// What the confinement does not stop on this kernel, a sentence each, for `doctor` and the documentation.
    pub fn limitations(&self, profile: &Profile) -> Vec<&'static str> {
        let tier = self.tier(profile);
        let mut said = if tier.is_full() { Vec::new() } else { self.landlock_limitations(profile) };
        if tier.is_full() {
            said.push(if self.groups.hold_memory() {
                "disk space is watched, not held: a program that goes over its limit is ended a little late"
            } else {
                "memory and disk space are watched, not held: a program that goes over its limit is ended a little late"
            });
            if profile.filesystem.workspace == super::profile::Reach::Write {
                said.push(
                    "hooks and configuration can be written in repositories that are made inside, or that lie deeper in the \
                     workspace than one directory: hooks are put out of use after the call, the rest is told; so is agent \
                     configuration that was not there",
                );
            }
        }
        if self.landlock_abi < 6 {
            said.push("signals reach other processes of the same user (Landlock before ABI 6)");
        }
        if self.landlock_abi < 9 && profile.network.unix_sockets && !tier.is_full() {
            said.push("every Unix socket of the same user can be reached (Landlock before ABI 9)");
        }
        if !self.root && hands_out_dumps() {
            said.push(
                "the machine's handler of core dumps (`kernel.core_pattern`) gets those of programs: the gateway's hard limit \
                 of core dumps is 0, which it overrides; start the gateway with 1 or more",
            );
        }
        if profile.network.internet {
            said.push("any host and any service of this machine on TCP or UDP can be reached");
        }
        said
    }
}

impl Kernel {
    fn landlock_limitations(&self, profile: &Profile) -> Vec<&'static str> {
        let mut said = vec![
            "processes of this machine are visible by name and arguments (/proc); their environment and memory are not",
            "mode and times of any file that the gateway's user owns can be changed, and any directory be watched for names",
            "`/tmp` and `/dev/shm` are closed: programs use $TMPDIR, POSIX semaphores and shared memory fail",
            "memory and disk space are not limited, but for the size of a file",
            "no pseudo-terminals: `/dev/pts` holds the terminals of other programs too",
        ];
        if profile.filesystem.workspace == super::profile::Reach::Write {
            said.push(
                "`.git/hooks`, `.git/config` and agent configuration in the workspace can be written: executable hooks are \
                 put out of use after the call, the rest is told",
            );
        }
        if self.root {
            said.push(
                "programs keep uid 0, without any capability: they may change mode and times of every file of root's",
            );
            said.push("the number of processes is not limited for uid 0: a fork bomb ends with the time limit");
        }
        said
    }
}

/// landlock_create_ruleset(2) with a query flag; 0 where it errs.
fn landlock_version(flag: u32) -> u32 {
    // SAFETY: with a query flag, no attribute and size 0 the call only returns a number.
    let answer =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, flag) };
    u32::try_from(answer).unwrap_or(0)
}

fn seccomp_available() -> bool {
    [libc::SECCOMP_RET_ERRNO, libc::SECCOMP_RET_KILL_PROCESS].iter().all(|action| {
        // SAFETY: SECCOMP_GET_ACTION_AVAIL reads the four bytes of the action and changes nothing.
        let answer = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, action) };
        answer == 0
    })
}

fn no_new_privs_available() -> bool {
    // SAFETY: PR_GET_NO_NEW_PRIVS takes no pointer and changes nothing.
    unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0 }
}

fn mount_setattr_available() -> bool {
    // SAFETY: an invalid descriptor with a null attribute of size 0 fails before anything is read or changed.
    let answer = unsafe {
        libc::syscall(libc::SYS_mount_setattr, -1, c"".as_ptr(), 0u32, std::ptr::null::<libc::c_void>(), 0usize)
    };
    answer == 0 || nix::errno::Errno::last() != nix::errno::Errno::ENOSYS
}

fn number(file: &str) -> Option<u64> {
    std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok())
}

/// Whether a program's core dump goes to a handler in spite of the limits that this process can set.
fn hands_out_dumps() -> bool {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE);
    pattern.starts_with(['|', '@']) && limit.is_ok_and(|(_, hard)| hard == 0)
}

/// Looks at what the kernel says of itself; `doctor` tries.
fn namespaces_available() -> bool {
    if nix::unistd::geteuid().is_root() {
        return Path::new("/proc/self/ns/pid").exists() && is_admin() && has_all_users();
    }
    number("/proc/sys/user/max_user_namespaces").is_some_and(|n| n > 0)
        && number("/proc/sys/kernel/unprivileged_userns_clone").is_none_or(|n| n > 0)
        && number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_none_or(|n| n == 0)
}

/// The effective capabilities that the full tier uses as root.
fn is_admin() -> bool {
    const CHOWN: u64 = 1 << 0;
    const SETGID: u64 = 1 << 6;
    const SETUID: u64 = 1 << 7;
    const SETPCAP: u64 = 1 << 8;
    const SYS_ADMIN: u64 = 1 << 21;
    const NEEDED: u64 = CHOWN | SETGID | SETUID | SETPCAP | SYS_ADMIN;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|has| has & NEEDED == NEEDED)
}

/// Whether this user namespace is the first one, or one that has all user ids.
fn has_all_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mut words = map.split_whitespace().map(str::parse::<u64>);
    matches!((words.next(), words.next(), words.next()), (Some(Ok(0)), Some(Ok(_)), Some(Ok(n))) if n >= u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profiles::Profiles;

    #[test]
    fn i5_what_the_kernel_cannot_give_is_named() {
        let profiles = Profiles::built_in().unwrap();
        let profile = profiles.get("workspace-write").unwrap();
        let whole = Kernel {
            landlock_abi: 7,
            landlock_errata: 0,
            seccomp: true,
            no_new_privs: true,
            namespaces: true,
            idmapped_mounts: true,
            groups: Places::default(),
            strongest: Tier::Full,
            root: true,
        };
        let facts = profile.facts(&whole);
        assert_eq!((facts.offers, facts.missing.as_slice()), (Tier::Full, [].as_slice()));
        let facts = profile.facts(&whole.with_tier_at_most(Tier::Landlock));
        assert_eq!((facts.offers, facts.missing.as_slice()), (Tier::Landlock, [].as_slice()), "the profile allows it");
        let strict = Profile { requires: Tier::Full, ..(**profile).clone() };
        assert_eq!(strict.facts(&whole.with_tier_at_most(Tier::FullUser)).missing.len(), 1);
        let weaker = Profile { at_most: Tier::Landlock, ..(**profile).clone() };
        assert_eq!(weaker.facts(&whole).offers, Tier::Landlock);
        let facts = profile.facts(&whole.with_landlock_at_most(3).without_seccomp());
        assert_eq!(facts.offers, Tier::None);
        assert_eq!(facts.missing, ["landlock ABI 6 (this kernel has 3)", "seccomp filters"]);
        let facts = profile.facts(&whole.with_landlock_at_most(0));
        assert_eq!(facts.missing, ["landlock ABI 6 (this kernel has no Landlock)"]);
        assert_eq!(whole.with_landlock_at_most(99).landlock_abi, 7, "a kernel pretended more than it has");
    }
}
