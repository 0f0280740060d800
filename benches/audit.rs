//! How many records a second the audit log takes: `cargo bench --bench audit [-- DIRECTORY ...]`.
//!
//! A small program instead of a criterion bench: what is measured is a rate under many callers, and how long each of them
//! waits. Without arguments it measures on the target directory's disk and on /dev/shm.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis::audit::{Decided, Event, Hashes, Log, log_file, verify};
use portcullis::call::{Call, Digest, Mode, Origin, Principal};
use portcullis::state::{Process, Sessions, StateDir};
use portcullis::verdict::{Decision, Finding, Severity, Stage, StageVerdict, Verdict};

const RUN: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    let mut places: Vec<PathBuf> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).map(Into::into).collect();
    if places.is_empty() {
        places = vec![env!("CARGO_TARGET_TMPDIR").into(), "/dev/shm".into()];
    }
    println!("{:<24} {:>7} {:>12} {:>10} {:>10}", "", "callers", "records/s", "p50 us", "p99 us");
    for place in places {
        println!("{} ({} bytes a record)", place.display(), serde_json::to_vec(&event()?)?.len());
        for callers in [1, 8, 64] {
            rate(&place, "durable", callers, |log, event| log.append_durable(event).map(drop))?;
        }
        rate(&place, "without sync", 1, |log, event| log.append(event).map(drop))?;
        rate(&place, "without sync", 8, |log, event| log.append(event).map(drop))?;
        verification(&place, 1_000_000)?;
        sessions(&place)?;
    }
    Ok(())
}

fn rate<E: Error + Send + Sync + 'static>(
    place: &Path,
    what: &str,
    callers: usize,
    append: impl Fn(&Log, &Event) -> Result<(), E> + Sync,
) -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir_in(place)?;
    let log = Log::open(&StateDir::open(temp.path().join("state"))?)?;
    let event = event()?;
    let start = Instant::now();
    let caller = || -> Result<Vec<Duration>, E> {
        let mut waits = Vec::new();
        while start.elapsed() < RUN {
            let begun = Instant::now();
            append(&log, &event)?;
            waits.push(begun.elapsed());
        }
        Ok(waits)
    };
    let mut waits = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..callers).map(|_| scope.spawn(caller)).collect();
        let waits = callers.into_iter().map(|c| c.join().map_err(|_| "a caller panicked")?.map_err(Into::into));
        waits.collect::<Result<Vec<_>, Box<dyn Error>>>()
    })?
    .concat();
    let seconds = start.elapsed().as_secs_f64();
    waits.sort_unstable();
    let at = |percent: usize| waits.get(waits.len() * percent / 100).map_or(0, Duration::as_micros);
    println!("{what:<24} {callers:>7} {:>12.0} {:>10} {:>10}", waits.len() as f64 / seconds, at(50), at(99));
    Ok(())
}

fn verification(place: &Path, records: usize) -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir_in(place)?;
    let state = StateDir::open(temp.path().join("state"))?;
    let log = Log::open(&state)?;
    let event = event()?;
    for _ in 0..records {
        log.append(&event)?;
    }
    let start = Instant::now();
    let report = verify(&log_file(state.path()))?;
    let seconds = start.elapsed().as_secs_f64();
    if !report.sound() {
        return Err("the log that was just written is not sound".into());
    }
    println!("verify: {} records, {} MB in {seconds:.2} s", report.records, report.bytes / 1_000_000);
    Ok(())
}

fn sessions(place: &Path) -> Result<(), Box<dyn Error>> {
    const TIMES: u32 = 20_000;
    let temp = tempfile::tempdir_in(place)?;
    let sessions = Sessions::open(&StateDir::open(temp.path().join("state"))?)?;
    let each = |start: Instant| start.elapsed().as_nanos() / u128::from(TIMES);
    let start = Instant::now();
    for _ in 0..TIMES {
        sessions.count("0193a6c0-0000-7000-8000-000000000001", Decision::Allow)?;
    }
    let count = each(start);
    let start = Instant::now();
    for _ in 0..TIMES {
        sessions.session("0193a6c0-0000-7000-8000-000000000001")?;
    }
    println!("session: count {count} ns, read {} ns", each(start));
    Ok(())
}

fn event() -> Result<Event, serde_json::Error> {
    let call = Call {
        id: "0193a6c0-0000-7000-8000-000000000000".into(),
        tool: "Bash".into(),
        arguments: serde_json::from_str(r#"{"command":"cargo test --lib audit:: 2>&1 | tail -20","timeout":120}"#)?,
        cwd: "/home/alice/project".into(),
        principal: Principal {
            agent: "coder".into(),
            sub_agent: None,
            teams: Vec::new(),
            session: "0193a6c0-0000-7000-8000-000000000001".into(),
            mode: Mode::Default,
            unattended: false,
        },
        origin: Origin::Library,
        caller_id: None,
    };
    let finding = Finding::new("test.finding", Severity::Deny, "a sentence for the agent and the auditor");
    let stages = Stage::ALL.map(|stage| {
        StageVerdict::new(stage, if stage == Stage::Command { vec![finding.clone()] } else { Vec::new() })
    });
    Ok(Event::Decided(Box::new(Decided {
        digest: Digest::of(&call.id),
        call,
        facts: None,
        verdict: Verdict::combine(Vec::new(), stages.into()),
        effective: Decision::Deny,
        workspace: None,
        hashes: Hashes { policies: Some(Digest::of("p")), packs: Some(Digest::of("q")), ..Hashes::default() },
        deferred: false,
        grant: None,
        pending: None,
        process: Process::current().clone(),
    })))
}
