//! `portcullis hook`: the gateway in front of the tools of an agent's own program.

use std::io::{self, Read, Write};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::cli::args::HookArgs;
use crate::cli::gate::Gate;
use crate::cli::{Failure, exit};
use crate::daemon::hosted::{HostErrand, Said};
use crate::hook::process::{self, Reply};
use crate::hook::{Terms, hosts};

pub(super) fn run(args: HookArgs) -> Result<u8, Failure> {
    let unknown = || Failure { message: format!("there is no agent `{}`", args.host), code: exit::DENIED };
    let host = hosts::named(&args.host).ok_or_else(unknown)?;
    if args.asks && host.name != "generic" {
        let message = format!("--asks is for the generic form; what {} does is known", host.title);
        return Err(Failure { message, code: exit::DENIED });
    }
    let terms = Terms { agent: args.agent, event: args.event, confine: args.confine, asks: args.asks };
    Ok(process::run(host, terms, Duration::from_secs(args.deadline)))
}

/// Reads an errand from standard input, and does it in this process.
pub(super) fn judge() -> Result<u8, Failure> {
    // Nobody hears the answer once the process is gone that asked.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let reply = match answer(&bytes) {
        Ok(said) => Reply::Said(said),
        Err(failure) => Reply::Failed(failure.message),
    };
    writeln!(io::stdout(), "{}", serde_json::to_string(&reply)?)?;
    Ok(exit::OK)
}

fn answer(bytes: &[u8]) -> Result<Said, Failure> {
    let errand: HostErrand = serde_json::from_slice(bytes)?;
    Gate::open()?.hosted(&errand)
}
