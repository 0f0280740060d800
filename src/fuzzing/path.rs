//! The path guard against the kernel: a small random tree, a path, and where `openat2(2)` itself says that it lands.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::Mode;

use super::input::Input;
use super::kernel::ask_kernel;
use super::scratch::Scratch;
use crate::facts::path::{Access, Handle, PathFact, Protection, Resolver, standard_rules};
use crate::facts::{Scope, Surroundings};

/// Workspace, outside, readable root, writable root, the gateway's own.
const ROOTS: &[&str] = &["w", "o", "r", "v", "g"];
const NAMES: &[&str] = &["a", "b", "c", "é", ".env"];
const STEPS: &[&str] = &["a", "b", "c", "é", ".env", "..", "..", ".", ""];
const ACCESSES: &[Access] = &[Access::Read, Access::Write, Access::Delete, Access::Execute];

/// Where the kernel says that a path leads.
struct Truth {
    landing: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    is_file: bool,
}

/// A path is judged by where it lands, as the kernel sees it; what the handle reads is the file that was judged; and
/// nothing that is written through a handle inside the roots arrives outside of them.
///
/// # Panics
///
/// Where that does not hold.
pub fn path(data: &[u8]) {
    let mut input = Input::new(data);
    let scratch = Scratch::new();
    let top = scratch.path();
    for root in ROOTS {
        fs::create_dir(top.join(root)).expect("a root is made");
    }
    let swap = input.flag();
    let access = *input.pick(ACCESSES);
    let cwd = if input.flag() { top.join("w/a") } else { top.join("w") };
    let given = name(&mut input, top);
    while !input.is_empty() {
        grow(&mut input, top);
    }
    let mut surroundings = Surroundings::new(top.join("w"), top.join("home"));
    surroundings.read_roots.push(top.join("r"));
    surroundings.write_roots.push(top.join("v"));
    surroundings.gateway.push(top.join("g"));
    let protection = Protection::new(standard_rules()).expect("the standard rules are sound");
    let resolver = Resolver::open(&surroundings, protection).expect("the roots can be opened");

    let full = if given.starts_with('/') { PathBuf::from(&given) } else { cwd.join(&given) };
    let follow = access != Access::Delete || matches!(given.rsplit('/').next(), Some("" | "." | ".."));
    let truth = truth_of(&full, follow);
    let (fact, handle) = resolver.look("path", &given, access, &cwd);
    agrees(top, &fact, &truth);
    assert!(fact.problem.is_none() || handle.is_none(), "a handle of what cannot be used: {fact:?}");
    if let Some(full) = full.to_str() {
        agrees(top, &resolver.look_in_command(full, access), &truth);
    }
    match (access, handle) {
        (Access::Read, Some(handle)) => reads_what_was_judged(&fact, &handle, &truth),
        (Access::Write, Some(handle)) => writes_inside(top, &fact, &handle, swap),
        _ => {}
    }
}

/// A path: relative, or absolute in one of the roots, or by way of a magic link.
fn name(input: &mut Input<'_>, top: &Path) -> String {
    let start = match input.byte() % 8 {
        0..=4 => String::new(),
        5 | 6 => format!("{}/{}/", top.display(), input.pick(ROOTS)),
        _ => format!("/proc/self/root{}/{}/", top.display(), input.pick(ROOTS)),
    };
    let steps: Vec<&str> = input.several(6, |input| *input.pick(STEPS));
    start + &steps.join("/")
}

fn place(input: &mut Input<'_>, top: &Path) -> PathBuf {
    let mut place = top.join(input.pick(ROOTS));
    for _ in 0..=input.below(3) {
        place.push(input.pick(NAMES));
    }
    place
}

/// One change of the tree, never outside of it. One that is not possible changes nothing.
fn grow(input: &mut Input<'_>, top: &Path) {
    let kind = input.byte() % 8;
    let place = place(input, top);
    let Some(parent) = place.parent() else { return };
    if parent.parent().is_some_and(|above| within(above, top)) {
        let _ = fs::create_dir(parent);
    }
    if !within(parent, top) {
        return;
    }
    let _ = match kind {
        0 | 1 => fs::create_dir(&place),
        // Never through a link, never into a pipe that nobody reads.
        2 | 3 => File::create_new(&place).and_then(|mut file| file.write_all(place.as_os_str().as_bytes())),
        4 | 5 => symlink(name(input, top), &place),
        6 => fs::hard_link(self::place(input, top), &place),
        _ => nix::unistd::mkfifo(&place, Mode::S_IRUSR).map_err(Into::into),
    };
}

