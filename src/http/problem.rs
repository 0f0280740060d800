//! Errors that say what was wrong and what to do next.

use axum::Json;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::approval::{ApprovalError, CredentialError};
use crate::daemon::Refusal;
use crate::gateway::RecordError;

/// An `application/problem+json` answer (RFC 9457).
#[must_use]
#[derive(Debug)]
pub struct Problem(Box<Told>);

#[derive(Debug)]
struct Told {
    status: StatusCode,
    /// The last part of the `type`: `urn:portcullis:problem:KIND`.
    kind: &'static str,
    title: &'static str,
    detail: String,
    next: Option<String>,
    more: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub fn new(status: StatusCode, kind: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Problem(Box::new(Told { status, kind, title, detail, next: None, more: Map::new(), headers: Vec::new() }))
    }

    /// The request is not one that could be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request cannot be understood", detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    pub(super) fn method(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", detail)
    }

    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "A credential is needed", detail)
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"portcullis\""))
            .next("send the header `Authorization: Bearer TOKEN`; `portcullis login` says where the tokens are")
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::FORBIDDEN, "forbidden", "This credential does not allow it", detail)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::CONFLICT, "conflict", "Not possible as things stand", detail)
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The gateway cannot take this on now", detail)
    }

    pub(super) fn inside() -> Self {
        let detail = "the gateway failed inside, and nothing was allowed; please report this as a bug";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error", detail)
    }

    /// What to do about it.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.0.next = Some(next.into());
        self
    }

    /// A further member of the object.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Ends the connection: the rest of the request is not read.
    pub(super) fn closing(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Told { status, kind, title, detail, next, more, headers: further } = *self.0;
        let mut value = Map::new();
        value.insert("type".to_owned(), format!("urn:portcullis:problem:{}", kind).into());
        value.insert("title".to_owned(), title.into());
        value.insert("status".to_owned(), status.as_u16().into());
        value.insert("detail".to_owned(), detail.into());
        if let Some(next) = next {
            value.insert("next".to_owned(), next.into());
        }
        value.extend(more);
        let mut response = (status, Json(Value::Object(value))).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        for (name, value) in further {
            headers.insert(name, value);
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy | Refusal::Stopping => {
                Problem::unavailable(refusal.to_string()).next("make the same request again later")
            }
            Refusal::Broken => Problem::inside(),
        }
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Self {
        let told = error.to_string();
        match error {
            RecordError::Credential(CredentialError::Unknown) => Problem::unauthorized(told),
            RecordError::Approval(error) => match error {
                ApprovalError::NotFound(_) => Problem::not_found(told),
                ApprovalError::AgentCredential { .. } => Problem::forbidden(told),
                ApprovalError::NeedsReviewer { .. } | ApprovalError::SamePerson { .. } => {
                    Problem::forbidden(told).next("a reviewer who is another person has to answer")
                }
                ApprovalError::NoPrefix { .. } => {
                    Problem::bad_request(told).next("grant it for this call, or for the same call in the session")
                }
                ApprovalError::Expired { .. }
                | ApprovalError::NotGranted { .. }
                | ApprovalError::NotPending { .. }
                | ApprovalError::TooMany { .. }
                | ApprovalError::TooOften { .. } => Problem::conflict(told),
                ApprovalError::Database(_) | ApprovalError::Seal(_) | ApprovalError::Stored(_) => {
                    Problem::unavailable(told)
                }
            },
            RecordError::Credential(_)
            | RecordError::Database(_)
            | RecordError::Kept(_)
            | RecordError::Log(_)
            | RecordError::NotRun(_)
            | RecordError::Read(_)
            | RecordError::State(_) => Problem::unavailable(told),
        }
    }
}
