//! `[upstreams.NAME]`: MCP servers behind the gateway.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use jiff::SignedDuration;
use serde::Deserialize;
use url::{Host, Url};

use crate::config::fields;
use crate::sandbox::is_dangerous;

/// The profile of servers whose configuration names none.
pub const SERVER_PROFILE: &str = "mcp-server";
/// How long a server has for an answer where its configuration does not say.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest name: it is a part of every tool's.
const LONGEST_NAME: usize = 32;
/// How many of a server's tools policies see the arguments of, where its configuration does not say.
const TYPED_TOOLS: usize = 100;

/// The name of a server. It is a part of its tools' names, so it holds no `__`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct UpstreamName(String);

impl UpstreamName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for UpstreamName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let apart = !name.contains("__") && !name.starts_with('_') && !name.ends_with('_');
        if plain && apart && (1..=LONGEST_NAME).contains(&name.len()) {
            return Ok(UpstreamName(name));
        }
        let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        Err(format!(
            "`{shown}` is no name for a server: use 1 to {LONGEST_NAME} letters, digits, `-` and single `_` (not first or last), \
             for its tools are named mcp__NAME__TOOL"
        ))
    }
}

/// An MCP server behind the gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Upstream {
    pub reach: Reach,
    /// How long it has for an answer.
    pub timeout: Duration,
    /// Patterns of the names of tools to offer; all where empty.
    pub tool_include: Patterns,
    pub tool_exclude: Patterns,
    /// How many of its tools policies see the arguments of.
    pub typed_tools: usize,
    /// Whether its answers are vouched for: they do not taint a session.
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A program, spoken to over its standard input and output.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Http),
}

/// A server that is a program, run confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stdio {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, Given>,
    /// The sandbox profile.
    pub profile: String,
    pub read_roots: Vec<PathBuf>,
    pub write_roots: Vec<PathBuf>,
    /// Whether all agents of a workspace talk to one process.
    pub shared: bool,
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    pub url: Url,
    pub headers: BTreeMap<String, Given>,
    /// Whether a name may lead to an address of this machine or of a private network. An address that stands in the URL
    /// itself was chosen there.
    pub private: bool,
}

/// A value, or where it is found when it is needed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a text, or where it is found: { env = \"NAME\" } or { file = \"/a/path\" }")]
pub enum Given {
    Text(String),
    Env(FromEnv),
    File(FromFile),
}

/// A variable of the gateway's own environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromEnv {
    pub env: String,
}

/// The first line of a file of the operator's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromFile {
    pub file: PathBuf,
}

/// A value that is written out may be a secret.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Text(text) => write!(f, "Text({})", crate::call::Digest::of(text)),
            Given::Env(from) => from.fmt(f),
            Given::File(from) => from.fmt(f),
        }
    }
}

/// Why a value cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    #[error("the variable {0} of the gateway's environment is not set, or not UTF-8")]
    Unset(String),
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not there", .0.display())]
    Absent(PathBuf),
}

impl Given {
    /// The value.
    ///
    /// # Errors
    ///
    /// When the variable is not set, or the file cannot be read.
    pub fn resolve(&self) -> Result<String, GivenError> {
        match self {
            Given::Text(text) => Ok(text.clone()),
            Given::Env(FromEnv { env }) => std::env::var(env).map_err(|_| GivenError::Unset(env.clone())),
            Given::File(FromFile { file }) => {
                let text = crate::files::read_text(file, crate::files::Author::Operator)
                    .map_err(|source| GivenError::Unreadable { path: file.clone(), source })?;
                let text = text.ok_or_else(|| GivenError::Absent(file.clone()))?;
                Ok(text.lines().next().unwrap_or_default().to_owned())
            }
        }
    }
}

/// Patterns of tools' names, as for files: `*` and `?`.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    texts: Vec<String>,
    set: GlobSet,
}

impl Patterns {
    fn new(texts: Vec<String>) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for text in &texts {
            set.add(Glob::new(text).map_err(|error| format!("`{text}` is no pattern of tools' names: {error}"))?);
        }
        let set = set.build().map_err(|error| error.to_string())?;
        Ok(Patterns { texts, set })
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub fn matches(&self, name: &str) -> bool {
        self.set.is_match(name)
    }
}

