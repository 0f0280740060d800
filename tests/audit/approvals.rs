use std::fs;

use jiff::{SignedDuration, Timestamp};
use portcullis::approval::{Approval, ApprovalError, Ask, Grant, Lifetimes, MAX_PENDING, Role, Status, Store};
use portcullis::audit::Step;
use portcullis::call::Digest;
use portcullis::verdict::{Level, Severity, Verdict};

use crate::support::{Helper, Place, call, child_arguments, verdict};

fn open(place: &Place) -> Store {
    Store::open(&place.state, Lifetimes::default()).unwrap()
}

fn ask(
    store: &Store,
    digest: &str,
    level: Level,
    verdict: &Verdict,
    now: Timestamp,
) -> Result<Approval, ApprovalError> {
    let call = call("call-1");
    let ask = Ask { call: &call, digest: Digest::of(digest), verdict, paths: &[], level, operator: "olga", like: None };
    Ok(store.request(&ask, now)?.approval)
}

fn warn() -> Verdict {
    verdict(&[("git.force-push", Severity::Warn)])
}

fn operator() -> Role {
    Role::Operator("olga".into())
}

fn minutes(n: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(n)
}

#[test]
fn i4_an_approval_binds_one_call_for_one_use() {
    let place = Place::new();
    let store = open(&place);
    let pending = ask(&store, "d", Level::Operator, &warn(), minutes(0)).unwrap();
    assert_eq!((pending.status, pending.expires), (Status::Pending, minutes(10)));
    assert_eq!(store.exact(&pending.id).unwrap().unwrap().call, call("call-1"), "the person sees the exact call");
    assert_eq!(store.find_grant(&Digest::of("d"), "session", minutes(1)).unwrap(), None, "nobody has granted it");

    let grant = store.grant(&pending.id, &operator(), minutes(9)).unwrap();
    assert_eq!((grant.level, grant.by.as_str(), grant.expires), (Level::Operator, "olga", minutes(19)));
    assert_eq!(grant.covers(&Digest::of("d"), &warn()), Ok(()));
    for (digest, session) in [("e", "session"), ("d", "other")] {
        let found = store.find_grant(&Digest::of(digest), session, minutes(10)).unwrap();
        assert_eq!(found, None, "the grant serves digest {digest} in session {session}");
    }
    let found = store.find_grant(&Digest::of("d"), "session", minutes(10)).unwrap().unwrap();
    assert_eq!(found, grant);

    let used = store.consume(&found, minutes(10)).unwrap();
    assert_eq!((used.status, used.event(Step::Consumed).findings), (Status::Consumed, vec!["git.force-push".into()]));
    let again = store.consume(&grant, minutes(10)).unwrap_err();
    assert!(matches!(again, ApprovalError::NotGranted { status: Status::Consumed, .. }), "used twice: {again}");
    assert_eq!(store.find_grant(&Digest::of("d"), "session", minutes(10)).unwrap(), None);
    assert_eq!(store.exact(&pending.id).unwrap(), None, "the arguments were kept after use");
}

#[test]
fn asking_again_reuses_what_is_pending_and_shows_what_is_new() {
    let place = Place::new();
    let store = open(&place);
    let call = call("call-1");
    let request = |verdict: &Verdict, now| {
        let ask = Ask {
            call: &call,
            digest: Digest::of("d"),
            verdict,
            paths: &[],
            level: Level::Operator,
            operator: "olga",
            like: None,
        };
        store.request(&ask, now).unwrap()
    };
    let first = request(&warn(), minutes(0));
    assert!(first.fresh && first.superseded.is_none());
    let again = request(&warn(), minutes(1));
    assert_eq!((again.fresh, &again.approval), (false, &first.approval));

    let more = verdict(&[("git.force-push", Severity::Warn), ("net.upload", Severity::Warn)]);
    let second = request(&more, minutes(2));
    assert!(second.fresh, "the new finding is not shown");
    let expired = Approval { status: Status::Expired, ..first.approval };
    assert_eq!(second.superseded.as_ref(), Some(&expired), "the log is not told that the first has ended");
    assert_eq!(store.get(&expired.id).unwrap(), expired);
    assert_eq!(store.list(Some(Status::Pending)).unwrap(), std::slice::from_ref(&second.approval));

    let third = request(&more, minutes(20));
    assert!(third.fresh, "an expired approval was offered again");
    assert_eq!(store.list(None).unwrap().len(), 3);
}

