//! The ground that paths are judged on: the roots, held open, the gateway's own files and the protected paths.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::{FileStat, Mode};

use super::kernel::{Identity, Kind, locate_at, open_at, real_path, stat};
use super::listing::Listing;
use super::mounts::Bases;
use super::wards::Memory;
use super::{Access, Protected, Protection};
use crate::facts::{Scope, Surroundings};

/// Entries that are looked at to find the other names of a file with several.
pub(super) const MOST_ENTRIES: usize = 50_000;

/// Why a workspace cannot be guarded.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    #[error("the {what} `{path}` cannot be opened: {reason}", path = path.display(), reason = reason.desc())]
    Unusable { what: &'static str, path: PathBuf, reason: Errno },
    #[error("the {what} `{path}` is not a directory", path = path.display())]
    NotADirectory { what: &'static str, path: PathBuf },
    #[error("the workspace is the root directory: give the gateway a directory of its own to guard")]
    RootDirectory,
    #[error("the workspace `{workspace}` contains the gateway's own `{gateway}`: keep them apart",
        workspace = workspace.display(), gateway = gateway.display())]
    HoldsGateway { workspace: PathBuf, gateway: PathBuf },
    #[error("{call} does not work here ({reason}): path guarding needs Linux 5.6 or later with /proc mounted")]
    Kernel { call: &'static str, reason: Errno },
}

/// A directory that is held open.
#[derive(Debug)]
pub(super) struct Root {
    /// Where it really is, without links.
    pub path: PathBuf,
    pub handle: OwnedFd,
}

#[derive(Debug)]
pub(super) struct Ground {
    /// Every place by its real name, and the gateway's by its given name as well.
    pub places: Surroundings,
    /// The workspace's name as configured.
    pub workspace_name: PathBuf,
    /// The workspace first, `/` last.
    roots: Vec<Root>,
    workspace: Root,
    slash: Root,
    gateway: HashSet<Identity>,
    /// What a mount elsewhere could show: the gateway's own, the home directory, the workspace.
    bases: Bases,
    /// Directories outside `.git` that a `.git` file makes a repository of.
    git_directories: Vec<PathBuf>,
    pub protection: Protection,
    /// What the last walk for wards has seen.
    pub(super) memory: Mutex<Memory>,
}

/// The answer about a file with several names.
pub(super) enum OtherNames {
    Harmless,
    Protected(Protected),
    Gateway,
    /// There is too much to look at.
    Unfinished,
}

impl Ground {
    pub fn open(surroundings: &Surroundings, protection: Protection) -> Result<Self, GroundError> {
        let workspace = open_root("workspace", &surroundings.workspace)?;
        if workspace.path == Path::new("/") {
            return Err(GroundError::RootDirectory);
        }
        let slash = open_root("root directory", Path::new("/"))?;
        let open_all =
            |what, paths: &[PathBuf]| paths.iter().map(|path| open_root(what, path)).collect::<Result<Vec<_>, _>>();
        let write_roots = open_all("writable root", &surroundings.write_roots)?;
        let read_roots = open_all("readable root", &surroundings.read_roots)?;
        let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let mut gateway: Vec<PathBuf> = surroundings.gateway.iter().map(real).collect();
        // A file is the binary of one who works on the gateway: it is guarded by its identity, in the workspace too.
        let holds = |path: &&PathBuf| path.starts_with(&workspace.path) && !path.is_file();
        if let Some(inner) = gateway.iter().find(holds) {
            return Err(GroundError::HoldsGateway { workspace: workspace.path, gateway: inner.clone() });
        }
        gateway.extend(surroundings.gateway.iter().cloned());
        let identities = gateway.iter().filter_map(|path| {
            let handle = locate_at(&slash.handle, path, ResolveFlag::empty()).ok()?;
            stat(&handle).ok().map(|stat| Identity::of(&stat))
        });
        let places = Surroundings {
            workspace: workspace.path.clone(),
            cwd: surroundings.cwd.clone(),
            home: real(&surroundings.home),
            write_roots: write_roots.iter().map(|root| root.path.clone()).collect(),
            read_roots: read_roots.iter().map(|root| root.path.clone()).collect(),
            gateway: gateway.clone(),
        };
        let bases = gateway.iter().chain([&places.home, &workspace.path]);
        Ok(Ground {
            bases: Bases::open(&slash.handle, bases),
            git_directories: git_directories(&workspace),
            gateway: identities.collect(),
            places,
            workspace_name: surroundings.workspace.clone(),
            roots: write_roots.into_iter().chain(read_roots).collect(),
            workspace,
            slash,
            protection,
            memory: Mutex::default(),
        })
    }

