//! The path guard from outside: against the kernel and a model of how it resolves names (`fuzz/paths` runs that for as long
//! as you like), and against a thread that swaps directories for links.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what helps a test may fail it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portcullis::facts::path::{Access, Handle, Kind, Opened, PathFact, Protection, Resolver};
use portcullis::facts::{Scope, Surroundings};
use portcullis::fuzzing::paths::{self, Options};

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

fn resolver(workspace: &Path) -> Resolver {
    let surroundings = Surroundings::new(workspace, "/nonexistent");
    Resolver::open(&surroundings, Protection::new(Vec::new()).unwrap()).unwrap()
}

#[test]
fn the_guard_the_kernel_and_a_model_agree() {
    let cases = number("PORTCULLIS_PATH_CASES", 20_000);
    let report = paths::run(&Options { cases, seed: 1, threads: 2 });
    println!("{report}");
    assert!(report.disagreements.is_empty(), "{report}");
    assert!(report.cases >= cases && report.written > cases / 1_000, "too tame a sample: {report}");
    assert!(report.answers.len() >= 12, "some kind of answer was never given: {report}");
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
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

/// Everything that the file tools do with a path: what each may see, and what it may change.
const RACED: &[&str] = &["read", "list", "walk", "create", "create below", "replace", "edit", "delete"];

/// A thread swaps `w/d` between a directory and a link to the outside, and `w/d/file` between a file and a link, as fast as
/// it can; meanwhile everything that file tools do goes through the names. `PORTCULLIS_RACE_SECONDS` sets for how long.
#[test]
fn i4_a_race_between_judging_and_using_is_never_won() {
    // In memory, where there is such a place: each write waits for the disk twice.
    let keep = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let top = fs::canonicalize(keep.path()).unwrap();
    fs::create_dir_all(top.join("w/d")).unwrap();
    fs::create_dir_all(top.join("o/sub")).unwrap();
    fs::write(top.join("w/d/file"), "inside").unwrap();
    symlink("../../o/file", top.join("w/d/other")).unwrap();
    for file in ["o/file", "o/only-outside", "o/other", "o/sub/old"] {
        fs::write(top.join(file), "outside").unwrap();
    }
    symlink("../o", top.join("w/link")).unwrap();
    let resolver = resolver(&top.join("w"));
    let stop = AtomicBool::new(false);
    let (mut done, mut swaps): (BTreeMap<&str, [u32; 3]>, u32) = (BTreeMap::new(), 0);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| swap(&top, &stop));
        // A failed check must not leave the swapper running.
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let time = Duration::from_secs(number("PORTCULLIS_RACE_SECONDS", 2));
            let began = Instant::now();
            for round in 0.. {
                if began.elapsed() > time {
                    break;
                }
                for what in RACED {
                    let row = done.entry(what).or_default();
                    row[attempt(what, &resolver, &top, round)] += 1;
                    outside_is_as_it_was(&top);
                }
            }
        }));
        stop.store(true, Ordering::Relaxed);
        swaps = swapper.join().unwrap();
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
    eprintln!("{swaps} swaps; of each, done inside, judged to be outside, refused or failed: {done:?}");
    assert!(swaps > 1_000, "there was no race");
    let whole = done.values().fold([0, 0], |sum, [inside, outside, _]| [sum[0] + inside, sum[1] + outside]);
    assert!(done.len() == RACED.len() && whole.iter().all(|count| *count > 20), "there was no race: {done:?}");
    // On a busy machine, a short race meets few of the moments that count.
    let long = number("PORTCULLIS_RACE_SECONDS", 2) >= 30;
    assert!(!long || done.values().all(|[inside, ..]| *inside > 2), "there was no race for each: {done:?}");
}

fn swap(top: &Path, stop: &AtomicBool) -> u32 {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    let exchange = |a: &str, b: &str| {
        let (a, b) = (top.join(a), top.join(b));
        renameat2(AT_FDCWD, &a, AT_FDCWD, &b, RenameFlags::RENAME_EXCHANGE)
    };
    let mut swaps = 0;
    while !stop.load(Ordering::Relaxed) {
        exchange("w/d", "w/link").unwrap();
        // By the name that the directory has now; a tool may hold one of the two at this moment.
        let directory = if swaps % 2 == 0 { "w/link" } else { "w/d" };
        let _ = exchange(&format!("{directory}/file"), &format!("{directory}/other"));
        swaps += 1;
    }
    swaps
}

/// One attempt: 0 where it was done inside, 1 where it was judged to be outside, 2 where it was refused or failed.
fn attempt(what: &str, resolver: &Resolver, top: &Path, round: u32) -> usize {
    let workspace = top.join("w");
    let (given, access) = match what {
        "read" => ("d/file".to_owned(), Access::Read),
        "list" => ("d".to_owned(), Access::Read),
        "walk" => (".".to_owned(), Access::Read),
        "create" => (format!("d/new-{round}"), Access::Write),
        "create below" => (format!("d/sub-{round}/new"), Access::Write),
        "delete" => ("d/file".to_owned(), Access::Delete),
        _ => ("d/file".to_owned(), Access::Write),
    };
    let (fact, handle) = resolver.look("path", &given, access, &workspace);
    let Some(handle) = handle else { return 2 };
    if fact.scope != Scope::Workspace {
        return 1;
    }
    let done = match what {
        "read" => read(&handle).map(|text| assert!(!text.contains("outside"), "{fact:?} was read outside")),
        "list" => list(&handle),
        "walk" => walk(&handle),
        "create" | "create below" | "replace" => handle.write(b"inside", None).ok().map(drop),
        "edit" => edit(&handle, &fact),
        // Nothing is deleted by a handle yet; what was judged is the name's own place.
        _ => {
            assert!(!fact.lands.unwrap().contains(".."), "a place outside");
            Some(())
        }
    };
    usize::from(done.is_none()) * 2
}

fn read(handle: &Handle) -> Option<String> {
    let (mut file, _) = handle.open_file().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    Some(text)
}

/// As Edit does: what was read is changed and written back, if it is still that.
fn edit(handle: &Handle, fact: &PathFact) -> Option<()> {
    let (mut file, stamp) = handle.open_file().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert!(!text.contains("outside"), "{fact:?} was read outside");
    handle.write(text.as_bytes(), Some(stamp)).ok().map(drop)
}

fn list(handle: &Handle) -> Option<()> {
    for entry in handle.walk(false, 1).ok()? {
        assert_ne!(entry.path, Path::new("only-outside"), "what is outside was listed");
    }
    Some(())
}

/// As Glob and Grep do.
fn walk(handle: &Handle) -> Option<()> {
    let mut walk = handle.walk(true, usize::MAX).ok()?;
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
    (files > 0).then_some(())
}

fn outside_is_as_it_was(top: &Path) {
    let mut found: Vec<String> = Vec::new();
    for directory in ["o", "o/sub"] {
        for entry in fs::read_dir(top.join(directory)).unwrap().map(Result::unwrap) {
            found.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
        }
    }
    found.sort();
    assert_eq!(found, ["o/file", "o/only-outside", "o/other", "o/sub", "o/sub/old"], "something was made outside");
    for file in ["o/file", "o/only-outside", "o/other", "o/sub/old"] {
        assert_eq!(fs::read_to_string(top.join(file)).unwrap(), "outside", "{file} was written");
    }
}
