//! What a failed program was refused, as far as its own messages tell, and what would allow it.
//!
//! The kernel says which call failed to nobody but the program. What is said here is worked out from what the program
//! wrote, so it is a guess, and is called one wherever it is shown.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Tier;
use super::leftovers::ORDERS;
use crate::facts::normalise;

/// The most that are told of one program.
const MOST: usize = 4;
/// The longest line that is looked at, and how many lines from the end.
const LONGEST_LINE: usize = 2000;
const MOST_LINES: usize = 400;

/// What is known of a confinement when its program has failed.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub profile: String,
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    pub workspace_writable: bool,
    /// Read, and written, beyond the workspace.
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// A program's own, in this tier.
    pub private: Vec<PathBuf>,
    pub internet: bool,
    pub trace: bool,
    /// Namespaces, with a root directory of the sandbox's own.
    pub full: bool,
    /// Protected paths that could not be seen, and such that stayed as they are.
    pub hidden: Vec<PathBuf>,
    pub kept: Vec<PathBuf>,
}

/// Something that a program was probably refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// What was refused: `write outside the workspace: /etc/hosts`.
    pub what: String,
    /// What would allow it.
    pub allow: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.allow)
    }
}

/// The kinds of refusal that programs' messages tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// The answer was an errno that a confinement gives.
    Refused,
    /// Nothing may be written there.
    ReadOnly,
    /// There is no such file, or none that is visible.
    Absent,
    NoNetwork,
    /// A name was looked up, and there was nobody to ask.
    NoNames,
    /// Nobody listens at an address of this machine's own.
    NobodyThere,
    Privilege,
    Trace,
    TooLarge,
    TooManyFiles,
    TooManyProcesses,
    NoSpace,
}

/// How programs word it, in lower case, or name it. The first that fits counts, so what says more stands before what says less.
const SIGNS: &[(&str, Sign)] = &[
    ("no new privileges", Sign::Privilege),
    ("effective uid is not 0", Sign::Privilege),
    ("must be run from a terminal", Sign::Privilege),
    ("unshare failed", Sign::Privilege),
    ("unshare: ", Sign::Privilege),
    ("cannot change root directory", Sign::Privilege),
    ("changing ownership of", Sign::Privilege),
    ("must be superuser", Sign::Privilege),
    ("ptrace", Sign::Trace),
    ("could not attach to process", Sign::Trace),
    ("read-only file system", Sign::ReadOnly),
    ("EROFS", Sign::ReadOnly),
    ("network is unreachable", Sign::NoNetwork),
    ("ENETUNREACH", Sign::NoNetwork),
    ("address family not supported", Sign::NoNetwork),
    ("could not resolve", Sign::NoNames),
    ("couldn't resolve", Sign::NoNames),
    ("temporary failure in name resolution", Sign::NoNames),
    ("temporary failure resolving", Sign::NoNames),
    ("name or service not known", Sign::NoNames),
    ("nodename nor servname provided", Sign::NoNames),
    ("failed to lookup address information", Sign::NoNames),
    ("unable to resolve host address", Sign::NoNames),
    ("EAI_AGAIN", Sign::NoNames),
    ("ENOTFOUND", Sign::NoNames),
    ("no such host", Sign::NoNames),
    ("connection refused", Sign::NobodyThere),
    ("ECONNREFUSED", Sign::NobodyThere),
    ("file too large", Sign::TooLarge),
    ("EFBIG", Sign::TooLarge),
    ("too many open files", Sign::TooManyFiles),
    ("EMFILE", Sign::TooManyFiles),
    ("fork: retry", Sign::TooManyProcesses),
    ("cannot fork", Sign::TooManyProcesses),
    ("resource temporarily unavailable", Sign::TooManyProcesses),
    ("no space left on device", Sign::NoSpace),
    ("ENOSPC", Sign::NoSpace),
    ("permission denied", Sign::Refused),
    ("operation not permitted", Sign::Refused),
    ("EACCES", Sign::Refused),
    ("EPERM", Sign::Refused),
    ("permissionerror", Sign::Refused),
    ("no such file or directory", Sign::Absent),
    ("ENOENT", Sign::Absent),
];

