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

/// How many workspaces are kept ready. With more, all are made anew when their next call comes.
const MOST_GROUNDS: usize = 64;

pub(super) struct Rules {
    pub config: Arc<Config>,
    pub base: Base,
    /// Made when a workspace's first call comes.
    grounds: Mutex<HashMap<(PathBuf, String), (Stamp, Arc<Ground>)>>,
}

impl Rules {
    pub fn load(config: Config, registry: &Registry) -> Result<Self, RulesError> {
        let base = Base::load(&config, registry)?;
        Ok(Rules { config: Arc::new(config), base, grounds: Mutex::default() })
    }

    /// The rules for a workspace, made anew when what the workspace says has changed.
    pub fn ground(&self, registry: &Registry, workspace: &Path, profile: &str) -> Result<Arc<Ground>, RulesError> {
        let key = (workspace.to_owned(), profile.to_owned());
        // Taken before the files are read: a change in between is seen by the next call.
        let stamp = Stamp::of(workspace);
        if let Some((known, ground)) = self.grounds.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && *known == stamp
        {
            return Ok(Arc::clone(ground));
        }
        let ground = Arc::new(Ground::new(&self.base, &self.config, registry, workspace, profile)?);
        let mut grounds = self.grounds.lock().unwrap_or_else(PoisonError::into_inner);
        if grounds.len() >= MOST_GROUNDS {
            grounds.clear();
        }
        grounds.insert(key, (stamp, Arc::clone(&ground)));
        Ok(ground)
    }

    /// What tells one configuration from another.
    pub fn configuration(&self) -> Digest {
        Digest::of(format!("{:?}", self.config.file))
    }
}

/// What a workspace and its own part of the rules look like from outside: enough to notice that they changed.
#[derive(PartialEq, Eq)]
struct Stamp(Vec<(PathBuf, Option<Look>)>);

/// Device, inode, size, and the time of the last change in seconds and nanoseconds.
type Look = (u64, u64, u64, i64, i64);

impl Stamp {
    fn of(workspace: &Path) -> Self {
        let look =
            |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino(), m.size(), m.ctime(), m.ctime_nsec()));
        // Of the workspace itself only which directory it is: its time changes with every file in it.
        let itself = look(workspace).map(|(device, inode, ..)| (device, inode, 0, 0, 0));
        let mut seen = vec![(workspace.to_owned(), itself)];
        let mut paths = vec![workspace.join(".portcullis.toml")];
        let dir = workspace.join(".portcullis");
        if dir.is_dir() {
            for dir in ["policies", "commands", "profiles"].map(|name| dir.join(name)) {
                let mut inside: Vec<PathBuf> =
                    fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_what_the_workspace_says_and_with_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("w");
        fs::create_dir(&workspace).unwrap();
        let mut last = Stamp::of(&workspace);
        fs::write(workspace.join("a-file"), "x").unwrap();
        assert!(Stamp::of(&workspace) == last, "an ordinary file changed the stamp");
        let changes: [(&str, fn(&Path)); 5] = [
            ("a file of its own", |w| fs::write(w.join(".portcullis.toml"), "").unwrap()),
            ("the file's content", |w| fs::write(w.join(".portcullis.toml"), "profile = \"read-only\"").unwrap()),
            ("a policy", |w| {
                fs::create_dir_all(w.join(".portcullis/policies")).unwrap();
                fs::write(w.join(".portcullis/policies/a.cedar"), "").unwrap();
            }),
            ("the policy's removal", |w| fs::remove_file(w.join(".portcullis/policies/a.cedar")).unwrap()),
            ("another directory of the same name", |w| {
                fs::rename(w, w.with_extension("old")).unwrap();
                fs::create_dir(w).unwrap();
            }),
        ];
        for (what, change) in changes {
            change(&workspace);
            let now = Stamp::of(&workspace);
            assert!(now != last, "{what} was not noticed");
            last = now;
        }
    }
}
