//! MCP over streamable HTTP, at `/mcp`.
//!
//! Authentication is the surrounding router's: it puts an [`Identity`] into the request's extensions. Here only agents
//! are let in, and a session belongs to the agent that began it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, request::Parts};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use rmcp::ErrorData;
use rmcp::model::{Extensions, JsonRpcError, RequestId};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tracing::warn;

use crate::approval::Role;
use crate::call::Digest;
use crate::daemon::Daemon;
use crate::http::{Identity, body};
use crate::json;
use crate::mcp::{Patience, Server, stdio};

/// The header in which a client may name the gateway's session, so that one history and its grants span connections.
pub const SESSION_HEADER: &str = "portcullis-session";
/// The header in which a client may say how many seconds its calls wait for a person.
pub const WAIT_HEADER: &str = "portcullis-wait";
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// The most bytes of one request's body.
const LARGEST_BODY: usize = 4 << 20;
/// Sessions that one agent may have, in the revisions that have them. Clients often leave theirs behind, so one more ends
/// the one that was used the longest ago.
const MOST_SESSIONS: usize = 256;
/// How long such a session may be idle.
const SESSION_IDLE: Duration = Duration::from_secs(3600);
const LONGEST_SESSION_NAME: usize = 64;

const MCP_SESSION: &str = "mcp-session-id";

/// The route `/mcp`, for a router that authenticates.
pub fn routes(daemon: &Arc<Daemon>, patience: Patience) -> Router<Arc<Daemon>> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE);
    // An answer that was sent is not kept for a client that comes back for it: what is kept has no limit but its age.
    sessions.session_config.completed_cache_ttl = Duration::ZERO;
    let sessions = Arc::new(sessions);
    let server = Server::authenticated(Arc::clone(daemon), patience);
    // An empty list of origins would switch the check off, and one without ports would be read as any port.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(LARGEST_BODY);
    let mcp = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
    let door = Arc::new(Door { sessions, owned: Mutex::default() });
    Router::new().route_service("/mcp", mcp).layer(from_fn_with_state(door, guard))
}

/// What a request's head says.
pub(super) struct Head {
    pub agent: String,
    /// The gateway's session, named after the agent, so that no agent reaches into the history of another.
    pub session: String,
    /// How long its calls wait for a person, where the client says so.
    pub wait: Option<Duration>,
}

impl Head {
    /// The head of the request that brought a message.
    pub fn of(extensions: &Extensions) -> Result<Self, ErrorData> {
        let lost = || ErrorData::internal_error("the request lost its identity on the way", None);
        let parts = extensions.get::<Parts>().ok_or_else(lost)?;
        let identity = parts.extensions.get::<Identity>().ok_or_else(lost)?;
        let Role::Agent(agent) = &identity.role else { return Err(lost()) };
        let name = match (text(&parts.headers, SESSION_HEADER), text(&parts.headers, MCP_SESSION)) {
            (Some(chosen), _) => chosen.to_owned(),
            // The id speaks for its holder, so it is not put on record itself.
            (None, Some(id)) => Digest::of(id).to_string().chars().take(16).collect(),
            (None, None) => "mcp".to_owned(),
        };
        let wait = text(&parts.headers, WAIT_HEADER).and_then(wait);
        Ok(Head { agent: agent.clone(), session: format!("{agent}/{name}"), wait })
    }
}

/// Who may come in.
struct Door {
    sessions: Arc<LocalSessionManager>,
    owned: Mutex<HashMap<String, Owned>>,
}

/// An open session.
struct Owned {
    /// The agent that began it.
    agent: String,
    used: Instant,
}

impl Door {
    /// Whether it is this agent's session. It has been used, then.
    fn opens(&self, session: &str, agent: &str) -> bool {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = owned.get_mut(session).filter(|owned| owned.agent == agent) else { return false };
        found.used = Instant::now();
        true
    }