/// Parts of a repository that stay as they are, in the full tiers.
const KEPT: &[&str] = &[".git/hooks", ".git/config"];

/// Words of programs that were about to write.
const WRITING: &[&str] = &[
    "cannot create",
    "cannot touch",
    "cannot remove",
    "cannot move",
    "cannot open for writing",
    "mkdir",
    "rmdir",
    "unlink",
    "rename",
    "can't create",
    "could not create",
    "failed to create",
    "unable to create",
    "failed to write",
    "copyfile",
    "writing",
    "cannot stat destination",
    "could not write",
    "couldn't create",
    "failed to open for write",
    "could not lock",
];

/// What the messages of a program tell of refusals, the last ones first.
pub fn guess(scene: &Scene, messages: &str) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for line in messages.lines().rev().take(MOST_LINES).filter(|line| line.len() <= LONGEST_LINE) {
        let lower = line.to_ascii_lowercase();
        let mut signs = SIGNS.iter();
        let Some((at, sign)) = signs.find_map(|(words, sign)| Some((said(line, &lower, words)?, *sign))) else {
            continue;
        };
        if let Some(denial) = scene.denial(line, &lower, at, sign)
            && !found.contains(&denial)
        {
            found.push(denial);
            if found.len() == MOST {
                break;
            }
        }
    }
    found
}

/// Where a line says this: a name in capitals as it stands, other words in any case, from the beginning of a word on.
fn said(line: &str, lower: &str, words: &str) -> Option<usize> {
    let named = words.starts_with(|c: char| c.is_ascii_uppercase());
    let text = if named { line } else { lower };
    let begins =
        |at: usize| !text.get(..at).is_some_and(|before| before.ends_with(|c: char| c.is_ascii_alphanumeric()));
    let ends = |at: usize| {
        let after = text.get(at + words.len()..).unwrap_or_default();
        !named || !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    };
    text.match_indices(words).map(|(at, _)| at).find(|at| begins(*at) && ends(*at))
}

impl Scene {
    fn denial(&self, line: &str, lower: &str, at: usize, sign: Sign) -> Option<Denial> {
        let limit = |what: &str, name: &str| {
            let allow = format!("`limits.{name}` of the profile sets it");
            Some(Denial { what: format!("{what}, a limit of profile {}", self.profile), allow })
        };
        match sign {
            Sign::Refused | Sign::ReadOnly | Sign::Absent => {
                let path = self.path(line, at)?;
                let writes = sign == Sign::ReadOnly || WRITING.iter().any(|word| lower.contains(word));
                self.file(&path, sign, writes)
            }
            Sign::NoNetwork | Sign::NoNames => self.network(),
            // What listens outside cannot be reached from inside, and what should listen inside may not run.
            Sign::NobodyThere if self.full => self.network(),
            Sign::NobodyThere => None,
            Sign::Privilege => Some(Denial {
                what: "more privileges than the sandbox has".to_owned(),
                allow: "no profile gives any: do without sudo, mounts, namespaces and changes of owner".to_owned(),
            }),
            Sign::Trace if self.trace => None,
            Sign::Trace => Some(Denial {
                what: format!("tracing is off in profile {}", self.profile),
                allow: "a profile with `process.trace = true`, such as `debug`, allows it".to_owned(),
            }),
            Sign::TooLarge => limit("a file that is too large", "file-bytes"),
            Sign::TooManyFiles => limit("more open files", "open-files"),
            Sign::TooManyProcesses if lower.contains("fork") || lower.contains("thread") || lower.contains("clone") => {
                limit("more processes", "processes")
            }
            Sign::TooManyProcesses => None,
            Sign::NoSpace => self.path(line, at).filter(|path| within(&self.private, path)).map(|path| Denial {
                what: format!("more space in the sandbox's own {}", path.display()),
                allow: "write large files to the workspace".to_owned(),
            }),
        }
    }

