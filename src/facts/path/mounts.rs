//! The other names that mounts give to a file: what lies below a bind mount is judged by where it really is as well.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::{FileStat, Mode};

use super::kernel::{mount_id, open_at, stat};

/// A directory whose files must be known by whatever name they have.
#[derive(Debug)]
struct Base {
    path: PathBuf,
    device: u64,
    mount: u64,
    /// Its path in its own file system.
    inner: PathBuf,
}

/// Directories that a mount elsewhere could show.
#[derive(Debug, Default)]
pub(super) struct Bases(Vec<Base>);

/// A line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
struct Mounted {
    id: u64,
    /// Which part of its file system it shows.
    inner: PathBuf,
    at: PathBuf,
}

impl Bases {
    /// Those that exist.
    pub fn open<'a>(slash: impl AsFd, paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let mounts = mounted();
        let open = |path: &PathBuf| {
            let handle = open_at(&slash, path, OFlag::O_PATH, Mode::empty(), ResolveFlag::empty()).ok()?;
            let mount = mount_id(&handle)?;
            let inner = find(&mounts, mount)?.inner_path(path)?;
            Some(Base { path: path.clone(), device: stat(&handle).ok()?.st_dev, mount, inner })
        };
        Bases(paths.into_iter().filter_map(open).collect())
    }

    /// The names that a file or directory has in the bases, where a mount shows it at `landing`. The mounts are looked at
    /// only where its file system is shown more than once.
    pub fn other_names(&self, handle: impl AsFd, stat: &FileStat, landing: &Path) -> Vec<PathBuf> {
        let Some(mount) = mount_id(handle) else { return Vec::new() };
        let elsewhere = |base: &&Base| base.device == stat.st_dev && base.mount != mount;
        if !self.0.iter().any(|base| elsewhere(&base)) {
            return Vec::new();
        }
        let mounts = mounted();
        let Some(inner) = find(&mounts, mount).and_then(|mounted| mounted.inner_path(landing)) else {
            return Vec::new();
        };
        let name = |base: &Base| Some(base.path.join(inner.strip_prefix(&base.inner).ok()?));
        self.0.iter().filter(elsewhere).filter_map(name).collect()
    }
}

impl Mounted {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        Some(Mounted { id, inner: unescape(fields.nth(2)?), at: unescape(fields.next()?) })
    }

    /// The path in the file system of what is at `path` in this mount.
    fn inner_path(&self, path: &Path) -> Option<PathBuf> {
        Some(self.inner.join(path.strip_prefix(&self.at).ok()?))
    }
}

fn find(mounts: &[Mounted], id: u64) -> Option<&Mounted> {
    mounts.iter().find(|mounted| mounted.id == id)
}

fn mounted() -> Vec<Mounted> {
    // Of this thread: its mounts may be its own.
    let text = std::fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(Mounted::parse).collect()
}

/// Space, tab, line end and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_read() {
        let line = br"36 35 98:0 /mnt\0401 /mnt\134\0112 rw,noatime master:1 - ext3 /dev/root rw";
        let mounted = Mounted::parse(line).unwrap();
        assert_eq!(
            (mounted.id, mounted.inner.as_path(), mounted.at.as_path()),
            (36, Path::new("/mnt 1"), Path::new("/mnt\\\t2"))
        );
        assert_eq!(mounted.inner_path(Path::new("/mnt\\\t2/a")), Some("/mnt 1/a".into()));
        assert_eq!(mounted.inner_path(Path::new("/mnt")), None);
        assert!(Mounted::parse(b"").is_none() && Mounted::parse(b"x y").is_none());
        assert!(mounted_here(), "this machine's mounts are read");
    }

    fn mounted_here() -> bool {
        let mounts = mounted();
        mounts.iter().any(|mounted| mounted.at == Path::new("/"))
    }
}
