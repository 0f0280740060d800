//! What the log holds, as types.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::approval::Scope;
use crate::call::{Call, Digest, Principal};
use crate::facts::Facts;
use crate::state::Process;
use crate::verdict::{Decision, Finding, Level, Verdict};

/// One line of the log. It serialises to the JSON of that line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Format version.
    pub v: u32,
    /// Counts the lines from 0.
    pub seq: u64,
    pub time: Timestamp,
    /// SHA-256 of the exact bytes of the line before, without its newline; zeros in the first line.
    pub prev: Digest,
    #[serde(flatten)]
    pub content: Content,
}

/// What a line says.
#[expect(clippy::large_enum_variant, reason = "records are read one at a time, and nearly all are events")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    Event(Event),
    /// A kind that this version does not know, with its fields.
    Foreign {
        kind: String,
        #[serde(flatten)]
        fields: Map<String, Value>,
    },
}

/// Everything that is recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Event {
    Approval(ApprovalEvent),
    Checkpoint(Signed),
    Control(Control),
    Decided(Box<Decided>),
    Finished(Finished),
    Opened(Opened),
    Recovered(Recovered),
    Rejected(Rejected),
    Retired(Retired),
    Rotated(Rotated),
    Unknown(Unknown),
}

/// The Merkle tree over all lines before this one, signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// A C2SP tlog-checkpoint, whose size is the number of this record.
    pub note: String,
}

/// The first line of a new file: the one before it was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotated {
    /// The name that the closed file has now.
    pub closed: String,
    /// A checkpoint of all lines before this one.
    pub note: String,
    /// The complete subtrees of its tree, the largest first: with them the tree goes on where older files are gone.
    pub peaks: Vec<Digest>,
}

/// Closed files were removed, as the retention says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    pub file: String,
    /// The records that were in it.
    pub from: u64,
    pub to: u64,
    pub bytes: u64,
}

/// The log was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Version of the gateway.
    pub gateway: String,
    pub process: Process,
}

/// A call was judged. On disk before anything runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    pub call: Call,
    /// Absent where gathering them failed, which is then among the verdict's findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    pub verdict: Verdict,
    /// What was answered: the verdict after standing levels, grants and unattended principals.
    pub effective: Decision,
    /// What binds judged, approved and executed together.
    pub digest: Digest,
    /// The workspace that the call was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    #[serde(default)]
    pub hashes: Hashes,
    /// The record was allowed to ride the next sync instead of waiting for its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
    /// The grant that was consumed for this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The pending approval that this call waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// Who decided, and runs the call if it is allowed.
    pub process: Process,
}

impl Decided {
    /// The argument that says most, on one line.
    pub fn subject(&self) -> String {
        let said = ["command", "path", "file_path", "url", "pattern"].into_iter().find_map(|name| self.call.text(name));
        said.unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_SUBJECT).collect()
    }

    /// The finding that decided: the first of the gravest.
    pub fn reason(&self) -> Option<&Finding> {
        let gravest = self.verdict.findings().map(|(_, finding)| finding.severity).max()?;
        self.verdict.findings().map(|(_, finding)| finding).find(|finding| finding.severity == gravest)
    }
}

/// How many characters of an argument stand for a call.
const MAX_SUBJECT: usize = 400;

/// The configuration that a decision was made under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packs: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Digest>,
    /// What the firewall goes by besides: exceptions, and whether paths are held to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Digest>,
}

/// A request was refused before it became a call: no such tool, or arguments that its schema refuses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The name that the caller used.
    pub tool: String,
    /// The arguments as sent.
    pub arguments: Value,
    pub principal: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
    pub finding: Finding,
}

/// A call that was allowed has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    pub call_id: String,
    pub outcome: Outcome,
    /// Wall time from dispatch to end, in milliseconds.
    pub ms: u64,
    /// Size of the whole output, before any cap.
    #[serde(default)]
    pub output_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_digest: Option<Digest>,
    /// What the sandbox refused, as far as it is known, and what the call left for other programs to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How an allowed call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Outcome {
    /// A command's exit code.
    Exited {
        code: i32,
    },
    /// Cleared, and then not started.
    NotRun {
        reason: String,
    },
    Ok,
    SetupFailed {
        message: String,
    },
    Signaled {
        signal: i32,
    },
    TimedOut,
    /// Ended because it used more than its limit of something, such as memory.
    OverLimit {
        limit: String,
    },
    ToolError {
        message: String,
    },
}

/// An allowed call whose process is gone without having said how the call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    pub call_id: String,
    /// The process that decided the call.
    pub process: Process,
}

/// The log was found in a state that no complete append leaves behind, and was made whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    pub trouble: Trouble,
    pub process: Process,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Trouble {
    /// The line where the head file says the log ended has other bytes now.
    Altered { seq: u64, expected: Digest, found: Digest },
    /// The head file says that the log went on: the records `from..=to` are missing.
    Cut {
        from: u64,
        to: u64,
        /// SHA-256 of the last record that is missing.
        last: Digest,
        /// The machine restarted since, so that it may have been a power cut; otherwise somebody cut the file.
        rebooted: bool,
    },
    /// The head file is missing or unreadable, so that a cut tail could not have been noticed.
    Headless,
    /// A writer had stopped after a failed write or sync; records from `from` on may have missed the disk.
    Stopped { reason: String, from: u64 },
    /// Bytes after the last complete record, set aside in `file` beside the log.
    Torn { bytes: u64, sha256: Digest, file: String },
}

/// A step in the life of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalEvent {
    pub approval: String,
    pub step: Step,
    /// The call that asked.
    pub call_id: String,
    pub digest: Digest,
    pub level: Level,
    /// Who did it; absent where nobody did, as for an expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Ids of the findings that the person saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What a grant covers besides the call that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Consumed,
    Expired,
    Granted,
    Refused,
    Requested,
    /// A grant was taken back.
    Revoked,
    /// A grant for the session let a call through.
    Used,
}

/// What controls the agents has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub change: Change,
    /// What changed, for the auditor.
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    ConfigurationChanged,
    PolicyChanged,
    PolicyFailed,
    PolicyLoaded,
    StageWeakened,
    /// A person approved tools of a server behind the gateway.
    ToolsPinned,
}
