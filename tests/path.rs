//! The path guard from outside: against a model of how the kernel resolves names, and against a thread that swaps
//! directories for links.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what helps a test may fail it")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis::facts::path::{Access, Kind, Opened, Protection, Resolver};
use portcullis::facts::{Scope, Surroundings};

/// Deterministic, so that a failure can be seen again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Directory,
    File,
    Link(OsString),
}

/// A tree with a workspace `w` and an outside `o`, on disk and in memory.
struct Tree {
    top: PathBuf,
    nodes: BTreeMap<PathBuf, Node>,
    _keep: tempfile::TempDir,
}

/// Where the model says that a path leads.
#[derive(Debug)]
struct Landing {
    path: PathBuf,
    exists: bool,
    looped: bool,
}

const NAMES: [&str; 6] = ["a", "b", "c", "A", "a.b", "-"];

fn names() -> Vec<OsString> {
    let mut names: Vec<OsString> = NAMES.iter().map(OsString::from).collect();
    names.push("n".repeat(255).into());
    names.push(OsString::from_vec(b"\xff\xfe".to_vec()));
    names
}

impl Tree {
    fn grow(dice: &mut Dice) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(keep.path()).unwrap();
        let mut tree = Tree { top: top.clone(), nodes: BTreeMap::new(), _keep: keep };
        let mut directories = Vec::new();
        for directory in ["w", "o", "w/a", "o/a", "o/-"] {
            tree.add(top.join(directory), Node::Directory);
            directories.push(top.join(directory));
        }
        for _ in 0..14 {
            let path = dice.pick(&directories).join(dice.pick(&names()));
            if tree.nodes.contains_key(&path) {
                continue;
            }
            match dice.roll(6) {
                0 | 1 => {
                    tree.add(path.clone(), Node::Directory);
                    directories.push(path);
                }
                2 => tree.add(path, Node::File),
                _ => {
                    let target = tree.target(dice);
                    tree.add(path, Node::Link(target));
                }
            }
        }
        tree
    }

    fn add(&mut self, path: PathBuf, node: Node) {
        match &node {
            Node::Directory => fs::create_dir(&path).unwrap(),
            Node::File => fs::write(&path, "old").unwrap(),
            Node::Link(target) => symlink(target, &path).unwrap(),
        }
        self.nodes.insert(path, node);
    }

    fn target(&self, dice: &mut Dice) -> OsString {
        let mut target = OsString::new();
        match dice.roll(4) {
            0 => target.push(self.top.join(dice.pick(&["w", "o", "w/a", "none"]))),
            1 => target.push("../o"),
            2 => target.push(".."),
            _ => target.push(dice.pick(&names())),
        }
        for _ in 0..dice.roll(3) {
            target.push("/");
            if dice.roll(3) == 0 { target.push("..") } else { target.push(dice.pick(&names())) }
        }
        target
    }

    /// A path as an agent may give it; such paths are text.
    fn path(&self, dice: &mut Dice) -> String {
        let mut path = match dice.roll(5) {
            0 => format!("{}/", self.top.join(dice.pick(&["w", "o", ""])).display()),
            1 => "../o/".to_owned(),
            _ => String::new(),
        };
        let long = "n".repeat(255);
        for _ in 0..1 + dice.roll(4) {
            let part = match dice.roll(9) {
                0 => "..",
                1 => ".",
                2 => "",
                3 => &long,
                _ => dice.pick(&NAMES),
            };
            path.push_str(part);
            path.push('/');
        }
        if dice.roll(4) > 0 {
            path.pop();
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }

    fn node(&self, path: &Path) -> Option<Node> {
        if self.top.starts_with(path) {
            return Some(Node::Directory);
        }
        if path.starts_with(&self.top) {
            return self.nodes.get(path).cloned();
        }
        // Beside the tree: whatever this machine has there.
        let kind = fs::symlink_metadata(path).ok()?.file_type();
        assert!(!kind.is_symlink(), "the model does not know the link {}", path.display());
        Some(if kind.is_dir() { Node::Directory } else { Node::File })
    }

    /// path_resolution(7), and the plain reading of a name where nothing is there.
    fn resolve(&self, given: &str) -> Landing {
        let mut landing = Landing { path: PathBuf::from("/"), exists: true, looped: false };
        let start = self.top.join("w").join(given);
        let mut parts: Vec<OsString> = split(start.as_os_str());
        parts.reverse();
        let mut links = 0;
        while let Some(part) = parts.pop() {
            landing.exists &= self.node(&landing.path) == Some(Node::Directory);
            match part.as_bytes() {
                b"." => {}
                b".." => {
                    landing.path.pop();
                }
                _ => {
                    landing.path.push(&part);
                    if let Some(Node::Link(target)) = self.node(&landing.path) {
                        links += 1;
                        if links > 40 {
                            return Landing { looped: true, exists: false, ..landing };
                        }
                        landing.path.pop();
                        if target.as_bytes().starts_with(b"/") {
                            landing.path = PathBuf::from("/");
                        }
                        parts.extend(split(&target).into_iter().rev());
                    }
                }
            }
        }
        landing.exists &= self.node(&landing.path).is_some();
        landing
    }

    /// Everything outside the workspace with its content.
    fn outside(&self) -> BTreeSet<(PathBuf, Option<Vec<u8>>)> {
        let mut found = BTreeSet::new();
        let mut open = vec![self.top.join("o")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    open.push(entry.path());
                }
                found.insert((entry.path(), kind.is_file().then(|| fs::read(entry.path()).unwrap())));
            }
        }
        found
    }
}

