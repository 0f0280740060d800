//! What bash does: scripts run in real bash, many in one confined run, with a `PATH` of programs that only record.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Programs that only record. By the second letter: `pf` fails, `po` prints.
pub(super) const STUBS: &[&str] = &["pa", "pb", "pc", "pd", "pe", "pf", "po", "p-q", "p.x"];
/// Names of other programs that scripts may start in roundabout ways.
const ALSO_STUBS: &[&str] = &["echo", "printf", "test", "true", "false", "pwd", "kill", "ls", "rm", "cp", "mv"];
/// Programs that are themselves: what they start is recorded.
const REAL: &[&str] =
    &["env", "xargs", "timeout", "nohup", "nice", "setsid", "bash", "cat", "base64", "tr", "rev", "sed", "tee"];
/// The files that each script finds, with what they hold; directories end in a slash.
pub(super) const FILES: &[(&str, &str)] = &[
    ("h/", ""),
    ("sub/", ""),
    ("sub/deep/", ""),
    ("a.txt", "alpha\nbeta\n"),
    ("b.txt", "one two\n"),
    ("c d.txt", ""),
    ("sub/e.txt", ""),
    ("sub/pa.list", ""),
];
/// How long a batch may take, at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a program confined to a directory, for so long at most.
pub type Confine<'c> = dyn Fn(&Path, &[String], Duration) -> io::Result<()> + Sync + 'c;

/// What bash did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub started: Vec<Started>,
    /// Files that were made or changed, absolute.
    pub written: Vec<String>,
    /// The script did not end in time; what it did until then is there.
    pub hung: bool,
}

/// A program that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub cwd: String,
    pub argv: Vec<String>,
}

/// A directory in which scripts run.
pub struct Yard<'c> {
    base: PathBuf,
    confine: &'c Confine<'c>,
}

impl<'c> Yard<'c> {
    /// Sets up `base`, which must be empty and absolute.
    pub fn new(base: &Path, confine: &'c Confine<'c>) -> io::Result<Self> {
        let base = base.canonicalize()?;
        let bin = base.join("bin");
        fs::create_dir(&bin)?;
        fs::write(base.join("driver.sh"), include_str!("driver.sh"))?;
        let stub = bin.join(STUBS[0]);
        compile(&stub)?;
        for name in STUBS.iter().skip(1).chain(ALSO_STUBS) {
            fs::hard_link(&stub, bin.join(name))?;
        }
        // The guard reads scripts as bash does, whatever `sh` is here.
        let real = REAL.iter().map(|name| (*name, *name)).chain([("sh", "bash")]);
        for (name, target) in real {
            let found = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(target)).find(|path| path.exists());
            symlink(found.ok_or_else(|| io::Error::other(format!("`{target}` is not installed")))?, bin.join(name))?;
        }
        Ok(Yard { base, confine })
    }

    /// Where the script of this number runs.
    pub fn place(&self, number: usize) -> PathBuf {
        self.base.join("w").join(number.to_string())
    }

    /// Runs scripts one after the other; one answer for each.
    pub fn run(&self, scripts: &[String]) -> io::Result<Vec<Seen>> {
        let mut seen = vec![Seen::default(); scripts.len()];
        let mut first = 0;
        while first < scripts.len() {
            first = self.run_from(scripts, first, &mut seen)?;
        }
        Ok(seen)
    }

    /// Runs scripts until the last, or until one hangs; gives the one to go on with.
    fn run_from(&self, scripts: &[String], first: usize, seen: &mut [Seen]) -> io::Result<usize> {
        let _ = fs::remove_dir_all(self.base.join("w"));
        fs::create_dir(self.base.join("w"))?;
        let mut text = Vec::new();
        for (number, script) in scripts.iter().enumerate().skip(first) {
            text.extend(script.bytes().filter(|byte| *byte != 0).chain([0]));
            self.furnish(number)?;
        }
        fs::write(self.base.join("scripts"), text)?;
        fs::write(self.base.join("log"), "")?;
        let base = self.base.to_str().ok_or_else(|| io::Error::other("the directory's name is not UTF-8"))?;
        let argv = ["bash", "--norc", &format!("{base}/driver.sh"), base, &first.to_string()].map(str::to_owned);
        (self.confine)(&self.base, &argv, PATIENCE)?;
        let (last, ended) = read_log(&fs::read(self.base.join("log"))?, seen);
        let last = last.ok_or_else(|| io::Error::other("the scripts did not start; does bash work in the sandbox?"))?;
        for (number, seen) in seen.iter_mut().enumerate().take(last + 1).skip(first) {
            seen.written = self.changes(number)?;
        }
        if !ended && let Some(seen) = seen.get_mut(last) {
            seen.hung = true;
        }
        Ok(last + 1)
    }

    fn furnish(&self, number: usize) -> io::Result<()> {
        let place = self.place(number);
        fs::create_dir(&place)?;
        for (name, text) in FILES {
            let path = place.join(name);
            if name.ends_with('/') { fs::create_dir(path)? } else { fs::write(path, text)? }
        }
        Ok(())
    }

    /// Files that are not as [`Self::furnish`] left them.
    fn changes(&self, number: usize) -> io::Result<Vec<String>> {
        let place = self.place(number);
        let mut found = BTreeMap::new();
        list(&place, &mut found)?;
        let as_made = |path: &Path, size: u64| {
            let made = FILES.iter().find(|(name, _)| Path::new(name) == path.strip_prefix(&place).unwrap_or(path));
            made.is_some_and(|(_, text)| text.len() as u64 == size)
        };
        Ok(found
            .into_iter()
            .filter(|(path, size)| !as_made(path, *size))
            .map(|(path, _)| text(path.as_os_str().as_bytes()))
            .collect())
    }
}

