//! Proofs for somebody who has not got the log: that a record is in it, and that a later state of it only added to an
//! earlier one.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::audit::LogError;
use crate::audit::chain::{Header, content};
use crate::audit::event::Rotated;
use crate::audit::lines::End;
use crate::audit::merkle::{self, Leaves, Tree, leaf};
use crate::audit::note::{Checkpoint, NoteError, Verifier};
use crate::audit::volumes::{self, VolumeLines};
use crate::call::Digest;

/// A proof. It stands alone: a signed checkpoint, and what leads to its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The signed checkpoint of the log as it is now.
    pub checkpoint: String,
    #[serde(flatten)]
    pub of: Of,
}

/// What is proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "proof", rename_all = "kebab-case")]
pub enum Of {
    /// A line is in the log (RFC 6962, section 2.1.1).
    Inclusion { seq: u64, line: String, path: Vec<Digest> },
    /// The log has only grown since an earlier checkpoint (RFC 6962, section 2.1.2).
    Consistency { earlier: String, path: Vec<Digest> },
}

/// What is to be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// That this record is in the log.
    Record(u64),
    /// That the log has only grown since this checkpoint, a signed note.
    Since(String),
}

/// Why there is no proof, or why it proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("the proof does not lead to the checkpoint's root: the record or the proof was altered")]
    Broken,
    #[error("record {0} is not in the log, or its file was removed")]
    Gone(u64),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Note(#[from] NoteError),
    #[error("the log is not what the checkpoint says: `portcullis audit verify --checkpoint FILE` says more")]
    Other,
}

/// Makes a proof against a signed checkpoint of this log.
pub fn prove(log: &Path, checkpoint: &str, wanted: Wanted) -> Result<Proof, ProofError> {
    let Checkpoint { size, root, .. } = Checkpoint::parse(checkpoint)?;
    let io = |source| ProofError::Io { path: log.to_owned(), source };
    let mut lines = VolumeLines::new(volumes::open_all(log).map_err(io)?);
    let mut leaves = Leaves::default();
    let mut shown = None;
    while let Some((_, _, line)) = lines.next().map_err(io)? {
        if line.end == End::Missing || leaves.size() == size {
            break;
        }
        if leaves.size() == 0
            && let Ok(header) = Header::parse(line.bytes)
            && header.seq > 0
            && let Ok(Rotated { peaks, .. }) = content(line.bytes)
            && let Some(base) = Tree::from_peaks(header.seq, peaks)
        {
            leaves = Leaves::after(base);
        }
        if wanted == Wanted::Record(leaves.size()) {
            shown = Some(String::from_utf8_lossy(line.bytes).into_owned());
        }
        leaves.push(leaf(line.bytes));
    }
    if leaves.root(size) != Some(root) {
        return Err(ProofError::Other);
    }
    let of = match wanted {
        Wanted::Record(seq) => {
            let path = leaves.inclusion(seq, size).ok_or(ProofError::Gone(seq))?;
            Of::Inclusion { seq, line: shown.ok_or(ProofError::Gone(seq))?, path }
        }
        Wanted::Since(earlier) => {
            let old = Checkpoint::parse(&earlier)?;
            if leaves.root(old.size) != Some(old.root) {
                return Err(ProofError::Other);
            }
            let path = leaves.consistency(old.size, size).ok_or(ProofError::Other)?;
            Of::Consistency { earlier, path }
        }
    };
    Ok(Proof { checkpoint: checkpoint.to_owned(), of })
}

impl Proof {
    /// Checks the proof with the key of the log.
    ///
    /// # Errors
    ///
    /// When it proves nothing.
    pub fn check(&self, key: &Verifier) -> Result<Checkpoint, ProofError> {
        let now = key.open(&self.checkpoint)?;
        let holds = match &self.of {
            Of::Inclusion { seq, line, path } => {
                merkle::included(leaf(line.as_bytes()), *seq, now.size, path, now.root)
            }
            Of::Consistency { earlier, path } => {
                let old = key.open(earlier)?;
                merkle::consistent(old.size, old.root, now.size, now.root, path)
            }
        };
        if holds { Ok(now) } else { Err(ProofError::Broken) }
    }
}