    pub fn workspace(&self) -> &Root {
        &self.workspace
    }

    /// The directories that programs may reach: the workspace and the extra roots.
    pub(super) fn reachable(&self) -> impl Iterator<Item = &Root> {
        std::iter::once(&self.workspace).chain(&self.roots)
    }

    pub fn slash(&self) -> &Root {
        &self.slash
    }

    /// The kind of place that a real path is.
    pub fn scope(&self, landing: &Path, found: Option<&FileStat>) -> Scope {
        let by_name = self.places.scope(landing);
        let Some(stat) = found else { return by_name };
        if self.gateway.contains(&Identity::of(stat)) {
            return Scope::Gateway;
        }
        match Kind::of(stat) {
            Kind::CharacterDevice | Kind::BlockDevice if by_name != Scope::Gateway => Scope::Device,
            _ => by_name,
        }
    }

    pub fn is_gateway(&self, stat: &FileStat) -> bool {
        self.is_own(Identity::of(stat))
    }

    /// Whether a file or directory is the gateway's.
    pub(super) fn is_own(&self, identity: Identity) -> bool {
        self.gateway.contains(&identity)
    }

    /// The names that what is at `landing` has in the gateway's own places, the home directory and the workspace, where a
    /// mount gives it another.
    pub fn names_by_mount(&self, handle: impl AsFd, stat: &FileStat, landing: &Path) -> Vec<PathBuf> {
        self.bases.other_names(handle, stat, landing)
    }

    /// Whether an open file of a walk is the gateway's or protected by a name that a mount hides.
    pub fn guarded_by_mount(&self, handle: impl AsFd, stat: &FileStat, landing: &Path) -> bool {
        self.names_by_mount(handle, stat, landing)
            .iter()
            .any(|name| self.places.scope(name) == Scope::Gateway || self.protected(name, Access::Read).is_some())
    }

