//! `portcullis approvals`: answer calls that wait for a person.

use std::io::{self, Write};

use crate::cli::args::ApprovalsCommand;
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::gateway::Gateway;

pub(super) fn run(command: ApprovalsCommand) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    match command {
        ApprovalsCommand::List { json } => list(&gateway, json),
        ApprovalsCommand::Grant { id } => {
            let by = gateway.operator()?;
            let grant = gateway.grant(&id, &by)?;
            anstream::println!("granted {id}: the same call may run once until {}", grant.expires);
            Ok(exit::OK)
        }
        ApprovalsCommand::Refuse { id, reason } => {
            let by = gateway.operator()?;
            gateway.refuse(&id, &by, reason.as_deref())?;
            anstream::println!("refused {id}");
            Ok(exit::OK)
        }
    }
}

fn list(gateway: &Gateway, json: bool) -> Result<u8, Failure> {
    let waiting = gateway.pending()?;
    let mut out = anstream::stdout().lock();
    if json {
        writeln!(io::stdout(), "{}", serde_json::to_string(&waiting)?)?;
        return Ok(exit::OK);
    }
    if waiting.is_empty() {
        writeln!(out, "no call waits for an answer")?;
    }
    for pending in waiting {
        writeln!(out, "{}  {} by {} in session {}, level {}, until {}", pending.id, pending.tool, pending.agent, pending.session, pending.level.number(), pending.expires)?;
        for (name, value) in &pending.arguments {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(out, "    {name}: {}", render::plain(&shown))?;
        }
        for finding in &pending.findings {
            writeln!(out, "    [{}] {}", finding.id, render::plain(&finding.message))?;
        }
    }
    Ok(exit::OK)
}
