//! Signed notes and checkpoints, as C2SP writes them (c2sp.org/signed-note, c2sp.org/tlog-checkpoint), with Ed25519.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::call::Digest;
use crate::state::{StateDir, StateError, secret_file};

/// The signature type byte of Ed25519.
const ED25519: u8 = 1;

/// The state of a log at one moment: how many lines it had, and the root of the Merkle tree over them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// Which log; also the name of the key that signs for it.
    pub origin: String,
    pub size: u64,
    pub root: Digest,
}

impl Checkpoint {
    /// The text that is signed.
    fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, BASE64.encode(self.root.as_bytes()))
    }

    /// Reads a signed checkpoint without checking who signed it. Lines that follow the root are extensions, and ignored.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        let (text, _) = parts(note)?;
        let mut lines = text.lines();
        let mut next = || lines.next().ok_or(NoteError::Form("the text has fewer than three lines"));
        let origin = next()?.to_owned();
        let size = next()?;
        let leading_zero = size.len() > 1 && size.starts_with('0');
        let size = size.parse().ok().filter(|_| !leading_zero).ok_or(NoteError::Form("its second line is no size"))?;
        let root = BASE64.decode(next()?).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let root = root.map(Digest::from_bytes).ok_or(NoteError::Form("its third line is no base64 of 32 bytes"))?;
        Ok(Checkpoint { origin, size, root })
    }
}

/// The notes of a file that holds one after the other, as checkpoints are shipped.
pub fn notes(text: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let mut current = String::new();
    for line in text.lines() {
        let signed = current.ends_with("\n\n") || current.lines().last().is_some_and(|line| line.starts_with('—'));
        if signed && !line.starts_with('—') {
            notes.push(std::mem::take(&mut current));
            if line.is_empty() {
                continue;
            }
        }
        current.push_str(line);
        current.push('\n');
    }
    if !current.trim().is_empty() {
        notes.push(current);
    }
    notes
}

/// Signed text and signature lines.
fn parts(note: &str) -> Result<(&str, &str), NoteError> {
    let at = note.rfind("\n\n").ok_or(NoteError::Form("no empty line parts text and signatures"))?;
    let (text, signatures) = note.split_at(at + 1);
    Ok((text, signatures.trim_start_matches('\n')))
}

/// Why a signed note, or the key for one, does not do.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    #[error("the checkpoint cannot be read: {0}")]
    Form(&'static str),
    #[error("`{0}` is no verifier key: it reads NAME+HASH+BASE64, as `portcullis audit key` prints it")]
    Key(String),
    #[error("{} holds no signing key: restore it from a backup, or remove it to begin with a new one", .0.display())]
    SigningKey(PathBuf),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the checkpoint is not signed by {0}")]
    Unsigned(String),
    #[error("the signature of {0} does not hold: the checkpoint was altered")]
    WrongSignature(String),
}

/// The public half of a log's key. Its text form is a C2SP verifier key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    name: String,
    key: VerifyingKey,
}

impl Verifier {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The four bytes that tell keys of one name apart.
    fn id(&self) -> [u8; 4] {
        let hash =
            Sha256::new().chain_update(&self.name).chain_update([b'\n', ED25519]).chain_update(self.key.as_bytes());
        let [a, b, c, d, ..] = <[u8; 32]>::from(hash.finalize());
        [a, b, c, d]
    }

    /// The checkpoint in a note that this key signed.
    ///
    /// # Errors
    ///
    /// When it is no checkpoint, or this key did not sign it.
    pub fn open(&self, note: &str) -> Result<Checkpoint, NoteError> {
        let (text, signatures) = parts(note)?;
        let mut found = Err(NoteError::Unsigned(self.name.clone()));
        for line in signatures.lines() {
            let Some((name, blob)) = line.strip_prefix("— ").and_then(|line| line.split_once(' ')) else {
                return Err(NoteError::Form("a signature line does not read `— NAME BASE64`"));
            };
            let blob = BASE64.decode(blob).map_err(|_| NoteError::Form("a signature is no base64"))?;
            let Some((id, signature)) = blob.split_first_chunk::<4>() else { continue };
            if name != self.name || *id != self.id() {
                continue;
            }
            let signature =
                Signature::from_slice(signature).map_err(|_| NoteError::WrongSignature(self.name.clone()))?;
            // Strict: a signature that several keys or messages could share does not count.
            let holds = self.key.verify_strict(text.as_bytes(), &signature).is_ok();
            found = if holds { Ok(()) } else { return Err(NoteError::WrongSignature(self.name.clone())) };
        }
        found?;
        let checkpoint = Checkpoint::parse(note)?;
        if checkpoint.origin != self.name {
            return Err(NoteError::Unsigned(self.name.clone()));
        }
        Ok(checkpoint)
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[ED25519], self.key.as_bytes().as_slice()].concat();
        write!(f, "{}+{}+{}", self.name, hex::encode(self.id()), BASE64.encode(key))
    }
}

