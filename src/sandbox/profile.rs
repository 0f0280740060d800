//! Profiles: named confinements, written in TOML. The gateway brings some; a user's directory adds and replaces by
//! name; what lies in a workspace may only narrow. How files become profiles: `profiles.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Tier;
use super::kernel::{Kernel, Layer};
use crate::call::Digest;
use crate::facts::SandboxFacts;

/// The profile that a program runs in when nothing else is configured.
pub const DEFAULT_PROFILE: &str = "workspace-write";

/// A confinement: what a program may touch, how much it may use, what it gets to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    pub name: String,
    /// For people; says what the profile cannot do as well.
    pub description: String,
    /// The weakest tier that will do.
    pub requires: Tier,
    /// The strongest tier that is tried: `landlock` does without namespaces even where there are some.
    #[serde(default = "strongest")]
    pub at_most: Tier,
    /// The lowest Landlock ABI that will do: 3 stops truncation, 4 TCP, 6 signals and abstract sockets across the
    /// sandbox's border (landlock(7)).
    pub landlock_abi: LandlockAbi,
    /// What becomes of a call where this kernel cannot give what the profile requires.
    #[serde(default)]
    pub when_missing: WhenMissing,
    pub filesystem: Filesystem,
    pub network: Network,
    pub process: Process,
    pub limits: Limits,
    pub environment: Environment,
    /// Directories that last from call to call, one set for each workspace: variable to name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caches: BTreeMap<String, CacheName>,
}

/// The name of a directory, without a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CacheName(String);

impl CacheName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CacheName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(format!("`{name}` is no name of a cache: use letters, digits, `-` and `_`"));
        }
        Ok(CacheName(name))
    }
}

impl From<CacheName> for String {
    fn from(name: CacheName) -> String {
        name.0
    }
}

fn three_gigabytes() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add((3 << 30) - 1)
}

fn ten_gigabytes() -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add((10 << 30) - 1)
}

fn strongest() -> Tier {
    Tier::Full
}

/// A Landlock ABI version that confines at all: 3 or more, for before it a file outside could be truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct LandlockAbi(u32);

impl LandlockAbi {
    pub const LOWEST: u32 = 3;

    pub fn number(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for LandlockAbi {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, Self::Error> {
        if number < Self::LOWEST {
            return Err(format!("ABI {number} cannot stop programs from truncating files outside: use 3 or more"));
        }
        Ok(LandlockAbi(number))
    }
}

impl From<LandlockAbi> for u32 {
    fn from(abi: LandlockAbi) -> u32 {
        abi.0
    }
}

/// What happens where a required layer is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenMissing {
    /// A reviewer is asked.
    Ask,
    #[default]
    Deny,
}

/// What a program may touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Filesystem {
    pub workspace: Reach,
    /// Read and executed where they exist.
    pub system: Vec<GrantPath>,
    /// Read and executed; that one is absent is an error.
    #[serde(default)]
    pub read: Vec<GrantPath>,
    /// Read, executed and written; that one is absent is an error.
    #[serde(default)]
    pub write: Vec<GrantPath>,
}

/// How far a program reaches into the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    Read,
    Write,
}

/// A path that a profile grants: absolute or under `~/`, without `..`; a last component that ends in `*` stands for
/// every name that begins so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrantPath(String);

impl GrantPath {
    /// The paths it stands for, with `~` as `home`. Only a `*` looks at the file system.
    pub fn resolve(&self, home: &Path) -> Vec<PathBuf> {
        let path = match self.0.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => PathBuf::from(&self.0),
        };
        match self.0.strip_suffix('*') {
            Some(_) => siblings_with_prefix(&path),
            None => vec![path],
        }
    }

    /// What follows `~/`, in a path of the home directory that stands for itself alone.
    pub fn in_home(&self) -> Option<&str> {
        self.0.strip_prefix("~/").filter(|rest| !rest.ends_with('*'))
    }

    fn covers(&self, other: &GrantPath) -> bool {
        !self.0.ends_with('*') && Path::new(&other.0).starts_with(&self.0) || self.0 == other.0
    }
}

fn siblings_with_prefix(pattern: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (pattern.parent(), pattern.file_name().and_then(|n| n.to_str())) else {
        return Vec::new();
    };
    let prefix = name.trim_end_matches('*');
    let mut found: Vec<PathBuf> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|n| n.starts_with(prefix)))
        .map(|entry| entry.path())
        .collect();
    found.sort_unstable();
    found
}

