use std::time::{Duration, Instant};

use portcullis::audit::{HeadState, Log, LogError, verify};
use portcullis::verdict::Decision;

use crate::support::{Helper, Place, child_arguments, decided, finished};

const EACH: usize = 100;

#[test]
#[ignore = "a child process of twenty_processes_share_one_chain"]
fn child_appends() {
    let (state, name) = child_arguments();
    let log = Log::open(&state).unwrap();
    for i in 0..EACH {
        let id = format!("{name}-{i}");
        let ticket = log.append(&decided(&id, Decision::Allow)).unwrap();
        log.append(&finished(&id)).unwrap();
        if i % 25 == 0 {
            ticket.synced().unwrap();
        }
    }
}

#[test]
fn twenty_processes_share_one_chain() {
    let place = Place::new();
    let helpers: Vec<Helper> =
        (0..20).map(|i| Helper::start("many_writers::child_appends", &place, &format!("p{i}"))).collect();
    helpers.into_iter().for_each(Helper::succeed);
    let report = verify(&place.log()).unwrap();
    assert!(report.sound(), "{:?} {:?} {:?}", report.breaks, report.torn, report.head);
    assert_eq!(
        report.records - report.checkpoints,
        1 + 20 * EACH as u64 * 2,
        "records are missing, or the log was opened twice"
    );
    assert_eq!((report.calls.allowed, report.calls.finished), (2000, 2000));
    assert_eq!((report.unfinished.len(), report.recovered), (0, 0));
    assert_eq!(report.head, HeadState::Agrees);
}

#[test]
fn i3_sixty_four_threads_share_syncs_and_each_record_is_there_when_its_caller_goes_on() {
    let place = Place::new();
    let log = Log::open(&place.state).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let (log, place) = (&log, &place);
            scope.spawn(move || {
                for i in 0..10 {
                    let seq = log.append_durable(&decided(&format!("t{thread}-{i}"), Decision::Deny)).unwrap();
                    if thread == 0 {
                        let bytes = place.bytes();
                        let line = bytes.split(|b| *b == b'\n').nth(usize::try_from(seq).unwrap()).unwrap();
                        let text = String::from_utf8_lossy(line);
                        assert!(text.contains(&format!("\"t0-{i}\"")), "record {seq} is another one: {text}");
                    }
                }
            });
        }
    });
    let report = verify(&place.log()).unwrap();
    assert!(report.sound() && report.records == 641, "{report:?}");
}

#[test]
fn two_logs_in_one_process_share_one_chain() {
    let place = Place::new();
    let (one, two) = (Log::open(&place.state).unwrap(), Log::open(&place.state).unwrap());
    for i in 0..20 {
        one.append(&finished(&format!("{i}"))).unwrap();
        two.append(&finished(&format!("{i}"))).unwrap();
    }
    let report = verify(&place.log()).unwrap();
    assert!(report.sound() && report.records == 41, "{report:?}");
}

#[test]
fn i2_a_process_that_hangs_with_the_lock_hangs_nobody_else() {
    let place = Place::new();
    let log = Log::open(&place.state).unwrap();
    let lock = std::fs::File::open(place.state.audit().join("lock")).unwrap();
    lock.lock().unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(matches!(log.append(&finished("c")), Err(LogError::Busy { .. }))));
        }
    });
    assert!(
        start.elapsed() < Duration::from_secs(9),
        "eight callers waited {:?}, one after the other",
        start.elapsed()
    );
    lock.unlock().unwrap();
    log.append(&finished("c")).unwrap();
}
