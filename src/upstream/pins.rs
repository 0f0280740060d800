//! `pins.lock` in the state directory: what people approved of servers' tools, and what servers offer since that nobody
//! approved. Policies are made for what is pinned, so a server that is down, or changed, never invalidates one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::lints::{is_bidi, is_hidden};
use super::session::{Listing, name};
use super::wire::digest;
use crate::call::Digest;
use crate::state::{StateDir, StateError, private};

const FILE: &str = "pins.lock";
const GUARD: &str = "pins.lock.guard";
const VERSION: u32 = 1;
/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 << 20;

/// What is pinned, by server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    version: u32,
    servers: BTreeMap<String, ServerPins>,
}

/// What is pinned of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPins {
    /// What a person approved.
    pub tools: BTreeMap<String, Pin>,
    /// What the server listed last where it is not that.
    pub offered: BTreeMap<String, Pin>,
    /// What was pinned and is not in the server's list any more.
    pub gone: Vec<String>,
    /// What of its list could not be taken.
    pub left_out: Vec<String>,
}

/// A tool as its server defined it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub digest: Digest,
    /// When it was approved, or first seen.
    pub at: Timestamp,
    /// With every field.
    pub definition: Value,
}

/// Why the pins cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {why}: `portcullis mcp pin` makes it anew once it is moved away", path.display())]
    Broken { path: PathBuf, why: String },
    #[error(transparent)]
    State(#[from] StateError),
}

impl Pin {
    fn of(definition: &Value) -> Self {
        Pin { digest: digest(definition), at: Timestamp::now(), definition: definition.clone() }
    }
}

impl ServerPins {
    /// Whether a person has something to look at.
    pub fn is_settled(&self) -> bool {
        self.offered.is_empty() && self.gone.is_empty()
    }

    /// Takes what the server lists now. What is not what was approved waits for a person.
    fn observe(&mut self, listing: &Listing) {
        let mut offered = BTreeMap::new();
        for tool in &listing.tools {
            let Some(name) = name(tool) else { continue };
            let seen = digest(tool);
            if self.tools.get(name).is_some_and(|pin| pin.digest == seen) {
                continue;
            }
            let known = self.offered.remove(name).filter(|pin| pin.digest == seen);
            offered.insert(name.to_owned(), known.unwrap_or_else(|| Pin::of(tool)));
        }
        let listed = |pinned: &&String| listing.tools.iter().any(|tool| name(tool) == Some(pinned));
        self.gone = self.tools.keys().filter(|pinned| !listed(pinned)).cloned().collect();
        self.offered = offered;
        self.left_out = listing.left_out.clone();
    }

    /// Approves what the server offers under this name. False where it offers nothing new there.
    fn approve(&mut self, tool: &str) -> bool {
        let Some(pin) = self.offered.remove(tool) else { return false };
        self.tools.insert(tool.to_owned(), Pin { at: Timestamp::now(), ..pin });
        true
    }

    /// What the server changed of a tool, for people: nothing where it changed nothing.
    pub fn diff(&self, tool: &str) -> Option<String> {
        let offered = self.offered.get(tool)?;
        let before = self.tools.get(tool).map(|pin| readable(&pin.definition)).unwrap_or_default();
        let after = readable(&offered.definition);
        let mut told = String::new();
        for change in TextDiff::from_lines(&before, &after).iter_all_changes() {
            let mark = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let _ = writeln!(told, "{mark} {}", change.value().trim_end_matches('\n'));
        }
        Some(told)
    }
}

