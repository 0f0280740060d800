//! A thin client of the daemon, over its Unix socket. What it gets is what the gateway said, value for value, so that
//! whoever asked cannot tell it from a gateway in process.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::approval::{ApprovalId, CredentialError, operator_token, presented_token};
use crate::config::Places;
use crate::daemon::Answer;
use crate::daemon::errand::{self, Errand, Offers, Standing};
use crate::daemon::hosted::{self, HostErrand, Said};
use crate::gateway::{Judged, Outcome};
use crate::state::{StateDir, StateError};

/// A connection to the daemon of a state directory, for a caller that blocks.
pub struct Client {
    runtime: Runtime,
    link: Link,
}

/// The same for asynchronous callers: any number of requests at a time, on as many connections.
pub struct Link {
    places: Places,
    authorization: HeaderValue,
    installation: String,
    /// The one that was used last, and when.
    connection: Mutex<Option<(SendRequest<Full<Bytes>>, Instant)>>,
}

/// The daemon closes a connection on which nothing is asked for some seconds; one that has rested for this long is not
/// used again, so that no request crosses with its end.
const RESTED: Duration = Duration::from_secs(2);

/// Why the daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing was asked.
    #[error("the gateway that ran for this state directory has stopped: make the call again")]
    Absent,
    #[error(transparent)]
    Credential(#[from] CredentialError),
    #[error("the gateway's socket {path} belongs to a process of another user: it was told nothing", path = .0.display())]
    Foreign(std::path::PathBuf),
    #[error(
        "the gateway went away while it worked on the call ({0}): `portcullis audit tail` shows what is known of it; \
         make the call again"
    )]
    Gone(String),
    #[error("the gateway's socket: {0}")]
    Io(#[from] io::Error),
    #[error(
        "the gateway's socket {} cannot be reached: {source}: let this user into its directory, or choose another state \
         directory with PORTCULLIS_STATE", path.display()
    )]
    Unreachable { path: std::path::PathBuf, source: io::Error },
    /// The daemon refused the request: what it said, and whether an approval's answer was not this one's to give.
    #[error("{message}")]
    Refused { message: String, forbidden: bool },
    #[error(transparent)]
    State(#[from] StateError),
    #[error("PORTCULLIS_TOKEN holds characters that no token has")]
    Token,
    #[error("the gateway's answer cannot be read ({0}): is it of another version? Restart it")]
    Unreadable(#[from] serde_json::Error),
}

impl Client {
    /// Connects, where a daemon runs. It is told the credential in `PORTCULLIS_TOKEN`, else the operator's own.
    ///
    /// # Errors
    ///
    /// When there is a daemon, and it cannot be talked to.
    pub fn connect(places: &Places) -> Result<Option<Self>, ClientError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let link = runtime.block_on(Link::connect(places))?;
        Ok(link.map(|link| Client { runtime, link }))
    }

    /// Makes a call, the whole way.
    ///
    /// # Errors
    ///
    /// When the daemon gave no answer, or says that this is no call.
    pub fn call(&self, errand: &Errand) -> Result<Outcome, ClientError> {
        self.runtime.block_on(self.link.call(errand))
    }

    /// What the firewall would answer.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn judge(&self, errand: &Errand) -> Result<Judged, ClientError> {
        self.runtime.block_on(self.link.post(errand::JUDGE, serde_json::to_vec(errand)?))
    }

    /// Tells of an event of an agent's own program.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub fn hosted(&self, errand: &HostErrand) -> Result<Said, ClientError> {
        self.runtime.block_on(self.link.post(hosted::HOSTED, serde_json::to_vec(errand)?))
    }

    /// Answers an approval.
    ///
    /// # Errors
    ///
    /// When the daemon gave no answer, or the credential is not one that may answer.
    pub fn answer(&self, id: &ApprovalId, answer: &Answer) -> Result<(), ClientError> {
        let (word, body) = match answer {
            Answer::Grant(reach) => ("grant", json!({ "scope": reach })),
            Answer::Refuse(reason) => ("refuse", json!({ "reason": reason })),
        };
        let path = format!("/api/approvals/{id}/{word}");
        self.runtime.block_on(self.link.post::<Value>(&path, serde_json::to_vec(&body)?)).map(drop)
    }
}

