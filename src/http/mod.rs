//! The HTTP interface: JSON in, JSON out, errors as `application/problem+json` (RFC 9457).
//!
//! ```text
//! log ─► Host, Origin (guard) ─► route ─► credential (guard) ─► handler ─► Daemon
//! ```
//!
//! - [`tools`]: agents list tools, make calls, and ask what became of one that waits.
//! - [`approvals`]: people answer.
//! - [`errands`]: the thin clients, over the Unix socket.
//! - [`openapi`]: the description of it all.

mod answer;
mod approvals;
pub(crate) mod body;
mod errands;
mod guard;
mod log;
mod metrics;
mod openapi;
mod problem;
mod segment;
mod tools;

use std::sync::Arc;

use axum::extract::State;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use serde_json::json;

pub use self::guard::Identity;
pub use self::problem::Problem;
use crate::daemon::hosted::HOSTED;
use crate::daemon::{Daemon, errand};

/// A path, the methods that it takes, and what answers them.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<Daemon>>);

/// What anybody may ask.
fn open_routes() -> Vec<Route> {
    vec![("/healthz", &["get"], get(health)), ("/api/openapi.json", &["get"], get(openapi::document))]
}

/// What needs a credential. Each handler says whose.
fn guarded_routes() -> Vec<Route> {
    vec![
        ("/api/tools", &["get"], get(tools::list)),
        ("/api/tools/{name}/execute", &["post"], post(tools::execute)),
        ("/api/pending/{id}", &["get"], get(tools::pending)),
        ("/metrics", &["get"], get(metrics::metrics)),
        ("/api/approvals", &["get"], get(approvals::list)),
        ("/api/approvals/{id}", &["get"], get(approvals::show)),
        ("/api/approvals/{id}/grant", &["post"], post(approvals::grant)),
        ("/api/approvals/{id}/refuse", &["post"], post(approvals::refuse)),
        ("/api/approvals/{id}/revoke", &["post"], post(approvals::revoke)),
    ]
}

/// Everything that the daemon answers, on both of its listeners. `further` are other protocols' routes that need a
/// credential, such as [`crate::mcp::http::routes`].
pub fn router(daemon: Arc<Daemon>, further: Router<Arc<Daemon>>) -> Router {
    let gather = |routes: Vec<Route>| {
        routes.into_iter().fold(Router::new(), |router, (path, _, methods)| router.route(path, methods))
    };
    let guarded = gather(guarded_routes())
        .route(errand::CALL, post(errands::call))
        .route(errand::JUDGE, post(errands::judge))
        .route(errand::OFFERS, post(errands::offers))
        .route(HOSTED, post(errands::hosted))
        .merge(further)
        .route_layer(from_fn_with_state(Arc::clone(&daemon), guard::authenticate));
    gather(open_routes())
        .merge(guarded)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(Arc::clone(&daemon), guard::same_site))
        .layer(from_fn(log::requests))
        .with_state(daemon)
}

async fn health(State(daemon): State<Arc<Daemon>>) -> Response {
    match daemon.books(|gateway| gateway.ready()).await {
        Ok(Ok(())) => Json(json!({ "status": "ok" })).into_response(),
        // The reason holds paths, and this is asked without a credential.
        Ok(Err(_)) | Err(_) => Problem::unavailable(
            "calls cannot be put on record, so every call is denied; `portcullis doctor` and the daemon's log say why",
        )
        .into_response(),
    }
}

async fn no_such_path() -> Problem {
    Problem::not_found("there is nothing at this path").next("GET /api/openapi.json lists what there is")
}

async fn no_such_method() -> Problem {
    Problem::method("the path does not take this method").next("GET /api/openapi.json lists what each path takes")
}