    fn network(&self) -> Option<Denial> {
        (!self.internet).then(|| Denial {
            what: format!("network is off in profile {}", self.profile),
            allow: "a profile with `network.internet = true`, such as `network`, allows it".to_owned(),
        })
    }

    fn file(&self, path: &Path, sign: Sign, writes: bool) -> Option<Denial> {
        let shown = path.display();
        if within(&self.hidden, path) && sign != Sign::Absent {
            return Some(protected(format!("protected path: {shown}")));
        }
        if within(&self.kept, path) && sign != Sign::Absent {
            return Some(protected(format!("change of a protected path: {shown}")));
        }
        if let Ok(inside) = path.strip_prefix(&self.workspace) {
            if sign == Sign::Absent {
                return None;
            }
            if !self.workspace_writable {
                return Some(Denial {
                    what: format!("write in the workspace, which profile {} only reads: {shown}", self.profile),
                    allow: "a profile that writes it, such as `workspace-write`, allows it".to_owned(),
                });
            }
            let inside = format!("/{}/", inside.display());
            let kept = self.full && KEPT.iter().chain(ORDERS).any(|kept| inside.contains(&format!("/{kept}/")));
            return kept.then(|| Denial {
                what: format!("change of what runs later and outside: {shown}"),
                allow: "no profile allows it: a person makes this change".to_owned(),
            });
        }
        if within(&self.write, path) || within(&self.private, path) {
            return None;
        }
        if within(&self.read, path) {
            // What is readable and refused was to be written; what is not there is not there outside either.
            return (sign != Sign::Absent).then(|| outside("write outside the workspace", path, "write_roots"));
        }
        if path == Path::new("/") || (sign == Sign::Absent && !self.full) {
            return None;
        }
        if writes {
            return Some(outside("write outside the workspace", path, "write_roots"));
        }
        Some(outside("a path that the sandbox does not show", path, "read_roots"))
    }

    /// The path that a message is about: the last one before what went wrong, else the first one after.
    fn path(&self, line: &str, at: usize) -> Option<PathBuf> {
        let words = words(line);
        let before = words.iter().rev().find(|(start, word)| *start < at && is_path(word));
        let after = words.iter().find(|(start, word)| *start >= at && is_path(word));
        // What stands directly before, as in `FILE: reason`, is a path where it has a slash at all.
        let direct = words.iter().rev().find(|(start, _)| *start < at);
        let direct =
            direct.filter(|(start, word)| word.contains('/') && line.get(start + word.len()..at) == Some(": "));
        // Quoted names need no slash.
        let quoted =
            words.iter().rev().find(|(start, word)| *start < at && was_quoted(line, *start) && !word.contains(' '));
        let word = before.or(direct).or(after).or(quoted).map(|(_, word)| *word)?;
        Some(normalise(&self.cwd.join(word)))
    }
}

fn protected(what: String) -> Denial {
    Denial { what, allow: "do without it; an operator can change the protected paths".to_owned() }
}

fn outside(what: &str, path: &Path, roots: &str) -> Denial {
    Denial {
        what: format!("{what}: {}", path.display()),
        allow: format!("work in the workspace, or an operator adds the directory to `{roots}`"),
    }
}

fn within(places: &[PathBuf], path: &Path) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn is_path(word: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
    rooted && word.len() > 1 && !word.starts_with("//") && !word.contains("://")
}

const QUOTES: &[char] = &['\'', '"', '`', '‘', '’', '“', '”'];

fn was_quoted(line: &str, start: usize) -> bool {
    line.get(..start).and_then(|before| before.chars().next_back()).is_some_and(|c| QUOTES.contains(&c))
}