/// The names of a path; a slash at the end stands for `.` after it.
fn split(path: &OsStr) -> Vec<OsString> {
    let bytes = path.as_bytes();
    let mut parts: Vec<OsString> = bytes
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .map(|part| OsStr::from_bytes(part).to_owned())
        .collect();
    if bytes.ends_with(b"/") {
        parts.push(".".into());
    }
    parts
}

fn resolver(workspace: &Path) -> Resolver {
    let surroundings = Surroundings::new(workspace, "/nonexistent");
    Resolver::open(&surroundings, Protection::new(Vec::new()).unwrap()).unwrap()
}

#[test]
fn paths_land_where_the_model_says() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut inside, mut outside, mut missing, mut loops, mut written) = (0, 0, 0, 0, 0);
    for round in 0..300 {
        let tree = Tree::grow(&mut dice);
        let workspace = tree.top.join("w");
        let resolver = resolver(&workspace);
        for _ in 0..100 {
            let given = tree.path(&mut dice);
            let expected = tree.resolve(&given);
            let (fact, handle) = resolver.look("path", &given, Access::Read, &workspace);
            let why = format!("{given:?} in {:#?}\n{expected:?}\n{fact:?}", tree.nodes);
            let is_inside = expected.path.starts_with(&workspace);
            assert_eq!(fact.scope == Scope::Workspace, is_inside, "scope of {why}");
            if expected.looped {
                loops += 1;
                assert_eq!(fact.problem.is_some(), is_inside, "a loop outside looks like any other path: {why}");
                continue;
            }
            assert_eq!(fact.problem, None, "problem of {why}");
            assert_eq!(handle.unwrap().kind().is_some(), expected.exists, "existence of {why}");
            let lands = expected.path.strip_prefix(&workspace).ok().map(|inner| match inner.to_string_lossy() {
                inner if inner.is_empty() => ".".to_owned(),
                inner => inner.into_owned(),
            });
            assert_eq!(fact.lands, lands, "landing of {why}");
            inside += usize::from(is_inside);
            outside += usize::from(!is_inside);
            missing += usize::from(!expected.exists);
        }
        // Each write waits for the disk twice.
        if round % 12 == 0 {
            written += write_some(&tree, &resolver, &mut dice);
        }
    }
    eprintln!("{inside} inside, {outside} outside, of these {missing} missing; {loops} loops; {written} files written");
    assert!(inside > 5_000 && outside > 5_000 && missing > 5_000 && loops > 30 && written > 50, "too tame a sample");
}

/// Writes where the guard says that it is inside, and sees to it that nothing outside has changed.
fn write_some(tree: &Tree, resolver: &Resolver, dice: &mut Dice) -> usize {
    let workspace = tree.top.join("w");
    let before = tree.outside();
    let mut written = 0;
    for n in 0..20 {
        let given = tree.path(dice);
        let (fact, handle) = resolver.look("path", &given, Access::Write, &workspace);
        let (Scope::Workspace, Some(handle)) = (fact.scope, handle) else { continue };
        let content = format!("new {n}");
        if handle.write(content.as_bytes(), None).is_ok() {
            written += 1;
            let lands = fact.lands.clone().unwrap();
            if !lands.contains('\u{fffd}') {
                assert_eq!(fs::read_to_string(workspace.join(&lands)).unwrap(), content, "{given:?}: {fact:?}");
            }
        }
    }
    assert_eq!(tree.outside(), before, "something outside the workspace has changed");
    written
}