impl Upstream {
    /// Whether the configuration wants this tool offered.
    pub fn offers(&self, tool: &str) -> bool {
        (self.tool_include.is_empty() || self.tool_include.matches(tool)) && !self.tool_exclude.matches(tool)
    }

    /// The program with its arguments, or the address: what a person is shown.
    pub fn what(&self) -> String {
        match &self.reach {
            Reach::Stdio(stdio) => {
                let words = [&stdio.command].into_iter().chain(&stdio.args).map(|word| quoted(word));
                words.collect::<Vec<_>>().join(" ")
            }
            Reach::Http(http) => http.url.to_string(),
        }
    }
}

/// A word as a shell would want it, where it needs that.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let shown: String =
        word.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect();
    format!("'{}'", shown.replace('\'', r"'\''"))
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Given>,
    profile: Option<String>,
    #[serde(default, deserialize_with = "fields::all_absolute")]
    read_roots: Vec<PathBuf>,
    #[serde(default, deserialize_with = "fields::all_absolute")]
    write_roots: Vec<PathBuf>,
    #[serde(default)]
    shared: bool,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, Given>,
    #[serde(default)]
    private: bool,
    #[serde(default, deserialize_with = "fields::duration")]
    timeout: Option<SignedDuration>,
    #[serde(default)]
    tool_include: Vec<String>,
    #[serde(default)]
    tool_exclude: Vec<String>,
    typed_tools: Option<usize>,
    #[serde(default)]
    trusted: bool,
}

impl TryFrom<Written> for Upstream {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let timeout = written.timeout.and_then(|time| Duration::try_from(time).ok()).unwrap_or(TIMEOUT);
        let tool_include = Patterns::new(written.tool_include.clone())?;
        let tool_exclude = Patterns::new(written.tool_exclude.clone())?;
        let typed_tools = written.typed_tools.unwrap_or(TYPED_TOOLS);
        let trusted = written.trusted;
        let reach = match (written.command.is_some(), written.url.is_some()) {
            (true, false) => Reach::Stdio(stdio(written)?),
            (false, true) => Reach::Http(http(written)?),
            (true, true) => return Err("a server has a `command` or a `url`, not both".to_owned()),
            (false, false) => {
                return Err("a server needs a `command` (a program) or a `url` (streamable HTTP)".to_owned());
            }
        };
        Ok(Upstream { reach, timeout, tool_include, tool_exclude, typed_tools, trusted })
    }
}

fn stdio(written: Written) -> Result<Stdio, String> {
    if !written.headers.is_empty() || written.private {
        return Err("`headers` and `private` are for servers with a `url`".to_owned());
    }
    let command = written.command.filter(|command| !command.trim().is_empty()).ok_or("`command` is empty")?;
    if let Some(name) = written.env.keys().find(|name| is_dangerous(name)) {
        return Err(format!(
            "`env` may not set {name}, which makes programs load or run something: where that is wanted, write it into the \
             command: command = \"env\", args = [\"{name}=...\", ...]"
        ));
    }
    let odd = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = written.env.keys().find(odd) {
        return Err(format!("`{}` is no name of a variable", name.escape_debug()));
    }
    Ok(Stdio {
        command,
        args: written.args,
        env: written.env,
        profile: written.profile.unwrap_or_else(|| SERVER_PROFILE.to_owned()),
        read_roots: written.read_roots,
        write_roots: written.write_roots,
        shared: written.shared,
    })
}

