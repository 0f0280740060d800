//! A server that is reached over streamable HTTP: each request is a POST, answered by one message or by a stream of them.
//!
//! The credentials are those of the server's configuration, never the client's. Nothing is followed: not a redirect, and
//! not a name to where only this machine gets.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use futures_util::StreamExt;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming as Body};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use sse_stream::SseStream;
use tokio::time::timeout;
use tower::Service;

use super::wire::{self, Incoming, LARGEST_MESSAGE, RequestError, said_by_server};
use crate::config::{self, GivenError};
use crate::facts::url::is_public;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The most bytes of one stream of messages.
const LARGEST_STREAM: usize = 4 * LARGEST_MESSAGE;
/// The most bytes of an error's text that are read.
const LARGEST_ERROR: usize = 64 << 10;
/// How long connecting may take, and how long what has no answer gets.
const CONNECT: Duration = Duration::from_secs(10);

type Answer = Result<Value, RequestError>;

/// A server over HTTP.
pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    url: String,
    headers: HeaderMap,
    next: AtomicU64,
    spoken: Mutex<Spoken>,
}

/// What was agreed with the server.
#[derive(Clone, Default)]
struct Spoken {
    session: Option<HeaderValue>,
    revision: Option<HeaderValue>,
    /// The server said that its tools are others now.
    changed: bool,
    ended: Option<String>,
}

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error(transparent)]
    Given(#[from] GivenError),
    #[error("the value of the header {0} cannot be sent")]
    Header(String),
    #[error("the certificates of this machine cannot be read: {0}")]
    Certificates(io::Error),
}

