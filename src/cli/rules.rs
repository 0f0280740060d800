//! `portcullis rules`: the command guard's rules, and trying them out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::args::RulesCommand;
use crate::cli::on_disk::Looking;
use crate::cli::render::{self, counted};
use crate::cli::{Failure, exit};
use crate::config::{Config, Exception};
use crate::facts::command::{self, Guard, PackError, PackSource, Rule, Trust};
use crate::gateway;
use crate::registry::nearest;
use crate::verdict::{Decision, Finding, Severity, Stage, StageVerdict};

pub(super) fn run(command: RulesCommand) -> Result<u8, Failure> {
    match command {
        RulesCommand::List { json, severity, pack } => {
            let wanted = |rule: &&Rule| {
                severity.as_ref().is_none_or(|wanted| *wanted == word(rule.severity))
                    && pack.as_ref().is_none_or(|wanted| rule.pack.contains(wanted.as_str()))
            };
            let guard = Guard::load(&configured()?)?;
            if let Some(unknown) =
                pack.as_ref().filter(|pack| !guard.rules().any(|rule| rule.pack.contains(pack.as_str())))
            {
                let packs: BTreeSet<&str> = guard.rules().map(|rule| rule.pack.as_str()).collect();
                let packs = packs.into_iter().collect::<Vec<_>>().join(", ");
                return Err(Failure::usage(format!("no pack has `{unknown}` in its name: the packs are {packs}")));
            }
            list(&guard.rules().filter(wanted).collect::<Vec<_>>(), json)
        }
        RulesCommand::Show { id, json } => show(&Guard::load(&configured()?)?, &id, json),
        RulesCommand::Test { command: Some(command), json, .. } => test_commands(&[command], json),
        RulesCommand::Test { file, json, command: None } => test(file.as_deref(), json),
        RulesCommand::Exceptions { json } => exceptions(json),
    }
}

/// The packs of the configuration, and of the workspace that this directory is.
fn configured() -> Result<Vec<PackSource>, Failure> {
    let config = Config::from_env()?;
    let mut packs = gateway::packs(&config)?;
    packs.extend(gateway::workspace_packs(&std::env::current_dir()?)?);
    Ok(packs)
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warn => "warn",
        Severity::Review => "review",
        Severity::Deny => "deny",
        Severity::Fatal => "fatal",
    }
}

fn list(rules: &[&Rule], as_json: bool) -> Result<u8, Failure> {
    let mut out = render::out_or_data(as_json);
    if as_json {
        let all: Vec<Value> = rules.iter().map(|rule| rule_json(rule)).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(exit::OK);
    }
    if rules.is_empty() {
        writeln!(out, "there is no such rule")?;
    }
    let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    for rule in rules {
        writeln!(out, "{:<width$}  {:<6}  {}  ({})", rule.id, word(rule.severity), rule.reason, rule.pack)?;
    }
    Ok(exit::OK)
}

fn rule_json(rule: &Rule) -> Value {
    let asks: BTreeMap<&str, &Vec<String>> = rule.predicates.iter().map(|(name, words)| (*name, words)).collect();
    json!({
        "id": rule.id,
        "severity": word(rule.severity),
        "reason": rule.reason,
        "safer": rule.safer,
        "pack": rule.pack,
        "line": rule.line,
        "references": rule.references,
        "asks": asks,
        "match": rule.examples,
        "not_match": rule.counterexamples,
    })
}

fn show(guard: &Guard, id: &str, as_json: bool) -> Result<u8, Failure> {
    let Some(rule) = guard.rules().find(|rule| rule.id == id) else {
        let ids = || guard.rules().map(|rule| rule.id.as_str());
        let mut near: Vec<&str> = ids().filter(|known| known.contains(id)).collect();
        if near.is_empty() {
            near.extend(nearest(id, ids()));
        }
        let hint = if near.is_empty() { String::new() } else { format!(", did you mean {}?", near.join(", ")) };
        return Err(Failure::usage(format!("there is no rule `{id}`{hint}: `portcullis rules list` names them all")));
    };
    let mut out = render::out_or_data(as_json);
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(&rule_json(rule))?)?;
        return Ok(exit::OK);
    }
    writeln!(out, "{}  {}  ({}:{})", rule.id, word(rule.severity), rule.pack, rule.line)?;
    writeln!(out, "  {}", rule.reason)?;
    if let Some(safer) = &rule.safer {
        writeln!(out, "  safer        {safer}")?;
    }
    for (name, words) in &rule.predicates {
        writeln!(out, "  {name:<12} {}", words.join(", "))?;
    }
    for (name, lines) in
        [("match", &rule.examples), ("not_match", &rule.counterexamples), ("reference", &rule.references)]
    {
        for line in lines {
            writeln!(out, "  {name:<12} {}", render::line(line))?;
        }
    }
    Ok(exit::OK)
}

