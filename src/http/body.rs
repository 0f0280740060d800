//! Reading a request's body, within a size and a time.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::http::Problem;
use crate::json;
use crate::registry::LARGEST_ARGUMENTS;

/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);

/// The largest body of a call: arguments of the largest size that is taken, with room for how JSON writes them.
const LARGEST: usize = 2 * LARGEST_ARGUMENTS;

/// Reads a body of at most `limit` bytes. One that is announced to be larger is refused unread.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("the body is larger than the {limit} bytes that are taken");
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Too large", detail);
        problem.next("send less at a time").closing()
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match timeout(ARRIVAL, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::bad_request("the body broke off").closing()),
        Err(_) => {
            let detail = format!("the body did not arrive within {} s", ARRIVAL.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "Too slow", detail).closing())
        }
    }
}

/// Reads a body that is a JSON object of this form. An empty body stands for an empty object.
pub(super) async fn object<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    let declared = parts.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default().to_owned());
    let bytes = read(body, LARGEST).await?;
    if bytes.is_empty() {
        return form(Value::Object(serde_json::Map::new()));
    }
    // A page of another site can make a browser post text or a form without asking first, and JSON not.
    let essence = declared.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let detail = "the body has to be JSON";
        let problem = Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", "Not JSON", detail);
        return Err(problem.next("send the header `Content-Type: application/json`"));
    }
    let value = json::parse(&bytes)
        .map_err(|error| Problem::bad_request(format!("the body is not the JSON that is taken: {error}")))?;
    form(value)
}

fn form<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    if !value.is_object() {
        return Err(Problem::bad_request("the body is no JSON object"));
    }
    serde_json::from_value(value).map_err(|error| Problem::bad_request(format!("the body does not fit: {error}")))
}
