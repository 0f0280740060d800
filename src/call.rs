//! What an agent asked for: [`Request`] as it arrived, [`Call`] once canonical, and the digest that binds
//! what was judged to what is run.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// A tool call as a front received it: nothing in it has been checked yet.
#[derive(Clone, Debug)]
pub struct Request {
    /// The name the caller used; the registry resolves it to a tool.
    pub tool: String,
    /// The arguments as sent. Anything but a JSON object is refused while canonicalising.
    pub arguments: Value,
    /// Working directory for the call; relative paths start at the workspace root.
    pub cwd: Option<PathBuf>,
    pub principal: Principal,
    pub origin: Origin,
    /// The caller's own identifier for this call, carried into the record.
    pub caller_id: Option<String>,
}

/// A canonical tool call. What is judged is exactly what is executed: nothing in here is coerced, defaulted or
/// rewritten after [`crate::registry::Registry::canonicalise`] made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Unique for each call (UUID v7, so that identifiers sort by time).
    pub id: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Absolute working directory.
    pub cwd: PathBuf,
    pub principal: Principal,
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
}

impl Call {
    /// An argument that is a string, if the call has it.
    pub fn text(&self, argument: &str) -> Option<&str> {
        self.arguments.get(argument).and_then(Value::as_str)
    }
}

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The agent's configured name.
    pub agent: String,
    /// Set when a sub-agent of `agent` makes the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
    pub session: String,
    pub mode: Mode,
    /// Nobody is there to answer: an ASK becomes a DENY.
    pub unattended: bool,
}

/// A principal's mode, in order of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Read-only tools alone.
    Plan,
    #[default]
    Default,
    /// `Write` and `Edit` need no confirmation.
    AcceptEdits,
    /// Grants ASK(1) in advance; never ASK(2), DENY or a missing confinement.
    Bypass,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Plan => "plan",
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Bypass => "bypass",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "plan" => Ok(Mode::Plan),
            "default" => Ok(Mode::Default),
            "acceptEdits" => Ok(Mode::AcceptEdits),
            "bypass" => Ok(Mode::Bypass),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

/// A mode that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("unknown mode `{0}`: the modes are plan, default, acceptEdits, bypass")]
pub struct UnknownMode(String);

/// Which front brought the call in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `portcullis run` and `portcullis check`.
    Cli,
    /// An agent's own tools, which the agent's program runs: `portcullis hook`.
    Hook,
    /// A program that uses this crate as a library.
    Library,
    /// An MCP client.
    Mcp,
    /// The HTTP interface.
    Rest,
}

impl Origin {
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Cli => "cli",
            Origin::Hook => "hook",
            Origin::Library => "library",
            Origin::Mcp => "mcp",
            Origin::Rest => "rest",
        }
    }
}

/// Whether a tool needs a confirmation under the default policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    Safe,
    Sensitive,
}

/// A SHA-256 digest, written as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Digest(Sha256::digest(bytes.as_ref()).into())
    }

    /// The digest of a value, over its JSON with the keys of every object sorted.
    pub fn of_json(value: &Value) -> Self {
        let mut text = String::new();
        write_sorted(value, &mut text);
        Digest::of(text)
    }

    /// A digest that was computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                if let Some(inner) = map.get(key) {
                    write_sorted(inner, out);
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = hex::FromHexError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(s, &mut bytes)?;
        Ok(Digest(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_json_ignores_the_order_of_keys_and_nothing_else() {
        let a: Value = serde_json::from_str(r#"{"b":[1,{"y":2,"x":null}],"a":"t"}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":"t","b":[1,{"x":null,"y":2}]}"#).unwrap();
        let c: Value = serde_json::from_str(r#"{"a":"t","b":[{"x":null,"y":2},1]}"#).unwrap();
        assert_eq!(Digest::of_json(&a), Digest::of_json(&b));
        assert_ne!(Digest::of_json(&a), Digest::of_json(&c));
    }

    #[test]
    fn modes_are_ordered_by_power() {
        assert!(Mode::Plan < Mode::Default && Mode::Default < Mode::AcceptEdits && Mode::AcceptEdits < Mode::Bypass);
    }
}
