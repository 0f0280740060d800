//! A server as it is to stand in the configuration.

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use crate::cli::Failure;
use crate::cli::args::McpAddArgs;
use crate::config::{Upstream, UpstreamName};

/// A server, and the table that says so.
pub(super) struct Declared {
    pub name: UpstreamName,
    pub upstream: Upstream,
    pub text: String,
}

/// A value, or the variable of the gateway's environment that has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    Text(String),
    Env(String),
}

/// What a table is made of.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, Source>,
    pub url: Option<String>,
    pub headers: BTreeMap<String, Source>,
    pub profile: Option<String>,
    pub read_roots: Vec<String>,
    pub shared: bool,
}

impl Declared {
    /// What the command line says.
    pub fn of(args: &McpAddArgs) -> Result<Self, Failure> {
        let (command, words) = match args.command.split_first() {
            Some((command, words)) => (Some(command.clone()), words.to_vec()),
            None => (None, Vec::new()),
        };
        let parts = Parts {
            command,
            args: words,
            env: args.env.iter().map(|word| pair(word)).collect(),
            url: args.url.clone(),
            headers: args.header.iter().map(|word| pair(word)).collect(),
            profile: args.profile.clone(),
            read_roots: args.read_root.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            shared: args.shared,
        };
        Self::made(&args.name, parts).map_err(Failure::usage)
    }

    /// The table of these parts, read back as the configuration would be.
    pub fn made(name: &str, parts: Parts) -> Result<Self, String> {
        let name = UpstreamName::try_from(name.to_owned())?;
        let mut table = Table::new();
        let mut set = |key: &str, given: Item| drop(table.insert(key, given));
        parts.command.into_iter().for_each(|command| set("command", value(command)));
        if !parts.args.is_empty() {
            set("args", value(parts.args.into_iter().collect::<Array>()));
        }
        parts.url.into_iter().for_each(|url| set("url", value(url)));
        for (key, values) in [("env", parts.env), ("headers", parts.headers)] {
            if !values.is_empty() {
                set(key, value(inline(values)));
            }
        }
        parts.profile.into_iter().for_each(|profile| set("profile", value(profile)));
        if !parts.read_roots.is_empty() {
            set("read_roots", value(parts.read_roots.into_iter().collect::<Array>()));
        }
        if parts.shared {
            set("shared", value(true));
        }
        let upstream =
            toml::from_str(&table.to_string()).map_err(|error: toml::de::Error| error.message().to_owned())?;
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.insert(name.as_str(), Item::Table(table));
        let mut document = DocumentMut::new();
        document.insert("upstreams", Item::Table(servers));
        Ok(Declared { name, upstream, text: document.to_string() })
    }
}

fn inline(values: BTreeMap<String, Source>) -> InlineTable {
    let one = |(name, source): (String, Source)| {
        let given = match source {
            Source::Text(text) => toml_edit::Value::from(text),
            Source::Env(variable) => toml_edit::Value::from(InlineTable::from_iter([("env", variable)])),
        };
        (name, given)
    };
    values.into_iter().map(one).collect()
}

/// `NAME=VALUE`, or `NAME` alone for the variable of that name.
fn pair(word: &str) -> (String, Source) {
    match word.split_once('=') {
        Some((name, text)) => (name.to_owned(), Source::Text(text.to_owned())),
        None => (word.to_owned(), Source::Env(word.to_owned())),
    }
}
