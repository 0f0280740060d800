//! `portcullis serve`: the daemon.

use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;

use crate::cli::args::ServeArgs;
use crate::cli::{Failure, STACK, exit};
use crate::config::{self, Config};
use crate::daemon::{self, Daemon, Listeners};
use crate::gateway::Gateway;
use crate::{http, mcp};

const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8460);

/// Which messages are logged where `PORTCULLIS_LOG` does not say otherwise.
const LOGGED: &str = "portcullis=info,warn";

/// Threads that may wait for files, the disk and calls at the same time: two for each call, and some for the books.
const THREADS: usize = 400;

/// Files that may be open at the same time: both listeners' connections, and what the calls open.
const FILES: u64 = 8192;

pub(super) fn run(args: ServeArgs) -> Result<u8, Failure> {
    log_to_stderr()?;
    let config = Config::from_env()?;
    let address = config::loopback(args.listen.or(config.file.serve.listen).unwrap_or(ADDRESS))?;
    let workspace = match args.workspace {
        Some(dir) => dir.canonicalize().map_err(|e| Failure::usage(format!("--workspace {}: {e}", dir.display())))?,
        None => std::env::current_dir()?,
    };
    // Where an agent works whose configuration names no place.
    if config.file.agents.is_empty() || config.file.agents.iter().any(|agent| agent.workspace.is_none()) {
        config.places.refuse_inside(&workspace)?;
    }
    more_files();
    let loaded = daemon::Files::of(&config);
    let gateway = Arc::new(Gateway::open(config)?);
    let listeners = Listeners::bind(&gateway.config().places, address)?;
    let tokens = gateway.agent_tokens()?;
    let daemon = Arc::new(Daemon::new(gateway, workspace, listeners.address()?));
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_name("portcullis")
        .thread_stack_size(STACK)
        .max_blocking_threads(THREADS)
        .build()?;
    let served = runtime.block_on(async {
        announce(&daemon, &listeners, &tokens);
        serve(Arc::clone(&daemon), listeners, loaded).await
    });
    // Whatever is still running is ended with the process; its records are on disk.
    if let Err(error) = daemon.gateway().sync() {
        error!(%error, "the last records may not be on disk");
    }
    runtime.shutdown_background();
    served?;
    Ok(exit::OK)
}

/// Lets the daemon hold more files and connections than a shell's usual limit of 1024, where the system's allows it.
fn more_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let wanted = FILES.min(hard);
        if soft < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        warn!(%error, "the limit of open files stays as it is");
    }
}

async fn serve(daemon: Arc<Daemon>, listeners: Listeners, loaded: daemon::Files) -> io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let hangup = signal(SignalKind::hangup())?;
    let (sender, hangups) = mpsc::channel(1);
    let following = tokio::spawn({
        let daemon = Arc::clone(&daemon);
        async move {
            tokio::join!(daemon::follow_changes(&daemon, hangups, loaded), forward(hangup, sender));
        }
    });
    let agents = mcp::http::routes(&daemon, mcp::Patience::default());
    let routes = http::router(Arc::clone(&daemon), agents);
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => info!("SIGTERM"),
            _ = interrupt.recv() => info!("SIGINT"),
        }
    };
    let again = again(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let served = tokio::select! {
        served = daemon::serve(Arc::clone(&daemon), listeners, routes, stop) => served,
        () = again => {
            warn!("told to stop twice: calls in flight are ended");
            daemon::end_calls(&daemon).await;
            Ok(())
        }
    };
    following.abort();
    served
}

/// Ready at the second signal.
async fn again(mut terminate: Signal, mut interrupt: Signal) {
    for _ in 0..2 {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

async fn forward(mut hangup: Signal, sender: mpsc::Sender<()>) {
    while hangup.recv().await.is_some() {
        info!("SIGHUP");
        // A full channel holds a request to reload already.
        let _ = sender.try_send(());
    }
}

fn announce(daemon: &Daemon, listeners: &Listeners, tokens: &[(String, PathBuf)]) {
    let address = format!("http://{}", daemon.address());
    let (socket, workspace) = (listeners.socket.display(), daemon.workspace().display());
    info!(%address, %socket, %workspace, pid = std::process::id(), "serving; `portcullis login` says how to reach it");
    for (agent, file) in tokens {
        info!(%agent, token_file = %file.display(), "the agent's token lies here");
    }
}

/// Lines for people on a terminal, JSON for everything else.
fn log_to_stderr() -> Result<(), Failure> {
    let words = std::env::var("PORTCULLIS_LOG").unwrap_or_else(|_| LOGGED.to_owned());
    let filter = EnvFilter::try_new(&words)
        .map_err(|e| Failure::usage(format!("PORTCULLIS_LOG is `{words}`: {e}; write for instance {LOGGED}")))?;
    // A log that cannot be written (a full disk, a reader that is gone) must not take the daemon with it: the library would
    // say so on standard error, where it cannot be said either, and panic.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    let set = if io::stderr().is_terminal() { lines.try_init() } else { lines.json().flatten_event(true).try_init() };
    set.map_err(|e| Failure { message: format!("the log cannot be set up: {e}"), code: exit::INTERNAL })
}
