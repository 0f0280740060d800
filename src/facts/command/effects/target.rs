//! What a path operand stands for: the root, a system directory, a whole home, a disk, the workspace, ...

use std::path::{Component, Path};

use super::listed::{AUTH, CREDENTIALS, CREDENTIALS_ABSOLUTE, CRITICAL, DISKS, HISTORY, STARTUP, STARTUP_ABSOLUTE};
use super::places::{HARMLESS, SYSTEM_DIRS, TOP};
use crate::facts::Surroundings;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{
    STAR, UNKNOWN, has_glob, has_unknown, is_glob, is_known, is_unknown, matches,
};

/// Declares the kinds of target with the names that packs use.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// A kind of target. A path can be several at once.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind { $($(#[$doc])* $name),* }

        impl Kind {
            const ALL: &[(Kind, &str)] = &[$((Kind::$name, $text)),*];
        }
    };
}

kinds! {
    /// `/` itself, all that lies directly in it, or an unknown child of it.
    Root = "root",
    /// A directory that the system cannot do without, or all that lies in it.
    SystemDir = "system-dir",
    /// Anything in the operating system's directories.
    System = "system",
    /// A single file that the system cannot do without.
    Critical = "critical",
    /// A whole home directory.
    Home = "home",
    /// Something below the home directory.
    HomePart = "home-part",
    /// The whole workspace.
    Workspace = "workspace",
    WorkspacePart = "workspace-part",
    Temp = "temp",
    /// A block device.
    Disk = "disk",
    /// The root of a mounted drive, or a whole user tree on it.
    Drive = "drive",
    /// Keys, tokens, password files.
    Credential = "credential",
    /// Files that run at start or log-in.
    Startup = "startup",
    /// Who may become whom: sudoers, passwd, shadow, PAM.
    Auth = "auth",
    /// A shell's history.
    History = "history",
    /// A repository's own data.
    Git = "git",
    /// Switches of the kernel: `/proc/sysrq-trigger`, `/proc/sys`, `/sys`.
    Kernel = "kernel",
    /// `/proc/sysrq-trigger`.
    Sysrq = "sysrq",
    /// System directories that administrators own: `/usr/local`, `/var/www`, `/opt`, `/srv`.
    Local = "local",
    /// The gateway's own files.
    Gateway = "gateway",
    /// A directory that the gateway's own files lie in.
    GatewayHolder = "gateway-holder",
    /// `/dev/tcp/host/port` and `/dev/udp/host/port` of bash.
    Network = "network",
    /// The inside of a container.
    Container = "container",
    /// The root of a container, or a directory that it cannot do without.
    ContainerRoot = "container-root",
    Outside = "outside",
    Unknown = "unknown",
    /// A file of a project that holds secrets: its environment, a private key, the state of its infrastructure.
    DotEnv = "dot-env",
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u32);

impl Kinds {
    pub const fn of(kind: Kind) -> Self {
        Kinds(1 << kind as u8)
    }

    pub const fn and(self, kind: Kind) -> Self {
        Kinds(self.0 | 1 << kind as u8)
    }

    pub const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    pub const fn union(self, other: Kinds) -> Self {
        Kinds(self.0 | other.0)
    }

    /// The set of a pack's names; the name that does not exist otherwise.
    pub fn parse(names: &[String]) -> Result<Self, String> {
        let mut kinds = Kinds::default();
        for name in names {
            match Kind::ALL.iter().find(|(_, text)| text == name) {
                Some((kind, _)) => kinds = kinds.and(*kind),
                None => return Err(name.clone()),
            }
        }
        Ok(kinds)
    }

    /// Every name that packs may use.
    pub fn names() -> Vec<&'static str> {
        Kind::ALL.iter().map(|(_, text)| *text).collect()
    }

    /// The names of the kinds in it.
    pub fn listed(self) -> Vec<&'static str> {
        Kind::ALL.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, text)| *text).collect()
    }

    /// Losing it destroys a system, a home or a drive.
    pub const fn fatal(self) -> bool {
        self.meets(Kinds::of(Kind::Root).and(Kind::SystemDir).and(Kind::Home).and(Kind::Drive))
    }
}

/// Names of private keys, wherever they lie.
const KEYS: &[&str] = &["id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"];

