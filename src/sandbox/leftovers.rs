//! What a program left in the workspace that makes other programs run something, later and outside of the sandbox.
//!
//! In the full tiers hooks and configuration that are there stay as they are (`helper/protect.rs`). A repository that a
//! program makes, or that lies too deep to have been found, has none that could be kept; in the landlock tier nothing can
//! be. So one looks when the program and all that it started has ended: hooks that it wrote are put out of use, and with
//! whatever else git or an agent would take orders from they are named.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, renameat};
use nix::sys::stat::{FileStat, SFlag, fstatat};
use serde::{Deserialize, Serialize};

use crate::facts::normalise;

/// The longest name that a call takes, less room for what is looked at below.
const LONGEST_NAME: usize = 4096 - 512;
/// How much of a workspace is looked at after each call, what lies higher first.
const MOST_DIRECTORIES: usize = 2048;
const MOST_TIME: Duration = Duration::from_millis(10);
/// The most that is named.
const MOST: usize = 16;
/// The longest configuration that is read.
const LONGEST: u64 = 256 << 10;
/// The kernel's clock for files stands still for so long at most.
const CLOCK: Duration = Duration::from_millis(20);

/// The ending of a hook that is out of use.
const QUARANTINED: &str = ".quarantined";

/// Directories of what others wrote, in numbers.
const SKIPPED: &[&str] = &["node_modules", "target", ".venv"];

/// What editors, shells and agents take orders from.
pub const ORDERS: &[&str] = &[
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".exrc",
    ".dir-locals.el",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".windsurf",
    ".kiro",
    ".roo",
    ".continue",
    ".opencode",
    "opencode.json",
    ".qwen",
    ".amazonq",
    ".junie",
    ".aider.conf.yml",
    ".mcp.json",
    ".portcullis",
    ".portcullis.toml",
    ".envrc",
];

/// Variables of git's configuration that name something to run, or a file that names more: `section.name`.
const RUNS: &[&str] = &[
    "alias.*",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "diff.command",
    "diff.external",
    "diff.textconv",
    "filter.clean",
    "filter.process",
    "filter.smudge",
    "gpg.program",
    "include.path",
    "includeif.path",
    "interactive.difffilter",
    "merge.driver",
    "pager.*",
    "remote.receivepack",
    "remote.uploadpack",
    "sequence.editor",
    "uploadpack.packobjectshook",
];

/// Something that a program left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leftover {
    /// A hook, which has another name now.
    Hook { path: String },
    /// A hook that could not be put out of use.
    LiveHook { path: String },
    /// A file that leads git to other hooks and configuration, which has another name now.
    Elsewhere { path: String },
    /// Configuration of a repository that names programs.
    Configuration { path: String, variables: Vec<String> },
    /// Something that an editor, shell or agent takes orders from, and that was not there or has changed.
    Orders { path: String },
    /// The workspace was too large to look at all of it.
    NotAllSeen,
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Leftover::Hook { path } => {
                write!(f, "the command wrote the git hook {path}; it is out of use as {path}{QUARANTINED}")
            }
            Leftover::Elsewhere { path } => write!(
                f,
                "the command wrote {path}, which leads git to other hooks and configuration; it is out of use as {path}{QUARANTINED}"
            ),
            Leftover::LiveHook { path } => write!(f, "the command wrote the git hook {path}, which IS IN USE"),
            Leftover::Configuration { path, variables } => {
                write!(f, "the command wrote {path}, which names programs for git to run: {}", variables.join(", "))
            }
            Leftover::Orders { path } => {
                write!(f, "the command wrote {path}, from which git, editors, shells or agents take orders")
            }
            Leftover::NotAllSeen => f.write_str("the workspace is too large to look for new git hooks in all of it"),
        }
    }
}

/// Looks through a workspace for what was left in it since a program began.
pub fn look(workspace: &File, since: SystemTime) -> Vec<Leftover> {
    let since = since.checked_sub(CLOCK).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let since = since.map_or((0, 0), |at| (i64::try_from(at.as_secs()).unwrap_or(0), i64::from(at.subsec_nanos())));
    let mut search = Search { workspace, since, found: Vec::new() };
    search.everywhere();
    search.found.truncate(MOST);
    search.found
}

struct Search<'a> {
    workspace: &'a File,
    /// Seconds and nanoseconds.
    since: (i64, i64),
    found: Vec<Leftover>,
}

