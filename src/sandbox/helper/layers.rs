//! The Landlock layers.

use std::error::Error;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::errno::Errno;

use super::root::PRIVATE;
use super::{Failure, PRIVATE_HOME, confine::Places};
use crate::sandbox::wire::{Access, Grant, Job, Template};

/// The layers of one job, ready to be applied: the opened paths are the ones that were granted. A layer is absent only
/// where the plan did without it.
pub struct Layers {
    /// For the supervisor and all that it starts: what the profile says.
    pub outer: Option<RulesetCreated>,
    /// For the program: a domain below the supervisor's, so that the program can neither signal nor trace it.
    pub inner: Option<RulesetCreated>,
}

/// Opens what the template grants and builds both layers. The kernel must give all of it.
pub fn build(template: &Template) -> Result<Layers, Failure> {
    let abi = abi(template);
    if abi == ABI::Unsupported {
        return Ok(Layers { outer: None, inner: None });
    }
    let mut outer = outer_rules(template, abi).map_err(|error| failure("landlock ruleset", &error))?;
    for grant in &template.grants {
        outer = add_grant(outer, grant, abi)?;
    }
    if template.tier.is_full() {
        for (path, access) in private_access(abi) {
            let file = open_path(path).map_err(|error| Failure::io(format!("grant {path}"), &error))?;
            outer = add(outer, &file, access, path)?;
        }
    }
    // The first process of its own namespace needs no second layer: nothing in there can signal or trace it.
    let inner = if abi >= ABI::V2 && !template.tier.is_full() { Some(inner_rules(abi)?) } else { None };
    Ok(Layers { outer: Some(outer), inner })
}

impl Layers {
    /// Grants what comes with the call.
    pub fn admit(self, template: &Template, job: &Job, places: &Places) -> Result<Self, Failure> {
        let Some(outer) = self.outer else { return Ok(self) };
        let abi = abi(template);
        let workspace = if job.workspace_writable { writable(abi) } else { AccessFs::from_read(abi) };
        let mut outer = add(outer, &places.workspace, workspace, "the workspace")?;
        if let Some(scratch) = &places.scratch {
            outer = add(outer, scratch, writable(abi), "the scratch directory")?;
        }
        Ok(Layers { outer: Some(outer), inner: self.inner })
    }
}

fn abi(template: &Template) -> ABI {
    ABI::from(i32::try_from(template.landlock_abi).unwrap_or(i32::MAX))
}

/// The parts of the minimal root that every program has.
fn private_access(abi: ABI) -> Vec<(&'static str, BitFlags<AccessFs>)> {
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut parts = vec![("/", AccessFs::ReadDir.into()), ("/proc", look)];
    parts.push(("/dev/pts", (look | AccessFs::WriteFile | AccessFs::IoctlDev) & AccessFs::from_all(abi)));
    parts.extend(PRIVATE.iter().chain([&PRIVATE_HOME]).map(|path| (*path, writable(abi))));
    parts
}

fn add(
    rules: RulesetCreated,
    to: &impl AsFd,
    access: BitFlags<AccessFs>,
    name: &str,
) -> Result<RulesetCreated, Failure> {
    rules.add_rule(PathBeneath::new(to, access)).map_err(|error| failure(&format!("landlock rule for {name}"), &error))
}

/// Applies a layer to this process, for good.
pub fn restrict(layer: Option<RulesetCreated>, name: &str) -> Result<(), Failure> {
    let Some(layer) = layer else { return Ok(()) };
    let status = layer.restrict_self().map_err(|error| failure(name, &error))?;
    // With every right a hard requirement anything less is impossible; a mistake here must not pass in silence.
    if status.ruleset == RulesetStatus::FullyEnforced { Ok(()) } else { Err(Failure::new(name, Errno::EOPNOTSUPP)) }
}

fn outer_rules(template: &Template, abi: ABI) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(abi))?;
    if template.tcp_denied && abi >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        rules = rules.scope(Scope::from_all(abi))?;
    }
    rules.create()
}

/// Handles nothing but moving files between directories, which every layer denies unless it grants it, and grants that
/// everywhere.
fn inner_rules(abi: ABI) -> Result<RulesetCreated, Failure> {
    let root = open_path("/").map_err(|error| Failure::io("open the root directory", &error))?;
    let rules = || {
        let hard = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let mut rules = hard.handle_access(AccessFs::Refer)?;
        if abi >= ABI::V6 {
            rules = rules.scope(Scope::Signal)?;
        }
        rules.create()?.add_rule(PathBeneath::new(&root, AccessFs::Refer))
    };
    rules().map_err(|error| failure("landlock inner ruleset", &error))
}

fn writable(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi) & !(AccessFs::IoctlDev | AccessFs::MakeBlock | AccessFs::MakeChar)
}

fn add_grant(rules: RulesetCreated, grant: &Grant, abi: ABI) -> Result<RulesetCreated, Failure> {
    let step = || format!("grant {}", grant.path);
    let path = match open_path(&grant.path) {
        Ok(path) => path,
        Err(_) if !grant.required => return Ok(rules),
        Err(error) => return Err(Failure::io(step(), &error)),
    };
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let mut access = match grant.access {
        Access::Look => AccessFs::ReadFile | AccessFs::ReadDir,
        Access::Read => AccessFs::from_read(abi),
        Access::Write => writable(abi),
        Access::Device => device & AccessFs::from_all(abi),
        Access::Terminal if grant.directory => writable(abi) | (AccessFs::from_all(abi) & AccessFs::IoctlDev),
        Access::Terminal => (device | AccessFs::IoctlDev) & AccessFs::from_all(abi),
    };
    if !grant.directory {
        access &= AccessFs::from_file(abi);
    }
    rules.add_rule(PathBeneath::new(path.as_fd(), access)).map_err(|error| failure(&step(), &error))
}

fn open_path(path: &str) -> std::io::Result<File> {
    std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path)
}

/// The kernel's reason is at the end of the chain of causes.
fn failure(step: &str, error: &(dyn Error + 'static)) -> Failure {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Failure::io(step, io);
        }
        cause = error.source();
    }
    Failure::new(step, Errno::EOPNOTSUPP)
}