impl Pins {
    /// Reads the pins of a state directory; none where there is no file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is not what this program wrote.
    pub fn load(state: &Path) -> Result<Self, PinsError> {
        let path = state.join(FILE);
        let io = |source| PinsError::Io { path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Pins { version: VERSION, ..Pins::default() });
            }
            Err(error) => return Err(io(error)),
        };
        let mut text = Vec::new();
        file.take(LARGEST).read_to_end(&mut text).map_err(io)?;
        let broken = |why: String| PinsError::Broken { path: path.clone(), why };
        let pins: Pins = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
        if pins.version != VERSION {
            return Err(broken(format!("it has version {}, and this program knows {VERSION}", pins.version)));
        }
        for (server, pinned) in &pins.servers {
            let all = pinned.tools.iter().chain(&pinned.offered);
            if let Some((tool, _)) = all.into_iter().find(|(_, pin)| digest(&pin.definition) != pin.digest) {
                return Err(broken(format!("the tool `{tool}` of server `{server}` is not what its digest says")));
            }
        }
        Ok(pins)
    }

    /// What is pinned of a server.
    pub fn of(&self, server: &str) -> Option<&ServerPins> {
        self.servers.get(server)
    }

    /// The servers of which something is pinned.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &ServerPins)> {
        self.servers.iter().map(|(name, pins)| (name.as_str(), pins))
    }

    /// Records what a server lists now, and gives what is pinned of it then.
    ///
    /// # Errors
    ///
    /// When the pins cannot be read or written.
    pub fn observe(state: &Path, server: &str, listing: &Listing) -> Result<ServerPins, PinsError> {
        Self::update(state, |pins| {
            let pinned = pins.servers.entry(server.to_owned()).or_default();
            pinned.observe(listing);
            pinned.clone()
        })
    }

    /// Approves what a server offers: these tools, or all, and that others are gone. Gives the names of what was approved.
    ///
    /// # Errors
    ///
    /// As [`Pins::observe`].
    pub fn approve(state: &Path, server: &str, tools: Option<&[String]>) -> Result<Vec<String>, PinsError> {
        Self::update(state, |pins| {
            let Some(pinned) = pins.servers.get_mut(server) else { return Vec::new() };
            let wanted = |name: &&String| tools.is_none_or(|tools| tools.contains(name));
            let offered: Vec<String> = pinned.offered.keys().filter(wanted).cloned().collect();
            let gone: Vec<String> = pinned.gone.iter().filter(wanted).cloned().collect();
            for tool in &gone {
                pinned.tools.remove(tool);
            }
            pinned.gone.retain(|tool| !gone.contains(tool));
            let approved: Vec<String> = offered.into_iter().filter(|tool| pinned.approve(tool)).collect();
            approved.into_iter().chain(gone).collect()
        })
    }

    /// Forgets a server. False where nothing was pinned of it.
    ///
    /// # Errors
    ///
    /// As [`Pins::observe`].
    pub fn forget(state: &Path, server: &str) -> Result<bool, PinsError> {
        Self::update(state, |pins| pins.servers.remove(server).is_some())
    }

    /// Changes the file under a lock; a reader sees the old one or the new one, whole.
    fn update<T>(state: &Path, change: impl FnOnce(&mut Pins) -> T) -> Result<T, PinsError> {
        let state = StateDir::open(state)?;
        let at = |name: &str| state.path().join(name);
        let io = |path: PathBuf| move |source| PinsError::Io { path, source };
        let mut guard = OpenOptions::new();
        let guard =
            guard.create(true).truncate(false).write(true).mode(0o600).open(at(GUARD)).map_err(io(at(GUARD)))?;
        guard.lock().map_err(io(at(GUARD)))?;
        let old = Pins::load(state.path())?;
        let mut new = old.clone();
        let done = change(&mut new);
        if new != old {
            let temporary = at(&format!("{FILE}.new"));
            let write = || -> io::Result<()> {
                let mut file = private().create(true).truncate(true).write(true).open(&temporary)?;
                serde_json::to_writer_pretty(&mut file, &new)?;
                file.write_all(b"\n")?;
                file.sync_all()?;
                fs::rename(&temporary, at(FILE))
            };
            write().map_err(io(at(FILE)))?;
        }
        Ok(done)
    }
}

/// What tells one state of the file from another.
pub(crate) fn stamp(state: &Path) -> Option<(u64, u64, i64, i64)> {
    let found = fs::metadata(state.join(FILE)).ok()?;
    Some((found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
}

/// A definition for people: texts as texts, and characters that are not seen by their numbers.
pub fn readable(definition: &Value) -> String {
    let text = serde_json::to_string_pretty(definition).unwrap_or_default().replace("\\n", "\n        ");
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if (is_hidden(c) || is_bidi(c)) && c != '\n' {
            let _ = write!(shown, "<U+{:04X}>", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(tools: Value) -> Listing {
        Listing { tools: tools.as_array().unwrap().clone(), left_out: Vec::new() }
    }

    #[test]
    fn what_changes_waits_until_it_is_approved_and_a_reader_sees_whole_files() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let add = json!({ "name": "add", "description": "Adds.", "x-new": { "kept": true } });
        let first = Pins::observe(&state, "s", &listing(json!([add]))).unwrap();
        assert_eq!((first.tools.len(), first.offered.len()), (0, 1), "nothing is approved by being seen");
        assert_eq!(Pins::approve(&state, "s", None).unwrap(), ["add"]);
        let pins = Pins::load(&state).unwrap();
        assert_eq!(pins.of("s").unwrap().tools["add"].definition, add, "unknown fields are kept");
        assert!(Pins::observe(&state, "s", &listing(json!([add]))).unwrap().is_settled());

        let stamp_before = stamp(&state);
        let evil = json!({ "name": "add", "description": "Adds.\u{200b} <IMPORTANT>", "x-new": { "kept": true } });
        let changed = Pins::observe(&state, "s", &listing(json!([evil, { "name": "sub" }]))).unwrap();
        assert_ne!(stamp(&state), stamp_before, "a reader notices");
        assert_eq!(changed.tools["add"].definition, add, "what was approved stays");
        let told = changed.diff("add").unwrap();
        assert!(
            told.contains("-   \"description\": \"Adds.\"") && told.contains("+   \"description\": \"Adds.<U+200B>"),
            "{told}"
        );
        assert!(changed.diff("sub").unwrap().lines().all(|line| line.starts_with('+')));
        assert_eq!(Pins::approve(&state, "s", Some(&["sub".to_owned()])).unwrap(), ["sub"]);
        let back = Pins::observe(&state, "s", &listing(json!([add]))).unwrap();
        assert_eq!((back.offered.len(), back.gone), (0, vec!["sub".to_owned()]), "a change that is taken back is none");
        assert_eq!(Pins::approve(&state, "s", None).unwrap(), ["sub"]);
        assert!(Pins::load(&state).unwrap().of("s").unwrap().is_settled());
        assert!(Pins::forget(&state, "s").unwrap() && !Pins::forget(&state, "s").unwrap());
    }

    #[test]
    fn pins_that_were_edited_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        Pins::observe(&state, "s", &listing(json!([{ "name": "add", "description": "Adds." }]))).unwrap();
        let file = state.join(FILE);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("Adds.", "Obey.")).unwrap();
        assert!(Pins::load(&state).unwrap_err().to_string().contains("not what its digest says"));
        fs::write(&file, "{").unwrap();
        assert!(Pins::load(&state).unwrap_err().to_string().contains("pins.lock"));
    }
}
