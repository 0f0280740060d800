//! A random tree, on disk and in memory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::fuzzing::random::Random;

/// Workspace, outside, readable root, writable root, the gateway's own.
const ROOTS: &[&str] = &["w", "o", "r", "v", "g"];
/// Among them variants of each other by case and by Unicode's forms.
const NAMES: &[&str] = &["a", "A", "b", "c", "\u{e9}", "e\u{301}", "\u{ff41}", "a.b", "-", "..."];
const LONG: usize = 255;
/// Directories that are compared with memory.
const MOST_CHECKED: usize = 400;

/// Device and inode.
pub type Identity = (u64, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Directory,
    File,
    Link(PathBuf),
    /// A pipe, a socket or a device.
    Special,
    Device,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub what: What,
    pub identity: Identity,
    pub names: u64,
}

/// A place in a file system: its number, and the path in it.
pub type Place = (usize, PathBuf);

/// A tree with five roots, and what is mounted in it.
pub struct Tree {
    pub top: PathBuf,
    pub nodes: BTreeMap<Place, Node>,
    /// Where something is mounted, and what.
    pub mounts: Vec<(PathBuf, Place)>,
    /// A descriptor that magic links lead to.
    held: File,
}

impl Tree {
    pub fn grow(random: &mut Random, base: &Path, mounts: bool) -> Self {
        let top = base.join("t");
        fs::create_dir(&top).expect("the last tree is gone");
        let held = File::open(&top).expect("it is there");
        let mut tree = Tree { top: top.clone(), nodes: BTreeMap::new(), mounts: Vec::new(), held };
        tree.learn(&top);
        for root in ROOTS {
            tree.put(&top.join(root), |path| fs::create_dir(path));
            tree.put(&top.join(root).join("a"), |path| fs::create_dir(path));
        }
        for _ in 0..8 + random.below(24) {
            let path = tree.directory(random).join(name(random));
            if tree.node(&path).is_none() {
                tree.add(random, &path);
            }
        }
        for _ in 0..if mounts { random.below(4) } else { 0 } {
            tree.mount(random);
        }
        if random.once_in(4) {
            tree.chain(random);
        }
        tree
    }

