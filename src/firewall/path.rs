//! Stage: path. Maps the paths of a call to findings.

use crate::call::Call;
use crate::facts::path::{Access, COMMAND, PathFact, ProtectedAction};
use crate::facts::{Facts, SandboxFacts, Scope};
use crate::verdict::{Finding, Severity};

/// Device files that every program may use: they hold nothing, and lead nowhere.
const HARMLESS_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/ptmx",
];
/// Directories of the process's own open files.
const OWN_FILES: &[&str] = &["/dev/fd", "/proc/self/fd"];

/// Judges every path. A tool's argument is opened by the gateway itself, so the workspace is its limit. A path inside a
/// command is opened by a confined program, so reading the operating system is no matter here.
pub(super) fn judge(call: &Call, facts: &Facts, restrict_to_workspace: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts.paths.iter().flat_map(|path| of_path(path, restrict_to_workspace)).collect();
    let left = facts.paths.iter().filter(|path| is_left_to_sandbox(path)).count();
    if facts.sandbox.as_ref().is_some_and(SandboxFacts::is_none) {
        findings.extend(facts.paths.iter().filter_map(of_unconfined));
        findings.extend(call.text("command").filter(|text| text.contains(['$', '`'])).map(|_| expands()));
    } else if left > 0 {
        let message = "what the command reads outside of the workspace, its confinement refuses or lets it: \
                       `portcullis sandbox plan` says which";
        findings.push(finding("path.left-to-sandbox", Severity::Note, message.to_owned()));
    }
    findings
}

/// A file that a command looks into, at a place where that is no matter of this stage.
fn is_left_to_sandbox(path: &PathFact) -> bool {
    path.argument == COMMAND
        && path.access == Access::Read
        && matches!(path.scope, Scope::Temp | Scope::System | Scope::Root)
        && !OWN_FILES.iter().any(|own| is_below(&path.given, own))
}

/// Reads of files whose names are known only when the command runs are no facts; a confinement holds for them.
fn expands() -> Finding {
    let message =
        "what the command reads can depend on values that are known only when it runs, and no sandbox confines it";
    finding("path.unconfined", Severity::Warn, message.to_owned()).safer("write the paths out")
}

/// What a confinement would keep a command from, where there is none.
fn of_unconfined(path: &PathFact) -> Option<Finding> {
    let runs = path.argument == COMMAND && path.access == Access::Execute && path.scope != Scope::System;
    let reads = is_left_to_sandbox(path) || path.access == Access::Read && path.scope == Scope::Unknown;
    if !(runs || reads && path.argument == COMMAND) {
        return None;
    }
    let place = if path.scope == Scope::Unknown { "a path that cannot be known".to_owned() } else { shown(path) };
    let message = format!("the command {} {place}, and no sandbox confines it", verb(path.access));
    Some(
        finding("path.unconfined", Severity::Warn, message)
            .safer("use programs of the system on files of the workspace, or have the gateway run it"),
    )
}

fn of_path(path: &PathFact, restricted: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(problem) = &path.problem {
        findings.push(
            finding("path.unusable", Severity::Deny, format!("{} cannot be used: {problem}", shown(path)))
                .safer("name a regular file or a directory inside the workspace, relative to its root"),
        );
    }
    if path.scope == Scope::Gateway {
        findings.push(
            finding("path.gateway", Severity::Fatal, format!("{} belongs to the gateway itself", shown(path)))
                .safer("leave the gateway's files alone; an operator can show or change them with `portcullis`"),
        );
    } else if path.problem.is_none() {
        let place = if path.argument == COMMAND { of_command(path, restricted) } else { of_tool(path, restricted) };
        findings.extend(place);
    }
    findings.extend(protected(path));
    if let Some(reason) = &path.unchecked {
        let severity = if path.access.changes() { Severity::Warn } else { Severity::Note };
        findings.push(
            finding("path.not-fully-checked", severity, format!("{}: {reason}", shown(path)))
                .safer("copy the file to a name of its own and work on the copy"),
        );
    }
    findings
}

fn of_tool(path: &PathFact, restricted: bool) -> Option<Finding> {
    match path.scope {
        Scope::Workspace | Scope::WriteRoot => None,
        Scope::ReadRoot if !path.access.changes() => None,
        Scope::ReadRoot => Some(read_only(path)),
        // Handled before.
        Scope::Gateway => None,
        Scope::Temp
        | Scope::Home
        | Scope::OtherHome
        | Scope::System
        | Scope::Device
        | Scope::Root
        | Scope::Outside
        | Scope::Unknown => Some(outside(path, if restricted { Severity::Deny } else { Severity::Note })),
    }
}

