//! Who asks, and from where: `Host`, `Origin` and the credential.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tracing::warn;

use crate::approval::{CredentialError, Role};
use crate::daemon::{Daemon, Held};
use crate::gateway::RecordError;
use crate::http::Problem;

/// Whom a request's credential speaks for. Handlers find it among the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub role: Role,
}

impl Identity {
    /// The agent's name.
    ///
    /// # Errors
    ///
    /// 403 for a person: calls are made in an agent's name.
    pub fn agent(&self) -> Result<&str, Problem> {
        match &self.role {
            Role::Agent(name) => Ok(name),
            Role::Operator(_) | Role::Reviewer(_) => {
                let detail = format!("{} is a person; calls are made with an agent's token", self.role);
                Err(Problem::forbidden(detail).next("`portcullis login` says where the agents' tokens are"))
            }
        }
    }

    /// Somebody who may look at approvals and answer them.
    ///
    /// # Errors
    ///
    /// 403 for an agent (invariant I7).
    pub fn person(&self) -> Result<&Role, Problem> {
        match &self.role {
            Role::Agent(_) => {
                let detail = format!("{} may not see or answer approvals: an agent cannot approve itself", self.role);
                Err(Problem::forbidden(detail).next("use an operator's or a reviewer's token"))
            }
            Role::Operator(_) | Role::Reviewer(_) => Ok(&self.role),
        }
    }
}

/// Lets only requests pass that were meant for this server, and that no foreign page makes a browser send. A page that
/// points its own name at 127.0.0.1 (DNS rebinding) has a foreign `Host`; one that posts across sites a foreign `Origin`.
pub(super) async fn same_site(
    State(daemon): State<Arc<Daemon>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    host(&request)?;
    origin(request.headers(), daemon.address().port())?;
    Ok(next.run(request).await)
}

fn host(request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().and_then(|text| text.parse::<Authority>().ok()),
        (None, _) | (Some(_), Some(_)) => None,
    };
    let host =
        host.ok_or_else(|| Problem::bad_request("the request needs exactly one sound `Host` header").closing())?;
    // The authority of a request's target wins over `Host` (RFC 9112, section 3.2.2), so both count.
    let sound = [Some(&host), request.uri().authority()].into_iter().flatten().all(is_ours);
    if sound {
        return Ok(());
    }
    let detail = "the `Host` header names another server than this one";
    let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", "Not for this server", detail);
    Err(problem.next("address the gateway as 127.0.0.1, [::1] or localhost").closing())
}

/// This machine, and a port where one is named; not a user (RFC 9112, section 3.2).
fn is_ours(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    let plain = rest.is_some_and(|rest| rest.is_empty() || authority.port_u16().is_some());
    plain && is_loopback(authority.host())
}

fn is_loopback(host: &str) -> bool {
    matches!(host.to_ascii_lowercase().as_str(), "127.0.0.1" | "[::1]" | "localhost")
}

fn origin(headers: &HeaderMap, port: u16) -> Result<(), Problem> {
    let own = |text: &str| {
        let authority = text.strip_prefix("http://").and_then(|rest| rest.parse::<Authority>().ok());
        authority.is_some_and(|a| is_loopback(a.host()) && a.port_u16().unwrap_or(80) == port)
    };
    let foreign = headers.get_all(ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(own));
    if foreign {
        let detail = "the request comes from a page of another site (its `Origin` header is not this gateway)";
        let problem = Problem::new(StatusCode::FORBIDDEN, "foreign-origin", "Not from there", detail);
        return Err(problem.closing());
    }
    Ok(())
}

/// Puts the [`Identity`] of the request's bearer token (RFC 6750, section 2.1) among its extensions.
pub(super) async fn authenticate(
    State(daemon): State<Arc<Daemon>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let role = {
        let token = bearer(request.headers())?;
        // A look at a few rows, compared in constant time; a token that has not the form of one is refused before that.
        match daemon.gateway().role_of(token) {
            Ok(role) => role,
            Err(RecordError::Credential(CredentialError::Unknown)) => {
                note_failure();
                let detail = "the credential is not known to this gateway: it is mistyped, was revoked, or belongs to another one";
                return Err(Problem::unauthorized(detail).closing());
            }
            Err(error) => return Err(error.into()),
        }
    };
    let share = match &role {
        Role::Agent(name) => Some(daemon.requests().try_take(name).ok_or_else(crowded)?),
        Role::Operator(_) | Role::Reviewer(_) => None,
    };
    let identity = Identity { role };
    request.extensions_mut().insert(identity.clone());
    let mut response = next.run(request).await;
    // For the log.
    response.extensions_mut().insert(identity);
    // An answer that goes on, as a stream of events does, is a request that goes on.
    Ok(match share {
        Some(share) => response.map(|body| Body::new(Held::new(body, share))),
        None => response,
    })
}