/// An operand, resolved by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Absolute, normal, abstract. Empty where nothing is known.
    pub path: String,
    pub kinds: Kinds,
    /// It named all that lies in `path` (`path/*`).
    pub contents: bool,
}

/// Where relative operands start, and what the shell's surroundings are.
pub(crate) struct Places<'a> {
    pub here: &'a Surroundings,
    pub cwd: &'a str,
    pub home: &'a str,
    pub mounts: Option<&'a [(String, String)]>,
}

impl Places<'_> {
    /// The absolute, normal form of a path operand, with abstract characters where it is open.
    pub fn absolute(&self, text: &str) -> String {
        let joined;
        let text = if text.starts_with('/') {
            text
        } else {
            joined = format!("{}/{text}", self.cwd);
            &joined
        };
        if !text.starts_with('/') {
            // The working directory is unknown.
            return String::new();
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        // The root of a process is the root.
        if let ["proc", pid, "root" | "cwd", rest @ ..] = parts.as_slice()
            && (*pid == "self" || pid.chars().all(|c| c.is_ascii_digit()))
        {
            return format!("/{}", rest.join("/"));
        }
        format!("/{}", parts.join("/"))
    }

    pub fn target(&self, text: &str) -> Target {
        if let Some(target) = windows(text) {
            return target;
        }
        let first = text.chars().next();
        if first.is_some_and(is_unknown) && !text.starts_with(text::TOKEN) {
            return self.unknown(text);
        }
        let mut path = self.absolute(text);
        if path.is_empty() {
            return Target { path, kinds: Kinds::of(Kind::Unknown), contents: false };
        }
        if let Some(mounts) = self.mounts {
            match through_mount(mounts, &path) {
                Some(outside) => path = outside,
                None => {
                    let (base, _) = split_contents(&path);
                    let name = base.trim_start_matches('/');
                    // Package lists are taken out of every image; the rest there is what a service keeps.
                    let kept = name.starts_with("var/lib/") && !name.starts_with("var/lib/apt");
                    let whole = name != "tmp" && (!name.contains('/') || SYSTEM_DIRS.contains(&name) || kept);
                    let kinds = Kinds::of(Kind::Container);
                    let kinds = if whole { kinds.and(Kind::ContainerRoot) } else { kinds };
                    return Target { path, kinds, contents: false };
                }
            }
        }
        let (base, contents) = split_contents(&path);
        let kinds = self.kinds(base, contents);
        Target { path: if contents { base.to_owned() } else { path }, kinds, contents }
    }

    /// An operand that starts unknown, such as `$DIR/*`: if the variable is empty it is the root.
    fn unknown(&self, text: &str) -> Target {
        let mut kinds = Kinds::of(Kind::Unknown);
        let tail: String = text.trim_start_matches(is_unknown).to_owned();
        if tail.starts_with("/.ssh") || tail.starts_with("/.aws") || tail.starts_with("/.gnupg") {
            kinds = kinds.and(Kind::Credential);
        }
        Target { path: String::new(), kinds, contents: tail.ends_with(STAR) }
    }

    fn kinds(&self, base: &str, contents: bool) -> Kinds {
        let mut kinds = Kinds::default();
        if base == "/" {
            return Kinds::of(Kind::Root);
        }
        let parts: Vec<&str> = base.trim_start_matches('/').split('/').collect();
        let open = parts.iter().position(|part| has_unknown(part));
        if open == Some(0) && parts.len() == 1 {
            return Kinds::of(Kind::Root).and(Kind::Unknown);
        }
        if let Some(open) = open {
            kinds = kinds.and(Kind::Unknown);
            let parent = format!("/{}", parts.get(..open).unwrap_or_default().join("/"));
            let environment = parts.first() == Some(&"proc") && parts.last() == Some(&"environ");
            if environment || parts.last().is_some_and(|name| KEYS.contains(name)) {
                kinds = kinds.and(Kind::Credential);
            }
            // An unknown child: the parent's own kind where it can be everything in it.
            let last = open + 1 == parts.len();
            return kinds.union(self.child_of(&parent, last, base));
        }
        if has_glob(base) {
            kinds = kinds.union(self.globbed(base, &parts));
        }
        kinds.union(self.literal(base, contents))
    }

    fn child_of(&self, parent: &str, last: bool, base: &str) -> Kinds {
        let of_parent = if parent == "/" { Kinds::of(Kind::System) } else { self.literal(parent, false) };
        let mut kinds = Kinds::default();
        for (whole, part) in [(Kind::Home, Kind::HomePart), (Kind::Workspace, Kind::WorkspacePart)] {
            if of_parent.has(whole) || of_parent.has(part) {
                kinds = kinds.and(part);
            }
        }
        if of_parent.has(Kind::Home) && parent == "/home" && last {
            kinds = kinds.and(Kind::Home);
        }
        if of_parent.has(Kind::SystemDir) || of_parent.has(Kind::System) {
            kinds = kinds.and(Kind::System);
            if last
                && parent.matches('/').count() == 1
                && parent != "/opt"
                && parent != "/var"
                && parent != "/srv"
                && parent != "/run"
            {
                kinds = kinds.and(Kind::SystemDir);
            }
        }
        for kind in [Kind::Temp, Kind::Credential, Kind::Outside, Kind::Git] {
            if of_parent.has(kind) {
                kinds = kinds.and(kind);
            }
        }
        kinds = kinds.union(self.gateway(parent, base));
        if parent == "/dev" && listed_under_dev(base) {
            kinds = kinds.and(Kind::Disk);
        }
        kinds
    }

    /// A pattern is everything notable that it can match.
    fn globbed(&self, base: &str, parts: &[&str]) -> Kinds {
        let mut kinds = Kinds::default();
        let first = parts.first().copied().unwrap_or_default();
        if has_glob(first) {
            let rest = parts.get(1..).unwrap_or_default();
            for top in TOP.iter().filter(|top| matches(first, top)) {
                if rest.is_empty() {
                    kinds = kinds.union(self.literal(&format!("/{top}"), false));
                } else {
                    kinds = kinds.union(self.kinds(&format!("/{top}/{}", rest.join("/")), false));
                }
            }
            return kinds;
        }
        for path in SYSTEM_DIRS.iter().filter(|path| path.contains('/')) {
            if matches(base.trim_start_matches('/'), path) {
                kinds = kinds.and(Kind::SystemDir).and(Kind::System);
            }
        }
        for home in [self.home, &*self.here.home.to_string_lossy()] {
            if !home.is_empty() && matches(base, home) {
                kinds = kinds.and(Kind::Home);
            }
        }
        if parts.len() == 2 && matches!(first, "home" | "Users") {
            kinds = kinds.and(Kind::Home);
        }
        let workspace = self.here.workspace.to_string_lossy();
        if matches(base, &workspace) {
            kinds = kinds.and(Kind::Workspace);
        }
        kinds
    }

    /// Whether a path is one of the gateway's own, lies in one, or holds one. Something unknown in a directory is not that
    /// directory: it counts only inside the gateway's own, or where what is known of its name fits. `known` is what stands
    /// before the first unknown part.
    fn gateway(&self, known: &str, path: &str) -> Kinds {
        let mut kinds = Kinds::default();
        for own in &self.here.gateway {
            let own_text = own.to_string_lossy();
            if lies_in(known, &own_text) {
                kinds = kinds.and(Kind::Gateway);
            } else if has_glob(path) || has_unknown(path) {
                kinds = match fits(path, own) {
                    Some(true) => kinds.and(Kind::Gateway),
                    Some(false) => kinds.and(Kind::GatewayHolder),
                    None => kinds,
                };
            } else if lies_in(&own_text, path) {
                kinds = kinds.and(Kind::GatewayHolder);
            }
        }
        kinds
    }

    /// The kinds of a path without unknown parts. Globs in it match what they match.
    fn literal(&self, path: &str, contents: bool) -> Kinds {
        let mut kinds = Kinds::default();
        let relative = path.trim_start_matches('/');
        let parts = relative.matches('/').count() + 1;
        if path == "/" {
            return Kinds::of(Kind::Root);
        }
        kinds = kinds.union(self.gateway(path, path));
        if path.starts_with("/dev/") {
            return kinds.union(self.device(path));
        }
        if let Some(rest) = self.below_home(path) {
            if CREDENTIALS.names(rest) && !rest.ends_with(".pub") {
                kinds = kinds.and(Kind::Credential);
            }
            if STARTUP.names(rest) {
                kinds = kinds.and(Kind::Startup);
            }
            if HISTORY.names(rest) {
                kinds = kinds.and(Kind::History);
            }
        }
        if path.starts_with("/etc")
            || path.starts_with("/proc")
            || path.starts_with("/sys")
            || path.starts_with("/var")
            || path.starts_with("/lib")
            || path.starts_with("/usr")
            || path.starts_with("/boot")
            || path.starts_with("/bin")
            || path.starts_with("/sbin")
            || path.starts_with("/Library")
            || path.starts_with("/run")
            || path.starts_with("/vm")
            || path.starts_with("/init")
        {
            for (list, kind) in [
                (&CRITICAL, Kind::Critical),
                (&CREDENTIALS_ABSOLUTE, Kind::Credential),
                (&STARTUP_ABSOLUTE, Kind::Startup),
                (&AUTH, Kind::Auth),
            ] {
                if list.names(path) {
                    kinds = kinds.and(kind);
                }
            }
        }
        kinds.union(self.place(path, relative, parts, contents))
    }

    fn place(&self, path: &str, relative: &str, parts: usize, contents: bool) -> Kinds {
        let mut kinds = Kinds::default();
        let workspace = &*self.here.workspace.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or_default();
        if holds_secrets(name) {
            kinds = kinds.and(Kind::DotEnv);
        }
        if KEYS.contains(&name) {
            kinds = kinds.and(Kind::Credential);
        }
        if path.split('/').any(|part| part == ".git") {
            kinds = kinds.and(Kind::Git);
            if path.contains("/.git/hooks/") || path.ends_with("/.git/config") {
                kinds = kinds.and(Kind::Startup);
            }
        }
        if path == workspace.trim_end_matches('/') {
            return kinds.and(Kind::Workspace);
        }
        if lies_in(path, workspace) {
            return kinds.and(Kind::WorkspacePart);
        }
        let home = &*self.here.home.to_string_lossy();
        // The home directory stays one where it lies below /tmp; what a script calls HOME there is nobody's home.
        if lies_in(home, path) {
            return kinds.and(Kind::Home);
        }
        let home_in_temp = is_temp(home) && !TEMP.contains(&home.trim_end_matches('/'));
        if is_temp(path) && !(home_in_temp && lies_in(path, home)) {
            let holds_workspace = lies_in(workspace, path);
            return if holds_workspace { kinds.and(Kind::Workspace) } else { kinds.and(Kind::Temp) };
        }
        if self.is_home(path) {
            return kinds.and(Kind::Home);
        }
        if lies_in(workspace, path) {
            return kinds.and(Kind::Workspace);
        }
        if let Some(rest) = self.below_home(path) {
            let cache = [".cache/", ".npm/_cacache", "Library/Caches/", ".local/share/Trash/"]
                .iter()
                .any(|place| rest.starts_with(place) || (contents && rest == place.trim_end_matches('/')));
            return if cache { kinds.and(Kind::HomePart).and(Kind::Temp) } else { kinds.and(Kind::HomePart) };
        }
        if let ["mnt" | "media" | "Volumes", rest @ ..] = relative.split('/').collect::<Vec<_>>().as_slice() {
            let users = matches!(rest, [_, "Users" | "Windows" | "home" | "etc"] | [_, "Users", _]);
            if rest.len() <= 1 || users {
                kinds = kinds.and(Kind::Drive);
            }
            return kinds.and(Kind::Outside);
        }
        if SYSTEM_DIRS.contains(&relative) {
            kinds = kinds.and(Kind::SystemDir);
        }
        let top = relative.split('/').next().unwrap_or_default();
        if SYSTEM_DIRS.contains(&top) || TOP.contains(&top) {
            kinds = kinds.and(Kind::System);
            if path == "/proc/sysrq-trigger" {
                kinds = kinds.and(Kind::Sysrq);
            }
            if top == "sys" || path.starts_with("/proc/sys/") {
                kinds = kinds.and(Kind::Kernel);
            }
            if ["/usr/local", "/var/www", "/opt", "/srv"].iter().any(|local| lies_in(path, local)) {
                kinds = kinds.and(Kind::Local);
            }
            return kinds;
        }
        if parts == 1 && contents {
            kinds = kinds.and(Kind::Outside);
        }
        kinds.and(Kind::Outside)
    }

    fn device(&self, path: &str) -> Kinds {
        let name = path.strip_prefix("/dev/").unwrap_or_default();
        if name.starts_with("tcp/") || name.starts_with("udp/") {
            return Kinds::of(Kind::Network);
        }
        if name.starts_with("shm/") || name == "shm" {
            return Kinds::of(Kind::Temp);
        }
        if listed_under_dev(path) {
            return Kinds::of(Kind::Disk);
        }
        if HARMLESS.contains(&name) || name.starts_with("fd/") || name.starts_with("pts/") || name.starts_with("tty") {
            return Kinds::default();
        }
        if has_glob(name) {
            return Kinds::of(Kind::Disk).and(Kind::System);
        }
        Kinds::of(Kind::System)
    }

    /// A whole home directory, or what holds them.
    fn is_home(&self, path: &str) -> bool {
        if path == self.home || Path::new(path) == self.here.home {
            return true;
        }
        matches!(
            path.split('/').collect::<Vec<_>>().as_slice(),
            ["", "home" | "Users" | "root"] | ["", "home" | "Users", _] | ["", "var", "root"]
        )
    }

    fn below_home<'p>(&self, path: &'p str) -> Option<&'p str> {
        let below = |home: &str| {
            path.strip_prefix(home).and_then(|rest| rest.strip_prefix('/')).filter(|_| !home.is_empty() && home != "/")
        };
        below(self.home).or_else(|| below(&self.here.home.to_string_lossy())).or_else(|| below("/root")).or_else(|| {
            let rest = path.strip_prefix("/home/").or_else(|| path.strip_prefix("/Users/"))?;
            rest.split_once('/').map(|(_, rest)| rest)
        })
    }
}

