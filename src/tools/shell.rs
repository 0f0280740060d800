//! The `Bash` tool: one shell command, confined.

use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::firewall::Cleared;
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::sandbox::{End, LaunchError, Launcher, Leftover, NOT_ALL_KEPT, Outcome, Plan, Program, Streams};

/// How long a command may run when the call does not say, in seconds.
const DEFAULT_TIMEOUT: u64 = 120;
/// The most bytes of output that are passed on.
const MAX_OUTPUT: usize = 100 * 1024;

/// Runs `bash -c` under the plan that the firewall made for the call.
pub struct Bash {
    definition: Definition,
    launcher: Arc<Launcher>,
}

impl Bash {
    pub fn new(launcher: Arc<Launcher>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "minLength": 1, "description": "The command line, for bash." },
                "cwd": { "type": "string", "description": "Working directory; the workspace's root by default." },
                "timeout": {
                    "type": "integer", "minimum": 1, "maximum": 86400,
                    "description": "Seconds until the command is ended; 120 by default, at most what the sandbox profile allows."
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        let definition = Definition {
            name: "Bash".into(),
            description:
                "Runs a bash command in the workspace, inside a sandbox: only the workspace and $TMPDIR can be \
                          written, and the network is off unless the profile opens it. Each call starts a new shell; \
                          nothing it leaves running survives the call. Returns what it printed and its exit code."
                    .into(),
            parameters,
            sensitivity: Sensitivity::Sensitive,
            groups: &[],
            subjects: &[Subject::Command { argument: "command" }],
            max_output: MAX_OUTPUT,
            upstream: None,
        };
        Bash { definition, launcher }
    }

    async fn run(&self, cleared: Cleared) -> Result<Output, ToolError> {
        let call = cleared.call();
        let command = call.text("command").ok_or_else(|| ToolError::Failed("the call has no `command`".to_owned()))?;
        let plan = cleared
            .confinement()
            .ok_or_else(|| ToolError::Setup("the call was cleared without a confinement; nothing ran".to_owned()))?;
        let timeout = call.arguments.get("timeout").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT);
        self.run_in(plan.clone(), command, Duration::from_secs(timeout)).await
    }

    async fn run_in(&self, plan: Plan, command: &str, timeout: Duration) -> Result<Output, ToolError> {
        let arguments = ["/bin/bash", "--noprofile", "--norc", "-c", command].map(str::to_owned).to_vec();
        let program = Program { arguments, timeout, streams: Streams::Capture };
        match self.launcher.run(plan, program).await {
            Ok(outcome) => Ok(output(&outcome)),
            Err(error @ LaunchError::Setup { .. }) => Err(ToolError::Setup(error.to_string())),
            Err(error) => Err(ToolError::Failed(error.to_string())),
        }
    }
}

