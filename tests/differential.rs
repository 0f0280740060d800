//! The command guard against real bash. `PORTCULLIS_DIFFERENTIAL_SCRIPTS` sets the number of scripts;
//! `fuzz/differential` runs for as long as you like.

#![expect(clippy::expect_used, reason = "a test may fail")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis::facts::command::Guard;
use portcullis::fuzzing::confined;
use portcullis::fuzzing::differential::{self, Options};
use portcullis::sandbox::{Kernel, Launcher, Profiles};

const SCRIPTS: u64 = 1_000;

/// Of a thousand scripts, how many may do what nothing covers. It is to be 0: `fuzz/regressions/differential/OPEN.md` lists
/// what stands in the way. Lower it with every fix.
const UNCOVERED_PER_MILLE: u64 = 25;

/// A place to run scripts confined; `None`, said aloud, where this machine cannot.
fn launcher() -> Option<Launcher> {
    let profiles = Profiles::built_in().expect("our profiles load");
    let missing = Kernel::probe().missing(profiles.get("workspace-write").expect("it is one of them"));
    if !missing.is_empty() {
        eprintln!("NOT PROVED: the guard was not compared with bash, because this kernel lacks {missing:?}");
        return None;
    }
    Some(Launcher::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis"))).expect("a launcher"))
}

fn corpus() -> Vec<String> {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/commands.tsv")).expect("readable");
    text.lines().filter_map(|line| line.split('\t').nth(3)).map(str::to_owned).collect()
}

#[test]
fn what_bash_does_is_covered() {
    let Some(launcher) = launcher() else { return };
    let confine = |dir: &Path, argv: &[String], timeout| confined(&launcher, dir, argv, timeout);
    let scripts = std::env::var("PORTCULLIS_DIFFERENTIAL_SCRIPTS").ok().and_then(|n| n.parse().ok()).unwrap_or(SCRIPTS);
    let options = Options { scripts, time: Duration::MAX, seed: 1, threads: 2, small: 0, lines: corpus() };
    let base = tempfile::tempdir().expect("a directory");
    let report = differential::run(&Guard::embedded(), &options, base.path(), &confine).expect("bash runs");
    println!("{}", report.table);
    let total = report.table.total();
    assert!(
        total.uncovered * 1000 <= total.scripts * UNCOVERED_PER_MILLE,
        "bash did what the guard does not cover: {:#?}",
        report.findings
    );
    assert!(total.programs > total.scripts, "the scripts do too little to prove anything: {total:?}");
    assert!(total.unresolved * 10 < total.scripts, "too much is unresolved: {total:?}");
}

#[test]
fn past_findings_are_covered() {
    let Some(launcher) = launcher() else { return };
    let confine =
        |dir: &Path, argv: &[String], timeout: Duration| -> io::Result<()> { confined(&launcher, dir, argv, timeout) };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions/differential");
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory).expect("listable").map(|entry| entry.expect("listable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "sh"));
    files.sort();
    let scripts: Vec<String> = files.iter().map(|path| fs::read_to_string(path).expect("readable")).collect();
    let base = tempfile::tempdir().expect("a directory");
    let outcomes = differential::replay(&Guard::embedded(), &scripts, base.path(), &confine).expect("bash runs");
    let broken: Vec<_> = files
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| !outcome.uncovered.is_empty() && !outcome.unresolved)
        .collect();
    assert!(broken.is_empty(), "not covered: {broken:#?}");
}
