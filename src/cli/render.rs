//! Verdicts for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::call::Call;
use crate::cli::exit;
use crate::cli::screen::{Screen, is_hidden, wrapped};
use crate::facts::path::PathFact;
use crate::gateway::Judged;
use crate::verdict::{Decision, Finding, Severity};

/// Standard output for people alone: what is not ours cannot act on the terminal.
pub fn out() -> Screen<impl Write> {
    Screen::new(anstream::stdout().lock())
}

/// Standard output for people or, as it is, for programs.
pub fn out_or_data(data: bool) -> Box<dyn Write> {
    if data { Box::new(io::stdout().lock()) } else { Box::new(out()) }
}

/// The same of standard error.
pub fn err() -> Screen<impl Write> {
    Screen::new(anstream::stderr().lock())
}

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();

pub(super) fn colour(decision: Decision) -> Style {
    BOLD.fg_color(Some(
        match decision {
            Decision::Allow => AnsiColor::Green,
            Decision::Ask(_) => AnsiColor::Yellow,
            Decision::Deny => AnsiColor::Red,
        }
        .into(),
    ))
}

fn weight(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warn => "warn",
        Severity::Review => "review",
        Severity::Deny => "deny",
        Severity::Fatal => "fatal",
    }
}

/// Writes the verdict on a call: the decision, then each stage with its findings.
pub fn verdict(out: &mut impl Write, judged: &Judged) -> io::Result<()> {
    let verdict = &judged.verdict;
    let style = colour(verdict.decision);
    writeln!(out, "{style}{}{style:#}  {BOLD}{}{BOLD:#}", verdict.decision, line(&judged.tool))?;
    let command = judged.command();
    if let Some(call) = &judged.call {
        let who = &call.principal;
        let (agent, session) = (line(&who.agent), line(&who.session));
        writeln!(out, "  {DIM}by agent {agent} (mode {}) in session {session}{DIM:#}", who.mode)?;
    }
    for finding in &verdict.notes {
        self::finding(out, "call", finding, command)?;
    }
    for stage in &verdict.stages {
        let style = colour(stage.decision);
        writeln!(out, "  {:<8} {style}{}{style:#}", stage.stage.as_str(), stage.decision.word())?;
        for finding in &stage.findings {
            self::finding(out, "", finding, command)?;
        }
    }
    Ok(())
}

/// Writes the arguments of a call that somebody is asked about, each in at most `most` lines.
pub fn arguments(out: &mut impl Write, call: &Call, most: usize) -> io::Result<()> {
    for (name, value) in &call.arguments {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let lines = wrapped(&plain(&text), most);
        writeln!(out, "  {:<8} {}", line(name), lines.join("\n        "))?;
    }
    writeln!(out, "  in       {}", line(&call.cwd.to_string_lossy()))
}

/// Writes only what stands against the call.
pub fn objections(out: &mut impl Write, judged: &Judged) -> io::Result<()> {
    let style = colour(judged.verdict.decision);
    writeln!(out, "{style}{}{style:#}  {BOLD}{}{BOLD:#}", judged.verdict.decision, line(&judged.tool))?;
    for (stage, finding) in judged.verdict.findings().filter(|(_, f)| f.severity > Severity::Note) {
        self::finding(out, stage.map_or("call", |s| s.as_str()), finding, judged.command())?;
    }
    Ok(())
}

/// Where the paths of a call land, should their names not say so word for word.
pub fn landings(out: &mut impl Write, paths: &[PathFact]) -> io::Result<()> {
    const MOST: usize = 12;
    let mut told: Vec<(&str, &str)> = paths.iter().filter_map(|p| Some((p.given.as_str(), p.elsewhere()?))).collect();
    told.dedup();
    for (given, lands) in told.iter().take(MOST) {
        writeln!(out, "    {} lands at {}", line(given), line(lands))?;
    }
    match told.len().checked_sub(MOST) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, "    and {more} more paths land elsewhere than their names say"),
    }
}

pub(super) fn finding(out: &mut impl Write, stage: &str, finding: &Finding, command: Option<&str>) -> io::Result<()> {
    let style = colour(finding.severity.decision());
    let message = line(&finding.message);
    writeln!(
        out,
        "  {stage:<8} {style}{}{style:#} {DIM}({}){DIM:#} {message}",
        line(&finding.id),
        weight(finding.severity)
    )?;
    if let (Some(span), Some(command)) = (&finding.span, command) {
        quote(out, command, span.clone())?;
    }
    if let Some(safer) = &finding.safer {
        writeln!(out, "           {DIM}for example:{DIM:#} {}", line(safer))?;
    }
    Ok(())
}

/// Shows the line of the command that a finding is about, with carets under the part meant.
fn quote(out: &mut impl Write, command: &str, span: std::ops::Range<usize>) -> io::Result<()> {
    let Some(before) = command.get(..span.start) else { return Ok(()) };
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = command.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or("");
    let indent = before.get(line_start..).map_or(0, |s| s.chars().count());
    let meant = command.get(span).and_then(|s| s.lines().next()).map_or(1, |s| s.chars().count().max(1));
    const WIDTH: usize = 100;
    if indent + meant > WIDTH {
        return Ok(());
    }
    let shown: String = plain(line).chars().take(WIDTH).collect();
    writeln!(out, "           {shown}")?;
    writeln!(out, "           {:indent$}{BOLD}{}{BOLD:#}", "", "^".repeat(meant))
}

/// Text from a call, with control, bidirectional and invisible characters made visible, so that it cannot repaint the terminal.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && c != '\t' && is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The same on one line: what is somebody's words cannot pass for a line of ours.
pub fn line(text: &str) -> String {
    plain(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// The same for a text that may have several lines: those after the first are marked as a continuation.
pub fn block(text: &str) -> String {
    plain(text).replace('\n', "\n        | ")
}

/// So many of something.
pub fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}

/// The exit code of a decision that was to be shown. Where it could not be, that must not look like another decision.
pub fn told(shown: io::Result<()>, code: u8) -> u8 {
    match shown {
        Ok(()) => code,
        // Whoever read it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => code,
        Err(error) => {
            super::complain(&format!("the answer could not be written: {error}"));
            if code == exit::OK { exit::INTERNAL } else { code }
        }
    }
}

/// The judgement as data, after the id of the question where it has one.
pub fn json(id: Option<&Value>, judged: &Judged) -> Value {
    let mut line = serde_json::Map::new();
    if let Some(id) = id {
        line.insert("id".to_owned(), id.clone());
    }
    line.extend(judged.report());
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_call_cannot_repaint_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}c"), "a\\u{1b}[2Jb\\u{202e}c");
        assert_eq!(plain("naïve 你好"), "naïve 你好");
        assert_eq!(line("a\n  policy   allow"), "a\\n  policy   allow", "a line of its own could pass for one of ours");
        assert_eq!(block("ls\n    [x] harmless"), "ls\n        |     [x] harmless");
    }

    #[test]
    fn carets_stand_under_the_part_meant() {
        let mut out = Vec::new();
        quote(&mut out, "echo é\nls; rm -rf /", 12..20).unwrap();
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        assert_eq!(String::from_utf8(text).unwrap(), "           ls; rm -rf /\n               ^^^^^^^^\n");
    }
}