impl TryFrom<String> for GrantPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if !text.starts_with('/') && !text.starts_with("~/") {
            return Err(format!("`{text}` is no absolute path: start it with `/` or `~/`"));
        }
        if text.split('/').any(|part| part == ".." || part == ".") {
            return Err(format!("`{text}` has a `.` or `..` in it: write the path out"));
        }
        if text.bytes().any(|b| b == 0) {
            return Err("a path cannot hold a NUL".to_owned());
        }
        let stem = text.trim_end_matches('/').to_owned();
        if stem.is_empty() || stem == "~" {
            return Err(format!("`{text}` would grant everything: name the directories that are needed"));
        }
        if let Some(star) = stem.find('*')
            && (star + 1 != stem.len() || stem.ends_with("/*"))
        {
            return Err(format!("`{text}`: a `*` can only end the last name, as in `/etc/java-*`"));
        }
        Ok(GrantPath(stem))
    }
}

impl From<GrantPath> for String {
    fn from(path: GrantPath) -> String {
        path.0
    }
}

/// Whom a program may talk to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Network {
    /// TCP and UDP, to anywhere, this machine included.
    pub internet: bool,
    /// Unix sockets besides `socketpair`.
    #[serde(default)]
    pub unix_sockets: bool,
}

/// What programs may do to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Process {
    /// ptrace(2) and its like within the sandbox, for debuggers and leak checkers.
    #[serde(default)]
    pub trace: bool,
}

/// How much a program may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// The longest a call may ask for, in seconds.
    pub wall_seconds: NonZeroU64,
    /// Processor time of each process, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<NonZeroU64>,
    /// The largest file that can be written.
    pub file_bytes: u64,
    /// Open files of each process.
    pub open_files: NonZeroU64,
    /// Processes and threads on top of what the machine runs when the program starts; the kernel does not hold uid 0
    /// to it (setrlimit(2), `RLIMIT_NPROC`).
    pub processes: NonZeroU64,
    /// Memory of all processes together, with what they keep in /tmp, /dev/shm and $HOME. In the full tiers, as is the
    /// next.
    #[serde(default = "three_gigabytes")]
    pub memory_bytes: NonZeroU64,
    /// Bytes that may be added to the file system that holds the workspace.
    #[serde(default = "ten_gigabytes")]
    pub disk_bytes: NonZeroU64,
    /// Bytes kept of each output stream, half from its beginning and half from its end.
    pub output_bytes: NonZeroU64,
}

/// What a program gets to know of the gateway's environment: nothing, but for these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Environment {
    /// Names that pass; `*` stands for any characters.
    pub pass: Vec<String>,
    /// Names that never pass, whatever `pass` says.
    #[serde(default)]
    pub never: Vec<String>,
    /// Variables set to a value of their own.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// Why a profile cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("{}:{line}:{column}: {message}", file.display())]
    Invalid { file: PathBuf, line: usize, column: usize, message: String },
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable { file: PathBuf, source: std::io::Error },
    #[error("{}: profile `{name}` is defined twice in this directory", file.display())]
    Twice { file: PathBuf, name: String },
    #[error("{}: profile `{name}` extends itself", file.display())]
    Circle { file: PathBuf, name: String },
    #[error("there is no sandbox profile `{name}`: there are {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
}

impl Profile {
    /// The digest over everything the profile says.
    pub fn digest(&self) -> Digest {
        // A profile is plain data with string keys, so it has a JSON form; without one, its debug form is as exact.
        serde_json::to_value(self).map_or_else(|_| Digest::of(format!("{self:?}")), |value| Digest::of_json(&value))
    }

    /// What this kernel gives of the profile.
    pub fn facts(&self, kernel: &Kernel) -> SandboxFacts {
        SandboxFacts {
            profile: self.name.clone(),
            requires: self.requires,
            offers: kernel.tier(self),
            network: self.network.internet,
            missing: kernel.missing(self).iter().map(Layer::to_string).collect(),
            ask_when_missing: self.when_missing == WhenMissing::Ask,
        }
    }

