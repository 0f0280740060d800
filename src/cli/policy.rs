//! `portcullis policy`: validate policies.

use std::io::{self, Write};
use std::path::PathBuf;

use miette::{GraphicalReportHandler, GraphicalTheme, Severity};
use serde_json::json;

use crate::cli::args::PolicyCommand;
use crate::cli::render::{self, counted};
use crate::cli::{Failure, exit};
use crate::config::Config;
use crate::firewall::policy::{self, Problem, Report, Source, Trust};
use crate::gateway;

pub(super) fn run(command: PolicyCommand) -> Result<u8, Failure> {
    match command {
        PolicyCommand::Check { paths, workspace, json } => check(&paths, workspace, json),
    }
}

fn check(paths: &[PathBuf], workspace: Option<PathBuf>, as_json: bool) -> Result<u8, Failure> {
    let report = match sources(paths, workspace) {
        Ok(sources) => policy::check(sources, &gateway::definitions(&crate::tools::all()?)),
        Err(SourcesError::Policy(error)) => Report { problems: error.problems, summary: None },
        Err(SourcesError::Other(failure)) => return Err(failure),
    };
    let code = if report.summary.is_some() { exit::OK } else { exit::DENIED };
    if as_json {
        writeln!(io::stdout(), "{}", report_json(&report))?;
        return Ok(code);
    }
    let mut err = render::err();
    for problem in &report.problems {
        writeln!(err, "{}", drawn(problem))?;
    }
    let mut out = render::out();
    match &report.summary {
        Some(summary) => {
            let (policies, files) = (counted(summary.policies, "policy"), counted(summary.files, "file"));
            writeln!(out, "{policies} in {files}: sound")?;
            for (action, policies, typed) in &summary.actions {
                let arguments = if *typed { "" } else { "  (policies do not see its arguments)" };
                writeln!(out, "  {action:<10} {policies:>4} policies can apply{arguments}")?;
            }
        }
        None => writeln!(out, "the policies are NOT usable: {}", counted(report.problems.len(), "problem"))?,
    }
    Ok(code)
}

enum SourcesError {
    Policy(policy::PolicyError),
    Other(Failure),
}

fn sources(paths: &[PathBuf], workspace: Option<PathBuf>) -> Result<Vec<Source>, SourcesError> {
    if paths.is_empty() {
        let config = Config::from_env().map_err(|e| SourcesError::Other(e.into()))?;
        let workspace = workspace.map_or_else(std::env::current_dir, Ok).map_err(|e| SourcesError::Other(e.into()))?;
        let mut sources = gateway::policy_sources(&config).map_err(SourcesError::Policy)?;
        sources.extend(gateway::workspace_policies(&workspace).map_err(SourcesError::Policy)?);
        return Ok(sources);
    }
    let mut sources = Vec::new();
    for path in paths {
        sources.extend(Source::read(path, Trust::Operator).map_err(SourcesError::Policy)?);
    }
    Ok(sources)
}

/// The problem with its place underlined, as Cedar's own tools draw it.
fn drawn(problem: &Problem) -> String {
    let mut text = String::new();
    let handler =
        GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_links(false).with_width(110);
    match handler.render_report(&mut text, problem) {
        Ok(()) => text,
        Err(_) => problem.to_string(),
    }
}

fn report_json(report: &Report) -> serde_json::Value {
    let problems: Vec<_> = report
        .problems
        .iter()
        .map(|p| {
            json!({
                "severity": if p.severity == Severity::Warning { "warning" } else { "error" },
                "file": p.file,
                "line": p.place.map(|(line, _)| line),
                "column": p.place.map(|(_, column)| column),
                "message": p.message,
                "help": p.help,
            })
        })
        .collect();
    let summary = report.summary.as_ref().map(|s| {
        let actions: Vec<_> =
            s.actions.iter().map(|(name, n, typed)| json!({ "action": name, "policies": n, "typed": typed })).collect();
        json!({ "files": s.files, "policies": s.policies, "actions": actions })
    });
    json!({ "sound": report.summary.is_some(), "problems": problems, "summary": summary })
}
