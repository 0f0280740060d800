//! A server that is a program: it runs confined, and one message is one line of its standard input or output.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::wire::{self, Incoming, LARGEST_MESSAGE, RequestError, said_by_server};
use crate::sandbox::{Conversation, End, LaunchError, Launcher, Outcome, Plan};

/// Messages that may wait for the server to read them.
const UNREAD: usize = 64;
/// How long the end of a program is waited for once its output has ended, before it is ended, and after.
const ENDING: Duration = Duration::from_secs(1);
const ENDED: Duration = Duration::from_secs(5);
/// Bytes of its errors that an answer quotes.
const MOST_ERRORS: usize = 2_000;

type Answer = Result<Value, RequestError>;

/// A running server.
pub(super) struct Lines {
    shared: Arc<Shared>,
    out: mpsc::Sender<Vec<u8>>,
    next: AtomicU64,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// The server said that its tools are others now.
    changed: AtomicBool,
    /// Lines that were no messages.
    strays: AtomicU64,
}

enum Waiting {
    For(HashMap<u64, oneshot::Sender<Answer>>),
    /// The server has ended: no answer comes any more.
    Ended(String),
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting::For(HashMap::new())
    }
}

impl Drop for Lines {
    /// The program ends with the task that holds it.
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Lines {
    /// Starts the program.
    ///
    /// # Errors
    ///
    /// When it cannot be started. What goes wrong later ends its requests.
    pub fn start(launcher: &Arc<Launcher>, plan: Plan, arguments: Vec<String>) -> Result<Self, StartError> {
        let Conversation { input, output, alive, ended } = launcher.converse(plan, arguments)?;
        let input = pipe::Sender::from_owned_fd(input)?;
        let output = pipe::Receiver::from_owned_fd(output)?;
        let shared = Arc::<Shared>::default();
        let (out, lines) = mpsc::channel(UNREAD);
        let reading = {
            let (shared, out) = (Arc::clone(&shared), out.clone());
            async move {
                let why = read(output, &shared, &out).await;
                let outcome = outcome(ended, alive).await;
                shared.end(&end(&why, outcome.as_ref()));
            }
        };
        let tasks = [tokio::spawn(reading), tokio::spawn(write(lines, input))];
        Ok(Lines { shared, out, next: AtomicU64::new(1), tasks })
    }

    /// Makes a request, and waits for its answer. Who stops waiting takes the request back.
    pub async fn request(&self, method: &str, params: &Value, patience: Duration) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        self.shared.wait(id, tell)?;
        let mut asked = Asked { lines: self, id, answered: false };
        let line = wire::request(id, method, params).to_string().into_bytes();
        let exchange = async {
            // Where it cannot be sent the server has ended, and the answer says how.
            let _ = self.out.send(line).await;
            told.await
        };
        let answer = match timeout(patience, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(RequestError::Ended("the server ended".to_owned())),
            Err(_) => return Err(self.mute(patience)),
        };
        asked.answered = true;
        answer
    }

    /// Sends what has no answer. A server that does not read misses it.
    pub fn notify(&self, method: &str, params: &Value) {
        let _ = self.out.try_send(wire::notification(method, params).to_string().into_bytes());
    }

    /// Whether the server's list of tools changed since this was asked last.
    pub fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::Relaxed)
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<String> {
        match &*self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Waiting::Ended(why) => Some(why.clone()),
            Waiting::For(_) => None,
        }
    }

    fn mute(&self, patience: Duration) -> RequestError {
        if let Some(why) = self.ended() {
            return RequestError::Ended(why);
        }
        match self.shared.strays.load(Ordering::Relaxed) {
            0 => RequestError::TimedOut(patience.as_secs()),
            strays => RequestError::Malformed(format!(
                "none came within {} s, and {strays} lines that are no messages",
                patience.as_secs()
            )),
        }
    }
}

/// A request under way.
struct Asked<'a> {
    lines: &'a Lines,
    id: u64,
    answered: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.lines.shared.forget(self.id);
            self.lines.notify("notifications/cancelled", &json!({ "requestId": self.id }));
        }
    }
}

