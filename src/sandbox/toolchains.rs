//! Toolchains that the search path leads to and that no profile can name: in another home directory than the caller's
//! (`sudo`, services, containers), or in a directory of their own anywhere. What is granted for them is read only.
//!
//! Two kinds are known. A directory of the search path that lies in somebody's home as the profile's own entries lie in
//! `~` makes that home one of *those entries*, nothing else in it. And `DIR/bin` beside which there is what only an
//! installation has (`DIR/lib`, ...) is the installation `DIR`, unless that is a home directory or holds anything else.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::profile::Profile;
use crate::facts::Surroundings;

/// The most directories of a search path that are looked at, and the most links in one of them.
const MOST_DIRECTORIES: usize = 64;
const MOST_LINKS: usize = 256;

/// What an installation has beside its `bin`.
const PARTS: &[&str] = &["lib", "lib64", "libexec", "pkg", "share"];

/// Variables that say where a toolchain is, and what lies there where it is one.
const VARIABLES: &[(&str, &[&str])] = &[
    ("CARGO_HOME", &["bin", "registry", "git"]),
    ("GOROOT", &["bin", "lib", "pkg", "src"]),
    ("JAVA_HOME", &["bin", "conf", "jre", "lib"]),
    ("NVM_DIR", &["versions"]),
    ("PYENV_ROOT", &["bin", "libexec", "plugins", "pyenv.d", "shims", "version", "versions"]),
    ("RUSTUP_HOME", &["settings.toml", "toolchains"]),
    ("SDKMAN_DIR", &["candidates"]),
    ("VOLTA_HOME", &["bin", "tools"]),
];

/// What a home directory has and no installation.
const NOT_INSTALLED: &[&str] =
    &[".aws", ".bash_history", ".bashrc", ".config", ".env", ".gnupg", ".netrc", ".profile", ".ssh", ".zshrc"];

/// Toolchains beyond those that the profile names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// To be read, each of them there.
    pub read: Vec<PathBuf>,
    /// Home directories that hold toolchains as the profile knows them.
    pub homes: Vec<PathBuf>,
    /// Variables that name a toolchain that is read.
    pub variables: Vec<(&'static str, String)>,
}

impl Toolchains {
    /// Looks at where the search path and the variables of an environment lead.
    pub fn find(profile: &Profile, here: &Surroundings, environment: &[(OsString, OsString)]) -> Self {
        let value = |name: &str| environment.iter().find(|(n, _)| n == name).and_then(|(_, value)| value.to_str());
        let in_home: Vec<&str> = profile.filesystem.system.iter().filter_map(|path| path.in_home()).collect();
        let mut found = Toolchains::default();
        for directory in value("PATH").unwrap_or_default().split(':').take(MOST_DIRECTORIES).map(Path::new) {
            if directory.is_absolute() && !is_system(directory) {
                for place in places(directory) {
                    found.consider(&place, &in_home, here);
                }
            }
        }
        for home in found.homes.clone() {
            let there = in_home.iter().map(|name| home.join(name)).filter(|path| path.exists());
            found.read.extend(there);
        }
        for (name, parts) in VARIABLES {
            if let Some(text) = value(name).filter(|text| is_apart(Path::new(text), here)) {
                let there: Vec<PathBuf> =
                    parts.iter().map(|part| Path::new(text).join(part)).filter(|path| path.exists()).collect();
                if !there.is_empty() {
                    found.variables.push((name, text.to_owned()));
                    found.read.extend(there);
                }
            }
        }
        found.read.retain(|path| fs::canonicalize(path).is_ok_and(|real| keeps_away(&real, here)));
        found.read.sort_unstable();
        found.read.dedup();
        found
    }

    /// A directory of programs: of somebody's home, of an installation, or of neither.
    fn consider(&mut self, directory: &Path, in_home: &[&str], here: &Surroundings) {
        if directory.starts_with(&here.workspace) {
            return;
        }
        let homes = in_home.iter().filter_map(|name| home_of(directory, name));
        for home in homes.filter(|home| *home != here.home && home.parent().is_some()) {
            if !self.homes.contains(&home) {
                self.homes.push(home);
            }
        }
        if let Some(prefix) = directory.parent().filter(|prefix| directory.ends_with("bin") && is_apart(prefix, here))
            // A project's checkout has programs too.
            && !prefix.join(".git").exists()
            && PARTS.iter().any(|part| prefix.join(part).is_dir())
        {
            self.read.push(prefix.to_owned());
        }
    }
}

/// Part of every profile's system, where it is there at all.
fn is_system(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/opt", "/nix/store"].iter().any(|system| path.starts_with(system))
}

/// A directory of the search path, what it really is, and the directories that links in it lead to.
fn places(directory: &Path) -> Vec<PathBuf> {
    let Ok(real) = fs::canonicalize(directory) else { return Vec::new() };
    let mut places = vec![directory.to_owned(), real];
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())).take(MOST_LINKS);
    places.extend(links.filter_map(|link| Some(fs::canonicalize(link.path()).ok()?.parent()?.to_owned())));
    places.retain(|place| !is_system(place));
    places.sort_unstable();
    places.dedup();
    places
}

/// The directory in which this one lies, or lies below, under a name that toolchains have in a home directory.
fn home_of(directory: &Path, name: &str) -> Option<PathBuf> {
    directory.ancestors().find(|above| above.ends_with(name)).and_then(|above| {
        let depth = Path::new(name).components().count();
        above.ancestors().nth(depth).map(Path::to_owned)
    })
}

