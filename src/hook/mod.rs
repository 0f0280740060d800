//! Hooks: agents whose own programs run the tools ask here first.
//!
//! ```text
//! the program's event ─► row, event (hosts/: tables) ─► map: calls of ours ─► errand ─► the gateway's opinion ─► answer
//! ```
//!
//! - [`host`] is what a table says; [`hosts`] has one file for each program.
//! - [`event`] reads an event by its table, [`map`] makes calls of it, [`patch`] finds the files of a patch.
//! - [`answer`] is the program's own form of a verdict.
//! - [`process`] is the process around it: whatever goes wrong in it, the program is told not to go on.

pub mod answer;
pub mod event;
pub mod host;
pub mod hosts;
mod map;
pub mod patch;
pub mod process;

use std::path::{Path, PathBuf};

use serde_json::Value;

use self::answer::{Answer, reason};
use self::event::{About, Event};
use self::host::{EventRow, Host, Rewrites};
use self::patch::PatchError;
use crate::daemon::hosted::{HostErrand, Said};
use crate::gateway::Opinion;
use crate::verdict::Decision;

/// What the person who installed the hook chose.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The configured agent to judge as.
    pub agent: Option<String>,
    /// The event, for programs that do not say it.
    pub event: Option<String>,
    /// The profile that shell commands are to run in.
    pub confine: Option<String>,
    /// The program is one that asks a person where it is told to (the generic form alone cannot know).
    pub asks: bool,
}

/// Why an event cannot be judged. It is blocked.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("the argument `{argument}` of the tool `{tool}` is missing or no text")]
    Argument { tool: String, argument: String },
    #[error(
        "{host} sent the event `{name}`, which this version does not know: update Portcullis, or take the hook off it"
    )]
    Event { name: String, host: &'static str },
    #[error("the event is not valid JSON: {0}")]
    Json(serde_json::Error),
    #[error("the event has no {0}")]
    Missing(&'static str),
    #[error(
        "{host} is in the mode `{name}`, which this version does not know: update Portcullis, or choose another mode"
    )]
    Mode { name: String, host: &'static str },
    #[error("the patch cannot be read: {0}")]
    Patch(PatchError),
    #[error("the session's name `{0}` cannot be used")]
    Session(String),
    #[error("one use of `{tool}` amounts to more than {most} calls: make it in parts")]
    TooMany { tool: String, most: usize },
    #[error("the command is a list of words that are not all texts")]
    Words,
}

/// Answers an event. `ask` does the errand: whatever it fails with blocks, too.
pub fn answer(
    host: &'static Host,
    terms: &Terms,
    bytes: &[u8],
    current: &Path,
    ask: impl FnOnce(&HostErrand) -> Result<Said, String>,
) -> Answer {
    let cannot = |row: Option<&EventRow>, why: &dyn std::fmt::Display| {
        Answer::block(host, row, &format!("Portcullis cannot judge this, so it does not run: {why}"))
    };
    let value = match crate::json::parse(bytes) {
        Ok(value) => value,
        Err(error) => return cannot(None, &Unreadable::Json(error)),
    };
    let row = match event::row(host, &value, terms.event.as_deref()) {
        Ok(row) => row,
        Err(error) => return cannot(None, &error),
    };
    let event = match event::read(host, row, &value) {
        Ok(event) => event,
        Err(error) => return cannot(Some(row), &error),
    };
    match ask(&event.errand(host, terms, current)) {
        Err(why) => cannot(Some(row), &why),
        Ok(Said::Noted) => match &event.about {
            About::Begins | About::Ends { .. } => Answer::goes_on(host, row),
            About::Uses(_) => cannot(Some(row), &"the gateway did not judge it"),
        },
        Ok(Said::Judged { opinion, workspace }) => in_form(host, row, terms, &event, &opinion, workspace),
    }
}

/// The opinion in the program's own form.
fn in_form(host: &Host, row: &EventRow, terms: &Terms, event: &Event, opinion: &Opinion, workspace: PathBuf) -> Answer {
    let rewritten = match (&terms.confine, &event.about) {
        (Some(profile), About::Uses(used)) if event.confinable() && host.rewrites != Rewrites::No => {
            match confined(&used.input, profile, &workspace) {
                Some(input) => Some(input),
                None => return Answer::block(host, Some(row), "the command cannot be put into the sandbox"),
            }
        }
        _ => None,
    };
    match (opinion.decision, rewritten) {
        (Decision::Allow, None) => Answer::goes_on(host, row),
        (Decision::Allow, Some(input)) => Answer::rewritten(host, row, &input, "runs in the sandbox of Portcullis"),
        (Decision::Ask(_), input) if opinion.pending.is_empty() => {
            Answer::ask(host, row, &reason(opinion), input.as_ref())
        }
        (Decision::Ask(_) | Decision::Deny, _) => Answer::block(host, Some(row), &reason(opinion)),
    }
}

/// The input of a shell tool with its command in the sandbox. The command stays readable in it.
fn confined(input: &Value, profile: &str, workspace: &Path) -> Option<Value> {
    let program = std::env::current_exe().ok()?;
    let mut input = input.clone();
    let command = input.get_mut("command")?;
    let original = command.as_str()?;
    let words = [program.to_str()?, "sandbox", "exec", "--profile", profile, "--workspace", workspace.to_str()?];
    let words: Vec<String> = words.iter().map(|word| map::quoted(word)).collect();
    *command = Value::from(format!("{} -- bash -c {}", words.join(" "), map::quoted(original)));
    Some(input)
}