fn of_command(path: &PathFact, restricted: bool) -> Option<Finding> {
    let unless_free = if restricted { Severity::Deny } else { Severity::Note };
    match path.scope {
        Scope::Workspace | Scope::WriteRoot | Scope::Temp | Scope::Gateway => None,
        Scope::Device if is_harmless(&path.given) => None,
        Scope::System if OWN_FILES.iter().any(|own| is_below(&path.given, own)) => None,
        // What a command reads, its confinement limits whatever the name.
        Scope::Unknown => Some(
            finding(
                "path.unknown",
                if path.access.changes() { Severity::Warn } else { Severity::Note },
                format!("the command {} a path that cannot be known before it runs", verb(path.access)),
            )
            .safer("write the path out"),
        ),
        Scope::ReadRoot if path.access.changes() => Some(read_only(path)),
        Scope::ReadRoot => None,
        Scope::Device => Some(
            finding(
                "path.device",
                Severity::Deny,
                format!("the command {} the device {}", verb(path.access), shown(path)),
            )
            .safer("use a regular file inside the workspace"),
        ),
        Scope::System | Scope::Root | Scope::OtherHome if path.access.changes() => Some(outside(path, Severity::Deny)),
        Scope::System | Scope::Root => None,
        // A program that is installed in a home directory is run, not shown.
        Scope::Home | Scope::Outside | Scope::OtherHome if path.access == Access::Execute => {
            Some(outside(path, Severity::Note))
        }
        Scope::Home | Scope::Outside | Scope::OtherHome => Some(outside(path, unless_free)),
    }
}

fn protected(path: &PathFact) -> Option<Finding> {
    let protected = path.protected.as_ref()?;
    let (severity, advice) = match protected.action {
        ProtectedAction::Ask => (Severity::Warn, "work without it, or say why it is needed when the operator is asked"),
        ProtectedAction::Deny => (Severity::Deny, "work without it; an operator can change the protected paths"),
    };
    let which = elsewhere(path).map_or_else(String::new, |lands| format!(", which is {},", quoted(lands)));
    let message = format!("{}{which} is protected (`{}`)", shown(path), protected.glob);
    Some(finding("path.protected", severity, message).safer(advice))
}

fn outside(path: &PathFact, severity: Severity) -> Finding {
    let message = if path.argument == COMMAND {
        format!("the command {} {}, which is outside the workspace", verb(path.access), shown(path))
    } else {
        format!("{} is outside the workspace", shown(path))
    };
    finding("path.outside-workspace", severity, message)
        .safer("use a path inside the workspace, relative to its root, and copy there what is needed")
}

fn read_only(path: &PathFact) -> Finding {
    finding("path.read-only-root", Severity::Deny, format!("{} may be read and not changed", shown(path)))
        .safer("copy it into the workspace and change the copy")
}

fn finding(id: &str, severity: Severity, message: String) -> Finding {
    Finding::new(id, severity, message)
}

fn verb(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::Write => "writes",
        Access::Delete => "deletes",
        Access::Execute => "runs",
    }
}

/// Where a path lands, should its name not say so itself.
fn elsewhere(path: &PathFact) -> Option<&str> {
    path.elsewhere().filter(|lands| !path.given.starts_with('/') || !std::path::Path::new(&path.given).ends_with(lands))
}

/// The path as it was given, safe to print.
fn shown(path: &PathFact) -> String {
    quoted(&path.given)
}

fn quoted(path: &str) -> String {
    const LONGEST: usize = 200;
    let mut text: String = path.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if path.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    format!("`{text}`")
}

