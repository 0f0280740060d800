//! Where a path that cannot be opened would land: the way the kernel would take, walked by name.
//!
//! The answer is a prediction, good enough to say what kind of place is meant. Whatever is done there later is opened
//! without following any link, so a prediction that has become wrong ends in a refusal.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows (`MAXSYMLINKS`, linux/namei.h).
const MOST_LINKS: usize = 40;

/// The path goes around in a loop, or through more links than the kernel follows; this is where it gave up.
#[derive(Debug)]
pub(super) struct Loop(pub PathBuf);

enum Step {
    Root,
    Up,
    Into(OsString),
}

/// Where a path would land.
pub(super) struct Predicted {
    /// The absolute path without links; what does not exist has no links.
    pub landing: PathBuf,
    /// The way goes back up from what is no directory, so the kernel never gets there, whatever is there.
    pub blocked: bool,
}

/// Where `path` (absolute) would land.
pub(super) fn predict(path: &Path, follow_last: bool) -> Result<Predicted, Loop> {
    let mut steps = VecDeque::new();
    prepend(&mut steps, path);
    let mut here = PathBuf::from("/");
    let (mut links, mut blocked) = (0, false);
    while let Some(step) = steps.pop_front() {
        match step {
            Step::Root => here = PathBuf::from("/"),
            Step::Up => {
                blocked |= !here.is_dir();
                here.pop();
            }
            Step::Into(name) => {
                here.push(name);
                if steps.is_empty() && !follow_last {
                    break;
                }
                if let Ok(target) = std::fs::read_link(&here) {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Loop(here));
                    }
                    here.pop();
                    prepend(&mut steps, &target);
                }
            }
        }
    }
    Ok(Predicted { landing: here, blocked })
}

fn prepend(steps: &mut VecDeque<Step>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => steps.push_front(Step::Into(name.to_owned())),
            Component::ParentDir => steps.push_front(Step::Up),
            Component::RootDir => steps.push_front(Step::Root),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
}
