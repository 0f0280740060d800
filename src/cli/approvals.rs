//! `portcullis approvals`: answer calls that wait for a person.

use std::io::{self, Write};

use serde_json::json;

use crate::approval::{Role, Scope, presented_token};
use crate::cli::args::ApprovalsCommand;
use crate::cli::{Failure, exit, render};
use crate::config::Config;
use crate::gateway::Gateway;
use crate::upstream::Pins;
use crate::verdict::Severity;

pub(super) fn run(command: ApprovalsCommand) -> Result<u8, Failure> {
    let gateway = Gateway::open(Config::from_env()?)?;
    match command {
        ApprovalsCommand::List { json } => {
            // As over HTTP: what other agents ask is none of an agent's business.
            approver(&gateway)?;
            list(&gateway, json)
        }
        ApprovalsCommand::Scopes { id, json } => {
            approver(&gateway)?;
            scopes(&gateway, &id, json)
        }
        ApprovalsCommand::Grant { id, scope } => {
            let by = approver(&gateway)?;
            let grant = gateway.grant_for(&id.parse()?, &by, scope)?;
            anstream::println!("granted {id}: {} until {:.0}", told(&grant.scope), grant.expires);
            Ok(exit::OK)
        }
        ApprovalsCommand::Grants { json } => {
            approver(&gateway)?;
            grants(&gateway, json)
        }
        ApprovalsCommand::Revoke { id } => {
            let by = approver(&gateway)?;
            gateway.revoke(&id.parse()?, &by)?;
            anstream::println!("revoked {id}");
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

/// What a server changed of a tool that a person did not approve as it is. Nothing of it is told to agents.
fn redefined(gateway: &Gateway, tool: &str) -> Option<String> {
    let registry = gateway.registry();
    let foreign = registry.get(tool)?.definition().upstream.as_ref()?;
    let pins = Pins::load(&gateway.config().places.state).ok()?;
    pins.of(&foreign.server)?.diff(&foreign.original)
}

/// What a grant lets through, in words.
fn told(scope: &Scope) -> String {
    match scope {
        Scope::Call => "the same call may run once".to_owned(),
        Scope::Same => "the same call may run in this session".to_owned(),
        Scope::Prefix { words } => format!("commands that begin with `{}` may run in this session", words.join(" ")),
    }
}

fn scopes(gateway: &Gateway, id: &str, as_json: bool) -> Result<u8, Failure> {
    let previews = gateway.previews(&id.parse()?)?;
    let mut out = render::out_or_data(as_json);
    if as_json {
        writeln!(out, "{}", serde_json::to_string(&previews)?)?;
        return Ok(exit::OK);
    }
    for preview in &previews {
        let word = match preview.scope {
            Scope::Call => "call",
            Scope::Same => "same",
            Scope::Prefix { .. } => "prefix",
        };
        writeln!(out, "--scope {word:<7} {}", render::line(&told(&preview.scope)))?;
        let (allowed, calls) = (preview.allowed, preview.calls);
        writeln!(out, "                of the last {calls} calls it would have let {allowed} through that asked")?;
        for example in &preview.examples {
            writeln!(out, "                  {}", render::line(&example.chars().take(90).collect::<String>()))?;
        }
    }
    if !previews.iter().any(|preview| matches!(preview.scope, Scope::Prefix { .. })) {
        writeln!(out, "no prefix: that is to be had for one call of a program that runs no others")?;
    }
    Ok(exit::OK)
}

fn grants(gateway: &Gateway, as_json: bool) -> Result<u8, Failure> {
    let grants = gateway.grants()?;
    let mut out = render::out_or_data(as_json);
    if as_json {
        writeln!(out, "{}", serde_json::to_string(&grants)?)?;
        return Ok(exit::OK);
    }
    if grants.is_empty() {
        writeln!(out, "no grant is in force")?;
    }
    for grant in &grants {
        let (agent, session) = (render::line(&grant.agent), render::line(&grant.session));
        let by = grant.decided_by.as_deref().unwrap_or("-");
        writeln!(
            out,
            "{}  {} of {agent} in session {session}: {}; by {by}, used {} times, until {:.0}",
            grant.id,
            grant.tool,
            render::line(&told(&grant.scope)),
            grant.uses,
            grant.expires
        )?;
    }
    Ok(exit::OK)
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
    for (session, count) in gateway.withheld()? {
        writeln!(
            out,
            "{count} requests of session {} were withheld in the last hour: it asked too often",
            render::line(&session)
        )?;
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
        for line in redefined(gateway, &approval.tool).unwrap_or_default().lines() {
            writeln!(out, "      {}", render::line(line))?;
        }
    }
    Ok(exit::OK)
}
