//! A session with a server: the handshake, its tools, and calls of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Http, HttpError};
use super::lines::{Lines, StartError};
use super::wire::RequestError;
use crate::call::Digest;
use crate::config::GivenError;

/// The revision of the protocol that servers are spoken to in, and those in which they may answer.
const REVISION: &str = "2025-11-25";
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", REVISION];
/// How long a server has until it can take calls.
const START: Duration = Duration::from_secs(30);
/// How long a list of tools is trusted: not every server says when it changes.
const FRESH: Duration = Duration::from_secs(60);
/// The most tools of one server, and the most pages in which it may list them.
pub const MOST_TOOLS: usize = 2_000;
const MOST_PAGES: usize = 200;
/// The most bytes of one tool's definition.
pub const LARGEST_TOOL: usize = 256 << 10;

/// A server that takes calls.
pub(super) struct Session {
    way: Way,
    patience: Duration,
    /// What it said of itself.
    pub about: Value,
    pub since: Instant,
    tools: Mutex<Listing>,
    /// When it listed them last.
    listed: Mutex<Instant>,
}

/// How the server is talked to.
pub(super) enum Way {
    Lines(Lines),
    Http(Box<Http>),
}

impl Way {
    async fn request(&self, method: &str, params: &Value, patience: Duration) -> Result<Value, RequestError> {
        match self {
            Way::Lines(lines) => lines.request(method, params, patience).await,
            Way::Http(http) => http.request(method, params, patience).await,
        }
    }

    fn notify(&self, method: &str, params: &Value) {
        match self {
            Way::Lines(lines) => lines.notify(method, params),
            Way::Http(http) => http.notify(method, params),
        }
    }

    fn agree(&self, revision: &str) {
        match self {
            Way::Lines(_) => {}
            Way::Http(http) => http.agree(revision),
        }
    }

    fn take_changed(&self) -> bool {
        match self {
            Way::Lines(lines) => lines.take_changed(),
            Way::Http(http) => http.take_changed(),
        }
    }

    fn ended(&self) -> Option<String> {
        match self {
            Way::Lines(lines) => lines.ended(),
            Way::Http(http) => http.ended(),
        }
    }
}

/// A server's tools as it listed them, and what was left out of that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub tools: Vec<Value>,
    /// What could not be taken, a sentence each.
    pub left_out: Vec<String>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("a value that its configuration declares cannot be had: {0}")]
    Given(#[from] GivenError),
    #[error("its configuration may not set the variable {0}")]
    Variable(String),
    #[error("{step}: {error}")]
    Request { step: &'static str, error: RequestError },
    #[error("the server speaks revision `{0}` of the protocol, and the gateway speaks {list}", list = REVISIONS.join(", "))]
    Revision(String),
}

impl Session {
    /// Begins a session: initializes it, and lists the server's tools.
    pub async fn begin(way: Way, patience: Duration) -> Result<Self, SessionError> {
        let failed = |step| move |error| SessionError::Request { step, error };
        let hello = json!({
            "protocolVersion": REVISION,
            // Nothing of what a server could ask of a client is passed on.
            "capabilities": {},
            "clientInfo": { "name": "portcullis", "version": env!("CARGO_PKG_VERSION") },
        });
        let about = way.request("initialize", &hello, START).await.map_err(failed("initialize"))?;
        let revision = about.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if !REVISIONS.contains(&revision) {
            return Err(SessionError::Revision(revision.chars().take(40).flat_map(char::escape_debug).collect()));
        }
        way.agree(revision);
        way.notify("notifications/initialized", &json!({}));
        let session = Session {
            way,
            patience,
            about,
            since: Instant::now(),
            tools: Mutex::default(),
            listed: Mutex::new(Instant::now()),
        };
        let listing = session.list(START).await.map_err(failed("tools/list"))?;
        *session.tools.lock().unwrap_or_else(PoisonError::into_inner) = listing;
        Ok(session)
    }

    pub fn ended(&self) -> Option<String> {
        self.way.ended()
    }

    /// The server's tools as it listed them last.
    pub fn tools(&self) -> Listing {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for the server's list again where it said that it is another one, or where it is not known any more. Whether it
    /// was asked for.
    pub async fn refresh(&self) -> Result<bool, RequestError> {
        let age = self.listed.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        if !self.way.take_changed() && age < FRESH {
            return Ok(false);
        }
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let listing = self.list(self.patience).await?;
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = listing;
        Ok(true)
    }

    /// What names the tool's definition, as the server listed it last.
    pub fn digest_of(&self, tool: &str) -> Option<Digest> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.tools.iter().find(|definition| name(definition) == Some(tool)).map(super::wire::digest)
    }

    /// Calls a tool. The result is the server's own, with every field.
    pub async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, RequestError> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.way.request("tools/call", &params, self.patience).await
    }

    async fn list(&self, patience: Duration) -> Result<Listing, RequestError> {
        let mut listing = Listing::default();
        if self.about.pointer("/capabilities/tools").is_none() {
            return Ok(listing);
        }
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let page = self.way.request("tools/list", &params, patience).await?;
            let Some(tools) = page.get("tools").and_then(Value::as_array) else {
                return Err(RequestError::Malformed("its list of tools has no `tools`".to_owned()));
            };
            for tool in tools {
                if listing.tools.len() >= MOST_TOOLS {
                    listing.left_out.push(format!("it has more than {MOST_TOOLS} tools; the rest is not looked at"));
                    return Ok(listing);
                }
                listing.take(tool);
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(listing),
            }
        }
        listing.left_out.push(format!("its list of tools has more than {MOST_PAGES} pages; the rest is not looked at"));
        Ok(listing)
    }
}

impl Listing {
    fn take(&mut self, tool: &Value) {
        let Some(name) = name(tool) else {
            self.left_out.push("a tool has no name".to_owned());
            return;
        };
        let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        if tool.to_string().len() > LARGEST_TOOL {
            let most = LARGEST_TOOL >> 10;
            self.left_out.push(format!("the definition of its tool `{shown}` is larger than {most} KiB"));
        } else if self.tools.iter().any(|known| self::name(known) == Some(name)) {
            self.left_out.push(format!("it lists two tools `{shown}`; the second is not looked at"));
        } else {
            self.tools.push(tool.clone());
        }
    }
}

pub(super) fn name(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str)
}
