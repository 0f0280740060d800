//! `portcullis sandbox`: runs a program under a profile, without the gate. For people who try a profile out, and for
//! probes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::facts::Surroundings;
use crate::sandbox::{DEFAULT_PROFILE, End, Host, Kernel, Launcher, Outcome, Plan, Profiles, Program, Streams};

/// What exit code 125 says: the program did not run, or what became of it is not known.
const SETUP_FAILED: u8 = 125;
/// As timeout(1) says it.
const TIMED_OUT: u8 = 124;

#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// Run a program confined, with this terminal's input and output
    ///
    /// Exits with the program's own code; 124 when its time was up, 125 when the sandbox could not be set up, 126 and 127
    /// when the program could not be run or found, 128+n when signal n ended it.
    Exec(Exec),
}

#[derive(Debug, Args)]
pub struct Exec {
    /// The profile to run it in
    #[arg(long, default_value = DEFAULT_PROFILE)]
    profile: String,
    /// Take profiles from this directory as well
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,
    /// The workspace [default: the current directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Let a variable pass, or set one
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    variables: Vec<String>,
    /// Seconds until it is ended, at most the profile's limit [default: the profile's limit]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs a subcommand of `sandbox`.
pub fn run(command: &SandboxCommand) -> ExitCode {
    match command {
        SandboxCommand::Exec(exec) => match exec.run() {
            Ok(code) => ExitCode::from(code),
            Err(message) => {
                anstream::eprintln!("portcullis: {message}");
                ExitCode::from(SETUP_FAILED)
            }
        },
    }
}

impl Exec {
    fn run(&self) -> Result<u8, String> {
        let plan = self.plan()?;
        let launcher = Launcher::new().map_err(|error| format!("the sandbox helper cannot be started: {error}"))?;
        let program = Program {
            arguments: self.command.clone(),
            timeout: self.timeout.map_or(plan.wall_limit(), Duration::from_secs),
            streams: Streams::PassThrough,
        };
        match launcher.run_blocking(&plan, &program) {
            Ok(outcome) => Ok(code_of(&outcome)),
            Err(error) => {
                anstream::eprintln!("portcullis: sandbox: {error}");
                Ok(error.exit_code())
            }
        }
    }

    fn plan(&self) -> Result<Plan, String> {
        let mut profiles = Profiles::built_in().map_err(|error| error.to_string())?;
        if let Some(directory) = &self.profiles {
            profiles.load(directory).map_err(|error| error.to_string())?;
        }
        let profile = profiles.get(&self.profile).ok_or_else(|| {
            let names: Vec<&str> = profiles.iter().map(|p| p.name.as_str()).collect();
            format!("there is no profile `{}`: the profiles are {}", self.profile, names.join(", "))
        })?;
        let current = || std::env::current_dir().map_err(|error| format!("the current directory is gone: {error}"));
        let workspace = match &self.workspace {
            Some(workspace) => workspace.clone(),
            None => current()?,
        };
        let workspace = workspace
            .canonicalize()
            .map_err(|error| format!("workspace `{}` cannot be opened: {error}", workspace.display()))?;
        let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let mut here = Surroundings::new(&workspace, home);
        if let Ok(cwd) = current()
            && cwd.starts_with(&workspace)
        {
            here.cwd = cwd;
        }
        let mut plan = Plan::new(&Arc::clone(profile), Kernel::probe(), &here, &Host::current())
            .map_err(|error| error.to_string())?;
        for variable in &self.variables {
            let (name, value) = match variable.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (variable.as_str(), std::env::var(variable).unwrap_or_default()),
            };
            if !plan.set_variable(name, &value) {
                return Err(format!("variable `{name}` may not be set in a sandbox"));
            }
        }
        Ok(plan)
    }
}

fn code_of(outcome: &Outcome) -> u8 {
    match outcome.end {
        End::Exited(code) => u8::try_from(code).unwrap_or(SETUP_FAILED),
        End::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        End::TimedOut(after) => {
            anstream::eprintln!("portcullis: ended after {} s", after.as_secs());
            TIMED_OUT
        }
    }
}