    fn add(&mut self, random: &mut Random, path: &Path) {
        match random.below(16) {
            0..=4 => self.put(path, |path| fs::create_dir(path)),
            5..=7 => self.put(path, |path| fs::write(path, path.as_os_str().as_bytes())),
            8 if random.once_in(3) => {
                let (old, _) = self.any(random, |what| *what == What::File);
                if let Some(old) = old {
                    self.put(path, |path| fs::hard_link(&old, path));
                    self.count_names(path);
                }
            }
            9 => self.put(path, |path| Ok(nix::unistd::mkfifo(path, Mode::S_IRUSR)?)),
            10 if random.once_in(3) => {
                self.put(path, |path| Ok(mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR, makedev(1, 3))?));
            }
            _ => {
                let target = self.target(random);
                self.put(path, |path| symlink(&target, path));
            }
        }
    }

    /// The other names of a file that was given one more.
    fn count_names(&mut self, path: &Path) {
        let Some(Node { identity, names, what: What::File }) = self.node(path).cloned() else { return };
        for node in self.nodes.values_mut().filter(|node| node.identity == identity) {
            node.names = names;
        }
    }

    /// Some thirty to fifty links, each to the one before: the kernel follows forty.
    fn chain(&mut self, random: &mut Random) {
        let directory = self.directory(random);
        let mut before = PathBuf::from("../w/a");
        for n in 0..30 + random.below(20) {
            let path = directory.join(format!("l{n}"));
            if self.node(&path).is_none() {
                self.put(&path, |path| symlink(&before, path));
            }
            before = format!("l{n}").into();
        }
        let (link, last) = (directory.join("b"), before);
        if self.node(&link).is_none() {
            self.put(&link, |path| symlink(&last, path));
        }
    }

    /// Mounts a file system in memory, or another directory or file of the tree, over one of its own.
    fn mount(&mut self, random: &mut Random) {
        let none: Option<&str> = None;
        let (Some(at), kind) = self.any(random, |what| matches!(what, What::Directory | What::File)) else { return };
        // Nobody mounts anything on what is the gateway's.
        if at == self.top || at.parent() == Some(&self.top) || at.starts_with(self.top.join("g")) {
            return;
        }
        let number = self.mounts.len() + 1;
        if kind == What::Directory && random.once_in(2) {
            if mount(Some("tmpfs"), &at, Some("tmpfs"), MsFlags::empty(), Some("size=1m")).is_ok() {
                self.mounts.push((at.clone(), (number, PathBuf::from("/"))));
                self.learn(&at);
                for _ in 0..random.below(5) {
                    let path = at.join(name(random));
                    if self.node(&path).is_none() {
                        self.add(random, &path);
                    }
                }
            }
            return;
        }
        let (Some(of), _) = self.any(random, |what| *what == kind) else { return };
        if mount(Some(&of), &at, none, MsFlags::MS_BIND, none).is_ok() {
            let place = self.place(&of);
            self.mounts.push((at, place));
        }
    }

    fn put(&mut self, path: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) {
        // What this machine does not allow is not there, for nobody.
        if make(path).is_ok() {
            self.learn(path);
        }
    }

    /// Takes over what is on disk.
    pub fn learn(&mut self, path: &Path) {
        let place = self.place(path);
        match look(path) {
            Some(node) => self.nodes.insert(place, node),
            None => self.nodes.remove(&place),
        };
    }

    /// Where a path of the tree is in the file systems that make it up.
    pub fn place(&self, path: &Path) -> Place {
        // The last that was mounted above it hides whatever was there before.
        let shown = self.mounts.iter().rev().find_map(|(at, (number, inner))| {
            let rest = path.strip_prefix(at).ok()?;
            Some((*number, if rest.as_os_str().is_empty() { inner.clone() } else { inner.join(rest) }))
        });
        shown.unwrap_or_else(|| (0, path.to_owned()))
    }

    /// Whether a file is seen elsewhere by a mount: there it would stay when another takes its place.
    pub fn is_mounted(&self, path: &Path) -> bool {
        let place = self.place(path);
        self.mounts.iter().any(|(_, of)| *of == place)
    }

    pub fn node(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(&self.place(path))
    }

    /// A path of the tree, by the name under which it was made, with something of a kind.
    fn any(&self, random: &mut Random, wanted: impl Fn(&What) -> bool) -> (Option<PathBuf>, What) {
        let fit: Vec<_> = self.nodes.iter().filter(|((number, _), node)| *number == 0 && wanted(&node.what)).collect();
        let chosen = fit.get(random.below(fit.len()));
        chosen.map_or((None, What::File), |((_, path), node)| (Some(path.clone()), node.what.clone()))
    }

    fn directory(&self, random: &mut Random) -> PathBuf {
        let (found, _) = self.any(random, |what| *what == What::Directory);
        found.filter(|path| *path != self.top).unwrap_or_else(|| self.top.join("w"))
    }

    /// How a path may begin: not at all, at a root, or by way of a magic link.
    fn start(&self, random: &mut Random) -> PathBuf {
        let root = self.top.join(random.pick(ROOTS));
        match random.below(24) {
            0..=12 => PathBuf::new(),
            13 => "../o".into(),
            14 => "..".into(),
            15 => PathBuf::from("/proc/self/root").join(root.strip_prefix("/").unwrap_or(&root)),
            16 => PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.held.as_raw_fd())).join("w"),
            17 => PathBuf::from(format!("/dev/fd/{}", self.held.as_raw_fd())).join("o"),
            18 => "/proc/self/cwd".into(),
            19 => "/proc/thread-self".into(),
            _ => root,
        }
    }

    fn target(&self, random: &mut Random) -> PathBuf {
        let mut target = self.start(random).into_os_string();
        for n in 0..random.below(4) {
            if n > 0 || !target.is_empty() {
                target.push(if random.once_in(8) { "//" } else { "/" });
            }
            match random.below(8) {
                0 | 1 => target.push(".."),
                2 => target.push("."),
                3 if random.once_in(8) => target.push("x".repeat(LONG + 1)),
                _ => target.push(name(random)),
            }
        }
        if random.once_in(6) {
            target.push("/");
        }
        if target.is_empty() { "..".into() } else { target.into() }
    }

    /// A path as an agent may give it; such paths are text.
    pub fn given(&self, random: &mut Random) -> String {
        let mut path = self.start(random).to_string_lossy().into_owned();
        if !path.is_empty() {
            path.push('/');
        }
        let long = "x".repeat(LONG);
        for _ in 0..random.below(6) {
            path.push_str(match random.below(12) {
                0 | 1 => "..",
                2 => ".",
                3 => "",
                4 if random.once_in(4) => &long,
                5 => "l49",
                _ => random.pick(NAMES),
            });
            path.push('/');
        }
        if !random.once_in(4) {
            path.pop();
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }

    /// Compares what is on disk with what is in memory, whole.
    pub fn check(&self) -> Result<(), String> {
        let mut open = vec![self.top.clone()];
        let mut left = MOST_CHECKED;
        while let Some(directory) = open.pop() {
            let (number, inner) = self.place(&directory);
            let mut entries = 0;
            for entry in fs::read_dir(&directory).map_err(|e| e.to_string())?.flatten() {
                let path = entry.path();
                let (known, found) = (self.node(&path), look(&path));
                if known != found.as_ref() {
                    return Err(format!("{} is {found:?} on disk, and was to be {known:?}", path.display()));
                }
                entries += 1;
                // What is bound into what it holds shows it many times.
                if found.is_some_and(|node| node.what == What::Directory) && left > 0 {
                    left -= 1;
                    open.push(path);
                }
            }
            let known = self
                .nodes
                .range((number, inner.clone())..)
                .take_while(|((of, path), _)| *of == number && path.starts_with(&inner));
            let known = known.filter(|((_, path), _)| path.parent() == Some(&inner)).count();
            if known != entries {
                return Err(format!("{} holds {entries} entries, and was to hold {known}", directory.display()));
            }
        }
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for (at, _) in self.mounts.iter().rev() {
            let _ = umount2(at, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
        }
        fs::remove_dir_all(&self.top).expect("the tree goes away");
    }
}

fn name(random: &mut Random) -> OsString {
    match random.below(24) {
        0 => "x".repeat(LONG).into(),
        1 => OsString::from_vec(b"\xff\xfe".to_vec()),
        _ => random.pick(NAMES).into(),
    }
}

/// What is on disk under a name, no link followed.
pub fn look(path: &Path) -> Option<Node> {
    let meta = fs::symlink_metadata(path).ok()?;
    let kind = meta.file_type();
    let what = if kind.is_dir() {
        What::Directory
    } else if kind.is_symlink() {
        What::Link(fs::read_link(path).ok()?)
    } else if kind.is_file() {
        What::File
    } else if kind.is_char_device() || kind.is_block_device() {
        What::Device
    } else {
        What::Special
    };
    // Only of files it matters, and of directories it changes.
    let names = if what == What::File { meta.nlink() } else { 1 };
    Some(Node { what, identity: (meta.dev(), meta.ino()), names })
}