/// Names of files of a project that mostly hold secrets.
fn holds_secrets(name: &str) -> bool {
    const NAMES: &[&str] = &[
        ".env",
        "master.key",
        "credentials.json",
        "service-account.json",
        "serviceaccount.json",
        ".htpasswd",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        "secret.key",
        "private.key",
        "server.key",
        "server.pem",
        "client.key",
        "key.pem",
        "tls.key",
        "privkey.pem",
        "kubeconfig",
        "client_secret.json",
        "oauth_token.json",
    ];
    const ENDS: &[&str] = &[".kdbx", ".p12", ".pfx", ".jks", ".keystore", ".ppk", "-key.pem", "_key.pem", ".tfstate"];
    const STEMS: &[&str] = &["secrets", "secret", "credentials"];
    const TEXTS: &[&str] = &["yml", "yaml", "json", "toml", "ini", "env", "tfvars", "properties", "txt"];
    let plain =
        ["example", "sample", "template", "dist", "test", "fixture", "schema"].iter().any(|it| name.contains(it));
    !plain
        && (NAMES.contains(&name)
            || name.starts_with(".env.")
            || ENDS.iter().any(|end| name.ends_with(end))
            || name.split_once('.').is_some_and(|(stem, end)| STEMS.contains(&stem) && TEXTS.contains(&end)))
}

