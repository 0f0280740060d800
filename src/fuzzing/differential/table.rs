//! The counts of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::bash::Seen;
use super::constructs::CONSTRUCTS;
use super::cover::Outcome;
use super::generate::{Cell, cells};
use super::words::{POSITIONS, QUOTINGS};

#[derive(Clone, Debug, Default)]
pub struct Table {
    cells: BTreeMap<Cell, Row>,
    pub took: Duration,
}

/// What is counted for a cell, or for many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub scripts: u64,
    pub programs: u64,
    pub files: u64,
    /// Scripts of which the facts say that something was not resolved.
    pub unresolved: u64,
    /// Scripts of which something was covered by unknown words only.
    pub by_unknown: u64,
    /// Scripts that did something that nothing covers, though nothing was said.
    pub uncovered: u64,
    pub hung: u64,
    /// Scripts that started no program and wrote no file.
    pub idle: u64,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.scripts += other.scripts;
        self.programs += other.programs;
        self.files += other.files;
        self.unresolved += other.unresolved;
        self.by_unknown += other.by_unknown;
        self.uncovered += other.uncovered;
        self.hung += other.hung;
        self.idle += other.idle;
    }
}

impl Table {
    pub(super) fn count(&mut self, cell: Cell, seen: &Seen, outcome: &Outcome) {
        let row = Row {
            scripts: 1,
            programs: seen.started.len() as u64,
            files: seen.written.len() as u64,
            unresolved: outcome.unresolved.into(),
            by_unknown: (outcome.by_unknown && !outcome.unresolved).into(),
            uncovered: (!outcome.uncovered.is_empty() && !outcome.unresolved).into(),
            hung: seen.hung.into(),
            idle: (seen.started.is_empty() && seen.written.is_empty()).into(),
        };
        self.cells.entry(cell).or_default().add(&row);
    }

    pub(super) fn add(&mut self, other: &Table) {
        for (cell, row) in &other.cells {
            self.cells.entry(*cell).or_default().add(row);
        }
    }

    pub fn total(&self) -> Row {
        self.sum(|_| true)
    }

    /// The least number of scripts that any cell of construct, position and quoting got.
    pub fn least(&self) -> u64 {
        let made = self.cells.iter().filter(|(cell, _)| **cell != Cell::Corpus);
        if made.clone().count() < cells() { 0 } else { made.map(|(_, row)| row.scripts).min().unwrap_or(0) }
    }

    fn sum(&self, of: impl Fn(&Cell) -> bool) -> Row {
        let mut sum = Row::default();
        self.cells.iter().filter(|(cell, _)| of(cell)).for_each(|(_, row)| sum.add(row));
        sum
    }

    fn rows(
        &self,
        f: &mut fmt::Formatter<'_>,
        title: &str,
        names: &[&str],
        of: fn(&Cell) -> Option<usize>,
    ) -> fmt::Result {
        writeln!(
            f,
            "\n{title:<20} {:>9} {:>9} {:>8} {:>11} {:>9} {:>9}",
            "scripts", "programs", "files", "unresolved", "unknown", "UNCOVERED"
        )?;
        for (index, name) in names.iter().enumerate() {
            row(f, name, &self.sum(|cell| of(cell) == Some(index)))?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, row: &Row) -> fmt::Result {
    let share = |part: u64| 100.0 * part as f64 / row.scripts.max(1) as f64;
    writeln!(
        f,
        "{name:<20} {:>9} {:>9} {:>8} {:>9.2} % {:>7.2} % {:>9}",
        row.scripts,
        row.programs,
        row.files,
        share(row.unresolved),
        share(row.by_unknown),
        row.uncovered
    )
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows(f, "construct", &CONSTRUCTS.iter().map(|entry| entry.0).collect::<Vec<_>>(), |cell| match cell {
            Cell::Made(at, ..) => Some(*at),
            Cell::Corpus => None,
        })?;
        self.rows(f, "position", &POSITIONS.iter().map(|entry| entry.0).collect::<Vec<_>>(), |cell| match cell {
            Cell::Made(_, at, _) => Some(*at),
            Cell::Corpus => None,
        })?;
        self.rows(f, "quoting", &QUOTINGS.iter().map(|entry| entry.0).collect::<Vec<_>>(), |cell| match cell {
            Cell::Made(.., at) => Some(*at),
            Cell::Corpus => None,
        })?;
        self.rows(f, "", &["lines of people"], |cell| (*cell == Cell::Corpus).then_some(0))?;
        let total = self.total();
        writeln!(f)?;
        row(f, "all", &total)?;
        let seconds = self.took.as_secs_f64();
        writeln!(
            f,
            "{} cells, the least with {} scripts; {} scripts started and wrote nothing; {} hung; {seconds:.0} s, {:.0} scripts a second",
            cells(),
            self.least(),
            total.idle,
            total.hung,
            total.scripts as f64 / seconds.max(0.001)
        )
    }
}
