//! What bash does: scripts run in real bash, many in one confined run, with a `PATH` of programs that only record.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

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
    /// Places that are as [`furnish`] left them.
    clean: RefCell<BTreeSet<usize>>,
}

impl<'c> Yard<'c> {
    /// Sets up `base`, which must be empty and absolute.
    pub fn new(base: &Path, confine: &'c Confine<'c>) -> io::Result<Self> {
        let yard = Yard { base: base.canonicalize()?, confine, clean: RefCell::default() };
        yard.equip()?;
        Ok(yard)
    }

    /// Puts there what the scripts share, and nothing else.
    fn equip(&self) -> io::Result<()> {
        self.clean.borrow_mut().clear();
        for entry in fs::read_dir(&self.base)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        fs::create_dir(self.base.join("w"))?;
        fs::write(self.base.join("driver.sh"), include_str!("driver.sh"))?;
        for name in ["scripts", "log", "mark", "turn"] {
            fs::write(self.base.join(name), "")?;
        }
        let bin = self.base.join("bin");
        fs::create_dir(&bin)?;
        let stub = bin.join(STUBS[0]);
        compile(&stub, &self.base.join("log"))?;
        for name in STUBS.iter().skip(1).chain(ALSO_STUBS) {
            fs::hard_link(&stub, bin.join(name))?;
        }
        // The guard reads scripts as bash does, whatever `sh` is here.
        let real = REAL.iter().map(|name| (*name, *name)).chain([("sh", "bash")]);
        for (name, target) in real {
            let found = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(target)).find(|path| path.exists());
            symlink(found.ok_or_else(|| io::Error::other(format!("`{target}` is not installed")))?, bin.join(name))?;
        }
        ["bin", "bin/pa", "driver.sh"].iter().try_for_each(|name| untouch(&self.base.join(name)))
    }

    /// Where the script of this number runs: below a directory of its own, so that `..` is its own too.
    pub fn place(&self, number: usize) -> PathBuf {
        self.around(number).join("d")
    }

    fn around(&self, number: usize) -> PathBuf {
        self.base.join("w").join(number.to_string())
    }

    /// Runs scripts one after the other; one answer for each.
    pub fn run(&self, scripts: &[String]) -> io::Result<Vec<Seen>> {
        let mut seen = vec![Seen::default(); scripts.len()];
        self.run_range(scripts, 0..scripts.len(), &mut seen)?;
        Ok(seen)
    }

    fn run_range(&self, scripts: &[String], range: Range<usize>, seen: &mut [Seen]) -> io::Result<()> {
        let mut first = range.start;
        let mut strays = Vec::new();
        while first < range.end && strays.is_empty() {
            (first, strays) = self.run_from(scripts, first..range.end, seen)?;
        }
        if strays.is_empty() {
            return Ok(());
        }
        // A script wrote where all of them may look: whose it is shows where it runs alone, and nothing of it stays.
        self.equip()?;
        seen.get_mut(range.clone()).into_iter().flatten().for_each(|seen| *seen = Seen::default());
        let middle = range.start + range.len() / 2;
        if middle == range.start {
            let alone = self.run_from(scripts, range.clone(), seen)?.1;
            seen.get_mut(range.start).into_iter().for_each(|seen| seen.written.extend(alone.iter().cloned()));
            return self.equip();
        }
        self.run_range(scripts, range.start..middle, seen)?;
        self.run_range(scripts, middle..range.end, seen)
    }

    /// Runs scripts until the last, or until one hangs; gives the one to go on with, and files that are nobody's.
    fn run_from(&self, scripts: &[String], range: Range<usize>, seen: &mut [Seen]) -> io::Result<(usize, Vec<String>)> {
        let first = range.start;
        let mut text = Vec::new();
        for (number, script) in scripts.iter().enumerate().take(range.end).skip(first) {
            text.extend(script.bytes().filter(|byte| *byte != 0).chain([0]));
            self.furnish(number)?;
        }
        fs::write(self.base.join("scripts"), text)?;
        fs::write(self.base.join("log"), "")?;
        ["", "w"].iter().try_for_each(|name| untouch(&self.base.join(name)))?;
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
        Ok((last + 1, self.strays()?))
    }

    fn furnish(&self, number: usize) -> io::Result<()> {
        if !self.clean.borrow_mut().insert(number) {
            return Ok(());
        }
        let place = self.place(number);
        fs::create_dir_all(&place)?;
        for (name, text) in FILES {
            let path = place.join(name);
            if name.ends_with('/') { fs::create_dir(path)? } else { fs::write(path, text)? }
        }
        self.furniture(number).try_for_each(|path| untouch(&path))
    }

    fn furniture(&self, number: usize) -> impl Iterator<Item = PathBuf> {
        let place = self.place(number);
        let files: Vec<PathBuf> = FILES.iter().map(|(name, _)| place.join(name)).collect();
        [self.around(number), place].into_iter().chain(files)
    }

    /// Files that are not as [`Self::furnish`] left them. Their place is cleared.
    fn changes(&self, number: usize) -> io::Result<Vec<String>> {
        if self.furniture(number).all(|path| is_untouched(&path)) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        touched(&self.around(number), &mut found)?;
        fs::remove_dir_all(self.around(number))?;
        self.clean.borrow_mut().remove(&number);
        Ok(found)
    }

    /// What was written outside of the places of scripts.
    fn strays(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for name in ["", "w", "bin"] {
            let directory = self.base.join(name);
            if is_untouched(&directory) {
                continue;
            }
            for entry in fs::read_dir(&directory)? {
                let entry = entry?;
                let own = match name {
                    "w" => entry.file_name().to_str().is_some_and(|name| name.parse::<usize>().is_ok()),
                    "" => OWN.iter().any(|own| entry.file_name() == *own),
                    _ => entry.metadata()?.nlink() > 1 || entry.file_type()?.is_symlink(),
                };
                if !own {
                    found.push(text(entry.path().as_os_str().as_bytes()));
                }
            }
        }
        let shared = ["bin/pa", "driver.sh"].map(|name| self.base.join(name));
        found.extend(shared.iter().filter(|path| !is_untouched(path)).map(|path| text(path.as_os_str().as_bytes())));
        Ok(found)
    }
}

/// What a yard itself has.
const OWN: &[&str] = &["bin", "driver.sh", "log", "mark", "scripts", "turn", "w"];

/// The time of files that nobody wrote to, and of directories in which nothing was made.
fn before() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn untouch(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.set_modified(before())
}

fn is_untouched(path: &Path) -> bool {
    path.symlink_metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time == before())
}

/// All files below a directory that were made or written to.
fn touched(directory: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            touched(&entry.path(), found)?;
        } else if !is_untouched(&entry.path()) {
            found.push(text(entry.path().as_os_str().as_bytes()));
        }
    }
    Ok(())
}

fn compile(to: &Path, log: &Path) -> io::Result<()> {
    let source = to.with_extension("c");
    fs::write(&source, include_str!("stub.c"))?;
    let log = format!("-DLOG=\"{}\"", log.display());
    let bare = ["-DBARE", "-static", "-nostdlib", "-fno-builtin", "-fno-stack-protector"];
    let compiled = [&bare[..], &["-static"], &[]].into_iter().any(|flags| {
        let mut cc = Command::new("cc");
        cc.args(flags).args(["-O1", &log, "-o"]).arg(to).arg(&source).stdout(Stdio::null()).stderr(Stdio::null());
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
