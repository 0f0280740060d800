//! `portcullis approvals`: answer calls that wait for a person.

use std::io::{self, Write};

use serde_json::json;

use crate::approval::{Role, presented_token};
use crate::cli::args::ApprovalsCommand;
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::gateway::Gateway;
use crate::verdict::Severity;

pub(super) fn run(command: ApprovalsCommand) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    match command {
        ApprovalsCommand::List { json } => {
            // As over HTTP: what other agents ask is none of an agent's business.
            approver(&gateway)?;
            list(&gateway, json)
        }
        ApprovalsCommand::Grant { id } => {
            let by = approver(&gateway)?;
            let grant = gateway.grant(&id.parse()?, &by)?;
            anstream::println!("granted {id}: the same call may run once until {:.0}", grant.expires);
            Ok(exit::OK)
        }
        ApprovalsCommand::Refuse { id, reason } => {
            let by = approver(&gateway)?;
            gateway.refuse(&id.parse()?, &by, reason.as_deref())?;
            anstream::println!("refused {id}");
            Ok(exit::OK)
        }
    }
}

/// Who answers: the holder of the credential in `PORTCULLIS_TOKEN`, else the operator who owns the state directory.
pub(super) fn approver(gateway: &Gateway) -> Result<Role, Failure> {
    let by = match presented_token()? {
        Some(token) => gateway.role_of(&token)?,
        None => gateway.own_operator()?,
    };
    match by {
        Role::Agent(_) => Err(Failure {
            message: format!("{by} may neither see nor answer approvals: use an operator's or a reviewer's credential"),
            code: exit::DENIED,
        }),
        Role::Operator(_) | Role::Reviewer(_) => Ok(by),
    }
}

fn list(gateway: &Gateway, as_json: bool) -> Result<u8, Failure> {
    let waiting = gateway.pending()?;
    if as_json {
        let entries: Vec<_> = waiting
            .iter()
            .map(|(approval, exact)| json!({ "approval": approval, "call": exact.call, "verdict": exact.verdict }))
            .collect();
        writeln!(io::stdout(), "{}", serde_json::to_string(&entries)?)?;
        return Ok(exit::OK);
    }
    let mut out = render::out();
    if waiting.is_empty() {
        writeln!(out, "no call waits for an answer")?;
    }
    for (approval, exact) in waiting {
        let (agent, session) = (render::line(&approval.agent), render::line(&approval.session));
        let level = approval.level.number();
        writeln!(
            out,
            "{}  {} by {agent} in session {session}, level {level}, until {:.0}",
            approval.id, approval.tool, approval.expires
        )?;
        render::arguments(&mut out, &exact.call, usize::MAX)?;
        render::landings(&mut out, &exact.paths)?;
        for (_, finding) in exact.verdict.findings().filter(|(_, f)| f.severity > Severity::Note) {
            writeln!(out, "    [{}] {}", render::line(&finding.id), render::line(&finding.message))?;
        }
    }
    Ok(exit::OK)
}
