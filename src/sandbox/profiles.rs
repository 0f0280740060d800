//! Where profiles come from: what the gateway brings, directories of a user and of a workspace, and profiles that extend
//! others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::profile::{Profile, ProfileError};
use crate::files::{self, Author};

/// The profiles that the gateway brings: file name and text.
const BUILT_IN: &[(&str, &str)] = &[
    ("workspace-write.toml", include_str!("../../sandbox-profiles/workspace-write.toml")),
    ("read-only.toml", include_str!("../../sandbox-profiles/read-only.toml")),
    ("network.toml", include_str!("../../sandbox-profiles/network.toml")),
    ("build.toml", include_str!("../../sandbox-profiles/build.toml")),
    ("debug.toml", include_str!("../../sandbox-profiles/debug.toml")),
    ("landlock-only.toml", include_str!("../../sandbox-profiles/landlock-only.toml")),
    ("mcp-server.toml", include_str!("../../sandbox-profiles/mcp-server.toml")),
];

/// The key that names the profile that another one starts from.
const EXTENDS: &str = "extends";

/// The profiles there are, by name.
#[derive(Clone, Debug)]
pub struct Profiles {
    by_name: BTreeMap<String, Arc<Profile>>,
    /// As they were written, with what they extend put in.
    written: BTreeMap<String, Table>,
}

/// A file, read and not yet understood.
struct Source {
    file: PathBuf,
    text: String,
    table: Table,
}

impl Source {
    fn parse(file: &Path, text: &str) -> Result<Self, ProfileError> {
        let table = parse::<Table>(file, text)?;
        Ok(Source { file: file.to_owned(), text: text.to_owned(), table })
    }

    fn read(file: &Path, author: Author) -> Result<Self, ProfileError> {
        let unreadable = |source| ProfileError::Unreadable { file: file.to_owned(), source };
        let text = files::read_text(file, author).map_err(unreadable)?;
        Source::parse(file, &text.ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))?)
    }

    fn name(&self) -> String {
        self.table.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn extends(&self) -> Option<&str> {
        self.table.get(EXTENDS).and_then(Value::as_str)
    }

    /// The profile, where the whole table is known.
    fn profile(&self, whole: &Table) -> Result<Profile, ProfileError> {
        let error = match Profile::deserialize_from(whole.clone()) {
            Ok(profile) => return Ok(profile),
            Err(error) => error,
        };
        let missing = missing(whole);
        // What is there and wrong comes first: it is often the misspelling of what is missing.
        if !missing.is_empty() && error.starts_with("missing field") {
            let fields = if missing.len() == 1 { "field" } else { "fields" };
            let message = format!(
                "missing {fields} {}: write what is missing, or begin with `{EXTENDS} = \"{}\"` and say only what is other",
                missing.join(", "),
                super::DEFAULT_PROFILE
            );
            return Err(ProfileError::Invalid { file: self.file.clone(), line: 1, column: 1, message });
        }
        // The place is known where the file by itself has the same fault, as it has unless something is missing.
        let mut own = self.text.clone();
        if let Some(line) = own.lines().find(|line| line.trim_start().starts_with(EXTENDS)).map(str::to_owned) {
            own = own.replacen(&line, &format!("#{}", line.get(1..).unwrap_or_default()), 1);
        }
        match parse::<Profile>(&self.file, &own) {
            Err(placed) if self.extends().is_none() || placed.to_string().ends_with(&error) => Err(placed),
            _ => Err(ProfileError::Invalid { file: self.file.clone(), line: 1, column: 1, message: error }),
        }
    }
}

impl Profile {
    /// Parses one profile that extends no other; `file` is for messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ProfileError> {
        parse(file, text)
    }

    fn deserialize_from(table: Table) -> Result<Self, String> {
        table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }
}

/// Every field that a profile must have and this one has not.
fn missing(own: &Table) -> Vec<String> {
    let complete = BUILT_IN.first().and_then(|(_, text)| toml::from_str::<Table>(text).ok()).unwrap_or_default();
    let needed = |without: Table| Profile::deserialize_from(without).is_err();
    let mut found = Vec::new();
    for (key, value) in &complete {
        let without = |part: Option<&String>| {
            let mut table = complete.clone();
            match (part, table.get_mut(key)) {
                (Some(part), Some(Value::Table(inner))) => inner.remove(part),
                _ => table.remove(key),
            };
            table
        };
        match (own.get(key), value) {
            (None, _) if needed(without(None)) => found.push(format!("`{key}`")),
            (Some(Value::Table(own)), Value::Table(parts)) => {
                let absent = parts.keys().filter(|part| !own.contains_key(*part));
                found.extend(absent.filter(|part| needed(without(Some(part)))).map(|part| format!("`{key}.{part}`")));
            }
            _ => {}
        }
    }
    found
}

fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, ProfileError> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        ProfileError::Invalid { file: file.to_owned(), line, column, message: error.message().to_owned() }
    })
}

