//! Putting the hook into an agent's own configuration, and taking it out again.
//!
//! ```text
//! setups: what belongs into which file ─► json, or a file of its own ─► Change (before, after) ─► shown ─► written, with a record
//! ```
//!
//! - [`setups`] knows where each program's configuration lies and what it looks like.
//! - [`json`] edits files that others write, too, and leaves every byte that is not ours as it is.
//! - [`canary`] proves that what is installed holds.
//! - [`record`] keeps what was there before, so that it can be restored.

mod canary;
mod json;
mod record;
mod setups;

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

pub use self::canary::{Probe, Report, check};
pub use self::json::EditError;
use self::record::Record;
pub use self::record::Records;
pub use self::setups::{Bases, Options, Scope};
use self::setups::{Content, Wanted};
use crate::call::Digest;
use crate::files::{self, Author};
use crate::hook::host::Host;

/// What is to become of one file.
#[derive(Debug)]
pub struct Change {
    /// The file itself, where the name is a symbolic link to it.
    pub path: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
    mode: u32,
}

/// Why a configuration is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{}: {source}", path.display())]
    Edit { path: PathBuf, source: EditError },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{} is a file that `portcullis install` did not write: move it away, or call `{command}` from it", path.display()
    )]
    Foreign { path: PathBuf, command: String },
    #[error("{} is read-only: what manages it should add the hook, or `chmod u+w` it first", .0.display())]
    ReadOnly(PathBuf),
    #[error("{title} has no configuration that is known here: {advice}")]
    NoSetup { title: &'static str, advice: &'static str },
    #[error("the path of this program is not UTF-8, so no configuration can name it")]
    Program,
    #[error("{} leads nowhere: make what it names first", .0.display())]
    Dangling(PathBuf),
    #[error("what was there before cannot be kept: {0}")]
    State(#[from] crate::state::StateError),
}

impl Change {
    /// Whether there is anything to do.
    pub fn is_none(&self) -> bool {
        self.before == self.after
    }
}

/// What installing would change. Files that are as they should be are not among it.
///
/// # Errors
///
/// When a file cannot be read, or is one that cannot be edited.
pub fn install(host: &Host, options: &Options, bases: &Bases) -> Result<Vec<Change>, InstallError> {
    let wanted = setups::wanted(host, options, bases)?;
    wanted.into_iter().map(|wanted| changed(host, wanted, true, None)).collect()
}

/// What uninstalling would change: exactly what was there before comes back, where nobody changed the file since.
///
/// # Errors
///
/// As [`install`].
pub fn uninstall(
    host: &Host,
    options: &Options,
    bases: &Bases,
    records: &Records,
) -> Result<Vec<Change>, InstallError> {
    let wanted = setups::wanted(host, options, bases)?;
    wanted.into_iter().map(|wanted| changed(host, wanted, false, Some(records))).collect()
}

fn changed(host: &Host, wanted: Wanted, install: bool, records: Option<&Records>) -> Result<Change, InstallError> {
    let path = real(&wanted.path)?;
    let io = |source| InstallError::Io { path: path.clone(), source };
    let before = files::read_text(&path, Author::Anyone).map_err(io)?;
    let edit = |source| InstallError::Edit { path: path.clone(), source };
    let known = records.and_then(|records| records.of(&path, before.as_deref()));
    let after = match (&wanted.content, &before) {
        _ if known.is_some() => known.and_then(|record| record.before),
        (Content::Json(edits), _) if install => Some(json::add(before.as_deref(), host.name, edits).map_err(edit)?),
        // Whatever else is wrong with a file, nothing of ours is in it.
        (_, Some(text)) if !install && !text.contains("portcullis") => before.clone(),
        (Content::Json(_), None) => None,
        (Content::Json(edits), Some(text)) => Some(json::remove(text, host.name, edits).map_err(edit)?),
        (Content::Toml(edit), _) if install => Some(edit.add(before.as_deref()).map_err(edit_error(&path))?),
        (Content::Toml(_), None) => None,
        (Content::Toml(edit), Some(text)) => Some(edit.remove(text).map_err(edit_error(&path))?),
        (Content::Own { text, command }, Some(found)) if !found.contains(setups::OWN_MARK) => match install {
            true if found != text => return Err(InstallError::Foreign { path, command: command.clone() }),
            _ => before.clone(),
        },
        (Content::Own { text, .. }, _) => install.then(|| text.clone()),
    };
    Ok(Change { path, before, after, mode: wanted.mode })
}

