//! From the log to the index.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::audit::chain::{Header, parse};
use crate::audit::event::{Content, Decided, Event, Finished, Outcome, Record};
use crate::audit::index::{BATCH, Index, IndexError};
use crate::audit::lines::End;
use crate::audit::volumes::{self, Place, VolumeLines};
use crate::call::Digest;
use crate::facts::path::Access;
use crate::state::millis;

/// How far a batch came.
enum Batch {
    /// To the end of the log.
    Done,
    More,
    /// The index was made from another log than this one, or from more of it.
    Unfit,
}

impl Index {
    /// Reads what the log got since the last time. Another process may do so at the same time: one waits.
    pub(super) fn update(&mut self) -> Result<(), IndexError> {
        loop {
            match self.batch()? {
                Batch::Done => return Ok(()),
                Batch::More => {}
                Batch::Unfit => self.forget()?,
            }
        }
    }

    fn batch(&mut self) -> Result<Batch, IndexError> {
        let (path, log) = (self.path.clone(), self.log.clone());
        let sqlite = |source| IndexError::Sqlite { path: path.clone(), source };
        let io = |source| IndexError::Io { path: log.clone(), source };
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
        let (place, prev) = position(&tx).map_err(sqlite)?;
        let volumes = volumes::open_all(&log).map_err(io)?;
        let mut fits = place == Place::default();
        let here = volumes.iter().find(|volume| volume.first.unwrap_or(0) == place.volume);
        if !fits && here.is_none_or(|volume| place.offset > volume.size) {
            return Ok(Batch::Unfit);
        }
        let mut lines = VolumeLines::from(volumes, place).map_err(io)?;
        let mut last = None;
        let mut count = 0;
        while count < BATCH
            && let Some((volume, _, line)) = lines.next().map_err(io)?
        {
            if line.end == End::Missing {
                break;
            }
            if !fits && Header::parse(line.bytes).ok().is_none_or(|header| header.prev.to_string() != prev) {
                return Ok(Batch::Unfit);
            }
            fits = true;
            // What cannot be read is for `verify` to tell.
            if let Ok(record) = parse(line.bytes) {
                add(&tx, &record).map_err(sqlite)?;
            }
            last = Some((Place { volume, offset: line.next }, Digest::of(line.bytes)));
            count += 1;
        }
        if let Some((place, prev)) = last {
            let moved = "UPDATE position SET volume = ?1, offset = ?2, prev = ?3";
            tx.execute(moved, params![place.volume, place.offset, prev.to_string()]).map_err(sqlite)?;
        }
        tx.commit().map_err(sqlite)?;
        Ok(if count < BATCH { Batch::Done } else { Batch::More })
    }

    /// Empties the index, so that the log is read from its start.
    fn forget(&mut self) -> Result<(), IndexError> {
        let empty = "DELETE FROM call; DELETE FROM finding; DELETE FROM path; DELETE FROM host; DELETE FROM event;
                     INSERT INTO words (words) VALUES ('delete-all');
                     UPDATE position SET volume = 0, offset = 0, prev = '';";
        self.connection.execute_batch(empty).map_err(self.sqlite())
    }
}

fn position(c: &Connection) -> rusqlite::Result<(Place, String)> {
    c.query_row("SELECT volume, offset, prev FROM position", [], |row| {
        Ok((Place { volume: row.get(0)?, offset: row.get(1)? }, row.get(2)?))
    })
}