impl Link {
    /// Connects, as [`Client::connect`] does.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`].
    pub async fn connect(places: &Places) -> Result<Option<Self>, ClientError> {
        let Some(stream) = dial(places)? else { return Ok(None) };
        let token = match presented_token()? {
            Some(token) => token,
            None => operator_token(&StateDir::open(&places.state)?)?.expose().to_owned(),
        };
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClientError::Token)?;
        authorization.set_sensitive(true);
        let connection = Mutex::new(Some((handshake(stream).await?, Instant::now())));
        let installation = errand::installation(places);
        Ok(Some(Link { places: places.clone(), authorization, installation, connection }))
    }

    /// Makes a call, the whole way. Where the errand says so, a caller that drops this takes the call back.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub async fn call(&self, errand: &Errand) -> Result<Outcome, ClientError> {
        self.post(errand::CALL, serde_json::to_vec(errand)?).await
    }

    /// Whose calls these would be, and the tools that could be allowed.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub async fn offers(&self, errand: &Errand) -> Result<Offers, ClientError> {
        self.post(errand::OFFERS, serde_json::to_vec(errand)?).await
    }

    /// Where an approval stands, once it is answered or `patience` is over.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub async fn standing(&self, id: &ApprovalId, patience: Duration) -> Result<Standing, ClientError> {
        let path = format!("/api/pending/{id}?wait={}s", patience.as_secs());
        self.ask(Method::GET, &path, Vec::new()).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: Vec<u8>) -> Result<T, ClientError> {
        self.ask(Method::POST, path, body).await
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Vec<u8>) -> Result<T, ClientError> {
        let (status, body) = self.send(method, path, body).await?;
        if status.is_success() {
            return Ok(serde_json::from_slice(&body)?);
        }
        let problem: Problem = serde_json::from_slice(&body)?;
        let message = match problem.next {
            Some(next) => format!("{}: {next}", problem.detail),
            None => problem.detail,
        };
        Err(ClientError::Refused { message, forbidden: status == StatusCode::FORBIDDEN })
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<(StatusCode, Bytes), ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(errand::INSTALLATION, &self.installation)
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        let mut connection = self.connected().await?;
        let answer = async {
            let response = connection.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        let answered = answer.await.map_err(|error| ClientError::Gone(error.to_string()))?;
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some((connection, Instant::now()));
        Ok(answered)
    }

    /// The connection, or a new one where that is in use or has rested. Nothing was sent on it then: a request that was
    /// sent is never sent again.
    async fn connected(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let kept = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut connection, used)) = kept
            && used.elapsed() < RESTED
            && connection.ready().await.is_ok()
        {
            return Ok(connection);
        }
        handshake(dial(&self.places)?.ok_or(ClientError::Absent)?).await
    }
}

/// What matters here of an `application/problem+json` answer.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    next: Option<String>,
}

/// Connects to the socket. None where nobody listens. A credential is told to a process of this user alone.
fn dial(places: &Places) -> Result<Option<UnixStream>, ClientError> {
    let path = places.socket();
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                // The last two: a path at which no daemon can listen.
                io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(ClientError::Unreachable { path, source: error }),
            };
        }
    };
    let peer = getsockopt(&stream, PeerCredentials).map_err(io::Error::from)?;
    if peer.uid() != nix::unistd::geteuid().as_raw() {
        return Err(ClientError::Foreign(path));
    }
    stream.set_nonblocking(true)?;
    Ok(Some(stream))
}

async fn handshake(stream: UnixStream) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let stream = tokio::net::UnixStream::from_std(stream)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // Ends with the sender; what went wrong, the sender says.
    tokio::spawn(connection);
    Ok(sender)
}
