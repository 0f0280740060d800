//! Path names as they are given: what can be refused without looking at anything.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The longest path that the kernel takes, in bytes without the final NUL (`PATH_MAX`, limits.h).
const LONGEST_PATH: usize = 4095;
/// The longest single name, in bytes (`NAME_MAX`, limits.h).
pub(super) const LONGEST_NAME: usize = 255;

/// A name that can be looked up: absolute, with its `.`, `..` and links still in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    full: PathBuf,
    /// The name ends in `/`, `/.` or `/..`, so it can only be a directory.
    pub names_directory: bool,
}

/// Why a path cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("the path is empty: give a path relative to the workspace, such as `src/main.rs` or `.`")]
    Empty,
    #[error("the path holds a NUL byte at byte {0}, which no file name can hold")]
    Nul(usize),
    #[error("the path holds the control character U+{code:04X} at byte {at}: leave it out")]
    Control { code: u32, at: usize },
    #[error("the path is {0} bytes long, and the system takes at most {LONGEST_PATH}")]
    TooLong(usize),
    #[error("a name in the path is {0} bytes long, and the system takes at most {LONGEST_NAME}")]
    NameTooLong(usize),
    #[error("this is a Windows path, and files here have Unix paths: give it relative to the workspace, with `/`")]
    Windows,
    #[error("`~` is not expanded: give the path relative to the workspace, or absolute")]
    Tilde,
    #[error("the working directory is not absolute")]
    RelativeDirectory,
    #[error("the path goes through a loop of symbolic links")]
    Loop,
    #[error("the path goes through a magic link of /proc: name the file itself")]
    MagicLink,
    #[error("this is a {0}, and only regular files and directories can be used")]
    Special(&'static str),
    #[error("the name ends like a directory's, and a file is to be written: leave out what follows the last name")]
    DirectoryName,
    #[error("the path keeps changing while it is looked at: try again once nothing else works on it")]
    Unstable,
    #[error("the call names more than {0} paths, and the rest were not looked at")]
    TooMany(usize),
    #[error("the argument is not a text")]
    NotText,
}

impl Name {
    /// Reads a path that starts at `cwd` unless it is absolute.
    pub fn parse(given: &str, cwd: &Path) -> Result<Name, Problem> {
        check(given)?;
        if !cwd.is_absolute() {
            return Err(Problem::RelativeDirectory);
        }
        let full = if given.starts_with('/') {
            given.as_bytes().to_vec()
        } else {
            let mut full = cwd.as_os_str().as_bytes().to_vec();
            full.push(b'/');
            full.extend_from_slice(given.as_bytes());
            full
        };
        if full.len() > LONGEST_PATH {
            return Err(Problem::TooLong(full.len()));
        }
        let last = given.rsplit('/').next().unwrap_or_default();
        Ok(Name {
            full: PathBuf::from(std::ffi::OsString::from_vec(full)),
            names_directory: matches!(last, "" | "." | ".."),
        })
    }

    /// The absolute path, not normalised: the kernel gives `..` its meaning.
    pub fn path(&self) -> &Path {
        &self.full
    }

    /// What follows a directory's name, where the path starts with it by name.
    pub fn after(&self, directory: &Path) -> Option<&Path> {
        let rest = self.full.as_os_str().as_bytes().strip_prefix(directory.as_os_str().as_bytes())?;
        let inner = match rest {
            [] => b".",
            [b'/', ..] => {
                let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
                match rest.get(start..) {
                    None | Some([]) => b".",
                    Some(inner) => inner,
                }
            }
            _ => return None,
        };
        Some(Path::new(OsStr::from_bytes(inner)))
    }
}

fn check(given: &str) -> Result<(), Problem> {
    if given.is_empty() {
        return Err(Problem::Empty);
    }
    if let Some(at) = given.find('\0') {
        return Err(Problem::Nul(at));
    }
    if let Some((at, c)) = given.char_indices().find(|(_, c)| c.is_control()) {
        return Err(Problem::Control { code: c as u32, at });
    }
    if given.len() > LONGEST_PATH {
        return Err(Problem::TooLong(given.len()));
    }
    if let Some(name) = given.split('/').find(|name| name.len() > LONGEST_NAME) {
        return Err(Problem::NameTooLong(name.len()));
    }
    match given.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => Err(Problem::Windows),
        [drive, b':'] if drive.is_ascii_alphabetic() => Err(Problem::Windows),
        [b'\\', b'\\', ..] => Err(Problem::Windows),
        [b'~'] | [b'~', b'/', ..] => Err(Problem::Tilde),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &str) -> Result<Name, Problem> {
        Name::parse(given, Path::new("/w"))
    }

    #[test]
    fn unusable_names_say_what_is_wrong() {
        for (given, problem) in [
            ("", Problem::Empty),
            ("a\0b", Problem::Nul(1)),
            ("a\nb", Problem::Control { code: 10, at: 1 }),
            ("\u{9b}31m", Problem::Control { code: 0x9b, at: 0 }),
            (r"C:\Users\x", Problem::Windows),
            ("c:/x", Problem::Windows),
            ("C:", Problem::Windows),
            (r"\\server\share", Problem::Windows),
            ("~", Problem::Tilde),
            ("~/x", Problem::Tilde),
        ] {
            assert_eq!(parse(given), Err(problem), "{given:?}");
        }
        assert_eq!(parse(&"x".repeat(256)), Err(Problem::NameTooLong(256)));
        assert_eq!(parse(&"x/".repeat(2048)), Err(Problem::TooLong(4096)));
        assert_eq!(parse(&"x/".repeat(2047)), Err(Problem::TooLong(4097)), "with the directory in front");
    }

    #[test]
    fn usable_names_keep_their_meaning() {
        assert!(parse(&"x".repeat(255)).is_ok(), "255 bytes are the kernel's limit, inclusive");
        assert_eq!(parse("a:b").unwrap().path(), Path::new("/w/a:b"), "a colon alone is no drive");
        assert_eq!(parse("~x").unwrap().path(), Path::new("/w/~x"));
        assert!(parse("a/").unwrap().names_directory);
        assert!(parse("a/.").unwrap().names_directory);
        assert!(parse("..").unwrap().names_directory);
        assert!(!parse("a/b").unwrap().names_directory);
    }

    #[test]
    fn the_rest_after_a_directory_is_cut_at_a_name() {
        let after = |full: &str| parse(full).unwrap().after(Path::new("/w")).map(Path::to_path_buf);
        assert_eq!(after("/w"), Some(".".into()));
        assert_eq!(after("/w//"), Some(".".into()));
        assert_eq!(after("/w//a/../b").unwrap().as_os_str(), "a/../b", "`..` stays for the kernel");
        assert_eq!(after("/world"), None);
    }
}
