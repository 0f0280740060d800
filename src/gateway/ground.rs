//! What a workspace's calls are judged by: the installation's rules, and what the workspace adds to tighten them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::unistd::{AccessFlags, access};

use crate::audit::Hashes;
use crate::audit::replay::Settings;
use crate::config::{self, Config, ConfigError, Exception, Place, PolicySet, WorkspaceFile};
use crate::facts::Surroundings;
use crate::facts::command::{self, Guard, PackError, PackSource};
use crate::facts::path::{GroundError, Protection, ProtectionError, Resolver, standard_rules};
use crate::files::Author;
use crate::firewall::Firewall;
use crate::firewall::policy::{Policies, PolicyError, PolicyFiles, Source, Trust};
use crate::gateway::checked;
use crate::registry::{Definition, Registry};
use crate::sandbox::{Plan, PlanError, Profile, ProfileError, Profiles};
use crate::upstream::PinsError;
use crate::verdict::Severity;

/// The rules of the installation, before any workspace's.
pub(super) struct Base {
    pub policies: Arc<Policies>,
    pub guard: Arc<Guard>,
    packs: Vec<PackSource>,
    pub profiles: Profiles,
}

/// The rules for calls in one workspace.
pub(super) struct Ground {
    pub firewall: Firewall,
    pub guard: Arc<Guard>,
    pub registry: Arc<Registry>,
    /// The packs that the guard was made of, besides the built-in ones.
    pub packs: Vec<PackSource>,
    pub profile: Arc<Profile>,
    /// All there are here, for servers that run in others.
    pub profiles: Profiles,
    pub surroundings: Surroundings,
    /// Absent where the workspace cannot be opened, which denies every call in it.
    pub resolver: Result<Resolver, GroundError>,
    /// The plans that were made, by working directory: making one looks at every path that the profile grants.
    plans: Mutex<HashMap<Start, Plan>>,
}

/// Where a program starts, and whether it is a server behind the gateway: its name.
pub(super) type Start = (PathBuf, Option<String>);

/// How many plans of a ground are kept.
const MOST_PLANS: usize = 64;

impl Base {
    pub fn load(config: &Config, registry: &Registry) -> Result<Self, RulesError> {
        let packs = packs(config)?;
        let profiles = profiles(config)?;
        let policies = Policies::load(policy_sources(config)?, &definitions(registry))?;
        let guard = checked::load(&packs, config)?.with_limits(limits(config));
        for exception in &config.exceptions {
            valid(exception, &guard)?;
        }
        Ok(Base { policies: Arc::new(policies), guard: Arc::new(guard), packs, profiles })
    }
}

/// The bounds of an analysis. They are the operator's alone: a smaller analysis sees less, so it is no tighter.
fn limits(config: &Config) -> command::Limits {
    config.file.limits.set(command::Limits::default())
}

impl Base {
    /// Everything that keeps the rules from being loaded, part by part.
    pub fn faults(config: &Config, registry: &Registry) -> Vec<String> {
        let mut faults: Vec<RulesError> = Vec::new();
        match packs(config).map_err(RulesError::from).and_then(|packs| Ok(checked::load(&packs, config)?)) {
            Ok(guard) => faults.extend(config.exceptions.iter().filter_map(|exception| valid(exception, &guard).err())),
            Err(fault) => faults.push(fault),
        }
        faults.extend(profiles(config).err().map(RulesError::from));
        let policies = policy_sources(config).and_then(|sources| Policies::load(sources, &definitions(registry)));
        faults.extend(policies.err().map(RulesError::from));
        faults.iter().map(ToString::to_string).collect()
    }
}

/// The policies of a workspace.
pub(crate) fn workspace_policies(workspace: &Path) -> Result<Vec<Source>, PolicyError> {
    Source::all(&workspace.join(".portcullis/policies"), Trust::Workspace)
}

