//! The `portcullis` binary: hands the command line to [`portcullis::cli`] and exits with its code.

use std::process::ExitCode;

use portcullis::sandbox::HELPER_ARGUMENT;

fn main() -> ExitCode {
    // First of all, before anything that starts a thread or takes time: the sandbox's helper.
    if std::env::args_os().nth(1).is_some_and(|word| word == HELPER_ARGUMENT) {
        return portcullis::sandbox::helper_main();
    }
    portcullis::cli::main()
}
