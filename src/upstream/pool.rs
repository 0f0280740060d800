//! The servers that run, or are connected to: one for each agent and workspace, or each workspace where the configuration
//! shares it. A server that fails is started again, later each time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use super::http::Http;
use super::lines::Lines;
use super::pins::{Pins, PinsError, ServerPins};
use super::session::{Listing, Session, SessionError, Way};
use super::wire::RequestError;
use crate::call::Digest;
use crate::config::{Reach, Stdio, Upstream};
use crate::sandbox::{Launcher, Plan};

/// Servers that may run at once. One more ends the one that was used the longest ago.
const MOST_SERVERS: usize = 64;
/// How long a server may be idle.
const IDLE: Duration = Duration::from_secs(1800);
/// How long a server rests after its first failure; twice as long after each further one.
const FIRST_REST: Duration = Duration::from_millis(500);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// A rest that is over so soon is waited for.
const SHORT: Duration = Duration::from_secs(1);
/// A server that ran so long is no failure when it ends.
const SOUND: Duration = Duration::from_secs(60);

/// The servers behind the gateway.
pub struct Upstreams {
    launcher: Arc<Launcher>,
    state: PathBuf,
    running: Mutex<HashMap<Key, Arc<Slot>>>,
}

/// Whose server it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    server: String,
    /// Names its configuration and confinement: a change is another server.
    made: Digest,
    agent: Option<String>,
}

/// On whose behalf a server is talked to.
pub struct Whom<'a> {
    pub agent: &'a str,
    /// The confinement, where the server is a program.
    pub plan: Option<&'a Plan>,
}

struct Slot {
    life: tokio::sync::Mutex<Life>,
    used: Mutex<Instant>,
}

#[derive(Default)]
struct Life {
    session: Option<Arc<Session>>,
    failures: u32,
    /// Not to be started before, and why it failed.
    rests: Option<(Instant, String)>,
}

/// Why a server's tool gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    #[error("the server `{server}` failed: {error}. It is started again with the next call")]
    Begin { server: String, error: SessionError },
    #[error("the server `{server}` failed before, and is started again in {seconds} s at the earliest: {why}")]
    Rests { server: String, seconds: u64, why: String },
    #[error("the server `{server}`: {error}")]
    Request { server: String, error: RequestError },
    #[error(
        "the server `{server}` defines the tool `{tool}` otherwise than it did when the call was judged; nothing was sent. \
        Make the call again: a person is asked then"
    )]
    Changed { server: String, tool: String },
    #[error("the server `{server}` has no tool `{tool}` any more; nothing was sent")]
    Gone { server: String, tool: String },
    #[error("the call has no confinement for the server `{0}`; nothing was sent")]
    Unconfined(String),
    #[error("what the server lists cannot be put on record: {0}")]
    Pins(#[from] PinsError),
}

impl Upstreams {
    /// Servers whose tools are pinned in this state directory.
    ///
    /// # Errors
    ///
    /// When the gateway cannot hold its own executable open, which is what confines programs.
    pub fn new(state: &Path) -> std::io::Result<Self> {
        let launcher = Arc::new(Launcher::new()?);
        Ok(Upstreams { launcher, state: state.to_owned(), running: Mutex::default() })
    }

    /// Calls a tool, if the server defines it as `judged` says.
    ///
    /// # Errors
    ///
    /// What keeps the server from answering.
    pub async fn call(
        &self,
        whom: &Whom<'_>,
        (server, upstream): (&str, &Upstream),
        (tool, judged): (&str, Digest),
        arguments: &Value,
    ) -> Result<Value, UpstreamError> {
        let failed = |error| UpstreamError::Request { server: server.to_owned(), error };
        let session = self.session(whom, server, upstream).await?;
        if session.refresh().await.map_err(failed)? {
            Pins::observe(&self.state, server, &session.tools())?;
        }
        match session.digest_of(tool) {
            Some(digest) if digest == judged => {}
            Some(_) => return Err(UpstreamError::Changed { server: server.to_owned(), tool: tool.to_owned() }),
            None => return Err(UpstreamError::Gone { server: server.to_owned(), tool: tool.to_owned() }),
        }
        session.call(tool, arguments).await.map_err(failed)
    }

    /// Asks a server for its tools, and puts them beside what is pinned.
    ///
    /// # Errors
    ///
    /// What keeps the server from answering.
    pub async fn discover(
        &self,
        whom: &Whom<'_>,
        server: &str,
        upstream: &Upstream,
    ) -> Result<(Listing, Value, ServerPins), UpstreamError> {
        let session = self.session(whom, server, upstream).await?;
        let listing = session.tools();
        let pinned = Pins::observe(&self.state, server, &listing)?;
        Ok((listing, session.about.clone(), pinned))
    }