const TEMP: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/private/tmp"];

fn is_temp(path: &str) -> bool {
    TEMP.iter().any(|temp| lies_in(path, temp))
}

/// Whether a normal path is a place, or something in it.
fn lies_in(path: &str, place: &str) -> bool {
    let place = place.trim_end_matches('/');
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path with open parts can name `own` or what lies in it (true), or a directory that holds it (false), by what
/// is known of it. An unknown part of which next to nothing is known fits nothing, and neither does a token of `mktemp`:
/// what that names is new.
fn fits(path: &str, own: &Path) -> Option<bool> {
    let mut parts = own.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    for pattern in path.trim_start_matches('/').split('/') {
        let open = has_unknown(pattern)
            && (pattern.contains(text::TOKEN) || pattern.chars().filter(|c| !is_unknown(*c)).count() < 3);
        match parts.next() {
            // What lies below `own` belongs to it whatever its name is.
            None => return Some(true),
            Some(part) if open || !matches(pattern, &part) => return None,
            Some(_) => {}
        }
    }
    Some(parts.next().is_none())
}

fn listed_under_dev(path: &str) -> bool {
    let name = path.strip_prefix("/dev/").unwrap_or_default();
    if has_unknown(name) {
        let known: String = name.chars().take_while(|c| !is_unknown(*c)).collect();
        return ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "md", "dm-", "mapper/"]
            .iter()
            .any(|prefix| !known.is_empty() && known.starts_with(prefix));
    }
    DISKS.matches(name)
        || (has_glob(name)
            && ["sda", "sdb", "sda1", "nvme0n1", "vda", "hda", "disk0"].iter().any(|disk| matches(name, disk)))
}