/// Commands of a file or of standard input are judged; a pack, and without a file every configured one, has its own
/// examples judged.
fn test(file: Option<&Path>, as_json: bool) -> Result<u8, Failure> {
    match file {
        None => test_packs(&[], &configured()?, as_json),
        Some(path) if path.extension().is_some_and(|extension| extension == "toml") => {
            let text = read(path)?;
            let pack = PackSource { file: path.display().to_string(), text, trust: Trust::User };
            // A pack that is configured already is not a second one of itself.
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let others: Vec<PackSource> =
                configured()?.into_iter().filter(|other| real(Path::new(&other.file)) != real(path)).collect();
            test_packs(&others, &[pack], as_json)
        }
        Some(path) => {
            let text = if path == Path::new("-") { io::read_to_string(io::stdin())? } else { read(path)? };
            test_commands(&commands_of(&text)?, as_json)
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
    Ok(text)
}

fn test_packs(others: &[PackSource], packs: &[PackSource], as_json: bool) -> Result<u8, Failure> {
    let all: Vec<PackSource> = others.iter().chain(packs).cloned().collect();
    let judged = Guard::read(&all).and_then(|guard| {
        let empty = !guard.rules().any(|rule| packs.iter().any(|pack| pack.file.as_str() == rule.pack.as_str()));
        Ok((guard.failing_examples(packs)?, command::lint(packs)?, empty))
    });
    let (failing, lints, empty) = judged.unwrap_or_else(|error| (vec![error], Vec::new(), false));
    let code = if failing.is_empty() { exit::OK } else { exit::DENIED };
    let mut out = render::out_or_data(as_json);
    if as_json {
        let told = |errors: &[PackError]| -> Vec<Value> {
            let one = |e: &PackError| json!({ "file": e.file, "line": e.line, "column": e.column, "message": e.problem.to_string() });
            errors.iter().map(one).collect()
        };
        let report = json!({ "sound": failing.is_empty(), "problems": told(&failing), "warnings": told(&lints) });
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
        return Ok(code);
    }
    for error in &failing {
        writeln!(out, "{error}")?;
    }
    for lint in &lints {
        writeln!(out, "warning: {lint}")?;
    }
    let told = match (packs.len(), failing.len()) {
        (0, _) => "no packs are configured; our own are part of the program".to_owned(),
        (count, 0) if empty => format!("{}: no rules in them, so nothing was tried", counted(count, "pack")),
        (count, 0) => format!("{}: every example holds", counted(count, "pack")),
        (count, failing) => format!("{}: {}", counted(count, "pack"), counted(failing, "problem")),
    };
    writeln!(out, "{told}")?;
    Ok(code)
}

/// One command a line, as it stands or as a JSON string.
fn commands_of(text: &str) -> Result<Vec<String>, Failure> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let one = |(number, line): (usize, &str)| {
        if !line.starts_with('"') {
            return Ok(line.to_owned());
        }
        let told = |e| Failure::usage(format!("line {} is no JSON string: {e}", number + 1));
        serde_json::from_str::<String>(line).map_err(told)
    };
    lines.map(one).collect()
}

/// Exits with the code of the gravest verdict.
fn test_commands(commands: &[String], as_json: bool) -> Result<u8, Failure> {
    let config = Config::from_env()?;
    let workspace = std::env::current_dir()?;
    let guard = Guard::load(&configured()?)?.with_limits(config.file.limits.set(command::Limits::default()));
    let here = config.surroundings(&workspace);
    let looking = Looking::new(&guard, &here)?;
    let mut worst = Decision::Allow;
    let mut out = render::out_or_data(as_json);
    for command in commands {
        let findings = looking.analyse(command).findings;
        let decision = StageVerdict::new(Stage::Command, findings.clone()).decision;
        worst = worst.max(decision);
        if as_json {
            let told = json!({ "command": command, "decision": decision.word(), "findings": findings });
            writeln!(out, "{told}")?;
        } else {
            told(&mut out, command, decision, &findings)?;
        }
    }
    Ok(super::run::code(worst))
}

fn told(out: &mut impl Write, command: &str, decision: Decision, findings: &[Finding]) -> io::Result<()> {
    writeln!(out, "{:<6}  {}", decision.to_string(), render::line(command))?;
    for finding in findings {
        writeln!(out, "        {} ({}): {}", finding.id, word(finding.severity), finding.message)?;
    }
    Ok(())
}

fn exceptions(as_json: bool) -> Result<u8, Failure> {
    let config = Config::from_env()?;
    let now = Timestamp::now();
    let state = |exception: &Exception| if exception.lapsed(now) { "LAPSED" } else { "in force" };
    let mut out = render::out_or_data(as_json);
    if as_json {
        let one = |exception: &Exception| {
            let Exception { rule, agent, workspace, program, command, reason, expires, place } = exception;
            json!({
                "rule": rule, "agent": agent, "workspace": workspace, "program": program, "command": command,
                "reason": reason, "expires": expires, "lapsed": exception.lapsed(now), "file": place.file, "line": place.line,
            })
        };
        let all: Vec<Value> = config.exceptions.iter().map(one).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(exit::OK);
    }
    if config.exceptions.is_empty() {
        writeln!(out, "there are no exceptions")?;
    }
    for exception in &config.exceptions {
        let Exception { rule, reason, expires, place, .. } = exception;
        writeln!(out, "{rule}  {} until {expires:.0}  ({})", state(exception), exception.scope())?;
        writeln!(out, "    {reason}  ({place})")?;
    }
    Ok(exit::OK)
}
