//! For a monitoring system.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tracing::warn;

use crate::daemon::Daemon;
use crate::http::{Identity, Problem};

/// `GET /metrics`, with a person's credential: what agents do is none of an agent's business.
pub(super) async fn metrics(
    State(daemon): State<Arc<Daemon>>,
    Extension(identity): Extension<Identity>,
) -> Result<Response, Problem> {
    identity.person()?;
    let text = daemon.look(|gateway| gateway.metrics()).await?.map_err(|error| {
        warn!(%error, "no metrics");
        Problem::unavailable("the numbers cannot be had; the daemon's log says why")
    })?;
    Ok(([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response())
}
