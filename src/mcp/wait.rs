//! Waiting for a person's answer while the client waits for the call's.

use std::pin::pin;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use tokio::time::{Instant, interval, sleep_until};

use crate::approval::{Approval, Status};
use crate::daemon::errand::Standing;
use crate::mcp::behind::Behind;

/// How often a client that wants to know is told that the call still waits.
const PROGRESS: Duration = Duration::from_secs(5);

/// How long a call waits for a person before the client is told that it is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a client that asked for no progress.
    pub silent: Duration,
    /// For a client that is sent progress while it waits.
    pub with_progress: Duration,
}

impl Patience {
    /// This long, and for a client that is sent progress no less than by default.
    pub fn of(silent: Duration) -> Self {
        Patience { silent, with_progress: silent.max(Patience::default().with_progress) }
    }
}

impl Default for Patience {
    /// Clients commonly give up after 60 seconds, not all of them start again at progress, and a granted call takes its
    /// own time: 20 seconds, and 50 with progress.
    fn default() -> Self {
        Patience { silent: Duration::from_secs(20), with_progress: Duration::from_secs(50) }
    }
}

/// What became of the question while the client waited.
pub(super) enum Answer {
    /// The same call can be made again.
    Granted,
    /// With the person's reason.
    Refused(Option<String>),
    /// Nobody answered while there was patience, or the client does not wait any more.
    None,
}

/// Waits until a person answers, `patience` from `since` is over, or the client takes its request back.
pub(super) async fn for_answer(
    behind: &Behind,
    pending: &Approval,
    context: &RequestContext<RoleServer>,
    patience: Patience,
    since: Instant,
) -> Answer {
    let token = context.meta.get_progress_token();
    let until = since + if token.is_some() { patience.with_progress } else { patience.silent };
    let mut progress = interval(PROGRESS);
    let mut look = pin!(behind.standing(&pending.id));
    loop {
        tokio::select! {
            () = context.ct.cancelled() => return Answer::None,
            () = sleep_until(until) => return Answer::None,
            _ = progress.tick() => if let Some(token) = &token {
                tell(context, token, pending, since).await;
            },
            standing = &mut look => match standing {
                // Used up by the same call, made twice at once: this one asks for a grant of its own.
                Some(Standing { status: Status::Granted | Status::Consumed, .. }) => return Answer::Granted,
                Some(Standing { status: Status::Refused, reason }) => return Answer::Refused(reason),
                Some(Standing { status: Status::Pending, .. }) => look.set(behind.standing(&pending.id)),
                // Lapsed, or not to be read: the client is told that it is pending, and a retry asks again.
                Some(_) | None => return Answer::None,
            },
        }
    }
}

async fn tell(context: &RequestContext<RoleServer>, token: &ProgressToken, pending: &Approval, since: Instant) {
    let message = format!("waiting for a person to approve: portcullis approvals grant {}", pending.id);
    // The protocol wants a number that grows: the seconds waited, from a start that is not 0.
    let progress = ProgressNotificationParam::new(token.clone(), since.elapsed().as_secs_f64()).with_message(message);
    // A client that cannot be told is noticed when it is answered.
    let _ = context.peer.notify_progress(progress).await;
}
