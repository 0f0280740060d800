//! `portcullis doctor AGENT`: whether the hook in an agent's own program holds, and what that program cannot be made to do.

use std::io::{self, Write};

use serde_json::json;

use crate::cli::{Failure, exit, install, render};
use crate::hook::host::{Host, Kind, Rewrites};
use crate::hook::hosts;
use crate::install::{InstallError, Report, check};

pub(super) fn run(name: &str, as_json: bool) -> Result<u8, Failure> {
    let host = hosts::named(name).ok_or_else(|| Failure::usage(format!("there is no agent `{name}`")))?;
    let report = match check(host, &install::bases()?) {
        Ok(report) => Some(report),
        // What is known of it is told all the same.
        Err(InstallError::NoSetup { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if as_json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&described(host, report.as_ref()))?)?;
    } else {
        told(&mut render::out(), host, report.as_ref())?;
    }
    let sound = report.is_none_or(|report| report.problems.is_empty());
    Ok(if sound { exit::OK } else { exit::DENIED })
}

fn told(out: &mut impl Write, host: &Host, report: Option<&Report>) -> io::Result<()> {
    writeln!(out, "{}, by {} (checked {})", host.title, host.source, host.checked)?;
    if let Some(report) = report {
        writeln!(out, "\nInstalled")?;
        for file in &report.files {
            writeln!(out, "  {}", file.display())?;
        }
        for (event, command) in &report.events {
            writeln!(out, "    {event:<22} {}", render::line(command))?;
        }
        writeln!(out, "\nSent through it")?;
        for probe in &report.probes {
            let holds = if probe.holds { "holds" } else { "FAILS" };
            writeln!(out, "  {holds}  {} ({} ms)", probe.what, probe.took.as_millis())?;
        }
    }
    writeln!(out, "\nWhat it honours")?;
    writeln!(out, "  deny           enforced")?;
    writeln!(out, "  ask            {}", asks(host))?;
    match host.rewrites {
        Rewrites::Yes(price) => writeln!(out, "  sandbox        with `install --confine PROFILE`; then {price}")?,
        Rewrites::No => writeln!(out, "  sandbox        not enforceable here: it takes no rewritten command")?,
    }
    writeln!(out, "\nWhat cannot be enforced here")?;
    for gap in host.gaps {
        let closed = gap.closed_by.map(|by| format!("; closed by {by}")).unwrap_or_default();
        writeln!(out, "  - {}{closed} [{}]", gap.when, gap.source)?;
    }
    writeln!(
        out,
        "  - an agent under this user can read what this user can read, the operator's token too (invariant I7)"
    )?;
    if let Some(report) = report {
        writeln!(out)?;
        if report.problems.is_empty() {
            writeln!(out, "No problems found.")?;
        }
        for problem in &report.problems {
            writeln!(out, "PROBLEM  {}", render::plain(problem))?;
        }
    }
    Ok(())
}

/// Where a person is asked at the program's own prompt.
fn asks(host: &Host) -> String {
    let events: Vec<&str> =
        host.events.iter().filter(|row| row.asks && row.kind == Kind::Uses).map(|row| row.name).collect();
    if events.is_empty() {
        return "not enforceable here: answered as deny, with a pending id that a person can grant".to_owned();
    }
    let not: Vec<&str> = host.modes.iter().filter(|mode| !mode.asks).map(|mode| mode.name).collect();
    let but = match not.is_empty() {
        true => String::new(),
        false => format!("; in the modes {} answered as deny, with a pending id", not.join(", ")),
    };
    format!("enforced at its own prompt for {}{but}", events.join(", "))
}

fn described(host: &Host, report: Option<&Report>) -> serde_json::Value {
    let gaps: Vec<_> = host
        .gaps
        .iter()
        .map(|gap| json!({ "when": gap.when, "closed_by": gap.closed_by, "source": gap.source }))
        .collect();
    let installed = report.map(|report| {
        let events: Vec<_> =
            report.events.iter().map(|(event, command)| json!({ "event": event, "command": command })).collect();
        let probes: Vec<_> = report
            .probes
            .iter()
            .map(|probe| json!({ "what": probe.what, "holds": probe.holds, "ms": probe.took.as_secs_f64() * 1000.0 }))
            .collect();
        json!({ "files": report.files, "events": events, "probes": probes, "problems": report.problems })
    });
    json!({
        "agent": host.name,
        "source": host.source,
        "checked": host.checked,
        "installed": installed,
        "ask": asks(host),
        "rewrites": host.rewrites != Rewrites::No,
        "not_enforceable": gaps,
    })
}