    /// Ends the servers that are not in the configuration any more as they were.
    pub fn retain(&self, kept: impl Fn(&str) -> bool) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| kept(&key.server));
    }

    /// Ends every server.
    pub fn end(&self) {
        self.retain(|_| false);
    }

    async fn session(&self, whom: &Whom<'_>, server: &str, upstream: &Upstream) -> Result<Arc<Session>, UpstreamError> {
        let slot = self.slot(whom, server, upstream);
        let mut life = slot.life.lock().await;
        if let Some(session) = life.session.take() {
            match session.ended() {
                None => {
                    life.session = Some(Arc::clone(&session));
                    return Ok(session);
                }
                Some(_) if session.since.elapsed() > SOUND => *life = Life::default(),
                Some(why) => life.failed(why),
            }
        }
        if let Some((until, why)) = &life.rests {
            let left = until.saturating_duration_since(Instant::now());
            if left > SHORT {
                let seconds = left.as_secs() + 1;
                return Err(UpstreamError::Rests { server: server.to_owned(), seconds, why: why.clone() });
            }
            sleep(left).await;
        }
        match self.begin(whom, server, upstream).await {
            Ok(session) => {
                let session = Arc::new(session);
                life.session = Some(Arc::clone(&session));
                Pins::observe(&self.state, server, &session.tools())?;
                Ok(session)
            }
            Err(Begin::Unconfined) => Err(UpstreamError::Unconfined(server.to_owned())),
            Err(Begin::Failed(error)) => {
                life.failed(error.to_string());
                Err(UpstreamError::Begin { server: server.to_owned(), error })
            }
        }
    }

    async fn begin(&self, whom: &Whom<'_>, server: &str, upstream: &Upstream) -> Result<Session, Begin> {
        match &upstream.reach {
            Reach::Stdio(stdio) => {
                let plan = whom.plan.ok_or(Begin::Unconfined)?;
                tracing::debug!(server, "starting");
                let lines = start(&self.launcher, plan, stdio)?;
                Ok(Session::begin(Way::Lines(lines), upstream.timeout).await?)
            }
            Reach::Http(http) => {
                let http = Http::new(http).map_err(SessionError::from)?;
                Ok(Session::begin(Way::Http(Box::new(http)), upstream.timeout).await?)
            }
        }
    }

    fn slot(&self, whom: &Whom<'_>, server: &str, upstream: &Upstream) -> Arc<Slot> {
        let shared = matches!(&upstream.reach, Reach::Stdio(Stdio { shared: true, .. }));
        let plan = whom.plan.map(|plan| (plan.digest(), plan.workspace().to_owned()));
        let key = Key {
            server: server.to_owned(),
            made: Digest::of(format!("{upstream:?} {plan:?}")),
            agent: (!shared).then(|| whom.agent.to_owned()),
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |slot: &Slot| slot.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        running.retain(|_, slot| idle(slot) < IDLE || Arc::strong_count(slot) > 1);
        if running.len() >= MOST_SERVERS && !running.contains_key(&key) {
            let oldest = running.iter().max_by_key(|(_, slot)| idle(slot)).map(|(key, _)| key.clone());
            oldest.and_then(|key| running.remove(&key));
        }
        let slot = running.entry(key).or_insert_with(|| {
            Arc::new(Slot { life: tokio::sync::Mutex::default(), used: Mutex::new(Instant::now()) })
        });
        *slot.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Arc::clone(slot)
    }
}

impl Life {
    fn failed(&mut self, why: String) {
        let rest = FIRST_REST.saturating_mul(1 << self.failures.min(10)).min(LONGEST_REST);
        self.failures += 1;
        self.rests = Some((Instant::now() + rest, why));
    }
}

/// Why there is no session.
enum Begin {
    Unconfined,
    Failed(SessionError),
}

impl<E: Into<SessionError>> From<E> for Begin {
    fn from(error: E) -> Self {
        Begin::Failed(error.into())
    }
}

/// Starts a program with what its configuration declares, and nothing else, in its environment.
fn start(launcher: &Arc<Launcher>, plan: &Plan, stdio: &Stdio) -> Result<Lines, SessionError> {
    let mut plan = plan.clone();
    for (name, given) in &stdio.env {
        if !plan.set_variable(name, &given.resolve()?) {
            return Err(SessionError::Variable(name.clone()));
        }
    }
    let arguments = [&stdio.command].into_iter().chain(&stdio.args).cloned().collect();
    Ok(Lines::start(launcher, plan, arguments)?)
}
