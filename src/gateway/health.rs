//! What `doctor` reports of the rules, and of everything that stops calls.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use crate::config::{self, CONFIG, Config};
use crate::gateway::ground::{self, Base};
use crate::gateway::{Caller, Gateway};
use crate::registry::{Registry, nearest};
use crate::sandbox::{Profile, Profiles};

/// What `doctor` reports.
#[derive(Debug, Default)]
pub struct Health {
    pub policies: usize,
    pub policy_files: usize,
    pub command_rules: usize,
    pub profiles: Vec<Arc<Profile>>,
    /// What an operator should see to, a sentence each.
    pub warnings: Vec<String>,
    /// What stops calls, or lets others decide about them, a sentence each.
    pub problems: Vec<String>,
}

impl Gateway {
    /// What `doctor` reports of the rules, and everything that stops this caller's calls.
    pub fn health(&self, caller: &Caller) -> Health {
        let rules = self.rules();
        let mut health = of_configuration(&rules.config, &self.registry);
        let base = &rules.base;
        health.warnings.extend(in_vain(&rules.config, caller));
        let mut summary = base.policies.summary();
        health.command_rules = base.guard.rules().count();
        health.profiles = base.profiles.iter().cloned().collect();
        match self.ground(&caller.workspace, &caller.profile) {
            Ok(ground) => {
                summary = ground.firewall.policies.summary();
                health.command_rules = ground.guard.rules().count();
                let missing = self.kernel.missing(&ground.profile);
                health
                    .problems
                    .extend(missing.iter().map(|layer| format!("profile {} needs {layer}", ground.profile.name)));
                match &ground.resolver {
                    Err(error) => health.problems.push(error.to_string()),
                    Ok(_) => {
                        let made = self.confine(&rules, &ground, &ground.surroundings);
                        let told = |error| format!("no command can be confined: {error}");
                        health.problems.extend(made.err().map(told));
                    }
                }
            }
            Err(error) => health.problems.push(error.to_string()),
        }
        (health.policies, health.policy_files) = (summary.policies, summary.files);
        if rules.config.places.state.exists()
            && let Err(error) = self.state()
        {
            health.problems.push(error.to_string());
        }
        health
    }
}

impl Health {
    /// What can be said where the rules cannot be loaded: everything that is wrong with them.
    pub fn of_unusable(config: &Config, registry: &Registry) -> Self {
        let mut health = of_configuration(config, registry);
        health.problems.extend(Base::faults(config, registry));
        health
    }
}

/// What is wrong with the configuration although it can be read.
fn of_configuration(config: &Config, registry: &Registry) -> Health {
    let mut problems = Vec::new();
    let place = &config.places.config;
    if std::env::var_os(CONFIG).is_some_and(|named| Path::new(&named) == place) && !place.is_dir() {
        let told = format!("{CONFIG} names {}, which is no directory: only the defaults are in force", place.display());
        problems.push(told);
    }
    for agent in &config.file.agents {
        for name in agent.allowed_tools.iter().flatten().filter(|name| !registry.has(name)) {
            let near =
                nearest(name, registry.names()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let known: Vec<&str> = registry.names().collect();
            let told = format!("there is no tool `{name}`{near} (the tools are {})", known.join(", "));
            problems.push(format!("allowed_tools of agent `{}`: {told}", agent.name));
        }
        let refused = agent.workspace.as_deref().and_then(|workspace| config.places.refuse_inside(workspace).err());
        problems.extend(refused.map(|error| format!("agent `{}`: {error}", agent.name)));
    }
    if let Ok(profiles) = ground::profiles(config) {
        let named = config.file.agents.iter().filter_map(|agent| Some((Some(&agent.name), agent.profile.as_ref()?)));
        for (agent, name) in named.chain(config.file.profile.iter().map(|profile| (None, profile))) {
            let whose = agent.map(|agent| format!("agent `{agent}`: ")).unwrap_or_default();
            problems.extend(profiles.named(name).err().map(|error| format!("{whose}{error}")));
        }
    }
    let missing = config.file.read_roots.iter().chain(&config.file.write_roots).filter(|root| !root.is_dir());
    let mut warnings = config.lapsed(Timestamp::now());
    warnings.extend(missing.map(|root| format!("the extra root {} is no directory", root.display())));
    warnings.extend(unread(config));
    warnings.extend(replaced(config));
    Health { warnings, problems, ..Health::default() }
}

/// Profiles of the configuration that take the place of one that the gateway brings.
fn replaced(config: &Config) -> Vec<String> {
    let (Ok(brought), Ok(all)) = (Profiles::built_in(), ground::profiles(config)) else { return Vec::new() };
    let other = |profile: &&Arc<Profile>| all.get(&profile.name).is_some_and(|mine| mine.digest() != profile.digest());
    let told = |profile: &Arc<Profile>| {
        format!(
            "a profile `{}` of the configuration stands in the place of the one that the gateway brings",
            profile.name
        )
    };
    brought.iter().filter(other).map(told).collect()
}

/// A workspace's choice of a profile that narrows nothing.
fn in_vain(config: &Config, caller: &Caller) -> Option<String> {
    let own = config::workspace_file(&caller.workspace).ok()??.profile?;
    let profiles = ground::profiles(config).ok()?;
    let (mine, theirs) = (profiles.get(&caller.profile)?, profiles.get(&own)?);
    (mine.narrowed(theirs).digest() == mine.digest()).then(|| {
        let file = caller.workspace.join(".portcullis.toml");
        format!(
            "{}: profile `{own}` allows nothing less than `{}`, which stays: a workspace can only narrow",
            file.display(),
            caller.profile
        )
    })
}

/// Files that lie where rules are looked for and are not read.
fn unread(config: &Config) -> Vec<String> {
    let kinds = [("policies", "cedar"), ("commands", "toml"), ("profiles", "toml")];
    let mut told = Vec::new();
    for (kind, extension) in kinds {
        for directory in config.dirs().map(|dir| dir.join(kind)) {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() && path.file_name().is_none_or(|name| name != "shadow") && holds(&path, extension) {
                    told.push(format!(
                        "{} is not read: files are taken from {} alone",
                        path.display(),
                        directory.display()
                    ));
                }
            }
        }
    }
    told
}

fn holds(directory: &Path, extension: &str) -> bool {
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.path().extension().is_some_and(|found| found == extension))
}