#[test]
fn i7_only_the_right_person_answers() {
    let place = Place::new();
    let store = open(&place);
    let one = ask(&store, "one", Level::Operator, &warn(), minutes(0)).unwrap();
    let two = ask(&store, "two", Level::Reviewer, &verdict(&[("r", Severity::Review)]), minutes(0)).unwrap();
    let agent = Role::Agent("agent".into());
    let own = Role::Reviewer("olga".into());
    let other = Role::Reviewer("rita".into());
    for approval in [&one, &two] {
        let granted = store.grant(&approval.id, &agent, minutes(1));
        assert!(matches!(granted, Err(ApprovalError::AgentCredential { .. })), "an agent granted: {granted:?}");
        let refused = store.refuse(&approval.id, &agent, None, minutes(1));
        assert!(matches!(refused, Err(ApprovalError::AgentCredential { .. })), "an agent refused: {refused:?}");
    }
    let operators = store.grant(&two.id, &operator(), minutes(1));
    assert!(matches!(operators, Err(ApprovalError::NeedsReviewer { .. })), "{operators:?}");
    let their_own = store.grant(&two.id, &own, minutes(1));
    assert!(matches!(their_own, Err(ApprovalError::SamePerson { .. })), "{their_own:?}");
    assert_eq!(store.get(&two.id).unwrap().status, Status::Pending, "a refused answer changed something");
    assert_eq!(store.grant(&two.id, &other, minutes(1)).unwrap().level, Level::Reviewer);
    assert_eq!(store.grant(&one.id, &own, minutes(1)).unwrap().level, Level::Operator);
}

#[test]
fn what_is_refused_or_expired_stays_so_and_its_arguments_are_gone() {
    let place = Place::new();
    let store = open(&place);
    let refused = ask(&store, "a", Level::Operator, &warn(), minutes(0)).unwrap();
    let event = store.refuse(&refused.id, &operator(), Some("no"), minutes(1)).unwrap().event(Step::Refused);
    assert_eq!((event.by.as_deref(), event.reason.as_deref()), (Some("olga"), Some("no")));
    let late = ask(&store, "b", Level::Operator, &warn(), minutes(0)).unwrap();
    let unused = ask(&store, "c", Level::Operator, &warn(), minutes(0)).unwrap();
    let grant = store.grant(&unused.id, &operator(), minutes(5)).unwrap();

    let error = store.grant(&refused.id, &operator(), minutes(2)).unwrap_err();
    assert!(matches!(error, ApprovalError::NotPending { status: Status::Refused, .. }), "{error}");
    let error = store.grant(&late.id, &operator(), minutes(10)).unwrap_err();
    assert!(matches!(error, ApprovalError::Expired { .. }), "ten minutes have passed: {error}");
    let error = store.consume(&grant, minutes(15)).unwrap_err();
    assert!(matches!(error, ApprovalError::Expired { .. }), "the grant was for ten minutes: {error}");

    let ended: Vec<Approval> = store.expire(minutes(12)).unwrap();
    assert_eq!(ended.iter().map(|a| &a.id).collect::<Vec<_>>(), [&late.id]);
    let ended: Vec<Approval> = store.expire(minutes(15)).unwrap();
    assert_eq!(ended.iter().map(|a| &a.id).collect::<Vec<_>>(), [&unused.id]);
    for id in [&refused.id, &late.id, &unused.id] {
        assert_eq!(store.exact(id).unwrap(), None, "the arguments of {id} were kept");
    }
}

#[test]
fn arguments_lie_encrypted_and_only_this_directorys_key_opens_them() {
    let place = Place::new();
    let store = open(&place);
    let pending = ask(&store, "d", Level::Operator, &warn(), minutes(0)).unwrap();
    for file in ["state.db", "state.db-wal"] {
        let bytes = fs::read(place.state.path().join(file)).unwrap_or_default();
        assert!(!bytes.windows(5).any(|w| w == b"wc -c"), "{file} holds the command in the clear");
    }
    drop(store);
    fs::remove_file(place.state.keys().join("approvals.key")).unwrap();
    let store = open(&place);
    assert!(matches!(store.exact(&pending.id), Err(ApprovalError::Seal(_))), "another key opened the arguments");
}

#[test]
fn i6_a_session_cannot_drown_its_operator() {
    let place = Place::new();
    let patient = Lifetimes { per_minute: MAX_PENDING + 1, ..Lifetimes::default() };
    let store = Store::open(&place.state, patient).unwrap();
    for i in 0..MAX_PENDING {
        ask(&store, &i.to_string(), Level::Operator, &warn(), minutes(0)).unwrap();
    }
    let error = ask(&store, "one more", Level::Operator, &warn(), minutes(0)).unwrap_err();
    assert!(matches!(error, ApprovalError::TooMany { .. }), "{error}");
    assert!(ask(&store, "0", Level::Operator, &warn(), minutes(0)).is_ok(), "what is pending already is found");
    assert!(ask(&store, "one more", Level::Operator, &warn(), minutes(10)).is_ok(), "the others have lapsed");
}