/// A table with another one's entries over its own; tables in tables likewise, everything else as a whole.
fn over(base: &Table, own: &Table) -> Table {
    let mut both = base.clone();
    for (key, value) in own {
        let value = match (both.get(key), value) {
            (Some(Value::Table(base)), Value::Table(own)) => Value::Table(over(base, own)),
            _ => value.clone(),
        };
        both.insert(key.clone(), value);
    }
    both
}

/// Line and column, both from 1, of a byte in a text; columns count characters.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

impl Profiles {
    /// The profiles that the gateway brings.
    pub fn built_in() -> Result<Self, ProfileError> {
        let mut profiles = Profiles { by_name: BTreeMap::new(), written: BTreeMap::new() };
        let sources = BUILT_IN.iter().map(|(file, text)| Source::parse(Path::new(file), text));
        profiles.add(sources.collect::<Result<_, _>>()?)?;
        Ok(profiles)
    }

    /// Adds the profiles of a user's directory (`*.toml`), replacing those of the same name. A directory that does not
    /// exist holds none. On an error nothing is changed.
    pub fn load(&mut self, directory: &Path, author: Author) -> Result<(), ProfileError> {
        let unreadable = |source| ProfileError::Unreadable { file: directory.to_owned(), source };
        let files = files::list(directory, "toml").map_err(unreadable)?.unwrap_or_default();
        let sources = files.iter().map(|file| Source::read(file, author)).collect::<Result<_, _>>()?;
        self.add(sources)
    }

    /// Narrows the profiles by those of the same name in a workspace's directory. Names that only the workspace has are
    /// left out: there is nothing they could narrow.
    pub fn narrow(&mut self, directory: &Path) -> Result<(), ProfileError> {
        let mut theirs = self.clone();
        theirs.load(directory, Author::Workspace)?;
        for (name, mine) in &mut self.by_name {
            match theirs.by_name.get(name) {
                Some(by) if !Arc::ptr_eq(by, mine) => *mine = Arc::new(mine.narrowed(by)),
                _ => {}
            }
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.by_name.get(name)
    }

    /// The profile of this name, or an error that lists the names there are.
    pub fn named(&self, name: &str) -> Result<Arc<Profile>, ProfileError> {
        self.get(name).cloned().ok_or_else(|| ProfileError::Unknown {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// All profiles, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.by_name.values()
    }

    /// Adds all of some files, or none.
    fn add(&mut self, sources: Vec<Source>) -> Result<(), ProfileError> {
        let mut by_name: BTreeMap<String, &Source> = BTreeMap::new();
        for source in &sources {
            if source.name().is_empty() {
                let message = "missing field `name`".to_owned();
                return Err(ProfileError::Invalid { file: source.file.clone(), line: 1, column: 1, message });
            }
            if by_name.insert(source.name(), source).is_some() {
                return Err(ProfileError::Twice { file: source.file.clone(), name: source.name() });
            }
        }
        let mut fresh = Vec::new();
        for source in &sources {
            let whole = self.whole(source, &by_name, sources.len())?;
            fresh.push((Arc::new(source.profile(&whole)?), whole));
        }
        for (profile, whole) in fresh {
            self.written.insert(profile.name.clone(), whole);
            self.by_name.insert(profile.name.clone(), profile);
        }
        Ok(())
    }

    /// What a file says, over what it extends: a profile beside it, or one that there was before. It may extend the one
    /// that it replaces.
    fn whole(&self, source: &Source, beside: &BTreeMap<String, &Source>, depth: usize) -> Result<Table, ProfileError> {
        let mut own = source.table.clone();
        own.remove(EXTENDS);
        let Some(base) = source.extends() else { return Ok(own) };
        let base = match beside.get(base) {
            Some(_) if depth == 0 => {
                return Err(ProfileError::Circle { file: source.file.clone(), name: source.name() });
            }
            Some(other) if source.name() != base => self.whole(other, beside, depth - 1)?,
            _ => self.written.get(base).cloned().ok_or_else(|| ProfileError::Unknown {
                name: base.to_owned(),
                known: self.by_name.keys().cloned().collect(),
            })?,
        };
        Ok(over(&base, &own))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::profile::{DEFAULT_PROFILE, Reach};

    fn built_in(name: &str) -> Profile {
        (**Profiles::built_in().unwrap().get(name).unwrap()).clone()
    }

    fn text(name: &str) -> &'static str {
        BUILT_IN.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name)).unwrap().1
    }

    #[test]
    fn built_in_profiles_differ_in_what_they_say_and_share_one_system() {
        let (default, read, net) = (built_in(DEFAULT_PROFILE), built_in("read-only"), built_in("network"));
        assert_eq!(default.filesystem.workspace, Reach::Write);
        assert_eq!(read.filesystem.workspace, Reach::Read);
        assert!(net.network.internet && !default.network.internet && !read.network.internet);
        let (build, debug) = (built_in("build"), built_in("debug"));
        assert!(!build.caches.is_empty() && default.caches.is_empty());
        assert!(built_in("landlock-only").at_most < default.at_most);
        for other in [&read, &net, &debug, &built_in("landlock-only")] {
            assert_eq!(other.filesystem.system, default.filesystem.system, "{}: the lists have drifted", other.name);
            assert_eq!(other.environment, default.environment, "{}: the environments have drifted", other.name);
            assert_ne!(other.digest(), default.digest(), "{}: same digest as another profile", other.name);
        }
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let good = text(DEFAULT_PROFILE);
        for (from, to, line_of, says) in [
            ("read = []", "read = [\"relative\"]", "read = [", "start it with `/`"),
            ("read = []", "read = [\"/a/../etc\"]", "read = [", "write the path out"),
            ("read = []", "read = [\"/\"]", "read = [", "would grant everything"),
            ("read = []", "read = [\"/etc/*/x\"]", "read = [", "a `*` can only end"),
            ("read = []", "raed = []", "raed", "unknown field `raed`"),
            ("landlock-abi = 6", "landlock-abi = 2", "landlock-abi", "use 3 or more"),
            ("wall-seconds = 600", "wall-seconds = 0", "wall-seconds", "nonzero"),
            ("workspace = \"write\"", "workspace = \"all\"", "workspace = ", "unknown variant `all`"),
        ] {
            let bad = good.replace(from, to);
            let line = bad.lines().position(|l| l.starts_with(line_of)).unwrap() + 1;
            let error = Profile::parse(Path::new("my/p.toml"), &bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("my/p.toml:{line}:")), "{to}: wrong place: {error}");
            assert!(error.contains(says), "{to}: expected {says:?} in {error}");
        }
    }