fn edit_error(path: &Path) -> impl Fn(EditError) -> InstallError {
    let path = path.to_owned();
    move |source| InstallError::Edit { path: path.clone(), source }
}

/// The file that a name leads to.
fn real(path: &Path) -> Result<PathBuf, InstallError> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(_) if path.is_symlink() => Err(InstallError::Dangling(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(source) => Err(InstallError::Io { path: path.to_owned(), source }),
    }
}

/// Writes the changes of an installation, each with a record of what was there before.
///
/// # Errors
///
/// At the first file that cannot be written; those before it are.
pub fn apply(host: &Host, changes: &[Change], records: &Records) -> Result<(), InstallError> {
    writable(changes)?;
    for change in changes.iter().filter(|change| !change.is_none()) {
        let before = match records.of(&change.path, change.before.as_deref()) {
            // Installed before, and not changed since: what was there then.
            Some(record) => record.before,
            None => without(host, change)?,
        };
        let missing: Vec<PathBuf> =
            change.path.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        write(change)?;
        if let Some(after) = &change.after {
            let record = Record { path: change.path.clone(), before, after: Digest::of(after), made: missing };
            records.keep(&record)?;
        }
    }
    Ok(())
}

/// What was there before, without an older installation of ours.
fn without(host: &Host, change: &Change) -> Result<Option<String>, InstallError> {
    let Some(text) = &change.before else { return Ok(None) };
    if text.contains(setups::OWN_MARK) {
        return Ok(None);
    }
    match json::is_json(&change.path) {
        true => json::remove(text, host.name, &[]).map(Some).map_err(edit_error(&change.path)),
        false => Ok(Some(text.clone())),
    }
}

/// Writes the changes of an uninstallation, and forgets the records.
///
/// # Errors
///
/// As [`apply`].
pub fn withdraw(changes: &[Change], records: &Records) -> Result<(), InstallError> {
    writable(changes)?;
    let mut made = Vec::new();
    for change in changes {
        if !change.is_none() {
            write(change)?;
        }
        made.extend(records.forget(&change.path)?.into_iter().flat_map(|record| record.made));
    }
    // Directories that were made for it go where nothing else came to lie in them, the innermost first.
    made.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
    for dir in made {
        let _ = fs::remove_dir(dir);
    }
    Ok(())
}

/// Says of all of them beforehand whether they may be written: half an installation is worse than none.
fn writable(changes: &[Change]) -> Result<(), InstallError> {
    for change in changes.iter().filter(|change| !change.is_none()) {
        match fs::metadata(&change.path) {
            Ok(found) if found.permissions().mode() & 0o200 == 0 => {
                return Err(InstallError::ReadOnly(change.path.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Puts the new text in the place of the old in one step, with the old file's mode and owner.
fn write(change: &Change) -> Result<(), InstallError> {
    let path = &change.path;
    let failed = |source| InstallError::Io { path: path.clone(), source };
    let Some(text) = &change.after else {
        return fs::remove_file(path).map_err(failed);
    };
    let dir = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = dir.join(format!(".{name}.portcullis-{}", std::process::id()));
    let written = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        match fs::metadata(path) {
            Ok(found) => {
                use std::os::unix::fs::MetadataExt;
                // Who may not give files away keeps them.
                let _ = chown(&beside, Some(found.uid()), Some(found.gid()));
                file.set_permissions(found.permissions())?;
            }
            Err(_) => file.set_permissions(Permissions::from_mode(change.mode))?,
        }
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    written().map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}
