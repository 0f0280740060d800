//! The minimal root directory of the full tiers: a file system in memory, to which only what the profile grants is
//! attached. It is built before there is a call; the workspace comes with the call.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::{fstat, fstatat};

use super::mounts::{self, attribute};
use super::namespaces::Identity;
use super::{Failure, PRIVATE_HOME, WORKSPACE_MOVED, protect, wards};
use crate::sandbox::Tier;
use crate::sandbox::wire::{Access, Grant, Job, Template};

const READ_ONLY: u64 = attribute::READ_ONLY | attribute::NO_SUID | attribute::NO_DEVICES;
const WRITABLE: u64 = attribute::NO_SUID | attribute::NO_DEVICES;

/// Where the machine's root directory is attached until the workspace has been found in it.
const OLD: &str = "/.machine";

/// Directories of a program's own, besides its home, that it may write.
pub const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// A root directory to which the workspace is still missing.
#[derive(Debug)]
pub struct Root {
    /// The machine's root directory.
    old: OwnedFd,
    /// What is attached somewhere in a private directory.
    in_private: Vec<PathBuf>,
}

/// Moves this process to a new root directory. To be called once, by the first process of its namespaces.
pub fn build(template: &Template, identity: &Identity) -> Result<Root, Failure> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|errno| Failure::new("keep mounts to this process", errno))?;
    let old = open_old()?;
    pivot()?;
    if template.tier == Tier::Full {
        forbid_executable_memory(&old);
    }
    let mut tree = Tree { old: &old, bound: Vec::new() };
    devices(&mut tree, template)?;
    private_directories(template, identity)?;
    let mut grants: Vec<&Grant> = template.grants.iter().filter(|grant| !is_pseudo(&grant.path)).collect();
    // What holds others comes before them.
    grants.sort_by_key(|grant| grant.path.len());
    for grant in grants {
        let owners = identity.owners.as_ref().filter(|_| grant.required);
        tree.grant(grant, owners)?;
    }
    if let Some(repository) = &template.repository {
        let path = Path::new(repository);
        protect::keep_git(&open_directory(path)?, path, identity)?;
    }
    for name in template.names.iter().filter(|name| !is_pseudo(name)) {
        tree.bind(Path::new(name), READ_ONLY, None)?;
    }
    for path in template.grants.iter().filter(|grant| grant.path.starts_with("/sys")) {
        tree.bind(Path::new(&path.path), READ_ONLY | attribute::NO_EXEC, None)?;
    }
    let proc = mounts::fresh("proc", &[], attribute::NO_SUID | attribute::NO_DEVICES | attribute::NO_EXEC)?;
    mounts::set(&proc, attribute::READ_ONLY, None, "/proc")?;
    make_directory(Path::new("/proc"))?;
    mounts::attach(&proc, Path::new("/proc"))?;
    if template.tier == Tier::Full && tree.is_bound(Path::new("/etc")) {
        name_the_user(identity)?;
    }
    let in_private = tree.bound.into_iter().filter(|path| beneath_private(path).is_some()).collect();
    Ok(Root { old, in_private })
}

impl Root {
    /// Attaches the workspace, lets go of the machine's root directory, and closes this one. Answers the workspace's
    /// handle in the new root.
    pub fn complete(self, job: &Job, workspace: &OwnedFd, identity: &Identity) -> Result<OwnedFd, Failure> {
        let path = Path::new(&job.workspace);
        let found = self.find(path, workspace)?;
        let attributes = if job.workspace_writable { WRITABLE } else { READ_ONLY };
        make_directory(path)?;
        mounts::bind(&found, path, attributes, identity.owners.as_ref())?;
        self.close_parents(path)?;
        let inside = open_directory(path)?;
        if job.workspace_writable {
            protect::protect(&inside, path, identity)?;
            job.own.iter().try_for_each(|name| protect::keep_own(&inside, path, name))?;
        }
        wards::hold(&job.wards)?;
        drop((self.old, found));
        umount2(OLD, MntFlags::MNT_DETACH).map_err(|errno| Failure::new("leave the machine's root", errno))?;
        fs::remove_dir(OLD).map_err(|error| Failure::io("leave the machine's root", &error))?;
        seal()?;
        Ok(inside)
    }

