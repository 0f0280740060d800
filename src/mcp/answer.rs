//! What came of a call, as a `tools/call` result.
//!
//! Every result carries `_meta.portcullis.decision`. A denial and a call that waits are results with `isError`, so that
//! the model sees them; `decision` and the first word of the text tell them from a tool's own failure, whose decision is
//! `allow`.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use crate::gateway::{Asks, Done, END_NOT_RECORDED, Judged};
use crate::registry::ToolError;
use crate::verdict::{Decision, Finding, Severity, Stage, Verdict};

/// The key under which a result says what the gateway decided.
pub(super) const KEY: &str = "portcullis";

/// A call that ran, with the tool's own answer; and that answer whole, where it is a server's.
pub(super) fn done(done: &Done) -> (CallToolResult, Option<Value>) {
    match of_server(done) {
        Some((result, raw)) => (result, Some(raw)),
        None => (of_tool(done), None),
    }
}

/// The answer of a server behind the gateway, as it is. None where it gave none, or one that the protocol does not have.
fn of_server(done: &Done) -> Option<(CallToolResult, Value)> {
    let mut raw = done.result.as_ref().ok()?.raw.clone()?;
    if let Some(blocks) = raw.get_mut("content").and_then(Value::as_array_mut)
        && blocks.iter().filter_map(|block| block.get("text")?.as_str()).any(sounds_like_ours)
    {
        let text = "[portcullis: the call was allowed and ran; what follows are the server's words, not the gateway's]";
        blocks.insert(0, json!({ "type": "text", "text": text }));
    }
    let mut result: CallToolResult = serde_json::from_value(raw.clone()).ok()?;
    // Its own words under our key could look like a decision of ours.
    let said = json!({ "decision": "allow", "call": done.call });
    result.meta.get_or_insert_default().0.insert(KEY.to_owned(), said);
    if let Some(finding) = unrecorded(done) {
        result.content.push(ContentBlock::text(format!("[{}]", finding.message)));
    }
    Some((result, raw))
}

/// Whether a server's text begins like an answer of the gateway's own.
fn sounds_like_ours(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| c.is_alphanumeric()).take(7).collect();
    ["denied", "pending"].iter().any(|word| plain.to_lowercase().starts_with(word))
}

fn unrecorded(done: &Done) -> Option<&Finding> {
    done.judged.verdict.notes.iter().find(|finding| finding.id == END_NOT_RECORDED)
}

fn of_tool(done: &Done) -> CallToolResult {
    let mut said = json!({ "decision": "allow", "call": done.call });
    let (text, structured, is_error) = match &done.result {
        Ok(output) => (output.text.clone(), output.structured.clone(), output.is_error),
        Err(error) => {
            let failure = match error {
                ToolError::Failed(_) => "tool",
                ToolError::Setup(_) => "sandbox",
                ToolError::Cancelled => "cancelled",
            };
            note(&mut said, "failure", failure);
            (error.to_string(), None, true)
        }
    };
    let text = unrecorded(done).map_or(text.clone(), |finding| format!("{text}\n[{}]", finding.message));
    result(text, structured, is_error, said)
}

/// A call that was refused by the firewall.
pub(super) fn denied(judged: &Judged) -> CallToolResult {
    let found = objections(&judged.verdict);
    let mut text = String::from("DENIED by portcullis");
    for (n, (_, finding)) in found.iter().enumerate() {
        text.push_str(if n == 0 { ": " } else { "\nAlso: " });
        text.push_str(&told(finding));
    }
    text.push_str("\nNothing ran. The same call, unchanged, gets the same answer while this stands.");
    refusal(text, json!({ "decision": "deny", "findings": listed(&found) }))
}

/// A call that a person refused.
pub(super) fn refused(asks: &Asks, reason: Option<&str>) -> CallToolResult {
    let reason = reason.unwrap_or("no reason was given");
    let text = format!(
        "DENIED by portcullis: approval.refused: a person was asked for this call and refused it: {reason}\n\
         Nothing ran. Do not make the same call again unless you are told to."
    );
    let found = objections(&asks.judged.verdict);
    refusal(
        text,
        json!({ "decision": "deny", "pending": asks.pending.id, "refused": reason, "findings": listed(&found) }),
    )
}

/// A call that waits for a person.
pub(super) fn pending(asks: &Asks) -> CallToolResult {
    let (id, expires) = (&asks.pending.id, asks.pending.expires);
    let found = objections(&asks.judged.verdict);
    let mut text = format!("PENDING in portcullis: a person has to approve this call first (approval {id}).");
    for (_, finding) in &found {
        text.push_str("\nBecause: ");
        text.push_str(&told(finding));
    }
    text.push_str(&format!(
        "\nNothing ran yet. A person can answer with: portcullis approvals grant {id}\n\
         The same call, made again with the same arguments, runs once that is done; it lapses at {expires}."
    ));
    let Decision::Ask(level) = asks.judged.verdict.decision else {
        return refusal(text, json!({ "decision": "ask", "pending": id, "expires": expires }));
    };
    let said = json!({
        "decision": "ask",
        "level": level.number(),
        "pending": id,
        "expires": expires,
        "findings": listed(&found),
    });
    refusal(text, said)
}

/// What stands against the call, the gravest first.
fn objections(verdict: &Verdict) -> Vec<(Option<Stage>, &Finding)> {
    let mut found: Vec<_> = verdict.findings().filter(|(_, finding)| finding.severity > Severity::Note).collect();
    found.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
    found
}

fn told(finding: &Finding) -> String {
    let mut text = format!("{}: {}", finding.id, finding.message);
    if let Some(safer) = &finding.safer {
        text.push_str("\nInstead: ");
        text.push_str(safer);
    }
    text
}

fn listed(found: &[(Option<Stage>, &Finding)]) -> Vec<Value> {
    let one = |(stage, finding): &(Option<Stage>, &Finding)| {
        let mut value = json!({
            "stage": stage,
            "id": finding.id,
            "severity": finding.severity,
            "message": finding.message,
        });
        if let Some(safer) = &finding.safer {
            note(&mut value, "safer", safer);
        }
        value
    };
    found.iter().map(one).collect()
}

fn note(value: &mut Value, key: &str, text: &str) {
    if let Some(map) = value.as_object_mut() {
        map.insert(key.to_owned(), Value::from(text));
    }
}

/// A result of a call that did not run: what the gateway says is the structured content, too.
fn refusal(text: String, said: Value) -> CallToolResult {
    result(text, Some(json!({ KEY: said })), true, said)
}

fn result(text: String, structured: Option<Value>, is_error: bool, said: Value) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = structured;
    result.meta = Some(MetaObject(Map::from_iter([(KEY.to_owned(), said)])));
    result
}
