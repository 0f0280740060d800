//! Protected paths, kept from the program: what is hidden has something unreadable mounted over it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{SFlag, fstat};

use super::mounts::{self, attribute};
use super::{Failure, WARD_MOVED};
use crate::facts::path::Hold;
use crate::sandbox::wire::Ward;

/// What is mounted over hidden files and directories. Made in the new root directory, and gone by name when it is in use.
const FILE: &str = "/.hidden-file";
const DIRECTORY: &str = "/.hidden-directory";

const UNREADABLE: u64 = attribute::READ_ONLY | attribute::NO_SUID | attribute::NO_DEVICES | attribute::NO_EXEC;

/// Keeps these paths from the program. They come with what holds others before them.
pub fn hold(wards: &[Ward]) -> Result<(), Failure> {
    if wards.is_empty() {
        return Ok(());
    }
    let made = |error: io::Error| Failure::io("make what hides", &error);
    fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(FILE).map_err(made)?;
    fs::DirBuilder::new().mode(0o000).create(DIRECTORY).map_err(made)?;
    let covers = Covers { file: open(Path::new(FILE))?, directory: open(Path::new(DIRECTORY))? };
    wards.iter().try_for_each(|ward| keep(ward, &covers))?;
    fs::remove_file(FILE).and_then(|()| fs::remove_dir(DIRECTORY)).map_err(made)
}

struct Covers {
    file: OwnedFd,
    directory: OwnedFd,
}

fn keep(ward: &Ward, covers: &Covers) -> Result<(), Failure> {
    let moved = |errno| Failure::new(WARD_MOVED, errno);
    let path = Path::new(&ward.path);
    // Through what was mounted before, and through no link.
    let found = open(path).map_err(|failure| moved(Errno::from_raw(failure.errno)))?;
    let stat = fstat(&found).map_err(moved)?;
    if (stat.st_dev, stat.st_ino) != (ward.device, ward.inode) {
        return Err(moved(Errno::ESTALE));
    }
    let is_directory = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    match ward.hold {
        Hold::Hidden if is_directory => mounts::bind_over(&covers.directory, &found, path, UNREADABLE),
        Hold::Hidden => mounts::bind_over(&covers.file, &found, path, UNREADABLE),
        Hold::Content => mounts::bind_over(&found, &found, path, attribute::READ_ONLY),
        Hold::Place => mounts::bind_over(&found, &found, path, 0),
    }
}

fn open(path: &Path) -> Result<OwnedFd, Failure> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC);
    openat2(AT_FDCWD, path, how.resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS))
        .map_err(|errno| Failure::new(format!("open {}", path.display()), errno))
}
