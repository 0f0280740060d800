//! The command guard against bash: scripts are generated, run in real bash where every program is one that only records,
//! and what bash started and wrote must be covered by what the guard understood, or the guard must have said that
//! something was not resolved.

#![expect(clippy::indexing_slicing, reason = "the generator indexes its own tables")]

mod bash;
mod constructs;
mod corpus;
mod cover;
mod generate;
mod minimise;
mod table;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::bash::Yard;
pub use self::bash::{Confine, Seen, Started};
pub use self::cover::{Outcome, compare};
use self::generate::{Cell, Generator};
pub use self::table::Table;
use crate::facts::Surroundings;
use crate::facts::command::Guard;

/// Scripts of one confined run, at most.
const BATCH: u64 = 500;
/// Findings beyond these are only counted.
const LISTED: usize = 200;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Stop after so many scripts,
    pub scripts: u64,
    /// or so much time.
    pub time: Duration,
    pub seed: u64,
    pub threads: usize,
    /// How many findings are made small.
    pub small: usize,
    /// Command lines of people, to be made harmless and mutated.
    pub lines: Vec<String>,
}

/// A script that did something that the facts do not cover.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub script: String,
    pub uncovered: Vec<String>,
    /// What it was found in.
    pub from: String,
}

/// What a run found.
#[derive(Debug)]
pub struct Report {
    pub table: Table,
    /// One or two of each construct and position.
    pub findings: Vec<Finding>,
}

/// What all threads found so far.
#[derive(Default)]
struct Found {
    table: Table,
    findings: Vec<Finding>,
    /// How many findings of a construct and of a position were made small.
    from: BTreeMap<(bool, usize), usize>,
}

impl Found {
    /// Whether it is worth making one more finding small: another of the same construct or position is mostly the same.
    fn is_news(&mut self, cell: Cell) -> bool {
        let keys = match cell {
            Cell::Made(construct, position, _) => [(false, construct), (true, position)],
            Cell::Corpus => [(false, usize::MAX), (true, usize::MAX)],
        };
        let few = keys.iter().any(|key| !self.from.contains_key(key));
        keys.iter().for_each(|key| *self.from.entry(*key).or_default() += 1);
        few
    }

    fn add(&mut self, finding: Finding) {
        if !self.findings.iter().any(|known| known.script == finding.script) {
            self.findings.push(finding);
        }
    }
}

/// Compares the guard with bash on generated scripts, in directories below `base`.
pub fn run(guard: &Guard, options: &Options, base: &Path, confine: &Confine<'_>) -> io::Result<Report> {
    let began = Instant::now();
    let generator = Generator { seed: options.seed, lines: &options.lines };
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let batch = (options.scripts / (4 * options.threads.max(1) as u64)).clamp(50, BATCH);
    let shared = Mutex::new(Found::default());
    let work = |thread: usize| -> io::Result<()> {
        let base = base.join(thread.to_string());
        fs::create_dir(&base)?;
        let yard = Yard::new(&base, confine)?;
        loop {
            let first = next.fetch_add(batch, Ordering::Relaxed);
            if first >= options.scripts || began.elapsed() >= options.time || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let made: Vec<_> =
                (first..options.scripts.min(first + batch)).map(|number| generator.script(number)).collect();
            let scripts: Vec<String> = made.iter().map(|(_, script)| script.clone()).collect();
            let outcomes = judged(guard, &yard, &scripts)?;
            let mut found = Vec::new();
            let mut table = Table::default();
            for ((cell, script), (seen, outcome)) in made.into_iter().zip(outcomes) {
                table.count(cell, &seen, &outcome);
                if !outcome.uncovered.is_empty() && !outcome.unresolved {
                    found.push((cell, Finding { script: script.clone(), uncovered: outcome.uncovered, from: script }));
                }
            }
            shared.lock().expect("no thread panicked").table.add(&table);
            for (cell, finding) in found {
                let (news, known) = {
                    let mut shared = shared.lock().expect("no thread panicked");
                    (shared.is_news(cell), shared.findings.len())
                };
                if news && known < LISTED {
                    let finding = if known < options.small { small(guard, &yard, finding)? } else { finding };
                    shared.lock().expect("no thread panicked").add(finding);
                }
            }
        }
    };
    let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads.max(1))
            .map(|thread| {
                let (work, stop) = (&work, &stop);
                scope.spawn(move || work(thread).inspect_err(|_| stop.store(true, Ordering::Relaxed)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panicked")).collect()
    });
    results.into_iter().collect::<io::Result<()>>()?;
    let Found { mut table, mut findings, .. } = shared.into_inner().expect("no thread panicked");
    table.took = began.elapsed();
    findings.sort();
    Ok(Report { table, findings })
}

/// The script that a run with this seed and these lines has at this place.
pub fn script(seed: u64, lines: &[String], number: u64) -> String {
    Generator { seed, lines }.script(number).1
}

/// Where yards are best set up: in memory, where this machine has such a place.
pub fn ground() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// What bash does with scripts.
pub fn observe(scripts: &[String], base: &Path, confine: &Confine<'_>) -> io::Result<Vec<Seen>> {
    Yard::new(base, confine)?.run(scripts)
}

/// What is not covered of single scripts, such as past findings.
pub fn replay(guard: &Guard, scripts: &[String], base: &Path, confine: &Confine<'_>) -> io::Result<Vec<Outcome>> {
    let yard = Yard::new(base, confine)?;
    Ok(judged(guard, &yard, scripts)?.into_iter().map(|(_, outcome)| outcome).collect())
}

fn judged(guard: &Guard, yard: &Yard<'_>, scripts: &[String]) -> io::Result<Vec<(Seen, Outcome)>> {
    let seen = yard.run(scripts)?;
    let judge = |(number, seen): (usize, Seen)| {
        let place = yard.place(number);
        let here = Surroundings::new(&place, place.join("h"));
        let outcome = compare(&guard.understand(&scripts[number], &here), &seen);
        (seen, outcome)
    };
    Ok(seen.into_iter().enumerate().map(judge).collect())
}

fn small(guard: &Guard, yard: &Yard<'_>, finding: Finding) -> io::Result<Finding> {
    let mut failed = None;
    let Finding { script, mut uncovered, from } = finding;
    let mut failing = |scripts: &[String]| match judged(guard, yard, scripts) {
        Ok(outcomes) => {
            let at = outcomes.iter().position(|(seen, outcome)| {
                let lacks = &outcome.uncovered;
                // The same program, or a file again: otherwise it drifts from one finding to another.
                let same = uncovered.first().is_none_or(|before| lacks.iter().any(|lack| kind(lack) == kind(before)));
                // One that does not end takes as long as it may, each time.
                !lacks.is_empty() && !outcome.unresolved && same && !seen.hung
            })?;
            uncovered = outcomes[at].1.uncovered.clone();
            Some(at)
        }
        Err(error) => {
            failed = Some(error);
            None
        }
    };
    let smallest = minimise::minimised(&script, &mut failing);
    match failed {
        Some(error) => Err(error),
        None => Ok(Finding { script: smallest, uncovered, from }),
    }
}

/// The program and the number of its words, of something that is not covered.
fn kind(uncovered: &str) -> (Option<&str>, usize) {
    let argv = uncovered.split("] in ").next().unwrap_or_default();
    if uncovered.starts_with("wrote") { (None, 0) } else { (argv.split(',').next(), argv.matches("\", \"").count()) }
}
