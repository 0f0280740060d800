//! A plan: everything that is needed to run a program confined, worked out and checked beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Tier;
use super::denials::Scene;
use super::kernel::{Kernel, Layer};
use super::profile::{Profile, Reach};
use super::seccomp::{self, Openings};
use super::toolchains::Toolchains;
use super::wire::{Access, Grant, Template};
use crate::call::Digest;
use crate::facts::Surroundings;
use crate::facts::path::{Hold, Resolver, Wards};

/// Where `PATH` points when nothing of the gateway's own is readable inside.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Device nodes that every program may use.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The most bytes in each private directory of the full tiers.
const SPACE: u64 = 1 << 30;

/// The major number of /dev/tty and /dev/ptmx.
const TTY_AUX: u32 = 5;

/// How a program is to be confined in one place. The workspace is held open, so that the directory that was checked is
/// the one that is granted.
#[derive(Clone, Debug)]
pub struct Plan {
    profile: Arc<Profile>,
    tier: Tier,
    workspace: PathBuf,
    workspace_dir: Arc<File>,
    cwd: PathBuf,
    scratch: PathBuf,
    grants: Vec<Grant>,
    /// Other names of what is granted.
    names: Vec<String>,
    /// The repository that the workspace is a linked worktree of, where it lies outside.
    repository: Option<String>,
    /// The gateway's own files in a workspace that can be written, relative to it.
    own: Vec<String>,
    /// Directories that last, to be made before the first call.
    caches: Vec<PathBuf>,
    environment: BTreeMap<String, String>,
    landlock_abi: u32,
    seccomp: bool,
    template: Arc<[u8]>,
    digest: Digest,
    /// What knows the protected paths.
    guard: Option<Resolver>,
}

/// What a plan takes from the gateway's own surroundings.
#[derive(Clone, Debug)]
pub struct Host {
    /// The directory in which each call gets a private home and temporary directory. Made when missing, mode 0700.
    pub scratch: PathBuf,
    /// The directory that holds the caches of profiles that have some. Made when such a profile is used.
    pub caches: PathBuf,
    /// The environment from which a profile lets variables pass.
    pub environment: Vec<(OsString, OsString)>,
}

