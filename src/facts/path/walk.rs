//! Walking a directory that was judged: on handles, never through a link, within limits that are said.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use nix::errno::Errno;
use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::FileStat;

use super::Access;
use super::ground::{self, Census, Ground};
use super::kernel::{Identity, Kind, locate_at, reopen, stat};
use super::listing::{self, Listing};

const MOST_ENTRIES: usize = 200_000;
const DEEPEST: usize = 128;
const LONGEST: Duration = Duration::from_secs(20);
/// Larger ignore files are not read.
const LARGEST_IGNORE_FILE: u64 = 256 * 1024;
/// The directories that version control keeps for itself.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".jj"];
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore"];

pub(super) struct WalkError(pub Errno);

/// One thing below a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Relative to where the walk started.
    pub path: PathBuf,
    pub kind: Kind,
    /// The path is protected against reading, or the gateway's own.
    pub protected: bool,
}

/// A walk in the order of names, directories before what they hold.
#[derive(Debug)]
pub struct Walk {
    ground: Arc<Ground>,
    start: OwnedFd,
    landing: PathBuf,
    ignore_files: bool,
    depth: usize,
    /// From the outermost directory to the one that is being listed.
    frames: Vec<Frame>,
    /// Rules from above the start.
    outer: Vec<Gitignore>,
    entries: usize,
    began: Instant,
    limit: Option<String>,
    census: OnceCell<Census>,
}

#[derive(Debug)]
struct Frame {
    path: PathBuf,
    left: std::vec::IntoIter<(OsString, Kind)>,
    ignores: Option<Gitignore>,
}

/// What became of an attempt to read an entry.
#[derive(Debug)]
pub enum Opened {
    File(File, u64),
    /// Protected, or the gateway's own, by its name or by another name of the same file.
    Protected,
    /// It is no regular file any more, or cannot be read.
    Unreadable,
}

impl Walk {
    pub(super) fn start(
        ground: Arc<Ground>,
        start: OwnedFd,
        landing: &Path,
        ignore_files: bool,
        depth: usize,
    ) -> Result<Self, WalkError> {
        let mut walk = Walk {
            ground,
            start,
            landing: landing.to_owned(),
            ignore_files,
            depth: depth.min(DEEPEST),
            frames: Vec::new(),
            outer: Vec::new(),
            entries: 0,
            began: Instant::now(),
            limit: None,
            census: OnceCell::new(),
        };
        if ignore_files {
            walk.outer = walk.rules_above();
        }
        let first = walk.enter(PathBuf::new()).map_err(WalkError)?;
        walk.frames.push(first);
        Ok(walk)
    }

    /// The limit that ended the walk early, in words.
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// Opens a file of the walk for reading, if it may be shown.
    pub fn open(&self, entry: &Entry) -> Opened {
        if entry.protected {
            return Opened::Protected;
        }
        let Ok((file, stat)) = open_regular(&self.start, &entry.path) else { return Opened::Unreadable };
        let landing = self.landing.join(&entry.path);
        if self.ground.is_gateway(&stat) || self.ground.guarded_by_mount(&file, &stat, &landing) {
            return Opened::Protected;
        }
        if stat.st_nlink > 1 {
            let census = self.census.get_or_init(|| self.ground.census(Access::Read, ground::MOST_ENTRIES));
            if census.holds(Identity::of(&stat)) {
                return Opened::Protected;
            }
        }
        Opened::File(file, u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Whether files with several names could be told apart from protected ones; false where there are too many files.
    pub fn names_were_checked(&self) -> bool {
        self.census.get().is_none_or(|census| census.complete)
    }

    fn enter(&mut self, path: PathBuf) -> Result<Frame, Errno> {
        let listing = Listing::open(&self.start, &path)?;
        if listing.truncated {
            self.limit =
                Some(format!("a directory has more than {} entries, and the rest is left out", listing::MOST_ENTRIES));
        }
        let ignores = if self.ignore_files { rules(&self.start, &path, &self.landing.join(&path)) } else { None };
        Ok(Frame { path, left: listing.entries.into_iter(), ignores })
    }

    /// The ignore rules of the directories from the root down to the start, and git's own.
    fn rules_above(&self) -> Vec<Gitignore> {
        let (root, inner) = self.ground.root_of(&self.landing);
        if root.path == Path::new("/") {
            return Vec::new();
        }
        let mut found: Vec<Gitignore> = Vec::new();
        let mut builder = GitignoreBuilder::new(&root.path);
        if add_file(&mut builder, &root.handle, Path::new(".git/info/exclude")) {
            found.extend(builder.build().ok());
        }
        let mut above: Vec<&Path> = inner.ancestors().skip(1).collect();
        above.reverse();
        found.extend(above.into_iter().filter_map(|path| rules(&root.handle, path, &root.path.join(path))));
        found
    }

    fn ignored(&self, absolute: &Path, kind: Kind) -> bool {
        let inner = self.frames.iter().rev().filter_map(|frame| frame.ignores.as_ref());
        for rules in inner.chain(self.outer.iter().rev()) {
            let matched = rules.matched(absolute, kind == Kind::Directory);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        false
    }

    /// Whether the walk ends here, and why.
    fn exhausted(&mut self) -> bool {
        self.entries += 1;
        let reason = if self.entries > MOST_ENTRIES {
            format!("stopped after {MOST_ENTRIES} entries: name a narrower `path`")
        } else if self.entries.is_multiple_of(256) && self.began.elapsed() > LONGEST {
            format!("stopped after {} seconds: name a narrower `path`", LONGEST.as_secs())
        } else {
            return false;
        };
        self.limit = Some(reason);
        true
    }

    fn consider(&mut self, name: OsString, kind: Kind) -> Option<Entry> {
        let path = self.frames.last()?.path.join(&name);
        let absolute = self.landing.join(&path);
        if self.ignore_files {
            let own = kind == Kind::Directory && VERSION_CONTROL.iter().any(|own| name == *own);
            if own || self.ignored(&absolute, kind) {
                return None;
            }
        }
        let gateway = self.ground.scope(&absolute, None) == crate::facts::Scope::Gateway;
        let protected = gateway || self.ground.protected(&absolute, Access::Read).is_some();
        if kind == Kind::Directory && !protected {
            if self.frames.len() < self.depth {
                // A directory that went away, or became a link, is passed over.
                if let Ok(frame) = self.enter(path.clone()) {
                    self.frames.push(frame);
                }
            } else if self.depth == DEEPEST {
                self.limit = Some(format!("did not look deeper than {DEEPEST} directories"));
            }
        }
        Some(Entry { path, kind, protected })
    }
}

impl Iterator for Walk {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let frame = self.frames.last_mut()?;
            let Some((name, kind)) = frame.left.next() else {
                self.frames.pop();
                continue;
            };
            if self.exhausted() {
                self.frames.clear();
                return None;
            }
            if let Some(entry) = self.consider(name, kind) {
                return Some(entry);
            }
        }
    }
}

/// Opens a regular file, following no link; anything else is not even opened, so nothing blocks.
fn open_regular(base: impl AsFd, path: &Path) -> Result<(File, FileStat), Errno> {
    let handle = locate_at(base, path, ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS)?;
    let stat = stat(&handle)?;
    if Kind::of(&stat) != Kind::File {
        return Err(Errno::EINVAL);
    }
    Ok((File::from(reopen(&handle, OFlag::O_RDONLY)?), stat))
}

/// The rules of one directory's ignore files, by their real names; nothing where there are none.
fn rules(base: &OwnedFd, path: &Path, real: &Path) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(real);
    let mut any = false;
    for name in IGNORE_FILES {
        any |= add_file(&mut builder, base, &path.join(name));
    }
    if any { builder.build().ok() } else { None }
}

