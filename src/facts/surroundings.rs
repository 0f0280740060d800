//! Where a call happens, and what kind of place a path is.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What kind of place a path lies in. Policies see these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Inside the workspace.
    Workspace,
    /// Inside a configured extra root that may be read.
    ReadRoot,
    /// Inside a configured extra root that may be written.
    WriteRoot,
    /// `/tmp` and its like.
    Temp,
    /// The principal's home directory, or below it.
    Home,
    /// Somebody else's home directory, or the directory that holds them.
    OtherHome,
    /// The operating system's own files.
    System,
    /// A device node.
    Device,
    /// The root directory itself.
    Root,
    /// The gateway's own configuration, state or binary.
    Gateway,
    /// Any other place.
    Outside,
    /// Where it lies cannot be known.
    Unknown,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Workspace => "workspace",
            Scope::ReadRoot => "read-root",
            Scope::WriteRoot => "write-root",
            Scope::Temp => "temp",
            Scope::Home => "home",
            Scope::OtherHome => "other-home",
            Scope::System => "system",
            Scope::Device => "device",
            Scope::Root => "root",
            Scope::Gateway => "gateway",
            Scope::Outside => "outside",
            Scope::Unknown => "unknown",
        }
    }
}

/// The places that give a path its meaning, all absolute and normal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    pub workspace: PathBuf,
    /// Where the call starts; the workspace root unless the call says otherwise.
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub read_roots: Vec<PathBuf>,
    pub write_roots: Vec<PathBuf>,
    /// The gateway's configuration, state, socket and binary.
    pub gateway: Vec<PathBuf>,
}

/// Directories that belong to the operating system.
const SYSTEM: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    // macOS
    "Applications",
    "Library",
    "System",
    "private",
];

/// Directories that anyone may write.
const TEMP: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp"];

impl Surroundings {
    /// Surroundings with nothing but a workspace and a home directory.
    pub fn new(workspace: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        Surroundings {
            cwd: workspace.clone(),
            workspace,
            home: home.into(),
            read_roots: Vec::new(),
            write_roots: Vec::new(),
            gateway: Vec::new(),
        }
    }

    /// A home directory that lies below a directory for anyone, and is more than that.
    fn home_in_temp(&self) -> bool {
        TEMP.iter().any(|temp| self.home.starts_with(temp) && self.home != Path::new(temp))
    }

    /// The scope of an absolute path, by its name alone: symbolic links are not followed.
    pub fn scope(&self, path: &Path) -> Scope {
        let path = normalise(path);
        let within = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        if path == Path::new("/") {
            Scope::Root
        } else if within(&self.gateway) {
            Scope::Gateway
        } else if path.starts_with(&self.workspace) {
            Scope::Workspace
        } else if within(&self.write_roots) {
            Scope::WriteRoot
        } else if within(&self.read_roots) {
            Scope::ReadRoot
        } else if self.home_in_temp() && path.starts_with(&self.home) {
            Scope::Home
        } else if TEMP.iter().any(|temp| path.starts_with(temp)) {
            Scope::Temp
        } else if path.starts_with("/dev") {
            Scope::Device
        } else if path.starts_with(&self.home) {
            Scope::Home
        } else if path.starts_with("/home") || path.starts_with("/Users") || path.starts_with("/root") {
            Scope::OtherHome
        } else {
            match path.components().nth(1) {
                Some(Component::Normal(top)) if SYSTEM.iter().any(|name| top == *name) => Scope::System,
                _ => Scope::Outside,
            }
        }
    }
}

/// Removes `.`, `..` and repeated slashes by name alone. `..` at the root stays there.
pub fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes() {
        let mut here = Surroundings::new("/home/alice/proj", "/home/alice");
        here.read_roots.push("/data".into());
        here.write_roots.push("/scratch".into());
        here.gateway.push("/home/alice/.local/state/portcullis".into());
        for (path, scope) in [
            ("/", Scope::Root),
            ("/tmp/../", Scope::Root),
            ("/home/alice/proj/a", Scope::Workspace),
            ("/home/alice/proj", Scope::Workspace),
            ("/home/alice/proj/../b", Scope::Home),
            ("/home/alice", Scope::Home),
            ("/home", Scope::OtherHome),
            ("/home/bob/x", Scope::OtherHome),
            ("/root", Scope::OtherHome),
            ("/home/alice/.local/state/portcullis/audit/log", Scope::Gateway),
            ("/etc/passwd", Scope::System),
            ("/dev/sda", Scope::Device),
            ("/dev/shm/x", Scope::Temp),
            ("/tmp/x", Scope::Temp),
            ("/data/x", Scope::ReadRoot),
            ("/scratch/x", Scope::WriteRoot),
            ("/nowhere", Scope::Outside),
        ] {
            assert_eq!(here.scope(Path::new(path)), scope, "{path}");
        }
        here.home = "/tmp/h".into();
        assert_eq!(here.scope(Path::new("/tmp/h/x")), Scope::Home, "a home directory below /tmp is a home directory");
        here.home = "/tmp".into();
        assert_eq!(here.scope(Path::new("/tmp/x")), Scope::Temp, "/tmp as a home directory is for anyone still");
    }
}
