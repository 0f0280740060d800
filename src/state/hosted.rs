//! What is kept of the sessions of agents whose own programs run the calls: where they work, and which calls were let through
//! and have not been heard of since.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rusqlite::params;

use crate::state::{DatabaseError, Sessions};

/// How long a session is remembered that is not heard of.
const SESSION: SignedDuration = SignedDuration::from_hours(24 * 90);
/// How long a call is remembered whose end is not reported.
const CALL: SignedDuration = SignedDuration::from_hours(24);

/// A call that an agent's program was let run, or asked a person about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedCall {
    pub call: String,
    /// The agent's program was to ask a person.
    pub asked: bool,
    /// When it was judged.
    pub at: Timestamp,
}

impl Sessions {
    /// The workspace that a session is bound to: the one that it began in, whatever is said later.
    pub fn bind(&self, session: &str, workspace: &Path, now: Timestamp) -> Result<PathBuf, DatabaseError> {
        let bound: Vec<u8> = self.database.with(|c| {
            let tx = c.transaction()?;
            let bound = {
                tx.prepare_cached("DELETE FROM hosted_session WHERE at < ?1")?
                    .execute([now.as_second() - SESSION.as_secs()])?;
                tx.prepare_cached(
                    "INSERT INTO hosted_session (session, workspace, at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (session) DO UPDATE SET at = excluded.at RETURNING workspace",
                )?
                .query_row(params![session, workspace.as_os_str().as_bytes(), now.as_second()], |row| row.get(0))?
            };
            tx.commit()?;
            Ok(bound)
        })?;
        Ok(PathBuf::from(OsString::from_vec(bound)))
    }

    /// Remembers a call under the name by which the agent's program will speak of it.
    pub fn hosted(&self, session: &str, key: &str, call: &HostedCall) -> Result<(), DatabaseError> {
        self.database.with(|c| {
            c.prepare_cached(
                "INSERT OR REPLACE INTO hosted_call (session, key, call_id, asked, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![session, key, call.call, call.asked, call.at.as_millisecond()])
            .map(drop)
        })
    }

    /// Takes the calls of that name: their end is known now. Where the same was called several times under one name, the
    /// oldest of them.
    pub fn ended(&self, session: &str, key: &str, now: Timestamp) -> Result<Vec<HostedCall>, DatabaseError> {
        self.database.with(|c| {
            let tx = c.transaction()?;
            let taken = {
                tx.prepare_cached("DELETE FROM hosted_call WHERE at < ?1")?
                    .execute([now.as_millisecond() - i64::try_from(CALL.as_millis()).unwrap_or(i64::MAX)])?;
                let mut take = tx.prepare_cached(
                    "DELETE FROM hosted_call WHERE session = ?1 AND key = ?2
                     AND at = (SELECT min(at) FROM hosted_call WHERE session = ?1 AND key = ?2)
                     RETURNING call_id, asked, at",
                )?;
                let rows = take.query_map(params![session, key], |row| {
                    let at = crate::state::database::timestamp(row.get(2)?)?;
                    Ok(HostedCall { call: row.get(0)?, asked: row.get(1)?, at })
                })?;
                rows.collect::<Result<Vec<_>, _>>()?
            };
            tx.commit()?;
            Ok(taken)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateDir;

    #[test]
    fn a_session_stays_where_it_began() {
        let temp = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(&StateDir::open(temp.path().join("s")).unwrap()).unwrap();
        let now = Timestamp::now();
        assert_eq!(sessions.bind("a", Path::new("/w"), now).unwrap(), Path::new("/w"));
        assert_eq!(sessions.bind("a", Path::new("/"), now).unwrap(), Path::new("/w"), "it moved");
        assert_eq!(sessions.bind("b", Path::new("/x"), now).unwrap(), Path::new("/x"));
        let later = now + SESSION + SignedDuration::from_secs(1);
        assert_eq!(sessions.bind("b", Path::new("/y"), later).unwrap(), Path::new("/y"), "it is forgotten in the end");
    }

    #[test]
    fn a_call_ends_once_and_the_oldest_first() {
        let temp = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(&StateDir::open(temp.path().join("s")).unwrap()).unwrap();
        // As the database keeps it: in milliseconds.
        let at = Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap();
        let call = |call: &str, at| HostedCall { call: call.to_owned(), asked: false, at };
        let (first, second) = (call("1", at), call("2", at + SignedDuration::from_millis(5)));
        sessions.hosted("s", "k", &second).unwrap();
        sessions.hosted("s", "k", &first).unwrap();
        assert_eq!(sessions.ended("s", "other", at).unwrap(), []);
        assert_eq!(sessions.ended("s", "k", at).unwrap(), [first]);
        assert_eq!(sessions.ended("s", "k", at).unwrap(), std::slice::from_ref(&second));
        assert_eq!(sessions.ended("s", "k", at).unwrap(), []);
        sessions.hosted("s", "k", &second).unwrap();
        let later = at + CALL + SignedDuration::from_secs(1);
        assert_eq!(sessions.ended("s", "k", later).unwrap(), [], "it is forgotten in the end");
    }
}
