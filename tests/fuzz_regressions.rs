//! The fuzz properties under plain `cargo test`: every seed, every past finding, and a stream of inputs that is the same
//! on every machine. `PORTCULLIS_FUZZ_INPUTS` sets the length of the stream for each target.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use portcullis::fuzzing::{Property, TARGETS};

const INPUTS: usize = 2_000;
/// The longest input of the stream.
const LONGEST: u64 = 512;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn property(target: &str) -> Property {
    TARGETS.iter().find(|(name, _)| *name == target).unwrap_or_else(|| panic!("no property is named {target}")).1
}

/// Seeds and regressions of a target, by path.
fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directories = ["seeds", "regressions"].map(|kind| fuzz().join(kind).join(target));
    let entries = directories.into_iter().flat_map(|directory| fs::read_dir(directory).into_iter().flatten());
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("listable").path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(&path).expect("readable"))).collect()
}

/// Marsaglia's xorshift64.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("below a usize")
    }

    /// A seed with a few changes, or bytes of any kind.
    fn input(&mut self, seeds: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
        let length = self.next() % LONGEST;
        if seeds.is_empty() || self.next().is_multiple_of(4) {
            return (0..length).map(|_| self.next().to_le_bytes()[3]).collect();
        }
        let mut bytes = seeds[self.below(seeds.len())].1.clone();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.next() % 4 {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.next().to_le_bytes()[3]),
                2 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                _ => {
                    let other = &seeds[self.below(seeds.len())].1;
                    let from = self.below(other.len() + 1);
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                }
            }
        }
        bytes
    }
}

fn replay(target: &str) {
    let property = property(target);
    let kept = kept(target);
    assert!(!kept.is_empty(), "fuzz/seeds/{target} holds no seed");
    for (path, bytes) in &kept {
        let held = catch_unwind(AssertUnwindSafe(|| property(bytes)));
        assert!(held.is_ok(), "{} breaks the property (see above)", path.display());
    }
    let inputs = std::env::var("PORTCULLIS_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(INPUTS);
    let mut stream = Stream(0x9E37_79B9_7F4A_7C15);
    for number in 0..inputs {
        let bytes = stream.input(&kept);
        let held = catch_unwind(AssertUnwindSafe(|| property(&bytes)));
        assert!(held.is_ok(), "input {number} of {target} breaks the property (see above): {}", bytes.escape_ascii());
    }
}

macro_rules! targets {
    ($($target:ident),+) => {
        $(#[test] fn $target() { replay(stringify!($target)); })+

        #[test]
        fn every_target_is_replayed_and_has_a_fuzz_target_of_its_name() {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($target)),+], "not every property is replayed here");
            let mut files: Vec<String> = fs::read_dir(fuzz().join("fuzz_targets")).expect("listable")
                .map(|entry| entry.expect("listable").path().file_stem().expect("a name").to_string_lossy().into_owned())
                .collect();
            files.sort();
            assert_eq!(files, names, "fuzz/fuzz_targets and the properties differ");
        }
    };
}

targets!(audit_recover, command, decide, mcp_wire, path, policy_load);