fn add(tx: &Transaction<'_>, record: &Record) -> rusqlite::Result<()> {
    let Content::Event(event) = &record.content else { return Ok(()) };
    let other = |kind: &str, call: Option<&str>, actor: Option<&str>, text: &str| {
        tx.prepare_cached("INSERT OR REPLACE INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![record.seq, millis(record.time), kind, call, actor, text])
            .map(drop)
    };
    match event {
        Event::Decided(decided) => call(tx, record, decided),
        Event::Finished(finished) => ended(tx, finished),
        Event::Unknown(unknown) => tx
            .prepare_cached("UPDATE call SET outcome = 'unknown' WHERE id = ?1")?
            .execute([&unknown.call_id])
            .map(drop),
        Event::Rejected(rejected) => {
            let who = &rejected.principal;
            let text = format!("{}: {}", rejected.tool, rejected.finding.message);
            other("rejected", None, Some(&who.agent), &text)
        }
        Event::Approval(step) => {
            let text = format!("{} {:?}", step.approval, step.step).to_lowercase();
            other("approval", Some(&step.call_id), step.by.as_deref(), &text)
        }
        Event::Control(control) => {
            let text = format!("{:?}: {}", control.change, control.detail);
            other("control", None, control.by.as_deref(), &text)
        }
        Event::Recovered(recovered) => {
            other("recovered", None, None, &serde_json::to_string(&recovered.trouble).unwrap_or_default())
        }
        Event::Retired(retired) => other("retired", None, None, &retired.file),
        Event::Rotated(rotated) => other("rotated", None, None, &rotated.closed),
        Event::Opened(opened) => other("opened", None, None, &opened.gateway),
        Event::Checkpoint(_) => Ok(()),
    }
}

fn call(tx: &Transaction<'_>, record: &Record, decided: &Decided) -> rusqlite::Result<()> {
    let (seq, call) = (record.seq, &decided.call);
    let subject = decided.subject();
    let verdict: &str = decided.verdict.decision.into();
    let answer: &str = decided.effective.into();
    tx.prepare_cached(
        "INSERT OR REPLACE INTO call (seq, id, time, session, agent, sub_agent, origin, tool, subject, cwd, verdict,
                                      answer, rule, grant_id, pending, policies)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?
    .execute(params![
        seq,
        call.id,
        millis(record.time),
        call.principal.session,
        call.principal.agent,
        call.principal.sub_agent,
        call.origin.as_str(),
        call.tool,
        subject,
        call.cwd.to_string_lossy(),
        verdict,
        answer,
        decided.reason().map(|finding| finding.id.as_str()),
        decided.grant,
        decided.pending,
        decided.hashes.policies.map(|hash| hash.to_string()),
    ])?;
    let mut text = format!("{} {subject}", call.tool);
    for (stage, finding) in decided.verdict.findings() {
        tx.prepare_cached("INSERT INTO finding VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
            seq,
            stage.map(|stage| stage.as_str()),
            finding.id,
            format!("{:?}", finding.severity).to_lowercase(),
            finding.message,
        ])?;
        text.push(' ');
        text.push_str(&finding.message);
    }
    if let Some(facts) = &decided.facts {
        for path in &facts.paths {
            let access = if path.access == Access::Write { "write" } else { "read" };
            let place = path.lands.as_deref().unwrap_or(&path.given);
            let scope = format!("{:?}", path.scope).to_lowercase();
            tx.prepare_cached("INSERT INTO path VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![seq, place, access, scope])?;
        }
        for host in facts.command.iter().flat_map(|command| &command.hosts) {
            tx.prepare_cached("INSERT INTO host VALUES (?1, ?2)")?.execute(params![seq, host])?;
        }
    }
    tx.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?.execute(params![seq, text]).map(drop)
}

fn ended(tx: &Transaction<'_>, finished: &Finished) -> rusqlite::Result<()> {
    let (outcome, code) = match &finished.outcome {
        Outcome::Exited { code } => ("exited", Some(*code)),
        Outcome::NotRun { .. } => ("not-run", None),
        Outcome::Ok => ("ok", None),
        Outcome::SetupFailed { .. } => ("setup-failed", None),
        Outcome::Signaled { signal } => ("signaled", Some(*signal)),
        Outcome::TimedOut => ("timed-out", None),
        Outcome::OverLimit { .. } => ("over-limit", None),
        Outcome::ToolError { .. } => ("tool-error", None),
    };
    tx.prepare_cached("UPDATE call SET outcome = ?2, code = ?3, ms = ?4, output_bytes = ?5 WHERE id = ?1")?
        .execute(params![finished.call_id, outcome, code, finished.ms, finished.output_bytes])
        .map(drop)
}
