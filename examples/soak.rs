//! Long runs of what tests the guards; `fuzz/README.md` says how. `fuzz/differential`, `fuzz/metamorphic` and `fuzz/paths`
//! call it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use portcullis::call::Digest;
use portcullis::facts::command::Guard;
use portcullis::fuzzing::differential::{self, Finding, Options};
use portcullis::fuzzing::{confined, metamorphic, paths};
use portcullis::sandbox::{HELPER_ARGUMENT, Launcher, helper_main};

/// Tests the guards for as long as you like.
#[derive(Parser)]
enum Cli {
    /// Compares the guard with real bash on generated scripts, and prints the table.
    Differential(Differential),
    /// Rewrites denied commands in ways that must not change the answer.
    Metamorphic(Metamorphic),
    /// Compares the path guard with the kernel and with a model, in random trees, and prints the table.
    Paths(Paths),
}

#[derive(Args)]
struct Paths {
    /// Paths that are looked up.
    #[arg(long, default_value_t = 10_000_000)]
    cases: u64,
    /// The same seed makes the same trees and paths.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Trees at a time; one for each processor unless told.
    #[arg(long)]
    threads: Option<usize>,
}

#[derive(Args)]
struct Metamorphic {
    /// Cases of each property.
    #[arg(long, default_value_t = 200_000)]
    cases: u64,
    /// The same seed makes the same cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Files with a command on each line, of which those are taken that the guard denies; our own corpus unless told.
    #[arg(long, value_name = "FILE")]
    lines: Vec<PathBuf>,
    /// Rule packs of your own, beside ours.
    #[arg(long, value_name = "FILE")]
    pack: Vec<PathBuf>,
}

#[derive(Args)]
struct Differential {
    /// Stop after so many scripts.
    #[arg(long)]
    scripts: Option<u64>,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// The same seed makes the same scripts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Files with a command on each line, which are made harmless and mutated.
    #[arg(long, value_name = "FILE")]
    lines: Vec<PathBuf>,
    /// Rule packs of your own, beside ours.
    #[arg(long, value_name = "FILE")]
    pack: Vec<PathBuf>,
    /// Scripts at a time; one for each processor unless told.
    #[arg(long)]
    threads: Option<usize>,
    /// Where small scripts of what was found are written.
    #[arg(long, default_value = "fuzz/regressions/differential")]
    found: PathBuf,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == HELPER_ARGUMENT) {
        return helper_main();
    }
    let done = match Cli::parse() {
        Cli::Differential(arguments) => differential(&arguments),
        Cli::Metamorphic(arguments) => metamorphic(&arguments),
        Cli::Paths(arguments) => Ok(compare_paths(&arguments)),
    };
    done.unwrap_or_else(|failure| {
        eprintln!("soak: {failure}");
        ExitCode::from(70)
    })
}

fn guard(packs: &[PathBuf]) -> Result<Guard, Failure> {
    use portcullis::facts::command::{PackSource, Trust};
    let read = |path: &PathBuf| -> Result<PackSource, Failure> {
        Ok(PackSource { file: path.display().to_string(), text: std::fs::read_to_string(path)?, trust: Trust::User })
    };
    Ok(Guard::load(&packs.iter().map(read).collect::<Result<Vec<_>, _>>()?)?)
}

fn differential(arguments: &Differential) -> Result<ExitCode, Failure> {
    let guard = guard(&arguments.pack)?;
    let mut lines = Vec::new();
    for file in &arguments.lines {
        lines.extend(std::fs::read_to_string(file)?.lines().map(str::to_owned));
    }
    let options = Options {
        scripts: arguments.scripts.unwrap_or(if arguments.seconds.is_some() { u64::MAX } else { 100_000 }),
        time: Duration::from_secs(arguments.seconds.unwrap_or(u64::MAX)),
        seed: arguments.seed,
        threads: arguments.threads.unwrap_or_else(processors),
        small: 20,
        lines,
    };
    let launcher = Launcher::new()?;
    let confine = |dir: &Path, argv: &[String], timeout| confined(&launcher, dir, argv, timeout);
    let base = tempfile::tempdir_in(differential::ground())?;
    let report = differential::run(&guard, &options, base.path(), &confine)?;
    println!("{}", report.table);
    for finding in &report.findings {
        keep(&arguments.found, finding)?;
    }
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn metamorphic(arguments: &Metamorphic) -> Result<ExitCode, Failure> {
    let mut lines = Vec::new();
    for file in &arguments.lines {
        lines.extend(std::fs::read_to_string(file)?.lines().map(str::to_owned));
    }
    if lines.is_empty() {
        // The command is the fourth column.
        let corpus = std::fs::read_to_string("tests/cases/commands.tsv")?;
        lines.extend(corpus.lines().filter_map(|line| line.split('\t').nth(3)).map(str::to_owned));
    }
    let report = metamorphic::run(&guard(&arguments.pack)?, &lines, arguments.cases, arguments.seed);
    print!("{report}");
    for (property, before, after) in &report.broken {
        println!("--- {property}: {before:?} became {after:?}");
    }
    Ok(if report.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare_paths(arguments: &Paths) -> ExitCode {
    let threads = arguments.threads.unwrap_or_else(processors);
    let report = paths::run(&paths::Options { cases: arguments.cases, seed: arguments.seed, threads });
    print!("{report}");
    if report.disagreements.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Prints a finding, and writes it where tests replay it.
fn keep(directory: &Path, finding: &Finding) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    let digest = Digest::of(&finding.script).to_string();
    let name: String = digest.chars().filter(char::is_ascii_hexdigit).rev().take(12).collect();
    let path = directory.join(format!("found-{name}.sh"));
    std::fs::write(&path, &finding.script)?;
    println!("--- {}\n{}", path.display(), finding.script);
    finding.uncovered.iter().for_each(|lack| println!("not covered: {lack}"));
    Ok(())
}
