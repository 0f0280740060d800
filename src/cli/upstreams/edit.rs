//! Changes of `portcullis.toml` that leave everything else in it as it is.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use toml_edit::DocumentMut;

use crate::cli::Failure;

/// Adds a table at the end of the file, which is made where it is missing.
pub(super) fn append(file: &Path, table: &str) -> Result<(), Failure> {
    let mut text = read(file)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(table);
    write(file, &text)
}

/// Removes a server's table. False where there is none.
pub(super) fn remove(file: &Path, server: &str) -> Result<bool, Failure> {
    let mut document: DocumentMut = read(file)?.parse()?;
    let Some(servers) = document.get_mut("upstreams").and_then(|item| item.as_table_like_mut()) else {
        return Ok(false);
    };
    if servers.remove(server).is_none() {
        return Ok(false);
    }
    if servers.is_empty() {
        document.remove("upstreams");
    }
    write(file, &document.to_string())?;
    Ok(true)
}

fn read(file: &Path) -> Result<String, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure::usage(format!("cannot read {}: {error}", file.display()))),
    }
}

/// Replaces the file as a whole, readable by its owner alone.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let replace = || -> io::Result<()> {
        if let Some(dir) = file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        // A file that is a link to where somebody keeps it stays one.
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let temporary = file.with_extension("toml.new");
        let mut new = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        fs::rename(&temporary, &file)
    };
    replace().map_err(|error| Failure::usage(format!("cannot write {}: {error}", file.display())))
}
