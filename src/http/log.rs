//! One line for each request: what was asked by whom, and how it was answered. No query, no header, no body.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::middleware::Next;
use axum::response::Response;
use tracing::info;

use crate::http::Identity;

pub(super) async fn requests(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    // The route as it was written, not as it was asked: a path can hold anything.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let status = response.status().as_u16();
    let route = route.as_ref().map_or("-", MatchedPath::as_str);
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let by = response.extensions().get::<Identity>().map(|identity| identity.role.to_string()).unwrap_or_default();
    info!(%method, route, status, ms, by, "request");
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