    #[test]
    fn a_users_directory_adds_and_replaces_and_a_workspaces_only_narrows() {
        let (user, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(user.path().join("a.toml"), text("network").replace("\"network\"", "\"mine\"")).unwrap();
        fs::write(workspace.path().join("b.toml"), text("read-only").replace("\"read-only\"", "\"mine\"")).unwrap();
        fs::write(workspace.path().join("c.toml"), text("network").replace("\"network\"", "\"theirs\"")).unwrap();
        let mut profiles = Profiles::built_in().unwrap();
        profiles.load(user.path(), Author::Operator).unwrap();
        assert!(profiles.get("mine").unwrap().network.internet);
        profiles.narrow(workspace.path()).unwrap();
        assert!(!profiles.get("mine").unwrap().network.internet, "the workspace could not narrow");
        assert!(profiles.get("theirs").is_none(), "the workspace could add a profile");
        fs::write(user.path().join("b.toml"), text("network").replace("\"network\"", "\"mine\"")).unwrap();
        let error = profiles.load(user.path(), Author::Operator).unwrap_err().to_string();
        assert!(error.contains("`mine` is defined twice"), "{error}");
    }

    #[test]
    fn a_profile_says_only_where_it_differs_from_what_it_extends() {
        let user = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(user.path().join(name), text).unwrap();
        write("a.toml", "name = \"a\"\nextends = \"b\"\n[limits]\nprocesses = 5\n");
        write("b.toml", "name = \"b\"\nextends = \"network\"\ndescription = \"mine\"\n[limits]\nopen-files = 7\n");
        write("c.toml", "name = \"network\"\nextends = \"network\"\n[network]\ninternet = false\n");
        let mut profiles = Profiles::built_in().unwrap();
        profiles.load(user.path(), Author::Operator).unwrap();
        let a = profiles.get("a").unwrap();
        assert_eq!((a.limits.processes.get(), a.limits.open_files.get(), a.description.as_str()), (5, 7, "mine"));
        assert!(!a.network.internet, "what lies beside comes before what there was");
        assert_eq!(a.limits.file_bytes, built_in("network").limits.file_bytes);
        for (text, says) in [
            ("name = \"d\"\nextends = \"e\"\n", "there is no sandbox profile `e`"),
            ("name = \"d\"\nextends = \"network\"\nlimts = 1\n", "d.toml:3:1: unknown field `limts`"),
            ("name = \"d\"\nextends = \"network\"\n[limits]\nprocesses = 0\n", "nonzero"),
            ("extends = \"network\"\n", "missing field `name`"),
            ("name = \"d\"\n", "missing field"),
            ("name = \"d\"\nextends = \"a\"\n[caches]\nX = \"../y\"\n", "is no name of a cache"),
        ] {
            write("d.toml", text);
            let error = profiles.load(user.path(), Author::Operator).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        write("d.toml", "name = \"d\"\nextends = \"f\"\n");
        write("f.toml", "name = \"f\"\nextends = \"d\"\n");
        assert!(profiles.load(user.path(), Author::Operator).unwrap_err().to_string().contains("extends itself"));
        assert!(profiles.get("d").is_none());
    }
}
