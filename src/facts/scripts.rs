//! Reads the files that a command runs, for its analysis: regular files alone, bounded, through the path resolver, and
//! only where telling what they do tells nobody what lies outside.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::call::Digest;
use crate::facts::command::{Content, Script, Scripts};
use crate::facts::path::{Access, PathFact, Resolver};
use crate::facts::{Scope, Surroundings};

/// Bytes of the largest file that is read.
const LARGEST: u64 = 128 * 1024;
/// Bytes at the start of a file that tell text from anything else.
const HEAD: usize = 1024;

/// The files of a workspace, of the extra roots and of temporary directories.
pub struct OnDisk<'a> {
    pub resolver: &'a Resolver,
    pub here: &'a Surroundings,
    /// Whether the principal wrote the file at this real path earlier.
    pub wrote: &'a dyn Fn(&Path) -> bool,
}

impl Scripts for OnDisk<'_> {
    fn read(&self, path: &str) -> Option<Script> {
        // Most programs are the system's: those are told by name.
        if !readable(self.here.scope(Path::new(path))) {
            return None;
        }
        let (fact, handle) = self.resolver.look("script", path, Access::Execute, &self.here.cwd);
        if !readable(fact.scope) {
            return None;
        }
        let (file, _) = handle?.open_file().ok()?;
        let (content, digest, bytes) = read(&file)?;
        let wrote = place(&fact, self.resolver.workspace()).is_none_or(|place| (self.wrote)(&place));
        Some(Script { content, digest, bytes, wrote })
    }
}

fn readable(scope: Scope) -> bool {
    matches!(scope, Scope::Workspace | Scope::WriteRoot | Scope::ReadRoot | Scope::Temp)
}

/// The real path of a file that the principal may write, as far as facts tell it.
pub fn place(fact: &PathFact, workspace: &Path) -> Option<std::path::PathBuf> {
    match (fact.scope, &fact.lands) {
        (Scope::Workspace, Some(inner)) => Some(workspace.join(inner)),
        (Scope::WriteRoot | Scope::ReadRoot, Some(path)) => Some(path.into()),
        (Scope::Temp, _) => Some(super::normalise(&workspace.join(&fact.given))),
        _ => None,
    }
}

/// How files begin that are programs for a machine, real or not, or archives of them: ELF, Mach-O, PE, class, wasm, zip.
/// Everything else an interpreter may take for a script, whatever bytes it holds.
const PROGRAMS: &[&[u8]] = &[b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ\x90", b"\0asm", b"PK\x03\x04"];

fn read(file: &File) -> Option<(Content, Digest, u64)> {
    let meta = file.metadata().ok()?;
    // Of what is not read whole, its state: device, inode, size and the time of its last change.
    let state = || Digest::of(format!("{:?}", (meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec())));
    let mut bytes = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut bytes).ok()?;
    if PROGRAMS.iter().any(|magic| bytes.starts_with(magic)) {
        return Some((Content::Binary, state(), meta.size()));
    }
    if meta.size() > LARGEST {
        return Some((Content::TooLarge, state(), meta.size()));
    }
    // A file that grows while it is read ends at the bound all the same.
    file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    let (digest, length) = (Digest::of(&bytes), bytes.len() as u64);
    let content = if length > LARGEST {
        Content::TooLarge
    } else {
        // Shells pass zeros over, and a few odd bytes in a comment hide nothing else.
        bytes.retain(|byte| *byte != 0);
        Content::Text(String::from_utf8_lossy(&bytes).into_owned())
    };
    Some((content, digest, length))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::facts::path::{Protection, standard_rules};

    #[test]
    fn only_regular_files_inside_are_read_and_within_bounds() {
        let top = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let inside = top.path().join("w");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("a.sh"), "true\n").unwrap();
        fs::write(inside.join("latin.sh"), b"# caf\xe9\ntrue\n").unwrap();
        fs::write(inside.join("program"), b"\x7fELF\0\0").unwrap();
        fs::write(inside.join("zeros.sh"), b"a\0b\nrm -rf \0/\n").unwrap();
        fs::write(inside.join("large.sh"), "#".repeat(LARGEST as usize + 1)).unwrap();
        // Outside wherever this checkout lies, be it a temporary directory.
        symlink("/etc/passwd", inside.join("out.sh")).unwrap();
        symlink("a.sh", inside.join("in.sh")).unwrap();
        nix::unistd::mkfifo(&inside.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let here = Surroundings::new(&inside, "/nonexistent");
        let resolver = Resolver::open(&here, Protection::new(standard_rules()).unwrap()).unwrap();
        let wrote = |path: &Path| path.ends_with("a.sh");
        let disk = OnDisk { resolver: &resolver, here: &here, wrote: &wrote };
        let look = |name: &str| disk.read(&inside.join(name).to_string_lossy());
        let script = look("a.sh").unwrap();
        assert_eq!((script.content, script.digest), (Content::Text("true\n".into()), Digest::of("true\n")));
        assert!(script.wrote && look("in.sh").unwrap().wrote, "by where it lands");
        assert!(matches!(look("latin.sh").unwrap().content, Content::Text(_)) && !look("latin.sh").unwrap().wrote);
        assert_eq!(look("program").unwrap().content, Content::Binary);
        assert_eq!(look("zeros.sh").unwrap().content, Content::Text("ab\nrm -rf /\n".into()), "as a shell reads it");
        assert_eq!(look("large.sh").unwrap().content, Content::TooLarge);
        for none in ["out.sh", "fifo", "missing", ".", "/etc/passwd"] {
            assert!(look(none).is_none(), "{none}");
        }
        assert!(disk.read("/bin/sh").is_none());
        let before = look("program").unwrap().digest;
        fs::write(inside.join("program"), b"\x7fELF\0\0\0").unwrap();
        assert_ne!(look("program").unwrap().digest, before);
    }
}
