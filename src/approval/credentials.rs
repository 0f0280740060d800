//! Who is it: agents, operators and reviewers by their tokens.

use std::env::VarError;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ctutils::CtEq as _;
use jiff::Timestamp;
use rusqlite::params;

use crate::call::Digest;
use crate::state::{Database, DatabaseError, StateDir, StateError, Synchronous, millis, secret_file};

/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// Whom a credential speaks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Makes calls, and can do nothing else.
    Agent(String),
    /// Approves at level 1.
    Operator(String),
    /// Approves at both levels, for other people's sessions.
    Reviewer(String),
}

impl Role {
    pub fn name(&self) -> &str {
        match self {
            Role::Agent(name) | Role::Operator(name) | Role::Reviewer(name) => name,
        }
    }

    fn kind(&self) -> &'static Kind {
        match self {
            Role::Agent(_) => &AGENT,
            Role::Operator(_) => &OPERATOR,
            Role::Reviewer(_) => &REVIEWER,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind().word, self.name())
    }
}

struct Kind {
    word: &'static str,
    prefix: &'static str,
    role: fn(String) -> Role,
}

const AGENT: Kind = Kind { word: "agent", prefix: "pcl_agent_", role: Role::Agent };
const OPERATOR: Kind = Kind { word: "operator", prefix: "pcl_op_", role: Role::Operator };
const REVIEWER: Kind = Kind { word: "reviewer", prefix: "pcl_rev_", role: Role::Reviewer };
const KINDS: [&Kind; 3] = [&AGENT, &OPERATOR, &REVIEWER];

/// A credential in the clear: a typed prefix and 32 random bytes in base64url. Shown once, never stored here.
#[derive(PartialEq, Eq)]
pub struct Token(String);

