//! Programs that run programs, and inline code, against their tables of commands.

use crate::facts::Surroundings;
use crate::facts::command::Guard;
use crate::verdict::{Decision, Stage, StageVerdict};

fn answer(guard: &Guard, command: &str) -> &'static str {
    let mut here = Surroundings::new("/home/user/workspace", "/home/user");
    here.gateway.push("/home/user/.local/state/portcullis".into());
    match StageVerdict::new(Stage::Command, guard.analyse(command, &here).findings).decision {
        Decision::Allow => "ALLOW",
        Decision::Ask(_) => "ASK",
        Decision::Deny => "DENY",
    }
}

/// Rows of `answer TAB command`; lines without an answer go on with the command before.
fn rows(text: &str) -> Vec<(&str, String)> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match line.split_once('\t').filter(|(head, _)| matches!(*head, "ALLOW" | "ASK" | "DENY")) {
            Some((answer, command)) => rows.push((answer, command.to_owned())),
            None => {
                if let Some((_, command)) = rows.last_mut() {
                    command.push('\n');
                    command.push_str(line);
                }
            }
        }
    }
    rows
}

fn check(wanted: impl Iterator<Item = (String, String)>) {
    let guard = Guard::embedded();
    let mut wrong = Vec::new();
    for (want, command) in wanted {
        let got = answer(&guard, &command);
        if got != want {
            wrong.push(format!("{want} expected, {got} given: {command}"));
        }
    }
    assert!(wrong.is_empty(), "{} commands are judged wrongly:\n{}", wrong.len(), wrong.join("\n"));
}

/// In each row `%%` is a command and `%A` a program with options. With a destructive one the answer is DENY; with a
/// harmless one it is the row's.
#[test]
fn wrapped_commands_are_judged_as_themselves() {
    let rows = rows(include_str!("../../../tests/cases/wrapping.tsv"));
    assert!(rows.len() > 400, "only {} rows were read", rows.len());
    check(rows.iter().map(|(_, row)| ("DENY".to_owned(), row.replace("%%", "rm -rf /").replace("%A", "rm -rf"))));
    let harmless = rows.iter().filter(|(_, row)| row.contains("%%") || row.contains("%A"));
    check(harmless.map(|(want, row)| ((*want).to_owned(), row.replace("%%", "ls -la x").replace("%A", "echo"))));
}

/// Rows of inline code, fork bombs and signals, each with its answer.
#[test]
fn inline_code_is_followed_into_its_calls() {
    let rows = rows(include_str!("../../../tests/cases/inline-code.tsv"));
    assert!(rows.len() > 300, "only {} rows were read", rows.len());
    check(rows.into_iter().map(|(want, row)| (want.to_owned(), row)));
}

#[test]
fn code_cannot_forge_what_stands_for_the_unknown() {
    let guard = Guard::embedded();
    for code in [
        r#"python3 -c "import os; os.system(chr(0x10FFF6))""#,
        r#"python3 -c "import os; os.remove('/tmp/' + chr(0x10FFF0))""#,
        r#"node -e "require('child_process').execSync(String.fromCodePoint(0x10FFF6))""#,
        r#"python3 -c "import os; os.system(bytes([0xf4,0x8f,0xbf,0xb6]).decode())""#,
        r#"php -r 'system(rawurldecode("%F4%8F%BF%B6"));'"#,
    ] {
        let facts = guard.analyse(code, &Surroundings::new("/home/user/workspace", "/home/user"));
        let forged =
            facts.findings.iter().any(|finding| finding.id == "remote.fetch-and-run" || finding.id == "fs.delete-glob");
        assert!(!forged, "{code}: {:?}", facts.findings);
    }
}
