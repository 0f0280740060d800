//! The question at the terminal.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};

use nix::sys::termios::{FlushArg, tcflush};

use crate::approval::AT_THE_TERMINAL;
use crate::approval::Reach;
use crate::cli::gate::Gate;
use crate::cli::{Failure, render};
use crate::daemon::Answer;
use crate::gateway::Asks;
use crate::verdict::{Decision, Level};

/// The most lines of one argument that are shown; `portcullis approvals list` has all of them.
const MOST_LINES: usize = 24;

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
    let mut err = render::err();
    show(&mut err, asks)?;
    if asks.judged.verdict.decision == Decision::Ask(Level::Reviewer) {
        writeln!(err, "  a reviewer has to approve this: portcullis approvals grant {}", asks.pending.id)?;
        return Ok(Answered::Refused);
    }
    if yes(&mut err, File::open("/dev/tty")?, "Run it once?")? {
        gate.answer(&asks.pending.id, &Answer::Grant(Reach::Call))?;
        return Ok(Answered::Granted);
    }
    gate.answer(&asks.pending.id, &Answer::Refuse(Some(AT_THE_TERMINAL.to_owned())))?;
    Ok(Answered::Refused)
}

/// Asks a question at the terminal.
pub(super) fn yes(err: &mut impl Write, terminal: File, question: &str) -> io::Result<bool> {
    // What was typed before the question was there does not answer it. Once it can be seen, every line counts.
    tcflush(&terminal, FlushArg::TCIFLUSH)?;
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// What the person decides on. The call's own words come first, and may be long; what we say of it stands right above
/// the question.
fn show(err: &mut impl Write, asks: &Asks) -> io::Result<()> {
    if let Some(call) = &asks.judged.call {
        writeln!(err, "{} by {} asks to run", render::line(&call.tool), render::line(&call.principal.agent))?;
        render::arguments(err, call, MOST_LINES)?;
    }
    if let Some(facts) = &asks.judged.facts {
        render::landings(err, &facts.paths)?;
    }
    if let Some(sandbox) = asks.judged.facts.as_ref().and_then(|f| f.sandbox.as_ref()) {
        let network = if sandbox.network { "on" } else { "off" };
        writeln!(err, "  confined profile {}, tier {}, network {network}", sandbox.profile, sandbox.offers.as_str())?;
    }
    render::objections(err, &asks.judged)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::pty::openpty;

    use super::*;

    #[test]
    fn i7_what_was_typed_before_the_question_does_not_answer_it() {
        for (said, expected) in [("n\n", false), ("y\n", true)] {
            let pty = openpty(None, None).unwrap();
            let (mut person, terminal) = (File::from(pty.master), File::from(pty.slave));
            person.write_all(if expected { b"n\n" } else { b"y\n" }).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            let asking = std::thread::spawn(move || yes(&mut Vec::new(), terminal, "Run it once?").unwrap());
            while !asking.is_finished() {
                std::thread::sleep(Duration::from_millis(200));
                person.write_all(said.as_bytes()).unwrap();
            }
            assert_eq!(asking.join().unwrap(), expected);
        }
    }
}
