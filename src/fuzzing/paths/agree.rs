//! One lookup: the model, the kernel and the guard must say the same.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::fstat;

use super::Report;
use super::model::{Landing, resolve};
use super::tree::{Identity, Node, Tree, What};
use crate::facts::path::{Access, Handle, PathFact, Protection, Resolver};
use crate::facts::{Scope, Surroundings, normalise};
use crate::fuzzing::kernel::ask_kernel;
use crate::fuzzing::random::Random;

const ACCESSES: &[&Access] =
    &[&Access::Read, &Access::Read, &Access::Read, &Access::Write, &Access::Write, &Access::Delete, &Access::Execute];

/// With more links, the kernel's answer varies: it walks a path without locks first, starts over with them where that is not
/// possible, and counts the links of both walks against its limit.
const FEW_LINKS: usize = 13;

/// A tree with a guard of it.
pub struct Bench {
    tree: Tree,
    resolver: Resolver,
    name: String,
}

/// What the kernel says: what is there and where that is, or why not.
type Truth = Result<(Identity, PathBuf), Errno>;

impl Bench {
    pub fn new(tree: Tree, name: String) -> Self {
        let mut surroundings = Surroundings::new(tree.top.join("w"), tree.top.join("home"));
        surroundings.read_roots.push(tree.top.join("r"));
        surroundings.write_roots.push(tree.top.join("v"));
        surroundings.gateway.push(tree.top.join("g"));
        let protection = Protection::new(Vec::new()).expect("no rules are sound rules");
        let resolver = Resolver::open(&surroundings, protection).expect("the roots can be opened");
        Bench { tree, resolver, name }
    }

    pub fn run(&mut self, random: &mut Random, lookups: u64, report: &mut Report) {
        for _ in 0..lookups {
            let given = self.tree.given(random);
            let access = *random.pick(ACCESSES);
            let writes = random.once_in(16);
            if let Err(why) = self.look(&given, access, writes, report) {
                report.disagreements.push(self.explain(&format!("{access:?} {given:?}: {why}")));
                return;
            }
        }
        if let Err(why) = self.tree.check() {
            report.disagreements.push(self.explain(&why));
        }
    }

    fn explain(&self, what: &str) -> String {
        let nodes: Vec<String> = self.tree.nodes.iter().map(|(place, node)| format!("{place:?} {node:?}")).collect();
        format!("{}: {what}\nmounts {:?}\n{}", self.name, self.tree.mounts, nodes.join("\n"))
    }

    fn look(&mut self, given: &str, access: Access, writes: bool, report: &mut Report) -> Result<(), String> {
        let cwd = self.tree.top.join("w");
        let full = if given.starts_with('/') { given.to_owned() } else { format!("{}/{given}", cwd.display()) };
        let full = Path::new(&full);
        let directory = matches!(given.rsplit('/').next(), Some("" | "." | ".."));
        let follow = access != Access::Delete || directory;
        let model = resolve(&self.tree, full, follow);
        let patience = if model.links > FEW_LINKS { 8 } else { 1 };
        let truth = patiently(patience, || {
            let truth = truth_of(full, follow);
            modelled(&model, &truth).map(|()| truth)
        })?;
        let expected = Expected::of(&self.tree, full, access, directory, &model);
        let (fact, handle) = patiently(patience, || {
            let (fact, handle) = self.resolver.look("path", given, access, &cwd);
            let held = expected.hold(&self.tree, &fact, handle.as_ref());
            held.and_then(|()| held_alike(handle.as_ref(), &model, &truth))
                .map(|()| (fact.clone(), handle))
                .map_err(|why| format!("{why}\n{model:?}\n{fact:?}"))
        })?;
        report.count(expected.name(&model));
        if let Some(handle) = handle
            && writes
            && access == Access::Write
            && matches!(fact.scope, Scope::Workspace | Scope::WriteRoot)
            && !self.tree.is_mounted(&model.path)
        {
            self.write(&handle, &model.path, report)?;
        }
        Ok(())
    }

