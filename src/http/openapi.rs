//! The description of the interface, in OpenAPI 3.1.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /api/openapi.json`
pub(super) async fn document() -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], DOCUMENT).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::http::{guarded_routes, open_routes};

    #[test]
    fn the_document_describes_every_route_and_no_other() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters") {
                described.insert((path.clone(), method.clone()));
                let open = operation["security"].as_array().is_some_and(Vec::is_empty);
                let is_open = open_routes().iter().any(|(route, ..)| route == path);
                assert_eq!(open, is_open, "whether {path} needs a credential");
            }
        }
        let routes = open_routes().into_iter().chain(guarded_routes());
        let served: BTreeSet<(String, String)> = routes
            .flat_map(|(path, methods, _)| methods.iter().map(move |m| (path.to_owned(), (*m).to_owned())))
            .collect();
        assert_eq!(described, served);
    }
}
