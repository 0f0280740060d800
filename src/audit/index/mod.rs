//! The index over the log, for questions that should not read it all: `index.db`, an SQLite file that is made from the
//! log and may be removed at any time. It proves nothing; `verify` reads the log.

mod fill;
mod query;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

pub use self::query::{CallRow, Filter};
use crate::audit::log_file;
use crate::state::private;

/// The version of `schema.sql`: a file of another one is made anew.
const VERSION: i64 = 1;
/// How many lines go into one transaction.
const BATCH: usize = 20_000;

/// The index of a state directory's log, as new as the log when it was opened.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    path: PathBuf,
    log: PathBuf,
}

/// Why the index does not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the query cannot be answered: {0}")]
    Query(rusqlite::Error),
    #[error(
        "only one statement that reads is answered; the views are calls, findings, paths, hosts, events and sessions"
    )]
    NotReading,
    #[error("{}: {source}; the index is made from the log: remove it to make it anew", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

/// The answer to a query in SQL.
#[derive(Debug)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<serde_json::Value>>,
}

impl Index {
    /// Opens the index and reads what the log got since.
    ///
    /// # Errors
    ///
    /// When the log or the index cannot be read or written.
    pub fn open(state: &Path) -> Result<Self, IndexError> {
        let (path, log) = (state.join("index.db"), log_file(state));
        let mut index = match Self::at(&path, &log) {
            // What is no index, or another version's, is made anew.
            Err(IndexError::Sqlite { .. }) | Ok(None) => {
                Self::remove(&path)?;
                Self::at(&path, &log)?
                    .ok_or_else(|| IndexError::Sqlite { path: path.clone(), source: rusqlite::Error::InvalidQuery })?
            }
            other => other?.ok_or(IndexError::NotReading)?,
        };
        index.update()?;
        Ok(index)
    }

    /// Removes the index, so that the next opening makes it anew.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub fn remove(path: &Path) -> Result<(), IndexError> {
        for suffix in ["", "-wal", "-shm"] {
            let path = PathBuf::from(format!("{}{suffix}", path.display()));
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(IndexError::Io { path, source }),
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// The file where it is of this version. An empty one is given its tables.
    fn at(path: &Path, log: &Path) -> Result<Option<Self>, IndexError> {
        private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|source| IndexError::Io { path: path.to_owned(), source })?;
        let made = (|| {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(30))?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // What a power cut takes is read again.
            connection.pragma_update(None, "synchronous", "OFF")?;
            connection.pragma_update(None, "cache_size", -32_000)?;
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version == 0 {
                tx.execute_batch(include_str!("schema.sql"))?;
                tx.pragma_update(None, "user_version", VERSION)?;
            }
            tx.commit()?;
            Ok((version == 0 || version == VERSION).then_some(connection))
        })();
        let connection = made.map_err(|source| IndexError::Sqlite { path: path.to_owned(), source })?;
        Ok(connection.map(|connection| Index { connection, path: path.to_owned(), log: log.to_owned() }))
    }

    fn sqlite(&self) -> impl FnOnce(rusqlite::Error) -> IndexError + use<> {
        let path = self.path.clone();
        move |source| IndexError::Sqlite { path, source }
    }

    /// Answers a query in SQL over the views. Nothing can be changed, and no other file be opened.
    ///
    /// # Errors
    ///
    /// When the text is not one statement that reads, or fails.
    pub fn sql(&self, text: &str) -> Result<Table, IndexError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&self.path, flags).map_err(self.sqlite())?;
        reader.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(IndexError::Query)?;
        reader.busy_timeout(Duration::from_secs(30)).map_err(IndexError::Query)?;
        let mut statement = reader.prepare(text).map_err(|error| match error {
            rusqlite::Error::MultipleStatement => IndexError::NotReading,
            other => IndexError::Query(other),
        })?;
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(IndexError::NotReading);
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let count = columns.len();
        let rows = statement.query_map([], |row| (0..count).map(|at| Ok(json(row.get_ref(at)?))).collect());
        let rows = rows.and_then(Iterator::collect).map_err(IndexError::Query)?;
        Ok(Table { columns, rows })
    }
}

fn json(value: ValueRef<'_>) -> serde_json::Value {
    match value {
        ValueRef::Null => serde_json::Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => hex::encode(bytes).into(),
    }
}
