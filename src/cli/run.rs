//! `portcullis run`: one call, the whole way.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use crate::cli::args::{Format, RunArgs};
use crate::cli::gate::Gate;
use crate::cli::{Failure, asked, exit, prompt, render};
use crate::gateway::{Asks, Done, END_NOT_RECORDED, Outcome, STALE};
use crate::registry::{Output, ToolError};
use crate::verdict::Decision;

pub(super) fn run(args: RunArgs) -> Result<u8, Failure> {
    let gate = Gate::open()?;
    let errand = asked::errand(&args.who, &args.call)?;
    let mut outcome = gate.call(&errand)?;
    if let Outcome::Asks(asks) = &outcome
        && !args.no_prompt
        && prompt::someone_is_there()
    {
        // The answer is the operator's, given at the terminal; the call then goes the whole way again.
        match prompt::ask(&gate, asks)? {
            prompt::Answered::Granted => outcome = gate.call(&errand)?,
            prompt::Answered::Refused => {
                anstream::eprintln!("refused; nothing ran");
                return Ok(exit::DENIED);
            }
        }
    }
    Ok(render::told(report(&outcome, args.output), exit_code(&outcome)))
}

/// The exit code of a decision that nothing was run for.
pub(super) fn code(decision: Decision) -> u8 {
    match decision {
        Decision::Allow => exit::OK,
        Decision::Ask(_) => exit::ASKS,
        Decision::Deny => exit::DENIED,
    }
}

fn report(outcome: &Outcome, format: Format) -> io::Result<()> {
    if format == Format::Json {
        return writeln!(io::stdout(), "{}", as_json(outcome));
    }
    let (Outcome::Done(Done { judged, .. }) | Outcome::Asks(Asks { judged, .. }) | Outcome::Denied(judged)) = outcome;
    if let Some(stale) = judged.verdict.notes.iter().find(|note| note.id == STALE) {
        writeln!(render::err(), "note: {}", stale.message)?;
    }
    if let Outcome::Done(done) = outcome {
        for note in done.judged.verdict.notes.iter().filter(|note| note.id == END_NOT_RECORDED) {
            writeln!(render::err(), "warning: {}", note.message)?;
        }
    }
    match outcome {
        Outcome::Done(Done { result: Ok(output), .. }) => {
            let mut out = io::stdout().lock();
            // A terminal obeys what it is sent; a pipe gets the bytes as they are.
            let text = if out.is_terminal() { render::plain(&output.text).into() } else { Cow::from(&output.text) };
            out.write_all(text.as_bytes())?;
            if !output.text.is_empty() && !output.text.ends_with('\n') {
                out.write_all(b"\n")?;
            }
        }
        Outcome::Done(Done { result: Err(error), .. }) => writeln!(render::err(), "{error}")?,
        Outcome::Asks(asks) => {
            render::objections(&mut render::err(), &asks.judged)?;
            anstream::eprintln!("  pending  {} until {:.0}", asks.pending.id, asks.pending.expires);
            anstream::eprintln!("  a person can answer with: portcullis approvals grant {}", asks.pending.id);
            anstream::eprintln!("  then make the same call again");
        }
        Outcome::Denied(judged) => render::objections(&mut render::err(), judged)?,
    }
    Ok(())
}

fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Done(done) => match &done.result {
            Ok(output) => command_code(output),
            Err(ToolError::Setup(_)) => exit::SETUP,
            Err(_) => exit::FAILED,
        },
        Outcome::Asks(_) => exit::ASKS,
        Outcome::Denied(_) => exit::DENIED,
    }
}

/// The command's own exit code where the tool ran one: 128+n where signal n ended it, as in shells.
fn command_code(output: &Output) -> u8 {
    let field = |name: &str| output.structured.as_ref().and_then(|s| s.get(name)).and_then(Value::as_u64);
    match field("exit_code").or_else(|| field("signal").map(|n| n + 128)) {
        Some(code) => u8::try_from(code).unwrap_or(exit::FAILED),
        None if output.is_error => exit::FAILED,
        None => exit::OK,
    }
}

fn as_json(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Done(done) => {
            let mut value = render::json(None, &done.judged);
            // What was decided may be to ask; that it ran all the same is the answer of a person or of the mode.
            extend(&mut value, json!({ "effective": Decision::Allow }));
            let (text, structured, is_error) = match &done.result {
                Ok(output) => (output.text.clone(), output.structured.clone(), output.is_error),
                Err(error) => (error.to_string(), None, true),
            };
            extend(
                &mut value,
                json!({ "call": done.call, "output": text, "structured": structured, "is_error": is_error }),
            );
            value
        }
        Outcome::Asks(asks) => {
            let mut value = render::json(None, &asks.judged);
            extend(&mut value, json!({ "pending": asks.pending.id, "expires": asks.pending.expires }));
            value
        }
        Outcome::Denied(judged) => render::json(None, judged),
    }
}

fn extend(value: &mut Value, more: Value) {
    if let (Some(map), Value::Object(more)) = (value.as_object_mut(), more) {
        map.extend(more);
    }
}