    /// The root that a real path lies in, and the path from there.
    pub fn root_of<'a>(&self, landing: &'a Path) -> (&Root, &'a Path) {
        let inside = std::iter::once(&self.workspace).chain(&self.roots);
        for root in inside.chain(std::iter::once(&self.slash)) {
            if let Ok(rest) = landing.strip_prefix(&root.path) {
                return (root, rest);
            }
        }
        (&self.slash, landing)
    }

    /// The protected glob that an absolute path falls under, be it a real path or a name.
    pub fn protected(&self, path: &Path, access: Access) -> Option<Protected> {
        let relative = match path.strip_prefix(&self.workspace_name) {
            Ok(rest) => rest,
            Err(_) => match self.root_of(path) {
                (root, _) if root.path == self.slash.path => path,
                (_, rest) => rest,
            },
        };
        let as_git = self.git_directories.iter().find_map(|directory| {
            let inner = path.strip_prefix(directory).ok()?;
            self.protection.find(&Path::new(".git").join(inner), access)
        });
        // A rule about an absolute path holds inside the roots as well.
        let absolute = self.protection.find_absolute(path, access);
        let found = self.protection.find(relative, access).into_iter().chain(as_git).chain(absolute);
        found.max_by_key(|found| found.action)
    }

    /// Looks for every protected file in the workspace and the home directory, and every file of the gateway.
    /// No more than `most` entries are looked at.
    pub fn census(&self, access: Access, most: usize) -> Census {
        let mut census = Census { known: HashMap::new(), complete: true };
        let mut left = most;
        for path in &self.places.gateway {
            self.survey(path, &mut left, &mut census, |_, _| Some(None));
        }
        let home = &self.places.home;
        self.survey(home, &mut left, &mut census, |path, _| {
            self.protection.find(path.strip_prefix(home).ok()?, access).map(Some)
        });
        self.survey(&self.workspace.path, &mut left, &mut census, |path, kind| {
            let found = self.protected(path, access);
            (found.is_some() || kind == Kind::Directory).then_some(found)
        });
        census
    }

    /// Walks a directory breadth first, so that a limit cuts off what lies deepest. `judge` says for each entry whether
    /// it matters (as a file to remember, as a directory to enter) and what protects it, if not being the gateway's.
    fn survey(
        &self,
        start: &Path,
        left: &mut usize,
        census: &mut Census,
        judge: impl Fn(&Path, Kind) -> Option<Option<Protected>>,
    ) {
        let mut queue = VecDeque::from([start.to_owned()]);
        while let Some(directory) = queue.pop_front() {
            // A single file among the gateway's places is known by its identity already.
            let Ok(listing) = Listing::open(&self.slash.handle, &directory) else { continue };
            census.complete &= !listing.truncated;
            for (name, kind) in &listing.entries {
                if *left == 0 {
                    census.complete = false;
                    return;
                }
                *left -= 1;
                let path = directory.join(name);
                let Some(protected) = judge(&path, *kind) else { continue };
                match kind {
                    // Nothing in git's object store is protected, and it is large.
                    Kind::Directory if !path.ends_with(".git/objects") => queue.push_back(path),
                    Kind::File => {
                        if let Some(stat) = listing.stat(name) {
                            census.known.entry(Identity::of(&stat)).or_insert(protected);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The files that must not be reached by another name.
#[derive(Debug)]
pub(super) struct Census {
    /// What protects each; nothing for the gateway's own.
    known: HashMap<Identity, Option<Protected>>,
    pub complete: bool,
}

impl Census {
    /// Whether a file with several names has a protected one among them.
    pub fn other_names(&self, file: Identity) -> OtherNames {
        match self.known.get(&file) {
            Some(Some(protected)) => OtherNames::Protected(protected.clone()),
            Some(None) => OtherNames::Gateway,
            None if self.complete => OtherNames::Harmless,
            None => OtherNames::Unfinished,
        }
    }

    pub fn holds(&self, file: Identity) -> bool {
        self.known.contains_key(&file)
    }
}

fn open_root(what: &'static str, path: &Path) -> Result<Root, GroundError> {
    let unusable = |reason| match reason {
        Errno::ENOTDIR => GroundError::NotADirectory { what, path: path.to_owned() },
        Errno::ENOSYS => GroundError::Kernel { call: "openat2", reason },
        reason => GroundError::Unusable { what, path: path.to_owned(), reason },
    };
    if !path.is_absolute() {
        return Err(unusable(Errno::EINVAL));
    }
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let handle = open_at(nix::fcntl::AT_FDCWD, path, flags, Mode::empty(), ResolveFlag::RESOLVE_NO_MAGICLINKS)
        .map_err(unusable)?;
    let real = real_path(&handle).map_err(|reason| GroundError::Kernel { call: "reading /proc/self/fd", reason })?;
    Ok(Root { path: real, handle })
}

/// The directories that the workspace's `.git` file leads to, if it is one (gitrepository-layout(5)).
fn git_directories(workspace: &Root) -> Vec<PathBuf> {
    let line = |path: &Path| -> Option<String> {
        let kind = std::fs::symlink_metadata(path).ok()?;
        if !kind.is_file() || kind.len() > 4096 {
            return None;
        }
        Some(std::fs::read_to_string(path).ok()?.trim_end().to_owned())
    };
    let Some(text) = line(&workspace.path.join(".git")) else { return Vec::new() };
    let Some(target) = text.strip_prefix("gitdir:") else { return Vec::new() };
    let own = workspace.path.join(target.trim());
    let common = line(&own.join("commondir")).map(|target| own.join(target));
    [Some(own), common].into_iter().flatten().filter_map(|path| std::fs::canonicalize(path).ok()).collect()
}
