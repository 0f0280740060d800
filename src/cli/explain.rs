//! `portcullis explain`: how the command guard understands a command, and what the firewall as a whole answers to it.
//! Nothing runs and nothing is recorded.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::call::Request;
use crate::cli::args::ExplainArgs;
use crate::cli::on_disk::Looking;
use crate::cli::render::{self, BOLD, DIM, colour, line};
use crate::cli::{Failure, asked, run};
use crate::config::Config;
use crate::facts::Surroundings;
use crate::facts::command::{Parse, Site, SiteKind, Text, Understanding};
use crate::gateway::{self, Gateway, Judged};
use crate::verdict::{Finding, Severity, Stage};

/// Words of a site and lines of a list that are printed; `--json` has all of them.
const MOST: usize = 40;

pub(super) fn run(args: &ExplainArgs) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    let caller = asked::caller(&gateway, &args.who)?;
    let command = text_of(&args.command);
    let request = caller.request("Bash".to_owned(), json!({ "command": command }));
    let judged = gateway.judge(&caller, Request { cwd: args.who.cwd.clone(), ..request });
    let understood = understand(&gateway.config(), &caller.workspace, &judged, &command)?;
    let shown = if args.json {
        let mut told = judged.report();
        told.insert("command".to_owned(), command.into());
        told.insert("understood".to_owned(), serde_json::to_value(&understood)?);
        writeln!(io::stdout(), "{}", Value::Object(told))
    } else {
        text(&mut render::out(), &command, &judged, &understood)
    };
    Ok(render::told(shown, run::code(judged.verdict.decision)))
}

/// The command taken apart, where the call would start.
fn understand(config: &Config, workspace: &Path, judged: &Judged, command: &str) -> Result<Understanding, Failure> {
    let here = config.surroundings(workspace);
    let cwd = judged.call.as_ref().map_or(here.cwd.clone(), |call| call.cwd.clone());
    let (guard, here) = (gateway::guard(config, workspace)?, Surroundings { cwd, ..here });
    Ok(Looking::new(&guard, &here)?.understand(command))
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

fn text(out: &mut impl Write, command: &str, judged: &Judged, understood: &Understanding) -> io::Result<()> {
    let verdict = &judged.verdict;
    let style = colour(verdict.decision);
    writeln!(out, "{style}{}{style:#}  {BOLD}{}{BOLD:#}", verdict.decision, line(command))?;
    let stages = verdict.stages.iter().map(|stage| format!("{} {}", stage.stage.as_str(), stage.decision.word()));
    writeln!(out, "  {DIM}{}{DIM:#}", stages.collect::<Vec<_>>().join(", "))?;
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
    if verdict.findings().next().is_some() {
        writeln!(out, "\nWhat stands against it")?;
    }
    for (stage, finding) in verdict.findings() {
        render::finding(out, stage.map_or("call", Stage::as_str), finding, Some(command))?;
        writeln!(out, "           {DIM}to pass:{DIM:#} {}", way_out(stage, finding))?;
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

/// What lets a call through in spite of a finding.
fn way_out(stage: Option<Stage>, finding: &Finding) -> String {
    let id = line(&finding.id);
    let excepted = format!("`[[exceptions]]` from `{id}` in portcullis.toml, for a while and in one place");
    match (finding.severity, stage) {
        (Severity::Note, _) => "nothing is needed".to_owned(),
        (Severity::Fatal, _) => "write it otherwise: nothing overrides a fatal rule".to_owned(),
        (Severity::Warn, Some(Stage::Command)) => {
            format!("an operator's approval (`portcullis approvals`), or {excepted}")
        }
        (Severity::Warn, _) => "an operator's approval (`portcullis approvals`)".to_owned(),
        (Severity::Review, Some(Stage::Command)) => {
            format!("a reviewer's approval (`portcullis approvals`), or {excepted}")
        }
        (Severity::Review, _) => "a reviewer's approval (`portcullis approvals`)".to_owned(),
        (Severity::Deny, Some(Stage::Command)) => format!(
            "write it otherwise; an operator can except it ({excepted}), or lower the rule everywhere (`[[override]]` of \
             `{id}` in a pack of their own)"
        ),
        (Severity::Deny, Some(Stage::Policy)) => {
            "write it otherwise; an operator can change the policy (exceptions are from command rules alone)".to_owned()
        }
        (Severity::Deny, Some(Stage::Path)) => {
            "name another path; an operator can make the place an extra root (`read_roots`, `write_roots`)".to_owned()
        }
        (Severity::Deny, Some(Stage::Sandbox) | None) => "see to what it says".to_owned(),
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
