//! The path guard against the kernel: random trees, random paths, and three answers that must be the same: an independent
//! model of path_resolution(7) (`model`), `openat2(2)` and `fstat(2)` asked directly, and the guard's handle. `fuzz/paths`
//! runs it for as long as you like.

mod agree;
mod model;
mod tree;

use std::collections::BTreeMap;
use std::fmt;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use self::agree::Bench;
use self::tree::Tree;
use super::random::Random;
use super::scratch::Scratch;

/// Paths that are looked up in one tree.
const LOOKUPS: u64 = 1_000;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub cases: u64,
    pub seed: u64,
    pub threads: usize,
}

/// How often each kind of answer was given, by all three.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub cases: u64,
    pub trees: u64,
    pub written: u64,
    /// No mounts could be made, and so none were tried.
    pub without_mounts: bool,
    pub answers: BTreeMap<&'static str, u64>,
    /// The first disagreements, with all that is needed to see them again.
    pub disagreements: Vec<String>,
}

/// Disagreements after which a thread gives up.
const MOST_DISAGREEMENTS: usize = 5;

/// Looks paths up in trees until there were as many cases as wanted. The same seed makes the same trees and paths, whatever
/// the number of threads.
///
/// # Panics
///
/// Where a tree cannot be made.
pub fn run(options: &Options) -> Report {
    let trees = options.cases.div_ceil(LOOKUPS);
    let threads = options.threads.max(1);
    let mut whole = Report::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads as u64)
            .map(|first| scope.spawn(move || work(options.seed, (first..trees).step_by(threads))))
            .collect();
        for worker in workers {
            whole.add(worker.join().expect("a worker ends"));
        }
    });
    whole
}

fn work(seed: u64, trees: impl Iterator<Item = u64>) -> Report {
    let scratch = Scratch::new();
    let mounts = own_mounts(&scratch);
    let mut report = Report { without_mounts: !mounts, ..Report::default() };
    for number in trees {
        let mut random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
        let tree = Tree::grow(&mut random, scratch.path(), mounts);
        Bench::new(tree, format!("seed {seed}, tree {number}")).run(&mut random, LOOKUPS, &mut report);
        report.trees += 1;
        if report.disagreements.len() >= MOST_DISAGREEMENTS {
            break;
        }
    }
    report
}

/// A mount namespace of this thread's own, with a file system in memory for the trees; false where that is not allowed.
fn own_mounts(scratch: &Scratch) -> bool {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
        .and_then(|()| mount(Some("tmpfs"), scratch.path(), Some("tmpfs"), MsFlags::empty(), Some("size=256m")))
        .is_ok()
}

impl Report {
    fn count(&mut self, answer: &'static str) {
        self.cases += 1;
        *self.answers.entry(answer).or_default() += 1;
    }

    fn add(&mut self, other: Report) {
        self.cases += other.cases;
        self.trees += other.trees;
        self.written += other.written;
        self.without_mounts |= other.without_mounts;
        for (answer, count) in other.answers {
            *self.answers.entry(answer).or_default() += count;
        }
        self.disagreements.extend(other.disagreements);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} cases in {} trees, {} files written", self.cases, self.trees, self.written)?;
        if self.without_mounts {
            writeln!(f, "NOT PROVED: mounts inside the tree, which need a mount namespace (run it as root)")?;
        }
        for (answer, count) in &self.answers {
            writeln!(f, "{count:>12}  {answer}")?;
        }
        for disagreement in &self.disagreements {
            writeln!(f, "--- {disagreement}")?;
        }
        writeln!(f, "{} disagreements", self.disagreements.len())
    }
}
