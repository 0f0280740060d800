//! Secrets do not reach the log. Where one stands, a marker is written: `[redacted:KIND:DIGEST]`, whose digest is keyed, so
//! that equal secrets are seen to be equal and none can be guessed from it.

mod rules;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use self::rules::{Kind, NAMES, Value as Looks, WORDS};
use crate::state::{StateDir, StateError, secret_file};

/// How every marker begins.
const MARK: &str = "[redacted:";

/// Whether something was redacted in a text.
pub fn is_redacted(text: &str) -> bool {
    text.contains(MARK)
}

/// Finds secrets and replaces them.
pub struct Redactor {
    state: StateDir,
    /// Read when the first secret is found.
    key: OnceLock<Vec<u8>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

/// A secret and its kind.
type Secrets = BTreeMap<String, &'static str>;

impl Redactor {
    /// With the key of a state directory, made at first use.
    pub fn new(state: &StateDir) -> Self {
        Redactor { state: state.clone(), key: OnceLock::new() }
    }

    fn key(&self) -> Result<&[u8], StateError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let key = secret_file(&self.state.keys().join("redaction.key"), || {
            let mut key = [0; 32];
            getrandom::fill(&mut key)?;
            Ok(hex::encode(key).into_bytes())
        })?;
        Ok(self.key.get_or_init(|| key))
    }

    /// A text without its secrets.
    ///
    /// # Errors
    ///
    /// When it has some, and the key for their markers cannot be read or made.
    pub fn text<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, RedactError> {
        let mut secrets = Secrets::new();
        find(text, &mut secrets);
        if secrets.is_empty() {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Hiding { key: self.key()?, secrets: &secrets }.replaced(text))
    }

    /// A record, as its JSON text, without its secrets. `None` where there are none.
    ///
    /// # Errors
    ///
    /// When the text is no JSON, or the key for the markers cannot be read or made.
    pub(super) fn record(&self, json: &[u8]) -> Result<Option<Vec<u8>>, RedactError> {
        if WORDS.kinds(json).is_empty() {
            return Ok(None);
        }
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        deserializer.disable_recursion_limit();
        let mut value: Value = serde::Deserialize::deserialize(&mut deserializer)?;
        let mut secrets = Secrets::new();
        collect(&value, None, &mut secrets);
        if secrets.is_empty() {
            return Ok(None);
        }
        // What is found in one place is hidden in every other: a path, a host, a message that quotes the command.
        Hiding { key: self.key()?, secrets: &secrets }.hide(&mut value, true);
        Ok(Some(serde_json::to_vec(&value)?))
    }
}

/// Why a record cannot be made safe. It is not written then.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    #[error("the record cannot be read as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the record holds a secret, and the key for its marker cannot be had: {0}")]
    Key(#[from] StateError),
}

/// Secrets, being hidden.
struct Hiding<'a> {
    key: &'a [u8],
    secrets: &'a Secrets,
}

