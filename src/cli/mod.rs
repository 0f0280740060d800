//! The command line: one file a subcommand.

pub mod sandbox;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
enum Command {
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
}

/// Parses the command line and runs it.
pub fn main() -> ExitCode {
    match Command::parse() {
        Command::Sandbox(command) => sandbox::run(&command),
    }
}
