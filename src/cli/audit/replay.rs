//! `audit replay`: what other rules would have changed.

use std::io::Write;
use std::sync::Arc;

use super::when::when;
use crate::audit::replay::{Library, Replayed, Rules, Settings, replay};
use crate::cli::args::ReplayArgs;
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::facts::command::{Guard, PackSource, Trust as PackTrust};
use crate::files::Author;
use crate::firewall::policy::{Policies, Source, Trust};
use crate::gateway;
use crate::{config, tools};

pub(super) fn run(args: &ReplayArgs) -> Result<u8, Failure> {
    let log = super::log()?;
    let config = Config::from_env()?;
    let registry = tools::all()?;
    let definitions = gateway::definitions(&registry);
    let mut sources = Vec::new();
    for path in &args.policies {
        sources.extend(Source::read(path, Trust::Operator)?);
    }
    if args.policies.is_empty() {
        sources = gateway::policy_sources(&config)?;
    }
    let policies = Arc::new(Policies::load(sources, &definitions)?);
    let guard = match &args.packs {
        Some(dir) => {
            let texts = config::texts(dir, "toml", Author::Operator)?;
            if texts.is_empty() {
                return Err(Failure::usage(format!("{} holds no command packs (*.toml)", dir.display())));
            }
            let pack = |(path, text): (std::path::PathBuf, String)| PackSource {
                file: path.display().to_string(),
                text,
                trust: PackTrust::User,
            };
            Some(Guard::read(&texts.into_iter().map(pack).collect::<Vec<_>>())?)
        }
        None if args.commands => Some(Guard::read(&gateway::packs(&config)?)?),
        None => None,
    };
    let settings = Settings {
        restrict_to_workspace: config.file.restrict_to_workspace.unwrap_or(true),
        exceptions: config.exceptions.clone(),
    };
    let surroundings = |workspace: &std::path::Path| config.surroundings(workspace);
    let rules = Rules { policies, guard: guard.as_ref(), surroundings: &surroundings, settings };
    let since = args.since.as_deref().map(when).transpose()?;
    let mut library = Library::new(&config.places.state, definitions.clone());
    let found = replay(&log, since, &rules, &mut library)?;
    let mut out = render::out_or_data(args.json);
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&found)?)?;
    } else {
        told(&mut out, &found)?;
    }
    Ok(if found.looser > 0 && !args.accept_looser { exit::DENIED } else { exit::OK })
}

/// The answers, from the least strict.
const ANSWERS: [&str; 4] = ["allow", "ask(1)", "ask(2)", "deny"];

fn told(out: &mut impl Write, found: &Replayed) -> Result<(), Failure> {
    writeln!(out, "{} calls decided again: {} looser, {} stricter", found.calls, found.looser, found.stricter)?;
    if found.undetermined > 0 {
        let why = "what a rule reads was redacted, or is not on record";
        writeln!(out, "{} calls are undetermined: {why}", found.undetermined)?;
    }
    writeln!(out, "\n{:<14}{}", "was \\ is", ANSWERS.map(|answer| format!("{answer:>10}")).concat())?;
    for was in ANSWERS {
        let row = found.matrix.get(was);
        let count = |is: &str| row.and_then(|row| row.get(is)).copied().unwrap_or(0);
        writeln!(out, "{was:<14}{}", ANSWERS.map(|is| format!("{:>10}", count(is))).concat())?;
    }
    for (title, counts) in [("rule", &found.by_rule), ("tool", &found.by_tool)] {
        if !counts.is_empty() {
            writeln!(out, "\n{title:<40}{:>8}{:>10}", "looser", "stricter")?;
        }
        for (name, (looser, stricter)) in counts {
            writeln!(out, "{:<40}{looser:>8}{stricter:>10}", render::line(name))?;
        }
    }
    if !found.examples.is_empty() {
        writeln!(out, "\nexamples:")?;
    }
    for flip in &found.examples {
        let subject: String = flip.subject.chars().take(80).collect();
        let (was, is, seq) = (flip.was, flip.is, flip.seq);
        let told = format!("{was} -> {is}  {seq}  {} {subject}  [{}]", flip.tool, flip.rule);
        writeln!(out, "  {}{}", render::line(&told), if flip.looser() { "  LOOSER" } else { "" })?;
    }
    Ok(())
}
