//! path_resolution(7), on a tree in memory, without a look at the guard's own code.

use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::tree::{Node, Tree, What, look};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
const LONGEST_NAME: usize = 255;

/// Where the model says that a path leads.
#[derive(Debug)]
pub struct Landing {
    /// Without links; by the plain reading of names where nothing is there.
    pub path: PathBuf,
    /// What is there, or why the kernel stops.
    pub found: Result<Node, Errno>,
    /// It went through more links than are followed, by name.
    pub looped: bool,
    /// Links that were followed.
    pub links: usize,
}

enum Step {
    Up,
    /// Whatever comes before must be a directory.
    Stay,
    Into(PathBuf),
}

pub fn resolve(tree: &Tree, start: &Path, follow_last: bool) -> Landing {
    let mut steps = steps(start);
    let mut here = PathBuf::from("/");
    let mut error = None;
    let mut links = 0;
    while let Some(step) = steps.pop_front() {
        error = error.or_else(|| match node(tree, &here).map(|node| node.what) {
            Some(What::Directory) => None,
            Some(_) => Some(Errno::ENOTDIR),
            None => Some(Errno::ENOENT),
        });
        let name = match step {
            Step::Stay => continue,
            Step::Up => {
                here.pop();
                continue;
            }
            Step::Into(name) => name,
        };
        // Of /proc no name is too long, it is only not there.
        if name.as_os_str().len() > LONGEST_NAME && !here.starts_with("/proc") {
            error = error.or(Some(Errno::ENAMETOOLONG));
        }
        here.push(&name);
        if steps.is_empty() && !follow_last {
            break;
        }
        let Some(What::Link(target)) = node(tree, &here).map(|node| node.what) else { continue };
        links += 1;
        if links > MOST_LINKS {
            return Landing { path: here, found: Err(error.unwrap_or(Errno::ELOOP)), looped: true, links };
        }
        if is_magic(&here) {
            error = error.or(Some(Errno::ELOOP));
        }
        here.pop();
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        for step in self::steps(&target).into_iter().rev() {
            steps.push_front(step);
        }
    }
    let found = match error {
        Some(error) => Err(error),
        None => node(tree, &here).ok_or(Errno::ENOENT),
    };
    Landing { path: here, found, looped: false, links }
}

/// What has a path without links: in the tree by memory, and beside it by whatever this machine has there.
fn node(tree: &Tree, path: &Path) -> Option<Node> {
    if path.starts_with(&tree.top) { tree.node(path).cloned() } else { look(path) }
}

/// In /proc, what is more than a text: its own link to the process is not.
fn is_magic(link: &Path) -> bool {
    link.starts_with("/proc") && link.parent() != Some(Path::new("/proc"))
}

/// The names of a path; a slash at its end stands for `.` after it.
fn steps(path: &Path) -> VecDeque<Step> {
    let bytes = path.as_os_str().as_bytes();
    let mut steps: VecDeque<Step> = bytes
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
        .map(|name| match name {
            b"." => Step::Stay,
            b".." => Step::Up,
            name => Step::Into(std::ffi::OsStr::from_bytes(name).into()),
        })
        .collect();
    if bytes.ends_with(b"/") {
        steps.push_back(Step::Stay);
    }
    steps
}
