//! `audit report`: one HTML page that needs nothing else, for the files of a security team.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::when::when;
use crate::audit::index::{Index, IndexError};
use crate::audit::{self, Report};
use crate::cli::{Failure, exit, render};
use crate::config::Places;
use crate::state::millis;

pub(super) fn run(log: &Path, since: Option<&str>) -> Result<u8, Failure> {
    let index = Index::open(&Places::from_env()?.state)?;
    let since = since.map(when).transpose()?;
    let from = since.map_or(0, millis);
    let report = audit::verify(log)?;
    let text = page(&index, &report, from)?;
    render::out_or_data(true).write_all(text.as_bytes())?;
    Ok(exit::OK)
}

/// A part of the page: its title, and the query of two columns, a name and a number.
const CHARTS: &[(&str, &str)] = &[
    ("Calls by answer", "SELECT answer, count(*) FROM calls WHERE {when} GROUP BY answer ORDER BY 2 DESC"),
    ("Calls by tool", "SELECT tool, count(*) FROM calls WHERE {when} GROUP BY tool ORDER BY 2 DESC LIMIT 20"),
    (
        "Calls by day",
        "SELECT substr(time, 1, 10), count(*) FROM calls WHERE {when} GROUP BY 1 ORDER BY 1 DESC LIMIT 60",
    ),
    ("Calls by agent", "SELECT agent, count(*) FROM calls WHERE {when} GROUP BY agent ORDER BY 2 DESC LIMIT 20"),
    (
        "Findings that objected",
        "SELECT f.rule, count(*) FROM findings f JOIN calls USING (seq) WHERE f.severity <> 'note' AND {when} \
         GROUP BY f.rule ORDER BY 2 DESC LIMIT 30",
    ),
    (
        "Objections by stage",
        "SELECT coalesce(f.stage, 'the call as a whole'), count(DISTINCT seq) FROM findings f JOIN calls USING (seq) \
         WHERE f.severity <> 'note' AND {when} GROUP BY 1 ORDER BY 2 DESC",
    ),
    (
        "Hosts",
        "SELECT h.host, count(*) FROM hosts h JOIN calls USING (seq) WHERE {when} GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    ),
    (
        "How calls ended",
        "SELECT outcome, count(*) FROM calls WHERE outcome IS NOT NULL AND {when} GROUP BY 1 ORDER BY 2 DESC",
    ),
    (
        "Changes of control",
        "SELECT text, count(*) FROM events WHERE kind = 'control' GROUP BY 1 ORDER BY max(seq) DESC LIMIT 20",
    ),
];

fn page(index: &Index, report: &Report, from: i64) -> Result<String, IndexError> {
    let when = format!("calls.time >= strftime('%Y-%m-%dT%H:%M:%fZ', {from} / 1000.0, 'unixepoch')");
    let mut body = String::new();
    let sound = if report.sound() { "the chain is whole" } else { "THE LOG IS NOT SOUND" };
    let span = match (report.first, report.last) {
        (Some(first), Some(last)) => format!("{first:.0} to {last:.0}"),
        _ => "empty".to_owned(),
    };
    body += &format!(
        "<p>{} records, {}; {}; {} checkpoints hold. Merkle root <code>{}</code></p>",
        report.records,
        escaped(&span),
        sound,
        report.checkpoints,
        report.root
    );
    for (title, query) in CHARTS {
        let table = index.sql(&query.replace("{when}", &when))?;
        body += &chart(title, &table.rows);
    }
    let denied = format!(
        "SELECT time, session, tool, subject, rule FROM calls WHERE answer = 'deny' AND {when} ORDER BY seq DESC LIMIT 50"
    );
    body += "<h2>The last denials</h2><table><tr><th>time<th>session<th>tool<th>what<th>rule</tr>";
    for row in index.sql(&denied)?.rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(&text(cell)))).collect();
        body += &format!("<tr>{cells}</tr>");
    }
    body += "</table>";
    Ok(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Portcullis: audit report</title>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style></head><body><h1>Audit report</h1>{body}</body></html>\n"
    ))
}

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}\
    table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #ddd;\
    overflow-wrap:anywhere;vertical-align:top}.bar{background:#4a6fa5;height:.8rem;display:inline-block}\
    td.n{text-align:right;width:6rem}td.b{width:45%}code{overflow-wrap:anywhere}";

fn chart(title: &str, rows: &[Vec<Value>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let number = |row: &[Value]| row.get(1).and_then(Value::as_u64).unwrap_or(0);
    let most = rows.iter().map(|row| number(row)).max().unwrap_or(1).max(1);
    let lines: String = rows
        .iter()
        .map(|row| {
            let name = row.first().map(text).unwrap_or_default();
            let (count, width) = (number(row), number(row) * 100 / most);
            format!(
                "<tr><td>{}</td><td class=\"n\">{count}</td><td class=\"b\"><span class=\"bar\" style=\"width:{width}%\">\
                 </span></td></tr>",
                escaped(&name)
            )
        })
        .collect();
    format!("<h2>{title}</h2><table>{lines}</table>")
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| if value.is_null() { String::new() } else { value.to_string() }, str::to_owned)
}

/// What anybody wrote, as text of a page.
fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\'' => "&#39;".to_owned(),
            c if c.is_control() => "\u{fffd}".to_owned(),
            c => c.to_string(),
        })
        .collect()
}
