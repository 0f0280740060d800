//! `portcullis mcp`: the gateway's tools for an agent that speaks MCP.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::call::Origin;
use crate::cli::args::{McpArgs, McpCommand, McpServeArgs, Who};
use crate::cli::{Failure, STACK, asked, exit};
use crate::config::Places;
use crate::daemon::errand::Errand;
use crate::mcp::{Patience, Server, Thin, stdio};

pub(super) fn run(args: McpArgs) -> Result<u8, Failure> {
    match args.command {
        Some(McpCommand::Serve(serve)) => self::serve(serve),
        None => self::serve(args.serve),
    }
}

/// Serves standard input and output until the input ends. Nothing but the protocol goes to standard output.
fn serve(args: McpServeArgs) -> Result<u8, Failure> {
    // The library logs messages whole below this level, and they hold what agents send.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(tracing::level_filters::LevelFilter::WARN)
        // Nor does a log that cannot be written end the session.
        .log_internal_errors(false)
        .init();
    let session = args.session.unwrap_or_else(|| format!("mcp-{}", uuid::Uuid::now_v7()));
    let who = Who { agent: args.agent, session, workspace: args.workspace, cwd: None };
    let caller = Errand { origin: Origin::Mcp, ..asked::described(&who, String::new(), &Value::Null)? };
    let thin = Arc::new(Thin::new(Places::from_env()?, caller)?);
    // Calls are judged on these threads, too.
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build()?;
    let (offers, daemon) =
        runtime.block_on(async { Ok::<_, Failure>((thin.offers().await?, thin.through_daemon().await?)) })?;
    // For people; a client that reads no standard error misses nothing.
    let _ = writeln!(
        anstream::stderr(),
        "portcullis: serving MCP to agent {} in session {}, workspace {}; {}",
        offers.agent,
        who.session,
        offers.workspace.display(),
        if daemon { "the running gateway decides" } else { "no gateway runs, so this process decides" }
    );
    let patience = args.wait.map_or_else(Patience::default, |seconds| Patience::of(Duration::from_secs(seconds)));
    let server = Server::thin(thin, patience);
    let served = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let (input, output) = rmcp::transport::stdio_pipes();
        stdio::serve(server, input, output, stop).await.map_err(Failure::from)
    });
    // A pending read of standard input cannot be taken back; it must not keep the process.
    runtime.shutdown_background();
    served.map(|()| exit::OK)
}
