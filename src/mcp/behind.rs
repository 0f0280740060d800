//! What stands behind a client's requests: the daemon that this process is, the daemon for which this process is a thin
//! client, or a gateway alone.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::time::sleep;

use crate::approval::{ApprovalId, Status};
use crate::call::Request;
use crate::client::{ClientError, Link};
use crate::config::{Config, Places};
use crate::daemon::errand::{Errand, ErrandError, Offers, Standing, presented};
use crate::daemon::{Daemon, Files, Refusal};
use crate::gateway::{Caller, Gateway, Judged, OpenError, Outcome, RecordError};
use crate::registry::{self, Tool};
use crate::verdict::{Finding, Severity};

/// How long an approval that still waits is left alone before it is looked at again.
const POLL: Duration = Duration::from_millis(200);
/// How long the daemon is asked to wait for an approval's answer at a time.
const TURN: Duration = Duration::from_secs(5);

/// Where the requests of one caller go.
#[derive(Clone)]
pub(super) enum Behind {
    /// The daemon, in its own process.
    Daemon(Arc<Daemon>, Arc<Caller>),
    Here(Arc<Gateway>, Arc<Caller>),
    Thin(Arc<Thin>),
}

/// A call as a client made it.
pub(super) struct Wanted {
    pub tool: String,
    pub arguments: Value,
    pub caller_id: String,
    /// Held until the call has ended. The daemon gives turns itself.
    pub turn: Option<OwnedSemaphorePermit>,
}

impl Behind {
    /// The agent that calls; nobody in particular where there is but one.
    pub fn agent(&self) -> &str {
        match self {
            Behind::Daemon(_, caller) | Behind::Here(_, caller) => &caller.principal.agent,
            Behind::Thin(_) => "",
        }
    }