impl Search<'_> {
    fn everywhere(&mut self) {
        let begun = Instant::now();
        let mut waiting = VecDeque::from([String::new()]);
        let mut seen = 0usize;
        while let Some(directory) = waiting.pop_front() {
            if seen >= MOST_DIRECTORIES || begun.elapsed() > MOST_TIME || directory.len() > LONGEST_NAME {
                self.found.push(Leftover::NotAllSeen);
                return;
            }
            seen += 1;
            let entries = self.entries(&directory);
            let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
            // The parts of a repository may lie in two directories: `commondir` leads from one to the other.
            if has("HEAD") && (has("objects") || has("commondir")) || has("objects") && has("refs") {
                self.repository(&directory);
                continue;
            }
            for (name, is_directory) in &entries {
                let path = below(&directory, name);
                if name == ".git" {
                    if *is_directory { self.repository(&path) } else { self.linked(&directory, &path) }
                } else if ORDERS.contains(&name.as_str()) {
                    self.orders(path);
                } else if *is_directory && !SKIPPED.contains(&name.as_str()) {
                    waiting.push_back(path);
                }
            }
        }
    }

    /// A directory is as new as what it holds.
    fn orders(&mut self, path: String) {
        let inside = self.entries(&path);
        if self.is_fresh(&path) || inside.iter().any(|(name, _)| self.is_fresh(&below(&path, name))) {
            self.found.push(Leftover::Orders { path });
        }
    }

    /// A file that says where the repository is.
    fn linked(&mut self, directory: &str, file: &str) {
        let text = self.read(file).unwrap_or_default();
        let Some(named) = text.trim_end().strip_prefix("gitdir: ") else { return };
        // One elsewhere is not the program's to write; one in the workspace is found by its shape as well.
        if self.is_fresh(file) && !named.starts_with('/') {
            let path = normalise(&Path::new("/").join(directory).join(named));
            self.repository(path.to_string_lossy().trim_start_matches('/'));
        }
    }

    fn repository(&mut self, git: &str) {
        let modules = below(git, "modules");
        let nested: Vec<String> = self.entries(&modules).into_iter().map(|(name, _)| below(&modules, &name)).collect();
        for repository in std::iter::once(git.to_owned()).chain(nested) {
            let hooks = below(&repository, "hooks");
            if self.stat(&hooks).is_some_and(|stat| !is(&stat, SFlag::S_IFDIR)) {
                // Git follows a link; whatever it leads to.
                self.quarantine(&hooks);
            }
            for (name, _) in self.entries(&hooks) {
                if !name.ends_with(".sample") && !name.ends_with(QUARANTINED) {
                    self.quarantine(&below(&hooks, &name));
                }
            }
            for name in ["config", "config.worktree"] {
                self.configuration(&below(&repository, name));
            }
            self.elsewhere(&repository, None);
        }
        self.followed(git);
        let worktrees = below(git, "worktrees");
        for (name, _) in self.entries(&worktrees) {
            self.elsewhere(&below(&worktrees, &name), Some("../.."));
            self.configuration(&below(&below(&worktrees, &name), "config.worktree"));
        }
    }

    /// What the configuration leads to in the workspace: hooks that are kept there, and more configuration.
    fn followed(&mut self, git: &str) {
        let tree = git.rsplit_once('/').map_or("", |(above, _)| above);
        for (variable, value) in variables(&self.read(&below(git, "config")).unwrap_or_default()) {
            let (base, hooks) = match variable.as_str() {
                "core.hookspath" => (tree, true),
                "include.path" | "includeif.path" => (git, false),
                _ => continue,
            };
            if value.is_empty() || value.starts_with(['/', '~']) {
                continue;
            }
            let path = normalise(&Path::new("/").join(base).join(value));
            let path = path.to_string_lossy().trim_start_matches('/').to_owned();
            if hooks {
                self.orders(path);
            } else if self.is_fresh(&path) {
                self.found.push(Leftover::Orders { path });
            }
        }
    }

    /// A repository that has its hooks and configuration in another directory than where they belong.
    fn elsewhere(&mut self, repository: &str, usual: Option<&str>) {
        let path = below(repository, "commondir");
        if self.is_fresh(&path) && self.read(&path).as_deref().map(str::trim_end) != usual {
            let moved = self.move_away(&path).is_ok();
            self.found.push(if moved { Leftover::Elsewhere { path } } else { Leftover::LiveHook { path } });
        }
    }

    fn quarantine(&mut self, path: &str) {
        let runs = self.stat(path).is_some_and(|stat| is(&stat, SFlag::S_IFLNK) || stat.st_mode & 0o111 != 0);
        if !runs || !self.is_fresh(path) {
            return;
        }
        let path = path.to_owned();
        let moved = self.move_away(&path).is_ok();
        self.found.push(if moved { Leftover::Hook { path } } else { Leftover::LiveHook { path } });
    }

    fn move_away(&self, path: &str) -> nix::Result<()> {
        let (parent, name) = path.rsplit_once('/').ok_or(nix::errno::Errno::EINVAL)?;
        let parent = self.open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY)?;
        renameat(&parent, name, &parent, format!("{name}{QUARANTINED}").as_str())
    }

    fn configuration(&mut self, path: &str) {
        if !self.is_fresh(path) {
            return;
        }
        let variables = running(&self.read(path).unwrap_or_default());
        if !variables.is_empty() {
            self.found.push(Leftover::Configuration { path: path.to_owned(), variables });
        }
    }

    fn stat(&self, path: &str) -> Option<FileStat> {
        let Some((parent, name)) = path.rsplit_once('/') else {
            return fstatat(self.workspace, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok();
        };
        let parent = self.open(parent, OFlag::O_PATH | OFlag::O_DIRECTORY).ok()?;
        fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    /// Changed since the program began. No program can set this time.
    fn is_fresh(&self, path: &str) -> bool {
        self.stat(path).is_some_and(|stat| (stat.st_ctime, stat.st_ctime_nsec) >= self.since)
    }

    fn read(&self, path: &str) -> Option<String> {
        let file = File::from(self.open(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK).ok()?);
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Names, and whether each is a directory.
    fn entries(&self, path: &str) -> Vec<(String, bool)> {
        let path = if path.is_empty() { "." } else { path };
        let Ok(directory) = self.open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY) else { return Vec::new() };
        let Ok(mut directory) = Dir::from_fd(directory) else { return Vec::new() };
        let entries = directory.iter().filter_map(Result::ok).filter_map(|entry| {
            let name = CString::from(entry.file_name()).into_string().ok()?;
            (name != "." && name != "..").then_some((name, entry.file_type() == Some(Type::Directory)))
        });
        entries.collect()
    }

    /// Opens a part of the workspace, through no link.
    fn open(&self, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve);
        openat2(self.workspace.as_fd(), path, how)
    }
}

