//! `state.db`: one SQLite file in WAL mode that several processes share.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};

use crate::state::{StateDir, StateError, private};

/// How long a process waits for another one's write before the answer is an error.
const BUSY: Duration = Duration::from_secs(5);

/// Each step brings the schema from the version of its index to the next; `PRAGMA user_version` counts them.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE approval (
        id            TEXT PRIMARY KEY,
        status        TEXT NOT NULL CHECK (status IN ('pending','granted','refused','expired','consumed')),
        digest        TEXT NOT NULL,
        session       TEXT NOT NULL,
        agent         TEXT NOT NULL,
        operator      TEXT NOT NULL,
        tool          TEXT NOT NULL,
        call_id       TEXT NOT NULL,
        level         INTEGER NOT NULL,
        findings      TEXT NOT NULL,
        sealed        BLOB,
        created       INTEGER NOT NULL,
        expires       INTEGER NOT NULL,
        decided_by    TEXT,
        decided_at    INTEGER,
        reason        TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX one_pending ON approval (session, digest) WHERE status = 'pending';
    CREATE INDEX open_approvals ON approval (expires) WHERE status IN ('pending','granted');
    CREATE INDEX grants ON approval (digest, session) WHERE status = 'granted';
    CREATE TABLE session (
        id      TEXT PRIMARY KEY,
        calls   INTEGER NOT NULL DEFAULT 0,
        denials INTEGER NOT NULL DEFAULT 0,
        tainted INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE credential (
        hash    BLOB PRIMARY KEY,
        role    TEXT NOT NULL CHECK (role IN ('agent','operator','reviewer')),
        name    TEXT NOT NULL,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE written (
        agent TEXT NOT NULL,
        path  TEXT NOT NULL,
        at    INTEGER NOT NULL,
        PRIMARY KEY (agent, path)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX written_at ON written (at);
",
    "
    CREATE TABLE hosted_session (
        session   TEXT PRIMARY KEY,
        workspace BLOB NOT NULL,
        at        INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE hosted_call (
        session TEXT NOT NULL,
        key     TEXT NOT NULL,
        call_id TEXT NOT NULL,
        asked   INTEGER NOT NULL,
        at      INTEGER NOT NULL,
        PRIMARY KEY (session, key, call_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX hosted_session_at ON hosted_session (at);
    CREATE INDEX hosted_call_at ON hosted_call (at);
",
    "
    ALTER TABLE approval ADD COLUMN scope TEXT NOT NULL DEFAULT '{\"covers\":\"call\"}';
    ALTER TABLE approval ADD COLUMN like_this TEXT;
    ALTER TABLE approval ADD COLUMN frame TEXT;
    ALTER TABLE approval ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX frames ON approval (session, frame) WHERE status = 'granted';
    CREATE INDEX asked_at ON approval (session, created);
    CREATE TABLE withheld (
        session TEXT NOT NULL,
        minute  INTEGER NOT NULL,
        count   INTEGER NOT NULL,
        PRIMARY KEY (session, minute)
    ) STRICT, WITHOUT ROWID;
",
];

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synchronous {
    /// A commit is on disk when it returns.
    Full,
    /// A commit survives the process, but the last ones may be lost with the machine's power.
    Normal,
}

impl Synchronous {
    /// Makes the commits of a connection wait for this, outside of a transaction.
    pub(crate) fn apply(self, connection: &Connection) -> rusqlite::Result<()> {
        let word = match self {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", word)
    }
}

/// Why `state.db` did not answer.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("{}: {source}; see that its disk has space left and can be written", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "{path} has schema version {found}, newer than this program's {known}: use the version of portcullis that wrote it",
        path = path.display()
    )]
    TooNew { path: PathBuf, found: i64, known: i64 },
}

/// A connection to `state.db`.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Mutex<Connection>,
    path: PathBuf,
}

impl Database {
    /// Opens the database, making or migrating it where needed.
    pub(crate) fn open(state: &StateDir, synchronous: Synchronous) -> Result<Self, DatabaseError> {
        let path = state.database();
        // SQLite gives its -wal and -shm files the mode of the database itself.
        private().write(true).create(true).truncate(false).open(&path).map_err(StateError::io(&path))?;
        let connection = connect(&path, synchronous).map_err(sqlite(&path))?;
        let database = Database { connection: Mutex::new(connection), path };
        database.migrate()?;
        Ok(database)
    }

    /// Runs `work` with the connection.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        work(&mut self.lock()).map_err(sqlite(&self.path))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock was held rolled its transaction back: the connection is sound.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn migrate(&self) -> Result<(), DatabaseError> {
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        let version = |c: &Connection| c.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let found = self.with(|c| version(c))?;
        if found > known {
            return Err(DatabaseError::TooNew { path: self.path.clone(), found, known });
        }
        if found == known {
            return Ok(());
        }
        self.with(|c| {
            let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have migrated while this one waited for the transaction.
            let done = usize::try_from(version(&tx)?).unwrap_or(usize::MAX);
            for step in MIGRATIONS.iter().skip(done) {
                tx.execute_batch(step)?;
            }
            tx.pragma_update(None, "user_version", known)?;
            tx.commit()
        })
    }
}

fn connect(path: &Path, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    synchronous.apply(&connection)?;
    // What is deleted is overwritten, so that the sealed arguments do not stay in free pages.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

fn sqlite(path: &Path) -> impl FnOnce(rusqlite::Error) -> DatabaseError + use<> {
    let path = path.to_owned();
    move |source| DatabaseError::Sqlite { path, source }
}

/// How times are stored: milliseconds after the epoch.
pub(crate) fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

/// A stored time.
pub(crate) fn timestamp(millis: i64) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(millis)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Integer, Box::new(e)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn files_are_private_and_a_newer_schema_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(temp.path().join("s")).unwrap();
        let database = Database::open(&state, Synchronous::Full).unwrap();
        for suffix in ["", "-wal", "-shm"] {
            let file = format!("{}{suffix}", state.database().display());
            let mode = std::fs::metadata(&file).unwrap().mode() & 0o777;
            assert_eq!(mode, 0o600, "{file} has mode {mode:o}");
        }
        database.with(|c| c.pragma_update(None, "user_version", 99)).unwrap();
        let error = Database::open(&state, Synchronous::Full).unwrap_err();
        assert!(matches!(error, DatabaseError::TooNew { found: 99, .. }), "{error}");
    }

    #[test]
    fn many_openers_migrate_once() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(temp.path().join("s")).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| Database::open(&state, Synchronous::Normal).map(drop).unwrap());
            }
        });
    }
}