#[test]
fn i2_every_text_has_an_answer() {
    let keep = tempfile::tempdir().unwrap();
    let resolver = resolver(keep.path());
    let mut dice = Dice(7);
    let pieces =
        ["/", "..", ".", "\0", "\n", "~", "C:", "\\\\", "a", "\u{202e}", "é", "🦀", "*", "%2e", "proc/self", " "];
    for _ in 0..20_000 {
        let given: String = (0..dice.roll(12)).map(|_| *dice.pick(&pieces)).collect();
        for access in [Access::Read, Access::Write, Access::Delete, Access::Execute] {
            let (fact, handle) = resolver.look("path", &given, access, keep.path());
            assert_eq!(handle.is_none(), fact.problem.is_some(), "{given:?} is neither held nor refused: {fact:?}");
            assert_eq!(fact.lands.is_some(), fact.scope == Scope::Workspace, "{fact:?}");
        }
    }
}

/// A thread swaps `w/d` between a directory and a link to the outside, as fast as it can.
#[test]
fn i4_a_race_between_judging_and_using_is_never_won() {
    let keep = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(keep.path()).unwrap();
    for directory in ["w/d", "o"] {
        fs::create_dir_all(top.join(directory)).unwrap();
    }
    fs::write(top.join("w/d/file"), "inside").unwrap();
    fs::write(top.join("o/file"), "outside").unwrap();
    fs::write(top.join("o/only-outside"), "outside").unwrap();
    symlink("../o", top.join("w/link")).unwrap();
    let resolver = resolver(&top.join("w"));
    let stop = AtomicBool::new(false);
    let (mut inside, mut outside, mut written, mut walked, mut swaps) = (0u32, 0u32, 0u32, 0u32, 0u32);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
                let (a, b) = (top.join("w/d"), top.join("w/link"));
                renameat2(AT_FDCWD, &a, AT_FDCWD, &b, RenameFlags::RENAME_EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        // A failed check must not leave the swapper running.
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let began = Instant::now();
            for round in 0.. {
                if began.elapsed() > Duration::from_secs(2) {
                    break;
                }
                match read(&resolver, &top.join("w")) {
                    Some(Scope::Workspace) => inside += 1,
                    Some(_) => outside += 1,
                    None => {}
                }
                walked += walk(&resolver, &top.join("w"));
                // Each write waits for the disk twice.
                if round % 4 > 0 {
                    continue;
                }
                let (fact, handle) = resolver.look("path", &format!("d/new-{round}"), Access::Write, &top.join("w"));
                if fact.scope == Scope::Workspace && handle.is_some_and(|handle| handle.write(b"x", None).is_ok()) {
                    written += 1;
                }
                assert_eq!(fs::read_dir(top.join("o")).unwrap().count(), 2, "a file was written outside");
            }
        }));
        stop.store(true, Ordering::Relaxed);
        swaps = swapper.join().unwrap();
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
    eprintln!("{swaps} swaps: {inside} read inside, {outside} seen outside, {written} written, {walked} files walked");
    assert!(swaps > 1_000 && inside > 20 && outside > 20 && written > 3 && walked > 50, "there was no race");
}

fn read(resolver: &Resolver, workspace: &Path) -> Option<Scope> {
    let (fact, handle) = resolver.look("path", "d/file", Access::Read, workspace);
    let (mut file, _) = handle?.open_file().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    if fact.scope == Scope::Workspace {
        assert_eq!(text, "inside", "what was judged to be inside was read outside");
    }
    Some(fact.scope)
}

fn walk(resolver: &Resolver, workspace: &Path) -> u32 {
    let handle = resolver.look("path", ".", Access::Read, workspace).1.unwrap();
    let mut walk = handle.walk(true, usize::MAX).unwrap();
    let mut files = 0;
    while let Some(entry) = walk.next() {
        assert!(!entry.path.ends_with("only-outside"), "a walk has left the workspace");
        if entry.kind == Kind::File
            && let Opened::File(mut file, _) = walk.open(&entry)
        {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_ne!(text, "outside", "a walk has read outside the workspace: {}", entry.path.display());
            files += 1;
        }
    }
    files
}
