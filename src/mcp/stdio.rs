//! MCP over a pair of pipes: one JSON-RPC message a line.
//!
//! A line that is no message gets an error in answer and never ends the connection, whatever is in it.

use std::future::Future;
use std::io;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcError, JsonRpcMessage, ProtocolVersion, RequestId,
};
use rmcp::service::{QuitReason, RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::mcp::Server;

/// The longest line that is read, in bytes.
pub const LONGEST_LINE: usize = 4 << 20;
/// Messages that may wait for the client to read them.
const UNREAD: usize = 64;
/// How long the client gets at the end to read what is left.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long calls get at the end to be ended, and recorded.
const ENDING: Duration = Duration::from_secs(10);

/// Serves one client until its input ends or `stop` is ready. Calls that still run then are ended, and on record, when
/// this returns.
///
/// # Errors
///
/// When the client never began a session that this server can serve.
pub async fn serve(
    server: Server,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    tokio::pin!(stop);
    let running = tokio::select! {
        begun = serve_server(server.clone(), Lines::new(input, output)) => match begun {
            Ok(running) => running,
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            // The other kinds would repeat what the client sent.
            Err(ServerInitializeError::InitializeFailed(error)) => {
                return Err(ServeError::Refused(error.message.into_owned()));
            }
            Err(_) => return Err(ServeError::NotBegun),
        },
        () = &mut stop => return Ok(()),
    };
    let cancel = running.cancellation_token();
    let ended = running.waiting();
    tokio::pin!(ended);
    let ended = tokio::select! {
        ended = &mut ended => ended,
        () = &mut stop => {
            cancel.cancel();
            ended.await
        }
    };
    let idle = timeout(ENDING, server.idle()).await;
    match ended {
        Ok(QuitReason::JoinError(_)) | Err(_) => Err(ServeError::Failed),
        Ok(_) if idle.is_err() => Err(ServeError::StillRunning),
        Ok(_) => Ok(()),
    }
}

/// Why serving a client ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client's first message began no session: expected `initialize`, or a request of revision 2026-07-28")]
    NotBegun,
    #[error("the session could not begin: {0}")]
    Refused(String),
    #[error("the server failed unexpectedly; please report this as a bug")]
    Failed,
    #[error("a call did not end in time; the next start of the gateway records that its outcome is not known")]
    StillRunning,
}

