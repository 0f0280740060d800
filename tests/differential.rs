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
    let base = tempfile::tempdir_in(differential::ground()).expect("a directory");
    let report = differential::run(&Guard::embedded(), &options, base.path(), &confine).expect("bash runs");
    println!("{}", report.table);
    let total = report.table.total();
    assert_eq!(total.uncovered, 0, "bash did what the guard does not cover: {:#?}", report.findings);
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
    let base = tempfile::tempdir_in(differential::ground()).expect("a directory");
    let outcomes = differential::replay(&Guard::embedded(), &scripts, base.path(), &confine).expect("bash runs");
    let broken: Vec<_> = files
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| !outcome.uncovered.is_empty() && !outcome.unresolved)
        .collect();
    assert!(broken.is_empty(), "not covered: {broken:#?}");
}

#[test]
fn a_script_cannot_change_what_the_next_one_does() {
    let Some(launcher) = launcher() else { return };
    let confine = |dir: &Path, argv: &[String], timeout| confined(&launcher, dir, argv, timeout);
    let probe = "pa \"$v\" \"$1\" \"${a[1]}\" \"$IFS\" \"$-\" \"$!\" \"$#\" \"$OLDPWD\" ~ k l*\n\
                 f; k; pa \"$(type -t f)\" \"$(shopt -p; alias; trap; umask; ulimit -a)\" \"$(< a.txt)\"\n\
                 pa * ../* ../../../* sub/* h/*";
    // Each leaves something behind: in the shell, in its own files, in those of others.
    let spoilers = [
        "v=k a=(k l); export v; f() { pa f; }; alias k='pa k'; set -- k l; IFS=:; HOME=/k; cd sub; readonly w=1",
        "shopt -s extglob nullglob expand_aliases; set -fu; umask 0; trap 'pa t' EXIT; ulimit -n 20; PATH=/nope",
        "echo changed > a.txt; > 'c d.txt'; > sub/new; > h/new; > ../new; > ./-n",
        "cd ../..; > stray; for i in *; do > $i/d/a.txt; > $i/d/l1; done",
        "cd ../../..; > stray; > bin/stray; echo > bin/pb; echo 'exit 0' >> driver.sh",
        "pa & { pb; pa; } & disown -a; exec 7>&- 3> out; pa; kill -9 $$",
        "coproc C { read -r; }; exec 5<> <(:); exit 3",
    ];
    let run = |scripts: &[&str]| {
        let base = tempfile::tempdir_in(differential::ground()).expect("a directory");
        let scripts: Vec<String> = scripts.iter().map(|script| (*script).to_owned()).collect();
        let seen = differential::observe(&scripts, base.path(), &confine).expect("bash runs");
        let base = base.path().canonicalize().expect("it is there").display().to_string();
        // A place is called by its number.
        let alike = |(number, seen): (usize, differential::Seen)| {
            format!("{seen:?}").replace(&format!("{base}/w/{number}/"), "PLACE/").replace(&base, "BASE")
        };
        seen.into_iter().enumerate().map(alike).collect::<Vec<_>>()
    };
    let alone = run(&[probe]).remove(0);
    assert!(alone.matches("argv").count() >= 3, "the probe shows nothing: {alone}");
    for spoiler in spoilers {
        let seen = run(&[spoiler, probe]);
        assert_eq!(seen.last(), Some(&alone), "after {spoiler:?}");
    }
}
