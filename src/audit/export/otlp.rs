//! Spans in the JSON form of the OpenTelemetry protocol, with the names of the GenAI conventions: one for each call, in the
//! trace of its session.

use serde_json::{Value, json};

use super::Step;
use crate::audit::event::Outcome;
use crate::call::Digest;
use crate::verdict::Decision;

/// The span of a call, as a batch of its own.
pub(super) fn batch(step: &Step<'_>) -> Value {
    let decided = step.decided;
    let call = &decided.call;
    let start = step.time.as_nanosecond();
    let end = start + i128::from(step.ended.map_or(0, |finished| finished.ms)) * 1_000_000;
    let mut attributes = vec![
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", &call.tool),
        attribute("gen_ai.tool.call.id", &call.id),
        attribute("gen_ai.agent.name", &call.principal.agent),
        attribute("gen_ai.conversation.id", &call.principal.session),
        attribute("gate.decision", decided.verdict.decision.into()),
        attribute("gate.answer", decided.effective.into()),
        attribute("gate.seq", &step.seq.to_string()),
    ];
    attributes.extend(decided.reason().map(|finding| attribute("gate.rule", &finding.id)));
    let failed = match (decided.effective, step.ended.map(|finished| &finished.outcome)) {
        (Decision::Deny, _) => Some("denied"),
        (Decision::Allow, Some(Outcome::Ok | Outcome::Exited { code: 0 }) | None) | (Decision::Ask(_), _) => None,
        (Decision::Allow, Some(_)) => Some("tool_error"),
    };
    attributes.extend(failed.map(|error| attribute("error.type", error)));
    json!({ "resourceSpans": [{
        "resource": { "attributes": [
            attribute("service.name", "portcullis"), attribute("service.version", env!("CARGO_PKG_VERSION")),
        ] },
        "scopeSpans": [{
            "scope": { "name": "portcullis.audit" },
            "spans": [{
                "traceId": part(&call.principal.session, 32),
                "spanId": part(&call.id, 16),
                "name": format!("execute_tool {}", call.tool),
                "kind": 1,
                "startTimeUnixNano": start.to_string(),
                "endTimeUnixNano": end.to_string(),
                "attributes": attributes,
                "status": { "code": if failed.is_some() { 2 } else { 1 } },
            }],
        }],
    }] })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// An identifier of so many hexadecimal digits, the same for the same name.
fn part(name: &str, digits: usize) -> String {
    Digest::of(name).to_string().chars().take(digits).collect()
}
