//! The process of a hook. It answers once, in time, and by blocking where anything goes wrong: the work is done by a thread
//! that may panic or hang, and, where no daemon runs, by a child that may die in ways that no thread survives.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::config::Places;
use crate::daemon::hosted::{HostErrand, Said};
use crate::hook::answer::Answer;
use crate::hook::event::LARGEST;
use crate::hook::host::Host;
use crate::hook::{Terms, answer};

/// How long an answer may take. Below what the programs wait, which is 30 seconds as they are set up here.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// The most bytes of a child's answer.
const LARGEST_ANSWER: u64 = 4 << 20;
/// The subcommand that the child runs.
pub const CHILD: &str = "hook-judge";

/// What the child answers.
#[derive(Serialize, Deserialize)]
pub enum Reply {
    Said(Said),
    Failed(String),
}

/// Reads an event from standard input, and answers it. Gives the exit code.
pub fn run(host: &'static Host, terms: Terms, deadline: Duration) -> u8 {
    let answer = supervised(host, deadline, move |slot| work(host, &terms, slot));
    tell(host, &answer)
}

/// Lets a thread work out the answer. One that fails to, or takes too long, has blocked.
fn supervised(
    host: &'static Host,
    deadline: Duration,
    work: impl FnOnce(&Mutex<Option<Child>>) -> Answer + Send + 'static,
) -> Answer {
    let child: Arc<Mutex<Option<Child>>> = Arc::default();
    let (send, receive) = sync_channel(1);
    let slot = Arc::clone(&child);
    let worker = thread::Builder::new().name("hook".to_owned()).spawn(move || {
        let _ = send.send(work(&slot));
    });
    if let Err(error) = worker {
        return refused(host, &format!("no thread could be started ({error})"));
    }
    match receive.recv_timeout(deadline) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => {
            if let Some(mut child) = child.lock().unwrap_or_else(PoisonError::into_inner).take() {
                let _ = child.kill();
            }
            refused(host, &format!("there was no answer within {} s", deadline.as_secs_f32()))
        }
        Err(RecvTimeoutError::Disconnected) => {
            refused(host, "it failed inside; please report the message above as a bug")
        }
    }
}

fn refused(host: &Host, why: &str) -> Answer {
    Answer::block(host, None, &format!("Portcullis cannot judge this, so it does not run: {why}"))
}

/// Writes the answer. One that cannot be written blocks by its exit code.
fn tell(host: &Host, answer: &Answer) -> u8 {
    let _ = io::stderr().write_all(answer.stderr.as_bytes());
    let mut out = io::stdout();
    match out.write_all(answer.stdout.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => answer.code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "Portcullis cannot answer, so this does not run: {error}");
            // Not the code of the form, which may count on what stands on standard output.
            host.answers.block_code.max(crate::cli::exit::DENIED)
        }
    }
}

fn work(host: &'static Host, terms: &Terms, slot: &Mutex<Option<Child>>) -> Answer {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(LARGEST as u64 + 1).read_to_end(&mut bytes);
    if let Err(error) = read {
        return refused(host, &format!("the event cannot be read ({error})"));
    }
    if bytes.len() > LARGEST {
        return refused(host, &format!("the event is longer than {LARGEST} bytes"));
    }
    let current = match std::env::current_dir() {
        Ok(current) => current,
        Err(error) => return refused(host, &format!("the current directory cannot be told ({error})")),
    };
    answer(host, terms, &bytes, &current, |errand| ask(errand, slot))
}

/// Does the errand: at the daemon where one runs, else in a child.
fn ask(errand: &HostErrand, slot: &Mutex<Option<Child>>) -> Result<Said, String> {
    let places = Places::from_env().map_err(|error| error.to_string())?;
    match Client::connect(&places).map_err(|error| error.to_string())? {
        Some(client) => client.hosted(errand).map_err(|error| error.to_string()),
        None => in_child(errand, slot),
    }
}

fn in_child(errand: &HostErrand, slot: &Mutex<Option<Child>>) -> Result<Said, String> {
    let cannot = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let program = std::env::current_exe().map_err(|e| cannot("this program cannot be found", &e))?;
    let question = serde_json::to_vec(errand).map_err(|e| cannot("the question cannot be put", &e))?;
    let started = Command::new(program)
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| cannot("the judging process cannot be started", &e))?;
    let (stdin, stdout) = {
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let child = held.insert(started);
        (child.stdin.take(), child.stdout.take())
    };
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err("the judging process has no pipes".to_owned());
    };
    // Where it dies in between, its missing answer says so.
    let _ = stdin.write_all(&question);
    drop(stdin);
    let mut bytes = Vec::new();
    let read = stdout.take(LARGEST_ANSWER).read_to_end(&mut bytes);
    let ended = match slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(mut child) => child.wait().map_err(|e| cannot("the judging process cannot be waited for", &e))?,
        None => return Err("the judging process took too long".to_owned()),
    };
    read.map_err(|e| cannot("the judging process cannot be read", &e))?;
    if !ended.success() {
        return Err(format!("the judging process died ({ended})"));
    }
    match serde_json::from_slice(&bytes) {
        Ok(Reply::Said(said)) => Ok(said),
        Ok(Reply::Failed(message)) => Err(message),
        Err(error) => Err(cannot("the judging process gave no answer", &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::hosts;

    #[test]
    fn i2_a_panic_and_a_hang_block_every_program() {
        for host in hosts::ALL {
            let panicked = supervised(host, DEADLINE, |_| panic!("on purpose"));
            let hung = supervised(host, Duration::from_millis(20), |_| {
                loop {
                    thread::sleep(Duration::from_secs(60));
                }
            });
            for answer in [panicked, hung] {
                assert!(answer.code == 2 || answer.stdout.contains("deny"), "{}: {answer:?}", host.name);
                assert!(answer.stderr.contains("does not run"), "{}: {answer:?}", host.name);
            }
        }
    }
}