/// A directory that is an installation's alone: nobody's home, and nothing is in it that people keep.
fn is_apart(prefix: &Path, here: &Surroundings) -> bool {
    let Ok(real) = fs::canonicalize(prefix) else { return false };
    let deep = |path: &Path| path.components().count() > 2;
    let home = real == here.home || real == Path::new("/root") || real.parent() == Some(Path::new("/home"));
    prefix.is_absolute()
        && deep(&real)
        && !home
        && !here.home.starts_with(&real)
        && !real.starts_with(&here.workspace)
        && !NOT_INSTALLED.iter().any(|name| real.join(name).exists())
}

/// Whether granting this leaves the workspace and the gateway's own files to what they are granted by.
fn keeps_away(real: &Path, here: &Surroundings) -> bool {
    let own = |own: &PathBuf| {
        let own_real = fs::canonicalize(own).unwrap_or_else(|_| own.clone());
        (own_real.starts_with(real) && !own_real.is_file()) || real.starts_with(&own_real)
    };
    !here.workspace.starts_with(real) && !here.gateway.iter().any(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profile::DEFAULT_PROFILE;
    use crate::sandbox::profiles::Profiles;

    /// A tree with these files, and what is found from a search path in it; `@` stands for the tree.
    fn found(files: &[&str], links: &[(&str, &str)], environment: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in files.iter().chain(&["me/ws/x", "me/.local/state/portcullis/key"]) {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        for (link, target) in links {
            fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(root.join(target), root.join(link)).unwrap();
        }
        let mut here = Surroundings::new(root.join("me/ws"), root.join("me"));
        here.gateway.push(root.join("me/.local/state/portcullis"));
        let profile = Profiles::built_in().unwrap().named(DEFAULT_PROFILE).unwrap();
        let text = root.to_str().unwrap();
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value.replace('@', text))))
            .collect();
        let found = Toolchains::find(&profile, &here, &environment);
        let short = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        (found.read.iter().map(short).collect(), found.variables.iter().map(|(n, _)| (*n).to_owned()).collect())
    }

    #[test]
    fn another_home_is_its_toolchains_and_nothing_else() {
        let home = ["al/.cargo/bin/cargo", "al/.cargo/credentials.toml", "al/.rustup/settings.toml", "al/.ssh/id"];
        let (read, _) = found(&home, &[], &[("PATH", "/usr/bin:@/al/.cargo/bin:relative:@/gone/bin")]);
        assert_eq!(read, ["al/.cargo/bin", "al/.rustup"]);
        let node = ["al/.nvm/versions/node/v20/bin/node", "al/.nvm/versions/node/v20/lib/x", "al/.npmrc"];
        let (read, _) = found(&node, &[], &[("PATH", "@/al/.nvm/versions/node/v20/bin")]);
        assert_eq!(read, ["al/.nvm/versions", "al/.nvm/versions/node/v20"]);
    }

    #[test]
    fn an_installation_is_followed_to_through_links() {
        let tree = ["apps/node/bin/node", "apps/node/lib/x", "other/secret"];
        let links = [("links/node", "apps/node/bin/node"), ("linked", "apps/node/bin")];
        for path in ["@/apps/node/bin", "@/links", "@/linked"] {
            assert_eq!(found(&tree, &links, &[("PATH", path)]).0, ["apps/node"], "{path}");
        }
        assert!(found(&tree, &[], &[("PATH", "@/other")]).0.is_empty());
    }

    #[test]
    fn what_holds_more_than_an_installation_is_not_granted() {
        for (files, path) in [
            // A home with `bin` and `lib` of its own, the caller's or another.
            (&["me/bin/x", "me/lib/x"][..], "@/me/bin"),
            (&["al/bin/x", "al/lib/x", "al/.ssh/id"], "@/al/bin"),
            // What holds the caller's home, and with it the workspace and the gateway's own.
            (&["bin/x", "lib/x"], "@/bin"),
            // The workspace is granted as it is.
            (&["me/ws/bin/x", "me/ws/lib/x"], "@/me/ws/bin"),
            (&["me/ws/.cargo/bin/x"], "@/me/ws/.cargo/bin"),
            (
                &["me/.local/state/portcullis/bin/x", "me/.local/state/portcullis/lib/x"],
                "@/me/.local/state/portcullis/bin",
            ),
        ] {
            assert!(
                found(files, &[], &[("PATH", path)]).0.is_empty(),
                "{path}: {:?}",
                found(files, &[], &[("PATH", path)])
            );
        }
    }

    #[test]
    fn a_variable_counts_where_it_names_a_toolchain() {
        let tree = ["x/rust/toolchains/s/bin/rustc", "x/rust/settings.toml", "x/rust/.ssh/id", "y/rust/toolchains/t"];
        let (read, variables) = found(&tree, &[], &[("RUSTUP_HOME", "@/y/rust"), ("CARGO_HOME", "@/y")]);
        assert_eq!((read, variables), (vec!["y/rust/toolchains".to_owned()], vec!["RUSTUP_HOME".to_owned()]));
        assert_eq!(found(&tree, &[], &[("RUSTUP_HOME", "@/x/rust")]), (vec![], vec![]));
    }
}
