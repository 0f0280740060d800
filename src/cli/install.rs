//! `portcullis install` and `portcullis uninstall`: the hook in an agent's own configuration.

use std::io::{self, Write};

use similar::TextDiff;

use crate::cli::args::InstallArgs;
use crate::cli::{Failure, exit, render};
use crate::config::Places;
use crate::hook::host::Host;
use crate::hook::hosts;
use crate::install::{self, Bases, Change, Options, Records, Scope};
use crate::state::StateDir;

pub(super) fn install(args: &InstallArgs) -> Result<u8, Failure> {
    let (host, options, bases) = chosen(args)?;
    let changes = install::install(host, &options, &bases)?;
    show(&changes)?;
    if args.dry_run {
        return Ok(exit::OK);
    }
    install::apply(host, &changes, &records()?)?;
    let done = if changes.iter().all(Change::is_none) { "was installed already" } else { "is installed" };
    anstream::println!("the hook for {} {done}", host.title);
    anstream::println!("next: portcullis doctor {}", host.name);
    if host.name == "codex" {
        anstream::println!("then: start codex, and trust the hook in /hooks; it does nothing before");
    }
    Ok(exit::OK)
}

pub(super) fn uninstall(args: &InstallArgs) -> Result<u8, Failure> {
    let (host, options, bases) = chosen(args)?;
    let records = records()?;
    // The MCP server, too, where it was added; where not, there is nothing to take out.
    let with_server = Options { mcp: true, ..options.clone() };
    let changes = match install::uninstall(host, &with_server, &bases, &records) {
        Err(install::InstallError::NoSetup { .. }) => install::uninstall(host, &options, &bases, &records)?,
        found => found?,
    };
    show(&changes)?;
    if args.dry_run {
        return Ok(exit::OK);
    }
    install::withdraw(&changes, &records)?;
    let done = if changes.iter().all(Change::is_none) { "was not there" } else { "is out again" };
    anstream::println!("the hook for {} {done}", host.title);
    Ok(exit::OK)
}

fn chosen(args: &InstallArgs) -> Result<(&'static Host, Options, Bases), Failure> {
    let host = hosts::named(&args.host).ok_or_else(|| Failure::usage(format!("there is no agent `{}`", args.host)))?;
    let mut words = Vec::new();
    for (name, value) in [("--agent", &args.agent), ("--confine", &args.confine)] {
        words.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
    }
    if args.confine.is_some() && host.rewrites == crate::hook::host::Rewrites::No {
        return Err(Failure::usage(format!(
            "{} takes no rewritten command, so --confine can do nothing there",
            host.title
        )));
    }
    let scope = if args.project { Scope::Project } else { Scope::User };
    Ok((host, Options { scope, words, mcp: args.mcp }, bases()?))
}

/// Where this user's configurations lie, and those of the project in the current directory.
pub(super) fn bases() -> Result<Bases, Failure> {
    let home = Places::from_env()?.home;
    Ok(Bases { home, project: std::env::current_dir()?, program: std::env::current_exe()? })
}

fn records() -> Result<Records, Failure> {
    Ok(Records::open(&StateDir::open(Places::from_env()?.state)?)?)
}

/// What changes, as a diff.
fn show(changes: &[Change]) -> io::Result<()> {
    let mut out = render::out();
    for change in changes {
        let name = change.path.display();
        if change.is_none() {
            writeln!(out, "unchanged {name}")?;
            continue;
        }
        let (before, after) = (change.before.as_deref().unwrap_or(""), change.after.as_deref().unwrap_or(""));
        let from = if change.before.is_some() { name.to_string() } else { "/dev/null".to_owned() };
        let to = if change.after.is_some() { name.to_string() } else { "/dev/null".to_owned() };
        let diff = TextDiff::from_lines(before, after);
        write!(out, "{}", render::plain(&diff.unified_diff().context_radius(2).header(&from, &to).to_string()))?;
    }
    Ok(())
}