#[test]
fn i6_a_session_that_asks_too_often_is_told_and_what_was_withheld_is_counted() {
    let place = Place::new();
    let few = Lifetimes { per_minute: 2, ..Lifetimes::default() };
    let store = Store::open(&place.state, few).unwrap();
    let asks = |digest: &str, at: i64| ask(&store, digest, Level::Operator, &warn(), minutes(at));
    for digest in ["a", "b"] {
        asks(digest, 100).unwrap();
    }
    for digest in ["c", "d", "c"] {
        assert!(matches!(asks(digest, 100), Err(ApprovalError::TooOften { most: 2, .. })), "{digest}");
    }
    assert_eq!(asks("a", 100).unwrap().digest, Digest::of("a"), "what is pending already is found");
    assert_eq!(store.withheld(minutes(101)).unwrap(), [("session".to_owned(), 3)]);
    asks("c", 102).unwrap();
    assert_eq!(store.withheld(minutes(200)).unwrap(), [], "what was withheld is told for an hour");
}

fn grant_in(store: &Store) -> Grant {
    store.find_grant(&Digest::of("d"), "session", Timestamp::now()).unwrap().unwrap()
}

#[test]
#[ignore = "a child process of i4_of_many_processes_one_uses_the_grant"]
fn child_consumes() {
    let (state, _) = child_arguments();
    let store = Store::open(&state, Lifetimes::default()).unwrap();
    let grant = grant_in(&store);
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    match store.consume(&grant, Timestamp::now()) {
        Ok(_) => println!("consumed by me"),
        Err(ApprovalError::NotGranted { .. }) => println!("lost the race"),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn i4_of_many_processes_one_uses_the_grant() {
    let place = Place::new();
    let store = open(&place);
    for round in 0..5 {
        let pending = ask(&store, "d", Level::Operator, &warn(), Timestamp::now()).unwrap();
        store.grant(&pending.id, &operator(), Timestamp::now()).unwrap();
        let mut helpers: Vec<Helper> = (0..4).map(|_| Helper::start("approvals::child_consumes", &place, "")).collect();
        for helper in &mut helpers {
            helper.wait_for("ready").unwrap();
        }
        let inputs: Vec<_> = helpers.iter_mut().map(|helper| helper.child.stdin.take().unwrap()).collect();
        drop(inputs);
        let won = helpers.iter_mut().filter_map(|helper| helper.wait_for("e")).filter(|l| l.contains("by me")).count();
        assert_eq!(won, 1, "round {round}: {won} processes used one grant");
        helpers.into_iter().for_each(Helper::succeed);
    }
}

#[test]
#[ignore = "a child process of i3_each_step_survives_the_process_that_took_it"]
fn child_takes_a_step_and_dies() {
    let (state, step) = child_arguments();
    let store = Store::open(&state, Lifetimes::default()).unwrap();
    let now = Timestamp::now();
    let call = call("call-1");
    let verdict = warn();
    let ask = Ask {
        call: &call,
        digest: Digest::of("d"),
        verdict: &verdict,
        paths: &[],
        level: Level::Operator,
        operator: "olga",
        like: None,
    };
    match step.as_str() {
        "request" => drop(store.request(&ask, now).unwrap()),
        "grant" => {
            let pending = store.list(Some(Status::Pending)).unwrap();
            store.grant(&pending[0].id, &operator(), now).unwrap();
        }
        "consume" => drop(store.consume(&grant_in(&store), now).unwrap()),
        other => panic!("no step `{other}`"),
    }
    println!("done");
    std::process::abort();
}

#[test]
fn i3_each_step_survives_the_process_that_took_it() {
    let place = Place::new();
    for (step, status) in [("request", Status::Pending), ("grant", Status::Granted), ("consume", Status::Consumed)] {
        let mut helper = Helper::start("approvals::child_takes_a_step_and_dies", &place, step);
        assert!(helper.wait_for("done").is_some(), "the child failed to {step}");
        assert!(!helper.child.wait().unwrap().success(), "the child did not die");
        let all = open(&place).list(None).unwrap();
        assert_eq!(all.iter().map(|a| a.status).collect::<Vec<_>>(), [status], "after `{step}` and a crash");
    }
}