impl Hiding<'_> {
    /// `ours`: the names of fields are those of a record.
    fn hide(&self, value: &mut Value, ours: bool) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.replaced(text) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide(item, ours)),
            Value::Object(map) => {
                let named = !ours && map.keys().any(|key| matches!(self.replaced(key), Cow::Owned(_)));
                if named {
                    let old = std::mem::take(map);
                    *map = old.into_iter().map(|(key, value)| (self.replaced(&key).into_owned(), value)).collect();
                }
                for (key, value) in map.iter_mut() {
                    if !(ours && OURS.contains(&key.as_str())) {
                        // Below the arguments every name is the caller's.
                        self.hide(value, ours && key != "arguments");
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text with every secret replaced, the longest first where they overlap.
    fn replaced<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut places: Vec<(Range<usize>, &str)> = Vec::new();
        for (secret, kind) in self.secrets {
            for (at, _) in text.match_indices(secret.as_str()) {
                places.push((at..at + secret.len(), kind));
            }
        }
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
        let (mut hidden, mut done) = (String::with_capacity(text.len()), 0);
        for (place, kind) in places {
            if place.end <= done {
                continue;
            }
            let start = place.start.max(done);
            hidden.push_str(text.get(done..start).unwrap_or_default());
            hidden.push_str(&self.marker(kind, text.get(start..place.end).unwrap_or_default()));
            done = place.end;
        }
        hidden.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(hidden)
    }

    fn marker(&self, kind: &str, secret: &str) -> String {
        // HMAC takes a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.key) else { return format!("{MARK}{kind}]") };
        mac.update(secret.as_bytes());
        let digest = hex::encode(mac.finalize().into_bytes());
        format!("{MARK}{kind}:{}]", digest.get(..8).unwrap_or_default())
    }
}

/// Fields of a record that are words of ours, times and digests: nothing in them is anybody's text.
const OURS: &[&str] = &[
    "access",
    "boot",
    "call_id",
    "change",
    "decision",
    "digest",
    "effective",
    "hashes",
    "id",
    "kind",
    "level",
    "mode",
    "now",
    "origin",
    "output_digest",
    "parse",
    "process",
    "says",
    "scope",
    "sensitivity",
    "severity",
    "sha256",
    "stage",
    "step",
    "what",
];

/// Every secret in a value, and in the names of its fields.
fn collect(value: &Value, name: Option<&str>, secrets: &mut Secrets) {
    match value {
        Value::String(text) => {
            let named = name.is_some_and(|name| NAMES.as_ref().is_some_and(|names| names.is_match(name)));
            if named && literal(text) && text.len() >= 4 {
                secrets.insert(text.clone(), "named");
            }
            find(text, secrets);
        }
        Value::Array(items) => {
            // A list of words is a command: an option and its value may be two of them.
            let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            if let Some(words) = words.filter(|words| words.len() > 1) {
                find(&words.join(" "), secrets);
            }
            items.iter().for_each(|item| collect(item, name, secrets));
        }
        Value::Object(map) => {
            for (key, value) in map {
                find(key, secrets);
                collect(value, Some(key), secrets);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn find(text: &str, secrets: &mut Secrets) {
    for kind in WORDS.kinds(text.as_bytes()) {
        let Some(regex) = kind.regex() else { continue };
        for found in regex.captures_iter(text) {
            let Some(secret) = found.name("s").or_else(|| found.get(0)) else { continue };
            let secret = secret.as_str().trim_matches(|c: char| c.is_whitespace());
            if fits(kind, secret) {
                secrets.entry(secret.to_owned()).or_insert(kind.id);
            }
        }
    }
}

fn fits(kind: &Kind, secret: &str) -> bool {
    match kind.value {
        Looks::Formed => !secret.is_empty(),
        Looks::Given => literal(secret),
        Looks::Random => literal(secret) && random(secret),
    }
}

/// Words that stand where a secret would, in texts about secrets.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "dummy",
    "example",
    "false",
    "fake",
    "file",
    "foo",
    "none",
    "null",
    "pass",
    "passwd",
    "password",
    "placeholder",
    "redacted",
    "required",
    "secret",
    "string",
    "token",
    "true",
    "undefined",
    "user",
    "value",
    "your",
];

/// Whether a word is itself and no reference to something else: no variable, no call, no placeholder.
fn literal(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let begins = |signs: &[&str]| signs.iter().any(|sign| word.starts_with(sign));
    let reference = begins(&["$", "<", "{", "%(", "%{", "@", "`", "(", "/", "./", "~/", "*", MARK])
        || word.contains("${")
        || word.contains("$(")
        || word.contains("{{")
        || word.contains("()")
        || word.contains("...")
        || (word.contains('(') && word.contains(['.', '_']))
        || (lower.starts_with("process.env") || lower.starts_with("os.") || lower.starts_with("env."));
    let stars = !word.chars().any(|c| c.is_alphanumeric() && !matches!(c, 'x' | 'X' | '0'));
    let placeholder = PLACEHOLDERS.contains(&lower.as_str())
        || lower.starts_with("your")
        || lower.starts_with("my-")
        || lower.starts_with("my_")
        || lower.contains("placeholder")
        || lower.ends_with("_here")
        || lower.ends_with("-here");
    !(reference || stars || placeholder)
}

/// Whether a word looks made by chance: several kinds of signs, and not many of them twice.
fn random(word: &str) -> bool {
    let has = |test: fn(&char) -> bool| word.chars().any(|c| test(&c));
    let digits = has(char::is_ascii_digit);
    let letters = has(char::is_ascii_alphabetic);
    let signs = word.chars().any(|c| c.is_ascii_punctuation() && !matches!(c, '-' | '_' | '.' | '/' | ':'));
    let cases = has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    if word.contains(' ') || word.contains("://") && !digits {
        return false;
    }
    // A name such as `access_token_v2` or `next-auth.session-token` is made of words.
    let parts = word.split(['-', '_', '.', '/', ':']);
    let wordy = parts.clone().count() > 1
        && parts.clone().all(|part| part.len() <= 12 && !(part.len() > 4 && mixed(part)))
        && parts.into_iter().filter(|part| part.chars().all(|c| c.is_ascii_alphabetic())).count() > 0;
    let entropy = entropy(word);
    if wordy && !signs {
        return false;
    }
    (letters && (digits || signs) || digits && word.len() >= 12 || cases && word.len() >= 16) && entropy >= 2.4
        || word.len() >= 24 && letters && entropy >= 3.6
}

/// Whether a part holds letters and digits in turn, as no word does.
fn mixed(part: &str) -> bool {
    let turns = part
        .as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_alphabetic() != b.is_ascii_alphabetic()));
    turns.count() > 1
}

/// Shannon's entropy of the characters, in bits for each.
fn entropy(word: &str) -> f64 {
    let mut counts = BTreeMap::new();
    word.chars().for_each(|c| *counts.entry(c).or_insert(0_u32) += 1);
    let all = f64::from(counts.values().sum::<u32>().max(1));
    counts.values().map(|count| f64::from(*count) / all).map(|share| -share * share.log2()).sum()
}