fn crowded() -> Problem {
    let detail = "too many requests of agents are being answered, of this one or of all of them";
    Problem::unavailable(detail).next("end some, or make the same request again later").closing()
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let token = match (given.next(), given.next()) {
        (Some(value), None) => value.to_str().ok().and_then(|text| {
            let (scheme, token) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        }),
        (None, _) => None,
        (Some(_), Some(_)) => return Err(Problem::bad_request("the request has two `Authorization` headers").closing()),
    };
    token.ok_or_else(|| Problem::unauthorized("the request has no bearer token").closing())
}

/// Wrong credentials are told of at most once in this time, however many there are.
const TOLD: Duration = Duration::from_secs(10);

/// Every connection of a loopback server comes from the same address, so nobody is locked out for another's guesses. A
/// guess ends its connection, is cheap to refuse, and has 256 random bits to find.
fn note_failure() {
    static FAILURES: AtomicU64 = AtomicU64::new(0);
    static LAST: std::sync::Mutex<Option<Instant>> = std::sync::Mutex::new(None);
    FAILURES.fetch_add(1, Ordering::Relaxed);
    let Ok(mut last) = LAST.try_lock() else { return };
    if last.is_none_or(|last| last.elapsed() > TOLD) {
        *last = Some(Instant::now());
        warn!(wrong = FAILURES.swap(0, Ordering::Relaxed), "requests with unknown credentials were refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str, hosts: &[&str]) -> Request {
        let mut request = axum::http::Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_requests_for_this_machine_pass() {
        for (uri, hosts, fine) in [
            ("/", &["127.0.0.1:8460"][..], true),
            ("/", &["LOCALHOST"], true),
            ("/", &["[::1]:9"], true),
            ("/", &[], false),
            ("/", &["localhost", "localhost"], false),
            ("/", &["evil.example"], false),
            ("/", &["localhost.evil.example"], false),
            ("/", &["127.0.0.1.evil.example:8460"], false),
            ("/", &["localhost@evil.example"], false),
            ("/", &["operator@localhost"], false),
            ("/", &["localhost:x"], false),
            ("/", &["localhost:99999"], false),
            ("/", &["localhost."], false),
            ("/", &["0.0.0.0:8460"], false),
            ("http://evil.example/", &["localhost"], false),
            ("http://127.0.0.1/", &["127.0.0.1"], true),
        ] {
            assert_eq!(host(&asked(uri, hosts)).is_ok(), fine, "{uri} {hosts:?}");
        }
    }

    #[test]
    fn only_this_servers_own_pages_pass() {
        for (origins, fine) in [
            (&[][..], true),
            (&["http://127.0.0.1:8460"][..], true),
            (&["http://localhost:8460"], true),
            (&["http://[::1]:8460"], true),
            (&["http://localhost:3000"], false),
            (&["http://localhost"], false),
            (&["https://127.0.0.1:8460"], false),
            (&["null"], false),
            (&["http://evil.example"], false),
            (&["http://127.0.0.1:8460.evil.example"], false),
            (&["http://127.0.0.1:8460", "http://evil.example"], false),
        ] {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(origin(&headers, 8460).is_ok(), fine, "{origins:?}");
        }
    }

    #[test]
    fn i7_an_agent_is_no_person_and_a_person_no_agent() {
        let identity = |role: fn(String) -> Role| Identity { role: role("x".to_owned()) };
        assert!(identity(Role::Agent).person().is_err() && identity(Role::Agent).agent().is_ok());
        for role in [Role::Operator, Role::Reviewer] {
            assert!(identity(role).person().is_ok() && identity(role).agent().is_err());
        }
    }
}
