//! For people: the calls that wait, and the answers to them. An agent gets 403 on everything here (invariant I7).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::approval::{Approval, Exact, Reach};
use crate::daemon::{Answer, Daemon};
use crate::http::segment::Segment;
use crate::http::tools::approval_id;
use crate::http::{Identity, Problem, body};

/// `GET /api/approvals`: those that wait, the oldest first.
pub(super) async fn list(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Value>, Problem> {
    identity.person()?;
    let books = daemon.books(|gateway| Ok((gateway.pending()?, gateway.grants()?, gateway.withheld()?)));
    let (waiting, grants, withheld) = books.await??;
    let shown: Vec<Value> = waiting.into_iter().map(|(approval, exact)| entry(&approval, Some(&exact))).collect();
    let withheld: serde_json::Map<_, _> = withheld.into_iter().map(|(session, n)| (session, n.into())).collect();
    Ok(Json(json!({ "approvals": shown, "grants": grants, "withheld": withheld })))
}

/// `GET /api/approvals/{id}`
pub(super) async fn show(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
    Segment(id): Segment,
) -> Result<Json<Value>, Problem> {
    identity.person()?;
    let id = approval_id(&id)?;
    let found = daemon.books(move |gateway| Ok((gateway.approval(&id)?, gateway.exact(&id)?, gateway.previews(&id)?)));
    let (approval, exact, previews) = found.await??;
    let mut shown = entry(&approval, exact.as_ref());
    if let Some(map) = shown.as_object_mut() {
        map.insert("scopes".to_owned(), serde_json::to_value(previews).map_err(|_| Problem::inside())?);
    }
    Ok(Json(shown))
}

/// The body of a grant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Granted {
    #[serde(default)]
    scope: Reach,
}

/// `POST /api/approvals/{id}/grant`
pub(super) async fn grant(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
    Segment(id): Segment,
    request: Request,
) -> Result<Json<Value>, Problem> {
    identity.person()?;
    let Granted { scope } = body::object(request).await?;
    answered(&daemon, &identity, &id, Answer::Grant(scope)).await
}

/// `POST /api/approvals/{id}/revoke`: takes a grant back.
pub(super) async fn revoke(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
    Segment(id): Segment,
) -> Result<Json<Value>, Problem> {
    let by = identity.person()?.clone();
    let id = approval_id(&id)?;
    let revoked = daemon.books(move |gateway| {
        gateway.revoke(&id, &by)?;
        gateway.approval(&id)
    });
    Ok(Json(entry(&revoked.await??, None)))
}

/// The body of a refusal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// Why, for the agent and the record.
    reason: Option<String>,
}

/// `POST /api/approvals/{id}/refuse`
pub(super) async fn refuse(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
    Segment(id): Segment,
    request: Request,
) -> Result<Json<Value>, Problem> {
    identity.person()?;
    let Refusal { reason } = body::object(request).await?;
    answered(&daemon, &identity, &id, Answer::Refuse(reason)).await
}

async fn answered(daemon: &Daemon, identity: &Identity, id: &str, answer: Answer) -> Result<Json<Value>, Problem> {
    let by = identity.person()?.clone();
    let approval = daemon.answer(approval_id(id)?, by, answer).await??;
    Ok(Json(entry(&approval, None)))
}

/// An approval, with the exact call as long as it is kept.
fn entry(approval: &Approval, exact: Option<&Exact>) -> Value {
    match exact {
        Some(exact) => json!({ "approval": approval, "call": exact.call, "verdict": exact.verdict }),
        None => json!({ "approval": approval }),
    }
}
