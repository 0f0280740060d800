//! The command line: one file a subcommand.

use std::process::ExitCode;

/// Parses the command line and runs it.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
