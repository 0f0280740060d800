//! What agents' programs do with a hook's answer, by their documented rules. Where documents differ, the rule that lets more
//! run is taken: what holds under it holds under the other.

use serde_json::Value;

/// How a hook ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// None where it was killed or had no time.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// What the program does then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It goes on as if there were no hook: by its own rules, with its own prompts.
    Runs,
    /// It asks a person.
    Asks,
    Blocks,
}

/// A program, as `install` sets it up.
pub fn does(host: &str, event: &str, mode: &str, ended: &Ended) -> Does {
    use Does::{Asks, Blocks, Runs};
    let out = ended.stdout.trim();
    let json: Option<Value> = serde_json::from_str(out).ok();
    let text = |pointer: &str| json.as_ref().and_then(|json| json.pointer(pointer)).and_then(Value::as_str);
    match host {
        "claude" => match ended.code {
            Some(0) => match text("/hookSpecificOutput/permissionDecision") {
                Some("deny") => Blocks,
                // In the others some versions pass over it.
                Some("ask") if matches!(mode, "default" | "plan" | "acceptEdits") => Asks,
                _ => Runs,
            },
            Some(2) => Blocks,
            _ => Runs,
        },
        "codex" => match ended.code {
            Some(0) if text("/hookSpecificOutput/permissionDecision") == Some("deny") => Blocks,
            Some(2) if !ended.stderr.trim().is_empty() => Blocks,
            // "ask" is no answer, and neither is 2 without a reason.
            _ => Runs,
        },
        "gemini" => match ended.code {
            Some(0) if matches!(text("/decision"), Some("deny" | "block")) => Blocks,
            Some(2) => Blocks,
            _ => Runs,
        },
        // With "failClosed": true.
        "cursor" => match (ended.code, &json) {
            (Some(0), Some(json)) if event == "beforeSubmitPrompt" => {
                if json.get("continue") == Some(&Value::Bool(false)) { Blocks } else { Runs }
            }
            (Some(0), Some(_)) => match text("/permission") {
                Some("deny") => Blocks,
                Some("ask") if matches!(event, "beforeShellExecution" | "beforeMCPExecution") => Asks,
                _ => Runs,
            },
            _ => Blocks,
        },
        "copilot" => match ended.code {
            Some(0) if text("/permissionDecision") == Some("deny") || text("/behavior") == Some("deny") => Blocks,
            Some(0) if text("/permissionDecision") == Some("ask") => Asks,
            _ => Runs,
        },
        // The plugin that `install` writes.
        "opencode" => match ended.code {
            Some(0) if text("/decision") == Some("allow") => Runs,
            _ => Blocks,
        },
        "windsurf" => match ended.code {
            Some(2) => Blocks,
            _ => Runs,
        },
        "cline" => match (ended.code, &json) {
            (Some(0), None) if out.is_empty() => Runs,
            (Some(0), Some(json)) if json.get("cancel") != Some(&Value::Bool(true)) => Runs,
            _ => Blocks,
        },
        "openhands" => match ended.code {
            Some(0) if text("/decision") == Some("deny") => Blocks,
            Some(2) => Blocks,
            _ => Runs,
        },
        // As README.md says.
        "generic" => match (ended.code, text("/decision")) {
            (Some(0), Some("allow")) => Runs,
            (Some(0), Some("ask")) => Asks,
            _ => Blocks,
        },
        other => panic!("no rules for {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that make this hard: a program that goes on at anything else must be seen to do so here.
    #[test]
    fn programs_that_go_on_at_anything_else_do_so_here() {
        let ended = |code, stdout: &str| Ended { code, stdout: stdout.to_owned(), stderr: String::new() };
        for host in ["claude", "codex", "gemini", "copilot", "windsurf", "openhands"] {
            for code in [Some(1), Some(64), Some(70), None] {
                assert_eq!(does(host, "PreToolUse", "default", &ended(code, "no")), Does::Runs, "{host} {code:?}");
            }
        }
        let ask = r#"{"hookSpecificOutput": {"permissionDecision": "ask"}}"#;
        assert_eq!(does("codex", "PreToolUse", "default", &ended(Some(0), ask)), Does::Runs);
        assert_eq!(does("codex", "PreToolUse", "default", &ended(Some(2), "")), Does::Runs);
        assert_eq!(does("claude", "PreToolUse", "bypassPermissions", &ended(Some(0), ask)), Does::Runs);
        assert_eq!(does("cursor", "beforeReadFile", "", &ended(Some(0), r#"{"permission": "ask"}"#)), Does::Runs);
        assert_eq!(does("cursor", "beforeReadFile", "", &ended(Some(0), "")), Does::Blocks);
        assert_eq!(does("cline", "PreToolUse", "", &ended(Some(0), "")), Does::Runs);
    }
}
