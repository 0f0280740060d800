//! `portcullis check`: what the firewall would answer.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};

use crate::cli::args::{CheckArgs, Format, Who};
use crate::cli::gate::Gate;
use crate::cli::{Failure, asked, render, run};
use crate::daemon::errand::Errand;
use crate::gateway::Judged;
use crate::json;
use crate::verdict::{Decision, Finding, Severity};

pub(super) fn run(args: CheckArgs) -> Result<u8, Failure> {
    let gate = Gate::open()?;
    if let Some(file) = &args.batch {
        return batch(&gate, &args.who, file);
    }
    let judged = gate.judge(&asked::errand(&args.who, &args.call)?)?;
    let shown = match args.output {
        Format::Json => writeln!(io::stdout(), "{}", render::json(None, &judged)),
        Format::Text => render::verdict(&mut render::out(), &judged),
    };
    Ok(render::told(shown, run::code(judged.verdict.decision)))
}

/// One line of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    #[serde(default)]
    id: Value,
    pub tool: String,
    #[serde(default = "no_arguments")]
    pub arguments: Value,
    pub cwd: Option<PathBuf>,
}

fn no_arguments() -> Value {
    json!({})
}

/// The most bytes of one line that are read; a longer one is denied as a whole.
const LONGEST_LINE: u64 = 16 << 20;

/// Judges every line; exits with the code of the gravest decision.
fn batch(gate: &Gate, who: &Who, file: &Path) -> Result<u8, Failure> {
    let mut input: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let opened = File::open(file).map_err(|e| Failure::usage(format!("cannot open {}: {e}", file.display())))?;
        Box::new(BufReader::new(opened))
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let judge = |line: Line| {
        let errand = asked::described(who, line.tool, &line.arguments)?;
        gate.judge(&Errand { cwd: line.cwd, roams: true, ..errand })
    };
    let (worst, shown) = judge_lines::<Failure>(judge, &mut input, &mut out)?;
    Ok(render::told(shown.and_then(|()| out.flush()), run::code(worst)))
}

/// Judges line after line and writes the answers, until the input ends or nobody takes them any more. Gives the gravest
/// decision. A line that cannot be read is denied like any other call that cannot be judged, and the rest goes on.
pub(crate) fn judge_lines<E: From<io::Error>>(
    mut judge: impl FnMut(Line) -> Result<Judged, E>,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(Decision, io::Result<()>), E> {
    let mut worst = Decision::Allow;
    let mut bytes = Vec::new();
    for number in 1u64.. {
        bytes.clear();
        if (&mut *input).take(LONGEST_LINE).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let too_long = !bytes.ends_with(b"\n") && bytes.len() as u64 == LONGEST_LINE;
        if too_long {
            skip_line(input)?;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let (id, judged) = if too_long {
            (Value::Null, unreadable(number, &format!("longer than {LONGEST_LINE} bytes")))
        } else {
            match json::parse(&bytes).and_then(serde_json::from_value::<Line>) {
                Ok(line) => (line.id.clone(), judge(line)?),
                Err(error) => (id_of(&bytes), unreadable(number, &error.to_string())),
            }
        };
        worst = worst.max(judged.verdict.decision);
        if let Err(error) = writeln!(out, "{}", render::json(Some(&id), &judged)) {
            return Ok((worst, Err(error)));
        }
    }
    Ok((worst, Ok(())))
}

fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&b| b == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

/// The line's id, should one come before whatever is wrong with the line, so that the answer finds its question.
fn id_of(bytes: &[u8]) -> Value {
    let mut id = Value::Null;
    let _ = serde_json::Deserializer::from_slice(bytes).deserialize_map(IdOf(&mut id));
    id
}

struct IdOf<'a>(&'a mut Value);

impl<'de> Visitor<'de> for IdOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = entries.next_key::<String>()? {
            if key == "id" {
                *self.0 = entries.next_value()?;
                return Ok(());
            }
            entries.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

fn unreadable(number: u64, why: &str) -> Judged {
    let message = format!(
        "line {number} of the batch is not a call: {why}; expected one object \
         {{\"id\", \"tool\", \"arguments\", \"cwd\"?}} a line"
    );
    Judged::refused(String::new(), Finding::new("call.unreadable", Severity::Deny, message))
}
