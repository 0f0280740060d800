//! Control groups: memory and processes of a sandbox held by the kernel, where this user may make groups.
//!
//! Each full sandbox gets a group of its own beside or below the gateway's, in the one hierarchy of version 2 or in those
//! of the controllers `memory` and `pids` of version 1 (cgroups(7)). It is made before there is a call, and removed when
//! everything in it has ended. The supervisor stays outside: when memory runs out, it is the
//! program that is to end. It watches all the same, for there may be no groups.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{AccessFlags, UnlinkatFlags, access, unlinkat};

use super::wire::Limits;

const PREFIX: &str = "portcullis-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A directory in which groups can be made, and what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    directory: PathBuf,
    version: Version,
    memory: bool,
    processes: bool,
}

/// Where groups can be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(Vec<Place>);

/// The group of one sandbox.
#[derive(Debug, Default)]
pub struct Group {
    parts: Vec<Part>,
}

/// A group that is to be removed.
#[derive(Debug)]
pub struct Remains(Vec<(OwnedFd, OsString)>);

/// A directory of the group, held open from before the sandbox has a root directory of its own.
#[derive(Debug)]
struct Part {
    parent: OwnedFd,
    name: OsString,
    tasks: File,
    memory: Option<Memory>,
    processes: Option<File>,
}

#[derive(Debug)]
struct Memory {
    limit: File,
    /// Memory and swap together (1), or swap alone (2), where swap is counted.
    swap: Option<(Version, File)>,
    events: File,
}