/// The transport. A task of its own writes, so that no message is cut off where a future is dropped.
struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// The rest of a line that was too long is still to be skipped.
    skipping: bool,
    /// A request that begins a session has come. The library knows nothing but requests before it.
    begun: bool,
    /// An answer to what was no message, still to be sent.
    reply: Option<Vec<u8>>,
    output: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    fn new(input: R, output: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, lines) = mpsc::channel(UNREAD);
        Lines {
            input: BufReader::with_capacity(64 << 10, input),
            line: Vec::new(),
            skipping: false,
            begun: false,
            reply: None,
            output: Some(sender),
            writer: Some(tokio::spawn(write(lines, output))),
        }
    }

    /// Reads up to the end of a line. May be dropped and called again at any time.
    async fn read_line(&mut self) -> io::Result<Line> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let used = part.len() + usize::from(end.is_some());
            let mut too_long = false;
            if !self.skipping {
                too_long = self.line.len() + part.len() > LONGEST_LINE;
                if too_long {
                    self.line.clear();
                    self.skipping = true;
                } else {
                    self.line.extend_from_slice(part);
                }
            }
            self.input.consume(used);
            let skipped = self.skipping;
            if end.is_some() {
                self.skipping = false;
            }
            match (too_long, end.is_some() && !skipped) {
                (true, _) => return Ok(Line::TooLong),
                (false, true) => return Ok(Line::Whole),
                (false, false) => {}
            }
        }
    }

    /// The next message, or the answer to what was none.
    async fn next(&mut self) -> Option<Result<RxJsonRpcMessage<RoleServer>, ErrorReply>> {
        loop {
            match self.read_line().await {
                Ok(Line::Whole) => {}
                Ok(Line::TooLong) => {
                    let message = format!("the message is longer than {LONGEST_LINE} bytes and was not read");
                    return Some(Err(reply(ErrorData::invalid_request(message, None), None)));
                }
                Ok(Line::End) => return None,
                Err(error) => {
                    tracing::warn!("cannot read from the client: {error}");
                    return None;
                }
            }
            let parsed = parse(&self.line);
            self.line.clear();
            match parsed {
                Ok(None) => {}
                Ok(Some(message)) => {
                    if self.begun
                        && let Some(id) = initializes(&message)
                    {
                        return Some(Err(reply(initialized(), Some(id.clone()))));
                    }
                    self.begun |= begins(&message);
                    if self.begun || matches!(message, JsonRpcMessage::Request(_)) {
                        return Some(Ok(message));
                    }
                }
                Err(reply) => return Some(Err(reply)),
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let line = serde_json::to_vec(&item)?;
            let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the client reads no more");
            output.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.reply.is_some() {
                let place = self.output.as_ref()?.reserve().await.ok()?;
                place.send(self.reply.take()?);
            }
            match self.next().await? {
                Ok(message) => return Some(message),
                Err(reply) => {
                    tracing::warn!("refused a message: {}", reply.error.message);
                    self.reply = serde_json::to_vec(&reply).ok();
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        if let Some(writer) = self.writer.take()
            && let Ok(ended) = timeout(FAREWELL, writer).await
        {
            ended.map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// Whether a message settles which revision the session speaks: the handshake, or a request that stands for itself.
fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => {
            let meta = other.get_meta();
            meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
                && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        }
    }
}

/// What was read.
enum Line {
    Whole,
    TooLong,
    End,
}

/// An answer to what was no message.
type ErrorReply = Box<JsonRpcError>;

fn reply(error: ErrorData, id: Option<RequestId>) -> ErrorReply {
    Box::new(JsonRpcError::new(id, error))
}

/// The id of a request that begins a session.
pub(super) fn initializes(message: &RxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    let JsonRpcMessage::Request(request) = message else { return None };
    matches!(request.request, ClientRequest::InitializeRequest(_)).then_some(&request.id)
}

/// The answer to a second handshake: it would change the revision that the session speaks.
pub(super) fn initialized() -> ErrorData {
    ErrorData::invalid_request("the session has begun already: `initialize` comes once, as the first request", None)
}

/// Reads a message; an empty line and an unknown notification are nothing.
pub(super) fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, ErrorReply> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    if let Err(error) = crate::json::parse(line)
        && error.classify() == Category::Data
    {
        return Err(reply(ErrorData::invalid_request(error.to_string(), None), None));
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let not_json = |error: &serde_json::Error| {
        let place = format!("the message is not JSON: error at column {}", error.column());
        reply(ErrorData::new(ErrorCode::PARSE_ERROR, place, None), None)
    };
    if matches!(error.classify(), Category::Syntax | Category::Eof | Category::Io) {
        return Err(not_json(&error));
    }
    let message: Value = serde_json::from_slice(line).map_err(|error| not_json(&error))?;
    if message.is_array() {
        return Err(reply(
            ErrorData::invalid_request("batches are not supported: send one message a line", None),
            None,
        ));
    }
    if message.get("id").is_none() && message.get("method").is_some_and(Value::is_string) {
        return Ok(None);
    }
    let id = message.get("id").and_then(|id| RequestId::deserialize(id).ok());
    Err(reply(ErrorData::invalid_request("the message is no JSON-RPC 2.0 request, notification or response", None), id))
}

/// Writes lines, as many at once as there are.
async fn write(mut lines: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    let mut batch = Vec::new();
    let mut ready = Vec::new();
    while lines.recv_many(&mut ready, UNREAD).await > 0 {
        batch.clear();
        for line in ready.drain(..) {
            batch.extend_from_slice(&line);
            batch.push(b'\n');
        }
        let written = async {
            output.write_all(&batch).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::warn!("cannot write to the client: {error}");
            return;
        }
    }
}
