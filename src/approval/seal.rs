//! Encryption of the arguments that wait for an answer.

use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

use crate::state::{StateDir, StateError, secret_file};

const NONCE: usize = 24;

/// The key of a state directory's pending approvals. XChaCha20-Poly1305: its nonces are long enough to be random.
pub(super) struct Seal {
    cipher: XChaCha20Poly1305,
}

/// Why a sealed text cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("the stored arguments do not open with the key in keys/approvals.key: refuse this approval and ask again")]
    Broken,
    #[error("{} holds no key: remove it, and ask again for what is pending", .0.display())]
    Key(std::path::PathBuf),
    #[error("no random numbers from the operating system: {0}")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    State(#[from] StateError),
}

impl Seal {
    /// The key of this state directory, made at first use.
    pub(super) fn open(state: &StateDir) -> Result<Self, SealError> {
        let path = state.keys().join("approvals.key");
        let text = secret_file(&path, || {
            let mut key = [0; 32];
            getrandom::fill(&mut key)?;
            Ok(hex::encode(key).into_bytes())
        })?;
        Self::with_key(&text, &path)
    }

    fn with_key(text: &[u8], path: &Path) -> Result<Self, SealError> {
        let mut key = [0; 32];
        hex::decode_to_slice(text.trim_ascii(), &mut key).map_err(|_| SealError::Key(path.to_owned()))?;
        Ok(Seal { cipher: XChaCha20Poly1305::new(&Key::from(key)) })
    }

    /// Encrypts `text`, to be opened only where `bound` is the same.
    pub(super) fn close(&self, text: &[u8], bound: &str) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce)?;
        let payload = Payload { msg: text, aad: bound.as_bytes() };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| SealError::Broken)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    pub(super) fn open_sealed(&self, sealed: &[u8], bound: &str) -> Result<Vec<u8>, SealError> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or(SealError::Broken)?;
        let payload = Payload { msg: sealed, aad: bound.as_bytes() };
        self.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| SealError::Broken)
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_opens_with_its_key_and_its_place_alone() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(temp.path().join("s")).unwrap();
        let sealed = Seal::open(&state).unwrap().close(b"secret text", "here").unwrap();
        assert!(!sealed.windows(6).any(|w| w == b"secret"), "the text is readable");
        let again = Seal::open(&state).unwrap();
        assert_eq!(again.open_sealed(&sealed, "here").unwrap(), b"secret text");
        assert!(matches!(again.open_sealed(&sealed, "there"), Err(SealError::Broken)));
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            assert!(matches!(again.open_sealed(&flipped, "here"), Err(SealError::Broken)), "byte {at} was not checked");
        }
        assert!(matches!(again.open_sealed(&sealed[..10], "here"), Err(SealError::Broken)));
    }
}
