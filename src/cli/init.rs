//! `portcullis init`: a commented configuration to start from.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::cli::args::InitArgs;
use crate::cli::{Failure, exit, mcp_client};
use crate::config::Places;

const CONFIGURATION: &str = include_str!("init.toml");

const POLICY: &str = r#"// Policies of your own, beside the shipped set. `portcullis policy check` validates them.
// A policy that asks is a forbid that an approval lifts:
//
// @id("mine.ask-before-push")
// @reason("pushing publishes work")
// forbid (principal, action == Action::"Bash", resource)
// when { context.command.programs.contains("git") && context.command.effects.contains("send") }
// unless { context.approval.level >= 1 };
"#;

pub(super) fn run(args: InitArgs) -> Result<u8, Failure> {
    if let Some(client) = args.mcp_client {
        return mcp_client::print(client);
    }
    let places = Places::from_env()?;
    let files = [("portcullis.toml", CONFIGURATION), ("policies/mine.cedar", POLICY)];
    for (name, text) in files {
        let path = places.config.join(name);
        if args.dry_run {
            writeln!(io::stdout(), "# {}\n{text}", path.display())?;
            continue;
        }
        match write_new(&path, text) {
            Ok(()) => anstream::println!("wrote {}", path.display()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                anstream::println!("kept  {} (it exists)", path.display());
            }
            Err(error) => return Err(Failure::usage(format!("cannot write {}: {error}", path.display()))),
        }
    }
    if !args.dry_run {
        anstream::println!("next: portcullis doctor");
    }
    Ok(exit::OK)
}

/// Writes a file that does not exist yet, readable by its owner alone.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        // Half a configuration is worse than none.
        let _ = fs::remove_file(path);
    })
}