/// Whether a directory is really below `top`, links followed.
fn within(directory: &Path, top: &Path) -> bool {
    fs::canonicalize(directory).is_ok_and(|real| real.starts_with(top) && real != top)
}

fn truth_of(path: &Path, follow: bool) -> Result<Truth, Errno> {
    let (handle, landing) = ask_kernel(path, follow)?;
    let meta = File::from(handle).metadata().expect("an open file has a state");
    Ok(Truth { landing, identity: (meta.dev(), meta.ino()), is_file: meta.is_file() })
}

fn inside(scope: Scope) -> bool {
    matches!(scope, Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot)
}

/// The scope that a real path has here; nothing stands for every place outside.
fn scope_of(top: &Path, landing: &Path) -> Option<Scope> {
    let inner = landing.strip_prefix(top).ok()?;
    match inner.iter().next()?.to_str()? {
        "w" => Some(Scope::Workspace),
        "v" => Some(Scope::WriteRoot),
        "r" => Some(Scope::ReadRoot),
        "g" => Some(Scope::Gateway),
        _ => None,
    }
}

fn agrees(top: &Path, fact: &PathFact, truth: &Result<Truth, Errno>) {
    if fact.problem.is_some() {
        return;
    }
    match truth {
        // What belongs to the gateway by any of its names is the gateway's.
        Ok(_) if fact.scope == Scope::Gateway => {}
        Ok(truth) => {
            let scope = Some(fact.scope).filter(|scope| inside(*scope));
            assert_eq!(scope, scope_of(top, &truth.landing), "it lands in {:?}: {fact:?}", truth.landing);
            if scope.is_some() {
                let lands = top.join("w").join(fact.lands.as_deref().unwrap_or("nowhere"));
                let lands = if lands.ends_with(".") { top.join("w") } else { lands };
                assert_eq!(lands.components().collect::<PathBuf>(), truth.landing, "{fact:?}");
            }
        }
        Err(Errno::ELOOP) => assert!(!inside(fact.scope), "through a loop or a magic link: {fact:?}"),
        Err(_) => {}
    }
}

fn reads_what_was_judged(fact: &PathFact, handle: &Handle, truth: &Result<Truth, Errno>) {
    let Ok((file, _)) = handle.open_file() else { return };
    let meta = file.metadata().expect("an open file has a state");
    let Ok(truth) = truth else { panic!("a file was opened where the kernel finds none: {fact:?}") };
    assert!(truth.is_file, "what was opened is no regular file: {fact:?}");
    assert_eq!((meta.dev(), meta.ino()), truth.identity, "another file was opened than the one judged: {fact:?}");
}

/// Writes as a tool would; with `swap`, a link to the outside first takes the place of a directory.
fn writes_inside(top: &Path, fact: &PathFact, handle: &Handle, swap: bool) {
    if !matches!(fact.scope, Scope::Workspace | Scope::WriteRoot) {
        return;
    }
    let before: Vec<_> = ["o", "r", "g"].map(|root| snapshot(&top.join(root))).into();
    if swap && fs::rename(top.join("w/a"), top.join("w/moved")).is_ok() {
        symlink("../o", top.join("w/a")).expect("the place is free");
    }
    let written = handle.write(b"written", None);
    let after: Vec<_> = ["o", "r", "g"].map(|root| snapshot(&top.join(root))).into();
    assert_eq!(before, after, "writing changed something outside ({written:?}): {fact:?}");
    if written.is_ok() && !swap {
        let lands = top.join("w").join(fact.lands.as_deref().unwrap_or("nowhere"));
        let text = fs::symlink_metadata(&lands).ok().filter(fs::Metadata::is_file).and_then(|_| fs::read(&lands).ok());
        assert_eq!(text.as_deref(), Some(&b"written"[..]), "what was written is not where it lands: {fact:?}");
    }
}

/// Every name below a directory with what it holds, links not followed.
fn snapshot(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        let content = if kind.is_file() { fs::read(&path).unwrap_or_default() } else { format!("{kind:?}").into() };
        found.push((path.clone(), content));
        if kind.is_dir() {
            found.extend(snapshot(&path));
        }
    }
    found.sort();
    found
}
