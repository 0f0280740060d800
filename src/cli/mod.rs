//! The command line: one file a subcommand.

mod approvals;
mod args;
mod asked;
mod audit;
mod check;
mod doctor;
mod doctor_host;
mod explain;
mod gate;
mod hook;
mod init;
mod install;
mod login;
mod mcp;
mod mcp_client;
mod on_disk;
mod policy;
mod prompt;
mod render;
mod rules;
mod run;
mod sandbox;
mod screen;
mod serve;
mod tools;
mod upstreams;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use clap::{CommandFactory, Parser};

use self::args::{CheckArgs, Cli, Command, Format, RunArgs};
pub(crate) use self::check::{Line, judge_lines};

/// Exit codes, the same for every subcommand (`run` adds the command's own).
pub mod exit {
    /// Allowed, done, sound.
    pub const OK: u8 = 0;
    /// A tool said that it failed.
    pub const FAILED: u8 = 1;
    /// Denied, or not sound. 2, so that a mistaken use as an agent's hook blocks.
    pub const DENIED: u8 = 2;
    /// A person has to approve first.
    pub const ASKS: u8 = 3;
    /// Wrong usage, as in `sysexits.h`.
    pub const USAGE: u8 = 64;
    /// An internal error, as in `sysexits.h`.
    pub const INTERNAL: u8 = 70;
    /// The sandbox could not be set up.
    pub const SETUP: u8 = 125;
}

/// Enough for the deepest command and policy that the limits admit.
pub(crate) const STACK: usize = 64 << 20;

/// Parses the command line and runs it.
pub fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "help") {
        // clap's own `help` has no help of its own.
        words.retain(|word| word != "--help" && word != "-h");
    }
    let words_of_hook = words.get(1).is_some_and(|word| word == "hook");
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for and fine; everything else is wrong usage.
            if !error.use_stderr() {
                let _ = error.print();
                return ExitCode::from(exit::OK);
            }
            // An agent's program that starts a hook goes on at most codes, and blocks at this one.
            let code = if words_of_hook { exit::DENIED } else { exit::USAGE };
            if wants_json(std::env::args_os()) {
                tell_json(&error.render().to_string(), code);
            } else {
                let _ = error.print();
            }
            return ExitCode::from(code);
        }
    };
    let worker = thread::Builder::new().name("portcullis".to_owned()).stack_size(STACK).spawn(move || dispatch(cli));
    let code = match worker.map(thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => {
            complain(
                "something inside Portcullis failed; nothing was allowed. Please report the message above as a bug",
            );
            exit::INTERNAL
        }
        Err(error) => {
            complain(&format!("cannot start a thread: {error}"));
            exit::INTERNAL
        }
    };
    ExitCode::from(code)
}

/// Whether a command line that cannot be understood asks for JSON all the same.
fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<OsString> = args.collect();
    args.iter().any(|arg| arg == "--output=json")
        || args.windows(2).any(|pair| matches!(pair, [name, value] if name == "--output" && value == "json"))
}

/// Why nothing was answered, for a caller that reads JSON.
fn tell_json(message: &str, code: u8) {
    let told = serde_json::json!({ "error": { "message": message.trim_end(), "code": code } });
    let _ = writeln!(io::stdout(), "{told}");
}

fn dispatch(cli: Cli) -> u8 {
    cli.color.write_global();
    let as_json = match &cli.command {
        Command::Run(RunArgs { output, .. }) | Command::Check(CheckArgs { output, .. }) => *output == Format::Json,
        _ => false,
    };
    let done = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::run(args),
        Command::Explain(args) => explain::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Login(args) => login::run(args),
        Command::Tools(args) => tools::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Policy { command } => policy::run(command),
        Command::Rules { command } => rules::run(command),
        Command::Audit { command } => audit::run(command),
        Command::Approvals { command } => approvals::run(command),
        Command::Init(args) => init::run(args),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Hook(args) => hook::run(args),
        Command::HookJudge => hook::judge(),
        Command::Mcp(args) => mcp::run(args),
        Command::Sandbox { command } => sandbox::run(&command),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut io::stdout());
            Ok(exit::OK)
        }
    };
    done.unwrap_or_else(|failure| {
        if as_json {
            tell_json(&failure.message, failure.code);
        } else {
            complain(&failure.message);
        }
        failure.code
    })
}

/// Why a subcommand gave up: what to tell the user, and the exit code.
#[derive(Debug)]
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn usage(message: impl Into<String>) -> Self {
        Failure { message: message.into(), code: exit::USAGE }
    }
}

/// Errors that reach the command line are the user's to mend: configuration, arguments, files.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let told = inner.to_string();
            if !message.contains(&told) {
                message.push_str(": ");
                message.push_str(&told);
            }
            source = inner.source();
        }
        Failure { message, code: exit::USAGE }
    }
}

fn complain(message: &str) {
    let style = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
    // Standard error may be closed; there is nobody left to tell then.
    let _ = writeln!(render::err(), "{style}portcullis:{style:#} {message}");
}
