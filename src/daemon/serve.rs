//! Accepting connections, within limits, until the daemon is told to stop.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::{Extension, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;
use tracing::{debug, info, warn};

use crate::daemon::held::Held;
use crate::daemon::idle::Idle;
use crate::daemon::room::{Guest, Room};
use crate::daemon::{Daemon, Listeners, Via};

/// Connections at the same time on each of the two listeners, so that one cannot starve the other.
const MOST_CONNECTIONS: usize = 512;
/// How long a client may take to send a request's head; also how long a connection may lie idle between requests. Longer
/// than common clients keep one (4 to 15 seconds), so that none sends a request on a connection that is just being closed.
const HEAD: Duration = Duration::from_secs(20);
/// The most bytes of a request's head (RFC 9112, section 3, leaves the limit to the server), and the most header fields.
const HEAD_BYTES: usize = 32 * 1024;
const HEAD_FIELDS: usize = 64;
/// How long a client may refuse to take a response's bytes.
const STALLED: Duration = Duration::from_secs(30);
/// How long calls in flight may go on once the daemon was told to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long connections may stay open when no call runs any more.
const LINGER: Duration = Duration::from_secs(1);
/// How long answers get to be written once the last call has been ended.
const FAREWELL: Duration = Duration::from_millis(200);
/// After an error of accept(2) such as "too many open files", so that the loop does not spin.
const BREATH: Duration = Duration::from_millis(100);

/// Serves `routes` until `stop` is ready; each request says among its extensions how it came in ([`Via`]). Then no connection is accepted any more, and those that are open have ten seconds to
/// finish their requests. Calls that go on for longer are ended, with everything that they started, and their end is on
/// record when this returns.
///
/// # Errors
///
/// When the listeners cannot be used.
pub async fn serve(
    daemon: Arc<Daemon>,
    listeners: Listeners,
    routes: Router,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let Listeners { tcp, unix, socket, lock: _held } = listeners;
    let (tcp, unix) = (TcpListener::from_std(tcp)?, UnixListener::from_std(unix)?);
    let graceful = GracefulShutdown::new();
    {
        let mut stop = pin!(stop);
        let over_tcp = accept_tcp(&tcp, routes.clone().layer(Extension(Via::Tcp)), &graceful);
        let over_unix = accept_unix(&unix, routes.layer(Extension(Via::Unix)), &graceful);
        tokio::select! {
            () = &mut stop => {}
            () = over_tcp => {}
            () = over_unix => {}
        }
    }
    drop((tcp, unix));
    // The next daemon makes its own; without one a client should not wait on this.
    if let Err(error) = std::fs::remove_file(&socket) {
        debug!(%error, "the socket could not be removed");
    }
    daemon.close();
    info!(connections = graceful.count(), calls = daemon.running(), "stopping: no new connections");
    if timeout(GRACE, finished(&daemon, graceful)).await.is_err() && daemon.running() > 0 {
        warn!(calls = daemon.running(), "calls that went on for longer than {} s are ended", GRACE.as_secs());
        end_calls(&daemon).await;
    }
    Ok(())
}

/// Ends the calls that still run, records their ends, and lets their callers be told.
pub async fn end_calls(daemon: &Daemon) {
    if daemon.cut_off().await {
        sleep(FAREWELL).await;
    } else {
        warn!(calls = daemon.running(), "these could not be ended: the next start records their outcome as unknown");
    }
}

/// Ready when no call runs any more and every connection is closed, or has had a second to take its answer: one that has
/// not said anything yet would be waited for in vain.
async fn finished(daemon: &Daemon, graceful: GracefulShutdown) {
    let mut closed = pin!(graceful.shutdown());
    let mut all_closed = false;
    let mut quiet = Instant::now();
    loop {
        tokio::select! {
            () = &mut closed, if !all_closed => all_closed = true,
            () = sleep(Duration::from_millis(20)) => {}
        }
        if daemon.running() > 0 {
            quiet = Instant::now();
        } else if all_closed || quiet.elapsed() > LINGER {
            return;
        }
    }
}

async fn accept_tcp(listener: &TcpListener, routes: Router, graceful: &GracefulShutdown) {
    let room = Room::new(MOST_CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                no_delay(&stream);
                connection(stream, routes.clone(), graceful, room.enter().await);
            }
            Err(error) => pause(error).await,
        }
    }
}

async fn accept_unix(listener: &UnixListener, routes: Router, graceful: &GracefulShutdown) {
    let room = Room::new(MOST_CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_ours(&stream) => {
                connection(stream, routes.clone(), graceful, room.enter().await);
            }
            Ok(_) => warn!("another user's process connected to the socket; it was turned away"),
            Err(error) => pause(error).await,
        }
    }
}

fn connection<S>(stream: S, routes: Router, graceful: &GracefulShutdown, guest: Arc<Guest>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEAD_FIELDS)
        .max_header_size(HEAD_BYTES)
        .max_buf_size(2 * HEAD_BYTES);
    let asked = Arc::clone(&guest);
    let answer = service_fn(move |request: Request<Incoming>| {
        let (asking, answered) = (asked.asks(), routes.clone().oneshot(request));
        async move { Ok::<_, Infallible>(answered.await?.map(|body| Held::new(body, asking))) }
    });
    let served = http.serve_connection(TokioIo::new(Idle::new(stream, STALLED)), answer);
    let served = graceful.watch(served);
    tokio::spawn(async move {
        tokio::select! {
            ended = served => if let Err(error) = ended {
                debug!(%error, "a connection ended");
            },
            () = guest.told_to_leave() => debug!("a quiet connection made place for another"),
        }
    });
}

/// Whether the process at the other end runs as this user (SO_PEERCRED, unix(7)).
fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == nix::unistd::geteuid().as_raw())
}

fn no_delay(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "TCP_NODELAY");
    }
}

async fn pause(error: io::Error) {
    warn!(%error, "a connection could not be accepted");
    sleep(BREATH).await;
}
