//! What a session did so far, kept outside of every process.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use crate::facts::SessionFacts;
use crate::state::{Database, DatabaseError, StateDir, Synchronous};
use crate::verdict::Decision;

/// How long it is remembered who wrote a file.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24 * 90);

/// The sessions of a state directory.
#[derive(Debug)]
pub struct Sessions {
    /// Counts may lag after a power cut: the sync of every call belongs to its decision record.
    pub(super) database: Database,
}

impl Sessions {
    pub fn open(state: &StateDir) -> Result<Self, DatabaseError> {
        Ok(Sessions { database: Database::open(state, Synchronous::Normal)? })
    }

    /// The session's history; of a session never seen, an empty one. Writes nothing.
    pub fn session(&self, id: &str) -> Result<SessionFacts, DatabaseError> {
        self.database.with(|c| {
            let mut query = c.prepare_cached("SELECT calls, denials, tainted FROM session WHERE id = ?1")?;
            let facts = query.query_row([id], |row| {
                Ok(SessionFacts { calls: row.get(0)?, denials: row.get(1)?, tainted: row.get(2)?, wrote: false })
            });
            Ok(facts.optional()?.unwrap_or_default())
        })
    }

    /// Counts a call and, where it was one, its denial.
    pub fn count(&self, id: &str, decision: Decision) -> Result<(), DatabaseError> {
        self.database.with(|c| {
            let mut upsert = c.prepare_cached(
                "INSERT INTO session (id, calls, denials) VALUES (?1, 1, ?2)
                 ON CONFLICT (id) DO UPDATE SET calls = calls + 1, denials = denials + excluded.denials",
            )?;
            upsert.execute(params![id, i64::from(decision == Decision::Deny)]).map(drop)
        })
    }

    /// Remembers that an agent wrote these files. What is older than [`REMEMBERED`] is forgotten.
    pub fn wrote(&self, agent: &str, paths: &[PathBuf], now: Timestamp) -> Result<(), DatabaseError> {
        if paths.is_empty() {
            return Ok(());
        }
        self.database.with(|c| {
            let tx = c.transaction()?;
            {
                let mut insert =
                    tx.prepare_cached("INSERT OR REPLACE INTO written (agent, path, at) VALUES (?1, ?2, ?3)")?;
                for path in paths {
                    insert.execute(params![agent, path.to_string_lossy(), now.as_second()])?;
                }
                let oldest = now.as_second() - REMEMBERED.as_secs();
                tx.prepare_cached("DELETE FROM written WHERE at < ?1")?.execute([oldest])?;
            }
            tx.commit()
        })
    }

    /// Whether an agent wrote this file.
    pub fn has_written(&self, agent: &str, path: &Path) -> Result<bool, DatabaseError> {
        self.database.with(|c| {
            c.prepare_cached("SELECT 1 FROM written WHERE agent = ?1 AND path = ?2")?
                .exists(params![agent, path.to_string_lossy()])
        })
    }

    /// Marks the session as having read untrusted content, durably and for good.
    pub fn taint(&self, id: &str) -> Result<(), DatabaseError> {
        self.database.with(|c| {
            Synchronous::Full.apply(c)?;
            let done = c
                .prepare_cached(
                    "INSERT INTO session (id, tainted) VALUES (?1, 1)
                     ON CONFLICT (id) DO UPDATE SET tainted = 1 WHERE tainted = 0",
                )
                .and_then(|mut upsert| upsert.execute([id]));
            Synchronous::Normal.apply(c)?;
            done.map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_count_over_reopening_and_over_threads() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(temp.path().join("s")).unwrap();
        let sessions = Sessions::open(&state).unwrap();
        assert_eq!(sessions.session("a").unwrap(), SessionFacts::default());
        std::thread::scope(|scope| {
            for i in 0..4 {
                let decision = if i == 0 { Decision::Deny } else { Decision::Allow };
                let state = &state;
                scope.spawn(move || {
                    let sessions = Sessions::open(state).unwrap();
                    for _ in 0..25 {
                        sessions.count("a", decision).unwrap();
                    }
                });
            }
        });
        let (now, file) = (Timestamp::now(), PathBuf::from("/w/a.sh"));
        sessions.wrote("a", std::slice::from_ref(&file), now).unwrap();
        assert!(sessions.has_written("a", &file).unwrap() && !sessions.has_written("b", &file).unwrap());
        sessions.wrote("b", &["/w/b.sh".into()], now + REMEMBERED + SignedDuration::from_secs(1)).unwrap();
        assert!(!sessions.has_written("a", &file).unwrap(), "it is forgotten in the end");
        sessions.taint("a").unwrap();
        sessions.count("b", Decision::Deny).unwrap();
        drop(sessions);
        let sessions = Sessions::open(&state).unwrap();
        assert_eq!(
            sessions.session("a").unwrap(),
            SessionFacts { calls: 100, denials: 25, tainted: true, wrote: false }
        );
        assert_eq!(sessions.session("b").unwrap(), SessionFacts { calls: 1, denials: 1, tainted: false, wrote: false });
    }
}