    /// Writes as a tool would. What it changes elsewhere shows when the whole tree is looked at in the end.
    fn write(&mut self, handle: &Handle, landing: &Path, report: &mut Report) -> Result<(), String> {
        let old = self.tree.node(landing).cloned();
        if handle.write(b"written", None).is_err() {
            return Ok(());
        }
        report.written += 1;
        let missing: Vec<&Path> = landing.ancestors().take_while(|path| self.tree.node(path).is_none()).collect();
        for path in missing.into_iter().chain([landing]) {
            self.tree.learn(path);
        }
        // A file that had another name has one less.
        if let Some(old) = old.filter(|old| old.names > 1) {
            for node in self.tree.nodes.values_mut().filter(|node| node.identity == old.identity) {
                node.names -= 1;
            }
        }
        match self.tree.node(landing).map(|node| &node.what) {
            Some(What::File) if fs::read(landing).is_ok_and(|text| text == b"written") => Ok(()),
            other => Err(format!("what was written is not at {}: {other:?}", landing.display())),
        }
    }
}

/// The first answer that fits, of so many.
fn patiently<T>(times: usize, ask: impl Fn() -> Result<T, String>) -> Result<T, String> {
    let mut answer = ask();
    for _ in 1..times {
        if answer.is_ok() {
            break;
        }
        answer = ask();
    }
    answer
}

fn truth_of(path: &Path, follow: bool) -> Truth {
    let (handle, landing) = ask_kernel(path, follow)?;
    let stat = fstat(&handle)?;
    Ok(((stat.st_dev, stat.st_ino), landing))
}

/// The model and the kernel agree.
fn modelled(model: &Landing, truth: &Truth) -> Result<(), String> {
    let same = match (&model.found, truth) {
        (Ok(node), Ok((identity, landing))) => {
            *landing == model.path && (node.identity == *identity || landing.starts_with("/proc"))
        }
        (Err(expected), Err(found)) => expected == found,
        _ => false,
    };
    if same { Ok(()) } else { Err(format!("the kernel says {truth:?}, and the model {model:?}")) }
}

/// The handle is of the very file, or says why there is none as the kernel does.
fn held_alike(handle: Option<&Handle>, model: &Landing, truth: &Truth) -> Result<(), String> {
    let Some(handle) = handle else { return Ok(()) };
    let same = match (handle.judged(), truth) {
        (Ok(identity), Ok((expected, landing))) => identity == *expected || landing.starts_with("/proc"),
        (Err(reason), Err(expected)) => reason == *expected,
        _ => false,
    };
    if !same {
        return Err(format!("the kernel says {truth:?}, and the handle {:?}", handle.judged()));
    }
    // What is opened is the file that was looked at.
    let opened = model.path.as_os_str().len().is_multiple_of(8);
    if let (Ok(Node { what: What::File, identity, .. }), true) = (&model.found, opened) {
        let (file, _) = handle.open_file().map_err(|error| error.to_string())?;
        let meta = file.metadata().map_err(|error| error.to_string())?;
        if (meta.dev(), meta.ino()) != *identity && !model.path.starts_with("/proc") {
            return Err(format!("{:?} was opened instead of {identity:?}", (meta.dev(), meta.ino())));
        }
    }
    Ok(())
}

/// What the guard is to say.
#[derive(Debug)]
struct Expected {
    /// Nothing for every place outside.
    scope: Option<Scope>,
    /// That it cannot be used, part of the reason.
    problem: Option<&'static str>,
    lands: Option<PathBuf>,
}

impl Expected {
    fn of(tree: &Tree, full: &Path, access: Access, directory: bool, model: &Landing) -> Self {
        let root = |path: &Path| match path.strip_prefix(&tree.top).ok()?.iter().next()?.to_str()? {
            "w" => Some(Scope::Workspace),
            "v" => Some(Scope::WriteRoot),
            "r" => Some(Scope::ReadRoot),
            "g" => Some(Scope::Gateway),
            _ => None,
        };
        let place = root(&model.path);
        let what = model.found.as_ref().ok().map(|node| &node.what);
        let scope = if root(&normalise(full)) == Some(Scope::Gateway) || belongs_to_gateway(tree, model, access) {
            Some(Scope::Gateway)
        } else if what == Some(&What::Device) && place != Some(Scope::Gateway) {
            Some(Scope::Device)
        } else {
            place
        };
        let inside = matches!(place, Some(Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot));
        let problem = match what {
            _ if !inside => None,
            _ if model.looped => Some("loop"),
            _ if matches!(model.found, Err(Errno::ELOOP)) => Some("magic link"),
            Some(What::Special | What::Device) if access != Access::Delete => Some("only regular files"),
            Some(What::Directory) | None if access == Access::Write && directory => Some("like a directory's"),
            _ => None,
        };
        let lands = scope.filter(|_| scope == place && inside).map(|_| model.path.clone());
        Expected { scope, problem, lands }
    }

