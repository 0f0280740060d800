//! Messages of JSON-RPC as servers send them, kept as they are: what the protocol adds later, and what only a server and a
//! client know of, goes through untouched.

use serde_json::{Map, Value, json};

use crate::call::Digest;

/// The largest message that is taken from a server, in bytes.
pub const LARGEST_MESSAGE: usize = 16 << 20;
/// The most characters of a server's words that stand in an error.
const MOST_SAID: usize = 1_000;

/// The notification of a server whose tools are others now.
pub(super) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The code of JSON-RPC for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;

/// What a server sent.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// The answer to a request of ours.
    Answer(u64, Result<Value, RequestError>),
    /// A request, with what is answered to it.
    Request(Value),
    Notification(String),
    /// No message, or the answer to something that we never asked.
    Stray,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The server's own error.
    #[error("the server answered with an error: {message} (code {code})")]
    Refused { code: i64, message: String },
    #[error("the server did not answer within {0} s; what it did by then is not known")]
    TimedOut(u64),
    /// It is gone, and why.
    #[error("{0}")]
    Ended(String),
    #[error("the server's answer is no answer: {0}")]
    Malformed(String),
    /// No connection came about.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// Of HTTP.
    #[error("the server answered with status {status}{why}{colon}{said}", colon = if said.is_empty() { "" } else { ": " })]
    Status { status: u16, why: &'static str, said: String },
}

/// Reads one message.
pub(super) fn read(bytes: &[u8]) -> Incoming {
    let Ok(Value::Object(mut message)) = crate::json::parse(bytes) else { return Incoming::Stray };
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    match (message.get("method").and_then(Value::as_str), id) {
        (Some(method), Some(id)) => Incoming::Request(reply(method, &id)),
        (Some(method), None) => Incoming::Notification(method.to_owned()),
        (None, Some(id)) => match id.as_u64() {
            Some(id) => Incoming::Answer(id, answer(&mut message)),
            None => Incoming::Stray,
        },
        (None, None) => Incoming::Stray,
    }
}

fn answer(message: &mut Map<String, Value>) -> Result<Value, RequestError> {
    if let Some(error) = message.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let said = error.get("message").and_then(Value::as_str).unwrap_or("no message");
        return Err(RequestError::Refused { code, message: said_by_server(said) });
    }
    match message.remove("result") {
        Some(result @ Value::Object(_)) => Ok(result),
        Some(_) => Err(RequestError::Malformed("its result is no object".to_owned())),
        None => Err(RequestError::Malformed("it has neither a result nor an error".to_owned())),
    }
}

/// What is answered to a server's request. It was told that the gateway can do nothing for it but answer pings.
fn reply(method: &str, id: &Value) -> Value {
    if method == "ping" {
        return json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    }
    let message = "the gateway offers no such method to servers";
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": METHOD_NOT_FOUND, "message": message } })
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A server's words, bounded, on as many lines as it wrote, and without what would command a terminal.
pub fn said_by_server(text: &str) -> String {
    let visible = |c: char| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c };
    let mut said: String = text.trim().chars().take(MOST_SAID).map(visible).collect();
    if text.trim().chars().nth(MOST_SAID).is_some() {
        said.push_str(" (truncated)");
    }
    said
}

/// What names a definition, whatever the order of its keys.
pub fn digest(definition: &Value) -> Digest {
    Digest::of_json(definition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i2_every_line_is_something() {
        let answer = |text: &str| match read(text.as_bytes()) {
            Incoming::Answer(id, answer) => Some((id, answer)),
            _ => None,
        };
        let (id, result) = answer(r#"{"jsonrpc":"2.0","id":3,"result":{"x":1,"new":{"y":[]}}}"#).unwrap();
        assert_eq!((id, result.unwrap()), (3, json!({ "x": 1, "new": { "y": [] } })));
        let refused = answer(r#"{"id":3,"error":{"code":-32602,"message":"no\u001b[2J"}}"#).unwrap().1.unwrap_err();
        assert_eq!(refused.to_string(), "the server answered with an error: no\u{fffd}[2J (code -32602)");
        for (text, part) in [(r#"{"id":1,"result":3}"#, "no object"), (r#"{"id":1}"#, "neither")] {
            assert!(answer(text).unwrap().1.unwrap_err().to_string().contains(part), "{text}");
        }
        for stray in [
            "",
            "Server started",
            "[]",
            "3",
            r#"{"id":"a","result":{}}"#,
            r#"{"id":-1,"result":{}}"#,
            "{}",
            "\u{0}",
            r#"{"id":1,"id":2,"result":{}}"#,
        ] {
            assert_eq!(read(stray.as_bytes()), Incoming::Stray, "{stray}");
        }
        assert_eq!(read(br#"{"method":"notifications/x"}"#), Incoming::Notification("notifications/x".into()));
    }

    #[test]
    fn a_servers_requests_are_answered_and_refused() {
        let Incoming::Request(pong) = read(br#"{"id":"a","method":"ping"}"#) else { panic!("no request") };
        assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": "a", "result": {} }));
        let Incoming::Request(no) = read(br#"{"id":1,"method":"sampling/createMessage"}"#) else {
            panic!("no request")
        };
        assert_eq!(no["error"]["code"], METHOD_NOT_FOUND);
    }
}
