//! The state directory: who may own it, where things lie in it, and the database that outlives every process.

mod database;
mod hosted;
mod process;
mod sessions;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use self::database::DatabaseError;
pub(crate) use self::database::{Database, Synchronous, millis, timestamp};
pub use self::hosted::HostedCall;
pub use self::process::{Life, Process};
pub use self::sessions::Sessions;

/// A state directory that exists, belongs to us, and that nobody else can write to.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "{path} belongs to user {owner}, but this process is user {us}: choose another state directory (PORTCULLIS_STATE) \
         or `chown -R {us} {path}`",
        path = path.display()
    )]
    ForeignOwner { path: PathBuf, owner: u32, us: u32 },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("others may enter {path} (mode {mode:o}): `chmod 700 {path}`", path = path.display())]
    OthersMayEnter { path: PathBuf, mode: u32 },
    #[error(
        "others may write to {path} (mode {mode:o}), and so could forge approvals or the audit log: `chmod 700 {path}`",
        path = path.display()
    )]
    OthersMayWrite { path: PathBuf, mode: u32 },
    #[error(
        "others may read {path} (mode {mode:o}): treat the secret in it as known, remove the file so that a new one is made",
        path = path.display()
    )]
    SecretExposed { path: PathBuf, mode: u32 },
}

impl StateError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StateError + use<> {
        let path = path.to_owned();
        move |source| StateError::Io { path, source }
    }
}

impl StateDir {
    /// Makes the directory (0700) where it is missing, with `audit/` and `keys/` in it, and checks that it is ours alone.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let path = path.into();
        let dir = StateDir { path: std::path::absolute(&path).map_err(StateError::io(&path))? };
        for path in [dir.path.clone(), dir.audit(), dir.keys()] {
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(StateError::io(&path))?;
            check_directory(&path)?;
        }
        Ok(dir)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the audit log and its lock lie.
    pub fn audit(&self) -> PathBuf {
        self.path.join("audit")
    }

    /// Where keys and the operator's token lie.
    pub fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    /// The database of approvals, sessions and credentials.
    pub fn database(&self) -> PathBuf {
        self.path.join("state.db")
    }
}

fn check_directory(path: &Path) -> Result<(), StateError> {
    let meta = fs::metadata(path).map_err(StateError::io(path))?;
    if !meta.is_dir() {
        return Err(StateError::NotADirectory(path.to_owned()));
    }
    check_owner(path, &meta)?;
    if meta.mode() & 0o022 != 0 {
        return Err(StateError::OthersMayWrite { path: path.to_owned(), mode: meta.mode() & 0o7777 });
    }
    Ok(())
}

/// A directory of ours that nobody else can even enter.
pub(crate) fn check_private(path: &Path) -> Result<(), StateError> {
    check_directory(path)?;
    let mode = fs::metadata(path).map_err(StateError::io(path))?.mode();
    if mode & 0o077 != 0 {
        return Err(StateError::OthersMayEnter { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok(())
}

fn check_owner(path: &Path, meta: &fs::Metadata) -> Result<(), StateError> {
    let us = nix::unistd::geteuid().as_raw();
    if meta.uid() == us {
        return Ok(());
    }
    Err(StateError::ForeignOwner { path: path.to_owned(), owner: meta.uid(), us })
}

/// Options for a private file (0600, never through a symbolic link at its last component).
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, opening a named pipe waits for its other end.
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Reads a secret file, or makes it with `fresh` content that is on disk before its name is. Of two processes that make
/// it at once, both get the content of the one that won.
pub(crate) fn secret_file(
    path: &Path,
    fresh: impl FnOnce() -> Result<Vec<u8>, io::Error>,
) -> Result<Vec<u8>, StateError> {
    match read_secret(path) {
        Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let draft = path.with_extension(format!("new-{}", uuid::Uuid::now_v7()));
    let made = fresh().and_then(|content| write_new(&draft, &content)).and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    match made {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(StateError::io(path)(e)),
        Err(_) | Ok(()) => removed.map_err(StateError::io(&draft))?,
    }
    if let Some(dir) = path.parent() {
        sync_directory(dir)?;
    }
    read_secret(path)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn read_secret(path: &Path) -> Result<Vec<u8>, StateError> {
    let file = private().read(true).open(path).map_err(StateError::io(path))?;
    let meta = file.metadata().map_err(StateError::io(path))?;
    if !meta.is_file() {
        return Err(StateError::io(path)(io::Error::other("not a regular file")));
    }
    check_owner(path, &meta)?;
    if meta.mode() & 0o077 != 0 {
        return Err(StateError::SecretExposed { path: path.to_owned(), mode: meta.mode() & 0o7777 });
    }
    io::read_to_string(file).map(String::into_bytes).map_err(StateError::io(path))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StateError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(StateError::io(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn i7_a_state_directory_that_others_may_write_is_refused_with_the_remedy() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        StateDir::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700, "a new state directory is private");
        for mode in [0o720, 0o702, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = StateDir::open(&path).unwrap_err();
            assert!(matches!(error, StateError::OthersMayWrite { .. }), "mode {mode:o}: {error}");
            assert!(error.to_string().contains("chmod 700"), "no remedy in: {error}");
        }
    }

    #[test]
    fn i7_a_foreign_state_directory_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped 1 check: only root can give a directory away");
            return;
        }
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        StateDir::open(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let error = StateDir::open(&path).unwrap_err();
        assert!(matches!(error, StateError::ForeignOwner { owner: 65534, .. }), "{error}");
    }

    #[test]
    fn a_secret_is_made_once_and_refused_when_others_could_read_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("secret");
        let first = secret_file(&path, || Ok(b"one".to_vec())).unwrap();
        let second = secret_file(&path, || Ok(b"two".to_vec())).unwrap();
        assert_eq!((first, second), (b"one".to_vec(), b"one".to_vec()), "the first content stays");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "a draft was left behind");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = secret_file(&path, || Ok(Vec::new())).unwrap_err();
        assert!(matches!(error, StateError::SecretExposed { mode: 0o640, .. }), "{error}");
    }
}
