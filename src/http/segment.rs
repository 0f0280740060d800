//! The part of a path that names something.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::http::Problem;

/// The one variable segment of a route, decoded.
pub(super) struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Segment(name)).map_err(|error| Problem::bad_request(error.body_text()))
    }
}
