//! What of the roots is kept from programs: protected paths, found by walking.
//!
//! A command that names a protected path is judged by it. One that reaches it by a pattern, a recursion or a script does
//! not name it, and then the sandbox has to keep it away. A walk remembers what each directory held, and lists again only
//! those that have changed; no program can set the time that tells.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::ResolveFlag;
use nix::sys::stat::FileStat;
use serde::{Deserialize, Serialize};

use super::ground::{Ground, Root};
use super::kernel::{Identity, Kind, locate_at, stat};
use super::listing::Listing;
use super::{Access, ProtectedAction};

/// How much is walked, what lies higher first.
const MOST_DIRECTORIES: usize = 65_536;
const LONGEST: Duration = Duration::from_secs(5);
/// A directory that changed so shortly ago may change again without another time on it.
const CLOCK: Duration = Duration::from_millis(20);

/// What is done about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// It stays where it is, by its name.
    Place,
    /// It stays as it is.
    Content,
    /// Nothing of it can be seen.
    Hidden,
}

/// A path that is kept from programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ward {
    /// Absolute, without links.
    pub path: PathBuf,
    pub hold: Hold,
    /// Whose name it was when it was found.
    pub device: u64,
    pub inode: u64,
}

/// Everything that is kept from programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wards {
    /// What holds others comes before them.
    pub all: Vec<Ward>,
    /// Not everything was looked at.
    pub cut_off: bool,
}

/// What directories held when they were last listed, by path.
#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<PathBuf, Known>);

#[derive(Clone, Debug)]
struct Known {
    /// Device, inode, and the time of the last change.
    state: State,
    directories: Vec<OsString>,
    found: Vec<(OsString, Hold)>,
    truncated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    identity: Identity,
    changed: (i64, u32),
}

/// A directory of a walk, as the kernel describes it.
struct Seen {
    state: State,
    mount: u64,
}

struct Walk<'a> {
    ground: &'a Ground,
    before: Memory,
    after: Memory,
    wards: Wards,
    began: Instant,
    left: usize,
}

/// A directory that waits to be looked at.
struct Waiting {
    path: PathBuf,
    mount: u64,
    /// It lies in something whose content stays as it is.
    kept: bool,
}

impl Ground {
    /// Looks for everything in the roots that programs are not to see, or not to change.
    pub fn wards(&self) -> Wards {
        let mut memory = self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut walk = Walk {
            ground: self,
            before: std::mem::take(&mut *memory),
            after: Memory::default(),
            wards: Wards::default(),
            began: Instant::now(),
            left: MOST_DIRECTORIES,
        };
        for root in self.reachable() {
            walk.root(root);
        }
        *memory = walk.after;
        drop(memory);
        let mut wards = walk.wards;
        self.other_names(&mut wards);
        self.pin(&mut wards);
        wards.all.sort_by(|a, b| a.path.cmp(&b.path).then(b.hold.cmp(&a.hold)));
        wards.all.dedup_by(|next, before| next.path == before.path);
        wards
    }

    /// What is to be done about a path by its name.
    fn hold(&self, path: &Path) -> Option<Hold> {
        let denied = |access| self.protected(path, access).is_some_and(|found| found.action == ProtectedAction::Deny);
        if denied(Access::Read) {
            return Some(Hold::Hidden);
        }
        // What git runs is kept by whoever knows repositories.
        if path.components().any(|part| part.as_os_str() == ".git") {
            return None;
        }
        match () {
            () if denied(Access::Write) => Some(Hold::Content),
            () if denied(Access::Delete) => Some(Hold::Place),
            () => None,
        }
    }