fn add_file(builder: &mut GitignoreBuilder, base: &OwnedFd, path: &Path) -> bool {
    let Ok((file, _)) = open_regular(base, path) else { return false };
    let mut bytes = Vec::new();
    if file.take(LARGEST_IGNORE_FILE).read_to_end(&mut bytes).is_err() {
        return false;
    }
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern is passed over, as git does.
        let _ = builder.add_line(None, line);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::facts::Surroundings;
    use crate::facts::path::{Handle, Protection, Resolver, standard_rules};

    fn start(workspace: &Path) -> Handle {
        let surroundings = Surroundings::new(workspace, "/nonexistent");
        let resolver = Resolver::open(&surroundings, Protection::new(standard_rules()).unwrap()).unwrap();
        resolver.look("path", ".", Access::Read, workspace).1.unwrap()
    }

    #[test]
    fn i6_a_walk_that_stops_at_a_depth_says_so() {
        let top = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", DEEPEST + 5).collect();
        fs::create_dir_all(top.path().join(&deep)).unwrap();
        let mut walk = start(top.path()).walk(true, usize::MAX).unwrap();
        assert_eq!(walk.by_ref().count(), DEEPEST);
        assert!(walk.limit().is_some_and(|limit| limit.contains("deeper")), "{:?}", walk.limit());
        let mut listing = start(top.path()).walk(false, 1).unwrap();
        assert_eq!((listing.by_ref().count(), listing.limit()), (1, None), "a listing is complete");
    }

    #[test]
    fn i6_a_census_that_stops_early_is_not_complete() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("a"), "").unwrap();
        fs::create_dir(top.path().join("b")).unwrap();
        fs::write(top.path().join("b/.env"), "").unwrap();
        let surroundings = Surroundings::new(top.path(), "/nonexistent");
        let ground = Ground::open(&surroundings, Protection::new(standard_rules()).unwrap()).unwrap();
        let file = Identity::of(&nix::sys::stat::stat(&top.path().join("b/.env")).unwrap());
        let (whole, part) = (ground.census(Access::Read, 3), ground.census(Access::Read, 2));
        assert_eq!((whole.complete, whole.holds(file)), (true, true));
        assert_eq!((part.complete, part.holds(file)), (false, false));
    }

    #[test]
    fn rules_of_ignore_files_above_the_start_hold() {
        let top = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            fs::create_dir_all(top.path().join(path).parent().unwrap()).unwrap();
            fs::write(top.path().join(path), text).unwrap();
        };
        put(".git/info/exclude", "*.bak\n");
        put(".gitignore", "*.log\nsub/out/\n");
        put("sub/.gitignore", "!keep.log\n");
        for file in ["sub/a.log", "sub/keep.log", "sub/b.bak", "sub/out/x", "sub/in/y", "sub/.hidden"] {
            put(file, "");
        }
        let surroundings = Surroundings::new(top.path(), "/nonexistent");
        let resolver = Resolver::open(&surroundings, Protection::new(Vec::new()).unwrap()).unwrap();
        let handle = resolver.look("path", "sub", Access::Read, top.path()).1.unwrap();
        let walk = handle.walk(true, usize::MAX).unwrap();
        let files: Vec<PathBuf> = walk.filter(|entry| entry.kind == Kind::File).map(|entry| entry.path).collect();
        let expected = [".gitignore", ".hidden", "in/y", "keep.log"].map(PathBuf::from);
        assert_eq!(files, expected);
    }
}