/// What stands between quotes, and elsewhere between spaces and punctuation, with its place.
fn words(line: &str) -> Vec<(usize, &str)> {
    let ends = |c: char| {
        QUOTES.contains(&c) || c.is_whitespace() || matches!(c, ':' | ',' | ';' | '(' | ')' | '[' | ']' | '=')
    };
    let mut words = Vec::new();
    let mut rest = line;
    let mut at = 0;
    while let Some(first) = rest.chars().next() {
        let quoted = QUOTES.contains(&first);
        let skip = if quoted || ends(first) { first.len_utf8() } else { 0 };
        let body = rest.get(skip..).unwrap_or_default();
        let end = if quoted {
            // An apostrophe begins nothing that another one would end.
            body.find(QUOTES).filter(|end| body.get(..*end).is_some_and(|inside| !inside.starts_with(' '))).unwrap_or(0)
        } else if skip > 0 {
            0
        } else {
            body.find(ends).unwrap_or(body.len())
        };
        if let Some(word) = body.get(..end).filter(|word| !word.is_empty()) {
            words.push((at + skip, word));
        }
        at += skip + end;
        rest = body.get(end..).unwrap_or_default();
    }
    words
}

impl Scene {
    /// The private places of a tier.
    pub fn private_places(tier: Tier) -> Vec<PathBuf> {
        let own: &[&str] =
            if tier.is_full() { &["/tmp", "/var/tmp", "/dev", "/run", "/home/agent"] } else { &["/dev"] };
        own.iter().map(PathBuf::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> Scene {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        Scene {
            profile: "workspace-write".into(),
            workspace: "/srv/ws".into(),
            cwd: "/srv/ws/sub".into(),
            workspace_writable: true,
            read: paths(&["/usr", "/etc/hosts"]),
            write: paths(&["/srv/cache"]),
            private: Scene::private_places(Tier::Full),
            full: true,
            ..Scene::default()
        }
    }

    /// What each message is about, in the words of many programs; `None` where the sandbox has nothing to do with it.
    #[test]
    fn messages_of_programs_are_understood() {
        const WRITE: &str = "write outside the workspace: ";
        const HIDDEN: &str = "a path that the sandbox does not show: ";
        const KEPT: &str = "change of what runs later and outside: ";
        const NET: &str = "network is off in profile workspace-write";
        for (message, what) in [
            ("bash: line 1: /etc/hosts: Permission denied", Some(format!("{WRITE}/etc/hosts"))),
            ("touch: cannot touch '/etc/hosts': Permission denied", Some(format!("{WRITE}/etc/hosts"))),
            ("mkdir: cannot create directory ‘/srv/new’: Read-only file system", Some(format!("{WRITE}/srv/new"))),
            ("touch: cannot touch '../../x': Read-only file system", Some(format!("{WRITE}/srv/x"))),
            ("PermissionError: [Errno 13] Permission denied: '/usr/lib/x'", Some(format!("{WRITE}/usr/lib/x"))),
            ("OSError: [Errno 30] Read-only file system: '/opt/a b'", Some(format!("{WRITE}/opt/a b"))),
            ("Error: EACCES: permission denied, open '/var/lib/x'", Some(format!("{HIDDEN}/var/lib/x"))),
            ("Error: EROFS: read-only file system, mkdir '/srv/x'", Some(format!("{WRITE}/srv/x"))),
            ("open /var/lib/go.mod: permission denied", Some(format!("{HIDDEN}/var/lib/go.mod"))),
            ("java.io.FileNotFoundException: /etc/hosts (Permission denied)", Some(format!("{WRITE}/etc/hosts"))),
            ("rm: cannot remove '/usr/bin/x': Read-only file system", Some(format!("{WRITE}/usr/bin/x"))),
            ("cat: /root/.ssh/id: No such file or directory", Some(format!("{HIDDEN}/root/.ssh/id"))),
            ("ls: cannot access '/home/al': No such file or directory", Some(format!("{HIDDEN}/home/al"))),
            (
                "error: could not lock config file .git/config: Read-only file system",
                Some(format!("{KEPT}/srv/ws/sub/.git/config")),
            ),
            ("bash: line 3: ./../.git/hooks/x: Read-only file system", Some(format!("{KEPT}/srv/ws/.git/hooks/x"))),
            (
                "cp: cannot create regular file '/srv/ws/.vscode/x': Read-only file system",
                Some(format!("{KEPT}/srv/ws/.vscode/x")),
            ),
            ("curl: (6) Could not resolve host: example.com", Some(NET.into())),
            ("fatal: unable to access 'https://x/': Could not resolve host: x", Some(NET.into())),
            ("socket.gaierror: [Errno -3] Temporary failure in name resolution", Some(NET.into())),
            ("npm error code EAI_AGAIN", Some(NET.into())),
            ("OSError: [Errno 101] Network is unreachable", Some(NET.into())),
            ("curl: (7) Failed to connect to 127.0.0.1 port 80: Connection refused", Some(NET.into())),
            ("sudo: The \"no new privileges\" flag is set", Some("more privileges than the sandbox has".into())),
            (
                "chown: changing ownership of 'x': Operation not permitted",
                Some("more privileges than the sandbox has".into()),
            ),
            (
                "strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted",
                Some("tracing is off in profile workspace-write".into()),
            ),
            (
                "bash: fork: retry: Resource temporarily unavailable",
                Some("more processes, a limit of profile workspace-write".into()),
            ),
            (
                "dd: error writing '/tmp/x': No space left on device",
                Some("more space in the sandbox's own /tmp/x".into()),
            ),
            // Nothing of the sandbox's.
            ("cat: nothere: No such file or directory", None),
            ("cat: /usr/nothere: No such file or directory", None),
            ("cat: ./x: Permission denied", None),
            ("bash: ./script: Permission denied", None),
            ("cat: /srv/cache/x: Permission denied", None),
            ("cat: /tmp/x: Permission denied", None),
            ("git@host: Permission denied (publickey).", None),
            ("error[E0432]: unresolved import", None),
            ("read: Resource temporarily unavailable", None),
            ("don't: it's /etc", None),
        ] {
            let found = guess(&scene(), message);
            let found: Vec<&str> = found.iter().map(|denial| denial.what.as_str()).collect();
            assert_eq!(found, what.iter().map(String::as_str).collect::<Vec<_>>(), "{message}");
        }
    }

    #[test]
    fn what_a_profile_allows_is_not_what_was_refused() {
        let open = Scene { internet: true, trace: true, ..scene() };
        for message in ["curl: (6) Could not resolve host: x", "ptrace: Operation not permitted"] {
            assert_eq!(guess(&open, message), [], "{message}");
        }
        let reads = Scene { workspace_writable: false, ..scene() };
        let found = guess(&reads, "touch: cannot touch 'x': Read-only file system");
        assert_eq!(found.len(), 1);
        assert!(found[0].what.ends_with("only reads: /srv/ws/sub/x"), "{found:?}");
        let landlock = Scene { full: false, private: Scene::private_places(Tier::Landlock), ..scene() };
        assert_eq!(guess(&landlock, "cat: /root/x: No such file or directory"), [], "it is not there");
        assert_eq!(guess(&landlock, "touch: cannot touch '/tmp/x': Permission denied").len(), 1);
        assert_eq!(guess(&landlock, "cp: cannot create '/srv/ws/.vscode/x': Permission denied"), []);
    }

    #[test]
    fn what_is_told_is_little_and_is_told_once() {
        let many: String = (0..50).map(|n| format!("touch: cannot touch '/etc/{n}': Permission denied\n")).collect();
        assert_eq!(guess(&scene(), &many).len(), MOST);
        let same = "curl: (6) Could not resolve host: x\n".repeat(50);
        assert_eq!(guess(&scene(), &same).len(), 1);
        assert_eq!(guess(&scene(), &"'".repeat(100_000)), []);
        assert_eq!(guess(&scene(), ""), []);
    }
}