/// Takes a trailing `/*` (also `/.*`, `/**`, `/{*,.*}`) off a path.
fn split_contents(path: &str) -> (&str, bool) {
    let mut base = path;
    let mut contents = false;
    while let Some((head, last)) = base.rsplit_once('/') {
        let everything = last.chars().any(|c| c == STAR || is_glob(c))
            && !last.contains(text::ONE)
            && last.chars().all(|c| c == STAR || c == '.' || c == '!' || c == '^' || is_glob(c))
            && last.contains(STAR);
        if !everything {
            break;
        }
        contents = true;
        base = if head.is_empty() { "/" } else { head };
        if base == "/" {
            break;
        }
    }
    (base, contents)
}

/// Drives and paths of Windows.
fn windows(text: &str) -> Option<Target> {
    let mut chars = text.chars();
    let drive = chars.next()?;
    if !drive.is_ascii_alphabetic() || chars.next() != Some(':') {
        if text.starts_with("\\\\.\\PhysicalDrive") || text.to_ascii_lowercase().starts_with("\\\\.\\physicaldrive") {
            return Some(Target { path: text.to_owned(), kinds: Kinds::of(Kind::Disk), contents: false });
        }
        let lower = text.to_ascii_lowercase();
        let known = [
            "%userprofile%",
            "%systemroot%",
            "%systemdrive%",
            "%windir%",
            "$env:userprofile",
            "$env:systemroot",
            "$home",
            "%homepath%",
            "$env:systemdrive",
            "$env:windir",
        ];
        return known.iter().any(|name| lower.trim_end_matches(['\\', '/', '*', STAR]) == *name).then(|| Target {
            path: text.to_owned(),
            kinds: Kinds::of(Kind::Drive),
            contents: false,
        });
    }
    let rest: String = chars.as_str().replace('\\', "/");
    // `C:\Windows` without quotes: the shell took the backslash.
    let swallowed =
        ["windows", "users", "windowssystem32", "programdata"].contains(&rest.to_ascii_lowercase().as_str());
    if !rest.is_empty() && !rest.starts_with('/') && !rest.starts_with(STAR) && !swallowed {
        return None;
    }
    let rest = rest.trim_matches(['/', STAR, '*', '.']).to_ascii_lowercase();
    let parts = rest.split('/').count();
    let whole = rest.is_empty()
        || (parts == 1
            && ["windows", "users", "program files", "program files (x86)", "programdata"].contains(&rest.as_str()))
        || rest == "windows/system32"
        || rest == "windowssystem32"
        || (parts == 2 && rest.starts_with("users/"));
    let kinds = if whole { Kinds::of(Kind::Drive) } else { Kinds::of(Kind::Outside) };
    Some(Target { path: text.to_owned(), kinds, contents: false })
}

