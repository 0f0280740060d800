//! Configuration: where it lies, what it says, and that a workspace's own part of it may only tighten.

mod exceptions;
mod fields;
mod file;
mod places;
mod upstreams;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::files::{self, Author};

pub use self::exceptions::{Exception, Place};
pub use self::fields::address;
pub use self::file::{Agent, Approval, Audit, File, Limits, Person, PolicySet, Serve, WorkspaceFile};
pub use self::places::{CONFIG, Places};
pub use self::upstreams::{Given, GivenError, Http, Patterns, Reach, Stdio, Upstream, UpstreamName};
use crate::facts::Surroundings;

/// The merged configuration of one installation.
#[derive(Clone, Debug)]
pub struct Config {
    pub places: Places,
    pub file: File,
    pub exceptions: Vec<Exception>,
    /// The files that were read, the machine's before the user's.
    pub read: Vec<PathBuf>,
}

/// The name of the agent that calls are made for when the configuration names none.
pub const LOCAL_AGENT: &str = "local";

impl Config {
    /// Reads the configuration that the environment points to.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Config::load(Places::from_env()?)
    }

    /// The defaults, as where there is no file.
    pub fn defaults(places: Places) -> Self {
        Config { places, file: File::default(), exceptions: Vec::new(), read: Vec::new() }
    }

    /// Reads the machine's and the user's configuration; what the user's says wins, agents and people add up.
    /// Without any file, the defaults.
    ///
    /// # Errors
    ///
    /// The first problem found, with file, line and column.
    pub fn load(places: Places) -> Result<Self, ConfigError> {
        let mut merged = File::default();
        let mut read = Vec::new();
        let mut exceptions = Vec::new();
        for dir in places.system.iter().chain([&places.config]) {
            let path = dir.join("portcullis.toml");
            let Some(text) = text_of(&path, Author::Operator)? else { continue };
            let mut file: File = parse(&path, &text)?;
            exceptions.extend(exceptions::resolve(&path, &text, std::mem::take(&mut file.exceptions))?);
            merged = merge(merged, file);
            read.push(path);
        }
        check(&merged, &places)?;
        Ok(Config { places, file: merged, exceptions, read })
    }

    /// The agent with this name; without a name the only one. Where none is configured that is the built-in
    /// [`LOCAL_AGENT`], which may be less restricted than any that is.
    ///
    /// # Errors
    ///
    /// When the name is not configured, or none is given and there are several; the error lists them.
    pub fn agent(&self, name: Option<&str>) -> Result<Agent, ConfigError> {
        let agents = self.file.agents.as_slice();
        let known = || agents.iter().map(|agent| agent.name.clone()).collect();
        match (name, agents) {
            (None, [only]) => Ok(only.clone()),
            (None | Some(LOCAL_AGENT), []) => Ok(Agent {
                name: LOCAL_AGENT.to_owned(),
                teams: Vec::new(),
                workspace: None,
                mode: crate::call::Mode::Default,
                unattended: false,
                allowed_tools: None,
                profile: None,
                token_sha256: None,
                operator: None,
            }),
            (None, _) => Err(ConfigError::UnnamedAgent { known: known() }),
            (Some(name), _) => {
                let found = agents.iter().find(|agent| agent.name == name).cloned();
                found.ok_or_else(|| ConfigError::UnknownAgent { name: name.to_owned(), known: known() })
            }
        }
    }

    /// The places that give paths their meaning in a workspace.
    pub fn surroundings(&self, workspace: &Path) -> Surroundings {
        Surroundings {
            read_roots: self.file.read_roots.clone(),
            write_roots: self.file.write_roots.clone(),
            gateway: self.places.own(),
            ..Surroundings::new(workspace, &self.places.home)
        }
    }

    /// The exceptions that are over, a sentence each.
    pub fn lapsed(&self, now: Timestamp) -> Vec<String> {
        let over = self.exceptions.iter().filter(|exception| exception.lapsed(now));
        over.map(|exception| {
            let Exception { rule, expires, place, .. } = exception;
            format!(
                "{place}: the exception from `{rule}` ({}) lapsed at {expires:.0}: remove or renew it",
                exception.scope()
            )
        })
        .collect()
    }

    /// The directories of the machine's and the user's configuration, in order of precedence.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.places.system.iter().chain([&self.places.config]).map(PathBuf::as_path)
    }
}

/// Reads a workspace's `.portcullis.toml`, if it has one.
///
/// # Errors
///
/// When it cannot be read, says something unknown, or tries to loosen.
pub fn workspace_file(workspace: &Path) -> Result<Option<WorkspaceFile>, ConfigError> {
    let path = workspace.join(".portcullis.toml");
    let Some(text) = text_of(&path, Author::Workspace)? else { return Ok(None) };
    let file: WorkspaceFile = parse(&path, &text)?;
    if file.restrict_to_workspace == Some(false) {
        return Err(ConfigError::Loosens { path, key: "restrict_to_workspace" });
    }
    Ok(Some(file))
}

