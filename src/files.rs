//! Files that the gateway itself reads: its configuration, policies, packs and profiles, and those of a workspace.
//!
//! Reading one never waits (a named pipe) and never takes more than a bound (a device, a sparse file). What is there and
//! cannot be read is an error: only a name that does not exist means that nothing is configured.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// Who may stand behind a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The operator: the file belongs to this user or to root, and not everybody may write it or its directory.
    Operator,
    /// A workspace, whose files can only tighten. No links: errors would tell of what lies elsewhere.
    Workspace,
    /// Anybody: what is read decides nothing here.
    Anyone,
}

/// The content of a file; `None` where there is no such name.
///
/// # Errors
///
/// What keeps it from being read, in words: it is no regular file, a link that leads nowhere, larger than the bound,
/// somebody else's.
pub fn read(path: &Path, author: Author) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open(path, author)? else { return Ok(None) };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if author == Author::Operator {
        trusted(&found, "the file")?;
        if let Some(dir) = path.parent() {
            trusted(&fs::metadata(dir)?, "its directory")?;
        }
    }
    let mut content = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("more than the {LARGEST} bytes allowed")));
    }
    Ok(Some(content))
}

/// The same for text.
///
/// # Errors
///
/// Those of [`read`], and [`io::ErrorKind::InvalidData`] with the place where it is not UTF-8.
pub fn read_text(path: &Path, author: Author) -> io::Result<Option<String>> {
    let Some(content) = read(path, author)? else { return Ok(None) };
    let text = String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8 at byte {at}; save the file as UTF-8"))
    })?;
    Ok(Some(text))
}

/// What lies directly in a directory under a name with this extension, by name, whatever it is; directories are left out.
/// `None` where there is no such directory.
///
/// # Errors
///
/// When the directory is there and cannot be listed, or is none.
pub fn list(dir: &Path, extension: &str) -> io::Result<Option<Vec<PathBuf>>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return absent(dir, error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let named = Path::new(&entry.file_name()).extension().is_some_and(|own| own.eq_ignore_ascii_case(extension));
        if named && !entry.file_type()?.is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(Some(files))
}

fn open(path: &Path, author: Author) -> io::Result<Option<File>> {
    let links = author != Author::Workspace;
    if !links && path.canonicalize().is_ok_and(|real| real != path) {
        return Err(io::Error::other("a symbolic link leads there: put the file itself into the workspace"));
    }
    // Without O_NONBLOCK, opening a named pipe waits for a writer.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | if links { 0 } else { libc::O_NOFOLLOW };
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) => absent(path, error),
    }
}

/// Nothing, where the name itself does not exist; else the error.
fn absent<T>(path: &Path, error: io::Error) -> io::Result<Option<T>> {
    if error.kind() != io::ErrorKind::NotFound {
        return Err(error);
    }
    match fs::symlink_metadata(path) {
        Ok(_) => Err(io::Error::new(error.kind(), "it is a symbolic link to something that is not there")),
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(other) => Err(other),
    }
}

fn trusted(found: &Metadata, what: &str) -> io::Result<()> {
    let own = nix::unistd::geteuid().as_raw();
    if ![0, own].contains(&found.uid()) {
        let message =
            format!("{what} belongs to user {}, who could change it: give it to user {own} or root", found.uid());
        return Err(io::Error::other(message));
    }
    // A directory with the sticky bit protects its entries from others.
    let sticky = found.is_dir() && found.mode() & 0o1000 != 0;
    if found.mode() & 0o002 != 0 && !sticky {
        let mode = found.mode() & 0o7777;
        return Err(io::Error::other(format!("everybody may write {what} (mode {mode:o}): chmod o-w")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn said(path: &Path, author: Author) -> String {
        match read_text(path, author) {
            Ok(text) => format!("{text:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn i5_only_a_name_that_does_not_exist_means_that_nothing_is_there() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        assert_eq!(said(&at("none"), Author::Operator), "None");
        fs::write(at("a.toml"), "x").unwrap();
        assert_eq!(said(&at("a.toml"), Author::Operator), "Some(\"x\")");
        symlink("/nonexistent/x", at("gone.toml")).unwrap();
        assert!(said(&at("gone.toml"), Author::Operator).contains("symbolic link"));
        assert!(list(&at("gone.toml"), "toml").is_err());
        assert!(list(&at("a.toml"), "toml").is_err(), "a file is no directory of files");
        assert!(list(&at("none"), "toml").unwrap().is_none());
        assert!(said(&at("a.toml/b"), Author::Operator).contains("Not a directory"));
        fs::create_dir(at("dir.toml")).unwrap();
        fs::write(at("B.TOML"), "").unwrap();
        fs::write(at("a.toml~"), "").unwrap();
        let names: Vec<_> = list(top.path(), "toml").unwrap().unwrap();
        assert_eq!(names, [at("B.TOML"), at("a.toml"), at("gone.toml")]);
    }

    #[test]
    fn i2_what_is_no_file_of_a_sensible_size_is_refused_at_once() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        for name in ["pipe", "zero", "dir"] {
            assert!(said(&at(name), Author::Anyone).contains("not a regular file"), "{name}");
        }
        File::create(at("huge")).unwrap().set_len(5 << 30).unwrap();
        assert!(said(&at("huge"), Author::Anyone).contains("more than"));
        fs::write(at("latin"), b"ab\xe9").unwrap();
        assert!(said(&at("latin"), Author::Anyone).contains("at byte 2"));
    }

    #[test]
    fn i7_what_others_may_write_is_not_the_operators() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("config");
        fs::create_dir(&dir).unwrap();
        let file = dir.join("portcullis.toml");
        fs::write(&file, "x").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(&file, 0o666);
        assert!(said(&file, Author::Operator).contains("everybody may write the file (mode 666)"));
        assert_eq!(said(&file, Author::Anyone), "Some(\"x\")");
        mode(&file, 0o664);
        assert_eq!(said(&file, Author::Operator), "Some(\"x\")");
        mode(&dir, 0o777);
        assert!(said(&file, Author::Operator).contains("its directory"));
        mode(&dir, 0o1777);
        assert_eq!(said(&file, Author::Operator), "Some(\"x\")");
        mode(&dir, 0o755);
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
            assert!(said(&file, Author::Operator).contains("user 12345"));
        }
    }
}