/// The drive of a path of Windows: more cannot be looked up here.
fn drive(path: &str) -> Option<String> {
    let mut chars = path.chars();
    chars.next().filter(|letter| letter.is_ascii_alphabetic() && chars.next() == Some(':')).map(|d| format!("{d}:\\"))
}

/// The host path behind a path inside a container.
fn through_mount(mounts: &[(String, String)], path: &str) -> Option<String> {
    mounts.iter().filter(|(inside, _)| !inside.is_empty()).find_map(|(inside, outside)| {
        let rest = if inside == "/" { path } else { path.strip_prefix(inside.as_str())? };
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        let joined = format!("{}{rest}", outside.trim_end_matches('/'));
        Some(if joined.is_empty() { "/".to_owned() } else { joined })
    })
}

impl Target {
    /// The name for the path stage: absolute where it is known up to globs.
    pub fn name(&self) -> Option<String> {
        if self.path.is_empty() || has_unknown(&self.path) || self.kinds.has(Kind::Container) {
            return None;
        }
        if !self.path.starts_with('/') {
            return drive(&self.path);
        }
        if has_glob(&self.path) {
            // The directory that the pattern starts in.
            let fixed: Vec<&str> = self.path.split('/').take_while(|part| !has_glob(part)).collect();
            return Some(if fixed.len() <= 1 { "/".to_owned() } else { fixed.join("/") });
        }
        Some(self.path.clone())
    }