/// The command packs of the configuration's directories.
pub(crate) fn packs(config: &Config) -> Result<Vec<PackSource>, ConfigError> {
    let mut packs = Vec::new();
    for dir in config.dirs() {
        for (path, text) in config::texts(&dir.join("commands"), "toml", Author::Operator)? {
            packs.push(pack(&path, text, command::Trust::User));
        }
    }
    Ok(packs)
}

/// The command packs of a workspace.
pub(crate) fn workspace_packs(workspace: &Path) -> Result<Vec<PackSource>, ConfigError> {
    let texts = config::texts(&workspace.join(".portcullis/commands"), "toml", Author::Workspace)?;
    Ok(texts.into_iter().map(|(path, text)| pack(&path, text, command::Trust::Workspace)).collect())
}

/// An exception is from a rule that there is, and not from a fatal one.
fn valid(exception: &Exception, guard: &Guard) -> Result<(), RulesError> {
    let (place, rule) = (exception.place.clone(), exception.rule.clone());
    match guard.rules().find(|known| known.id == rule) {
        None => Err(RulesError::UnknownException { place, rule }),
        Some(known) if known.severity == Severity::Fatal => Err(RulesError::FatalException { place, rule }),
        Some(_) => Ok(()),
    }
}

/// The command guard of a workspace, without the rest of its rules.
pub(crate) fn guard(config: &Config, workspace: &Path) -> Result<Guard, RulesError> {
    let mut sources = packs(config)?;
    sources.extend(workspace_packs(workspace)?);
    Ok(checked::load(&sources, config)?.with_limits(limits(config)))
}

/// The built-in profiles, and those of the configuration's directories.
pub(crate) fn profiles(config: &Config) -> Result<Profiles, ProfileError> {
    let mut profiles = Profiles::built_in()?;
    for dir in config.dirs() {
        profiles.load(&dir.join("profiles"), Author::Operator)?;
    }
    Ok(profiles)
}

/// The standard protected paths, and those of the configuration and of the workspace.
fn protection(config: &Config, own: &WorkspaceFile) -> Result<Protection, ProtectionError> {
    let protect = config.file.protect.iter().chain(&own.protect);
    Protection::new(standard_rules().into_iter().chain(protect.cloned()).collect())
}

/// What looks paths up in a workspace, without the rest of its rules.
pub(crate) fn resolver(config: &Config, surroundings: &Surroundings) -> Result<Resolver, RulesError> {
    let own = config::workspace_file(&surroundings.workspace)?.unwrap_or_default();
    Ok(Resolver::open(surroundings, protection(config, &own)?)?)
}

/// The policies that the configuration names: the shipped set, then the files of the configuration's directories.
pub(crate) fn policy_sources(config: &Config) -> Result<Vec<Source>, PolicyError> {
    let mut sources = match config.file.policy_set.unwrap_or_default() {
        PolicySet::Ask => PolicyFiles::Ask.sources(),
        PolicySet::Strict => PolicyFiles::Strict.sources(),
        PolicySet::None => Vec::new(),
    };
    for dir in config.dirs() {
        sources.extend(Source::all(&dir.join("policies"), Trust::Operator)?);
    }
    Ok(sources)
}

pub(crate) fn definitions(registry: &Registry) -> Vec<&Definition> {
    registry.known().map(|tool| tool.definition()).collect()
}

