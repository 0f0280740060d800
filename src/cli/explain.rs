//! `portcullis explain`: how the command guard understands a command. Nothing runs, and no other stage is asked.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::json;

use crate::cli::args::ExplainArgs;
use crate::cli::on_disk::Looking;
use crate::cli::render::{self, BOLD, DIM, colour, line};
use crate::cli::{Failure, run};
use crate::config::Config;
use crate::facts::Surroundings;
use crate::facts::command::{Parse, Site, SiteKind, Text, Understanding};
use crate::gateway;
use crate::verdict::{Finding, Severity, Stage, StageVerdict};

/// Words of a site and lines of a list that are printed; `--json` has all of them.
const MOST: usize = 40;

pub(super) fn run(args: &ExplainArgs) -> Result<u8, Failure> {
    let config = Config::from_env()?;
    let directory = |named: Option<&PathBuf>, or: PathBuf| -> Result<PathBuf, Failure> {
        let path = named.unwrap_or(&or);
        path.canonicalize().map_err(|e| Failure::usage(format!("directory `{}` cannot be opened: {e}", path.display())))
    };
    let workspace = directory(args.workspace.as_ref(), std::env::current_dir()?)?;
    let cwd = directory(args.cwd.as_ref(), workspace.clone())?;
    let guard = gateway::guard(&config, &workspace)?;
    let here = Surroundings {
        cwd,
        read_roots: config.file.read_roots.clone(),
        write_roots: config.file.write_roots.clone(),
        gateway: config.places.own(),
        ..Surroundings::new(&workspace, &config.places.home)
    };
    let command = text_of(&args.command);
    let understood = Looking::new(&guard, &here)?.understand(&command);
    let verdict = StageVerdict::new(Stage::Command, understood.facts.findings.clone());
    let shown = if args.json {
        let told = json!({ "command": command, "decision": verdict.decision, "understood": understood });
        writeln!(io::stdout(), "{told}")
    } else {
        text(&mut anstream::stdout().lock(), &command, &verdict, &understood)
    };
    Ok(render::told(shown, run::code(verdict.decision)))
}

/// One argument is the command's text; several are its words.
fn text_of(words: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c));
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    match words {
        [text] => text.clone(),
        words => words.iter().map(quoted).collect::<Vec<_>>().join(" "),
    }
}

fn text(out: &mut impl Write, command: &str, verdict: &StageVerdict, understood: &Understanding) -> io::Result<()> {
    let style = colour(verdict.decision);
    writeln!(out, "{style}{}{style:#}  {BOLD}{}{BOLD:#}", verdict.decision, line(command))?;
    match understood.facts.parse {
        Parse::Complete => {}
        Parse::Partial => writeln!(out, "  {DIM}some of it cannot be known; `…` stands for that{DIM:#}")?,
        Parse::Opaque => writeln!(out, "  {DIM}nothing is known of it{DIM:#}")?,
    }
    if !understood.sites.is_empty() {
        writeln!(out, "\nWhat it runs")?;
    }
    for (number, site) in understood.sites.iter().enumerate().take(MOST) {
        self::site(out, number, site, understood)?;
    }
    more(out, understood.sites.len())?;
    if !understood.writes.is_empty() {
        writeln!(out, "\nWhat its redirects open")?;
    }
    for opened in understood.writes.iter().take(MOST) {
        let paths: Vec<String> = opened.paths.iter().map(shown).collect();
        let how = if opened.append { "append" } else { "overwrite" };
        writeln!(out, "  {how}: {}", paths.join(" or "))?;
    }
    more(out, understood.writes.len())?;
    if !verdict.findings.is_empty() {
        writeln!(out, "\nWhat stands against it")?;
    }
    for finding in &verdict.findings {
        render::finding(out, "", finding, Some(command))?;
        writeln!(out, "           {DIM}to pass:{DIM:#} {}", way_out(finding))?;
    }
    Ok(())
}

fn more(out: &mut impl Write, count: usize) -> io::Result<()> {
    if count > MOST { writeln!(out, "  {DIM}and {} more: see --json{DIM:#}", count - MOST) } else { Ok(()) }
}

fn site(out: &mut impl Write, number: usize, site: &Site, understood: &Understanding) -> io::Result<()> {
    let indent = 2 * site.through.len();
    let mut words: Vec<String> = site.words.iter().take(MOST).map(shown).collect();
    if site.words.len() > MOST {
        words.push("…".to_owned());
    }
    write!(out, "{:>3}  {:indent$}{BOLD}{}{BOLD:#}", number + 1, "", words.join(" "))?;
    match site.kind {
        SiteKind::Program => {}
        SiteKind::Builtin => write!(out, "  {DIM}(builtin){DIM:#}")?,
        SiteKind::Function => write!(out, "  {DIM}(function){DIM:#}")?,
    }
    let through = |index: &usize| understood.sites.get(*index)?.words.first().map(shown);
    let through: Vec<String> = site.through.iter().filter_map(through).collect();
    if !through.is_empty() {
        write!(out, "  {DIM}through {}{DIM:#}", through.join(", "))?;
    }
    writeln!(out)?;
    let first = understood.sites.first().map(|site| &site.cwd);
    if first != Some(&site.cwd) {
        let places: Vec<String> = site.cwd.iter().map(shown).collect();
        writeln!(out, "     {:indent$}{DIM}in{DIM:#} {}", "", places.join(" or "))?;
    }
    for effect in &site.effects {
        let recursive = if effect.recursive { ", recursive" } else { "" };
        let on = if effect.on.is_empty() { String::new() } else { format!(": {}", effect.on.join(", ")) };
        writeln!(out, "     {:indent$}{DIM}effect{DIM:#} {}{recursive}{on}", "", effect.effect)?;
    }
    for path in site.paths.iter().take(MOST) {
        let access = format!("{:?}", path.access).to_lowercase();
        writeln!(out, "     {:indent$}{DIM}{access}{DIM:#} {}", "", shown(&path.path))?;
    }
    Ok(())
}

/// A text for one line of a terminal; quoted where its end would not be seen.
fn shown(text: &Text) -> String {
    let text = line(&text.to_string());
    if text.is_empty() || text.contains([' ', '\'', '"', '\\']) { format!("{text:?}") } else { text }
}

fn way_out(finding: &Finding) -> String {
    let id = line(&finding.id);
    match finding.severity {
        Severity::Note => "nothing is needed".to_owned(),
        Severity::Warn => "an operator's approval (`portcullis approvals`)".to_owned(),
        Severity::Review => "a reviewer's approval (`portcullis approvals`)".to_owned(),
        Severity::Deny => {
            format!(
                "write it otherwise, or let an operator lower the rule: `[[override]]` of `{id}` in a pack of their own"
            )
        }
        Severity::Fatal => "write it otherwise: nothing overrides a fatal rule".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_put_together_as_a_shell_would_take_them_apart() {
        let text = |words: &[&str]| text_of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(text(&["ls | wc"]), "ls | wc");
        assert_eq!(text(&["echo", "it's | x", ""]), r"echo 'it'\''s | x' ''");
    }
}
