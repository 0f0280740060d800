//! The daemon: one gateway for everybody who makes calls on this machine.
//!
//! ```text
//! listen ─► serve (connections, their limits) ─► the routes given to it ─► Daemon ─► Gateway
//! ```
//!
//! - [`Listeners`] takes the state directory, the TCP address and the Unix socket; one daemon has them at a time.
//! - [`serve()`] accepts, and stops gracefully.
//! - [`Daemon`] is what the routes work with. It decides nothing: [`Gateway::call`] does.
//! - [`errand`] is what the thin clients ask over the Unix socket.

pub mod errand;
mod held;
pub mod hosted;
mod idle;
mod listen;
mod reload;
mod room;
mod serve;
mod shares;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use self::errand::ErrandError;
pub(crate) use self::held::Held;
use self::hosted::{HostErrand, Said};
pub use self::listen::{ListenError, Listeners, running};
pub use self::reload::{Files, follow_changes};
pub use self::serve::{end_calls, serve};
pub use self::shares::{Share, Shares};
use crate::approval::{Approval, ApprovalId, Reach, Role, Status};
use crate::call::Request;
use crate::gateway::{Caller, Gateway, Judged, Outcome, RecordError};

/// How many calls are judged or run at the same time. Others wait for their turn.
const MOST_CALLS: usize = 128;
/// How many of them may be one agent's.
const CALLS_OF_ONE: usize = 64;
/// How many requests of agents are answered at the same time, and how many of one. The rest of the connections is left for
/// people.
const MOST_REQUESTS: usize = 448;
const REQUESTS_OF_ONE: usize = 256;
/// How long a call waits for its turn.
const TURN: Duration = Duration::from_secs(30);
/// How often an approval is looked at that somebody else may have answered, in another process.
const GLANCE: Duration = Duration::from_millis(100);
/// How long calls get to be ended, and recorded.
const ENDING: Duration = Duration::from_secs(10);

/// One gateway, and the little that its callers share.
pub struct Daemon {
    gateway: Arc<Gateway>,
    workspace: PathBuf,
    address: SocketAddr,
    turns: Shares,
    requests: Shares,
    /// Changes whenever an approval was answered here.
    answers: watch::Sender<()>,
    closing: watch::Sender<bool>,
    /// Set when calls that still run are to be ended.
    cutting: watch::Sender<bool>,
}

/// Why the daemon did not take a call on. It did not run.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(
        "too many calls are running ({MOST_CALLS} at most, {CALLS_OF_ONE} of one agent), and none ended within {} s: try \
         again later", TURN.as_secs()
    )]
    Busy,
    #[error("the gateway failed inside, and nothing was allowed; please report this as a bug")]
    Broken,
    #[error("the gateway is stopping")]
    Stopping,
}

impl Daemon {
    /// `workspace` is where agents work whose configuration names no place.
    pub fn new(gateway: Arc<Gateway>, workspace: PathBuf, address: SocketAddr) -> Self {
        Daemon {
            gateway,
            workspace,
            address,
            turns: Shares::new(MOST_CALLS, CALLS_OF_ONE),
            requests: Shares::new(MOST_REQUESTS, REQUESTS_OF_ONE),
            answers: watch::Sender::new(()),
            closing: watch::Sender::new(false),
            cutting: watch::Sender::new(false),
        }
    }

    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// What every request of an agent takes one of while it is answered.
    pub fn requests(&self) -> &Shares {
        &self.requests
    }

    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The TCP address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes a call, the whole way. Once it has begun it runs to its end, even where nobody waits for it any more, unless
    /// the daemon has to stop before.
    ///
    /// # Errors
    ///
    /// When there was no turn for it.
    pub async fn call(&self, caller: Caller, request: Request) -> Result<Outcome, Refusal> {
        self.call_unless(caller, request, std::future::pending()).await
    }

