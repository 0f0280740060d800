//! Names for approvals that can be read over the telephone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Crockford's base 32: no letter that looks like a digit, and no `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

const LENGTH: usize = 8;

/// The name of an approval: eight characters, shown as `k3f9-x2ma`. It is a name, not a secret.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalId(String);

/// Text that names no approval.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no approval id: expected eight letters and digits, such as k3f9-x2ma")]
pub struct InvalidId(String);

impl ApprovalId {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes)?;
        let letter = |byte: u8| ALPHABET.get(usize::from(byte & 31)).copied().map(char::from);
        Ok(ApprovalId(bytes.into_iter().filter_map(letter).collect()))
    }

    /// The eight characters alone, as stored.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ApprovalId {
    type Err = InvalidId;

    /// Accepts what people type: capitals, dashes and spaces, `o` for 0, `i` and `l` for 1.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let id: String = text
            .chars()
            .filter(|c| !matches!(c, '-' | ' '))
            .map(|c| match c.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            })
            .collect();
        let sound = id.len() == LENGTH && id.bytes().all(|b| ALPHABET.contains(&b));
        if sound { Ok(ApprovalId(id)) } else { Err(InvalidId(text.chars().take(40).collect())) }
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_at_checked(LENGTH / 2) {
            Some((head, tail)) => write!(f, "{head}-{tail}"),
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApprovalId({self})")
    }
}

impl Serialize for ApprovalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ApprovalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_being_read_aloud() {
        for _ in 0..200 {
            let id = ApprovalId::random().unwrap();
            let said = id.to_string().to_uppercase().replace('0', "o").replace('1', "L");
            assert_eq!(said.parse::<ApprovalId>().unwrap(), id, "heard as {said}");
        }
        for wrong in ["", "k3f9x2m", "k3f9x2maa", "k3f9x2mu", "k3f9x2mé"] {
            assert!(wrong.parse::<ApprovalId>().is_err(), "`{wrong}` was taken for an id");
        }
    }
}
