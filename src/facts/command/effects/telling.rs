//! Calls that only tell something: help, a version, what would be done. Most programs look at every option before they do
//! anything, wherever it stands; one that does not know an option refuses the call. Programs that hand their arguments on
//! have no such options of their own after the first words.

use crate::facts::command::wrappers;

/// Words with which a wrapper hands the rest on, so that an option after them is another program's.
const HANDS_ON: &[&str] = &["run", "exec", "x", "dlx", "create", "start", "debug", "shell", "ssh"];

/// Wrappers that have subcommands of their own too.
const OF_MANY_COMMANDS: &[&str] = &[
    "docker",
    "docker-compose",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "heroku",
    "fly",
    "flyctl",
    "railway",
    "netlify",
    "eb",
    "vault",
    "nomad",
    "doppler",
    "vagrant",
    "cargo",
    "uv",
    "poetry",
    "conda",
    "rustup",
    "gcloud",
    "aws",
    "mix",
    "dotnet",
    "tailscale",
];

/// Programs that ignore options which they do not know, or take any word as data.
const CARELESS: &[&str] = &[
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "redis-cli",
    "valkey-cli",
    "keydb-cli",
    "curl",
    "http",
    "https",
    "xh",
    "wget",
    "kill",
    "echo",
    "service",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "at",
    "batch",
    "history",
    "find",
    "dd",
];

/// Whether a call shows help or a version instead of doing its work. What follows `--` is data.
pub(crate) fn helps(args: &[String]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| matches!(arg.as_str(), "--help" | "--version" | "-help"))
}

/// Whether the rules for a program have nothing to object to, because the call only tells.
pub(crate) fn only_tells(program: &str, args: &[String]) -> bool {
    // `--version` often takes a version elsewhere.
    let told =
        |(at, arg): (usize, &String)| is_help(program, arg) && (at == 0 || arg != "--version") || is_dry(program, arg);
    let Some(at) = args.iter().take_while(|arg| *arg != "--").enumerate().position(told) else {
        return lists_rights(program, args) || asks_for_topic(program, args);
    };
    if !wrappers::names().any(|name| name == program) {
        return true;
    }
    // Of a wrapper that has commands of its own, an option after such a command alone.
    let before = args.get(..at).unwrap_or_default();
    let word =
        |arg: &String| arg.chars().all(|c| c.is_ascii_alphanumeric() || "-:_".contains(c)) && !arg.starts_with('-');
    at == 0
        || OF_MANY_COMMANDS.contains(&program)
            && before.first().is_some_and(|first| !HANDS_ON.contains(&first.as_str()))
            && before.iter().all(word)
            && !before.iter().any(|arg| arg == "exec" || arg == "run")
}

fn is_help(program: &str, arg: &str) -> bool {
    let deaf = ["kill", "echo", "service", "redis-cli", "valkey-cli", "keydb-cli", "history"];
    !deaf.contains(&program) && matches!(arg, "--help" | "--version" | "-help") || arg == "/?" && is_windows(program)
}

/// Programs of Windows, whose help is `/?`.
fn is_windows(program: &str) -> bool {
    const NAMES: &[&str] = &[
        "format", "reg", "schtasks", "sc", "net", "netsh", "vssadmin", "bcdedit", "diskpart", "wevtutil", "icacls",
        "takeown", "robocopy", "cipher", "shutdown", "taskkill", "wbadmin", "dism", "fsutil", "auditpol",
    ];
    NAMES.contains(&program)
}

fn is_dry(program: &str, arg: &str) -> bool {
    let value = match arg.split_once('=') {
        Some(("--dry-run" | "--dryrun" | "--what-if", value)) => value,
        None if matches!(arg, "--dry-run" | "--dryrun" | "--what-if" | "--simulate" | "--just-print") => "true",
        _ => return false,
    };
    !CARELESS.contains(&program) && !matches!(value, "none" | "false" | "0" | "off" | "no")
}

/// `sudo -l` lists what may be done.
fn lists_rights(program: &str, args: &[String]) -> bool {
    matches!(program, "sudo" | "doas")
        && args.first().is_some_and(|arg| matches!(arg.as_str(), "-l" | "-ll" | "--list" | "-K" | "-k" | "-V" | "-h"))
}

/// `terraform help destroy`, `aws ec2 terminate-instances help`.
fn asks_for_topic(program: &str, args: &[String]) -> bool {
    let topical = OF_MANY_COMMANDS.contains(&program)
        || matches!(
            program,
            "git" | "terraform" | "tofu" | "pulumi" | "helm" | "gh" | "glab" | "az" | "systemctl" | "gem"
        );
    topical && args.first().is_some_and(|arg| arg == "help")
        || program == "aws" && args.last().is_some_and(|arg| arg == "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tells(command: &str) -> bool {
        let mut words = command.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        only_tells(&program, &words.collect::<Vec<_>>())
    }

    #[test]
    fn help_and_dry_runs_are_told_from_the_same_words_for_another_program() {
        for command in [
            "journalctl --vacuum-time=1s --help",
            "docker system prune --help",
            "kubectl delete ns x --dry-run=server",
            "terraform destroy -help",
            "terraform help destroy",
            "aws ec2 terminate-instances help",
            "sudo -l",
            "sudo --help",
            "cargo publish --dry-run",
            "helm uninstall web --dry-run",
        ] {
            assert!(tells(command), "{command}");
        }
        for command in [
            "kubectl delete ns x --dry-run=none",
            "kubectl delete ns x -- --dry-run",
            "docker run --privileged alpine --help",
            "kubectl exec web -- rm --help",
            "sudo apt remove x --help",
            "npm unpublish x --dry-run",
            "redis-cli flushall --help",
            "cargo yank acme --version 1.0.0",
            "timeout 5 rm --help",
            "sudo ls -l",
            "git push --force",
        ] {
            assert!(!tells(command), "{command}");
        }
    }
}
