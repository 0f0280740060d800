//! Approvals: an ASK is a state machine that outlives processes, kept in `state.db`.
//!
//! ```text
//! pending ──► granted ──► consumed      (consumed durably before the call is dispatched, exactly once)
//!    │           └──────► expired       (or revoked; a grant for the session counts its uses until then)
//!    ├──► refused
//!    └──► expired
//! ```
//!
//! The way of an ASK: [`Store::request`], a person's [`Store::grant`], then for the call that comes again
//! [`Store::find_grant`], [`Grant::covers`] on its new verdict, [`Store::consume`], dispatch.
//!
//! - [`Store`] holds the approvals; the exact arguments lie encrypted in it until the approval has ended.
//! - [`Grant`] says what was approved: one digest, at one level, with the findings that the person saw.
//! - [`Credentials`] tells agents from the people who may approve: an agent never can.

mod credentials;
mod grant;
mod id;
mod scope;
mod seal;
mod store;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::credentials::{CredentialError, Credentials, Role, Token, operator_token, presented_token};
pub use self::grant::{Grant, Seen, Uncovered};
pub use self::id::{ApprovalId, InvalidId};
pub use self::scope::{Like, Preview, Reach, Scope};
pub use self::store::{AT_THE_TERMINAL, ApprovalError, Ask, Exact, Lifetimes, MAX_PENDING, Requested, Store};

use crate::audit::{ApprovalEvent, Step};
use crate::call::Digest;
use crate::verdict::Level;

/// Where an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Consumed,
    Expired,
    Granted,
    Pending,
    Refused,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Consumed => "consumed",
            Status::Expired => "expired",
            Status::Granted => "granted",
            Status::Pending => "pending",
            Status::Refused => "refused",
        }
    }
}

/// An approval without the exact arguments, which [`Store::exact`] shows while it is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub status: Status,
    /// What is approved, and nothing else.
    pub digest: Digest,
    pub session: String,
    pub agent: String,
    /// The session's operator.
    pub operator: String,
    pub tool: String,
    /// The call that asked.
    pub call_id: String,
    /// Who has to approve.
    pub level: Level,
    /// What the person is shown, and a grant covers.
    pub findings: Vec<Seen>,
    pub created: Timestamp,
    /// When it lapses, unanswered or unused.
    pub expires: Timestamp,
    /// Who answered, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it covers, once granted.
    #[serde(default)]
    pub scope: Scope,
    /// What tells whether another command is like the one that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<Like>,
    /// How many calls it has let through.
    #[serde(default)]
    pub uses: u64,
}

impl Approval {
    /// The scope that a person's choice comes to; absent where no commands are like this one.
    pub fn scope_of(&self, reach: Reach) -> Option<Scope> {
        match reach {
            Reach::Call => Some(Scope::Call),
            Reach::Same => Some(Scope::Same),
            Reach::Prefix => Some(Scope::Prefix { words: self.like.as_ref()?.prefix()? }),
        }
    }

    /// The scopes that it can be granted with.
    pub fn scopes(&self) -> Vec<Scope> {
        [Reach::Call, Reach::Same, Reach::Prefix].into_iter().filter_map(|reach| self.scope_of(reach)).collect()
    }

    /// This step for the audit log.
    pub fn event(&self, step: Step) -> ApprovalEvent {
        let answered = matches!(step, Step::Granted | Step::Refused | Step::Revoked);
        ApprovalEvent {
            approval: self.id.to_string(),
            step,
            call_id: self.call_id.clone(),
            digest: self.digest,
            level: self.level,
            by: self.decided_by.clone().filter(|_| answered),
            reason: self.reason.clone().filter(|_| answered),
            findings: self.findings.iter().map(|seen| seen.id.clone()).collect(),
            scope: Some(self.scope.clone()).filter(|scope| *scope != Scope::Call && step != Step::Requested),
        }
    }
}