    /// This profile cut down to what `by` allows as well: never wider than either, under this profile's name. Variables
    /// that `by` sets are not taken over.
    pub fn narrowed(&self, by: &Profile) -> Profile {
        let (mine, theirs) = (&self.filesystem, &by.filesystem);
        Profile {
            name: self.name.clone(),
            description: self.description.clone(),
            requires: self.requires.max(by.requires),
            at_most: self.at_most.max(by.at_most),
            landlock_abi: self.landlock_abi.max(by.landlock_abi),
            when_missing: self.when_missing.max(by.when_missing),
            filesystem: Filesystem {
                workspace: mine.workspace.min(theirs.workspace),
                system: common(&mine.system, &theirs.readable()),
                read: common(&mine.read, &theirs.readable()),
                write: common(&mine.write, &theirs.write),
            },
            network: Network {
                internet: self.network.internet && by.network.internet,
                unix_sockets: self.network.unix_sockets && by.network.unix_sockets,
            },
            process: Process { trace: self.process.trace && by.process.trace },
            limits: self.limits.narrowed(&by.limits),
            environment: self.environment.narrowed(&by.environment),
            caches: self.caches.iter().filter(|(k, v)| by.caches.get(*k) == Some(v)).map(owned).collect(),
        }
    }
}

fn owned((variable, name): (&String, &CacheName)) -> (String, CacheName) {
    (variable.clone(), name.clone())
}

impl Filesystem {
    fn readable(&self) -> Vec<GrantPath> {
        self.system.iter().chain(&self.read).chain(&self.write).cloned().collect()
    }
}

impl Limits {
    fn narrowed(&self, by: &Limits) -> Limits {
        Limits {
            wall_seconds: self.wall_seconds.min(by.wall_seconds),
            cpu_seconds: match (self.cpu_seconds, by.cpu_seconds) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            file_bytes: self.file_bytes.min(by.file_bytes),
            open_files: self.open_files.min(by.open_files),
            processes: self.processes.min(by.processes),
            memory_bytes: self.memory_bytes.min(by.memory_bytes),
            disk_bytes: self.disk_bytes.min(by.disk_bytes),
            output_bytes: self.output_bytes.min(by.output_bytes),
        }
    }
}

impl Environment {
    fn narrowed(&self, by: &Environment) -> Environment {
        // A pattern that another pattern matches, letter by letter, stands for no name that the other does not.
        let within = |inner: &&String, outer: &[String]| outer.iter().any(|o| wildcard(o, inner));
        let mut pass: Vec<String> = self.pass.iter().filter(|p| within(p, &by.pass)).cloned().collect();
        pass.extend(by.pass.iter().filter(|p| within(p, &self.pass) && !self.pass.contains(p)).cloned());
        let mut never = self.never.clone();
        never.extend(by.never.iter().filter(|n| !self.never.contains(n)).cloned());
        Environment { pass, never, set: self.set.clone() }
    }

    /// Whether a variable of the gateway's environment passes.
    pub fn passes(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|p| wildcard(p, name));
        any(&self.pass) && !any(&self.never) && !is_dangerous(name)
    }
}

/// Paths that both lists grant: what lies under a path of the other list.
fn common(a: &[GrantPath], b: &[GrantPath]) -> Vec<GrantPath> {
    let mut both: Vec<GrantPath> = a.iter().filter(|p| b.iter().any(|o| o.covers(p))).cloned().collect();
    both.extend(b.iter().filter(|p| a.iter().any(|o| o.covers(p)) && !a.contains(p)).cloned());
    both.dedup();
    both
}

/// Variables that make a loader, a shell or an interpreter run something, or that are the gateway's own: they pass from
/// no environment, whatever a profile says.
pub(super) fn is_dangerous(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "BASH_ENV",
        "ENV",
        "BASHOPTS",
        "SHELLOPTS",
        "PS4",
        "PROMPT_COMMAND",
        "IFS",
        "CDPATH",
        "GLOBIGNORE",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "PERL5LIB",
        "PERL5OPT",
        "PERLLIB",
        "RUBYOPT",
        "RUBYLIB",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "GOFLAGS",
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
        "CARGO_BUILD_RUSTC_WRAPPER",
        "GCONV_PATH",
        "GETCONF_DIR",
        "HOSTALIASES",
        "LOCPATH",
        "MALLOC_TRACE",
        "NLSPATH",
        "RESOLV_HOST_CONF",
        "RES_OPTIONS",
        "LUA_INIT",
        "LUA_PATH",
        "LUA_CPATH",
        "SSH_AUTH_SOCK",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "TMUX",
        "KUBECONFIG",
    ];
    const PREFIXES: &[&str] =
        &["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG", "GIT_SSH", "GIT_EXEC", "PORTCULLIS_", "GLIBC_"];
    NAMES.contains(&name) || PREFIXES.iter().any(|p| name.starts_with(p))
}