fn is_harmless(given: &str) -> bool {
    HARMLESS_DEVICES.contains(&given) || OWN_FILES.iter().any(|own| is_below(given, own))
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && !rest.contains("..")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::path::Protected;

    fn fact(argument: &str, given: &str, access: Access, scope: Scope) -> PathFact {
        PathFact {
            argument: argument.into(),
            given: given.into(),
            access,
            scope,
            lands: None,
            protected: None,
            problem: None,
            unchecked: None,
        }
    }

    fn worst(path: &PathFact, restricted: bool) -> Option<Severity> {
        of_path(path, restricted).into_iter().map(|f| f.severity).max()
    }

    #[test]
    fn tools_stay_inside_the_workspace() {
        use Access::{Read, Write};
        use Severity::{Deny, Fatal, Note};
        for (scope, access, restricted, expected) in [
            (Scope::Workspace, Write, true, None),
            (Scope::ReadRoot, Read, true, None),
            (Scope::ReadRoot, Write, true, Some(Deny)),
            (Scope::ReadRoot, Write, false, Some(Deny)),
            (Scope::WriteRoot, Write, true, None),
            (Scope::Home, Read, true, Some(Deny)),
            (Scope::Home, Read, false, Some(Note)),
            (Scope::System, Write, true, Some(Deny)),
            (Scope::Temp, Write, true, Some(Deny)),
            (Scope::Unknown, Read, true, Some(Deny)),
            (Scope::Gateway, Read, false, Some(Fatal)),
        ] {
            let path = fact("path", "x", access, scope);
            assert_eq!(worst(&path, restricted), expected, "{access:?} {scope:?} restricted={restricted}");
        }
    }

    #[test]
    fn ordinary_commands_raise_nothing() {
        for (given, access, scope) in [
            ("/etc/hosts", Access::Read, Scope::System),
            ("/usr/bin/env", Access::Execute, Scope::System),
            ("/tmp/r.tgz", Access::Write, Scope::Temp),
            ("/dev/null", Access::Write, Scope::Device),
            ("/dev/stdin", Access::Read, Scope::Device),
            ("/dev/fd/3", Access::Read, Scope::Device),
            ("/proc/self/fd/3", Access::Write, Scope::System),
            ("/", Access::Read, Scope::Root),
        ] {
            assert_eq!(of_path(&fact(COMMAND, given, access, scope), true), [], "{access:?} {given}");
        }
    }

    #[test]
    fn commands_that_reach_outside_are_refused() {
        use Severity::{Deny, Fatal, Note, Warn};
        for (given, access, scope, restricted, expected) in [
            ("/etc/hosts", Access::Write, Scope::System, true, Deny),
            ("/etc/hosts", Access::Write, Scope::System, false, Deny),
            ("/", Access::Delete, Scope::Root, false, Deny),
            ("/dev/sda", Access::Read, Scope::Device, false, Deny),
            ("/dev/fd/../sda", Access::Write, Scope::Device, true, Deny),
            ("/home/alice/notes", Access::Read, Scope::Home, true, Deny),
            ("/home/alice/notes", Access::Read, Scope::Home, false, Note),
            ("/home/alice/.cargo/bin/cargo", Access::Execute, Scope::Home, true, Note),
            ("/data/x", Access::Write, Scope::ReadRoot, false, Deny),
            ("", Access::Delete, Scope::Unknown, true, Warn),
            ("", Access::Read, Scope::Unknown, true, Note),
            ("/state", Access::Read, Scope::Gateway, false, Fatal),
        ] {
            let path = fact(COMMAND, given, access, scope);
            assert_eq!(worst(&path, restricted), Some(expected), "{access:?} {given} restricted={restricted}");
        }
    }

    #[test]
    fn i6_a_limit_that_was_hit_is_a_finding() {
        let mut path = fact("path", "a", Access::Write, Scope::Workspace);
        path.unchecked = Some("too many files".into());
        assert_eq!(worst(&path, true), Some(Severity::Warn));
        path.access = Access::Read;
        assert_eq!(worst(&path, true), Some(Severity::Note));
    }

    #[test]
    fn i2_a_path_with_a_problem_is_never_let_through() {
        for argument in ["path", COMMAND] {
            let mut path = fact(argument, "a\u{1b}[31m", Access::Read, Scope::Workspace);
            path.problem = Some("a control character".into());
            let findings = of_path(&path, false);
            assert_eq!(findings.iter().map(|f| f.severity).max(), Some(Severity::Deny), "{argument}");
            assert!(findings.iter().all(|f| !f.message.contains('\u{1b}')), "the message is safe to print");
        }
    }

    #[test]
    fn protected_paths_ask_or_are_refused_and_every_finding_gives_advice() {
        for (action, expected) in [(ProtectedAction::Ask, Severity::Warn), (ProtectedAction::Deny, Severity::Deny)] {
            let mut path = fact("path", ".env", Access::Read, Scope::Workspace);
            path.protected = Some(Protected { glob: ".env".into(), action });
            assert_eq!(worst(&path, true), Some(expected));
            assert!(of_path(&path, true).iter().all(|f| f.safer.is_some()));
        }
    }
}
