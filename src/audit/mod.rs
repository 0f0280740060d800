//! The audit log: one JSON object a line, appended under a file lock, each line carrying the SHA-256 of the exact bytes
//! of the line before it. A decision is on disk before its effect starts; the outcome follows.
//!
//! ```text
//! {"v":1,"seq":7,"time":"…","prev":"<sha-256 of line 6>","kind":"decided","call":{…},"verdict":{…},…}
//! {"v":1,"seq":8,"time":"…","prev":"<sha-256 of line 7>","kind":"finished","call_id":"…","outcome":{…},…}
//! ```
//!
//! - [`Log`] appends: [`Log::append_durable`] before the effect, [`Log::append`] after it.
//! - [`verify`] proves the chain; [`read`] shows what happened.
//!
//! Over the lines grows a Merkle tree ([`merkle`]); a `checkpoint` record carries its root, signed ([`note`]), and copies of
//! checkpoints that somebody else keeps show when the log was rewritten. A file that is full is closed under the name
//! `log-N.jsonl`, N being its first record, and the chain goes on in a new one.
//!
//! Beside `log.jsonl` lie `lock` (flock(2), held for each append), `head` (where the log ends, so that a cut tail or an
//! altered last line shows), `settled` (up to where [`Log::settle`] has looked), `tree` (the Merkle tree so far), `checkpoint` (the last one) and `torn-*` (fragments that were set
//! aside).

mod chain;
mod event;
pub mod export;
mod growth;
pub mod index;
mod lines;
mod lock;
mod log;
pub mod merkle;
pub mod note;
mod prove;
pub mod read;
pub mod redact;
pub mod replay;
mod sync;
mod tail;
mod unfinished;
mod verify;
mod volumes;

use std::path::{Path, PathBuf};

pub use self::chain::Unreadable;
pub use self::event::{
    ApprovalEvent, Change, Content, Control, Decided, Event, Finished, Hashes, Opened, Outcome, Record, Recovered,
    Rejected, Retired, Rotated, Signed, Step, Trouble, Unknown,
};
pub use self::log::{Log, LogError, Settings};
pub use self::prove::{Of, Proof, ProofError, Wanted, prove};
pub use self::sync::Ticket;
pub use self::verify::{Agreement, Break, Calls, Flaw, HeadState, Report, Torn, Trust, verify, verify_with};

/// The format version that this program writes. Readers accept newer ones: they add fields and kinds.
pub const FORMAT: u32 = 1;

/// The longest line that is written or read, in bytes. A longer record is an error for its writer.
pub const MAX_LINE: usize = 16 << 20;

/// The deepest nesting of a line. A deeper record is an error for its writer, so that every reader can recurse.
pub const MAX_DEPTH: usize = 200;

/// Where the log of a state directory lies.
pub fn log_file(state: &Path) -> PathBuf {
    state.join("audit/log.jsonl")
}
