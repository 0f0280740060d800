//! A state directory to work in, records to write, and child processes: the test binary executes itself.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use jiff::Timestamp;
use portcullis::audit::{Decided, Event, Finished, Hashes, Log, Outcome, log_file};
use portcullis::call::{Call, Digest, Mode, Origin, Principal};
use portcullis::facts::{Facts, SessionFacts};
use portcullis::registry::Sensitivity;
use portcullis::state::{Process, StateDir};
use portcullis::verdict::{Decision, Finding, Severity, Stage, StageVerdict, Verdict};

pub struct Place {
    pub state: StateDir,
    _temp: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        Place { state: StateDir::open(temp.path().join("state")).unwrap(), _temp: temp }
    }

    pub fn log(&self) -> PathBuf {
        log_file(self.state.path())
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.log()).unwrap()
    }

    /// A log with an `opened`, a decided and finished call, a denied one, and one that ends the log.
    pub fn with_records(calls: usize) -> Self {
        let place = Place::new();
        let log = Log::open(&place.state).unwrap();
        for i in 0..calls {
            log.append(&decided(&format!("call-{i}"), Decision::Allow)).unwrap();
            log.append(&finished(&format!("call-{i}"))).unwrap();
        }
        log.append(&decided("call-denied", Decision::Deny)).unwrap();
        place
    }
}

pub fn call(id: &str) -> Call {
    Call {
        id: id.to_owned(),
        tool: "Bash".to_owned(),
        arguments: serde_json::from_value(serde_json::json!({"command": "echo \"ä\" | wc -c", "timeout": 1.5}))
            .unwrap(),
        cwd: "/w".into(),
        principal: Principal {
            agent: "agent".into(),
            sub_agent: None,
            teams: Vec::new(),
            session: "session".into(),
            mode: Mode::Default,
            unattended: false,
        },
        origin: Origin::Library,
        caller_id: None,
    }
}

pub fn verdict(findings: &[(&str, Severity)]) -> Verdict {
    let findings = findings.iter().map(|(id, severity)| Finding::new(*id, *severity, "because")).collect();
    Verdict::combine(Vec::new(), vec![StageVerdict::new(Stage::Command, findings)])
}

pub fn decided(id: &str, effective: Decision) -> Event {
    let call = call(id);
    let facts = Facts {
        sensitivity: Sensitivity::Sensitive,
        command: None,
        paths: Vec::new(),
        sandbox: None,
        urls: Vec::new(),
        mcp: None,
        session: SessionFacts::default(),
        now: Timestamp::now(),
        notes: Vec::new(),
    };
    let verdict = match effective {
        Decision::Allow => verdict(&[]),
        Decision::Ask(_) => verdict(&[("test.ask", Severity::Warn)]),
        Decision::Deny => verdict(&[("test.deny", Severity::Deny)]),
    };
    Event::Decided(Box::new(Decided {
        digest: Digest::of(&call.id),
        call,
        facts: Some(facts),
        verdict,
        effective,
        workspace: None,
        hashes: Hashes { policies: Some(Digest::of("policies")), ..Hashes::default() },
        deferred: false,
        grant: None,
        pending: None,
        process: Process::current().clone(),
    }))
}

pub fn finished(id: &str) -> Event {
    Event::Finished(Finished {
        call_id: id.to_owned(),
        outcome: Outcome::Exited { code: 0 },
        ms: 3,
        output_bytes: 2,
        output_digest: Some(Digest::of("2\n")),
        notes: Vec::new(),
    })
}

/// A child that runs the ignored test `name`, with its standard output to read from.
pub struct Helper {
    pub child: Child,
    pub lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Helper {
    pub fn start(name: &str, place: &Place, argument: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env("PORTCULLIS_TEST_STATE", place.state.path())
            .env("PORTCULLIS_TEST_ARGUMENT", argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Helper { child, lines }
    }

    /// Waits for a line that holds `word`, and gives the line.
    pub fn wait_for(&mut self, word: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find(|line| line.contains(word))
    }

    pub fn succeed(mut self) {
        while self.lines.next().is_some() {}
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the helper process failed: {status}");
    }

    /// SIGKILL, and wait for the end.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// In a child: the state directory and the argument that its parent gave.
/// A child process that starts one call and lives until it is killed.
pub fn start_one_call() {
    let (state, id) = child_arguments();
    let log = Log::open(&state).unwrap();
    log.append_durable(&decided(&id, Decision::Allow)).unwrap();
    println!("started {id}");
    std::io::stdin().lines().for_each(drop);
    std::thread::park();
}

pub fn child_arguments() -> (StateDir, String) {
    let state = std::env::var("PORTCULLIS_TEST_STATE").expect("only run by another test, as its child process");
    (StateDir::open(state).unwrap(), std::env::var("PORTCULLIS_TEST_ARGUMENT").unwrap())
}