impl Places {
    /// Looks for them, from where this process is.
    pub fn find() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let usable = |place: &Place| access(&place.directory, AccessFlags::W_OK).is_ok() && place.has_controllers();
        Places(places(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup")).into_iter().filter(usable).collect())
    }

    pub fn hold_memory(&self) -> bool {
        self.0.iter().any(|place| place.memory)
    }

    /// In words, for `doctor`.
    pub fn describe(&self) -> String {
        let part = |place: &Place| {
            let holds: Vec<&str> = [(place.memory, "memory"), (place.processes, "pids")]
                .into_iter()
                .filter(|(is, _)| *is)
                .map(|(_, name)| name)
                .collect();
            let version = if place.version == Version::One { 1 } else { 2 };
            format!("{} in {} (version {version})", holds.join(" and "), place.directory.display())
        };
        if self.0.is_empty() {
            "none that this user may use".to_owned()
        } else {
            self.0.iter().map(part).collect::<Vec<_>>().join(", ")
        }
    }

    /// Removes the groups of processes that are gone: of a gateway that was killed.
    pub fn sweep(&self) {
        for place in &self.0 {
            for entry in fs::read_dir(&place.directory).into_iter().flatten().flatten() {
                let pid = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
                if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                    // What still runs in it keeps it.
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }

    /// Makes a group with the number of this process. What cannot be made is done without.
    pub fn make(&self) -> Group {
        Group { parts: self.0.iter().filter_map(|place| place.make().ok()).collect() }
    }
}

impl Place {
    /// In version 2 the parent has to hand its controllers down.
    fn has_controllers(&self) -> bool {
        if self.version == Version::One {
            return true;
        }
        let text = fs::read_to_string(self.directory.join("cgroup.subtree_control")).unwrap_or_default();
        let has = |name: &str| text.split_whitespace().any(|controller| controller == name);
        has("memory") && has("pids")
    }

    fn make(&self) -> io::Result<Part> {
        let name = OsString::from(format!("{PREFIX}{}", std::process::id()));
        let directory = self.directory.join(&name);
        match fs::create_dir(&directory) {
            // A number is used again when its process is gone.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_dir(&directory).and_then(|()| fs::create_dir(&directory))
            }
            other => other,
        }?;
        let part = self.open(&directory, name);
        if part.is_err() {
            let _ = fs::remove_dir(&directory);
        }
        part
    }

    fn open(&self, directory: &Path, name: OsString) -> io::Result<Part> {
        let write = |name: &str| OpenOptions::new().write(true).open(directory.join(name));
        let (tasks, limit, swap, events) = match self.version {
            // With this file a single thread moves, which waits for nobody.
            Version::One => ("tasks", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
            Version::Two => ("cgroup.procs", "memory.max", "memory.swap.max", "memory.events"),
        };
        let memory = || -> io::Result<Memory> {
            let swap = write(swap).ok().map(|file| (self.version, file));
            Ok(Memory { limit: write(limit)?, swap, events: File::open(directory.join(events))? })
        };
        Ok(Part {
            parent: File::open(&self.directory)?.into(),
            name,
            tasks: write(tasks)?,
            memory: if self.memory { Some(memory()?) } else { None },
            processes: if self.processes { Some(write("pids.max")?) } else { None },
        })
    }
}

impl Group {
    /// Moves this process, which has one thread, into the group. Where that fails the group is done without. In version 2 it
    /// may wait for a grace period of the kernel's, some milliseconds.
    pub fn enter(&mut self) {
        self.parts.retain_mut(|part| part.tasks.write_all(b"0").is_ok());
    }

    /// Sets the limits of a call.
    pub fn limit(&mut self, limits: &Limits) -> io::Result<()> {
        for part in &mut self.parts {
            if let Some(memory) = &mut part.memory {
                let bytes = limits.memory_bytes.to_string();
                memory.limit.write_all(bytes.as_bytes())?;
                match &mut memory.swap {
                    Some((Version::One, both)) => both.write_all(bytes.as_bytes())?,
                    Some((Version::Two, swap)) => swap.write_all(b"0")?,
                    None => {}
                }
            }
            if let Some(processes) = &mut part.processes {
                write!(processes, "{}", limits.processes)?;
            }
        }
        Ok(())
    }

    /// Whether the kernel has ended a process of the group because there was no memory left in it.
    pub fn ran_out_of_memory(&self) -> bool {
        let ended = |memory: &Memory| {
            let mut text = [0u8; 512];
            let length = memory.events.read_at(&mut text, 0).unwrap_or(0);
            let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
            text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
        };
        self.parts.iter().filter_map(|part| part.memory.as_ref()).any(ended)
    }

    /// What is needed to remove the group, and nothing else of it.
    pub fn remains(self) -> Remains {
        Remains(self.parts.into_iter().map(|part| (part.parent, part.name)).collect())
    }
}

impl Remains {
    /// The descriptors that must stay open, from the lowest on.
    pub fn descriptors(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.0.iter().map(|(parent, _)| parent.as_raw_fd().unsigned_abs()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Removes the group, when everything in it has ended: the kernel may need a moment to see that.
    pub fn remove(self) {
        for (parent, name) in self.0 {
            for _ in 0..50 {
                match unlinkat(&parent, Path::new(&name), UnlinkatFlags::RemoveDir) {
                    Err(nix::errno::Errno::EBUSY) => std::thread::sleep(Duration::from_millis(10)),
                    _ => break,
                }
            }
        }
    }
}

/// Where this process's groups are, from the lines of `mountinfo` and `cgroup` (proc(5)).
fn places(mounts: &str, groups: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for line in mounts.lines() {
        let Some((fields, kind)) = line.split_once(" - ") else { continue };
        let mut fields = fields.split(' ').skip(3);
        let (Some(root), Some(at)) = (fields.next(), fields.next()) else { continue };
        let options: Vec<&str> = kind.rsplit(' ').next().unwrap_or_default().split(',').collect();
        let (memory, processes) = (options.contains(&"memory"), options.contains(&"pids"));
        let (version, controllers) = match kind.split(' ').next() {
            Some("cgroup") if memory || processes => (Version::One, (memory, processes)),
            Some("cgroup2") => (Version::Two, (true, true)),
            _ => continue,
        };
        let Some(own) = groups.lines().find_map(|line| own_group(line, version, memory, processes)) else { continue };
        // A container sees a part of the hierarchy.
        let Some(inner) = Path::new(own).strip_prefix(root).ok().or_else(|| Path::new(own).strip_prefix("/").ok())
        else {
            continue;
        };
        let mut directory = Path::new(at).join(inner);
        if version == Version::Two && !inner.as_os_str().is_empty() {
            // No group has processes and groups with controllers: those are beside this process's, not below it.
            directory.pop();
        }
        let place = Place { directory, version, memory: controllers.0, processes: controllers.1 };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// This process's group in a hierarchy: `4:memory:/path`, or `0::/path` in version 2.
fn own_group(line: &str, version: Version, memory: bool, processes: bool) -> Option<&str> {
    let (_, rest) = line.split_once(':')?;
    let (names, path) = rest.split_once(':')?;
    let has = |name: &str| names.split(',').any(|controller| controller == name);
    let mine = match version {
        Version::One => memory && has("memory") || processes && has("pids"),
        Version::Two => names.is_empty(),
    };
    mine.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_both_versions() {
        let of = |directory: &str, version, memory, processes| Place {
            directory: directory.into(),
            version,
            memory,
            processes,
        };
        let one = "30 24 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                   31 24 0:28 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n\
                   32 24 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
        let expected = [
            of("/sys/fs/cgroup/memory/a/b", Version::One, true, false),
            of("/sys/fs/cgroup/pids", Version::One, false, true),
        ];
        assert_eq!(places(one, "8:pids:/\n4:memory:/a/b\n1:cpu:/\n0::/\n"), expected);
        let two = "30 24 0:27 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";
        let beside = places(two, "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n");
        assert_eq!(
            beside,
            [of("/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice", Version::Two, true, true)]
        );
        assert_eq!(places(two, "0::/\n"), [of("/sys/fs/cgroup", Version::Two, true, true)]);
        let contained = "30 24 0:27 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(places(contained, "4:memory:/docker/1\n"), [of("/sys/fs/cgroup/memory", Version::One, true, false)]);
    }
}
