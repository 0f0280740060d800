//! What a million calls on record cost: `cargo bench --bench ledger [-- RECORDS]`. Prints a table: making the log, indexing
//! it, questions, verifying, replaying, deciding again, and the memory that all of it took.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use portcullis::audit::index::{Filter, Index};
use portcullis::audit::replay::{InForce, Kept, Library, Rules, Settings, rederive, replay};
use portcullis::audit::{Decided, Event, Finished, Hashes, Log, Outcome, log_file, verify};
use portcullis::call::{Call, Digest, Mode, Origin, Principal, Sensitivity};
use portcullis::facts::command::Guard;
use portcullis::facts::{Facts, SessionFacts, Surroundings};
use portcullis::firewall::Firewall;
use portcullis::firewall::policy::{Policies, PolicyFiles};
use portcullis::registry::Definition;
use portcullis::state::{Process, StateDir};
use portcullis::verdict::Decision;

const COMMANDS: &[&str] = &[
    "cargo test --lib",
    "git status",
    "ls -la src",
    "rm -rf /",
    "curl https://api.example.com/v1/items",
    "cat README.md | wc -l",
    "git push --force origin main",
    "npm install left-pad",
    "python3 scripts/build.py",
    "grep -rn TODO src",
];

fn main() -> Result<(), Box<dyn Error>> {
    let records: usize = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    let registry = portcullis::tools::all()?;
    let tools: Vec<&Definition> = registry.all().map(|tool| tool.definition()).collect();
    let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let state = StateDir::open(temp.path().join("state"))?;
    let log = log_file(state.path());
    let firewall = Firewall {
        policies: Arc::new(Policies::load(PolicyFiles::Ask.sources(), &tools)?),
        restrict_to_workspace: true,
        exceptions: [].into(),
    };
    timed("make the log", || make(&state, &firewall, records))?;
    println!("{:<28} {:>10} MB", "", fs::metadata(&log)?.len() / 1_000_000);
    let report = timed("verify", || verify(&log))?;
    if !report.sound() {
        return Err("the log that was just written is not sound".into());
    }
    let index = timed("make the index", || Index::open(state.path()))?;
    let some = |text: &str| Some(text.to_owned());
    for (name, filter) in [
        ("query: denied", Filter { answer: some("deny"), ..Filter::default() }),
        ("query: tool and session", Filter { tool: some("Bash"), session: some("session-7"), ..Filter::default() }),
        ("query: rule", Filter { rule: some("tools.ask"), ..Filter::default() }),
        ("query: host", Filter { host: some("example.com"), ..Filter::default() }),
        ("query: path", Filter { path: some("src"), ..Filter::default() }),
        ("query: words", Filter { text: some("force origin"), ..Filter::default() }),
    ] {
        timed(name, || index.calls(&filter, 50))?;
    }
    let settings = Settings::of(&firewall);
    let here = |workspace: &Path| Surroundings::new(workspace, Path::new("/home/alice"));
    let strict = Arc::new(Policies::load(PolicyFiles::Strict.sources(), &tools)?);
    let rules = Rules { policies: strict, guard: None, surroundings: &here, settings };
    let found =
        timed("replay, recorded facts", || replay(&log, None, &rules, &mut Library::new(state.path(), tools.clone())))?;
    println!("{:<28} {} calls, {} stricter", "", found.calls, found.stricter);
    let guard = Guard::read(&[])?;
    let rules = Rules { guard: Some(&guard), ..rules };
    timed("replay, commands analysed", || replay(&log, None, &rules, &mut Library::new(state.path(), tools.clone())))?;
    let derived = timed("verify --rederive", || rederive(&log, &mut Library::new(state.path(), tools.clone())))?;
    if !derived.honest() {
        return Err(format!("the log that was just written is not honest: {derived:?}").into());
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let memory = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("{memory}");
    Ok(())
}

fn timed<T, E>(name: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let start = Instant::now();
    let done = work()?;
    println!("{name:<28} {:>10.1} ms", start.elapsed().as_secs_f64() * 1000.0);
    Ok(done)
}

/// Writes so many decisions, judged as they would be, each that is let through with its end.
fn make(state: &StateDir, firewall: &Firewall, records: usize) -> Result<(), Box<dyn Error>> {
    let log = Log::open(state)?;
    let guard = Guard::read(&[])?;
    let here = Surroundings::new(Path::new("/home/alice/project"), Path::new("/home/alice"));
    let hashes = Hashes {
        policies: Some(firewall.policies.hash()),
        settings: Some(Settings::of(firewall).hash()),
        ..Hashes::default()
    };
    let profile = serde_json::Value::Null;
    Kept::of(state.path()).keep(InForce { firewall, packs: &[], profile: &profile, hashes: &hashes })?;
    let analysed: Vec<_> = COMMANDS.iter().map(|command| (*command, guard.analyse(command, &here))).collect();
    for (number, (text, command)) in (0..records).zip(analysed.iter().cycle()) {
        let call = Call {
            id: format!("0193a6c0-0000-7000-8000-{number:012}"),
            tool: "Bash".into(),
            arguments: serde_json::from_value(serde_json::json!({ "command": text }))?,
            cwd: here.workspace.clone(),
            principal: Principal {
                agent: format!("agent-{}", number % 5),
                sub_agent: None,
                teams: Vec::new(),
                session: format!("session-{}", number % 1000),
                mode: if number % 3 == 0 { Mode::Bypass } else { Mode::Default },
                unattended: false,
            },
            origin: Origin::Library,
            caller_id: None,
        };
        let facts = Facts {
            sensitivity: Sensitivity::Sensitive,
            command: Some(command.clone()),
            urls: Vec::new(),
            mcp: None,
            paths: Vec::new(),
            sandbox: None,
            session: SessionFacts::default(),
            now: jiff::Timestamp::now(),
            notes: Vec::new(),
        };
        let verdict = firewall.judge(&call, &facts, 0);
        let effective = firewall.effective(&call, &verdict);
        let id = call.id.clone();
        log.append(&Event::Decided(Box::new(Decided {
            digest: Digest::of(&id),
            workspace: Some(here.workspace.clone()),
            hashes: hashes.clone(),
            deferred: false,
            grant: None,
            pending: None,
            process: Process::current().clone(),
            call,
            facts: Some(facts),
            verdict,
            effective,
        })))?;
        if effective == Decision::Allow {
            log.append(&Event::Finished(Finished {
                call_id: id,
                outcome: Outcome::Exited { code: 0 },
                ms: 12,
                output_bytes: 340,
                output_digest: None,
                notes: Vec::new(),
            }))?;
        }
    }
    log.sync()?;
    Ok(())
}
