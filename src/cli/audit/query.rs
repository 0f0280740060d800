//! Questions to the index: `audit query`, `timeline` and `sql`.

use std::io::Write;

use anstyle::Style;

use super::line::short;
use super::when::when;
use crate::audit::index::{CallRow, Filter, Index, Table};
use crate::cli::args::QueryArgs;
use crate::cli::{Failure, exit, render};
use crate::config::Places;
use crate::verdict::Decision;

fn index() -> Result<Index, Failure> {
    super::log()?;
    Ok(Index::open(&Places::from_env()?.state)?)
}

pub(super) fn query(args: QueryArgs) -> Result<u8, Failure> {
    let filter = Filter {
        tool: args.tool,
        answer: args.verdict,
        rule: args.rule,
        path: args.path,
        host: args.host,
        agent: args.agent,
        session: args.session,
        since: args.since.as_deref().map(when).transpose()?,
        until: args.until.as_deref().map(when).transpose()?,
        text: args.text,
    };
    let mut calls = index()?.calls(&filter, args.limit)?;
    calls.reverse();
    let mut out = render::out_or_data(args.json);
    for call in &calls {
        if args.json {
            writeln!(out, "{}", serde_json::to_string(call)?)?;
        } else {
            told(&mut out, call)?;
        }
    }
    Ok(exit::OK)
}

pub(super) fn timeline(session: &str, json: bool) -> Result<u8, Failure> {
    let index = index()?;
    let filter = Filter { session: Some(session.to_owned()), ..Filter::default() };
    let mut calls = index.calls(&filter, usize::MAX >> 1)?;
    if calls.is_empty() {
        return Err(Failure::usage(format!("no call of a session `{session}` is in the log")));
    }
    calls.reverse();
    let mut out = render::out_or_data(json);
    for call in &calls {
        if json {
            writeln!(out, "{}", serde_json::to_string(call)?)?;
            continue;
        }
        told(&mut out, call)?;
        for (time, what, by) in index.events_of(&call.id)? {
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            let dim = render::DIM;
            writeln!(out, "{dim}{}    {}{dim:#}", time.strftime("%F %T"), render::line(&format!("{what}{by}")))?;
        }
    }
    Ok(exit::OK)
}

/// A call on one line: when, the answer, which, the rule that decided, how it ended.
fn told(out: &mut impl Write, call: &CallRow) -> Result<(), Failure> {
    let decision = Decision::try_from(call.answer.clone()).unwrap_or(Decision::Deny);
    let (mark, style): (&str, Style) = (glyph(decision), render::colour(decision));
    let subject: String = call.subject.chars().take(80).collect();
    let rule = call.rule.as_deref().map(|rule| format!("  [{rule}]")).unwrap_or_default();
    let ended = match (call.outcome.as_deref(), call.code, call.ms) {
        (None, ..) => String::new(),
        (Some(how), Some(code), ms) => format!("  {how} {code} in {} ms", ms.unwrap_or(0)),
        (Some(how), None, ms) => format!("  {how} in {} ms", ms.unwrap_or(0)),
    };
    let told = format!("{:<6} {subject}{rule}{ended}", call.tool);
    let (time, id) = (call.time.strftime("%F %T"), short(&call.id));
    writeln!(out, "{time} {style}{mark} {:<6}{style:#} {id}  {}", decision.to_string(), render::line(&told))?;
    Ok(())
}

fn glyph(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "✓",
        Decision::Ask(_) => "?",
        Decision::Deny => "✗",
    }
}

pub(super) fn sql(query: Option<&str>, json: bool) -> Result<u8, Failure> {
    let index = index()?;
    let schema =
        "SELECT m.name AS view, group_concat(p.name, ', ') AS columns FROM sqlite_master m, pragma_table_info(m.name) p
                  WHERE m.type = 'view' GROUP BY m.name";
    let Table { columns, rows } = index.sql(query.unwrap_or(schema))?;
    let mut out = render::out_or_data(json);
    if json {
        for row in rows {
            let object: serde_json::Map<_, _> = columns.iter().cloned().zip(row).collect();
            writeln!(out, "{}", serde_json::Value::from(object))?;
        }
        return Ok(exit::OK);
    }
    let shown: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let cells = shown.iter().chain([&columns]).filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).min(MAX_CELL)
        })
        .collect();
    for row in [&columns].into_iter().chain(&shown) {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(exit::OK)
}

/// How wide a column is at most.
const MAX_CELL: usize = 60;

fn cell(value: &serde_json::Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    render::line(if value.is_null() { "" } else { &text })
}
