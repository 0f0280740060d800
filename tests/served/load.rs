//! Many callers at once, through the death of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::sync::RwLock;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::World;
use crate::served::{Connection, Served, json_headers};

const CALLERS: usize = 64;

/// How many answers of each kind there were, by status; 0 stands for those that the daemon's death cut off.
type Counts = BTreeMap<u16, usize>;

fn caller(served: &RwLock<Served>, number: usize, until: Instant) -> Counts {
    let mut counts = Counts::new();
    let calls = [
        ("Read", json!({ "path": "a.txt" }), 200),
        ("Bash", json!({ "command": format!("echo {number}") }), 202),
        ("terminal", json!({ "command": "rm -rf /" }), 403),
        ("Glob", json!({ "pattern": "*.txt" }), 200),
    ];
    let mut kept = None;
    for (tool, parameters, expected) in calls.iter().cycle().skip(number) {
        if Instant::now() > until {
            break;
        }
        let connection = match &mut kept {
            Some(connection) => connection,
            None => {
                // Waits here while a new daemon is started.
                let (address, token) = {
                    let served = served.read().expect("no panic");
                    (served.address.clone(), served.agent("local"))
                };
                let Some(open) = Connection::try_open(&address) else { continue };
                kept.insert((open, json_headers(&token)))
            }
        };
        let body = json!({ "parameters": parameters, "session": format!("s{number}") }).to_string();
        let (open, headers) = connection;
        let path = format!("/api/tools/{tool}/execute");
        match open.try_ask("POST", &path, headers.as_slice(), body.as_bytes()) {
            Some(reply) => {
                assert_eq!(reply.status, *expected, "{tool} {parameters}: {reply:?}");
                *counts.entry(reply.status).or_default() += 1;
            }
            None => {
                *counts.entry(0).or_default() += 1;
                kept = None;
            }
        }
    }
    counts
}

/// `PORTCULLIS_LOAD_SECONDS` makes it longer: 600 for the ten minutes of a release.
#[test]
fn sixty_four_callers_get_the_right_answers_and_every_call_is_on_record() {
    let seconds = std::env::var("PORTCULLIS_LOAD_SECONDS").map_or(4, |text| text.parse().expect("a number of seconds"));
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = RwLock::new(Served::start(&world));
    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut total = Counts::new();
    thread::scope(|scope| {
        let served = &served;
        let callers: Vec<_> = (0..CALLERS).map(|n| scope.spawn(move || caller(served, n, began + time))).collect();
        watch_memory(served, began + time / 2);
        killed(&world, served);
        watch_memory(served, began + time);
        for (status, count) in callers.into_iter().flat_map(|caller| caller.join().expect("counts")) {
            *total.entry(status).or_default() += count;
        }
    });
    let cut = total.remove(&0).unwrap_or_default();
    assert!(cut <= CALLERS, "{cut} calls were cut off by one death");
    let recorded = recorded(&world);
    for (status, word) in [(200, "allow"), (202, "ask"), (403, "deny")] {
        let (told, recorded) = (total[&status], recorded[word]);
        assert!((told..=told + cut).contains(&recorded), "{word}: {told} answers, {recorded} records, {cut} cut off");
    }
    let ends = recorded["finished"] + recorded.get("unknown").copied().unwrap_or_default();
    assert_eq!(ends, recorded["allow"], "a call that ran has no end on record: {recorded:?}");
    let verified = world.run(["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let calls: usize = total.values().sum();
    eprintln!("{calls} calls in {seconds} s: {total:?}, {cut} cut off; on record: {recorded:?}");
}

/// Looks at the daemon's memory until `end`. It settles, and then does not grow with the calls.
fn watch_memory(served: &RwLock<Served>, end: Instant) {
    let pid = served.read().expect("no panic").pid();
    let began = Instant::now();
    let time = end.saturating_duration_since(began);
    let mut seen = Vec::new();
    while Instant::now() < end {
        thread::sleep((time / 60).min(end.saturating_duration_since(Instant::now())));
        seen.push((began.elapsed(), memory(pid)));
    }
    let within = |from: u32, to: u32| {
        let part = seen.iter().filter(|(at, _)| *at >= time * from / 10 && *at <= time * to / 10);
        part.map(|(_, kb)| *kb).max().unwrap_or_default()
    };
    let (settled, late) = (within(2, 5), within(7, 10));
    eprintln!("resident: {settled} kB in the time from 2/10 to 5/10, {late} kB from 7/10 on");
    if time >= Duration::from_secs(60) {
        assert!(late <= settled + settled / 10 + 4096, "the daemon grows with its calls: {seen:?}");
    }
}

/// The resident memory of a process, in kB.
pub fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Kills the daemon and starts another, which has everything that waited.
fn killed(world: &World, served: &RwLock<Served>) {
    let mut place = served.write().expect("no panic");
    let before = waiting(&place);
    assert!(!before.is_empty(), "nothing waits");
    place.signal(Signal::SIGKILL);
    place.ended();
    let next = Served::start(world);
    let after = waiting(&next);
    // What was asked between the look and the death is there, too.
    let gone: Vec<_> = before.iter().filter(|(id, lapses)| !after.contains_key(*id) && **lapses > now()).collect();
    assert!(gone.is_empty(), "pending approvals were lost: {gone:?}");
    eprintln!("killed with {} calls waiting, started again with {}", before.len(), after.len());
    *place = next;
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The approvals that wait, and when they lapse.
fn waiting(served: &Served) -> BTreeMap<String, jiff::Timestamp> {
    let listed = served.get("/api/approvals", &served.operator()).json();
    let entry = |entry: &Value| {
        let text = |name: &str| entry["approval"][name].as_str().expect("text").to_owned();
        (text("id"), text("expires").parse().expect("a time"))
    };
    listed["approvals"].as_array().expect("a list").iter().map(entry).collect()
}

/// How many records there are of each kind; decisions by what was decided. Each call is there once.
fn recorded(world: &World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut calls = BTreeSet::new();
    // The log and the files of it that were closed, when it had grown.
    let log = world.log();
    let files = log.parent().expect("a directory").read_dir().expect("listable");
    let files = files.map(|entry| entry.expect("listable").path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let lines = files.flat_map(|path| BufReader::new(File::open(path).expect("a log")).lines());
    for line in lines {
        let record: Value = serde_json::from_str(&line.expect("a line")).expect("a record");
        let kind = record["kind"].as_str().expect("a kind").to_owned();
        if kind == "decided" {
            let effective = record["effective"].as_str().expect("a decision");
            *counts.entry(effective.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
            assert!(calls.insert(record["call"]["id"].as_str().expect("an id").to_owned()), "recorded twice: {record}");
        } else {
            *counts.entry(kind).or_default() += 1;
        }
    }
    counts
}
