use portcullis::audit::read::{CallState, find_call};
use portcullis::audit::{Log, verify};
use portcullis::verdict::Decision;

use crate::support::{Helper, Place, child_arguments, decided, finished, start_one_call};

#[test]
#[ignore = "a child process of the tests below"]
fn child_runs_calls() {
    let (state, name) = child_arguments();
    let log = Log::open(&state).unwrap();
    for i in 0.. {
        let id = format!("{name}-{i:05}");
        log.append(&decided(&id, Decision::Allow)).unwrap();
        println!("started {id}");
        log.append(&finished(&id)).unwrap();
    }
}

#[test]
#[ignore = "a child process of i3_a_call_whose_process_died_is_unknown_and_one_that_runs_is_not"]
fn child_starts_one_call() {
    start_one_call();
}

#[test]
fn i3_a_call_whose_process_died_is_unknown_and_one_that_runs_is_not() {
    let place = Place::new();
    let mut dying = Helper::start("crash::child_starts_one_call", &place, "call-dying");
    let mut running = Helper::start("crash::child_starts_one_call", &place, "call-running");
    dying.wait_for("started").unwrap();
    running.wait_for("started").unwrap();
    assert_eq!(find_call(&place.log(), "call-dying").unwrap().state, CallState::Running);
    dying.kill();

    let states = || verify(&place.log()).unwrap().unfinished;
    assert_eq!(find_call(&place.log(), "call-dying").unwrap().state, CallState::OutcomeUnknown);
    assert_eq!(
        states(),
        [("call-dying".to_owned(), CallState::OutcomeUnknown), ("call-running".to_owned(), CallState::Running)]
    );

    let log = Log::open(&place.state).unwrap();
    let lost: Vec<String> = log.settle().unwrap().into_iter().map(|unknown| unknown.call_id).collect();
    assert_eq!(lost, ["call-dying"], "the calls that a dead process left");
    assert_eq!(find_call(&place.log(), "call-dying").unwrap().state, CallState::OutcomeUnknown);
    assert_eq!(states(), [("call-running".to_owned(), CallState::Running)]);
    assert_eq!(log.settle().unwrap(), [], "a call was settled twice");

    running.kill();
    let lost: Vec<String> = log.settle().unwrap().into_iter().map(|unknown| unknown.call_id).collect();
    assert_eq!(lost, ["call-running"], "a call that was still open at the last settling is forgotten");
    assert!(verify(&place.log()).unwrap().sound());
}

#[test]
fn i3_kill_9_at_any_moment_leaves_a_log_that_verifies_and_settles() {
    let place = Place::new();
    let mut lost = 0;
    for round in 0..25_usize {
        let mut helper = Helper::start("crash::child_runs_calls", &place, &format!("r{round}"));
        // A different number of calls each round, and then whatever the child is doing.
        for _ in 0..(round * 7) % 40 + 1 {
            helper.wait_for("started").unwrap();
        }
        helper.kill();
        let report = verify(&place.log()).unwrap();
        assert!(report.breaks.is_empty(), "round {round}: {:?}", report.breaks);
        assert!(report.unfinished.len() <= 1, "one process runs one call at a time: {:?}", report.unfinished);
        assert!(report.unfinished.iter().all(|(_, state)| *state == CallState::OutcomeUnknown), "{report:?}");
        let settled = Log::open(&place.state).unwrap().settle().unwrap();
        assert_eq!(settled.len(), report.unfinished.len(), "round {round}");
        lost += settled.len() as u64;
        let report = verify(&place.log()).unwrap();
        assert!(report.sound() && report.unfinished.is_empty(), "round {round}: {report:?}");
    }
    assert_eq!(verify(&place.log()).unwrap().calls.unknown, lost);
}
