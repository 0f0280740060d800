//! The policy sets that come with the program.

use crate::firewall::policy::source::{Source, Trust};

/// A ready set of policies, by the name that configuration uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyFiles {
    /// What only reads runs, the rest asks: the default.
    Ask,
    /// Nothing asks: what would is denied.
    Strict,
}

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../policies/", $path)))),+]
    };
}

const ASK: &[(&str, &str)] = files!["ask/tools.cedar", "ask/modes.cedar", "ask/effects.cedar", "ask/hooks.cedar"];
const STRICT: &[(&str, &str)] = files!["strict/tools.cedar"];

impl PolicyFiles {
    /// The set's files.
    pub fn sources(self) -> Vec<Source> {
        let files = match self {
            PolicyFiles::Ask => ASK,
            PolicyFiles::Strict => STRICT,
        };
        files.iter().map(|(name, text)| Source::new(format!("built in: {name}"), *text, Trust::Operator)).collect()
    }
}