fn below(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn is(stat: &FileStat, kind: SFlag) -> bool {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == kind
}

/// The variables of a configuration that name something to run.
fn running(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in variables(text) {
        let runs = RUNS.iter().any(|known| match known.strip_suffix('*') {
            Some("alias.") => name.starts_with("alias.") && value.starts_with('!'),
            Some(start) => name.starts_with(start) && name.len() > start.len(),
            None => name == *known,
        });
        if runs && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The variables of a configuration (git-config(1)), as `section.name` without subsections, and their values.
fn variables(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let line = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, rest)) => {
                let name = name.split(|c: char| c.is_whitespace() || c == '"').next().unwrap_or_default();
                // `[alias.x]` is an old way to write a subsection.
                section = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
                rest.trim()
            }
            None => line,
        };
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let value = value.trim().trim_matches('"');
        found.push((format!("{section}.{}", name.trim().to_ascii_lowercase()), value.to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(root: &Path, name: &str, text: &str, mode: u32) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn looked(root: &Path, since: SystemTime) -> Vec<String> {
        let mut found: Vec<String> = look(&File::open(root).unwrap(), since).iter().map(ToString::to_string).collect();
        found.sort();
        found
    }

    #[test]
    fn hooks_are_put_out_of_use_wherever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "a/b/c/.git/hooks/pre-commit", "x", 0o644);
        write(root, "old/.git/hooks/post-commit", "x", 0o755);
        std::thread::sleep(Duration::from_millis(60));
        let since = SystemTime::now();
        write(root, "a/b/c/.git/hooks/post-commit", "x", 0o755);
        write(root, "a/b/c/.git/hooks/push.sample", "x", 0o755);
        write(root, "a/b/c/.git/hooks/not-run", "x", 0o644);
        write(root, "bare/HEAD", "x", 0o644);
        write(root, "bare/objects/x", "x", 0o644);
        write(root, "bare/hooks/update", "x", 0o700);
        write(root, "m/.git/modules/s/hooks/post-merge", "x", 0o755);
        write(root, "linked/.git", "gitdir: ../elsewhere\n", 0o644);
        write(root, "elsewhere/hooks/post-merge", "x", 0o755);
        fs::create_dir_all(root.join("l/.git/hooks")).unwrap();
        symlink("/bin/true", root.join("l/.git/hooks/pre-push")).unwrap();
        fs::create_dir_all(root.join("h/.git")).unwrap();
        symlink("../../a", root.join("h/.git/hooks")).unwrap();
        let hooks = [
            "a/b/c/.git/hooks/post-commit",
            "bare/hooks/update",
            "elsewhere/hooks/post-merge",
            "h/.git/hooks",
            "l/.git/hooks/pre-push",
            "m/.git/modules/s/hooks/post-merge",
        ];
        let said = |path: &&str| Leftover::Hook { path: (*path).to_owned() }.to_string();
        assert_eq!(looked(root, since), hooks.iter().map(said).collect::<Vec<_>>());
        for path in hooks {
            assert!(root.join(path).symlink_metadata().is_err(), "{path} is still there");
            assert!(root.join(format!("{path}.quarantined")).symlink_metadata().is_ok(), "{path} is gone");
        }
        assert!(root.join("old/.git/hooks/post-commit").exists(), "what was there before is nobody's to move");
        assert_eq!(looked(root, since), Vec::<String>::new(), "what is out of use stays so");
    }

    #[test]
    fn what_git_and_agents_take_orders_from_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(
            root,
            ".git/config",
            "[core]\n\tbare = false\n\tfsmonitor = evil\n[alias]\n st = status\n x = !evil\n",
            0o644,
        );
        write(root, ".mcp.json", "{}", 0o644);
        let said = [
            "the command wrote .git/config, which names programs for git to run: core.fsmonitor, alias.x",
            "the command wrote .mcp.json, from which git, editors, shells or agents take orders",
        ];
        assert_eq!(looked(root, SystemTime::now()), said);
        assert_eq!(looked(root, SystemTime::now() + Duration::from_secs(9)), Vec::<String>::new());
        let dangerous =
            "[diff \"x\"] textconv=a\n[FILTER \"y\"]\nClean = b\n[includeIf \"gitdir:x\"]\npath = c\n[pager]\n log = d";
        assert_eq!(running(dangerous), ["diff.textconv", "filter.clean", "includeif.path", "pager.log"]);
        let plain =
            "[core]\nrepositoryformatversion = 0\n[remote \"o\"]\nurl = x\nfetch = +a:b\n[branch \"m\"]\nmerge = x";
        assert_eq!(running(plain), Vec::<String>::new());
    }

    #[test]
    fn what_leads_git_elsewhere_is_put_out_of_use() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let since = SystemTime::now();
        // The workspace's own repository, led to another.
        write(root, ".git/HEAD", "ref: refs/heads/m\n", 0o644);
        write(root, ".git/commondir", "../evil\n", 0o644);
        write(root, "evil/objects/x", "", 0o644);
        write(root, "evil/refs/x", "", 0o644);
        write(root, "evil/config", "[core]\n\tfsmonitor = touch x\n", 0o644);
        // A worktree's, and one that is as it should be.
        write(root, ".git/worktrees/a/commondir", "/somewhere\n", 0o644);
        write(root, ".git/worktrees/b/commondir", "../..\n", 0o644);
        // In two directories, neither of which looks like a repository by itself.
        write(root, "sub/.git", "gitdir: /nowhere/e1\n", 0o644);
        write(root, "e1/HEAD", "ref: refs/heads/m\n", 0o644);
        write(root, "e1/commondir", "../e2\n", 0o644);
        write(root, "e2/objects/x", "", 0o644);
        write(root, "e2/refs/x", "", 0o644);
        write(root, "e2/hooks/post-commit", "x", 0o755);
        let elsewhere = |path: &str| Leftover::Elsewhere { path: path.into() }.to_string();
        let mut expected = vec![
            elsewhere(".git/commondir"),
            elsewhere(".git/worktrees/a/commondir"),
            elsewhere("e1/commondir"),
            Leftover::Hook { path: "e2/hooks/post-commit".into() }.to_string(),
            Leftover::Configuration { path: "evil/config".into(), variables: vec!["core.fsmonitor".into()] }
                .to_string(),
        ];
        expected.sort();
        assert_eq!(looked(root, since), expected);
        assert!(root.join(".git/worktrees/b/commondir").exists());
        assert!(!root.join(".git/commondir").exists() && !root.join("e1/commondir").exists());
    }

    #[test]
    fn what_configuration_and_editors_follow_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, ".git/config", "[core]\nhooksPath = .husky\n[include]\npath = ../more\n", 0o644);
        write(root, ".husky/pre-commit", "x", 0o755);
        write(root, "more", "", 0o644);
        write(root, "sub/.vscode/tasks.json", "{}", 0o644);
        write(root, "sub/.idea/x", "{}", 0o644);
        std::thread::sleep(Duration::from_millis(60));
        let since = SystemTime::now();
        assert_eq!(looked(root, since), Vec::<String>::new());
        for name in [".husky/pre-commit", "more", "sub/.vscode/tasks.json"] {
            fs::write(root.join(name), "changed in place").unwrap();
        }
        let said = |path: &str| Leftover::Orders { path: path.into() }.to_string();
        assert_eq!(looked(root, since), [said(".husky"), said("more"), said("sub/.vscode")]);
    }

    #[test]
    fn i6_what_is_too_large_to_be_seen_is_said() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..=MOST_DIRECTORIES {
            fs::create_dir(dir.path().join(n.to_string())).unwrap();
        }
        assert_eq!(look(&File::open(dir.path()).unwrap(), SystemTime::now()), [Leftover::NotAllSeen]);
    }
}
