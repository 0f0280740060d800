//! The approvals of a state directory.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use crate::approval::credentials::Role;
use crate::approval::grant::{Grant, Seen};
use crate::approval::seal::{Seal, SealError};
use crate::approval::{Approval, ApprovalId, Like, Reach, Scope, Status};
use crate::call::{Call, Digest};
use crate::facts::path::PathFact;
use crate::state::{Database, DatabaseError, StateDir, Synchronous, millis, timestamp};
use crate::verdict::{Level, Verdict};

/// How many approvals one session may have pending. More are refused: an agent must not drown its operator.
pub const MAX_PENDING: u32 = 100;

/// In milliseconds.
const MINUTE: i64 = 60_000;

/// The reason of a refusal by whoever made the call, who needs not be told.
pub const AT_THE_TERMINAL: &str = "refused at the terminal";

/// The approvals of a state directory. What a method changed is on disk when it returns.
#[derive(Debug)]
pub struct Store {
    database: Database,
    seal: Seal,
    lifetimes: Mutex<Lifetimes>,
}

/// How long an approval waits.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// For an answer.
    pub pending: SignedDuration,
    /// For its use, once granted.
    pub grant: SignedDuration,
    /// The same of a grant for the session.
    pub session: SignedDuration,
    /// How many calls of a session may ask in a minute. More are withheld from the people, and counted.
    pub per_minute: u32,
}

impl Default for Lifetimes {
    /// Ten minutes each; eight hours for the session; sixty a minute.
    fn default() -> Self {
        Lifetimes {
            pending: SignedDuration::from_mins(10),
            grant: SignedDuration::from_mins(10),
            session: SignedDuration::from_hours(8),
            per_minute: 60,
        }
    }
}

/// What a person is asked.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub call: &'a Call,
    /// What the grant will bind.
    pub digest: Digest,
    pub verdict: &'a Verdict,
    /// Where the call's paths land.
    pub paths: &'a [PathFact],
    /// Who has to approve.
    pub level: Level,
    /// The name of the session's own operator, who cannot review it.
    pub operator: &'a str,
    /// What tells whether other commands are like this one.
    pub like: Option<Like>,
}

/// The call and the judgement, exactly: what the person is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exact {
    pub call: Call,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathFact>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    pub approval: Approval,
    /// It is new; otherwise the session asked for the same before.
    pub fresh: bool,
    /// An approval of the same call that the new one replaces, because it has lapsed or shows other findings.
    pub superseded: Option<Approval>,
}

/// Why an approval does not go the way that was asked.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The answer to an agent is 403.
    #[error(
        "{agent} may not answer approvals: an agent cannot approve itself; use an operator's or a reviewer's credential"
    )]
    AgentCredential { agent: Role },
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("approval {id} expired at {at}: ask again")]
    Expired { id: ApprovalId, at: Timestamp },
    #[error("approval {id} needs a reviewer: {by} may approve at level 1 only")]
    NeedsReviewer { id: ApprovalId, by: Role },
    #[error("there is no approval {0}")]
    NotFound(ApprovalId),
    #[error("approval {id} is {}, not granted: ask again", .status.as_str())]
    NotGranted { id: ApprovalId, status: Status },
    #[error("approval {id} is {} already", .status.as_str())]
    NotPending { id: ApprovalId, status: Status },
    #[error(
        "approval {id} cannot be granted for commands that begin alike: that is to be had for one call of a program that runs \
         no others, never for interpreters, wrappers, compound commands, or programs whose options run programs"
    )]
    NoPrefix { id: ApprovalId },
    #[error("approval {id} needs another person than `{name}`, the session's own operator")]
    SamePerson { id: ApprovalId, name: String },
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("the call cannot be stored: {0}")]
    Stored(#[from] serde_json::Error),
    #[error(
        "session `{session}` asks more than {most} times a minute: this one is withheld from the people, and counted"
    )]
    TooOften { session: String, most: u32 },
    #[error("session `{session}` has {MAX_PENDING} approvals pending, the most allowed: answer some first")]
    TooMany { session: String },
}