    /// What a listing below it could name: something unknown inside.
    pub fn inside(path: &str, filtered: bool) -> String {
        let path = path.trim_end_matches('/');
        if filtered { format!("{path}/{UNKNOWN}/{UNKNOWN}") } else { format!("{path}/{STAR}") }
    }

    pub fn is_known(&self) -> bool {
        !self.path.is_empty() && is_known(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_have_the_kinds_they_stand_for() {
        let here = Surroundings::new("/home/alice/proj", "/home/alice");
        let places = Places { here: &here, cwd: "/home/alice/proj", home: "/home/alice", mounts: None };
        let live = |text: &str| {
            text.chars()
                .map(|c| if c == '$' { UNKNOWN } else { crate::facts::command::words::text::glob_char(c) })
                .collect::<String>()
        };
        for (text, want) in [
            ("/", Kind::Root),
            ("/*", Kind::Root),
            ("/.*", Kind::Root),
            ("//.//", Kind::Root),
            ("/tmp/../*", Kind::Root),
            ("/$", Kind::Root),
            ("/????", Kind::SystemDir),
            ("/u*", Kind::SystemDir),
            ("/etc/", Kind::SystemDir),
            ("/usr/lib/*", Kind::SystemDir),
            ("/etc/nginx/x.conf", Kind::System),
            ("/etc/shadow", Kind::Critical),
            ("/home", Kind::Home),
            ("/home/*", Kind::Home),
            ("/home/alice", Kind::Home),
            ("..", Kind::Home),
            ("/root", Kind::Home),
            ("../Documents", Kind::HomePart),
            (".", Kind::Workspace),
            ("*", Kind::Workspace),
            ("./.[!.]*", Kind::Workspace),
            ("build/*", Kind::WorkspacePart),
            ("*.o", Kind::WorkspacePart),
            ("/tmp/x", Kind::Temp),
            ("/dev/sda", Kind::Disk),
            ("/dev/nvme0n1p2", Kind::Disk),
            ("/dev/sd$", Kind::Disk),
            ("/mnt/c/Users", Kind::Drive),
            ("C:\\", Kind::Drive),
            ("$/*", Kind::Unknown),
            ("/proc/self/root/etc", Kind::SystemDir),
        ] {
            let target = places.target(&live(text));
            assert!(target.kinds.has(want), "{text}: {:?} should be {want:?}", target);
        }
        for (text, not) in [("*.o", Kind::Workspace), ("/dev/null", Kind::Disk), ("/tmp/x/*", Kind::Root)] {
            assert!(!places.target(&live(text)).kinds.has(not), "{text} must not be {not:?}");
        }
    }
    #[test]
    fn a_home_directory_is_one_wherever_it_lies() {
        for (home, workspace, text, want) in [
            ("/tmp/h/alice", "/tmp/h/alice/proj", "/tmp/h/alice", Kind::Home),
            ("/tmp/h/alice", "/tmp/h/alice/proj", "/tmp/h", Kind::Home),
            ("/tmp/h/alice", "/tmp/h/alice/proj", "/tmp/h/alice/Documents", Kind::HomePart),
            ("/tmp/h/alice", "/tmp/h/alice/proj", "/tmp/x", Kind::Temp),
            ("/tmp", "/srv/app/proj", "/tmp/x", Kind::Temp),
            ("/", "/srv/app/proj", "/tmp/x", Kind::Temp),
            ("/home/alice", "/srv/app/proj", "/srv/app", Kind::Workspace),
            ("/home/alice", "/tmp/w/proj", "/tmp/w", Kind::Workspace),
        ] {
            let here = Surroundings::new(workspace, home);
            let target = Places { here: &here, cwd: workspace, home, mounts: None }.target(text);
            assert!(target.kinds.has(want), "{text} for the home {home}: {target:?} should be {want:?}");
        }
    }
}
