//! MCP over streamable HTTP, at `/mcp`.
//!
//! Authentication is the surrounding router's: it puts an [`Identity`] into the request's extensions. Here only agents
//! are let in, and a session belongs to the agent that began it.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, request::Parts};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use rmcp::ErrorData;
use rmcp::model::{Extensions, JsonRpcError};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Semaphore;

use crate::approval::Role;
use crate::call::Digest;
use crate::gateway::Gateway;
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
/// Sessions of the revisions that have them, of all agents together.
const MOST_SESSIONS: usize = 1024;
/// How long such a session may be idle.
const SESSION_IDLE: Duration = Duration::from_secs(3600);
const LONGEST_SESSION_NAME: usize = 64;

const MCP_SESSION: &str = "mcp-session-id";
const MCP_VERSION: &str = "mcp-protocol-version";
/// The first revision without sessions; revisions are dates and compare as text.
const STATELESS: &str = "2026-07-28";

/// The route `/mcp`, to be merged into a router that authenticates. Agents whose configuration names no place work in
/// `workspace`; each call takes one of the `turns` while it runs. Once `stop` is ready the sessions are closed, and the
/// calls that still run two seconds later are ended. Must be called inside a runtime.
pub fn service<S: Clone + Send + Sync + 'static>(
    gateway: Arc<Gateway>,
    workspace: PathBuf,
    turns: Arc<Semaphore>,
    patience: Patience,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Router<S> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE);
    let sessions = Arc::new(sessions);
    let server = Server::authenticated(gateway, workspace, patience, turns);
    // An empty list of origins would switch the check off, and one without ports would be read as any port.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(LARGEST_BODY);
    let end = config.cancellation_token.clone();
    tokio::spawn(async move {
        stop.await;
        end.cancel();
    });
    let mcp = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
    let door = Arc::new(Door { sessions, owners: Mutex::default() });
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
    /// The agent that began each session.
    owners: Mutex<HashMap<String, String>>,
}

impl Door {
    fn owner(&self, session: &str) -> Option<String> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned()
    }

    /// Remembers whose session it is, and forgets those that have ended.
    async fn admit(&self, session: String, agent: String) {
        let open = self.sessions.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|id, _| open.contains_key(id.as_str()));
        owners.insert(session, agent);
    }
}

async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let agent = match request.extensions().get::<Identity>().map(Identity::agent) {
        Some(Ok(agent)) => agent.to_owned(),
        Some(Err(problem)) => return problem.into_response(),
        None => return (StatusCode::UNAUTHORIZED, "present an agent's token").into_response(),
    };
    let headers = request.headers();
    if headers.get(SESSION_HEADER).is_some() && text(headers, SESSION_HEADER).is_none_or(|name| !is_session(name)) {
        let message = format!(
            "{SESSION_HEADER} must be 1 to {LONGEST_SESSION_NAME} letters, digits, `.`, `_` or `-`, and be given once"
        );
        return (StatusCode::BAD_REQUEST, message).into_response();
    }
    if headers.get(WAIT_HEADER).is_some() && text(headers, WAIT_HEADER).and_then(wait).is_none() {
        let message = format!("{WAIT_HEADER} must be seconds from 0 to {}, and be given once", LONGEST_WAIT.as_secs());
        return (StatusCode::BAD_REQUEST, message).into_response();
    }
    let begins = match headers.get(MCP_SESSION) {
        Some(id) => {
            let owner = id.to_str().ok().and_then(|id| door.owner(id));
            if owner.as_deref() != Some(agent.as_str()) || headers.get_all(MCP_SESSION).iter().count() > 1 {
                return (StatusCode::NOT_FOUND, "there is no such session; begin a new one").into_response();
            }
            false
        }
        None => request.method() == Method::POST && text(headers, MCP_VERSION).is_none_or(|v| v < STATELESS),
    };
    if begins && door.sessions.sessions.read().await.len() >= MOST_SESSIONS {
        let message = format!("{MOST_SESSIONS} sessions are open; end some, or use a revision without sessions");
        return (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    }
    let request = match sound(request).await {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    let response = next.run(request).await;
    if let Some(id) = text(response.headers(), MCP_SESSION).filter(|_| begins) {
        door.admit(id.to_owned(), agent).await;
    }
    response
}

/// A message that came whole, in time, and is one. Everything else is answered here: the library waits for a body as long
/// as it takes, and answers what is no message as if it were of another media type.
async fn sound(request: Request) -> Result<Request, Response> {
    let essence = text(request.headers(), "content-type").and_then(|value| value.split(';').next());
    if request.method() != Method::POST || !essence.is_some_and(|e| e.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let bytes = body::read(body, LARGEST_BODY).await.map_err(IntoResponse::into_response)?;
    let answer = |error: &JsonRpcError| (StatusCode::BAD_REQUEST, Json(error)).into_response();
    if let Err(error) = json::parse(&bytes) {
        let error = ErrorData::parse_error(format!("the message is not the JSON that is taken: {error}"), None);
        return Err(answer(&JsonRpcError::new(None, error)));
    }
    match stdio::parse(&bytes) {
        Ok(Some(_)) => Ok(Request::from_parts(parts, Body::from(bytes))),
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