impl Shared {
    fn wait(&self, id: u64, tell: oneshot::Sender<Answer>) -> Result<(), RequestError> {
        match &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Waiting::For(waiting) => {
                waiting.insert(id, tell);
                Ok(())
            }
            Waiting::Ended(why) => Err(RequestError::Ended(why.clone())),
        }
    }

    fn forget(&self, id: u64) -> Option<oneshot::Sender<Answer>> {
        match &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Waiting::For(waiting) => waiting.remove(&id),
            Waiting::Ended(_) => None,
        }
    }

    fn end(&self, why: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Waiting::For(waiting) = std::mem::replace(&mut *waiting, Waiting::Ended(why.to_owned())) {
            for tell in waiting.into_values() {
                let _ = tell.send(Err(RequestError::Ended(why.to_owned())));
            }
        }
    }

    /// Gives a line to whom it is for. An answer that nobody waits for, any more or at all, is nobody's.
    fn take(&self, line: &[u8], out: &mpsc::Sender<Vec<u8>>) {
        match wire::read(line) {
            Incoming::Answer(id, answer) => match self.forget(id) {
                Some(tell) => drop(tell.send(answer)),
                None => tracing::debug!("a server answered what nobody asks"),
            },
            // A server that does not read has no answers.
            Incoming::Request(reply) => drop(out.try_send(reply.to_string().into_bytes())),
            Incoming::Notification(method) => {
                if method == wire::TOOLS_CHANGED {
                    self.changed.store(true, Ordering::Relaxed);
                }
            }
            Incoming::Stray if line.trim_ascii().is_empty() => {}
            Incoming::Stray => drop(self.strays.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Why nothing more is read.
enum Why {
    End,
    TooLong,
    Broken(io::Error),
}

async fn read(output: impl AsyncRead + Unpin, shared: &Shared, out: &mpsc::Sender<Vec<u8>>) -> Why {
    let mut output = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    loop {
        let available = match output.fill_buf().await {
            Ok([]) => return Why::End,
            Ok(available) => available,
            Err(error) => return Why::Broken(error),
        };
        let (part, whole) = match memchr::memchr(b'\n', available) {
            Some(at) => (available.get(..at).unwrap_or_default(), true),
            None => (available, false),
        };
        if line.len() + part.len() > LARGEST_MESSAGE {
            return Why::TooLong;
        }
        line.extend_from_slice(part);
        let taken = part.len() + usize::from(whole);
        output.consume(taken);
        if whole {
            shared.take(&line, out);
            line.clear();
            // One large message must not cost its room for ever.
            line.shrink_to(1 << 20);
        }
    }
}

async fn write(mut lines: mpsc::Receiver<Vec<u8>>, mut input: impl AsyncWrite + Unpin) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if input.write_all(&line).await.is_err() {
            // The end of its output tells more.
            return;
        }
    }
}

/// How the program ended. One that goes on without output is ended.
async fn outcome(
    mut ended: oneshot::Receiver<Result<Outcome, LaunchError>>,
    alive: io::PipeWriter,
) -> Option<Result<Outcome, LaunchError>> {
    if let Ok(outcome) = timeout(ENDING, &mut ended).await {
        return outcome.ok();
    }
    drop(alive);
    timeout(ENDED, ended).await.ok()?.ok()
}

/// How the program ended, in words.
fn end(why: &Why, outcome: Option<&Result<Outcome, LaunchError>>) -> String {
    let mut told = match (why, outcome) {
        (Why::TooLong, _) => {
            let most = LARGEST_MESSAGE >> 20;
            return format!("the server sent a message of more than {most} MiB, and was ended");
        }
        (Why::Broken(error), _) => return format!("the server's output cannot be read ({error}), and it was ended"),
        (Why::End, Some(Ok(outcome))) => match outcome.end {
            End::Exited(code) => format!("the server ended with exit code {code}"),
            End::Signalled(signal) => format!("the server was ended by signal {signal}"),
            End::TimedOut(after) => format!("the server's time was up after {} s", after.as_secs()),
            End::OutOfMemory(limit) => {
                format!("the server used more than {} MiB of memory, and was ended", limit >> 20)
            }
            End::OutOfSpace(limit) => format!("the server wrote more than {} MiB, and was ended", limit >> 20),
        },
        (Why::End, Some(Err(LaunchError::Cancelled)) | None) => {
            "the server closed its output while it ran, and was ended".to_owned()
        }
        (Why::End, Some(Err(error))) => format!("the server could not be started: {error}"),
    };
    if let Some(Ok(outcome)) = outcome {
        let errors = said_by_server(&outcome.stderr.text(MOST_ERRORS));
        if !errors.is_empty() {
            told.push_str("; its last words:\n");
            told.push_str(&errors);
        }
        for denial in &outcome.denials {
            told.push_str(&format!("\n[probably refused by the sandbox, as far as the messages tell: {denial}]"));
        }
    }
    told
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the server could not be started: {0}")]
    Launch(#[from] LaunchError),
    #[error("the server's pipes cannot be used: {0}")]
    Pipe(#[from] io::Error),
}
