//! Events of the Open Cybersecurity Schema Framework (schema.ocsf.io, version 1.8.0): class API Activity (6003) for every
//! call, with the profile `security_control`; class Process Activity (1007) besides for a command that ran.

use serde_json::{Value, json};

use super::Step;
use crate::audit::event::Outcome;
use crate::verdict::{Decision, Severity};

pub(super) fn events(step: &Step<'_>) -> Vec<Value> {
    let mut events = vec![api_activity(step)];
    events.extend(process_activity(step));
    events
}

fn api_activity(step: &Step<'_>) -> Value {
    let decided = step.decided;
    let (activity_id, activity) = match decided.call.tool.as_str() {
        "Glob" | "Grep" | "ListDir" | "Read" => (2, "Read"),
        "Edit" | "Write" => (3, "Update"),
        _ => (99, "Execute"),
    };
    let (action_id, action, disposition_id, disposition) = match (decided.effective, &decided.grant) {
        (Decision::Allow, Some(_)) => (1, "Allowed", 8, "Approved"),
        (Decision::Allow, None) => (1, "Allowed", 1, "Allowed"),
        (Decision::Ask(_), _) => (99, "ask", 23, "Challenge"),
        (Decision::Deny, _) if refused(step) => (2, "Denied", 25, "Rejected"),
        (Decision::Deny, _) => (2, "Denied", 2, "Blocked"),
    };
    let reason = decided.reason();
    let rules: Vec<Value> = decided
        .verdict
        .findings()
        .filter(|(_, finding)| finding.severity > Severity::Note)
        .map(|(stage, finding)| {
            json!({ "policy": { "name": finding.id, "desc": finding.message, "group": { "name": stage.map(|s| s.as_str()) } } })
        })
        .collect();
    let mut event = json!({
        "class_uid": 6003, "class_name": "API Activity", "category_uid": 6, "category_name": "Application Activity",
        "activity_id": activity_id, "activity_name": activity, "type_uid": 600_300 + activity_id,
        "type_name": format!("API Activity: {activity}"),
        "time": step.time.as_millisecond(),
        "severity_id": severity(step).0, "severity": severity(step).1,
        "status_id": status(step).0, "status": status(step).1,
        "message": reason.map(|finding| finding.message.as_str()),
        "metadata": metadata(step, &["security_control"]),
        "actor": actor(step),
        "api": {
            "operation": decided.call.tool,
            "request": { "uid": decided.call.id, "data": decided.call.arguments },
            "service": { "name": "portcullis" },
        },
        "src_endpoint": { "name": decided.call.principal.agent, "type_id": 0, "type": "Unknown" },
        "action_id": action_id, "action": action, "disposition_id": disposition_id, "disposition": disposition,
        "is_alert": decided.effective == Decision::Deny,
        "authorizations": rules,
        "unmapped": {
            "seq": step.seq, "prev": step.prev, "digest": decided.digest, "policies": decided.hashes.policies,
            "packs": decided.hashes.packs, "profile": decided.hashes.profile, "mode": decided.call.principal.mode,
            "subject": decided.subject(),
        },
    });
    if let (Some(finished), Some(map)) = (step.ended, event.as_object_mut()) {
        map.insert("duration".to_owned(), finished.ms.into());
    }
    event
}

/// What a command was, and how it ended.
fn process_activity(step: &Step<'_>) -> Option<Value> {
    let (finished, command) = (step.ended?, step.decided.call.text("command")?);
    let code = match &finished.outcome {
        Outcome::Exited { code } => Some(*code),
        Outcome::Signaled { signal } => Some(128 + signal),
        Outcome::TimedOut | Outcome::OverLimit { .. } => None,
        // It did not start.
        Outcome::NotRun { .. } | Outcome::Ok | Outcome::SetupFailed { .. } | Outcome::ToolError { .. } => return None,
    };
    let profile = step.decided.facts.as_ref().and_then(|facts| facts.sandbox.as_ref()).map(|sandbox| &sandbox.profile);
    let mut event = json!({
        "class_uid": 1007, "class_name": "Process Activity", "category_uid": 1, "category_name": "System Activity",
        "activity_id": 1, "activity_name": "Launch", "type_uid": 100_701, "type_name": "Process Activity: Launch",
        "time": step.time.as_millisecond(),
        "severity_id": 1, "severity": "Informational",
        "status_id": status(step).0, "status": status(step).1,
        "metadata": metadata(step, &[]),
        "actor": actor(step),
        "device": { "type_id": 0, "type": "Unknown", "hostname": "localhost" },
        "process": {
            "name": "bash", "cmd_line": command, "working_directory": step.decided.call.cwd.to_string_lossy(),
            "uid": step.decided.call.id, "sandbox": profile,
        },
        "duration": finished.ms,
    });
    if let (Some(code), Some(map)) = (code, event.as_object_mut()) {
        map.insert("exit_code".to_owned(), code.into());
    }
    Some(event)
}

fn metadata(step: &Step<'_>, profiles: &[&str]) -> Value {
    json!({
        "version": "1.8.0", "profiles": profiles, "uid": step.decided.call.id, "sequence": step.seq, "log_name": "audit",
        "correlation_uid": step.decided.call.principal.session,
        "product": { "name": "Portcullis", "vendor_name": "Portcullis", "version": env!("CARGO_PKG_VERSION") },
    })
}

fn actor(step: &Step<'_>) -> Value {
    let who = &step.decided.call.principal;
    json!({
        "app_name": who.agent, "app_uid": who.agent,
        "session": { "uid": who.session },
        "invoked_by": who.sub_agent,
    })
}

fn severity(step: &Step<'_>) -> (u8, &'static str) {
    let fatal = step.decided.verdict.findings().any(|(_, finding)| finding.severity == Severity::Fatal);
    match step.decided.effective {
        _ if fatal => (4, "High"),
        Decision::Deny => (3, "Medium"),
        Decision::Ask(_) => (2, "Low"),
        Decision::Allow => (1, "Informational"),
    }
}

fn status(step: &Step<'_>) -> (u8, &'static str) {
    match (step.decided.effective, step.ended.map(|finished| &finished.outcome)) {
        (Decision::Deny, _) => (2, "Failure"),
        (Decision::Allow, Some(Outcome::Ok | Outcome::Exited { code: 0 })) => (1, "Success"),
        (Decision::Allow, Some(_)) => (2, "Failure"),
        (Decision::Allow | Decision::Ask(_), _) => (0, "Unknown"),
    }
}

/// Whether a person said no.
fn refused(step: &Step<'_>) -> bool {
    step.decided.verdict.notes.iter().any(|note| note.id == "approval.refused")
}