    /// The same for a caller who may take the call back: it is ended once `cancelled` is ready.
    ///
    /// # Errors
    ///
    /// As [`Daemon::call`].
    pub async fn call_unless(
        &self,
        caller: Caller,
        request: Request,
        cancelled: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Outcome, Refusal> {
        let (gateway, mut cutting) = (Arc::clone(&self.gateway), self.cutting.subscribe());
        let ended = async move {
            tokio::select! {
                () = cancelled => {}
                // The sender lives as long as the daemon; a daemon that is gone ends its calls, too.
                _ = cutting.wait_for(|cutting| *cutting) => {}
            }
        };
        // Judging works on files and waits for the disk: a thread of its own keeps the event loop free, and lets the
        // records of many calls share one sync.
        let agent = caller.principal.agent.clone();
        self.in_turn(&agent, move || Handle::current().block_on(gateway.call_unless(&caller, request, ended))).await
    }

    /// Makes a call and, where it asks, waits for the answer up to `patience` and makes it again.
    ///
    /// # Errors
    ///
    /// As [`Daemon::call`].
    pub async fn call_and_wait(
        &self,
        caller: &Caller,
        request: &Request,
        patience: Duration,
    ) -> Result<(Outcome, Option<Approval>), Refusal> {
        let deadline = Instant::now() + patience;
        loop {
            let outcome = self.call(caller.clone(), request.clone()).await?;
            let Outcome::Asks(asks) = &outcome else { return Ok((outcome, None)) };
            let answered = self.answered(&asks.pending.id, deadline).await;
            match answered {
                Some(approval) if approval.status == Status::Granted => {}
                answered => return Ok((outcome, answered)),
            }
        }
    }

    /// Waits until an approval is not pending any more. None when the deadline passed, or the daemon stops, before.
    pub async fn answered(&self, id: &ApprovalId, deadline: Instant) -> Option<Approval> {
        let mut answers = self.answers.subscribe();
        let mut closing = self.closing.subscribe();
        loop {
            let (gateway, wanted) = (Arc::clone(&self.gateway), id.clone());
            let look = move || {
                // Looking at those that wait ends what has lapsed.
                let lapsed = gateway.approval(&wanted)?;
                if lapsed.status == Status::Pending && lapsed.expires <= jiff::Timestamp::now() {
                    gateway.pending()?;
                    return gateway.approval(&wanted);
                }
                Ok::<_, RecordError>(lapsed)
            };
            match tokio::task::spawn_blocking(look).await {
                Ok(Ok(approval)) if approval.status != Status::Pending => return Some(approval),
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return None,
            }
            let now = Instant::now();
            if now >= deadline || *closing.borrow_and_update() {
                return None;
            }
            tokio::select! {
                _ = answers.changed() => {}
                _ = closing.changed() => {}
                () = tokio::time::sleep(GLANCE.min(deadline - now)) => {}
            }
        }
    }

    /// What the firewall would answer.
    ///
    /// # Errors
    ///
    /// As [`Daemon::call`].
    pub async fn judge(&self, caller: Caller, request: Request) -> Result<Judged, Refusal> {
        let gateway = Arc::clone(&self.gateway);
        let agent = caller.principal.agent.clone();
        self.in_turn(&agent, move || gateway.judge(&caller, request)).await
    }

    /// Answers an event of an agent's own program.
    ///
    /// # Errors
    ///
    /// As [`Daemon::call`].
    pub async fn hosted(&self, errand: HostErrand, role: Role) -> Result<Result<Said, ErrandError>, Refusal> {
        let (gateway, home) = (Arc::clone(&self.gateway), self.workspace.clone());
        let agent = errand.agent.clone();
        self.in_turn(&agent, move || errand.answer(&gateway, Some(&role), Some(&home))).await
    }

    /// Works with the gateway's books, off the event loop.
    ///
    /// # Errors
    ///
    /// When the work itself failed unexpectedly.
    pub async fn books<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Gateway) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<Result<T, RecordError>, Refusal> {
        self.look(work).await
    }

    /// Looks at what the gateway's rules say, off the event loop.
    ///
    /// # Errors
    ///
    /// When the work itself failed unexpectedly.
    pub async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Gateway) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let gateway = Arc::clone(&self.gateway);
        tokio::task::spawn_blocking(move || work(&gateway)).await.map_err(|_| Refusal::Broken)
    }

    /// Answers an approval, and wakes the calls that wait for one.
    ///
    /// # Errors
    ///
    /// As [`Daemon::books`].
    pub async fn answer(
        &self,
        id: ApprovalId,
        by: Role,
        answer: Answer,
    ) -> Result<Result<Approval, RecordError>, Refusal> {
        let answered = self.books(move |gateway| {
            match answer {
                Answer::Grant(reach) => gateway.grant_for(&id, &by, reach).map(drop)?,
                Answer::Refuse(reason) => gateway.refuse(&id, &by, reason.as_deref())?,
            }
            gateway.approval(&id)
        });
        let answered = answered.await;
        self.answers.send_replace(());
        answered
    }

    /// Tells everybody who waits that the daemon stops.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Ready once the daemon stops.
    pub async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives as long as `self`.
        let _ = closing.wait_for(|closing| *closing).await;
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        agent: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        if *self.closing.borrow() {
            return Err(Refusal::Stopping);
        }
        let turn = match timeout(TURN, self.turns.take(agent)).await {
            Ok(turn) => turn.ok_or(Refusal::Stopping)?,
            Err(_) => return Err(Refusal::Busy),
        };
        // The turn belongs to the work, which goes on where nobody waits for it any more.
        let work = move || {
            let done = work();
            drop(turn);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::Broken)
    }

    /// Ends the calls that still run, and waits until their ends are on record. Whether they are.
    pub async fn cut_off(&self) -> bool {
        self.close();
        self.cutting.send_replace(true);
        let ended = async {
            while self.running() > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(ENDING, ended).await.is_ok()
    }

    /// How many calls are judged or run now.
    fn running(&self) -> usize {
        MOST_CALLS - self.turns.free()
    }
}

/// Which listener a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Tcp,
    Unix,
}

/// A person's answer.
#[derive(Clone, Debug)]
pub enum Answer {
    Grant(Reach),
    Refuse(Option<String>),
}
