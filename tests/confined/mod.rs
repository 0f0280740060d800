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

/// Memory files hold data as ever, and none of them can be executed.
pub const MEMORY_FILES: &str = r#"/usr/bin/python3 - <<'E'
import fcntl, mmap, os
def executes(f):
    os.write(f, open("/bin/true", "rb").read())
    child = os.fork()
    if child == 0:
        try: os.execve(f, ["true"], {})
        finally: os._exit(99)
    return os.waitpid(child, 0)[1] == 0
for flags in (0, os.MFD_CLOEXEC, os.MFD_ALLOW_SEALING):
    f = os.memfd_create("x", flags)
    assert not executes(f), flags
    try: os.fchmod(f, 0o755)
    except PermissionError: pass
    else: assert not executes(f), flags
    assert bool(fcntl.fcntl(f, fcntl.F_GETFD)) == bool(flags & os.MFD_CLOEXEC)
try: os.memfd_create("x", 0x10)
except PermissionError: pass
else: raise SystemExit("made to be executed")
f = os.memfd_create("x", os.MFD_ALLOW_SEALING)
os.ftruncate(f, 8192)
mmap.mmap(f, 8192)[0] = 1
fcntl.fcntl(f, 1033, 6)
for n in range(300): os.close(os.memfd_create(str(n)))
print("data")
E"#;

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