/// Whether a pattern in which `*` stands for any characters matches the whole of a text.
fn wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profiles::Profiles;

    fn built_in(name: &str) -> Profile {
        (**Profiles::built_in().unwrap().get(name).unwrap()).clone()
    }

    #[test]
    fn no_built_in_profile_grants_a_directory_that_holds_secrets() {
        for profile in Profiles::built_in().unwrap().iter() {
            for path in &profile.filesystem.system {
                for secret in [
                    "/etc/shadow",
                    "/etc/gshadow",
                    "/etc/sudoers",
                    "/etc/ssh/ssh_host_ed25519_key",
                    "/etc/ssl/private/key",
                    "/etc/pki/tls/private/key",
                    "/root/.ssh/id",
                    "~/.ssh/id",
                    "~/.aws/credentials",
                    "~/.cargo/credentials.toml",
                    "/tmp/x",
                    "/run/user/0/bus",
                    "/dev/vda",
                    "/home/someone/x",
                    "/var/lib/x",
                ] {
                    let secret = GrantPath::try_from(secret.to_owned()).unwrap();
                    assert!(!path.covers(&secret), "{}: {path:?} grants {secret:?}", profile.name);
                }
            }
        }
    }

    #[test]
    fn narrowing_never_widens_either() {
        let mut wide = built_in("network");
        wide.filesystem.write = vec![GrantPath("/data".into())];
        let mut other = built_in("read-only");
        other.filesystem.write = vec![GrantPath("/data/in".into()), GrantPath("/else".into())];
        other.filesystem.system = vec![GrantPath("/usr/bin".into()), GrantPath("/root".into())];
        other.environment.pass = vec!["*".into()];
        other.environment.never.push("LANG".into());
        other.environment.set.insert("X".into(), "1".into());
        for (a, b) in [(&wide, &other), (&other, &wide)] {
            let both = a.narrowed(b);
            assert_eq!(both.filesystem.workspace, Reach::Read);
            assert!(!both.network.internet && !both.process.trace);
            assert_eq!(both.filesystem.write, [GrantPath("/data/in".into())]);
            assert_eq!(both.filesystem.system, [GrantPath("/usr/bin".into())]);
            assert_eq!(both.limits.wall_seconds.get(), 300);
            assert!(both.environment.passes("TERM") && both.environment.passes("LC_ALL"));
            assert!(
                !both.environment.passes("LANG") && !both.environment.passes("OTHER"),
                "the other's list was ignored"
            );
            assert_eq!(both.environment.set, a.environment.set, "the narrowing profile set a variable");
        }
    }

    #[test]
    fn secrets_and_loader_variables_never_pass() {
        let mut profile = built_in(DEFAULT_PROFILE);
        profile.environment.pass = vec!["*".into()];
        for name in [
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "OPENAI_API_KEY",
            "LD_PRELOAD",
            "BASH_ENV",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PORTCULLIS_STATE",
            "BASH_FUNC_ls%%",
            "SSH_AUTH_SOCK",
            "GIT_CONFIG_COUNT",
        ] {
            assert!(!profile.environment.passes(name), "{name} passed");
        }
        assert!(profile.environment.passes("LANG"));
    }

    #[test]
    fn wildcards() {
        for (pattern, text, yes) in [
            ("LC_*", "LC_ALL", true),
            ("LC_*", "XLC_ALL", false),
            ("*KEY*", "MY_KEY_2", true),
            ("*_PAT", "GH_PAT", true),
            ("*_PAT", "PATH", false),
            ("A", "A", true),
            ("A", "AB", false),
            ("A*B", "AB", true),
            ("A*B", "ABC", false),
            ("*", "", true),
            ("A*A", "A", false),
            ("LC_*", "LC_*", true),
        ] {
            assert_eq!(wildcard(pattern, text), yes, "{pattern} on {text}");
        }
    }
}