    fn hold(&self, tree: &Tree, fact: &PathFact, handle: Option<&Handle>) -> Result<(), String> {
        let outside = !matches!(
            fact.scope,
            Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot | Scope::Gateway | Scope::Device
        );
        // A device beside the tree is one by its name.
        let scope =
            Some(fact.scope).filter(|scope| !outside && (*scope != Scope::Device || self.scope == Some(*scope)));
        if scope != self.scope {
            return Err(format!("the scope was to be {:?}", self.scope));
        }
        let same = match (&fact.problem, self.problem) {
            (None, None) => true,
            (Some(problem), Some(part)) => problem.contains(part),
            _ => false,
        };
        if !same {
            return Err(format!("the problem was to be {:?}", self.problem));
        }
        if handle.is_some() != fact.problem.is_none() {
            return Err("neither held nor refused".to_owned());
        }
        let lands = self.lands.as_ref().map(|path| match path.strip_prefix(tree.top.join("w")) {
            Ok(inner) if inner.as_os_str().is_empty() => ".".to_owned(),
            Ok(inner) => inner.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        });
        if fact.lands == lands { Ok(()) } else { Err(format!("it was to land in {lands:?}")) }
    }

    /// The row of the table.
    fn name(&self, model: &Landing) -> &'static str {
        let inside = self.scope.is_some();
        match (&model.found, self.problem) {
            (_, Some("loop")) => "refused: a loop",
            (_, Some("magic link")) => "refused: a magic link",
            (_, Some("only regular files")) => "refused: a pipe, socket or device",
            (_, Some(_)) => "refused: a directory's name for a file",
            (Ok(_), None) if self.scope == Some(Scope::Gateway) => "the gateway's own",
            (Ok(_), None) if inside => "inside, found",
            (Ok(_), None) => "outside, found",
            (Err(Errno::ENOENT), None) if inside => "inside, missing",
            (Err(Errno::ENOTDIR), None) if inside => "inside, below a file",
            (Err(_), None) if inside => "inside, for another reason",
            (Err(Errno::ELOOP), None) => "outside, a loop or a magic link",
            (Err(_), None) => "outside, missing",
        }
    }
}

/// The deepest directory that exists on the way to a path, where nothing else stands in the way.
fn directory_of<'p>(tree: &Tree, path: &'p Path) -> Option<&'p Path> {
    let fits = |path: &Path| path.iter().all(|name| name.len() <= 255);
    let above =
        path.ancestors().skip(1).find(|above| tree.node(above).is_some()).filter(|_| path.parent().is_some_and(fits));
    above.filter(|above| tree.node(above).is_some_and(|node| node.what == What::Directory))
}

/// Whether it is the gateway's by another name: a bind mount of its directory, or a hard link of one of its files.
fn belongs_to_gateway(tree: &Tree, model: &Landing, access: Access) -> bool {
    let own = tree.top.join("g");
    if !model.path.starts_with(&tree.top) {
        return false;
    }
    let mounted = |path: &Path| {
        let (number, inner) = tree.place(path);
        number == 0 && inner.starts_with(&own)
    };
    let Ok(node) = &model.found else {
        // What is to be made belongs to whom the directory does in which it would be.
        return access == Access::Write && directory_of(tree, &model.path).is_some_and(mounted);
    };
    if mounted(&model.path) {
        return true;
    }
    let linked = |(place, other): (&(usize, PathBuf), &Node)| {
        place.0 == 0 && place.1.starts_with(&own) && other.identity == node.identity
    };
    node.what == What::File && node.names > 1 && access != Access::Execute && tree.nodes.iter().any(linked)
}
