//! What came of a call, as an HTTP answer.

use axum::Json;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::approval::{Approval, Status};
use crate::gateway::{Asks, Done, Judged, Outcome};
use crate::http::Problem;
use crate::registry::ToolError;

/// Seconds after which asking again makes sense.
const AGAIN: HeaderValue = HeaderValue::from_static("5");

/// 200 for a call that ran, 202 for one that waits, a problem for the rest. `answered` is what became of the approval
/// that the call waited for in vain.
pub(super) fn outcome(outcome: Outcome, answered: Option<&Approval>) -> Response {
    match (outcome, answered) {
        (Outcome::Done(done), _) => ran(done),
        (Outcome::Denied(judged), _) => denied(&judged).into_response(),
        (Outcome::Asks(asks), Some(approval)) => not_approved(&asks, approval).into_response(),
        (Outcome::Asks(asks), None) => waits(&asks),
    }
}

fn ran(done: Done) -> Response {
    let Done { call, judged, result } = done;
    let (text, structured, is_error, raw) = match result {
        Ok(output) => (output.text, output.structured, output.is_error, output.raw),
        Err(ToolError::Setup(why)) => {
            let title = "The sandbox could not be set up; nothing ran";
            let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "sandbox-setup", title, why);
            return problem.next("`portcullis doctor` says what is missing").with("call", call).into_response();
        }
        Err(error) => (error.to_string(), None, true, None),
    };
    let mut answer = Map::new();
    answer.insert("call".to_owned(), call.into());
    answer.extend(judged.report());
    // What was decided in the end; the findings say what a person approved.
    answer.insert("decision".to_owned(), "allow".into());
    answer.insert("output".to_owned(), text.into());
    answer.insert("structured".to_owned(), structured.unwrap_or_default());
    answer.insert("is_error".to_owned(), is_error.into());
    if let Some(raw) = raw {
        answer.insert("result".to_owned(), raw);
    }
    Json(Value::Object(answer)).into_response()
}

fn waits(asks: &Asks) -> Response {
    let id = &asks.pending.id;
    let mut answer = asks.judged.report();
    let place = format!("/api/pending/{id}");
    answer.insert("pending".to_owned(), json!(id));
    answer.insert("expires".to_owned(), json!(asks.pending.expires));
    answer.insert("status_at".to_owned(), place.as_str().into());
    let next = "a person has to approve; make the same request again once it is granted, or add ?wait=30s to it now";
    answer.insert("next".to_owned(), next.into());
    let mut response = (StatusCode::ACCEPTED, Json(Value::Object(answer))).into_response();
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(LOCATION, place);
    }
    response.headers_mut().insert(RETRY_AFTER, AGAIN);
    response
}

fn not_approved(asks: &Asks, approval: &Approval) -> Problem {
    let id = &approval.id;
    let (title, detail) = match approval.status {
        Status::Refused => {
            let reason = approval.reason.as_deref().unwrap_or("no reason was given");
            ("A person refused it", format!("approval {id} was refused: {reason}"))
        }
        Status::Expired | Status::Pending | Status::Granted | Status::Consumed => {
            ("Nobody approved it in time", format!("approval {id} is {}", approval.status.as_str()))
        }
    };
    let problem = Problem::new(StatusCode::FORBIDDEN, "not-approved", title, detail);
    with_report(problem, &asks.judged).with("approval", json!(id))
}

fn denied(judged: &Judged) -> Problem {
    let reason = judged.reason();
    let detail = reason.map_or("the call is denied", |finding| finding.message.as_str());
    let rule = reason.map_or("", |finding| finding.id.as_str());
    let problem = match rule {
        "call.unknown-tool" => Problem::not_found(detail).next("GET /api/tools lists the tools"),
        "call.invalid" => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            let problem = Problem::new(status, "invalid-arguments", "The arguments do not fit", detail);
            problem.next("GET /api/tools shows each tool's parameters")
        }
        "audit.unavailable" => {
            Problem::unavailable(detail).next("`portcullis doctor` says why; make the call again when that is mended")
        }
        _ => {
            let problem = Problem::new(StatusCode::FORBIDDEN, "denied", "Denied by the firewall", detail);
            let otherwise = "do it another way, or ask the operator to change the rule";
            problem.next(reason.and_then(|finding| finding.safer.as_deref()).unwrap_or(otherwise))
        }
    };
    with_report(problem.with("rule", rule), judged)
}

fn with_report(problem: Problem, judged: &Judged) -> Problem {
    judged.report().into_iter().fold(problem, |problem, (name, value)| problem.with(&name, value))
}
