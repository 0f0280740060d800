//! The rules that decided, kept by their hash in `rules/` of the state directory, so that every record can be decided
//! again under what it names.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::audit::Hashes;
use crate::call::Digest;
use crate::config::Exception;
use crate::facts::command::{self, PackSource};
use crate::firewall::Firewall;
use crate::firewall::policy::{Policies, PolicyError, Source};
use crate::registry::Definition;
use crate::state::private;

/// What the firewall judges by, besides policies and facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub restrict_to_workspace: bool,
    pub exceptions: Vec<Exception>,
}

impl Settings {
    pub fn of(firewall: &Firewall) -> Self {
        let exceptions = firewall.exceptions.to_vec();
        Settings { restrict_to_workspace: firewall.restrict_to_workspace, exceptions }
    }

    /// What names them in a record.
    pub fn hash(&self) -> Digest {
        // Plain data with string keys has a JSON form; without one, the debug form is as exact.
        serde_json::to_value(self).map_or_else(|_| Digest::of(format!("{self:?}")), |value| Digest::of_json(&value))
    }
}

/// A policy set as it is kept.
#[derive(Serialize, Deserialize)]
struct Sources {
    gateway: String,
    sources: Vec<Source>,
}

/// Command packs as they are kept; those that come with the gateway are those of its version.
#[derive(Serialize, Deserialize)]
struct Packs {
    gateway: String,
    packs: Vec<Pack>,
}

#[derive(Serialize, Deserialize)]
struct Pack {
    file: String,
    text: String,
    workspace: bool,
}

/// Where rules are kept.
#[derive(Debug)]
pub struct Kept {
    dir: PathBuf,
    known: Mutex<HashSet<Digest>>,
}

/// Everything that decides a call, for keeping.
#[derive(Clone, Copy)]
pub struct InForce<'a> {
    pub firewall: &'a Firewall,
    pub packs: &'a [PackSource],
    pub profile: &'a serde_json::Value,
    pub hashes: &'a Hashes,
}

/// Why kept rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not what its name says: it was altered", .0.display())]
    Altered(PathBuf),
    #[error("the record names no rules: it is older than the keeping of rules")]
    Nameless,
    #[error("{} is missing: those rules were not kept, or were removed", .0.display())]
    Missing(PathBuf),
    #[error("{}: {source}", path.display())]
    Policy { path: PathBuf, source: PolicyError },
    #[error("{} cannot be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: serde_json::Error },
    #[error(
        "the policies {hash} were decided under version {by} of the gateway, whose schema this version does not have"
    )]
    Version { hash: Digest, by: String },
}

impl Kept {
    pub fn of(state: &Path) -> Self {
        Kept { dir: state.join("rules"), known: Mutex::default() }
    }

    fn path(&self, kind: &str, hash: Digest) -> PathBuf {
        self.dir.join(format!("{kind}-{hash}.json"))
    }

