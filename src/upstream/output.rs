//! A server's result as the gateway's: the text that models and records see, and the server's own answer beside it.

use serde_json::Value;

use crate::registry::{Output, clip};

/// The most bytes of a result, apart from its texts.
const LARGEST_RESULT: usize = 8 << 20;
/// Room for the mark of a text that is cut.
const CUT: usize = 16;
/// The most bytes of text that are passed on.
pub const MOST_TEXT: usize = 256 << 10;

/// Bounds a result: its texts are cut, and one that is too large besides is not passed on.
pub(super) fn of(mut result: Value) -> Output {
    let mut left = MOST_TEXT;
    let blocks = result.get_mut("content").and_then(Value::as_array_mut);
    let texts: Vec<String> = blocks.into_iter().flatten().map(|block| shown(block, &mut left)).collect();
    let text = texts.join("\n");
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let size = result.to_string().len();
    if size > LARGEST_RESULT {
        let note =
            format!("[the server's result has {size} bytes, and at most {LARGEST_RESULT} are passed on: ask for less]");
        return Output { text: format!("{text}\n{note}"), structured: None, is_error: true, raw: None };
    }
    let structured = result.get("structuredContent").cloned();
    let text = if text.is_empty() { structured.as_ref().map(Value::to_string).unwrap_or_default() } else { text };
    Output { text: clip(text, MOST_TEXT), structured, is_error, raw: Some(result) }
}

/// A part of a result as text; its own texts are cut to what is left.
fn shown(block: &mut Value, left: &mut usize) -> String {
    let word = |block: &Value, key: &str| block.get(key).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let kind = word(block, "type");
    let text = match kind.as_str() {
        "text" => block.get_mut("text"),
        "resource" => block.pointer_mut("/resource/text"),
        _ => None,
    };
    if let Some(Value::String(text)) = text {
        // Where nothing is left, that something was cut is still said.
        *text = clip(std::mem::take(text), (*left).max(CUT));
        *left = left.saturating_sub(text.len());
        return text.clone();
    }
    match kind.as_str() {
        "image" | "audio" => {
            let bytes = block.get("data").and_then(Value::as_str).map_or(0, |data| data.len() / 4 * 3);
            format!("[{kind}: {}, about {bytes} bytes]", word(block, "mimeType"))
        }
        "resource_link" => format!("[resource: {}]", word(block, "uri")),
        "resource" => {
            let uri = block.pointer("/resource/uri").and_then(Value::as_str).unwrap_or("unknown");
            format!("[resource: {uri}]")
        }
        other => format!("[{}]", other.chars().take(40).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_passed_on_as_it_is_and_as_text() {
        let result = json!({
            "content": [
                { "type": "text", "text": "hi", "annotations": { "new": 1 } },
                { "type": "image", "mimeType": "image/png", "data": "AAAAAAAA" },
                { "type": "resource_link", "uri": "file:///x" },
                { "type": "resource", "resource": { "uri": "file:///y", "text": "inside" } },
                { "type": "hologram", "x": 1 },
            ],
            "structuredContent": { "a": 1.5 },
            "unknown": { "field": [] },
        });
        let output = of(result.clone());
        assert_eq!(output.text, "hi\n[image: image/png, about 6 bytes]\n[resource: file:///x]\ninside\n[hologram]");
        assert_eq!((output.structured, output.raw, output.is_error), (Some(json!({ "a": 1.5 })), Some(result), false));
        assert!(of(json!({ "isError": true })).is_error);
        assert_eq!(of(json!({ "structuredContent": { "a": 1 } })).text, r#"{"a":1}"#);
    }

    #[test]
    fn i6_a_large_result_is_cut_and_says_so() {
        let text = "x".repeat(MOST_TEXT);
        let output = of(json!({ "content": [{ "type": "text", "text": text }, { "type": "text", "text": text }] }));
        let raw = output.raw.unwrap().to_string();
        assert!(raw.len() < MOST_TEXT + 1_000 && raw.contains("truncated"), "{} bytes", raw.len());
        assert!(output.text.len() <= MOST_TEXT);
        let output =
            of(json!({ "content": [{ "type": "image", "mimeType": "i", "data": "A".repeat(LARGEST_RESULT) }] }));
        assert!(output.is_error && output.raw.is_none() && output.text.contains("ask for less"), "{}", output.text);
    }
}
