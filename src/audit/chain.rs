//! A line of the log as bytes: how one is made, and how one is read back.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::audit::event::{Content, Event, Record};
use crate::audit::redact::Redactor;
use crate::audit::{FORMAT, LogError, MAX_DEPTH, MAX_LINE};
use crate::call::Digest;

/// `prev` of the first line.
pub(super) fn zeros() -> Digest {
    Digest::from_bytes([0; 32])
}

/// What every line carries, whatever its kind.
#[derive(Deserialize)]
pub(super) struct Header<'a> {
    pub v: u32,
    pub seq: u64,
    pub time: Timestamp,
    pub prev: Digest,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

impl<'a> Header<'a> {
    /// Reads the header of a line. The line is checked to be UTF-8 and JSON as a whole.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(line).map_err(|_| Unreadable::Encoding)?;
        Ok(serde_json::from_str(text)?)
    }
}

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("nested deeper than {MAX_DEPTH} levels")]
    Depth,
    #[error("not UTF-8")]
    Encoding,
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// An event as JSON, without what depends on its place in the log: made before anybody has to wait for it.
pub(super) struct Body(Vec<u8>);

impl Body {
    /// Secrets in the event are replaced first: no others than these bytes reach the disk.
    pub(super) fn redacted(event: &Event, redactor: &Redactor) -> Result<Self, LogError> {
        let json = serde_json::to_vec(event).map_err(LogError::Json)?;
        if depth(&json) > MAX_DEPTH {
            return Err(LogError::TooDeep);
        }
        let json = redactor.record(&json)?.unwrap_or(json);
        Self::checked(json)
    }

    /// An event of the log's own, which holds nobody's text.
    pub(super) fn of(event: &Event) -> Result<Self, LogError> {
        Self::checked(serde_json::to_vec(event).map_err(LogError::Json)?)
    }

    fn checked(json: Vec<u8>) -> Result<Self, LogError> {
        if json.len() > MAX_LINE - MAX_HEADER {
            return Err(LogError::TooLarge { bytes: json.len() });
        }
        if depth(&json) > MAX_DEPTH {
            return Err(LogError::TooDeep);
        }
        Ok(Body(json))
    }
}

/// More than the fields before the body ever take: two numbers, a time and a hash.
const MAX_HEADER: usize = 256;

/// The bytes of a record, with the newline at their end.
pub(super) fn compose(seq: u64, prev: Digest, body: &Body) -> Vec<u8> {
    let now = Timestamp::now();
    let time = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    let mut bytes = format!(r#"{{"v":{FORMAT},"seq":{seq},"time":"{time}","prev":"{prev}","#).into_bytes();
    bytes.extend_from_slice(body.0.strip_prefix(b"{").unwrap_or(&body.0));
    bytes.push(b'\n');
    bytes
}

/// Reads a whole line.
pub(super) fn parse(line: &[u8]) -> Result<Record, Unreadable> {
    let header = Header::parse(line)?;
    if depth(line) > MAX_DEPTH {
        return Err(Unreadable::Depth);
    }
    let content = match &*header.kind {
        "approval" => Content::Event(Event::Approval(content(line)?)),
        "checkpoint" => Content::Event(Event::Checkpoint(content(line)?)),
        "control" => Content::Event(Event::Control(content(line)?)),
        "decided" => Content::Event(Event::Decided(content(line)?)),
        "finished" => Content::Event(Event::Finished(content(line)?)),
        "opened" => Content::Event(Event::Opened(content(line)?)),
        "recovered" => Content::Event(Event::Recovered(content(line)?)),
        "rejected" => Content::Event(Event::Rejected(content(line)?)),
        "retired" => Content::Event(Event::Retired(content(line)?)),
        "rotated" => Content::Event(Event::Rotated(content(line)?)),
        "unknown" => Content::Event(Event::Unknown(content(line)?)),
        other => {
            let mut fields: Map<String, Value> = content(line)?;
            fields.retain(|name, _| !["v", "seq", "time", "prev", "kind"].contains(&name.as_str()));
            Content::Foreign { kind: other.to_owned(), fields }
        }
    };
    Ok(Record { v: header.v, seq: header.seq, time: header.time, prev: header.prev, content })
}

/// Reads the part of a line that a type names. The depth must have been checked.
pub(super) fn content<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, Unreadable> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    deserializer.disable_recursion_limit();
    Ok(T::deserialize(&mut deserializer)?)
}

/// How deep the arrays and objects of a JSON text nest.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::event::Opened;
    use crate::audit::{Change, Control};
    use crate::state::Process;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let event = Event::Opened(Opened { gateway: "1".into(), process: Process::current().clone() });
        let bytes = compose(7, Digest::of("x"), &Body::of(&event).unwrap());
        let (newline, line) = bytes.split_last().unwrap();
        assert_eq!(*newline, b'\n');
        let record = parse(line).unwrap();
        assert_eq!((record.v, record.seq, record.prev), (FORMAT, 7, Digest::of("x")));
        assert_eq!(record.content, Content::Event(event));
    }

    #[test]
    fn newer_fields_are_tolerated_and_newer_kinds_kept() {
        let head = r#""v":2,"seq":0,"time":"2026-11-30T00:00:00Z","prev":"0000000000000000000000000000000000000000000000000000000000000000","new":[1]"#;
        let known = format!(r#"{{{head},"kind":"control","change":"policy-loaded","detail":"d","more":{{}}}}"#);
        let expected =
            Control { change: Change::PolicyLoaded, detail: "d".into(), before: None, after: None, by: None };
        assert_eq!(parse(known.as_bytes()).unwrap().content, Content::Event(Event::Control(expected)));
        let foreign = format!(r#"{{{head},"kind":"novelty","size":3}}"#);
        let Content::Foreign { kind, fields } = parse(foreign.as_bytes()).unwrap().content else {
            panic!("an unknown kind was taken for a known one");
        };
        assert_eq!(kind, "novelty");
        assert_eq!(Value::from(fields), serde_json::json!({"new": [1], "size": 3}));
    }

    #[test]
    fn i2_deep_nesting_is_an_error_for_the_writer_and_for_the_reader() {
        assert_eq!(depth(br#"{"a":"[[[\"[","b":[{}]}"#), 3, "brackets in strings do not nest");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let line =
            format!(r#"{{"v":1,"seq":0,"time":"2026-11-30T00:00:00Z","prev":"{}","kind":"x","deep":{deep}}}"#, zeros());
        assert!(matches!(parse(line.as_bytes()), Err(Unreadable::Depth)));
    }
}