/// The files directly in `dir` with this extension, by name. No directory means no files.
///
/// # Errors
///
/// When the directory or a file cannot be read, or a file is not UTF-8.
pub fn texts(dir: &Path, extension: &str, author: Author) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let unreadable = |source| ConfigError::Read { path: dir.to_owned(), source };
    let mut found = Vec::new();
    for path in files::list(dir, extension).map_err(unreadable)?.unwrap_or_default() {
        if let Some(text) = text_of(&path, author)? {
            found.push((path, text));
        }
    }
    Ok(found)
}

/// Parses TOML, naming file, line and column of what is wrong with it.
///
/// # Errors
///
/// [`ConfigError::Invalid`].
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = position(text, error.span());
        ConfigError::Invalid { path: path.to_owned(), line, column, message: error.message().to_owned() }
    })
}

/// Line and column of the start of a span, both from 1; columns count characters.
pub fn position(text: &str, span: Option<Range<usize>>) -> (usize, usize) {
    let start = span.map_or(0, |s| s.start).min(text.len());
    let before = text.get(..start).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

fn text_of(path: &Path, author: Author) -> Result<Option<String>, ConfigError> {
    files::read_text(path, author).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

fn merge(below: File, above: File) -> File {
    File {
        policy_set: above.policy_set.or(below.policy_set),
        restrict_to_workspace: above.restrict_to_workspace.or(below.restrict_to_workspace),
        read_roots: [below.read_roots, above.read_roots].concat(),
        write_roots: [below.write_roots, above.write_roots].concat(),
        protect: [below.protect, above.protect].concat(),
        profile: above.profile.or(below.profile),
        // They were taken out of their files, with their places.
        exceptions: Vec::new(),
        limits: above.limits.over(below.limits),
        approval: Approval {
            pending: above.approval.pending.or(below.approval.pending),
            grant: above.approval.grant.or(below.approval.grant),
            session: above.approval.session.or(below.approval.session),
            per_minute: above.approval.per_minute.or(below.approval.per_minute),
        },
        audit: Audit {
            checkpoint_every: above.audit.checkpoint_every.or(below.audit.checkpoint_every),
            rotate_bytes: above.audit.rotate_bytes.or(below.audit.rotate_bytes),
            keep_files: above.audit.keep_files.or(below.audit.keep_files),
            ship_checkpoints_to: above.audit.ship_checkpoints_to.or(below.audit.ship_checkpoints_to),
        },
        serve: Serve { listen: above.serve.listen.or(below.serve.listen) },
        upstreams: below.upstreams.into_iter().chain(above.upstreams).collect(),
        agents: [below.agents, above.agents].concat(),
        operators: [below.operators, above.operators].concat(),
        reviewers: [below.reviewers, above.reviewers].concat(),
    }
}

fn check(file: &File, places: &Places) -> Result<(), ConfigError> {
    let people = file.operators.iter().chain(&file.reviewers).map(|p| ("person", &p.name));
    let agents = file.agents.iter().map(|a| ("agent", &a.name));
    let mut seen = Vec::new();
    for named in agents.chain(people) {
        if seen.contains(&named) {
            return Err(ConfigError::NamedTwice { what: named.0, name: named.1.clone() });
        }
        seen.push(named);
    }
    if let Some((key, most)) = file.limits.excessive() {
        return Err(ConfigError::Excessive { key, most });
    }
    if let Some(address) = file.serve.listen {
        loopback(address)?;
    }
    file.write_roots.iter().try_for_each(|root| places.refuse_root(root))
}

/// The HTTP interface speaks in the clear, so it stays on this machine.
///
/// # Errors
///
/// [`ConfigError::NotLoopback`].
pub fn loopback(address: SocketAddr) -> Result<SocketAddr, ConfigError> {
    if address.ip().is_loopback() { Ok(address) } else { Err(ConfigError::NotLoopback { address }) }
}

/// What can be wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("limits.{key} is more than can be analysed within bounds: at most {most}")]
    Excessive { key: &'static str, most: usize },
    #[error("{}:{line}:{column}: {message}", path.display())]
    Invalid { path: PathBuf, line: usize, column: usize, message: String },
    #[error("{}: a workspace may only tighten, and `{key}` here would loosen; set it in your own configuration", path.display())]
    Loosens { path: PathBuf, key: &'static str },
    #[error("two entries for the {what} `{name}`: give each one a name of its own")]
    NamedTwice { what: &'static str, name: String },
    #[error(
        "HOME is {}, which is not there, and the gateway's files would be in it: make it, or set {}",
        home.display(), unsaid.join(" and ")
    )]
    HomeMissing { home: PathBuf, unsaid: Vec<&'static str> },
    #[error("HOME is not set, so there is no place for the gateway's files: set it, or {}", unsaid.join(" and "))]
    NoHome { unsaid: Vec<&'static str> },
    #[error(
        "{address} is not a loopback address, and tokens would cross the network in the clear: listen on 127.0.0.1 or [::1], \
         and let a proxy with TLS or an SSH tunnel lead there"
    )]
    NotLoopback { address: SocketAddr },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{variable} must be an absolute path, not `{}`", path.display())]
    RelativePlace { variable: &'static str, path: PathBuf },
    #[error(
        "the extra root {} holds the gateway's {what} directory {}, and what may be written there could change what judges \
         it: name a directory that does not", root.display(), place.display()
    )]
    RootHoldsGateway { root: PathBuf, what: &'static str, place: PathBuf },
    #[error("there is no agent `{name}`: configured are {}", list(known))]
    UnknownAgent { name: String, known: Vec<String> },
    #[error("several agents are configured: say whose call it is with --agent, one of {}", list(known))]
    UnnamedAgent { known: Vec<String> },
    #[error(
        "the workspace {} contains the gateway's {what} directory {}: an agent could change what judges it; \
         choose a workspace below it, or move the directory with PORTCULLIS_STATE or PORTCULLIS_CONFIG",
        workspace.display(), place.display()
    )]
    WorkspaceHoldsGateway { workspace: PathBuf, what: &'static str, place: PathBuf },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { format!("none (`{LOCAL_AGENT}` is built in)") } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn places(dir: &Path) -> Places {
        Places {
            system: Some(dir.join("etc")),
            config: dir.join("user"),
            state: dir.join("state"),
            home: dir.to_owned(),
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_with_file_line_and_column() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("user")).unwrap();
        fs::write(
            dir.path().join("user/portcullis.toml"),
            "policy_set = \"ask\"\n\n[[agents]]\nname = \"a\"\ncolour = 1\n",
        )
        .unwrap();
        let told = Config::load(places(dir.path())).unwrap_err().to_string();
        assert!(told.contains("user/portcullis.toml:5:1"), "{told}");
        assert!(told.contains("colour") && told.contains("expected"), "{told}");
    }

    #[test]
    fn the_users_file_wins_over_the_machines_and_agents_add_up() {
        let dir = tempfile::tempdir().unwrap();
        for (place, text) in [
            ("etc", "policy_set = \"strict\"\nread_roots = [\"/a\"]\n[[agents]]\nname = \"x\"\n"),
            (
                "user",
                "policy_set = \"ask\"\nread_roots = [\"/b\"]\n[approval]\npending = \"90s\"\n[[agents]]\nname = \"y\"\n",
            ),
        ] {
            fs::create_dir(dir.path().join(place)).unwrap();
            fs::write(dir.path().join(place).join("portcullis.toml"), text).unwrap();
        }
        let config = Config::load(places(dir.path())).unwrap();
        assert_eq!(config.file.policy_set, Some(PolicySet::Ask));
        assert_eq!(config.file.read_roots, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(config.file.approval.pending, Some(jiff::SignedDuration::from_secs(90)));
        assert!(config.agent(Some("x")).is_ok() && config.agent(Some("y")).is_ok());
        let told = config.agent(Some("z")).unwrap_err().to_string();
        assert!(told.contains("x, y"), "{told}");
        let unnamed = config.agent(None).unwrap_err().to_string();
        assert!(unnamed.contains("--agent, one of x, y"), "{unnamed}");
        assert!(
            config.agent(Some(LOCAL_AGENT)).is_err(),
            "whoever is restricted could call as the built-in one instead"
        );
        let none = Config::defaults(places(dir.path()));
        assert_eq!(none.agent(None).unwrap().name, LOCAL_AGENT);
    }

    #[test]
    fn a_workspace_may_only_tighten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".portcullis.toml");
        fs::write(&path, "restrict_to_workspace = false\n").unwrap();
        let told = workspace_file(dir.path()).unwrap_err().to_string();
        assert!(told.contains("only tighten"), "{told}");
        fs::write(&path, "restrict_to_workspace = true\n").unwrap();
        assert_eq!(workspace_file(dir.path()).unwrap().unwrap().restrict_to_workspace, Some(true));
        fs::write(&path, "[[agents]]\nname = \"me\"\n").unwrap();
        assert!(workspace_file(dir.path()).is_err(), "a workspace must not name agents");
        fs::write(&path, "[upstreams.x]\ncommand = \"x\"\n").unwrap();
        assert!(workspace_file(dir.path()).is_err(), "a workspace must not add servers");
        fs::write(&path, b"\xff").unwrap();
        assert!(workspace_file(dir.path()).unwrap_err().to_string().contains("not UTF-8 at byte 0"));
    }
}