impl Token {
    fn random(kind: &Kind) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Token(format!("{}{}", kind.prefix, URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// The text that its owner presents.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is stored in its place. A token has 256 random bits: a plain hash cannot be reversed by guessing.
    pub fn hash(&self) -> Digest {
        Digest::of(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why a credential was refused, or could not be looked up. Never tells the token.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("{} holds no {kind}'s token: remove it, and the next start makes one", path.display())]
    NoToken { path: PathBuf, kind: &'static str },
    #[error("no random numbers from the operating system: {0}")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("PORTCULLIS_TOKEN holds no text, so no token: unset it, or set it to a credential of this gateway")]
    Unreadable,
    #[error("the credential is not known to this gateway: it is mistyped, was revoked, or belongs to another one")]
    Unknown,
}

/// The credentials of a state directory, as hashes.
#[derive(Debug)]
pub struct Credentials {
    database: Database,
    state: StateDir,
}

impl Credentials {
    /// Opens the store. At first start it makes the operator's own token, in `keys/operator.token`.
    pub fn open(state: &StateDir) -> Result<Self, CredentialError> {
        let credentials = Credentials { database: Database::open(state, Synchronous::Full)?, state: state.clone() };
        let token = credentials.operator_token()?;
        let operator = Role::Operator(user_name());
        if !credentials.knows(&OPERATOR, &token.hash())? {
            credentials.replace(&operator, &token.hash(), Timestamp::now())?;
        }
        Ok(credentials)
    }

    /// The token of the operator who owns the state directory.
    pub fn operator_token(&self) -> Result<Token, CredentialError> {
        operator_token(&self.state)
    }

    /// The file with the token that the gateway made for an agent, making both where they are missing.
    pub fn agent_token(&self, name: &str) -> Result<PathBuf, CredentialError> {
        let path = agent_file(&self.state, name);
        let token = token_in(&path, &AGENT)?;
        let role = Role::Agent(name.to_owned());
        if self.name_of(&AGENT, &token.hash())?.as_deref() != Some(name) {
            self.replace(&role, &token.hash(), Timestamp::now())?;
        }
        Ok(path)
    }

    /// Makes a credential. The token is shown to its owner and not kept.
    pub fn issue(&self, role: &Role, now: Timestamp) -> Result<Token, CredentialError> {
        let token = Token::random(role.kind())?;
        self.admit(role, &token.hash(), now)?;
        Ok(token)
    }

    /// Accepts the token with this hash, as the configuration may name one.
    pub fn admit(&self, role: &Role, hash: &Digest, now: Timestamp) -> Result<(), CredentialError> {
        self.database.with(|c| {
            c.prepare_cached("INSERT OR REPLACE INTO credential (hash, role, name, created) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![hash.as_bytes(), role.kind().word, role.name(), millis(now)])
        })?;
        Ok(())
    }

    /// The same, and no other is accepted any more: who made the file anew did so because the old one is known to others.
    fn replace(&self, role: &Role, hash: &Digest, now: Timestamp) -> Result<(), CredentialError> {
        self.database.with(|c| {
            c.execute("DELETE FROM credential WHERE role = ?1 AND name = ?2", params![role.kind().word, role.name()])
        })?;
        self.admit(role, hash, now)
    }

    /// Revokes every token of a role. Gives how many there were. Where one that the gateway made is among them, the next
    /// start makes another.
    pub fn revoke(&self, role: &Role) -> Result<usize, CredentialError> {
        let own = self.operator_token()?;
        if self.name_of(&OPERATOR, &own.hash())?.is_some_and(|name| *role == Role::Operator(name)) {
            let path = operator_file(&self.state);
            std::fs::remove_file(&path).map_err(StateError::io(&path))?;
        }
        if let Role::Agent(name) = role {
            let path = agent_file(&self.state, name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StateError::io(&path)(error))?;
                }
                Err(_) | Ok(()) => {}
            }
        }
        Ok(self.database.with(|c| {
            c.execute("DELETE FROM credential WHERE role = ?1 AND name = ?2", params![role.kind().word, role.name()])
        })?)
    }

    /// Whom a presented token speaks for.
    pub fn role_of(&self, presented: &str) -> Result<Role, CredentialError> {
        let kind = kind_of(presented)?;
        let name = self.name_of(kind, &Digest::of(presented))?;
        name.map(kind.role).ok_or(CredentialError::Unknown)
    }

    fn knows(&self, kind: &Kind, hash: &Digest) -> Result<bool, CredentialError> {
        Ok(self.name_of(kind, hash)?.is_some())
    }

    /// Compares with every hash of the kind, each in constant time, so that nothing is learnt from how long it takes.
    fn name_of(&self, kind: &Kind, hash: &Digest) -> Result<Option<String>, CredentialError> {
        let known: Vec<([u8; 32], String)> = self.database.with(|c| {
            let mut query = c.prepare_cached("SELECT hash, name FROM credential WHERE role = ?1")?;
            let rows = query.query_map([kind.word], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })?;
        let mut found = None;
        for (candidate, name) in known {
            if candidate.ct_eq(hash.as_bytes()).to_bool() {
                found = Some(name);
            }
        }
        Ok(found)
    }
}

/// The token of the operator who owns the state directory, made where it is missing. A fresh one is known to the gateway
/// from the next [`Credentials::open`] on.
pub fn operator_token(state: &StateDir) -> Result<Token, CredentialError> {
    token_in(&operator_file(state), &OPERATOR)
}

fn operator_file(state: &StateDir) -> PathBuf {
    state.keys().join("operator.token")
}

/// Names may hold anything; what is no plain letter or digit is written as its bytes, so that no two names share a file.
fn agent_file(state: &StateDir, name: &str) -> PathBuf {
    let mut file = String::from("agent-");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => file.push(char::from(byte)),
            other => file.push_str(&format!("%{other:02x}")),
        }
    }
    file.push_str(".token");
    state.keys().join(file)
}

fn token_in(path: &Path, kind: &'static Kind) -> Result<Token, CredentialError> {
    let text = secret_file(path, || {
        let token = Token::random(kind)?;
        Ok(token.expose().as_bytes().to_vec())
    })?;
    let token = Token(String::from_utf8_lossy(text.trim_ascii()).into_owned());
    match kind_of(token.expose()) {
        Ok(found) if found.word == kind.word => Ok(token),
        Ok(_) | Err(_) => Err(CredentialError::NoToken { path: path.to_owned(), kind: kind.word }),
    }
}

/// The kind that a token's prefix claims, if the rest has the form of one.
fn kind_of(token: &str) -> Result<&'static Kind, CredentialError> {
    KINDS
        .into_iter()
        .find(|kind| {
            let bytes = token.strip_prefix(kind.prefix).and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
            bytes.is_some_and(|bytes| bytes.len() == TOKEN_BYTES)
        })
        .ok_or(CredentialError::Unknown)
}

/// The name of the user who runs this process, or the number of one who has none.
fn user_name() -> String {
    let uid = nix::unistd::geteuid();
    match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => uid.to_string(),
    }
}

/// The variable that names in whose name a program speaks.
const TOKEN: &str = "PORTCULLIS_TOKEN";

/// The credential that was given to this process. What is there and cannot be a token is an error: who presents
/// something must not be taken for the one who presents nothing.
pub fn presented_token() -> Result<Option<String>, CredentialError> {
    of_variable(std::env::var(TOKEN))
}

