//! `portcullis sandbox`: run a program under a profile, without the gate. For people who try a profile out, and for
//! probes.

use std::time::Duration;

use crate::cli::args::{ExecArgs, SandboxCommand};
use crate::cli::{Failure, exit};
use crate::config::Config;
use crate::facts::Surroundings;
use crate::gateway;
use crate::sandbox::{End, Host, Kernel, Launcher, Outcome, Plan, Program, Streams};

/// As timeout(1) says it.
const TIMED_OUT: u8 = 124;

pub(super) fn run(command: &SandboxCommand) -> Result<u8, Failure> {
    match command {
        // Whatever goes wrong before the program starts must not look like an exit code of the program's.
        SandboxCommand::Exec(args) => exec(args).map_err(|failure| Failure { code: exit::SETUP, ..failure }),
    }
}

fn exec(args: &ExecArgs) -> Result<u8, Failure> {
    let plan = plan(args)?;
    let program = Program {
        arguments: args.command.clone(),
        timeout: args.timeout.map_or(plan.wall_limit(), Duration::from_secs),
        streams: Streams::PassThrough,
    };
    match Launcher::new()?.run_blocking(&plan, &program) {
        Ok(outcome) => Ok(code_of(&outcome)),
        Err(error) => {
            anstream::eprintln!("portcullis: sandbox: {error}");
            Ok(error.exit_code())
        }
    }
}

fn plan(args: &ExecArgs) -> Result<Plan, Failure> {
    let config = Config::from_env()?;
    let profile = gateway::profiles(&config)?.named(&args.profile)?;
    let current = std::env::current_dir()?;
    let named = args.workspace.as_ref().unwrap_or(&current);
    let workspace = named
        .canonicalize()
        .map_err(|error| Failure::usage(format!("workspace `{}` cannot be opened: {error}", named.display())))?;
    config.places.refuse_inside(&workspace)?;
    let mut here = Surroundings { gateway: config.places.own(), ..Surroundings::new(&workspace, &config.places.home) };
    if current.starts_with(&workspace) {
        here.cwd = current;
    }
    let mut plan = Plan::new(&profile, Kernel::probe(), &here, &Host::current())?;
    for variable in &args.variables {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (variable.as_str(), std::env::var(variable).unwrap_or_default()),
        };
        if !plan.set_variable(name, &value) {
            return Err(Failure::usage(format!("variable `{name}` may not be set in a sandbox")));
        }
    }
    Ok(plan)
}

fn code_of(outcome: &Outcome) -> u8 {
    match outcome.end {
        End::Exited(code) => u8::try_from(code).unwrap_or(exit::SETUP),
        End::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        End::TimedOut(after) => {
            anstream::eprintln!("portcullis: ended after {} s", after.as_secs());
            TIMED_OUT
        }
        End::OutOfMemory(limit) => over("memory", limit),
        End::OutOfSpace(limit) => over("disk space", limit),
    }
}

/// A program that used too much was killed, and its code says so.
fn over(what: &str, limit: u64) -> u8 {
    anstream::eprintln!("portcullis: ended: it used more than {} MiB of {what}", limit >> 20);
    137
}
