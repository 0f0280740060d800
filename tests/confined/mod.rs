//! What the tests of the sandbox's tiers share.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use portcullis::sandbox::{Program, Streams};

pub fn bash(script: &str, timeout: Duration) -> Program {
    let arguments = ["/bin/bash", "-c", script].map(str::to_owned).to_vec();
    Program { arguments, timeout, streams: Streams::Capture }
}

pub fn has(tool: &str) -> bool {
    let found = ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(tool).exists());
    if !found {
        eprintln!("NOT PROVED: there is no `{tool}` here");
    }
    found
}

/// A number of seconds for `sleep` that no other process uses, to find the process by.
pub fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("7{}.{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Processes that have the marker as an argument of its own.
pub fn alive(marker: &str) -> usize {
    let is_marked = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).any(|word| word == marker.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().map(is_marked).filter(|marked| *marked).count()
}

/// Waits for a condition, for a busy machine's sake.
pub fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