impl Ground {
    /// Makes the rules for a workspace. What it says in `.portcullis.toml` and `.portcullis/` only tightens.
    pub fn new(
        base: &Base,
        config: &Config,
        registry: &Arc<Registry>,
        workspace: &Path,
        profile: &str,
    ) -> Result<Self, RulesError> {
        usable(workspace)?;
        let own = config::workspace_file(workspace)?.unwrap_or_default();
        let dir = workspace.join(".portcullis");

        let mut policies = Arc::clone(&base.policies);
        let own_policies = workspace_policies(workspace)?;
        if !own_policies.is_empty() {
            let sources = base.policies.sources().iter().cloned().chain(own_policies).collect();
            policies = Arc::new(Policies::load(sources, &definitions(registry))?);
        }

        let mut guard = Arc::clone(&base.guard);
        let mut packs = base.packs.clone();
        let own_packs = workspace_packs(workspace)?;
        if !own_packs.is_empty() {
            packs.extend(own_packs);
            guard = Arc::new(checked::load(&packs, config)?.with_limits(limits(config)));
        }
        let here = |exception: &&Exception| exception.workspace.as_ref().is_none_or(|place| place == workspace);

        let mut profiles = base.profiles.clone();
        profiles.narrow(&dir.join("profiles"))?;
        let mut profile = profiles.named(profile)?;
        if let Some(narrower) = &own.profile {
            profile = Arc::new(profile.narrowed(&*profiles.named(narrower)?));
        }

        let surroundings = config.surroundings(workspace);
        let protection = protection(config, &own)?;
        let restrict = own.restrict_to_workspace.or(config.file.restrict_to_workspace).unwrap_or(true);
        Ok(Ground {
            firewall: Firewall {
                policies,
                restrict_to_workspace: restrict,
                exceptions: config.exceptions.iter().filter(here).cloned().collect(),
            },
            guard,
            registry: Arc::clone(registry),
            packs,
            profile,
            profiles,
            resolver: Resolver::open(&surroundings, protection),
            surroundings,
            plans: Mutex::default(),
        })
    }

    /// The confinement of programs that start so, made by `make` when it is first asked for.
    ///
    /// # Errors
    ///
    /// Those of `make`; they are not kept.
    pub fn plan(&self, start: Start, make: impl FnOnce() -> Result<Plan, PlanError>) -> Result<Plan, PlanError> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&start) {
            return Ok(plan.clone());
        }
        let plan = make()?;
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(start, plan.clone());
        Ok(plan)
    }

    /// The workspace's real path, where that is known.
    pub fn workspace(&self) -> &Path {
        self.resolver.as_ref().map_or(&self.surroundings.workspace, Resolver::workspace)
    }

    /// What names these rules in a record, and binds approvals to them.
    pub fn hashes(&self) -> Hashes {
        Hashes {
            policies: Some(self.firewall.policies.hash()),
            packs: Some(self.guard.hash()),
            profile: Some(self.profile.digest()),
            settings: Some(Settings::of(&self.firewall).hash()),
        }
    }
}

/// That a workspace is there without being one is said before what follows from it. One that is not there is for the
/// resolver to refuse: its calls are judged all the same.
fn usable(workspace: &Path) -> Result<(), RulesError> {
    let refuse = |why| Err(RulesError::Workspace { workspace: workspace.to_owned(), why });
    if !workspace.exists() {
        return Ok(());
    }
    if !workspace.is_dir() {
        return refuse("is not a directory: name the project's directory");
    }
    match access(workspace, AccessFlags::R_OK | AccessFlags::X_OK) {
        Ok(()) => Ok(()),
        Err(_) => refuse("may not be read by this user: choose another, or let this user read and enter it"),
    }
}

fn pack(path: &Path, text: String, trust: command::Trust) -> PackSource {
    PackSource { file: path.display().to_string(), text, trust }
}

/// Why rules cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{place}: `{rule}` is a fatal rule, and there is no exception from those")]
    FatalException { place: Place, rule: String },
    #[error("{place}: there is no command rule `{rule}` to except: `portcullis rules list` names them all")]
    UnknownException { place: Place, rule: String },
    #[error(transparent)]
    Ground(#[from] GroundError),
    #[error(transparent)]
    Pack(#[from] PackError),
    #[error(transparent)]
    Pins(#[from] PinsError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    #[error("the workspace {} {why}", workspace.display())]
    Workspace { workspace: PathBuf, why: &'static str },
}