impl Host {
    /// This process's environment; scratch directories under the system's temporary directory; caches where the user's
    /// are.
    pub fn current() -> Self {
        // Two users of one machine stay out of each other's directory.
        let name = format!("portcullis-{}", nix::unistd::geteuid());
        let scratch = std::env::temp_dir().join(name);
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .map_or_else(|| scratch.join("caches"), |base| base.join("portcullis/sandbox"));
        Host { scratch, caches, environment: std::env::vars_os().collect() }
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{what} `{}` is no absolute path", path.display())]
    NotAbsolute { what: &'static str, path: PathBuf },
    #[error("path `{}` is not UTF-8, which the sandbox does not carry", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("workspace `{}` cannot be opened as a directory: {source}", path.display())]
    Workspace { path: PathBuf, source: std::io::Error },
    #[error("workspace `{}` is reached through a symbolic link: name the directory itself, `{}`", path.display(), real.display())]
    Linked { path: PathBuf, real: PathBuf },
    #[error("the root directory cannot be a workspace: name the project's directory")]
    Root,
    #[error("working directory `{}` is neither in the workspace nor in a directory that the profile grants", .0.display())]
    Cwd(PathBuf),
    #[error("profile `{profile}` or the configuration grants `{}`, which holds the gateway's own `{}`: move one of them", grant.display(), own.display())]
    Gateway { profile: String, grant: PathBuf, own: PathBuf },
    #[error("the plan cannot be put into words for the helper: {0}")]
    Template(#[source] serde_json::Error),
    #[error("profile `{profile}` requires what this kernel cannot give: {missing}")]
    Missing { profile: String, missing: String },
}

impl Plan {
    /// Works out how `profile` confines a program in these surroundings on this kernel.
    ///
    /// Refused where the kernel lacks a required layer, unless the profile asks a reviewer instead, in which case the
    /// plan applies what there is (the firewall has asked by then).
    pub fn new(profile: &Arc<Profile>, kernel: &Kernel, here: &Surroundings, host: &Host) -> Result<Self, PlanError> {
        let missing = kernel.missing(profile);
        if !missing.is_empty() && profile.when_missing == super::profile::WhenMissing::Deny {
            let missing = missing.iter().map(Layer::to_string).collect::<Vec<_>>().join(", ");
            return Err(PlanError::Missing { profile: profile.name.clone(), missing });
        }
        let workspace = here.workspace.clone();
        let workspace_dir = Arc::new(open_workspace(&workspace)?);
        let caches = caches(profile, here, host);
        let tier = kernel.tier(profile);
        let repository = if tier.is_full() { linked_repository(&workspace) } else { None };
        let own = if profile.filesystem.workspace == Reach::Write { own_files(here)? } else { Vec::new() };
        let toolchains = Toolchains::find(profile, here, &host.environment);
        let (opened, names) = opened_grants(profile, here, &caches, repository.as_deref(), &toolchains);
        check_gateway(profile, here, &opened)?;
        let grants: Vec<Grant> = opened.into_iter().map(|opened| opened.grant).collect();
        check_cwd(here, &grants)?;
        let mut environment = environment(profile, here, host, &grants, &toolchains)?;
        for (variable, path) in &caches {
            let text = path.to_str().ok_or_else(|| PlanError::NotUtf8 { path: path.clone() })?;
            environment.insert(variable.clone(), text.to_owned());
        }
        let mut plan = Plan {
            profile: Arc::clone(profile),
            tier,
            workspace,
            workspace_dir,
            cwd: here.cwd.clone(),
            scratch: host.scratch.clone(),
            grants,
            names,
            caches: caches.into_values().collect(),
            repository: repository.and_then(|path| path.to_str().map(str::to_owned)),
            own,
            environment,
            landlock_abi: kernel.landlock_abi,
            seccomp: kernel.seccomp,
            template: Arc::default(),
            digest: Digest::of(""),
            guard: None,
        };
        plan.template = plan.make_template().map_err(PlanError::Template)?.into();
        plan.digest = plan.compute_digest();
        for path in [&plan.workspace, &plan.cwd, &plan.scratch] {
            if path.to_str().is_none() {
                return Err(PlanError::NotUtf8 { path: path.clone() });
            }
        }
        Ok(plan)
    }

    /// Sets a variable for the program. Names that make a loader, shell or interpreter run something are refused by
    /// answering `false`.
    #[must_use]
    pub fn set_variable(&mut self, name: &str, value: &str) -> bool {
        let fit = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        if !fit || super::profile::is_dangerous(name) {
            return false;
        }
        self.environment.insert(name.to_owned(), value.to_owned());
        self.digest = self.compute_digest();
        true
    }

    /// Has protected paths kept from programs, in the full tiers.
    #[must_use]
    pub fn guarded_by(mut self, resolver: &Resolver) -> Self {
        self.guard = Some(resolver.clone());
        self
    }

    /// The protected paths as they are now. In the landlock tier none can be kept from programs.
    pub(super) fn wards(&self) -> Wards {
        self.guard.as_ref().filter(|_| self.tier.is_full()).map(Resolver::wards).unwrap_or_default()
    }

    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// The tier that is applied.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The gateway's own files in the workspace, relative to it: the full tiers keep them as they are.
    pub fn own(&self) -> &[String] {
        &self.own
    }

    /// Whether the program can replace a file of the gateway's own: Landlock cannot take anything out of what it grants.
    pub fn exposes_own(&self) -> bool {
        !self.own.is_empty() && !self.tier.is_full()
    }

    /// What the plan's digest binds: the profile, the places, what is granted, the names of the variables, the kernel's
    /// layers.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The longest that a program may run.
    pub fn wall_limit(&self) -> Duration {
        Duration::from_secs(self.profile.limits.wall_seconds.get())
    }

    /// Bytes kept of each output stream.
    pub fn output_limit(&self) -> usize {
        usize::try_from(self.profile.limits.output_bytes.get()).unwrap_or(usize::MAX)
    }

    pub(super) fn workspace_dir(&self) -> &File {
        &self.workspace_dir
    }

    pub(super) fn scratch_base(&self) -> &Path {
        &self.scratch
    }

    /// Makes the directories that last, where they are missing, for the owner of the workspace.
    pub(super) fn make_caches(&self) -> std::io::Result<()> {
        let owner = self.workspace_dir.metadata()?;
        for cache in self.caches.iter().filter(|cache| !cache.is_dir()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
            if nix::unistd::geteuid().is_root() {
                std::os::unix::fs::chown(cache, Some(owner.uid()), Some(owner.gid()))?;
            }
        }
        Ok(())
    }

    /// What the helper prepares before there is a call, as it is sent.
    pub(super) fn template(&self) -> &Arc<[u8]> {
        &self.template
    }

    fn make_template(&self) -> serde_json::Result<Vec<u8>> {
        let profile = &self.profile;
        let private = self.tier.is_full();
        let openings = Openings {
            internet: profile.network.internet,
            unix_sockets: profile.network.unix_sockets,
            trace: profile.process.trace,
            private,
        };
        let owner = self.workspace_dir.metadata().map_or((0, 0), |workspace| (workspace.uid(), workspace.gid()));
        let template = Template {
            tier: self.tier,
            grants: self.grants.clone(),
            repository: self.repository.clone().filter(|_| profile.filesystem.workspace == Reach::Write),
            names: if private { self.names.clone() } else { Vec::new() },
            landlock_abi: self.landlock_abi,
            tcp_denied: !profile.network.internet && !private,
            private_network: !profile.network.internet,
            seccomp: self.seccomp,
            owner,
            space_bytes: SPACE,
        };
        template.encode(if self.seccomp { seccomp::filter(openings) } else { &[] })
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// What the plan grants, for people and programs that ask before anything runs.
    pub fn describe(&self, kernel: &Kernel) -> serde_json::Value {
        let grants = |wanted: &[Access]| -> Vec<&str> {
            self.grants.iter().filter(|g| wanted.contains(&g.access)).map(|g| g.path.as_str()).collect()
        };
        let private: &[&str] = if self.tier.is_full() {
            &["/tmp", "/var/tmp", "/dev/shm", "/run", "$HOME"]
        } else {
            &["$HOME", "$TMPDIR"]
        };
        let limits = &self.profile.limits;
        json!({
            "profile": self.profile.name,
            "description": self.profile.description,
            "tier": self.tier.as_str(),
            "digest": self.digest.to_string(),
            "workspace": { "path": self.workspace.to_string_lossy(), "access": self.profile.filesystem.workspace },
            "private": private,
            "read": grants(&[Access::Read, Access::Look]),
            "write": grants(&[Access::Write]),
            "devices": grants(&[Access::Device, Access::Terminal]),
            "network": if self.profile.network.internet { "internet" } else if self.tier.is_full() { "own loopback" } else { "none" },
            "trace": self.profile.process.trace,
            "repository": self.repository,
            "own_kept": if self.tier.is_full() { self.own.as_slice() } else { &[] },
            "own_exposed": if self.exposes_own() { self.own.as_slice() } else { &[] },
            "limits": limits,
            "variables": self.environment.keys().collect::<Vec<_>>(),
            "not_stopped": kernel.limitations(&self.profile),
        })
    }

    /// What a failed program's messages are understood by.
    pub(super) fn scene(&self, wards: &Wards) -> Scene {
        let granted = |wanted: &[Access]| -> Vec<PathBuf> {
            let grants = self.grants.iter().filter(|grant| wanted.contains(&grant.access));
            grants.map(|grant| PathBuf::from(&grant.path)).collect()
        };
        let mut write = granted(&[Access::Write, Access::Device, Access::Terminal]);
        if !self.tier.is_full() {
            write.push(self.scratch.clone());
        }
        Scene {
            profile: self.profile.name.clone(),
            workspace: self.workspace.clone(),
            cwd: self.cwd.clone(),
            workspace_writable: self.profile.filesystem.workspace == Reach::Write,
            read: granted(&[Access::Read, Access::Look]),
            write,
            private: Scene::private_places(self.tier),
            internet: self.profile.network.internet,
            trace: self.profile.process.trace,
            full: self.tier.is_full(),
            hidden: wards.all.iter().filter(|ward| ward.hold == Hold::Hidden).map(|ward| ward.path.clone()).collect(),
            kept: wards.all.iter().filter(|ward| ward.hold == Hold::Content).map(|ward| ward.path.clone()).collect(),
        }
    }

    fn compute_digest(&self) -> Digest {
        let grants: Vec<_> = self.grants.iter().map(|g| json!([g.path, g.access])).collect();
        Digest::of_json(&json!({
            "profile": self.profile.digest().to_string(),
            "tier": self.tier.as_str(),
            "workspace": self.workspace.to_string_lossy(),
            "cwd": self.cwd.to_string_lossy(),
            "grants": grants,
            "variables": self.environment.keys().collect::<Vec<_>>(),
            "caches": self.caches.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "repository": self.repository,
            "own": self.own,
            "landlock_abi": self.landlock_abi,
            "seccomp": self.seccomp,
        }))
    }
}

/// Opens the workspace and makes sure that its name means what it says: absolute, a directory, no symbolic link in it.
fn open_workspace(path: &Path) -> Result<File, PlanError> {
    if !path.is_absolute() {
        return Err(PlanError::NotAbsolute { what: "workspace", path: path.to_owned() });
    }
    let failed = |source| PlanError::Workspace { path: path.to_owned(), source };
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let dir = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let real = fs::read_link(format!("/proc/self/fd/{}", fd_number(&dir))).map_err(failed)?;
    if real == Path::new("/") {
        return Err(PlanError::Root);
    }
    if real != path {
        return Err(PlanError::Linked { path: path.to_owned(), real });
    }
    Ok(dir)
}

pub(super) fn fd_number(fd: &impl AsFd) -> i32 {
    use std::os::fd::AsRawFd;
    fd.as_fd().as_raw_fd()
}

/// A grant, and the path that it really is.
struct Opened {
    grant: Grant,
    real: PathBuf,
}

/// The repository of a linked worktree (gitrepository-layout(5)), where it lies outside the workspace. The workspace's file
/// `.git` names it, which programs may have written: it counts only where the repository names the workspace as well.
fn linked_repository(workspace: &Path) -> Option<PathBuf> {
    let link = workspace.join(".git");
    let line = |path: &Path| -> Option<String> {
        let small = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() < 4096);
        small.then(|| fs::read_to_string(path).ok()).flatten().map(|text| text.trim_end().to_owned())
    };
    let named = line(&link)?;
    let own = fs::canonicalize(workspace.join(named.strip_prefix("gitdir: ")?)).ok()?;
    let back = PathBuf::from(line(&own.join("gitdir"))?);
    if fs::canonicalize(back).ok()? != link {
        return None;
    }
    let common = fs::canonicalize(own.join(line(&own.join("commondir"))?)).ok()?;
    let whole = own.starts_with(&common) && common.join("HEAD").is_file() && common.join("objects").is_dir();
    (whole && !common.starts_with(workspace)).then_some(common)
}

/// The gateway's own files that lie in the workspace, relative to it, as its binary does for whoever works on the gateway.
fn own_files(here: &Surroundings) -> Result<Vec<String>, PlanError> {
    let real = |path: &PathBuf| fs::canonicalize(path).ok().filter(|real| real.is_file());
    let own: BTreeSet<PathBuf> = here.gateway.iter().filter_map(real).collect();
    let inside = own.iter().filter_map(|path| path.strip_prefix(&here.workspace).ok());
    let text =
        |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| PlanError::NotUtf8 { path: path.to_owned() });
    inside.map(text).collect()
}

/// The profile's caches for a workspace, by variable: nothing that one project's programs leave there is run in another.
fn caches(profile: &Profile, here: &Surroundings, host: &Host) -> BTreeMap<String, PathBuf> {
    let digest = Digest::of(here.workspace.as_os_str().as_encoded_bytes()).to_string();
    let short = digest.rsplit(':').next().unwrap_or_default().get(..32).unwrap_or_default();
    let base = host.caches.join(&profile.name).join(short);
    profile.caches.iter().map(|(variable, name)| (variable.clone(), base.join(name.as_str()))).collect()
}

/// What the profile and the configuration grant, without what does not exist and without what another grant covers; and
/// those of the latter that are links.
fn opened_grants(
    profile: &Profile,
    here: &Surroundings,
    caches: &BTreeMap<String, PathBuf>,
    repository: Option<&Path>,
    toolchains: &Toolchains,
) -> (Vec<Opened>, Vec<String>) {
    let fs = &profile.filesystem;
    let write_roots = if fs.workspace == Reach::Write { Access::Write } else { Access::Read };
    let resolve = |path: &super::profile::GrantPath| path.resolve(&here.home);
    let pseudo = |path: &Path| path.starts_with("/proc") || path.starts_with("/sys");
    let mut wanted: Vec<(PathBuf, Access, bool)> = Vec::new();
    for path in fs.system.iter().flat_map(resolve) {
        let access = if pseudo(&path) { Access::Look } else { Access::Read };
        wanted.push((path, access, false));
    }
    wanted.extend(toolchains.read.iter().map(|path| (path.clone(), Access::Read, false)));
    wanted.extend(fs.read.iter().flat_map(resolve).map(|path| (path, Access::Read, true)));
    wanted.extend(fs.write.iter().flat_map(resolve).map(|path| (path, Access::Write, true)));
    wanted.extend(repository.map(|path| (path.to_owned(), write_roots, true)));
    wanted.extend(caches.values().map(|path| (path.clone(), Access::Write, true)));
    wanted.extend(here.read_roots.iter().map(|root| (root.clone(), Access::Read, true)));
    wanted.extend(here.write_roots.iter().map(|root| (root.clone(), write_roots, true)));
    wanted.extend(DEVICES.iter().map(|device| (PathBuf::from(device), Access::Device, false)));
    let (mut opened, mut names): (Vec<Opened>, _) = (Vec::with_capacity(wanted.len()), Vec::new());
    for grant in wanted.into_iter().filter_map(|(path, access, required)| open_grant(path, access, required)) {
        let covered = |outer: &Opened| outer.grant.access == grant.grant.access && grant.real.starts_with(&outer.real);
        if grant.grant.required || !opened.iter().any(covered) {
            opened.push(grant);
        } else if Path::new(&grant.grant.path) != grant.real {
            names.push(grant.grant.path);
        }
    }
    (opened, names)
}

/// Looks at a path that is to be granted; `None` where it does not exist and need not, or where its name is not UTF-8,
/// which only a `*` can find.
fn open_grant(path: PathBuf, mut access: Access, required: bool) -> Option<Opened> {
    let text = path.to_str()?.to_owned();
    let open = fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(&path);
    let Ok(file) = open else {
        // The set-up will name it.
        let grant = Grant { path: text, access, directory: true, required };
        return required.then_some(Opened { grant, real: path });
    };
    let kind = file.metadata().ok()?;
    let real = fs::read_link(format!("/proc/self/fd/{}", fd_number(&file))).unwrap_or(path);
    let node = kind.file_type().is_char_device();
    let terminal = node && libc::major(kind.rdev()) == TTY_AUX || real == Path::new("/dev/pts");
    access = match access {
        Access::Device if !node => return None,
        Access::Write | Access::Device if terminal => Access::Terminal,
        Access::Write if node => Access::Device,
        other => other,
    };
    Some(Opened { grant: Grant { path: text, access, directory: kind.is_dir(), required }, real })
}

/// No grant may hold, or lie in, a place of the gateway's own. A single file among the system's programs may: that is
/// the gateway's binary, which is only read there. In the workspace it is kept as it is ([`own_files`]).
fn check_gateway(profile: &Profile, here: &Surroundings, grants: &[Opened]) -> Result<(), PlanError> {
    // What a link leads to is granted too, so the real names count.
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let own: Vec<(&PathBuf, PathBuf, bool)> = here.gateway.iter().map(|own| (own, real(own), own.is_file())).collect();
    let workspace = (here.workspace.as_path(), here.workspace.as_path(), false);
    let paths = grants.iter().map(|g| (Path::new(&g.grant.path), g.real.as_path(), g.grant.required));
    for (path, granted, required) in paths.chain([workspace]) {
        for (own, own_real, is_file) in &own {
            let binary = !required && *is_file;
            if (own_real.starts_with(granted) && !binary) || granted.starts_with(own_real) {
                return Err(PlanError::Gateway {
                    profile: profile.name.clone(),
                    grant: path.to_owned(),
                    own: (*own).clone(),
                });
            }
        }
    }
    Ok(())
}

fn check_cwd(here: &Surroundings, grants: &[Grant]) -> Result<(), PlanError> {
    if !here.cwd.is_absolute() {
        return Err(PlanError::NotAbsolute { what: "working directory", path: here.cwd.clone() });
    }
    let granted = grants
        .iter()
        .filter(|g| matches!(g.access, Access::Read | Access::Write))
        .any(|g| here.cwd.starts_with(&g.path));
    if here.cwd.starts_with(&here.workspace) || granted { Ok(()) } else { Err(PlanError::Cwd(here.cwd.clone())) }
}

fn environment(
    profile: &Profile,
    here: &Surroundings,
    host: &Host,
    grants: &[Grant],
    toolchains: &Toolchains,
) -> Result<BTreeMap<String, String>, PlanError> {
    let mut variables: BTreeMap<String, String> = host
        .environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
        .filter(|(name, _)| profile.environment.passes(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in &profile.environment.set {
        match value.strip_prefix("~/") {
            Some(rest) => {
                let mut places = [&here.home].into_iter().chain(&toolchains.homes).map(|home| home.join(rest));
                if let Some(path) = places.find(|path| path.exists()) {
                    let text = path.to_str().ok_or_else(|| PlanError::NotUtf8 { path: path.clone() })?;
                    variables.insert(name.clone(), text.to_owned());
                }
            }
            None => {
                variables.insert(name.clone(), value.clone());
            }
        }
    }
    for (name, value) in &toolchains.variables {
        if profile.environment.set.contains_key(*name) || profile.environment.passes(name) {
            variables.insert((*name).to_owned(), value.clone());
        }
    }
    let path = variables.get("PATH").map(|path| readable_path(path, &here.workspace, grants)).unwrap_or_default();
    variables.insert("PATH".to_owned(), if path.is_empty() { DEFAULT_PATH.to_owned() } else { path });
    variables.insert("SHELL".to_owned(), "/bin/bash".to_owned());
    Ok(variables)
}

/// The directories of a search path that can be read inside. A shell would stop at a program that it finds by name and
/// may not run.
fn readable_path(path: &str, workspace: &Path, grants: &[Grant]) -> String {
    let granted = |dir: &&str| {
        let dir = Path::new(dir);
        // `/bin` is granted through `/usr` where it is a link to there.
        let real = fs::canonicalize(dir);
        let within = |dir: &Path| dir.starts_with(workspace) || grants.iter().any(|g| dir.starts_with(&g.path));
        dir.is_absolute() && real.is_ok_and(|real| within(&real))
    };
    path.split(':').filter(granted).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::profile::DEFAULT_PROFILE;
    use crate::sandbox::profiles::Profiles;

    fn plan(edit: impl FnOnce(&mut Surroundings, &mut Profile)) -> Result<Plan, PlanError> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for sub in ["ws/sub", "state", "home"] {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("ws"), root.join("link")).unwrap();
        let mut here = Surroundings::new(root.join("ws"), root.join("home"));
        here.gateway.push(root.join("state"));
        let mut profile = (**Profiles::built_in().unwrap().get(DEFAULT_PROFILE).unwrap()).clone();
        edit(&mut here, &mut profile);
        let variables =
            [("PATH", "/root/secret/bin:/usr/bin:relative:/bin"), ("A_TOKEN", "x"), ("LANG", "C"), ("LD_PRELOAD", "x")];
        let host = Host {
            scratch: root.join("state/scratch"),
            caches: root.join("caches"),
            environment: variables.iter().map(|(n, v)| (OsString::from(n), OsString::from(v))).collect(),
        };
        Plan::new(&Arc::new(profile), &full_kernel(), &here, &host)
    }

    fn full_kernel() -> Kernel {
        Kernel { landlock_abi: 7, seccomp: true, no_new_privs: true, ..Kernel::probe().clone() }
    }

    fn error(edit: impl FnOnce(&mut Surroundings, &mut Profile)) -> String {
        plan(edit).unwrap_err().to_string()
    }

    #[test]
    fn the_environment_is_what_the_profile_lets_pass() {
        let plan = plan(|_, _| {}).unwrap();
        let names: Vec<&str> = plan.environment().keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["GIT_TEMPLATE_DIR", "LANG", "PATH", "SHELL"],
            "something else passed, or something is missing"
        );
        assert_eq!(
            plan.environment()["PATH"],
            "/usr/bin:/bin",
            "directories that cannot be read inside stay out of PATH"
        );
    }

    #[test]
    fn a_variable_that_makes_a_loader_run_something_cannot_be_set() {
        let mut plan = plan(|_, _| {}).unwrap();
        let before = plan.digest();
        assert!(
            !plan.set_variable("LD_PRELOAD", "/x") && !plan.set_variable("A=B", "c") && !plan.set_variable("A", "\0")
        );
        assert_eq!(plan.digest(), before);
        assert!(plan.set_variable("ANSWER", "42"));
        assert_ne!(plan.digest(), before, "the digest does not bind the variables");
    }

    #[test]
    fn a_linked_worktree_names_its_repository_and_is_named_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let own = root.join("repo/.git/worktrees/wt");
        fs::create_dir_all(root.join("repo/.git/objects")).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(root.join("wt")).unwrap();
        fs::create_dir_all(root.join("evil")).unwrap();
        let write = |path: PathBuf, text: String| fs::write(path, text).unwrap();
        write(root.join("repo/.git/HEAD"), "ref: refs/heads/main\n".into());
        write(own.join("commondir"), "../..\n".into());
        write(own.join("gitdir"), format!("{}\n", root.join("wt/.git").display()));
        for workspace in ["wt", "evil"] {
            write(root.join(workspace).join(".git"), format!("gitdir: {}\n", own.display()));
        }
        assert_eq!(linked_repository(&root.join("wt")), Some(root.join("repo/.git")));
        assert_eq!(linked_repository(&root.join("evil")), None, "a workspace chose a repository of somebody else's");
        assert_eq!(linked_repository(&root.join("repo")), None);
    }

    #[test]
    fn what_holds_the_gateways_own_files_is_refused() {
        let above = error(|here, _| here.workspace = here.workspace.parent().unwrap().to_owned());
        assert!(above.contains("holds the gateway's own"), "{above}");
        let inside = error(|here, _| here.read_roots.push(here.gateway[0].join("keys")));
        assert!(inside.contains("holds the gateway's own"), "{inside}");
        let by_profile = error(|here, profile| {
            let parent = here.workspace.parent().unwrap().to_str().unwrap().to_owned();
            profile.filesystem.read = vec![parent.try_into().unwrap()];
        });
        assert!(by_profile.contains("holds the gateway's own"), "{by_profile}");
    }

    #[test]
    fn a_workspace_must_be_a_directory_under_its_own_name() {
        let linked = error(|here, _| {
            here.workspace = here.workspace.with_file_name("link").join("sub");
            here.cwd = here.workspace.clone();
        });
        assert!(linked.contains("through a symbolic link"), "{linked}");
        let gone = error(|here, _| here.workspace = here.workspace.join("gone"));
        assert!(gone.contains("cannot be opened as a directory"), "{gone}");
        let outside = error(|here, _| here.cwd = "/var".into());
        assert!(outside.contains("working directory `/var`"), "{outside}");
    }

    #[test]
    fn i5_a_missing_layer_is_no_plan_unless_a_reviewer_is_asked() {
        let profiles = Profiles::built_in().unwrap();
        let mut profile = (**profiles.get(DEFAULT_PROFILE).unwrap()).clone();
        let dir = tempfile::tempdir().unwrap();
        let here = Surroundings::new(dir.path().canonicalize().unwrap(), "/nonexistent");
        let less = full_kernel().with_landlock_at_most(4);
        let host = Host::current();
        let error = Plan::new(&Arc::new(profile.clone()), &less, &here, &host).unwrap_err().to_string();
        assert!(error.contains("landlock ABI 6 (this kernel has 4)"), "{error}");
        profile.when_missing = super::super::profile::WhenMissing::Ask;
        let plan = Plan::new(&Arc::new(profile), &less, &here, &host).unwrap();
        assert_eq!(plan.tier(), Tier::None, "a plan with a missing layer claims the tier all the same");
    }
}