/// All files below a directory, with their sizes.
fn list(directory: &Path, found: &mut BTreeMap<PathBuf, u64>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if meta.is_dir() {
            list(&entry.path(), found)?;
        } else {
            found.insert(entry.path(), meta.size());
        }
    }
    Ok(())
}

fn compile(to: &Path) -> io::Result<()> {
    let source = to.with_extension("c");
    fs::write(&source, include_str!("stub.c"))?;
    let compiled = ["-static", "-O1"].into_iter().any(|flag| {
        let mut cc = Command::new("cc");
        cc.args([flag, "-O1", "-o"]).arg(to).arg(&source).stdout(Stdio::null()).stderr(Stdio::null());
        cc.status().is_ok_and(|status| status.success())
    });
    fs::remove_file(&source)?;
    if compiled { Ok(()) } else { Err(io::Error::other("`cc` cannot compile the recording program")) }
}

/// Takes the records apart; gives the last script that started, and whether the driver came to its end.
fn read_log(log: &[u8], seen: &mut [Seen]) -> (Option<usize>, bool) {
    let mut fields = log.split(|byte| *byte == 0);
    let number = |fields: &mut dyn Iterator<Item = &[u8]>| text(fields.next()?).parse::<usize>().ok();
    let (mut last, mut ended) = (None, false);
    while let Some(kind) = fields.next() {
        match kind {
            b"S" => last = number(&mut fields).or(last),
            b"P" => {
                let count = number(&mut fields).unwrap_or(0);
                let cwd = text(fields.next().unwrap_or_default());
                let argv = fields.by_ref().take(count).map(text).collect();
                if let Some(seen) = last.and_then(|last| seen.get_mut(last)) {
                    seen.started.push(Started { cwd, argv });
                }
            }
            b"E" => ended = true,
            _ => {}
        }
    }
    (last, ended)
}

fn text(bytes: &[u8]) -> String {
    OsStr::from_bytes(bytes).to_string_lossy().into_owned()
}