    /// Keeps the rules, unless they are kept already.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn keep(&self, rules: InForce<'_>) -> Result<(), KeptError> {
        let gateway = || env!("CARGO_PKG_VERSION").to_owned();
        let Hashes { policies, packs, profile, settings } = rules.hashes;
        if let Some(hash) = policies {
            self.write("policies", *hash, || {
                serde_json::to_vec(&Sources { gateway: gateway(), sources: rules.firewall.policies.sources().to_vec() })
            })?;
        }
        if let Some(hash) = packs {
            self.write("packs", *hash, || {
                let pack = |pack: &PackSource| Pack {
                    file: pack.file.clone(),
                    text: pack.text.clone(),
                    workspace: pack.trust == command::Trust::Workspace,
                };
                serde_json::to_vec(&Packs { gateway: gateway(), packs: rules.packs.iter().map(pack).collect() })
            })?;
        }
        if let Some(hash) = settings {
            self.write("settings", *hash, || serde_json::to_vec(&Settings::of(rules.firewall)))?;
        }
        if let Some(hash) = profile {
            self.write("profile", *hash, || serde_json::to_vec(rules.profile))?;
        }
        Ok(())
    }

    fn write(
        &self,
        kind: &str,
        hash: Digest,
        text: impl FnOnce() -> serde_json::Result<Vec<u8>>,
    ) -> Result<(), KeptError> {
        if self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash) {
            return Ok(());
        }
        let path = self.path(kind, hash);
        let failed = |source| KeptError::Io { path: path.clone(), source };
        if !path.exists() {
            let text = text().map_err(|error| KeptError::Unreadable { path: path.clone(), error })?;
            match std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700).create(&self.dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(e)),
                Err(_) | Ok(()) => {}
            }
            let draft = path.with_extension(format!("new-{}", uuid::Uuid::now_v7()));
            let written = (|| {
                let mut file = private().write(true).create_new(true).open(&draft)?;
                io::Write::write_all(&mut file, &text)?;
                file.sync_data()?;
                fs::rename(&draft, &path)
            })();
            written.map_err(failed)?;
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, kind: &str, hash: Digest) -> Result<T, KeptError> {
        let path = self.path(kind, hash);
        let text = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(KeptError::Missing(path)),
            Err(source) => return Err(KeptError::Io { path, source }),
            Ok(text) => text,
        };
        serde_json::from_slice(&text).map_err(|error| KeptError::Unreadable { path, error })
    }
}

/// Kept rules, made ready to decide and held for the next record that names them.
pub struct Library<'a> {
    kept: Kept,
    tools: Vec<&'a Definition>,
    ready: HashMap<(Digest, Digest), Arc<Firewall>>,
    settings: HashMap<Digest, Option<Arc<Settings>>>,
}

impl<'a> Library<'a> {
    pub fn new(state: &Path, tools: Vec<&'a Definition>) -> Self {
        Library { kept: Kept::of(state), tools, ready: HashMap::new(), settings: HashMap::new() }
    }

    /// The firewall that a record names.
    ///
    /// # Errors
    ///
    /// When its rules were not kept, or are not what their names say.
    pub fn firewall(&mut self, hashes: &Hashes) -> Result<Arc<Firewall>, KeptError> {
        let (Some(policies), Some(settings)) = (hashes.policies, hashes.settings) else {
            return Err(KeptError::Nameless);
        };
        if let Some(ready) = self.ready.get(&(policies, settings)) {
            return Ok(Arc::clone(ready));
        }
        let set = self.policies(policies)?;
        let Settings { restrict_to_workspace, exceptions } = self.settings(settings)?;
        let ready = Arc::new(Firewall { policies: set, restrict_to_workspace, exceptions: exceptions.into() });
        self.ready.insert((policies, settings), Arc::clone(&ready));
        Ok(ready)
    }

    fn policies(&self, hash: Digest) -> Result<Arc<Policies>, KeptError> {
        let Sources { gateway, sources } = self.kept.read("policies", hash)?;
        let path = self.kept.path("policies", hash);
        let set =
            Policies::load(sources, &self.tools).map_err(|source| KeptError::Policy { path: path.clone(), source })?;
        if set.hash() == hash {
            return Ok(Arc::new(set));
        }
        // The hash is over the tools' schema too, which comes with the program.
        Err(if gateway == env!("CARGO_PKG_VERSION") {
            KeptError::Altered(path)
        } else {
            KeptError::Version { hash, by: gateway }
        })
    }

    /// The settings that a record names, where they were kept; read once.
    pub(super) fn settings_once(&mut self, hash: Digest) -> Option<Arc<Settings>> {
        if let Some(known) = self.settings.get(&hash) {
            return known.clone();
        }
        let read = self.settings(hash).ok().map(Arc::new);
        self.settings.insert(hash, read.clone());
        read
    }

    fn settings(&self, hash: Digest) -> Result<Settings, KeptError> {
        let settings: Settings = self.kept.read("settings", hash)?;
        if settings.hash() == hash { Ok(settings) } else { Err(KeptError::Altered(self.kept.path("settings", hash))) }
    }
}
