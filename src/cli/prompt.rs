//! The question at the terminal.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

use crate::approval::AT_THE_TERMINAL;
use crate::cli::gate::Gate;
use crate::cli::{Failure, render};
use crate::daemon::Answer;
use crate::gateway::Asks;
use crate::verdict::{Decision, Level};

/// What the person said.
pub(super) enum Answered {
    Granted,
    Refused,
}

/// Whether a person sits at a terminal. All three streams must be terminals: a caller that feeds or captures one of
/// them is a program, and a program does not answer for a person.
pub(super) fn someone_is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Shows what waits, and asks. The answer is read from the controlling terminal, not from standard input.
pub(super) fn ask(gate: &Gate, asks: &Asks) -> Result<Answered, Failure> {
    let mut err = anstream::stderr().lock();
    render::objections(&mut err, &asks.judged)?;
    if let Some(call) = &asks.judged.call {
        for (name, value) in &call.arguments {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(err, "  {:<8} {}", render::line(name), render::block(&shown))?;
        }
        writeln!(err, "  in       {}", render::line(&call.cwd.to_string_lossy()))?;
    }
    if let Some(sandbox) = asks.judged.facts.as_ref().and_then(|f| f.sandbox.as_ref()) {
        let network = if sandbox.network { "on" } else { "off" };
        writeln!(err, "  confined profile {}, tier {}, network {network}", sandbox.profile, sandbox.offers.as_str())?;
    }
    if asks.judged.verdict.decision == Decision::Ask(Level::Reviewer) {
        writeln!(err, "  a reviewer has to approve this: portcullis approvals grant {}", asks.pending.id)?;
        return Ok(Answered::Refused);
    }
    write!(err, "Run it once? [y/N] ")?;
    err.flush()?;
    let terminal = OpenOptions::new().read(true).open("/dev/tty")?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    if matches!(line.trim(), "y" | "Y" | "yes") {
        gate.answer(&asks.pending.id, &Answer::Grant)?;
        return Ok(Answered::Granted);
    }
    gate.answer(&asks.pending.id, &Answer::Refuse(Some(AT_THE_TERMINAL.to_owned())))?;
    Ok(Answered::Refused)
}
