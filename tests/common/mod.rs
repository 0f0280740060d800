//! A throw-away installation to drive the real binary in.

#![allow(dead_code, reason = "each test binary uses its part of this")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test stops where it cannot go on")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A home, a workspace in it, and the gateway's directories outside of the workspace.
pub struct World {
    dir: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        // Not in the system's temporary directory: a place of its own, to which nothing but its name applies.
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let dir = tempfile::Builder::new().prefix("world-").tempdir_in(base).expect("a temporary directory");
        let world = World { dir };
        for path in [world.workspace(), world.config(), world.outside()] {
            fs::create_dir_all(path).expect("directories of the test");
        }
        world
    }

    pub fn home(&self) -> &Path {
        self.dir.path()
    }

    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A directory beside the workspace.
    pub fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn log(&self) -> PathBuf {
        self.state().join("audit/log.jsonl")
    }

    /// Writes a file below the home directory.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    /// The binary in this world, started in the workspace. `PORTCULLIS_TEST_BINARY` names another build of it.
    pub fn portcullis<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let built = || env!("CARGO_BIN_EXE_portcullis").into();
        let mut command = Command::new(std::env::var_os("PORTCULLIS_TEST_BINARY").unwrap_or_else(built));
        command
            .args(args)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .env("PORTCULLIS_CONFIG", self.config())
            .env("PORTCULLIS_STATE", self.state())
            .stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(self.portcullis(args).output().expect("the binary starts"))
    }

    pub fn run_with_input<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: &[u8]) -> Ran {
        let mut command = self.portcullis(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let ran = Ran::of(child.wait_with_output().expect("the binary ends"));
        feeder.join().expect("feeding ends");
        ran
    }

    /// Makes a call that asks, grants it, and makes it again.
    pub fn run_granted(&self, args: &[&str]) -> Ran {
        let asked = self.run(args);
        assert_eq!(asked.code, 3, "the call was to ask first: {asked:?}");
        let granted = self.run(["approvals", "grant", &asked.pending()]);
        assert_eq!(granted.code, 0, "granting failed: {granted:?}");
        self.run(args)
    }
}

/// What a run of the binary came to.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The pending id that a call which asks was told.
    pub fn pending(&self) -> String {
        let line = self.stderr.lines().find(|l| l.trim_start().starts_with("pending")).unwrap_or_else(|| {
            panic!("no pending id in: {self:?}");
        });
        line.split_whitespace().nth(1).expect("an id").to_owned()
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("standard output is not JSON ({e}): {self:?}"))
    }

    /// Standard output as JSON Lines.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}")))
            .collect()
    }
}
