//! MCP servers behind the gateway.
//!
//! ```text
//! configuration ─┐
//! pins.lock ─────┴─► tools() ─► registry ─► the gate ─► UpstreamTool ─► Upstreams (pool) ─► Session ─► Lines, Http
//! ```
//!
//! What a tool is comes from [`Pins`], never from the server that runs: a server that is down, or that redefines a tool,
//! changes no policy and no list. [`Upstreams`] holds the servers that run; a call goes out only where the server defines
//! the tool as it was judged. Messages are JSON as the server wrote it ([`wire`](self)): no field is lost.

mod http;
mod lines;
mod lints;
mod names;
mod output;
mod pins;
mod pool;
mod session;
mod tool;
mod wire;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

pub use self::names::prefixed;
pub(crate) use self::pins::stamp;
pub use self::pins::{Pin, Pins, PinsError, ServerPins, readable};
pub use self::pool::{UpstreamError, Upstreams, Whom};
pub use self::session::Listing;
use self::tool::UpstreamTool;
pub use self::wire::{RequestError, said_by_server};
use crate::config::{Config, Reach, Upstream};
use crate::registry::{Confined, Definition, Foreign, Registry, Sensitivity, Standing, Tool};
use crate::verdict::{Finding, Severity};

/// The finding of a call of a tool that its server defines otherwise by now, and of one that nobody approved yet.
pub const CHANGED: &str = "mcp.tool-changed";
pub const NEW: &str = "mcp.tool-new";

/// Adds the tools of the configured servers to the registry. Gives what cannot be offered, and why.
pub(crate) fn register(
    registry: &mut Registry,
    config: &Config,
    pins: &Pins,
    servers: &Arc<Upstreams>,
) -> Vec<Finding> {
    let mut refused = Vec::new();
    let known = known(config, pins);
    let own: Vec<String> = registry.names().map(str::to_owned).collect();
    let all: Vec<String> = known.iter().map(|known| prefixed(known.server, known.tool)).collect();
    let alike = names::look_alikes(all.iter().map(String::as_str));
    let mut typed: Vec<(&str, usize)> = Vec::new();
    for tool in &known {
        if let Some(finding) = names::unusable(tool.server, tool.tool) {
            refused.push(finding);
            continue;
        }
        let others = known.iter().filter(|other| other.server != tool.server).map(|other| other.tool);
        let others = others.chain(own.iter().map(String::as_str));
        let mut findings = lints::look(tool.called(), others);
        let name = prefixed(tool.server, tool.tool);
        if let Some(other) = alike.get(name.as_str()) {
            let message = format!("the tool's name looks like that of `{other}`");
            findings.push(Finding::new("mcp.name-alike", Severity::Note, message));
        }
        findings.extend(tool.objection());
        if typed.last().is_none_or(|(server, _)| *server != tool.server) {
            typed.push((tool.server, 0));
        }
        let count = typed.last_mut().map_or(0, |(_, count)| {
            *count += 1;
            *count
        });
        let foreign = Arc::new(tool.foreign(findings, count <= tool.upstream.typed_tools));
        let made = UpstreamTool {
            definition: definition(name, &foreign),
            foreign,
            upstream: Arc::new(tool.upstream.clone()),
            servers: Arc::clone(servers),
        };
        if let Err(error) = registry.register(Arc::new(made) as Arc<dyn Tool>) {
            refused.push(Finding::new("mcp.schema", Severity::Deny, error.to_string()));
        }
    }
    refused
}

/// A tool that is pinned, or that a server offers.
struct Known<'a> {
    server: &'a str,
    upstream: &'a Upstream,
    tool: &'a str,
    pinned: Option<&'a Pin>,
    offered: Option<&'a Pin>,
}

fn known<'a>(config: &'a Config, pins: &'a Pins) -> Vec<Known<'a>> {
    let mut all = Vec::new();
    for (server, upstream) in &config.file.upstreams {
        let server = server.as_str();
        let Some(pins) = pins.of(server) else { continue };
        let pinned = pins.tools.iter().map(|(tool, pin)| Known {
            server,
            upstream,
            tool,
            pinned: Some(pin),
            offered: pins.offered.get(tool),
        });
        let new = pins.offered.iter().filter(|(tool, _)| !pins.tools.contains_key(*tool));
        let new = new.map(|(tool, pin)| Known { server, upstream, tool, pinned: None, offered: Some(pin) });
        all.extend(pinned.chain(new).filter(|known| upstream.offers(known.tool)));
    }
    all
}

impl Known<'_> {
    /// What was approved, where something was: nothing else is shown to a model.
    fn shown(&self) -> &Value {
        self.pinned.or(self.offered).map_or(&Value::Null, |pin| &pin.definition)
    }

    /// What the server has by now: what a call reaches, and what a person is asked about.
    fn called(&self) -> &Value {
        self.offered.or(self.pinned).map_or(&Value::Null, |pin| &pin.definition)
    }

    fn standing(&self) -> Standing {
        match (self.pinned, self.offered) {
            (Some(_), None) => Standing::Pinned,
            (Some(_), Some(_)) => Standing::Changed,
            (None, _) => Standing::New,
        }
    }

    /// What stands against calling a tool that nobody approved as it is. The server's words are for people alone, so they
    /// are not in it.
    fn objection(&self) -> Option<Finding> {
        let (server, tool) = (self.server, self.tool);
        let (id, message) = match self.standing() {
            Standing::Pinned => return None,
            Standing::Changed => {
                (CHANGED, format!("the server `{server}` defines the tool `{tool}` otherwise than it was approved"))
            }
            Standing::New => (NEW, format!("nobody approved the tool `{tool}` of the server `{server}` yet")),
        };
        let advice = format!(
            "`portcullis mcp diff {server}` shows what is to be approved, `portcullis mcp approve {server}` does"
        );
        Some(Finding::new(id, Severity::Warn, message).safer(advice))
    }

    fn foreign(&self, findings: Vec<Finding>, typed: bool) -> Foreign {
        let confinement = match &self.upstream.reach {
            Reach::Stdio(stdio) => Some(Confined::of(stdio)),
            Reach::Http(_) => None,
        };
        Foreign {
            server: self.server.to_owned(),
            original: self.tool.to_owned(),
            listed: self.shown().clone(),
            pin: wire::digest(self.called()),
            standing: self.standing(),
            findings,
            confinement,
            typed,
            trusted: self.upstream.trusted,
        }
    }
}

fn definition(name: String, foreign: &Arc<Foreign>) -> Definition {
    let description = foreign.listed.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters = foreign.listed.get("inputSchema").cloned().unwrap_or_else(|| json!({ "type": "object" }));
    Definition {
        name: Cow::Owned(name),
        description: Cow::Owned(description),
        parameters,
        // A server's own word on its tools loosens nothing.
        sensitivity: Sensitivity::Sensitive,
        groups: &[],
        subjects: &[],
        max_output: output::MOST_TEXT,
        upstream: Some(Arc::clone(foreign)),
    }
}