    /// The directories above a ward, where it would not be one any more if they had another name, stay where they are.
    fn pin(&self, wards: &mut Wards) {
        let mut pinned = Vec::new();
        for ward in &wards.all {
            // What is one by another name than this is found by that one.
            if self.hold(&ward.path).is_none_or(|hold| hold < ward.hold) {
                continue;
            }
            let (root, inner) = self.root_of(&ward.path);
            for above in inner.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()) {
                let Ok(below) = inner.strip_prefix(above) else { continue };
                // No rule names this.
                let moved = root.path.join("\u{1}").join(below);
                let path = root.path.join(above);
                if self.hold(&moved).is_some_and(|hold| hold >= ward.hold)
                    || pinned.iter().any(|w: &Ward| w.path == path)
                {
                    continue;
                }
                let found = locate_at(&root.handle, above, ResolveFlag::RESOLVE_NO_SYMLINKS).and_then(stat);
                if let Ok(found) = found {
                    pinned.push(Ward::new(path, Hold::Place, Identity::of(&found)));
                }
            }
        }
        wards.all.extend(pinned);
    }

    /// Other names of files that are kept from programs are as well.
    fn other_names(&self, wards: &mut Wards) {
        let mut several: HashMap<Identity, Hold> = HashMap::new();
        for ward in wards.all.iter().filter(|ward| ward.hold > Hold::Place) {
            let (root, inner) = self.root_of(&ward.path);
            let found = locate_at(&root.handle, inner, ResolveFlag::RESOLVE_NO_SYMLINKS).and_then(stat);
            if let Some(found) = found.ok().filter(|found| Kind::of(found) == Kind::File && found.st_nlink > 1) {
                several.insert(Identity::of(&found), ward.hold);
            }
        }
        if several.is_empty() {
            return;
        }
        let mut left = MOST_DIRECTORIES;
        for root in self.reachable() {
            let mut waiting = VecDeque::from([PathBuf::new()]);
            while let Some(directory) = waiting.pop_front() {
                if left == 0 {
                    wards.cut_off = true;
                    return;
                }
                left -= 1;
                let Ok(listing) = Listing::open(&root.handle, &directory) else { continue };
                for (name, kind) in &listing.entries {
                    let inner = directory.join(name);
                    match kind {
                        Kind::Directory => waiting.push_back(inner),
                        Kind::File => {
                            let of = |stat: &FileStat| Identity::of(stat);
                            let Some(identity) = listing.stat(name).as_ref().map(of) else { continue };
                            if let Some(hold) = several.get(&identity) {
                                wards.all.push(Ward::new(root.path.join(inner), *hold, identity));
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

impl Ward {
    fn new(path: PathBuf, hold: Hold, identity: Identity) -> Self {
        Ward { path, hold, device: identity.device, inode: identity.inode }
    }
}

impl Walk<'_> {
    fn root(&mut self, root: &Root) {
        let mount = look(&root.handle, Path::new("")).map_or(0, |seen| seen.mount);
        let mut waiting = VecDeque::from([Waiting { path: root.path.clone(), mount, kept: false }]);
        while let Some(next) = waiting.pop_front() {
            if self.left == 0 || self.began.elapsed() > LONGEST {
                self.wards.cut_off = true;
                return;
            }
            self.left -= 1;
            self.directory(root, &next, &mut waiting);
        }
    }

    fn directory(&mut self, root: &Root, here: &Waiting, waiting: &mut VecDeque<Waiting>) {
        let inner = here.path.strip_prefix(&root.path).unwrap_or(Path::new(""));
        let Some(seen) = look(&root.handle, inner) else { return };
        let identity = seen.state.identity;
        if here.path != root.path && self.is_guarded(root, inner, here, &seen) {
            self.wards.all.push(Ward::new(here.path.clone(), Hold::Hidden, identity));
            return;
        }
        let Some(known) = self.known(root, here, inner, &seen) else { return };
        self.wards.cut_off |= known.truncated;
        for (name, hold) in &known.found {
            let path = here.path.join(name);
            if here.kept && *hold != Hold::Hidden {
                continue;
            }
            let Some(found) = look(&root.handle, &inner.join(name)) else { continue };
            self.wards.all.push(Ward::new(path, *hold, found.state.identity));
        }
        for name in &known.directories {
            let hold = known.found.iter().find(|(found, _)| found == name).map(|(_, hold)| *hold);
            if hold != Some(Hold::Hidden) {
                let kept = here.kept || hold == Some(Hold::Content);
                waiting.push_back(Waiting { path: here.path.join(name), mount: seen.mount, kept });
            }
        }
        self.after.0.insert(here.path.clone(), known);
    }

    /// Whether a directory is the gateway's, or protected by a name that a mount hides.
    fn is_guarded(&self, root: &Root, inner: &Path, here: &Waiting, seen: &Seen) -> bool {
        if self.ground.is_own(seen.state.identity) {
            return true;
        }
        if seen.mount == here.mount {
            return false;
        }
        let Ok(handle) = locate_at(&root.handle, inner, ResolveFlag::RESOLVE_NO_SYMLINKS) else { return false };
        let Ok(found) = stat(&handle) else { return false };
        let names = self.ground.names_by_mount(&handle, &found, &here.path);
        names.iter().any(|name| self.ground.hold(name) == Some(Hold::Hidden))
    }

    /// What a directory holds, from before if nothing has changed in it.
    fn known(&mut self, root: &Root, here: &Waiting, inner: &Path, seen: &Seen) -> Option<Known> {
        if let Some(known) = self.before.0.remove(&here.path)
            && known.state == seen.state
        {
            return Some(known);
        }
        let listing = Listing::open(&root.handle, inner).ok()?;
        let mut known =
            Known { state: seen.state, directories: Vec::new(), found: Vec::new(), truncated: listing.truncated };
        for (name, kind) in listing.entries {
            let path = here.path.join(&name);
            // A link leads to what is judged where it lies.
            if kind != Kind::Symlink
                && let Some(hold) = self.ground.hold(&path)
            {
                known.found.push((name.clone(), hold));
            }
            // Nothing in git's object store is protected, and it is large.
            if kind == Kind::Directory && !path.ends_with(".git/objects") {
                known.directories.push(name);
            }
        }
        if is_recent(seen.state.changed) {
            // It may change once more in the same tick: a time that no directory has makes it be listed again.
            known.state.changed = (i64::MIN, 0);
        }
        Some(known)
    }
}

fn is_recent((seconds, nanoseconds): (i64, u32)) -> bool {
    let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return true };
    let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds);
    now.checked_sub(changed).is_none_or(|age| age < CLOCK)
}

/// What the kernel says of a part of a root, not through a link at its end.
fn look(root: impl AsFd, path: &Path) -> Option<Seen> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: a structure of integers; all zeroes are one.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    let wanted = libc::STATX_INO | libc::STATX_CTIME | libc::STATX_MNT_ID;
    // SAFETY: the path is a C string and the structure is ours; both outlive the call.
    let done = unsafe { libc::statx(root.as_fd().as_raw_fd(), name.as_ptr(), flags, wanted, &raw mut answer) };
    let identity =
        Identity { device: libc::makedev(answer.stx_dev_major, answer.stx_dev_minor), inode: answer.stx_ino };
    let changed = (answer.stx_ctime.tv_sec, answer.stx_ctime.tv_nsec);
    (done == 0).then_some(Seen { state: State { identity, changed }, mount: answer.stx_mnt_id })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::facts::Surroundings;
    use crate::facts::path::{Guarded, ProtectedRule, Protection, Resolver, standard_rules};

    struct Scene {
        top: tempfile::TempDir,
        resolver: Resolver,
    }

    impl Scene {
        /// `TOP` in a glob stands for where the scene is.
        fn new(rules: &[(&str, Guarded)]) -> Self {
            let top = tempfile::tempdir().unwrap();
            for directory in ["w", "read", "gate"] {
                fs::create_dir(top.path().join(directory)).unwrap();
            }
            let mut here = Surroundings::new(top.path().join("w"), "/nonexistent");
            here.read_roots.push(top.path().join("read"));
            here.gateway.push(top.path().join("gate"));
            let deny = |(glob, on): &(&str, Guarded)| ProtectedRule {
                glob: glob.replace("TOP", top.path().to_str().unwrap()),
                action: ProtectedAction::Deny,
                on: *on,
                except: Vec::new(),
            };
            let rules = standard_rules().into_iter().chain(rules.iter().map(deny)).collect();
            let resolver = Resolver::open(&here, Protection::new(rules).unwrap()).unwrap();
            Scene { top, resolver }
        }

        fn write(&self, name: &str) {
            let path = self.top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }

        fn wards(&self) -> Vec<(String, Hold)> {
            let wards = self.resolver.wards();
            assert!(!wards.cut_off);
            let top = self.top.path().canonicalize().unwrap();
            let name = |path: &Path| path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
            wards.all.iter().map(|ward| (name(&ward.path), ward.hold)).collect()
        }
    }

    fn owned(wards: &[(&str, Hold)]) -> Vec<(String, Hold)> {
        wards.iter().map(|(path, hold)| ((*path).to_owned(), *hold)).collect()
    }

    #[test]
    fn what_a_rule_denies_is_kept_and_what_its_name_hangs_on_stays_in_place() {
        use Hold::{Content, Hidden, Place};
        let scene = Scene::new(&[
            ("src/sec*/k", Guarded::Any),
            ("lock", Guarded::Change),
            ("log/x", Guarded::Delete),
            ("TOP/w/top/t", Guarded::Any),
        ]);
        for name in [
            "w/a/src/sec1/k",
            "w/a/src/sec1/other",
            "w/b/lock",
            "w/log/x",
            "w/top/t",
            "w/deep/top/t",
            "w/c/.SSH/id",
            "w/.portcullis/policies/x.cedar",
            "w/c/.git/hooks/pre-commit",
            "w/.env",
            "read/d/.aws/credentials",
        ] {
            scene.write(name);
        }
        fs::hard_link(scene.top.path().join("w/b/lock"), scene.top.path().join("w/other name")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", scene.top.path().join("w/lock")).unwrap();
        let expected = owned(&[
            ("read/d/.aws", Hidden),
            ("w/.portcullis", Content),
            ("w/a/src", Place),
            ("w/a/src/sec1", Place),
            ("w/a/src/sec1/k", Hidden),
            ("w/b/lock", Content),
            ("w/c/.SSH", Hidden),
            ("w/log", Place),
            ("w/log/x", Place),
            ("w/other name", Content),
            ("w/top", Place),
            ("w/top/t", Hidden),
        ]);
        assert_eq!(scene.wards(), expected);
        assert_eq!(scene.wards(), expected, "what is remembered is what there is");
    }

    #[test]
    fn every_change_is_seen() {
        let scene = Scene::new(&[("secret", Guarded::Any)]);
        scene.write("w/d/e/plain");
        assert_eq!(scene.wards(), []);
        for round in 0..50 {
            scene.write("w/d/e/secret");
            assert_eq!(scene.wards(), owned(&[("w/d/e/secret", Hold::Hidden)]), "round {round}");
            let path = |name: &str| scene.top.path().join(name);
            fs::rename(path("w/d/e"), path("w/d/f")).unwrap();
            assert_eq!(scene.wards(), owned(&[("w/d/f/secret", Hold::Hidden)]), "round {round}");
            fs::remove_file(path("w/d/f/secret")).unwrap();
            assert_eq!(scene.wards(), [], "round {round}");
            fs::rename(path("w/d/f"), path("w/d/e")).unwrap();
        }
    }
}