fn http(written: Written) -> Result<Http, String> {
    let for_programs = [
        ("args", !written.args.is_empty()),
        ("env", !written.env.is_empty()),
        ("profile", written.profile.is_some()),
        ("read_roots", !written.read_roots.is_empty()),
        ("write_roots", !written.write_roots.is_empty()),
        ("shared", written.shared),
    ];
    if let Some((key, _)) = for_programs.into_iter().find(|(_, given)| *given) {
        return Err(format!("`{key}` is for servers with a `command`"));
    }
    let text = written.url.unwrap_or_default();
    let url =
        Url::parse(&text).map_err(|error| format!("`url` is no URL ({error}): write for instance https://host/mcp"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`url` holds a password: give it in `headers`, from a variable or a file".to_owned());
    }
    let here = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => return Err("`url` names no host".to_owned()),
    };
    match url.scheme() {
        "https" => {}
        "http" if here => {}
        "http" => return Err("`url` is http, which anybody on the way can read and change: use https".to_owned()),
        other => return Err(format!("`url` has the scheme {other}: use https (or http on this machine)")),
    }
    let token = |name: &&String| axum::http::HeaderName::from_bytes(name.as_bytes()).is_err();
    if let Some(name) = written.headers.keys().find(token) {
        return Err(format!("`{}` is no name of a header", name.escape_debug()));
    }
    Ok(Http { url, headers: written.headers, private: written.private })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<UpstreamName, Upstream>, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn only(text: &str) -> Upstream {
        read(&format!("[a]\n{text}")).unwrap().into_values().next().unwrap()
    }

    #[test]
    fn a_program_and_an_address_are_read() {
        let server =
            only("command = \"npx\"\nargs = [\"-y\", \"a b\"]\nenv = { K = { env = \"TOKEN\" } }\ntimeout = \"5s\"");
        let Reach::Stdio(stdio) = &server.reach else { panic!("no program: {server:?}") };
        assert_eq!((stdio.profile.as_str(), stdio.shared), (SERVER_PROFILE, false));
        assert_eq!(stdio.env["K"], Given::Env(FromEnv { env: "TOKEN".into() }));
        assert_eq!((server.timeout, server.what().as_str()), (Duration::from_secs(5), "npx -y 'a b'"));
        let server = only("url = \"https://h.example/mcp\"\nheaders = { Authorization = { file = \"/t\" } }");
        assert!(matches!(server.reach, Reach::Http(_)));
        assert_eq!(server.timeout, TIMEOUT);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, said) in [
            ("[a]\n", "a `command` (a program) or a `url`"),
            ("[a]\ncommand = \"x\"\nurl = \"https://h/\"", "not both"),
            ("[a]\ncommand = \"x\"\nheaders = { A = \"b\" }", "for servers with a `url`"),
            ("[a]\nurl = \"https://h/\"\nprofile = \"p\"", "`profile` is for servers with a `command`"),
            ("[a]\ncommand = \"x\"\ncolour = 1", "unknown field `colour`"),
            ("[a]\nurl = \"http://h.example/\"", "use https"),
            ("[a]\nurl = \"https://u:p@h/\"", "holds a password"),
            ("[a]\nurl = \"file:///x\"", "names no host"),
            ("[a]\ncommand = \"x\"\nenv = { LD_PRELOAD = \"y\" }", "command = \"env\""),
            ("[a]\ncommand = \"x\"\nenv = { A = { envv = \"y\" } }", "{ env = \"NAME\" }"),
            ("[a__b]\ncommand = \"x\"", "`a__b` is no name for a server"),
            ("[\"a\\u202eb\"]\ncommand = \"x\"", "no name for a server"),
            ("[a]\ncommand = \"x\"\ntool_include = [\"[\"]", "no pattern"),
            ("[a]\ncommand = \"x\"\ntimeout = \"0s\"", "over before it begins"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(said) && told.contains("line "), "{text}: {told}");
        }
    }

    #[test]
    fn a_secret_does_not_stand_in_the_debug_form() {
        let server = only("command = \"x\"\nenv = { K = \"hunter2\" }");
        assert!(!format!("{server:?}").contains("hunter2"), "{server:?}");
    }

    #[test]
    fn tools_are_chosen_by_patterns() {
        let server = only("command = \"x\"\ntool_include = [\"read_*\", \"list\"]\ntool_exclude = [\"*_secret\"]");
        let offered = ["read_file", "list", "read_secret", "write"].map(|tool| server.offers(tool));
        assert_eq!(offered, [true, true, false, false]);
        assert!(only("command = \"x\"").offers("anything"));
    }
}
