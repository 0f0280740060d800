//! The command guard against its corpora, as a caller sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use portcullis::facts::Surroundings;
use portcullis::facts::command::Guard;
use portcullis::verdict::{Decision, Stage, StageVerdict};

fn here() -> Surroundings {
    Surroundings::new("/home/alice/proj", "/home/alice")
}

fn decide(guard: &Guard, command: &str) -> StageVerdict {
    StageVerdict::new(Stage::Command, guard.analyse(command, &here()).findings)
}

/// A row of `commands.tsv`: id, expected answer, technique, command.
struct Row {
    id: String,
    expected: String,
    technique: String,
    command: String,
}

fn rows() -> Vec<Row> {
    include_str!("cases/commands.tsv")
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut columns = line.splitn(4, '\t').map(str::to_owned);
            let mut next = || columns.next().unwrap_or_default();
            let (id, expected, technique) = (next(), next(), next());
            Row { id, expected, technique, command: unescape(&next()) }
        })
        .collect()
}

/// `\\` `\n` `\t` `\r` `\uXXXX`, nothing else.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

/// Shared material of the project, where it is present.
fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PORTCULLIS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = root.join(path);
    path.exists().then_some(path)
}

#[test]
fn corpus_verdicts() {
    let guard = Guard::embedded();
    let mut table: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    for row in rows() {
        let verdict = decide(&guard, &row.command);
        let right = match row.expected.as_str() {
            "deny" => verdict.decision == Decision::Deny,
            "warn" => verdict.decision > Decision::Allow,
            _ => verdict.decision == Decision::Allow,
        };
        let entry = table.entry(row.expected.clone()).or_default();
        entry.1 += 1;
        if right {
            entry.0 += 1;
        } else {
            let ids: Vec<&str> = verdict.findings.iter().map(|finding| finding.id.as_str()).collect();
            missed.push(format!(
                "{} {} {} -> {} {ids:?}: {:?}",
                row.id,
                row.expected,
                row.technique,
                verdict.decision,
                row.command.chars().take(160).collect::<String>()
            ));
        }
    }
    for (label, (right, all)) in &table {
        println!("{label:6} {right:4} of {all:4}");
    }
    for row in &missed {
        println!("missed {row}");
    }
    let share = |label: &str| table.get(label).map_or(0.0, |(right, all)| *right as f64 / *all as f64);
    assert!(share("deny") >= 0.90, "deny rows denied: {:.3}\n{}", share("deny"), missed.join("\n"));
    assert!(share("warn") >= 0.80, "warn rows asked: {:.3}\n{}", share("warn"), missed.join("\n"));
    assert!(share("allow") >= 0.97, "allow rows let through: {:.3}\n{}", share("allow"), missed.join("\n"));
}

#[test]
fn nl2bash_is_not_refused_wildly() {
    let Some(path) = shared("cases/nl2bash.txt") else {
        eprintln!("SKIPPED: nl2bash.txt is not here; 0 of 12607 commands looked at");
        return;
    };
    let text = std::fs::read_to_string(path).expect("the corpus is readable");
    let guard = Guard::embedded();
    let (mut all, mut asked, mut unparsed) = (0_usize, 0_usize, 0_usize);
    let mut denied = Vec::new();
    let started = Instant::now();
    for command in text.lines() {
        all += 1;
        let facts = guard.analyse(command, &here());
        unparsed += usize::from(facts.findings.iter().any(|finding| finding.id == "command.not-fully-analysed"));
        match StageVerdict::new(Stage::Command, facts.findings).decision {
            Decision::Allow => {}
            Decision::Ask(_) => asked += 1,
            Decision::Deny => denied.push(command),
        }
    }
    let took = started.elapsed();
    println!("{all} commands in {took:?}: {unparsed} not parsed, {asked} asked, {} denied", denied.len());
    for command in &denied {
        println!("denied {command}");
    }
    assert!(denied.len() * 200 <= all, "{} of {all} denied, more than 0.5 %", denied.len());
    assert!(unparsed * 50 <= all, "{unparsed} of {all} not parsed, more than 2 %");
}
