//! Command packs whose examples were found to hold are remembered in the state directory, by what they say and by the
//! program that checked them, so that they are not judged at every start.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::call::Digest;
use crate::config::Config;
use crate::facts::command::{Guard, PackError, PackSource};
use crate::state::private;

const FILE: &str = "packs-checked";
/// Lines of the file; with more it is begun anew.
const MOST: usize = 200;

/// Loads packs, and judges their examples where nobody did before.
pub(super) fn load(packs: &[PackSource], config: &Config) -> Result<Guard, PackError> {
    let guard = Guard::read(packs)?;
    if packs.is_empty() {
        return Ok(guard);
    }
    let key = Digest::of(format!("{} {}", env!("CARGO_PKG_VERSION"), guard.hash())).to_string();
    let file = config.places.state.join(FILE);
    let known = fs::read_to_string(&file).unwrap_or_default();
    // While the program is being worked on, one version is not like another.
    if !cfg!(debug_assertions) && known.lines().any(|line| line == key) {
        return Ok(guard);
    }
    if let Some(error) = guard.failing_examples(packs)?.into_iter().next() {
        return Err(error);
    }
    if !known.lines().any(|line| line == key) {
        remember(&file, &known, &key);
    }
    Ok(guard)
}

/// What cannot be remembered is checked again.
fn remember(file: &Path, known: &str, key: &str) {
    if !file.parent().is_some_and(Path::is_dir) {
        return;
    }
    let anew = known.lines().count() >= MOST;
    let opened = private().append(!anew).write(true).truncate(anew).create(true).open(file);
    let _ = opened.and_then(|mut file| writeln!(file, "{key}"));
}
