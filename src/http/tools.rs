//! For agents: the tools, calls of them, and what became of a call that waits.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::approval::{ApprovalId, Role};
use crate::call::Origin;
use crate::config::ConfigError;
use crate::daemon::Daemon;
use crate::gateway::{Caller, OpenError};
use crate::http::segment::Segment;
use crate::http::{Identity, Problem, answer, body};
use crate::registry::aliases;

/// The longest that a request may wait for an approval.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The longest name of a session, in bytes.
const LONGEST_SESSION: usize = 128;

/// What may stand after the path's question mark.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Patience {
    /// How long to wait for an approval, such as `30s`.
    wait: Option<String>,
}

impl Patience {
    fn read(query: Result<Query<Patience>, QueryRejection>) -> Result<Duration, Problem> {
        let expected = "expected ?wait= with a time of at most 5 minutes, such as ?wait=30s";
        let Query(Patience { wait }) = query.map_err(|error| Problem::bad_request(format!("{error}; {expected}")))?;
        let Some(text) = wait else { return Ok(Duration::ZERO) };
        let time = text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
        time.filter(|time| *time <= LONGEST_WAIT).ok_or_else(|| Problem::bad_request(expected))
    }
}

/// `GET /api/tools`
pub(super) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Value>, Problem> {
    let caller = match &identity.role {
        Role::Agent(_) => Some(caller(&daemon, &identity, None)?),
        Role::Operator(_) | Role::Reviewer(_) => None,
    };
    // A person sees them all, an agent those that it could be allowed.
    let offered = daemon.look(move |gateway| match caller {
        Some(caller) => gateway.offers(&caller),
        None => Ok(gateway.registry().all().cloned().collect()),
    });
    let offered = offered.await?.map_err(|error| Problem::unavailable(error.to_string()))?;
    let tools: Vec<Value> = offered
        .iter()
        .map(|tool| tool.definition())
        .map(|definition| {
            json!({
                "name": definition.name,
                "description": definition.description,
                "parameters": definition.parameters,
                "sensitivity": definition.sensitivity,
                "source": "built-in",
                "aliases": aliases(definition.name).collect::<Vec<_>>(),
                "route": format!("/api/tools/{}/execute", definition.name),
            })
        })
        .collect();
    Ok(Json(json!({ "tools": tools })))
}

/// The body of `POST /api/tools/{name}/execute`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Execute {
    #[serde(default)]
    parameters: Map<String, Value>,
    /// The agent's own name for the session.
    session: Option<String>,
    /// The agent's own identifier for the call, for the record.
    call_id: Option<String>,
}

/// `POST /api/tools/{name}/execute`
pub(super) async fn execute(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
    Segment(name): Segment,
    query: Result<Query<Patience>, QueryRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let patience = Patience::read(query)?;
    identity.agent()?;
    let Execute { parameters, session, call_id } = body::object(request).await?;
    let caller = caller(&daemon, &identity, session.as_deref())?;
    let call_id = call_id.map(|id| printable("call_id", &id)).transpose()?;
    let mut request = caller.request(name, Value::Object(parameters));
    request.caller_id = call_id;
    let (outcome, answered) = if patience.is_zero() {
        (daemon.call(caller, request).await?, None)
    } else {
        daemon.call_and_wait(&caller, &request, patience).await?
    };
    Ok(answer::outcome(outcome, answered.as_ref()))
}

/// `GET /api/pending/{id}`: an agent sees its own, a person all.
pub(super) async fn pending(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
    Segment(id): Segment,
    query: Result<Query<Patience>, QueryRejection>,
) -> Result<Response, Problem> {
    let patience = Patience::read(query)?;
    let id = approval_id(&id)?;
    let wanted = id.clone();
    let missing = || Problem::not_found(format!("no call of yours waits under {id}"));
    let mine = |agent: &str| match &identity.role {
        Role::Agent(name) => name == agent,
        Role::Operator(_) | Role::Reviewer(_) => true,
    };
    let approval = daemon.books(move |gateway| gateway.approval(&wanted)).await?.map_err(|_| missing())?;
    if !mine(&approval.agent) {
        return Err(missing());
    }
    let approval = daemon.answered(&id, Instant::now() + patience).await.unwrap_or(approval);
    let mut shown = json!({
        "pending": approval.id,
        "status": approval.status,
        "tool": approval.tool,
        "expires": approval.expires,
        "next": match approval.status.as_str() {
            "pending" => "a person has to approve; ask again, or add ?wait=30s",
            "granted" => "make the same call again: it runs once",
            "consumed" => "the call has run; making it again asks again",
            _ => "it will not run; making the call again asks again",
        },
    });
    if let (Some(reason), Some(map)) = (&approval.reason, shown.as_object_mut()) {
        map.insert("reason".to_owned(), reason.as_str().into());
    }
    Ok(Json(shown).into_response())
}

/// The caller that an agent's credential stands for. The session's name is kept apart from those of other agents.
pub(super) fn caller(daemon: &Daemon, identity: &Identity, session: Option<&str>) -> Result<Caller, Problem> {
    let agent = identity.agent()?;
    let session = match session {
        // What follows the last stroke is the agent's choice, whatever strokes its own name has.
        Some(name) if name.contains('/') => return Err(Problem::bad_request("`session` must hold no `/`")),
        Some(name) => format!("{agent}/{}", printable("session", name)?),
        None => format!("{agent}/rest"),
    };
    let caller = daemon.gateway().caller_from(Some(agent), &session, None, daemon.workspace());
    match caller {
        // A workspace that nobody chose is the daemon's own, and calls stay in it.
        Ok(caller) => Ok(Caller { origin: Origin::Rest, bound: true, ..caller }),
        Err(OpenError::Config(ConfigError::UnknownAgent { .. })) => {
            let detail = format!("agent `{agent}` is not configured any more");
            Err(Problem::forbidden(detail).next("ask the operator for a credential of an agent that is"))
        }
        Err(OpenError::Config(error)) => {
            let next = "give the agent a `workspace` in portcullis.toml, or start `portcullis serve` with --workspace";
            Err(Problem::forbidden(error.to_string()).next(next))
        }
        Err(error) => Err(Problem::unavailable(error.to_string())),
    }
}

pub(super) fn approval_id(text: &str) -> Result<ApprovalId, Problem> {
    text.parse().map_err(|error: crate::approval::InvalidId| Problem::not_found(error.to_string()))
}

/// A name that an agent chose, fit for records and terminals.
fn printable(what: &str, text: &str) -> Result<String, Problem> {
    let sound = !text.is_empty() && text.len() <= LONGEST_SESSION && !text.chars().any(char::is_control);
    if sound {
        return Ok(text.to_owned());
    }
    Err(Problem::bad_request(format!("`{what}` has to be 1 to {LONGEST_SESSION} bytes without control characters")))
}
