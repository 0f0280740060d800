//! The audit log, whatever became of its bytes.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use super::input::Input;
use super::scratch::Scratch;
use crate::audit::read::{newest, records};
use crate::audit::{
    Change, Content, Control, Event, Finished, Log, Outcome, Rejected, Report, Unknown, log_file, verify,
};
use crate::call::{Digest, Mode, Principal};
use crate::state::{Process, StateDir};
use crate::verdict::{Finding, Severity};

/// A whole log, with the head file beside it.
struct Sound {
    log: Vec<u8>,
    head: Vec<u8>,
}

static SOUND: LazyLock<Sound> = LazyLock::new(|| {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path().join("state")).expect("a state directory is made");
    let log = Log::open(&state).expect("a new log opens");
    for event in events() {
        log.append(&event).expect("a record is appended");
    }
    drop(log);
    Sound {
        log: fs::read(log_file(state.path())).expect("the log is there"),
        head: fs::read(state.audit().join("head")).expect("the head is there"),
    }
});

/// A log that was cut, altered, spliced: it opens, keeps every whole record before the damage, goes on, and says that
/// something was wrong; `verify` sees every change.
///
/// # Panics
///
/// Where that does not hold.
pub fn audit_recover(data: &[u8]) {
    let mut input = Input::new(data);
    let headless = input.byte() % 8 == 7;
    let mut bytes = SOUND.log.clone();
    while !input.is_empty() {
        damage(&mut input, &mut bytes);
    }
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path().join("state")).expect("a state directory is made");
    let log_path = log_file(state.path());
    fs::write(&log_path, &bytes).expect("the log is written");
    if !headless {
        fs::write(state.audit().join("head"), &SOUND.head).expect("the head is written");
    }
    let whole = bytes == SOUND.log;
    let before = check(&log_path);
    if !headless {
        assert_eq!(before.sound(), whole, "verify and the bytes differ: {before:?}\n{}", shown(&bytes));
    }

    let log = Log::open(&state).expect("a damaged log opens");
    log.append(&finished("after")).expect("a log that was opened goes on");
    drop(log);
    let now = fs::read(&log_path).expect("the log is there");
    let kept = sound_part(&bytes);
    assert_eq!(now.get(..kept), bytes.get(..kept), "records before the damage have changed:\n{}", shown(&bytes));
    let last = newest(&log_path).expect("the log is there").next().and_then(Result::ok);
    let last = last.map(|record| record.content);
    assert_eq!(last, Some(Content::Event(finished("after"))), "what was appended is not the last record");
    let after = check(&log_path);
    let told = !after.sound() || after.recovered > before.recovered;
    assert!(whole || headless || told, "nothing tells of the damage any more: {after:?}\n{}", shown(&bytes));
    let readable = records(&log_path).expect("the log is there").take_while(Result::is_ok).count();
    let lines = bytes.get(..kept).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    assert!(readable >= lines, "{readable} records can be read, and {lines} whole ones lie before the damage");
}

fn check(log: &Path) -> Report {
    verify(log).expect("any log can be verified")
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One change, at a place of the input's choice.
fn damage(input: &mut Input<'_>, bytes: &mut Vec<u8>) {
    let kind = input.byte() % 7;
    let at = input.below(bytes.len() + 1);
    let lines: Vec<&[u8]> = SOUND.log.split_inclusive(|byte| *byte == b'\n').collect();
    match kind {
        0 => bytes.truncate(at),
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << input.below(8);
            }
        }
        2 => drop(bytes.splice(at..at, [input.byte()])),
        3 => {
            let end = bytes.len().min(at + 1 + input.below(600));
            drop(bytes.drain(at.min(end)..end));
        }
        4 => bytes.extend(input.pick(&lines).iter()),
        5 => drop(bytes.splice(at..at, input.pick(&lines).iter().copied())),
        _ => bytes.extend(input.several(20, Input::byte)),
    }
}

/// The length of the whole lines that are as they were.
fn sound_part(bytes: &[u8]) -> usize {
    let same = SOUND.log.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    let same = bytes.get(..same).unwrap_or_default();
    same.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn finished(call: &str) -> Event {
    Event::Finished(Finished {
        call_id: call.to_owned(),
        outcome: Outcome::Exited { code: 0 },
        ms: 3,
        output_bytes: 2,
        output_digest: Some(Digest::of("2\n")),
        notes: Vec::new(),
    })
}

fn events() -> Vec<Event> {
    let principal = Principal {
        agent: "agent".to_owned(),
        sub_agent: None,
        teams: Vec::new(),
        session: "session".to_owned(),
        mode: Mode::Default,
        unattended: false,
    };
    vec![
        Event::Rejected(Rejected {
            tool: "Raed".to_owned(),
            arguments: serde_json::json!({"path": "ä\n\"", "n": [1, {"deep": null}]}),
            principal,
            caller_id: None,
            finding: Finding::new("call.refused", Severity::Deny, "there is no such tool"),
        }),
        finished("one"),
        Event::Control(Control {
            change: Change::PolicyLoaded,
            detail: "reloaded".to_owned(),
            before: None,
            after: Some(Digest::of("policies")),
            by: None,
        }),
        Event::Unknown(Unknown { call_id: "two".to_owned(), process: Process::current().clone() }),
    ]
}
