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

use super::{Failure, confine::Places};
use crate::sandbox::wire::{Access, Grant, Job};

/// The layers of one job, ready to be applied: the opened paths are the ones that were granted. A layer is absent only
/// where the plan did without it.
pub struct Layers {
    /// For the supervisor and all that it starts: what the profile says.
    pub outer: Option<RulesetCreated>,
    /// For the program: a domain below the supervisor's, so that the program can neither signal nor trace it.
    pub inner: Option<RulesetCreated>,
}

/// Opens what the job grants and builds both layers. The kernel must give all of it.
pub fn build(job: &Job, places: &Places) -> Result<Layers, Failure> {
    let abi = ABI::from(i32::try_from(job.landlock_abi).unwrap_or(i32::MAX));
    if abi == ABI::Unsupported {
        return Ok(Layers { outer: None, inner: None });
    }
    let mut outer = outer_rules(job, abi).map_err(|error| failure("landlock ruleset", &error))?;
    for grant in &job.grants {
        outer = add_grant(outer, grant, abi)?;
    }
    let all = writable(abi);
    let workspace = if job.workspace_writable { all } else { AccessFs::from_read(abi) };
    for (name, place, access) in
        [("workspace", &places.workspace, workspace), ("scratch directory", &places.scratch, all)]
    {
        outer = outer
            .add_rule(PathBeneath::new(place, access))
            .map_err(|error| failure(&format!("landlock rule for the {name}"), &error))?;
    }
    let inner = if abi >= ABI::V2 { Some(inner_rules(abi)?) } else { None };
    Ok(Layers { outer: Some(outer), inner })
}

/// Applies a layer to this process, for good.
pub fn restrict(layer: Option<RulesetCreated>, name: &str) -> Result<(), Failure> {
    let Some(layer) = layer else { return Ok(()) };
    let status = layer.restrict_self().map_err(|error| failure(name, &error))?;
    // With every right a hard requirement anything less is impossible; a mistake here must not pass in silence.
    if status.ruleset == RulesetStatus::FullyEnforced { Ok(()) } else { Err(Failure::new(name, Errno::EOPNOTSUPP)) }
}

fn outer_rules(job: &Job, abi: ABI) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(abi))?;
    if job.tcp_denied && abi >= ABI::V4 {
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
