use portcullis::audit::read::{self, CallState, ReadError};
use portcullis::audit::{ApprovalEvent, Content, Control, Event, Finished, Log, Outcome, Rejected, Step, Unknown};
use portcullis::call::Digest;
use portcullis::state::Process;
use portcullis::verdict::{Decision, Finding, Level, Severity};

use crate::support::{Place, call, decided, finished};

#[test]
fn what_was_written_reads_back_forwards_and_backwards() {
    let place = Place::new();
    let mut events = vec![
        decided("call-1", Decision::Allow),
        finished("call-1"),
        Event::Control(Control {
            change: portcullis::audit::Change::PolicyChanged,
            detail: "two policies\nmore".into(),
            before: Some(Digest::of("a")),
            after: Some(Digest::of("b")),
            by: Some("alice".into()),
        }),
    ];
    let process = Process::current();
    events.push(Event::Unknown(Unknown { call_id: "call-1".into(), process: process.clone() }));
    events.push(Event::Rejected(Rejected {
        tool: "Basch".into(),
        arguments: serde_json::json!(["no", "object", 1e300, null]),
        principal: call("x").principal,
        caller_id: Some("7".into()),
        finding: Finding::new("tool.unknown", Severity::Deny, "there is no such tool"),
    }));
    for outcome in [
        Outcome::NotRun { reason: "r".into() },
        Outcome::Ok,
        Outcome::SetupFailed { message: "m".into() },
        Outcome::Signaled { signal: 9 },
        Outcome::TimedOut,
        Outcome::ToolError { message: "m".into() },
    ] {
        let Event::Finished(record) = finished("call-1") else { panic!("not an outcome") };
        events.push(Event::Finished(Finished { outcome, output_digest: None, ..record }));
    }
    let log = Log::open(&place.state).unwrap();
    for event in &events {
        log.append(event).unwrap();
    }
    let forwards: Vec<_> = read::records(&place.log()).unwrap().map(Result::unwrap).collect();
    let read_back: Vec<Event> = forwards[1..]
        .iter()
        .map(|record| match &record.content {
            Content::Event(event) => event.clone(),
            Content::Foreign { kind, .. } => panic!("`{kind}` was not known"),
        })
        .collect();
    assert_eq!(read_back, events);
    let mut backwards: Vec<_> = read::newest(&place.log()).unwrap().map(Result::unwrap).collect();
    backwards.reverse();
    assert_eq!(backwards, forwards);
    let text = String::from_utf8(place.bytes()).unwrap();
    let again: Vec<String> = forwards.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    assert_eq!(again, text.lines().collect::<Vec<_>>(), "a record's JSON is not its line");
    assert_eq!(read::last(&place.log(), 2).unwrap(), forwards[forwards.len() - 2..]);
    assert_eq!(read::last(&place.log(), 99).unwrap(), forwards);
}

#[test]
fn a_call_is_shown_with_its_approval_and_its_outcome() {
    let place = Place::new();
    let log = Log::open(&place.state).unwrap();
    let approval = |step, call_id: &str| {
        Event::Approval(ApprovalEvent {
            approval: "k3f9-x2ma".into(),
            step,
            call_id: call_id.into(),
            digest: Digest::of("d"),
            level: Level::Operator,
            by: None,
            reason: None,
            findings: vec!["test.ask".into()],
            scope: None,
        })
    };
    let with = |event: Event, grant: Option<&str>, pending: Option<&str>| {
        let Event::Decided(mut record) = event else { panic!("not a decision") };
        (record.grant, record.pending) = (grant.map(Into::into), pending.map(Into::into));
        Event::Decided(record)
    };
    log.append(&with(decided("call-asking", Decision::Ask(Level::Operator)), None, Some("k3f9-x2ma"))).unwrap();
    log.append(&approval(Step::Requested, "call-asking")).unwrap();
    log.append(&approval(Step::Granted, "call-asking")).unwrap();
    log.append(&approval(Step::Consumed, "call-asking")).unwrap();
    log.append(&with(decided("call-granted", Decision::Allow), Some("k3f9-x2ma"), None)).unwrap();
    log.append(&finished("call-granted")).unwrap();
    log.append(&decided("call-plain", Decision::Deny)).unwrap();

    let steps = |view: &read::CallView| view.approvals.iter().map(|(_, event)| event.step).collect::<Vec<_>>();
    let asking = read::find_call(&place.log(), "call-as").unwrap();
    assert_eq!((asking.state, asking.seq), (CallState::Asked, 1));
    assert_eq!(steps(&asking), [Step::Requested, Step::Granted, Step::Consumed]);
    let granted = read::find_call(&place.log(), "call-granted").unwrap();
    assert_eq!(granted.state, CallState::Finished);
    assert_eq!(steps(&granted), [Step::Requested, Step::Granted, Step::Consumed]);
    assert!(granted.finished.is_some());
    let plain = read::find_call(&place.log(), "call-p").unwrap();
    assert_eq!((plain.state, plain.approvals.len()), (CallState::Denied, 0));

    assert!(matches!(read::find_call(&place.log(), "call"), Err(ReadError::Ambiguous { ids, .. }) if ids.len() == 3));
    log.append(&decided("call-plain-2", Decision::Deny)).unwrap();
    for i in 0..20 {
        log.append(&decided(&format!("call-{i}"), Decision::Deny)).unwrap();
    }
    log.append(&decided("call", Decision::Deny)).unwrap();
    for (part, id) in [("call-plain", "call-plain"), ("ain-2", "call-plain-2"), ("call", "call")] {
        assert_eq!(read::find_call(&place.log(), part).unwrap().decided.call.id, id, "found by `{part}`");
    }
    let many = read::find_call(&place.log(), "call-").unwrap_err();
    assert!(matches!(&many, ReadError::Ambiguous { ids, .. } if ids.len() == 5), "{many}");
    assert!(matches!(read::find_call(&place.log(), "none"), Err(ReadError::NotFound(_))));
    assert!(matches!(read::find_call(&place.log(), "cal"), Err(ReadError::TooShort(_))));
}