    /// Directories that were made in private directories to attach something below them look like the machine's: they are
    /// not the program's to write.
    fn close_parents(&self, workspace: &Path) -> Result<(), Failure> {
        let attached = self.in_private.iter().map(PathBuf::as_path).chain([workspace]);
        let tops: BTreeSet<PathBuf> = attached.filter_map(beneath_private).collect();
        for top in tops {
            let directory = open_directory(&top)?;
            mounts::close(&directory, &top)?;
        }
        Ok(())
    }

    /// The workspace by its name in this mount namespace, where only that can be attached: it must be the directory that
    /// was checked.
    fn find(&self, path: &Path, workspace: &OwnedFd) -> Result<OwnedFd, Failure> {
        let moved = |errno| Failure::new(WORKSPACE_MOVED, errno);
        let found = open_in(&self.old, path).map_err(moved)?;
        let same = |a: &OwnedFd, b: &OwnedFd| -> nix::Result<bool> {
            let (a, b) = (fstat(a)?, fstat(b)?);
            Ok((a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
        };
        match same(&found, workspace) {
            Ok(true) => Ok(found),
            Ok(false) => Err(moved(Errno::ESTALE)),
            Err(errno) => Err(moved(errno)),
        }
    }
}

/// The directory between a private directory and a path deeper below it.
fn beneath_private(path: &Path) -> Option<PathBuf> {
    let private = PRIVATE.iter().chain([&PRIVATE_HOME]).find(|private| path.starts_with(private))?;
    let mut below = path.strip_prefix(private).ok()?.components();
    let top = Path::new(private).join(below.next()?);
    below.next().map(|_| top)
}

/// Opens a directory of the new root.
fn open_directory(path: &Path) -> Result<OwnedFd, Failure> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC);
    openat2(nix::fcntl::AT_FDCWD, path, how.resolve(ResolveFlag::RESOLVE_NO_SYMLINKS))
        .map_err(|errno| Failure::new(format!("open {}", path.display()), errno))
}

fn open_old() -> Result<OwnedFd, Failure> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    nix::fcntl::open("/", flags, nix::sys::stat::Mode::empty())
        .map_err(|errno| Failure::new("open the machine's root", errno))
}

/// An empty root directory over the machine's, which stays attached below it. No directory is needed to build it at, and
/// so none is hidden.
fn pivot() -> Result<(), Failure> {
    let failed = |errno| Failure::new("change the root directory", errno);
    let root = mounts::fresh("tmpfs", &[("size", "16m"), ("mode", "755")], WRITABLE)?;
    mounts::attach(&root, Path::new("/"))?;
    nix::unistd::fchdir(&root).map_err(failed)?;
    let old = OLD.trim_start_matches('/');
    nix::sys::stat::mkdirat(&root, old, nix::sys::stat::Mode::S_IRWXU).map_err(failed)?;
    nix::unistd::pivot_root(".", old).map_err(failed)?;
    nix::unistd::chdir("/").map_err(failed)
}

/// Nothing can be added to the root directory any more.
fn seal() -> Result<(), Failure> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let none: Option<&str> = None;
    for path in ["/", "/dev"] {
        // Device nodes stay usable: each is a mount of its own.
        mount(none, path, none, flags, none).map_err(|errno| Failure::new(format!("close {path}"), errno))?;
    }
    Ok(())
}

/// Memory files (memfd_create(2)) cannot be executed in this process's namespace any more. Kernels before 6.3 do not know
/// it: there a program may execute memory as it may execute what it writes to the workspace.
fn forbid_executable_memory(old: &OwnedFd) {
    let how = OpenHow::new().flags(OFlag::O_WRONLY | OFlag::O_CLOEXEC);
    if let Ok(setting) = openat2(old, "proc/sys/vm/memfd_noexec", how) {
        let _ = nix::unistd::write(setting, b"2");
    }
}