fn of_variable(value: Result<String, VarError>) -> Result<Option<String>, CredentialError> {
    match value {
        Ok(token) => Ok(Some(token)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(CredentialError::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn i7_a_token_that_is_no_text_is_not_the_same_as_none() {
        use std::os::unix::ffi::OsStringExt;
        let odd = std::ffi::OsString::from_vec(b"pcl_agent_\xff".to_vec());
        assert!(matches!(of_variable(Err(VarError::NotUnicode(odd))), Err(CredentialError::Unreadable)));
        assert!(matches!(of_variable(Err(VarError::NotPresent)), Ok(None)));
    }

    #[test]
    fn i7_a_file_that_was_made_anew_ends_the_token_before_it() {
        let (_temp, state, credentials) = store();
        let old = credentials.operator_token().unwrap();
        let agent = credentials.agent_token("a").unwrap();
        let old_agent = std::fs::read_to_string(&agent).unwrap();
        std::fs::remove_file(operator_file(&state)).unwrap();
        std::fs::remove_file(&agent).unwrap();
        let credentials = Credentials::open(&state).unwrap();
        credentials.agent_token("a").unwrap();
        let new = credentials.operator_token().unwrap();
        assert!(matches!(credentials.role_of(new.expose()), Ok(Role::Operator(_))));
        for known_to_others in [old.expose(), old_agent.trim()] {
            let role = credentials.role_of(known_to_others);
            assert!(matches!(role, Err(CredentialError::Unknown)), "a leaked token is still accepted: {role:?}");
        }
    }

    fn store() -> (tempfile::TempDir, StateDir, Credentials) {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(temp.path().join("s")).unwrap();
        let credentials = Credentials::open(&state).unwrap();
        (temp, state, credentials)
    }

    #[test]
    fn i7_a_token_speaks_for_its_role_alone() {
        let (_temp, _state, credentials) = store();
        let now = Timestamp::now();
        for role in [Role::Agent("a".into()), Role::Operator("o".into()), Role::Reviewer("r".into())] {
            let token = credentials.issue(&role, now).unwrap();
            assert_eq!(credentials.role_of(token.expose()).unwrap(), role);
            for kind in KINDS {
                let secret = token.expose().strip_prefix(role.kind().prefix).unwrap();
                let forged = format!("{}{secret}", kind.prefix);
                let answer = credentials.role_of(&forged);
                assert_eq!(answer.is_ok(), forged == token.expose(), "{role}'s secret was accepted as {}", kind.word);
            }
            assert_eq!(credentials.revoke(&role).unwrap(), 1);
            assert!(credentials.role_of(token.expose()).is_err(), "a revoked token was accepted");
        }
    }

    #[test]
    fn wrong_tokens_are_refused_and_never_repeated() {
        let (_temp, _state, credentials) = store();
        let good = credentials.operator_token().unwrap();
        let mut bent = good.expose().to_owned();
        bent.pop();
        for wrong in ["", "pcl_op_", "pcl_op_short", &bent, &format!("{}A", good.expose()), &good.expose()[7..], "\0"] {
            let error = credentials.role_of(wrong).unwrap_err();
            assert!(matches!(error, CredentialError::Unknown), "{error:?}");
            let said = format!("{error} {error:?}");
            assert!(wrong.len() < 3 || !said.contains(wrong), "the error repeats the token");
        }
        assert!(!format!("{good:?}").contains(good.expose()), "Debug shows the token");
    }

    #[test]
    fn the_operators_token_is_made_once_and_private_and_no_token_is_stored() {
        let (temp, state, credentials) = store();
        let file = state.keys().join("operator.token");
        let mode = std::fs::metadata(&file).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600, "operator.token has mode {mode:o}");
        let token = credentials.operator_token().unwrap();
        drop(credentials);
        let credentials = Credentials::open(&state).unwrap();
        assert_eq!(credentials.operator_token().unwrap(), token, "a second start made another token");
        assert!(matches!(credentials.role_of(token.expose()).unwrap(), Role::Operator(_)));
        credentials.revoke(&credentials.role_of(token.expose()).unwrap()).unwrap();
        drop(credentials);
        let credentials = Credentials::open(&state).unwrap();
        assert!(credentials.role_of(token.expose()).is_err(), "a restart brought a revoked token back");
        let token = credentials.operator_token().unwrap();
        assert!(credentials.role_of(token.expose()).is_ok(), "no token was made in place of the revoked one");
        let issued = credentials.issue(&Role::Agent("a".into()), Timestamp::now()).unwrap();
        for entry in std::fs::read_dir(temp.path().join("s")).unwrap().flatten().filter(|e| e.path().is_file()) {
            let bytes = std::fs::read(entry.path()).unwrap();
            for secret in [&token, &issued] {
                let found = bytes.windows(secret.expose().len()).any(|w| w == secret.expose().as_bytes());
                assert!(!found, "{} holds a token", entry.path().display());
            }
        }
    }
}