    /// Remembers whose session it is, and forgets those that have ended.
    async fn admit(&self, session: String, agent: String) {
        let surplus = {
            let open = self.sessions.sessions.read().await;
            let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
            owned.retain(|id, _| open.contains_key(id.as_str()));
            owned.insert(session, Owned { agent: agent.clone(), used: Instant::now() });
            let mine = owned.iter().filter(|(_, owned)| owned.agent == agent);
            let oldest = mine.clone().min_by_key(|(_, owned)| owned.used).map(|(id, _)| id.clone());
            oldest.filter(|_| mine.count() > MOST_SESSIONS)
        };
        if let Some(id) = surplus
            && let Err(error) = self.sessions.close_session(&id.into()).await
        {
            warn!(%error, "a session could not be closed");
        }
    }
}

async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let agent = match request.extensions().get::<Identity>().map(Identity::agent) {
        Some(Ok(agent)) => agent.to_owned(),
        Some(Err(problem)) => return problem.into_response(),
        None => return (StatusCode::UNAUTHORIZED, "present an agent's token").into_response(),
    };
    if let Err(wrong) = own_headers(request.headers()) {
        return (StatusCode::BAD_REQUEST, wrong).into_response();
    }
    let in_session = request.headers().contains_key(MCP_SESSION);
    if in_session && !text(request.headers(), MCP_SESSION).is_some_and(|id| door.opens(id, &agent)) {
        return (StatusCode::NOT_FOUND, "there is no such session; begin a new one").into_response();
    }
    let (request, initializes) = match sound(request).await {
        Ok(sound) => sound,
        Err(answer) => return answer,
    };
    let Some(id) = initializes else { return next.run(request).await };
    if in_session {
        let error = JsonRpcError::new(Some(id), stdio::initialized());
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    // Apart from the connection: a client that hangs up meanwhile leaves no session behind that is nobody's.
    let begun = tokio::spawn(async move {
        let response = next.run(request).await;
        if let Some(id) = text(response.headers(), MCP_SESSION) {
            door.admit(id.to_owned(), agent).await;
        }
        response
    });
    begun.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// Checks the headers that are this server's own, and says what is wrong with them.
fn own_headers(headers: &HeaderMap) -> Result<(), String> {
    if headers.contains_key(SESSION_HEADER) && !text(headers, SESSION_HEADER).is_some_and(is_session) {
        return Err(format!(
            "{SESSION_HEADER} must be 1 to {LONGEST_SESSION_NAME} letters, digits, `.`, `_` or `-`, and be given once"
        ));
    }
    if headers.contains_key(WAIT_HEADER) && text(headers, WAIT_HEADER).and_then(wait).is_none() {
        return Err(format!("{WAIT_HEADER} must be seconds from 0 to {}, and be given once", LONGEST_WAIT.as_secs()));
    }
    Ok(())
}

/// A message that came whole, in time, and is one; and its id where it begins a session. Everything else is answered here: the
/// library waits for a body as long as it takes, and answers what is no message as if it were of another media type.
async fn sound(request: Request) -> Result<(Request, Option<RequestId>), Response> {
    let essence = text(request.headers(), "content-type").and_then(|value| value.split(';').next());
    if request.method() != Method::POST || !essence.is_some_and(|e| e.trim().eq_ignore_ascii_case("application/json")) {
        return Ok((request, None));
    }
    let (parts, body) = request.into_parts();
    let bytes = body::read(body, LARGEST_BODY).await.map_err(IntoResponse::into_response)?;
    let answer = |error: &JsonRpcError| (StatusCode::BAD_REQUEST, Json(error)).into_response();
    if let Err(error) = json::parse(&bytes) {
        let error = ErrorData::parse_error(format!("the message is not the JSON that is taken: {error}"), None);
        return Err(answer(&JsonRpcError::new(None, error)));
    }
    match stdio::parse(&bytes) {
        Ok(Some(message)) => {
            let begins = stdio::initializes(&message).cloned();
            Ok((Request::from_parts(parts, Body::from(bytes)), begins))
        }
        Ok(None) => Err(StatusCode::ACCEPTED.into_response()),
        Err(error) => Err(answer(&error)),
    }
}

/// A header that is there once, as text.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

fn wait(seconds: &str) -> Option<Duration> {
    let plain = seconds.bytes().all(|byte| byte.is_ascii_digit());
    seconds.parse().ok().map(Duration::from_secs).filter(|time| plain && *time <= LONGEST_WAIT)
}

fn is_session(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=LONGEST_SESSION_NAME).contains(&name.len()) && name.bytes().all(plain)
}