impl Tool for Bash {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute(&self, cleared: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>> {
        Box::pin(self.run(cleared))
    }
}

/// How a command is told of a limit that it went over.
fn over(what: &str, limit: u64) -> String {
    format!("[ended: it used more than {} MiB of {what}; everything that it started was ended]", limit >> 20)
}

/// What the model sees: the output, the errors under a heading of their own, and how it ended unless that was 0.
fn output(outcome: &Outcome) -> Output {
    // Whatever one stream does not need of the limit, the other may use.
    let room = MAX_OUTPUT - 1024;
    let stderr_room = outcome.stderr.len().min((room / 4).max(room.saturating_sub(outcome.stdout.len())));
    let stdout = outcome.stdout.text(room - stderr_room);
    let stderr = outcome.stderr.text(stderr_room);
    let mut text = stdout;
    if !stderr.trim().is_empty() {
        separate(&mut text);
        text.push_str("[stderr]\n");
        text.push_str(&stderr);
    }
    let is_error = outcome.end != End::Exited(0);
    let (end, code) = match outcome.end {
        End::Exited(code) => (format!("[exit code {code}]"), Some(code)),
        End::Signalled(libc::SIGSYS) => {
            ("[killed by SIGSYS: a system call that the sandbox does not allow]".to_owned(), None)
        }
        End::Signalled(signal) => (format!("[killed by signal {}]", signal_name(signal)), None),
        End::TimedOut(after) => (
            format!(
                "[timed out after {} s; everything the command started was ended. Ask for a longer `timeout`, or do less at a time]",
                after.as_secs()
            ),
            None,
        ),
        End::OutOfMemory(limit) => (over("memory", limit), None),
        End::OutOfSpace(limit) => (over("disk space", limit), None),
    };
    if is_error {
        separate(&mut text);
        text.push_str(&end);
    }
    if outcome.left_behind {
        separate(&mut text);
        text.push_str("[some processes of the command could not be ended]");
    }
    if text.is_empty() {
        text.push_str("[no output, exit code 0]");
    }
    for denial in &outcome.denials {
        separate(&mut text);
        let _ = write!(text, "[probably refused by the sandbox, as far as the messages tell: {denial}]");
    }
    for leftover in outcome.leftovers.iter().filter(|leftover| **leftover != Leftover::NotAllSeen) {
        separate(&mut text);
        let _ = write!(text, "[sandbox: {leftover}]");
    }
    let structured = json!({
        "exit_code": code,
        "signal": match outcome.end { End::Signalled(signal) => Some(signal), _ => None },
        "timed_out": matches!(outcome.end, End::TimedOut(_)),
        "out_of_memory": matches!(outcome.end, End::OutOfMemory(_)),
        "out_of_space": matches!(outcome.end, End::OutOfSpace(_)),
        "denials": outcome.denials,
        "notes": notes(outcome),
        "stdout_dropped": outcome.stdout.dropped(),
        "stderr_dropped": outcome.stderr.dropped(),
        "elapsed_ms": u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
    });
    Output { text, structured: Some(structured), is_error, raw: None }
}

/// What the record keeps of refusals and of what the command left: sentences, a guess called so.
fn notes(outcome: &Outcome) -> Vec<String> {
    let denials = outcome.denials.iter().map(|denial| format!("guess, from the messages: refused {}", denial.what));
    let unkept = outcome.not_all_kept.then(|| NOT_ALL_KEPT.to_owned());
    denials.chain(outcome.leftovers.iter().map(ToString::to_string)).chain(unkept).collect()
}

fn separate(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn signal_name(signal: i32) -> String {
    nix::sys::signal::Signal::try_from(signal).map_or_else(
        |_| {
            let mut name = String::new();
            let _ = write!(name, "{signal}");
            name
        },
        |known| known.as_str().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Capture;

    fn outcome(end: End, stdout: &[u8], stderr: &[u8]) -> Outcome {
        let keep = |bytes: &[u8]| {
            let mut capture = Capture::new(MAX_OUTPUT);
            capture.push(bytes);
            capture
        };
        let (stdout, stderr) = (keep(stdout), keep(stderr));
        let (denials, leftovers) = (Vec::new(), Vec::new());
        let (elapsed, left_behind, not_all_kept) = (Duration::ZERO, false, false);
        Outcome { end, stdout, stderr, elapsed, left_behind, denials, leftovers, not_all_kept }
    }

    #[test]
    fn the_text_says_how_it_ended() {
        for (end, stdout, stderr, text) in [
            (End::Exited(0), "hi\n", "", "hi\n"),
            (End::Exited(0), "", "", "[no output, exit code 0]"),
            (End::Exited(3), "a", "b\n", "a\n[stderr]\nb\n[exit code 3]"),
            (End::Signalled(9), "", "", "[killed by signal SIGKILL]"),
            (End::Signalled(31), "", "", "[killed by SIGSYS: a system call that the sandbox does not allow]"),
            (End::Signalled(40), "", "", "[killed by signal 40]"),
        ] {
            let output = output(&outcome(end, stdout.as_bytes(), stderr.as_bytes()));
            assert_eq!(output.text, text, "{end:?}");
            assert_eq!(output.is_error, end != End::Exited(0), "{end:?}");
        }
    }

    #[test]
    fn refusals_and_leftovers_are_told_and_a_guess_is_called_one() {
        let denial = crate::sandbox::Denial { what: "network is off".into(), allow: "another profile".into() };
        let hook = Leftover::Hook { path: "a/.git/hooks/x".into() };
        let leftovers = vec![hook, Leftover::NotAllSeen];
        let output = output(&Outcome { denials: vec![denial], leftovers, ..outcome(End::Exited(6), b"", b"no") });
        assert_eq!(
            output.text,
            "[stderr]\nno\n[exit code 6]\n[probably refused by the sandbox, as far as the messages tell: network is off; \
             another profile]\n[sandbox: the command wrote the git hook a/.git/hooks/x; it is out of use as \
             a/.git/hooks/x.quarantined]"
        );
        let notes = output.structured.unwrap()["notes"].clone();
        assert_eq!(notes[0], "guess, from the messages: refused network is off");
        assert_eq!(notes.as_array().unwrap().len(), 3, "what was not seen is on record: {notes}");
    }

    #[test]
    fn i6_the_limit_holds_for_both_streams_together_and_is_said() {
        let big = vec![b'x'; 10 * MAX_OUTPUT];
        for (stdout, stderr) in [(&big[..], &b""[..]), (b"", &big), (&big, &big), (&big, b"short")] {
            let output = output(&outcome(End::Exited(1), stdout, stderr));
            assert!(output.text.len() <= MAX_OUTPUT, "{} bytes of text", output.text.len());
            assert!(output.text.len() > MAX_OUTPUT * 9 / 10, "only {} bytes of text were used", output.text.len());
            assert!(output.text.contains("bytes truncated"), "the cut is not said");
            assert!(stderr.len() != 5 || output.text.contains("[stderr]\nshort"), "the short stream was cut");
        }
    }
}