/// Device nodes one by one, terminals of its own, and the usual names.
fn devices(tree: &mut Tree<'_>, template: &Template) -> Result<(), Failure> {
    mount_memory("/dev", "1m", "755", None, 0)?;
    for grant in template.grants.iter().filter(|grant| matches!(grant.access, Access::Device | Access::Terminal)) {
        let path = Path::new(&grant.path);
        if path.starts_with("/dev/") && !grant.directory {
            tree.bind(path, attribute::NO_SUID | attribute::NO_EXEC, None)?;
        }
    }
    let options = [("ptmxmode", "0666"), ("mode", "620")];
    let terminals = mounts::fresh("devpts", &options, attribute::NO_SUID | attribute::NO_EXEC)?;
    make_directory(Path::new("/dev/pts"))?;
    mounts::attach(&terminals, Path::new("/dev/pts"))?;
    for (target, link) in [
        ("pts/ptmx", "/dev/ptmx"),
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ] {
        symlink(target, link).map_err(|error| Failure::io(format!("make {link}"), &error))?;
    }
    Ok(())
}

fn private_directories(template: &Template, identity: &Identity) -> Result<(), Failure> {
    let space = template.space_bytes.to_string();
    mount_memory("/tmp", &space, "1777", None, 0)?;
    mount_memory("/var/tmp", &space, "1777", None, 0)?;
    mount_memory("/dev/shm", &space, "1777", None, attribute::NO_EXEC)?;
    mount_memory("/run", "16m", "755", Some(identity), attribute::NO_EXEC)?;
    mount_memory(PRIVATE_HOME, &space, "700", Some(identity), 0)?;
    symlink("/run", "/var/run").map_err(|error| Failure::io("make /var/run", &error))
}

/// A file system in memory, of this size.
fn mount_memory(at: &str, size: &str, mode: &str, owner: Option<&Identity>, attributes: u64) -> Result<(), Failure> {
    let ids = owner.map(|identity| (identity.user.to_string(), identity.group.to_string()));
    let mut options = vec![("size", size), ("nr_inodes", "400k"), ("mode", mode)];
    if let Some((user, group)) = &ids {
        options.extend([("uid", user.as_str()), ("gid", group.as_str())]);
    }
    let memory = mounts::fresh("tmpfs", &options, attribute::NO_SUID | attribute::NO_DEVICES | attributes)?;
    let at = Path::new(at);
    make_directory(at)?;
    mounts::attach(&memory, at)
}

/// The machine's users and groups, and the program's own, so that programs that ask who they are get an answer.
fn name_the_user(identity: &Identity) -> Result<(), Failure> {
    let (user, group) = (identity.user, identity.group);
    let files = [
        ("/etc/passwd", format!("agent:x:{user}:{group}::{PRIVATE_HOME}:/bin/bash\n")),
        ("/etc/group", format!("agent:x:{group}:\n")),
    ];
    for (path, line) in files {
        let Ok(mut text) = fs::read_to_string(path) else { continue };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
        let made = PathBuf::from(path.replace("/etc/", "/."));
        let file = fs::write(&made, text).and_then(|()| fs::File::open(&made));
        let file = file.map_err(|error| Failure::io(format!("write {path}"), &error))?;
        mounts::bind(&file, Path::new(path), READ_ONLY | attribute::NO_EXEC, None)?;
    }
    Ok(())
}

/// /proc is made anew, of /sys come single directories, and devices are attached by themselves.
fn is_pseudo(path: &str) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|top| Path::new(path).starts_with(top))
}

/// What is attached to the new root so far.
struct Tree<'a> {
    old: &'a OwnedFd,
    bound: Vec<PathBuf>,
}