impl FromStr for Verifier {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let read = || {
            let (name, rest) = text.split_once('+')?;
            let (id, key) = rest.split_once('+')?;
            let key = BASE64.decode(key).ok()?;
            let (ED25519, key) = key.split_first().map(|(kind, key)| (*kind, key))? else { return None };
            let key = VerifyingKey::from_bytes(key.try_into().ok()?).ok()?;
            let verifier = Verifier { name: name.to_owned(), key };
            (!name.is_empty() && hex::encode(verifier.id()) == id).then_some(verifier)
        };
        read().ok_or_else(|| NoteError::Key(text.to_owned()))
    }
}

/// The key that signs a state directory's checkpoints.
pub struct Signer {
    key: SigningKey,
    verifier: Verifier,
}

impl Signer {
    /// The key in `keys/`, made at first use, with its public half beside it.
    ///
    /// # Errors
    ///
    /// When it cannot be read or made.
    pub fn open(state: &StateDir) -> Result<Self, NoteError> {
        let path = state.keys().join("audit.key");
        let text = secret_file(&path, || {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed)?;
            Ok(hex::encode(seed).into_bytes())
        })?;
        let mut seed = [0; 32];
        hex::decode_to_slice(text.trim_ascii(), &mut seed).map_err(|_| NoteError::SigningKey(path))?;
        let signer = Self::with_seed(&seed);
        let public = state.keys().join("audit.pub");
        let line = format!("{}\n", signer.verifier);
        if fs::read_to_string(&public).ok().as_ref() != Some(&line) {
            fs::write(&public, line).map_err(StateError::io(&public))?;
        }
        Ok(signer)
    }

    fn with_seed(seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        let verifying = key.verifying_key();
        let fingerprint = hex::encode(Sha256::digest(verifying.as_bytes()));
        let name = format!("portcullis/{}", fingerprint.get(..16).unwrap_or(&fingerprint));
        Signer { key, verifier: Verifier { name, key: verifying } }
    }

    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// The signed note that says that the log has these lines.
    pub fn sign(&self, size: u64, root: Digest) -> String {
        let text = Checkpoint { origin: self.verifier.name.clone(), size, root }.text();
        let signature = self.key.sign(text.as_bytes()).to_bytes();
        let blob = [self.verifier.id().as_slice(), &signature].concat();
        format!("{text}\n— {} {}\n", self.verifier.name, BASE64.encode(blob))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.verifier)
    }
}

#[cfg(test)]
mod tests {
    use signed_note::{Note, StandardVerifier, VerifierList};

    use super::*;

    #[test]
    fn an_independent_implementation_takes_our_notes_and_our_keys() {
        let signer = Signer::with_seed(&[7; 32]);
        let note = signer.sign(3, Digest::of("root"));
        let theirs = StandardVerifier::new(&signer.verifier().to_string()).unwrap();
        let read = Note::from_bytes(note.as_bytes()).unwrap();
        let (verified, unverified) = read.verify(&VerifierList::new(vec![Box::new(theirs)])).unwrap();
        assert_eq!((verified.len(), unverified.len()), (1, 0));
        assert_eq!(read.to_bytes(), note.as_bytes());
    }

    #[test]
    fn a_checkpoint_opens_with_its_key_and_no_byte_of_it_can_change() {
        let signer = Signer::with_seed(&[7; 32]);
        let note = signer.sign(1024, Digest::of("root"));
        let key: Verifier = signer.verifier().to_string().parse().unwrap();
        assert_eq!(key, *signer.verifier());
        assert_eq!(key.open(&note).unwrap().size, 1024);
        let other = Signer::with_seed(&[8; 32]);
        assert!(matches!(other.verifier().open(&note), Err(NoteError::Unsigned(_))));
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(key.open(&changed).is_err(), "byte {at} can be changed: {changed}");
        }
    }

    #[test]
    fn notes_of_a_file_are_told_apart() {
        let signer = Signer::with_seed(&[7; 32]);
        let (one, two) = (signer.sign(1, Digest::of("1")), signer.sign(2, Digest::of("2")));
        assert_eq!(notes(&format!("{one}{two}")), [one.clone(), two.clone()]);
        assert_eq!(notes(&format!("{one}\n{two}\n")), [one.clone(), two]);
        assert_eq!(notes(&one), [one]);
        assert_eq!(notes(""), Vec::<String>::new());
    }
}
