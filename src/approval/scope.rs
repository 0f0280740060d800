//! How far a grant reaches: one call, the same call for the rest of the session, or commands of the session that begin
//! alike.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::call::{Call, Digest};
use crate::facts::Facts;
use crate::facts::command::Parse;

/// What a grant covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "covers", rename_all = "kebab-case")]
pub enum Scope {
    /// The call that asked, once.
    #[default]
    Call,
    /// The same call, for the rest of the session.
    Same,
    /// In the session, commands that begin with these words, and do what the one that asked does.
    Prefix { words: Vec<String> },
}

/// What a person chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// This call, once.
    #[default]
    Call,
    /// This very call, for the rest of the session.
    Same,
    /// Commands of the session that begin alike, where that is to be had.
    Prefix,
}

/// Programs that run no others, whatever their options say. Of every other one, a command that begins alike may do
/// anything: an interpreter, a wrapper, `git` with its hooks and pagers, `find` with `-exec`, `tar` with
/// `--checkpoint-action`.
const PLAIN: &[&str] = &[
    "basename",
    "cat",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cp",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "expand",
    "false",
    "file",
    "fmt",
    "fold",
    "getent",
    "grep",
    "groups",
    "head",
    "hexdump",
    "hostname",
    "id",
    "join",
    "jq",
    "ln",
    "ls",
    "lsblk",
    "md5sum",
    "mkdir",
    "mktemp",
    "nl",
    "nproc",
    "od",
    "paste",
    "pgrep",
    "pr",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shasum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "touch",
    "tr",
    "tree",
    "true",
    "tsort",
    "tty",
    "uname",
    "unexpand",
    "uniq",
    "uptime",
    "wc",
    "which",
    "whoami",
    "xxd",
];

/// What tells whether a command is like one that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Like {
    /// Of everything that a grant binds besides the arguments: who, where, the rules, the confinement.
    pub frame: Digest,
    /// The words of the command, where a scope of commands that begin alike is to be had.
    pub words: Option<Vec<String>>,
    /// What the command does.
    pub effects: BTreeSet<String>,
}

impl Like {
    pub fn of(call: &Call, facts: &Facts, frame: Digest) -> Self {
        let words = call.text("command").and_then(|text| plain_words(text, facts));
        let effects = facts.command.iter().flat_map(|command| &command.effects).map(|effect| effect.0.clone());
        Like { frame, words, effects: effects.collect() }
    }

    /// The beginning of the command that a grant could be for: the program with the options that follow it.
    pub fn prefix(&self) -> Option<Vec<String>> {
        let words = self.words.as_ref()?;
        let options = words.iter().skip(1).take_while(|word| word.starts_with('-')).count();
        words.get(..=options).map(<[String]>::to_vec)
    }

    /// Whether a command is one of those that begin with `words` and do no more than `self`.
    pub fn admits(&self, words: &[String], other: &Like) -> bool {
        self.frame == other.frame
            && other.words.as_ref().is_some_and(|theirs| theirs.starts_with(words))
            && other.effects.is_subset(&self.effects)
    }
}

/// The words of a command that is one call of a plain program, written without anything that a shell acts on.
fn plain_words(text: &str, facts: &Facts) -> Option<Vec<String>> {
    let command = facts.command.as_ref()?;
    let harmless =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '.' | '/' | ':' | '@' | '%' | '+' | '-' | ',');
    if !text.chars().all(harmless) || command.parse != Parse::Complete || !command.scripts.is_empty() {
        return None;
    }
    let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    let program = words.first()?;
    let alone = command.programs.iter().eq([program]);
    (alone && PLAIN.contains(&program.as_str())).then_some(words)
}

/// What a scope would have allowed of the last calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    pub scope: Scope,
    /// How many calls were looked at.
    pub calls: usize,
    /// How many of them asked, and would not have.
    pub allowed: usize,
    /// Some of those, the newest first.
    pub examples: Vec<String>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::call::{Mode, Origin, Principal, Sensitivity};
    use crate::facts::command::Guard;
    use crate::facts::{SessionFacts, Surroundings};

    fn like(text: &str) -> Like {
        let guard = Guard::read(&[]).unwrap();
        let here = Surroundings::new(Path::new("/w"), Path::new("/home/u"));
        let facts = Facts {
            sensitivity: Sensitivity::Sensitive,
            command: Some(guard.analyse(text, &here)),
            urls: Vec::new(),
            mcp: None,
            paths: Vec::new(),
            sandbox: None,
            session: SessionFacts::default(),
            now: Timestamp::UNIX_EPOCH,
            notes: Vec::new(),
        };
        let call = Call {
            id: "c".into(),
            tool: "Bash".into(),
            arguments: serde_json::from_value(json!({ "command": text })).unwrap(),
            cwd: "/w".into(),
            principal: Principal {
                agent: "a".into(),
                sub_agent: None,
                teams: Vec::new(),
                session: "s".into(),
                mode: Mode::Default,
                unattended: false,
            },
            origin: Origin::Library,
            caller_id: None,
        };
        Like::of(&call, &facts, Digest::of("frame"))
    }

    #[test]
    fn only_a_plain_call_of_a_plain_program_has_commands_like_it() {
        assert_eq!(like("grep -rn todo src").prefix(), Some(vec!["grep".into(), "-rn".into()]));
        assert_eq!(like("ls").prefix(), Some(vec!["ls".into()]));
        for text in [
            "git log",
            "python3 -c pass",
            "bash -c ls",
            "env ls",
            "sudo ls",
            "xargs ls",
            "find . -name x",
            "ls; rm x",
            "ls && ls",
            "ls | sh",
            "ls > out",
            "A=1 ls",
            "ls $(id)",
            "ls `id`",
            "ls 'a b'",
            "ls ~",
            "ls *",
            "/tmp/ls",
            "./ls",
            "npm test",
            "make",
            "cargo test",
            "awk x",
            "sed -n 1p a",
            "tar cf a b",
            "timeout 5 ls",
            "ls\nrm x",
            "ls \\\n",
        ] {
            assert_eq!(like(text).prefix(), None, "{text:?} got a prefix");
        }
    }

    #[test]
    fn a_prefix_admits_what_begins_alike_and_does_no_more() {
        let granted = like("touch -c a");
        let words = granted.prefix().unwrap();
        for (text, admitted) in [
            ("touch -c b", true),
            ("touch -c a b", true),
            ("touch b", false),
            ("touch -ca b", false),
            ("touch -c a; ls", false),
        ] {
            assert_eq!(granted.admits(&words, &like(text)), admitted, "{text}");
        }
        let elsewhere = Like { frame: Digest::of("another frame"), ..like("touch -c b") };
        assert!(!granted.admits(&words, &elsewhere));
        let more = Like { effects: ["delete".to_owned()].into(), ..like("touch -c b") };
        assert!(!granted.admits(&words, &more), "an effect that nobody saw was granted");
    }
}
