//! One generation of configuration and rules, with what each workspace adds to it. A reload makes another one.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::Digest;
use crate::config::Config;
use crate::gateway::ground::{Base, Ground, RulesError};
use crate::registry::Registry;
use crate::upstream::{self, Pins, Upstreams};
use crate::verdict::Finding;

/// How many workspaces are kept ready. With more, all are made anew when their next call comes.
const MOST_GROUNDS: usize = 64;

/// A workspace and a profile.
type Key = (PathBuf, String);

pub(super) struct Rules {
    pub config: Arc<Config>,
    /// The gateway's own tools, and those of the servers behind it.
    pub registry: Arc<Registry>,
    /// Servers' tools that cannot be offered, and why.
    pub refused: Vec<Finding>,
    pub base: Base,
    /// What the pins looked like that the tools were made of.
    pins: Mutex<PinsStamp>,
    /// Made when a workspace's first call comes.
    grounds: Mutex<HashMap<Key, (Stamp, Arc<Ground>)>>,
}

/// See [`upstream::stamp`].
type PinsStamp = Option<(u64, u64, i64, i64)>;

impl Rules {
    /// `own` are the gateway's own tools.
    pub fn load(config: Arc<Config>, own: &Registry, servers: &Arc<Upstreams>) -> Result<Self, RulesError> {
        let mut registry = own.clone();
        let mut refused = Vec::new();
        // Taken before the file is read: a change in between is seen by the next call.
        let pins = upstream::stamp(&config.places.state);
        if !config.file.upstreams.is_empty() {
            refused = upstream::register(&mut registry, &config, &Pins::load(&config.places.state)?, servers);
        }
        let base = Base::load(&config, &registry)?;
        let (registry, pins) = (Arc::new(registry), Mutex::new(pins));
        Ok(Rules { config, registry, refused, base, pins, grounds: Mutex::default() })
    }

    /// Whether the pins are others by now than those that the tools were made of. Said once for each change.
    pub fn is_repinned(&self) -> bool {
        if self.config.file.upstreams.is_empty() {
            return false;
        }
        let now = upstream::stamp(&self.config.places.state);
        let mut seen = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *seen, now) != now
    }

    /// The rules for a workspace, made anew when what the workspace says has changed.
    pub fn ground(&self, workspace: &Path, profile: &str) -> Result<Arc<Ground>, RulesError> {
        let key = (workspace.to_owned(), profile.to_owned());
        // Taken before the files are read: a change in between is seen by the next call.
        let stamp = Stamp::of(workspace, &self.config);
        if let Some((known, ground)) = self.grounds.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && *known == stamp
        {
            return Ok(Arc::clone(ground));
        }
        let ground = Arc::new(Ground::new(&self.base, &self.config, &self.registry, workspace, profile)?);
        let mut grounds = self.grounds.lock().unwrap_or_else(PoisonError::into_inner);
        if grounds.len() >= MOST_GROUNDS {
            grounds.clear();
        }
        grounds.insert(key, (stamp, Arc::clone(&ground)));
        Ok(ground)
    }

    /// What tells one configuration from another.
    pub fn configuration(&self) -> Digest {
        Digest::of(format!("{:?} {:?}", self.config.file, self.config.exceptions))
    }
}

/// What the places that a [`Ground`] was made from look like from outside: enough to notice that they changed.
#[derive(PartialEq, Eq)]
struct Stamp(Vec<(PathBuf, Option<Look>)>);

/// Device, inode, size, and the time of the last change in seconds and nanoseconds. Of a directory that only matters as
/// the one it is, device and inode: its time changes with every file in it.
type Look = (u64, u64, u64, i64, i64);

impl Stamp {
    fn of(workspace: &Path, config: &Config) -> Self {
        let places = &config.places;
        let roots = config.file.read_roots.iter().chain(&config.file.write_roots);
        let own = places.system.iter().chain([&places.config, &places.state, &places.home]);
        let mut seen = Vec::new();
        for path in [workspace].into_iter().chain(roots.chain(own).map(PathBuf::as_path)) {
            seen.push((path.to_owned(), look(path).map(|(device, inode, ..)| (device, inode, 0, 0, 0))));
        }
        // As a file it names the directory of the repository.
        let mut paths = vec![workspace.join(".portcullis.toml")];
        paths.extend(Some(workspace.join(".git")).filter(|git| !git.is_dir()));
        let dir = workspace.join(".portcullis");
        if dir.is_dir() {
            for dir in ["policies", "commands", "profiles"].map(|name| dir.join(name)) {
                let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
                let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
                inside.sort();
                paths.push(dir);
                paths.extend(inside);
            }
        }
        seen.extend(paths.into_iter().map(|path| {
            let look = look(&path);
            (path, look)
        }));
        Stamp(seen)
    }
}

fn look(path: &Path) -> Option<Look> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{File, Places};

    #[test]
    fn a_stamp_changes_with_what_the_rules_are_made_of_and_with_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("w");
        fs::create_dir_all(workspace.join(".git")).unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        let at = |name: &str| dir.path().join(name);
        let places = Places { system: None, config: at("c"), state: at("s"), home: at("h") };
        let file = File { read_roots: vec![at("root")], ..File::default() };
        let config = Config { places, file, exceptions: Vec::new(), read: Vec::new() };
        let mut last = Stamp::of(&workspace, &config);
        fs::write(workspace.join("a-file"), "x").unwrap();
        fs::write(workspace.join(".git/HEAD"), "x").unwrap();
        fs::write(at("root").join("a-file"), "x").unwrap();
        assert!(Stamp::of(&workspace, &config) == last, "an ordinary file changed the stamp");
        type Change = fn(&Path);
        let changes: [(&str, Change); 7] = [
            ("a file of its own", |w| fs::write(w.join(".portcullis.toml"), "").unwrap()),
            ("the file's content", |w| fs::write(w.join(".portcullis.toml"), "profile = \"read-only\"").unwrap()),
            ("a policy", |w| {
                fs::create_dir_all(w.join(".portcullis/policies")).unwrap();
                fs::write(w.join(".portcullis/policies/a.cedar"), "").unwrap();
            }),
            ("the policy's removal", |w| fs::remove_file(w.join(".portcullis/policies/a.cedar")).unwrap()),
            ("a repository elsewhere", |w| {
                fs::remove_dir_all(w.join(".git")).unwrap();
                fs::write(w.join(".git"), "gitdir: ../elsewhere\n").unwrap();
            }),
            ("another directory of the same name", |w| {
                fs::rename(w, w.with_extension("old")).unwrap();
                fs::create_dir(w).unwrap();
            }),
            ("an extra root's replacement", |w| {
                let root = w.with_file_name("root");
                fs::rename(&root, root.with_extension("old")).unwrap();
                fs::create_dir(root).unwrap();
            }),
        ];
        for (what, change) in changes {
            change(&workspace);
            let now = Stamp::of(&workspace, &config);
            assert!(now != last, "{what} was not noticed");
            last = now;
        }
    }
}