impl Http {
    /// Makes ready to talk to it. Nothing is sent yet.
    pub fn new(server: &config::Http) -> Result<Self, HttpError> {
        let mut headers = HeaderMap::new();
        for (name, given) in &server.headers {
            let refused = || HttpError::Header(name.clone());
            let mut value = HeaderValue::from_str(&given.resolve()?).map_err(|_| refused())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?, value);
        }
        let named = server.url.host_str() == Some("localhost");
        let mut tcp = HttpConnector::new_with_resolver(Resolver { private: server.private || named });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let tls = HttpsConnectorBuilder::new().with_native_roots().map_err(HttpError::Certificates)?;
        let connector = tls.https_or_http().enable_http1().wrap_connector(tcp);
        Ok(Http {
            client: Client::builder(TokioExecutor::new()).build(connector),
            url: server.url.to_string(),
            headers,
            next: AtomicU64::new(1),
            spoken: Mutex::default(),
        })
    }

    /// Makes a request, and waits for its answer. Who stops waiting takes the request back.
    pub async fn request(&self, method: &str, params: &Value, patience: Duration) -> Answer {
        if let Some(why) = self.ended() {
            return Err(RequestError::Ended(why));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut asked = Asked { http: self, id, answered: false };
        let exchange = self.exchange(id, wire::request(id, method, params));
        match timeout(patience, exchange).await {
            Ok(answer) => {
                asked.answered = true;
                answer
            }
            Err(_) => Err(RequestError::TimedOut(patience.as_secs())),
        }
    }

    /// Sends what has no answer, and does not wait.
    pub fn notify(&self, method: &str, params: &Value) {
        self.send_apart(wire::notification(method, params));
    }

    /// The revision that was agreed on: each request names it from then on.
    pub fn agree(&self, revision: &str) {
        self.spoken().revision = HeaderValue::from_str(revision).ok();
    }

    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.spoken().changed)
    }

    pub fn ended(&self) -> Option<String> {
        self.spoken().ended.clone()
    }

    fn spoken(&self) -> std::sync::MutexGuard<'_, Spoken> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_apart(&self, message: Value) {
        let Ok(request) = self.post(&message) else { return };
        let sent = self.client.request(request);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(timeout(CONNECT, sent));
        }
    }

    fn post(&self, message: &Value) -> Result<Request<Full<Bytes>>, RequestError> {
        let body = Full::new(Bytes::from(message.to_string()));
        let request = Request::builder().method(Method::POST).uri(&self.url).body(body);
        let mut request = request.map_err(|error| RequestError::Ended(format!("the server's address: {error}")))?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let spoken = self.spoken().clone();
        headers.extend(spoken.session.map(|session| (SESSION, session)));
        headers.extend(spoken.revision.map(|revision| (REVISION, revision)));
        Ok(request)
    }

    async fn exchange(&self, id: u64, message: Value) -> Answer {
        let response = self.client.request(self.post(&message)?).await;
        let response = response.map_err(|error| RequestError::Unreachable(chain(&error)))?;
        if let Some(session) = response.headers().get(SESSION) {
            self.spoken().session = Some(session.clone());
        }
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(status, response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => {
                let bytes = whole(response, LARGEST_MESSAGE).await?;
                match wire::read(&bytes) {
                    Incoming::Answer(of, answer) if of == id => answer,
                    _ => Err(RequestError::Malformed("it is no answer to what was asked".to_owned())),
                }
            }
            "text/event-stream" => self.stream(id, response).await,
            _ => Err(RequestError::Malformed(format!("status {status} without a message"))),
        }
    }

    /// Reads messages until the answer.
    async fn stream(&self, id: u64, response: Response<Body>) -> Answer {
        let body = Limited::new(response.into_body(), LARGEST_STREAM).map_err(io::Error::other);
        let mut events = std::pin::pin!(SseStream::new(body));
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| RequestError::Malformed(format!("its stream broke off: {error}")))?;
            let Some(data) = event.data else { continue };
            if data.len() > LARGEST_MESSAGE {
                return Err(too_large(LARGEST_MESSAGE));
            }
            match wire::read(data.as_bytes()) {
                Incoming::Answer(of, answer) if of == id => return answer,
                Incoming::Request(reply) => self.send_apart(reply),
                Incoming::Notification(method) => {
                    if method == wire::TOOLS_CHANGED {
                        self.spoken().changed = true;
                    }
                }
                Incoming::Answer(..) | Incoming::Stray => {}
            }
        }
        Err(RequestError::Malformed("its stream ended before the answer".to_owned()))
    }

    async fn refused(&self, status: StatusCode, response: Response<Body>) -> RequestError {
        let in_session = self.spoken().session.is_some();
        if status == StatusCode::NOT_FOUND && in_session {
            let why = "the server has forgotten the session".to_owned();
            self.spoken().ended = Some(why.clone());
            return RequestError::Ended(why);
        }
        let said = match whole(response, LARGEST_ERROR).await {
            Ok(bytes) => match wire::read(&bytes) {
                Incoming::Answer(_, Err(refused)) => return refused,
                _ => said_by_server(&String::from_utf8_lossy(&bytes)),
            },
            Err(_) => String::new(),
        };
        let why = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => " (give it credentials in `headers`)",
            _ if status.is_redirection() => " (redirects are not followed: name the address itself)",
            _ => "",
        };
        RequestError::Status { status: status.as_u16(), why, said }
    }
}

/// A request under way.
struct Asked<'a> {
    http: &'a Http,
    id: u64,
    answered: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.http.notify("notifications/cancelled", &json!({ "requestId": self.id }));
        }
    }
}

fn too_large(most: usize) -> RequestError {
    RequestError::Malformed(format!("it has more than {} MiB", most >> 20))
}

async fn whole(response: Response<Body>, most: usize) -> Result<Bytes, RequestError> {
    match Limited::new(response.into_body(), most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(most)),
        Err(error) => Err(RequestError::Malformed(format!("it broke off: {error}"))),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        told.push_str(": ");
        told.push_str(&inner.to_string());
        source = inner.source();
    }
    told
}

/// Looks names up, and leaves out where only this machine or its network gets. The address that was checked is the one that
/// is connected to.
#[derive(Clone)]
struct Resolver {
    private: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let private = self.private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found.into_iter().filter(|at| private || is_public(at.ip())).collect();
            if allowed.is_empty() {
                let message = format!(
                    "{name} leads to an address of this machine or of a private network, and the configuration does not \
                     say `private = true`"
                );
                return Err(io::Error::other(message));
            }
            Ok(allowed.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_here_is_refused_unless_the_configuration_says_so() {
        let name = || "localhost".parse::<Name>().unwrap();
        let refused = Resolver { private: false }.call(name()).await.err().unwrap().to_string();
        assert!(refused.contains("private = true"), "{refused}");
        assert!(Resolver { private: true }.call(name()).await.is_ok());
    }
}