impl Tree<'_> {
    fn grant(&mut self, grant: &Grant, owners: Option<&OwnedFd>) -> Result<(), Failure> {
        let path = Path::new(&grant.path);
        let attributes = if grant.access == Access::Write { WRITABLE } else { READ_ONLY };
        // One mount instead of one for each file in it; Landlock keeps to the files.
        let whole = if path.starts_with("/etc") { Path::new("/etc") } else { path };
        if attributes == READ_ONLY && !grant.required && self.is_bound(whole) && whole != path {
            // The directory is there; what a link in it leads to may not be.
            return self.bind_target(path);
        }
        let bound = self.bind(whole, attributes, owners)?;
        if !bound && grant.required {
            return Err(Failure::new(format!("grant {}", grant.path), Errno::ENOENT));
        }
        if whole == path { Ok(()) } else { self.bind_target(path) }
    }

    fn bind_target(&mut self, path: &Path) -> Result<(), Failure> {
        let outside = self.resolve(path).is_some_and(|found| !self.is_bound(&found.real));
        if outside { self.bind(path, READ_ONLY, None).map(drop) } else { Ok(()) }
    }

    fn is_bound(&self, path: &Path) -> bool {
        self.bound.iter().any(|bound| path.starts_with(bound))
    }

    /// Attaches what has this name on the machine under the same name; false where there is nothing.
    fn bind(&mut self, path: &Path, attributes: u64, owners: Option<&OwnedFd>) -> Result<bool, Failure> {
        let Some(found) = self.resolve(path) else { return Ok(false) };
        for (link, target) in &found.links {
            if !self.is_bound(link) {
                make_parent(link)?;
                match symlink(target, link) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(Failure::io(format!("make {}", link.display()), &error));
                    }
                    _ => {}
                }
            }
        }
        if attributes == READ_ONLY && owners.is_none() && self.is_bound(&found.real) {
            return Ok(true);
        }
        let name = || format!("grant {}", path.display());
        let file = open_in(self.old, &found.real).map_err(|errno| Failure::new(name(), errno))?;
        if found.directory {
            make_directory(&found.real)?;
        } else if !self.is_bound(&found.real) {
            make_parent(&found.real)?;
            fs::File::create(&found.real).map_err(|error| Failure::io(name(), &error))?;
        }
        mounts::bind(&file, &found.real, attributes, owners)?;
        self.bound.push(found.real);
        Ok(true)
    }

    /// Follows a path on the machine link by link, as the machine's root directory has it.
    fn resolve(&self, path: &Path) -> Option<Found> {
        let mut found = Found { real: PathBuf::from("/"), links: Vec::new(), directory: true };
        let mut rest: VecDeque<PathBuf> = components(path);
        while let Some(next) = rest.pop_front() {
            if next == Path::new("..") {
                found.real.pop();
                continue;
            }
            let at = found.real.join(&next);
            let mode = fstatat(self.old, &relative(&at), AtFlags::AT_SYMLINK_NOFOLLOW).ok()?.st_mode & libc::S_IFMT;
            found.directory = mode == libc::S_IFDIR;
            if mode != libc::S_IFLNK {
                found.real = at;
                continue;
            }
            if found.links.len() > MAX_LINKS {
                return None;
            }
            let target = PathBuf::from(readlinkat(self.old, &relative(&at)).ok()?);
            if target.is_absolute() {
                found.real = PathBuf::from("/");
            }
            for part in components(&target).into_iter().rev() {
                rest.push_front(part);
            }
            found.links.push((at, target));
        }
        Some(found)
    }
}

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

struct Found {
    /// Without any link.
    real: PathBuf,
    links: Vec<(PathBuf, PathBuf)>,
    directory: bool,
}

fn components(path: &Path) -> VecDeque<PathBuf> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(PathBuf::from(name)),
            Component::ParentDir => Some(PathBuf::from("..")),
            _ => None,
        })
        .collect()
}

/// A path in a root directory, as calls take it that begin at that directory.
fn relative(path: &Path) -> PathBuf {
    let inside = path.strip_prefix("/").unwrap_or(path);
    if inside.as_os_str().as_bytes().is_empty() { PathBuf::from(".") } else { inside.to_owned() }
}

/// Opens a path that has no link in it.
fn open_in(root: &OwnedFd, path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(root.as_fd(), &relative(path), how)
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::io(format!("make {}", path.display()), &error))
}

fn make_parent(path: &Path) -> Result<(), Failure> {
    path.parent().map_or(Ok(()), make_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_a_private_directory_and_what_is_attached_in_it() {
        for (path, top) in [
            ("/tmp/a/b/c", Some("/tmp/a")),
            ("/var/tmp/a/b", Some("/var/tmp/a")),
            ("/home/agent/x/y", Some("/home/agent/x")),
            ("/tmp/a", None),
            ("/srv/a/b", None),
            ("/tmpx/a/b", None),
        ] {
            assert_eq!(beneath_private(Path::new(path)), top.map(PathBuf::from), "{path}");
        }
    }
}
