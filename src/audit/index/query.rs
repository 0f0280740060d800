//! Questions that the index answers.

use jiff::Timestamp;
use rusqlite::types::ToSql;
use rusqlite::{Row, params_from_iter};
use serde::Serialize;

use crate::audit::index::{Index, IndexError};
use crate::state::{millis, timestamp};

/// Which calls are wanted: those that fit everything that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub tool: Option<String>,
    /// What was answered: `allow`, `ask`, `ask(1)`, `ask(2)` or `deny`.
    pub answer: Option<String>,
    /// A finding's id, of a policy, a command rule or another stage.
    pub rule: Option<String>,
    /// A path, or a directory with everything below it.
    pub path: Option<String>,
    /// A host, or a domain with everything below it.
    pub host: Option<String>,
    pub agent: Option<String>,
    pub session: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Words that the command, the paths or the findings hold.
    pub text: Option<String>,
}

/// A call as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRow {
    pub seq: u64,
    pub id: String,
    pub time: Timestamp,
    pub session: String,
    pub agent: String,
    pub tool: String,
    pub subject: String,
    pub verdict: String,
    pub answer: String,
    pub rule: Option<String>,
    pub outcome: Option<String>,
    pub code: Option<i64>,
    pub ms: Option<u64>,
}

/// A clause with its values.
#[derive(Default)]
struct Clauses {
    text: Vec<String>,
    values: Vec<Box<dyn ToSql>>,
}

impl Clauses {
    fn add(&mut self, text: &str, values: impl IntoIterator<Item = Box<dyn ToSql>>) {
        self.text.push(text.to_owned());
        self.values.extend(values);
    }

    fn equal(&mut self, column: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.add(&format!("call.{column} = ?"), [boxed(value)]);
        }
    }
}

fn boxed(value: &str) -> Box<dyn ToSql> {
    Box::new(value.to_owned())
}

impl Index {
    /// The calls that fit, the newest first.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    pub fn calls(&self, filter: &Filter, most: usize) -> Result<Vec<CallRow>, IndexError> {
        let mut wanted = Clauses::default();
        wanted.equal("tool", filter.tool.as_ref());
        wanted.equal("agent", filter.agent.as_ref());
        wanted.equal("session", filter.session.as_ref());
        match filter.answer.as_deref() {
            Some("ask") => wanted.add("call.answer IN ('ask(1)', 'ask(2)')", []),
            Some(answer) => wanted.add("call.answer = ?", [boxed(answer)]),
            None => {}
        }
        if let Some(rule) = &filter.rule {
            wanted.add("call.seq IN (SELECT seq FROM finding WHERE rule = ?)", [boxed(rule)]);
        }
        if let Some(path) = &filter.path {
            let path = path.trim_end_matches('/');
            // Below a directory is what sorts between `dir/` and `dir0`, the next character after the slash.
            let below = "call.seq IN (SELECT seq FROM path WHERE path = ? OR path > ? AND path < ?)";
            wanted.add(below, [boxed(path), boxed(&format!("{path}/")), boxed(&format!("{path}0"))]);
        }
        if let Some(host) = &filter.host {
            let domain = "call.seq IN (SELECT seq FROM host WHERE host = ? OR host LIKE ?)";
            wanted.add(domain, [boxed(host), boxed(&format!("%.{host}"))]);
        }
        if let Some(since) = filter.since {
            wanted.add("call.time >= ?", [Box::new(millis(since)) as Box<dyn ToSql>]);
        }
        if let Some(until) = filter.until {
            wanted.add("call.time < ?", [Box::new(millis(until)) as Box<dyn ToSql>]);
        }
        if let Some(text) = &filter.text {
            let words: Vec<String> = text.split_whitespace().map(quoted).collect();
            wanted.add("call.seq IN (SELECT rowid FROM words WHERE words MATCH ?)", [boxed(&words.join(" "))]);
        }
        let filter = if wanted.text.is_empty() { "TRUE".to_owned() } else { wanted.text.join(" AND ") };
        let text = format!(
            "SELECT seq, id, time, session, agent, tool, subject, verdict, answer, rule, outcome, code, ms
             FROM call WHERE {filter} ORDER BY seq DESC LIMIT {most}"
        );
        let read = || -> rusqlite::Result<Vec<CallRow>> {
            let mut statement = self.connection.prepare(&text)?;
            statement.query_map(params_from_iter(wanted.values.iter()), row)?.collect()
        };
        read().map_err(IndexError::Query)
    }

    /// The steps of approvals, and what else concerns these calls: time, what, and by whom.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    pub fn events_of(&self, call: &str) -> Result<Vec<(Timestamp, String, Option<String>)>, IndexError> {
        let read = || -> rusqlite::Result<Vec<_>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT time, kind || ' ' || text, actor FROM event WHERE call_id = ?1 ORDER BY seq")?;
            statement.query_map([call], |row| Ok((timestamp(row.get(0)?)?, row.get(1)?, row.get(2)?)))?.collect()
        };
        read().map_err(IndexError::Query)
    }
}

/// A word as FTS5 takes it, whatever is in it; it stands for every word that begins so.
fn quoted(word: &str) -> String {
    format!("\"{}\"*", word.replace('"', "\"\""))
}

fn row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        seq: row.get(0)?,
        id: row.get(1)?,
        time: timestamp(row.get(2)?)?,
        session: row.get(3)?,
        agent: row.get(4)?,
        tool: row.get(5)?,
        subject: row.get(6)?,
        verdict: row.get(7)?,
        answer: row.get(8)?,
        rule: row.get(9)?,
        outcome: row.get(10)?,
        code: row.get(11)?,
        ms: row.get(12)?,
    })
}