impl Store {
    pub fn open(state: &StateDir, lifetimes: Lifetimes) -> Result<Self, ApprovalError> {
        let seal = Seal::open(state)?;
        Ok(Store { database: Database::open(state, Synchronous::Full)?, seal, lifetimes: Mutex::new(lifetimes) })
    }

    /// From now on approvals last this long.
    pub fn set_lifetimes(&self, lifetimes: Lifetimes) {
        *self.lifetimes.lock().unwrap_or_else(PoisonError::into_inner) = lifetimes;
    }

    fn lifetimes(&self) -> Lifetimes {
        *self.lifetimes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a pending approval. Where the session already asks for the same digest with the same findings, it is that one.
    pub fn request(&self, ask: &Ask<'_>, now: Timestamp) -> Result<Requested, ApprovalError> {
        let id = ApprovalId::random().map_err(SealError::from)?;
        let exact = Exact { call: ask.call.clone(), verdict: ask.verdict.clone(), paths: ask.paths.to_vec() };
        let exact = serde_json::to_vec(&exact)?;
        let sealed = self.seal.close(&exact, &bound(&id, &ask.digest))?;
        let fresh = self.pending(id, ask, now);
        let findings = serde_json::to_string(&fresh.findings)?;
        let like = fresh.like.as_ref().map(serde_json::to_string).transpose()?;
        let per_minute = self.lifetimes().per_minute;
        let mut often = false;
        let requested = self.change(|tx| {
            let mut superseded = pending_for(tx, &fresh)?;
            if let Some(found) = &mut superseded {
                if found.expires > now && found.findings == fresh.findings && found.level == fresh.level {
                    return Ok(Some(Requested { approval: found.clone(), fresh: false, superseded: None }));
                }
                // What it shows is not what is asked now.
                end(tx, &found.id, Status::Expired)?;
                found.status = Status::Expired;
            }
            let waiting: u32 = tx
                .prepare_cached(
                    "SELECT count(*) FROM approval WHERE session = ?1 AND status = 'pending' AND expires > ?2",
                )?
                .query_row(params![fresh.session, millis(now)], |row| row.get(0))?;
            let lately: u32 = tx
                .prepare_cached("SELECT count(*) FROM approval WHERE session = ?1 AND created > ?2")?
                .query_row(params![fresh.session, millis(now) - MINUTE], |row| row.get(0))?;
            if waiting >= MAX_PENDING || lately >= per_minute {
                often = waiting < MAX_PENDING;
                withhold(tx, &fresh.session, now)?;
                return Ok(None);
            }
            insert(tx, &fresh, &findings, like.as_deref(), &sealed)?;
            Ok(Some(Requested { approval: fresh.clone(), fresh: true, superseded }))
        })?;
        let session = fresh.session;
        requested.ok_or(match often {
            true => ApprovalError::TooOften { session, most: per_minute },
            false => ApprovalError::TooMany { session },
        })
    }

    /// How many requests were withheld from the people in the last hour, by session.
    pub fn withheld(&self, now: Timestamp) -> Result<Vec<(String, u64)>, ApprovalError> {
        Ok(self.database.with(|c| {
            let mut query =
                c.prepare_cached("SELECT session, sum(count) FROM withheld WHERE minute > ?1 GROUP BY session")?;
            query.query_map([millis(now) / MINUTE - 60], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?)
    }

    /// Takes a grant back that was not used up.
    pub fn revoke(&self, id: &ApprovalId, by: &Role, now: Timestamp) -> Result<Approval, ApprovalError> {
        if let Role::Agent(_) = by {
            return Err(ApprovalError::AgentCredential { agent: by.clone() });
        }
        let revoked = self.change(|c| {
            let mut update = c.prepare_cached(
                "UPDATE approval SET status = 'expired', decided_by = ?2, decided_at = ?3, reason = 'revoked', sealed = NULL
                 WHERE id = ?1 AND status = 'granted' AND expires > ?3 RETURNING *",
            )?;
            update.query_row(params![id.as_str(), by.name(), millis(now)], read_row).optional()
        })?;
        match revoked {
            Some(approval) => Ok(approval),
            None => {
                let Approval { id, status, .. } = self.get(id)?;
                Err(ApprovalError::NotGranted { id, status })
            }
        }
    }

    /// All approvals, or those of one status, the oldest first.
    pub fn list(&self, status: Option<Status>) -> Result<Vec<Approval>, ApprovalError> {
        Ok(self.database.with(|c| {
            let filter = status.map(Status::as_str);
            let mut query = c.prepare_cached(&select("?1 IS NULL OR status = ?1 ORDER BY created, id"))?;
            query.query_map([filter], read_row)?.collect()
        })?)
    }

    pub fn get(&self, id: &ApprovalId) -> Result<Approval, ApprovalError> {
        let found = self.database.with(|c| by_id(c, id))?;
        found.ok_or_else(|| ApprovalError::NotFound(id.clone()))
    }

    /// The exact call of an approval. Absent once the approval has ended: the arguments are deleted then.
    pub fn exact(&self, id: &ApprovalId) -> Result<Option<Exact>, ApprovalError> {
        let approval = self.get(id)?;
        let sealed: Option<Vec<u8>> = self.database.with(|c| {
            let mut query = c.prepare_cached("SELECT sealed FROM approval WHERE id = ?1")?;
            query.query_row([id.as_str()], |row| row.get(0))
        })?;
        let Some(sealed) = sealed else { return Ok(None) };
        let text = self.seal.open_sealed(&sealed, &bound(id, &approval.digest))?;
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Grants a pending approval, for one use.
    pub fn grant(&self, id: &ApprovalId, by: &Role, now: Timestamp) -> Result<Grant, ApprovalError> {
        self.grant_for(id, by, Reach::Call, now)
    }

    /// Grants a pending approval, for what a scope covers. Of a prefix, the words are those that were offered.
    pub fn grant_for(&self, id: &ApprovalId, by: &Role, reach: Reach, now: Timestamp) -> Result<Grant, ApprovalError> {
        self.grant_once(id, by, reach, now, |_| Ok(()))
    }

    /// The same, once `record` has put it on record. A crash in between leaves a grant that is on record and not in force:
    /// never one that is in force and not on record.
    pub fn grant_once<E: From<ApprovalError>>(
        &self,
        id: &ApprovalId,
        by: &Role,
        reach: Reach,
        now: Timestamp,
        record: impl FnOnce(&Approval) -> Result<(), E>,
    ) -> Result<Grant, E> {
        let approval = self.get(id)?;
        may_grant(&approval, by)?;
        let scope = approval.scope_of(reach).ok_or_else(|| ApprovalError::NoPrefix { id: id.clone() })?;
        let Lifetimes { grant, session, .. } = self.lifetimes();
        let lasts = if scope == Scope::Call { grant } else { session };
        let expires = now.checked_add(lasts).unwrap_or(now);
        let told = serde_json::to_string(&scope).map_err(ApprovalError::from)?;
        let mut recorded = Ok(());
        let granted = self.database.with(|c| {
            let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let row = params![id.as_str(), by.name(), millis(now), millis(expires), told];
            let granted = tx
                .prepare_cached(
                    "UPDATE approval SET status = 'granted', decided_by = ?2, decided_at = ?3, expires = ?4, scope = ?5
                     WHERE id = ?1 AND status = 'pending' AND expires > ?3 RETURNING *",
                )?
                .query_row(row, read_row)
                .optional()?;
            if let Some(approval) = &granted {
                recorded = record(approval);
            }
            if recorded.is_ok() {
                tx.commit()?;
            }
            Ok(granted)
        });
        let granted = granted.map_err(ApprovalError::from)?;
        recorded?;
        match granted {
            Some(approval) => Ok(grant_of(approval)),
            None => Err(self.why_not_pending(id)?.into()),
        }
    }

    /// Refuses a pending approval.
    pub fn refuse(
        &self,
        id: &ApprovalId,
        by: &Role,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Approval, ApprovalError> {
        if let Role::Agent(_) = by {
            return Err(ApprovalError::AgentCredential { agent: by.clone() });
        }
        let refused = self.change(|c| {
            let mut update = c.prepare_cached(
                "UPDATE approval SET status = 'refused', decided_by = ?2, decided_at = ?3, reason = ?4, sealed = NULL
                 WHERE id = ?1 AND status = 'pending' AND expires > ?3 RETURNING *",
            )?;
            let row = update.query_row(params![id.as_str(), by.name(), millis(now), reason], read_row);
            row.optional()
        })?;
        match refused {
            Some(approval) => Ok(approval),
            None => Err(self.why_not_pending(id)?),
        }
    }

    /// The refusal of this call, unless its time is over: as long as the request would have waited. It is told once; who
    /// makes the call again after that asks again.
    pub fn tell_refusal(
        &self,
        digest: &Digest,
        session: &str,
        now: Timestamp,
    ) -> Result<Option<Approval>, ApprovalError> {
        self.change(|c| {
            let mut update = c.prepare_cached(
                "UPDATE approval SET expires = ?3 WHERE id = (
                   SELECT id FROM approval WHERE digest = ?1 AND session = ?2 AND status = 'refused' AND expires > ?3
                   AND reason IS NOT ?4 ORDER BY decided_at DESC LIMIT 1) RETURNING *",
            )?;
            update.query_row(params![digest.to_string(), session, millis(now), AT_THE_TERMINAL], read_row).optional()
        })
    }

    /// The grant for this call, if it has an unused one.
    pub fn find_grant(&self, digest: &Digest, session: &str, now: Timestamp) -> Result<Option<Grant>, ApprovalError> {
        let found = self.database.with(|c| {
            let mut query = c.prepare_cached(&select(
                "digest = ?1 AND session = ?2 AND status = 'granted' AND expires > ?3 ORDER BY expires DESC LIMIT 1",
            ))?;
            query.query_row(params![digest.to_string(), session, millis(now)], read_row).optional()
        })?;
        Ok(found.map(grant_of))
    }

    /// The grants of the session for commands like this one.
    pub fn grants_like(&self, like: &Like, session: &str, now: Timestamp) -> Result<Vec<Grant>, ApprovalError> {
        let found: Vec<Approval> = self.database.with(|c| {
            let mut query = c.prepare_cached(&select(
                "session = ?1 AND frame = ?2 AND status = 'granted' AND expires > ?3 ORDER BY expires DESC",
            ))?;
            query.query_map(params![session, like.frame.to_string(), millis(now)], read_row)?.collect()
        })?;
        let admits = |grant: &Grant| match (&grant.scope, &grant.like) {
            (Scope::Prefix { words }, Some(granted)) => granted.admits(words, like),
            _ => false,
        };
        Ok(found.into_iter().map(grant_of).filter(admits).collect())
    }

    /// Uses a grant up, or counts its use where it is for the session, before the call is dispatched. Of any number of processes that try, one succeeds.
    pub fn consume(&self, grant: &Grant, now: Timestamp) -> Result<Approval, ApprovalError> {
        let consumed = self.change(|c| {
            let mut update = c.prepare_cached(
                "UPDATE approval SET status = iif(?5, 'consumed', status), sealed = NULL, uses = uses + 1
                 WHERE id = ?1 AND digest = ?2 AND session = ?3 AND status = 'granted' AND expires > ?4 RETURNING *",
            )?;
            let digest = grant.digest.to_string();
            let row = params![grant.id.as_str(), digest, grant.session, millis(now), grant.scope == Scope::Call];
            update.query_row(row, read_row).optional()
        })?;
        if let Some(approval) = consumed {
            return Ok(approval);
        }
        let Approval { id, status, expires, .. } = self.get(&grant.id)?;
        Err(match status {
            Status::Granted if expires <= now => ApprovalError::Expired { id, at: expires },
            Status::Granted => ApprovalError::NotFound(id),
            status => ApprovalError::NotGranted { id, status },
        })
    }

    /// Ends what has lapsed, unanswered or unused, and gives it for the log.
    pub fn expire(&self, now: Timestamp) -> Result<Vec<Approval>, ApprovalError> {
        self.change(|c| {
            let mut update = c.prepare_cached(
                "UPDATE approval SET status = 'expired', sealed = NULL
                 WHERE status IN ('pending', 'granted') AND expires <= ?1 RETURNING *",
            )?;
            update.query_map([millis(now)], read_row)?.collect()
        })
    }

    /// Changes something in one transaction. Its commit is checked here: a statement that returns rows commits when it is
    /// reset, where an error would be lost.
    fn change<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ApprovalError> {
        Ok(self.database.with(|c| {
            let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&tx)?;
            tx.commit()?;
            Ok(done)
        })?)
    }

    fn pending(&self, id: ApprovalId, ask: &Ask<'_>, now: Timestamp) -> Approval {
        Approval {
            id,
            status: Status::Pending,
            digest: ask.digest,
            session: ask.call.principal.session.clone(),
            agent: ask.call.principal.agent.clone(),
            operator: ask.operator.to_owned(),
            tool: ask.call.tool.clone(),
            call_id: ask.call.id.clone(),
            level: ask.level,
            findings: Seen::of(ask.verdict),
            created: now,
            expires: now.checked_add(self.lifetimes().pending).unwrap_or(now),
            decided_by: None,
            decided_at: None,
            reason: None,
            scope: Scope::Call,
            like: ask.like.clone(),
            uses: 0,
        }
    }

    fn why_not_pending(&self, id: &ApprovalId) -> Result<ApprovalError, ApprovalError> {
        let Approval { id, status, expires, .. } = self.get(id)?;
        Ok(match status {
            Status::Pending | Status::Expired => ApprovalError::Expired { id, at: expires },
            status => ApprovalError::NotPending { id, status },
        })
    }
}

/// Counts a request that no person gets to see.
fn withhold(c: &Connection, session: &str, now: Timestamp) -> rusqlite::Result<()> {
    let minute = millis(now) / MINUTE;
    c.prepare_cached("DELETE FROM withheld WHERE minute < ?1")?.execute([minute - 60])?;
    c.prepare_cached(
        "INSERT INTO withheld VALUES (?1, ?2, 1) ON CONFLICT (session, minute) DO UPDATE SET count = count + 1",
    )?
    .execute(params![session, minute])
    .map(drop)
}

/// Who may grant what. Level 2 is another person's word than the session's own operator's.
fn may_grant(approval: &Approval, by: &Role) -> Result<(), ApprovalError> {
    let id = || approval.id.clone();
    match (by, approval.level) {
        (Role::Agent(_), _) => Err(ApprovalError::AgentCredential { agent: by.clone() }),
        (Role::Operator(_) | Role::Reviewer(_), Level::Operator) => Ok(()),
        (Role::Operator(_), Level::Reviewer) => Err(ApprovalError::NeedsReviewer { id: id(), by: by.clone() }),
        (Role::Reviewer(name), Level::Reviewer) if *name == approval.operator => {
            Err(ApprovalError::SamePerson { id: id(), name: name.clone() })
        }
        (Role::Reviewer(_), Level::Reviewer) => Ok(()),
    }
}

fn grant_of(approval: Approval) -> Grant {
    Grant {
        id: approval.id,
        digest: approval.digest,
        session: approval.session,
        level: approval.level,
        findings: approval.findings,
        by: approval.decided_by.unwrap_or_default(),
        expires: approval.expires,
        scope: approval.scope,
        like: approval.like,
    }
}

/// What a sealed text is bound to.
fn bound(id: &ApprovalId, digest: &Digest) -> String {
    format!("{}:{digest}", id.as_str())
}

fn select(filter: &str) -> String {
    format!("SELECT * FROM approval WHERE {filter}")
}

fn by_id(c: &Connection, id: &ApprovalId) -> rusqlite::Result<Option<Approval>> {
    c.prepare_cached(&select("id = ?1"))?.query_row([id.as_str()], read_row).optional()
}

fn pending_for(c: &Connection, like: &Approval) -> rusqlite::Result<Option<Approval>> {
    c.prepare_cached(&select("session = ?1 AND digest = ?2 AND status = 'pending'"))?
        .query_row(params![like.session, like.digest.to_string()], read_row)
        .optional()
}

fn end(c: &Connection, id: &ApprovalId, status: Status) -> rusqlite::Result<()> {
    c.prepare_cached("UPDATE approval SET status = ?2, sealed = NULL WHERE id = ?1")?
        .execute([id.as_str(), status.as_str()])
        .map(drop)
}

fn insert(c: &Connection, new: &Approval, findings: &str, like: Option<&str>, sealed: &[u8]) -> rusqlite::Result<()> {
    c.prepare_cached(
        "INSERT INTO approval (id, status, digest, session, agent, operator, tool, call_id, level, findings, sealed,
                               created, expires, like_this, frame)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        new.id.as_str(),
        new.status.as_str(),
        new.digest.to_string(),
        new.session,
        new.agent,
        new.operator,
        new.tool,
        new.call_id,
        new.level.number(),
        findings,
        sealed,
        millis(new.created),
        millis(new.expires),
        like,
        new.like.as_ref().map(|like| like.frame.to_string()),
    ])
    .map(drop)
}

/// Reads a row. What this program did not write is an error, never a guess.
fn read_row(row: &Row<'_>) -> rusqlite::Result<Approval> {
    Ok(Approval {
        id: text(row, "id", |s| s.parse().ok())?,
        status: text(row, "status", |s| serde_json::from_value(s.into()).ok())?,
        digest: text(row, "digest", |s| s.parse().ok())?,
        session: row.get("session")?,
        agent: row.get("agent")?,
        operator: row.get("operator")?,
        tool: row.get("tool")?,
        call_id: row.get("call_id")?,
        level: level(row)?,
        findings: text(row, "findings", |s| serde_json::from_str(s).ok())?,
        created: time(row, "created")?,
        expires: time(row, "expires")?,
        decided_by: row.get("decided_by")?,
        decided_at: row.get::<_, Option<i64>>("decided_at")?.map(timestamp).transpose()?,
        reason: row.get("reason")?,
        scope: text(row, "scope", |s| serde_json::from_str(s).ok())?,
        like: match row.get_ref("like_this")? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(text(row, "like_this", |s| serde_json::from_str(s).ok())?),
        },
        uses: row.get("uses")?,
    })
}

fn text<T>(row: &Row<'_>, column: &str, read: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    read(&text).ok_or_else(|| unreadable(column, &text))
}

fn level(row: &Row<'_>) -> rusqlite::Result<Level> {
    let number: u8 = row.get("level")?;
    let levels = [Level::Operator, Level::Reviewer];
    levels.into_iter().find(|level| level.number() == number).ok_or_else(|| unreadable("level", &number.to_string()))
}

fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    timestamp(row.get(column)?)
}

fn unreadable(column: &str, text: &str) -> rusqlite::Error {
    let what = format!("column `{column}` of an approval holds `{text}`, which this program does not write");
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, what.into())
}
