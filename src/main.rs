//! The `portcullis` binary: hands the command line to [`portcullis::cli`] and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    portcullis::cli::main()
}