    /// Makes a call, the whole way, unless `cancelled` is ready before it has ended.
    pub async fn call(
        &self,
        wanted: Wanted,
        cancelled: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Outcome, ErrorData> {
        match self {
            Behind::Daemon(daemon, caller) => {
                let request = request(caller, wanted.tool, wanted.arguments, wanted.caller_id);
                let called = daemon.call_unless(Caller::clone(caller), request, cancelled);
                called.await.map_err(not_taken)
            }
            Behind::Here(gateway, caller) => Ok(call_here(gateway, caller, wanted, cancelled).await),
            Behind::Thin(thin) => thin.call(wanted, cancelled).await.map_err(internal),
        }
    }

    /// The tools that the caller could ever be allowed, as clients list them, in the registry's order.
    pub async fn offers(&self) -> Result<Vec<Value>, ErrorData> {
        match self {
            Behind::Daemon(daemon, caller) => {
                let caller = Arc::clone(caller);
                let offers = daemon.look(move |gateway| gateway.offers(&caller));
                Ok(shown(&offers.await.map_err(not_taken)?.map_err(internal)?))
            }
            Behind::Here(gateway, caller) => {
                let (gateway, caller) = (Arc::clone(gateway), Arc::clone(caller));
                let offers = move || gateway.offers(&caller);
                Ok(shown(&apart(offers).await.map_err(internal)?.map_err(internal)?))
            }
            Behind::Thin(thin) => Ok(thin.offers().await.map_err(internal)?.tools),
        }
    }

    /// Where an approval stands; where it still waits, only after a while. None where that cannot be told.
    pub async fn standing(&self, id: &ApprovalId) -> Option<Standing> {
        match self {
            // A daemon that stops waits for nobody's answer.
            Behind::Daemon(daemon, _) => tokio::select! {
                standing = standing_here(daemon.gateway(), id) => standing,
                () = daemon.closed() => None,
            },
            Behind::Here(gateway, _) => standing_here(gateway, id).await,
            Behind::Thin(thin) => thin.standing(id).await,
        }
    }
}

/// A caller whose calls the daemon makes where one runs, and a gateway in this process where none does. That is looked at
/// anew for each request, so a daemon may come and go.
pub struct Thin {
    places: Places,
    /// Whose calls they are.
    caller: Errand,
    link: Mutex<Option<Arc<Link>>>,
    here: Mutex<Option<Here>>,
}

/// The gateway in this process, and the files that its rules came from.
struct Here {
    gateway: Arc<Gateway>,
    files: Files,
}

/// Why a thin client has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ThinError {
    #[error("the gateway failed inside, and nothing was allowed; please report this as a bug")]
    Broken,
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Errand(#[from] ErrandError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Thin {
    /// `caller` says whose calls they are; what it says of the call itself does not matter.
    pub fn new(places: Places, caller: Errand) -> Self {
        Thin { places, caller, link: Mutex::default(), here: Mutex::default() }
    }

    /// Whether a daemon answers now.
    ///
    /// # Errors
    ///
    /// When there is one, and it cannot be talked to.
    pub async fn through_daemon(&self) -> Result<bool, ThinError> {
        Ok(self.link().await?.is_some())
    }

    /// Whose calls these are, and what they could be.
    ///
    /// # Errors
    ///
    /// When the caller is not one whose calls can be made.
    pub async fn offers(&self) -> Result<Offers, ThinError> {
        if let Some(link) = self.link().await? {
            match link.offers(&self.caller).await {
                Err(ClientError::Absent) => {}
                offers => return Ok(offers?),
            }
        }
        let gateway = self.gateway().await?;
        let errand = self.caller.clone();
        apart(move || {
            let caller = errand.caller(&gateway, presented(&gateway)?.as_ref(), None)?;
            Ok(Errand::offers(&gateway, &caller)?)
        })
        .await?
    }

    async fn call(
        &self,
        wanted: Wanted,
        cancelled: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Outcome, ThinError> {
        let mut cancelled = Box::pin(cancelled);
        if let Some(link) = self.link().await? {
            let errand = Errand {
                tool: wanted.tool.clone(),
                arguments: wanted.arguments.to_string(),
                caller_id: Some(wanted.caller_id.clone()),
                while_connected: true,
                ..self.caller.clone()
            };
            let answered = tokio::select! {
                answered = link.call(&errand) => answered,
                // The daemon ends the call when it sees that nobody waits for it.
                () = &mut cancelled => return Ok(taken_back(wanted.tool)),
            };
            match answered {
                Err(ClientError::Absent) => {}
                outcome => return Ok(outcome?),
            }
        }
        let gateway = self.gateway().await?;
        let (errand, of) = (self.caller.clone(), Arc::clone(&gateway));
        let caller = apart(move || Ok::<_, ThinError>(errand.caller(&of, presented(&of)?.as_ref(), None)?)).await??;
        Ok(call_here(&gateway, &Arc::new(caller), wanted, cancelled).await)
    }

    async fn standing(&self, id: &ApprovalId) -> Option<Standing> {
        if let Some(link) = self.link().await.ok()? {
            match link.standing(id, TURN).await {
                Err(ClientError::Absent) => {}
                Ok(standing) => {
                    if standing.status == Status::Pending {
                        // A daemon that stops does not wait.
                        sleep(POLL).await;
                    }
                    return Some(standing);
                }
                Err(_) => return None,
            }
        }
        standing_here(&self.gateway().await.ok()?, id).await
    }

    /// The way to the daemon, where one runs.
    async fn link(&self) -> Result<Option<Arc<Link>>, ClientError> {
        let mut link = self.link.lock().await;
        if link.is_none() {
            *link = Link::connect(&self.places).await?.map(Arc::new);
        }
        Ok(link.clone())
    }

    /// The gateway in this process, opened when it is needed, and anew when its configuration or rules have changed.
    async fn gateway(&self) -> Result<Arc<Gateway>, ThinError> {
        let mut here = self.here.lock().await;
        let last = here.take();
        let places = self.places.clone();
        let look = move || -> Result<_, OpenError> {
            if let Some(last) = last
                && Files::of(&last.gateway.config()) == last.files
            {
                return Ok(last);
            }
            let config = Config::load(places)?;
            // Before the rules are read: what changes meanwhile is then another state.
            let files = Files::of(&config);
            Ok(Here { gateway: Arc::new(Gateway::open(config)?), files })
        };
        let looked = apart(look).await??;
        Ok(Arc::clone(&here.insert(looked).gateway))
    }
}

/// The gateway reads files and waits for the disk on the way, so a call has a thread of its own.
async fn call_here(
    gateway: &Arc<Gateway>,
    caller: &Arc<Caller>,
    wanted: Wanted,
    cancelled: impl Future<Output = ()> + Send + 'static,
) -> Outcome {
    let (gateway, caller, tool) = (Arc::clone(gateway), Arc::clone(caller), wanted.tool.clone());
    let runtime = Handle::current();
    let run = apart(move || {
        let request = request(&caller, wanted.tool, wanted.arguments, wanted.caller_id);
        let outcome = runtime.block_on(gateway.call_unless(&caller, request, cancelled));
        drop(wanted.turn);
        outcome
    });
    run.await.unwrap_or_else(|broken| {
        Outcome::Denied(Judged::refused(tool, Finding::new("call.failed", Severity::Deny, broken.to_string())))
    })
}

fn shown(tools: &[Arc<dyn Tool>]) -> Vec<Value> {
    tools.iter().map(|tool| registry::listed(tool.definition())).collect()
}

fn request(caller: &Caller, tool: String, arguments: Value, caller_id: String) -> Request {
    Request { caller_id: Some(caller_id), ..caller.request(tool, arguments) }
}

async fn standing_here(gateway: &Arc<Gateway>, id: &ApprovalId) -> Option<Standing> {
    let (gateway, id) = (Arc::clone(gateway), id.clone());
    let approval = apart(move || gateway.approval(&id)).await.ok()?.ok()?;
    if approval.status == Status::Pending {
        sleep(POLL).await;
    }
    Some(Standing { status: approval.status, reason: approval.reason })
}

/// What nobody is told.
fn taken_back(tool: String) -> Outcome {
    let finding = Finding::new("call.cancelled", Severity::Deny, "the client took the call back");
    Outcome::Denied(Judged::refused(tool, finding))
}

async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ThinError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ThinError::Broken)
}

/// JSON-RPC leaves the codes down to -32099 to servers.
pub(super) const BUSY: ErrorCode = ErrorCode(-32010);

/// The call did not begin.
fn not_taken(refusal: Refusal) -> ErrorData {
    match refusal {
        Refusal::Busy | Refusal::Stopping => ErrorData::new(BUSY, format!("{refusal}; nothing ran"), None),
        Refusal::Broken => internal(refusal),
    }
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
