//! What a session did so far, kept outside of every process.

use rusqlite::{OptionalExtension as _, params};

use crate::facts::SessionFacts;
use crate::state::{Database, DatabaseError, StateDir, Synchronous};
use crate::verdict::Decision;

/// The sessions of a state directory.
#[derive(Debug)]
pub struct Sessions {
    /// Counts may lag after a power cut: the sync of every call belongs to its decision record.
    database: Database,
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
                Ok(SessionFacts { calls: row.get(0)?, denials: row.get(1)?, tainted: row.get(2)? })
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
        sessions.taint("a").unwrap();
        sessions.count("b", Decision::Deny).unwrap();
        drop(sessions);
        let sessions = Sessions::open(&state).unwrap();
        assert_eq!(sessions.session("a").unwrap(), SessionFacts { calls: 100, denials: 25, tainted: true });
        assert_eq!(sessions.session("b").unwrap(), SessionFacts { calls: 1, denials: 1, tainted: false });
    }
}
