//! For the thin clients of this machine (`run`, `check`, `mcp serve`), over the Unix socket: an errand in, and out what the gateway
//! says of it, exactly as if the client had asked in process.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::call::Origin;
use crate::daemon::errand::{Errand, ErrandError, INSTALLATION, installation};
use crate::daemon::hosted::HostErrand;
use crate::daemon::{Daemon, Via};
use crate::gateway::{Caller, OpenError};
use crate::http::{Identity, Problem, body};

/// Whatever a client can read in one line, JSON text within JSON text.
const LARGEST: usize = 80 << 20;

pub(super) async fn call(
    State(daemon): State<Arc<Daemon>>,
    Extension(via): Extension<Via>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Result<Response, Problem> {
    let (errand, caller) = errand(&daemon, via, &identity, request).await?;
    let request = errand.request(&caller).map_err(problem)?;
    // Dropped with this future, which is dropped when the client goes away.
    let (_held, gone) = oneshot::channel::<()>();
    let left = async move {
        let _ = gone.await;
        if !errand.while_connected {
            std::future::pending().await
        }
    };
    Ok(Json(daemon.call_unless(caller, request, left).await?).into_response())
}

pub(super) async fn judge(
    State(daemon): State<Arc<Daemon>>,
    Extension(via): Extension<Via>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Result<Response, Problem> {
    let (errand, caller) = errand(&daemon, via, &identity, request).await?;
    let request = errand.request(&caller).map_err(problem)?;
    Ok(Json(daemon.judge(caller, request).await?).into_response())
}

pub(super) async fn offers(
    State(daemon): State<Arc<Daemon>>,
    Extension(via): Extension<Via>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Result<Response, Problem> {
    let (_, caller) = errand(&daemon, via, &identity, request).await?;
    let offers = daemon.look(move |gateway| Errand::offers(gateway, &caller)).await?;
    Ok(Json(offers.map_err(problem)?).into_response())
}

pub(super) async fn hosted(
    State(daemon): State<Arc<Daemon>>,
    Extension(via): Extension<Via>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Result<Response, Problem> {
    let errand: HostErrand = said(&daemon, via, request).await?;
    let said = daemon.hosted(errand, identity.role.clone()).await?;
    Ok(Json(said.map_err(problem)?).into_response())
}

async fn errand(daemon: &Daemon, via: Via, identity: &Identity, request: Request) -> Result<(Errand, Caller), Problem> {
    let errand: Errand = said(daemon, via, request).await?;
    if errand.origin == Origin::Hook {
        return Err(Problem::bad_request(
            "a hook's call is judged, and run elsewhere: it is no errand to run or to judge here",
        ));
    }
    let caller = errand.caller(daemon.gateway(), Some(&identity.role), Some(daemon.workspace())).map_err(problem)?;
    Ok((errand, caller))
}

/// What a thin client of this installation says.
async fn said<T: DeserializeOwned>(daemon: &Daemon, via: Via, request: Request) -> Result<T, Problem> {
    if via != Via::Unix {
        return Err(Problem::not_found("this is for the Unix socket").closing());
    }
    let (parts, body) = request.into_parts();
    same_installation(daemon, &parts.headers)?;
    let bytes: Bytes = body::read(body, LARGEST).await?;
    serde_json::from_slice(&bytes).map_err(|error| Problem::bad_request(error.to_string()))
}

/// A client that reads another configuration, or is of another version, would be given answers that are not its own.
fn same_installation(daemon: &Daemon, headers: &HeaderMap) -> Result<(), Problem> {
    let ours = installation(&daemon.gateway().config().places);
    if headers.get(INSTALLATION).is_some_and(|theirs| theirs.as_bytes() == ours.as_bytes()) {
        return Ok(());
    }
    Err(Problem::conflict(
        "the gateway that runs for this state directory is of another version, or was started with another HOME or \
         configuration directory: restart it, or choose another state directory with PORTCULLIS_STATE",
    ))
}

fn problem(error: ErrandError) -> Problem {
    match &error {
        ErrandError::Open(OpenError::Record(_)) => Problem::unavailable(error.to_string()),
        ErrandError::Arguments(_)
        | ErrandError::Elsewhere { .. }
        | ErrandError::OtherAgent(_)
        | ErrandError::Session(_)
        | ErrandError::Open(_)
        | ErrandError::Rules(_) => Problem::bad_request(error.to_string()),
    }
}
