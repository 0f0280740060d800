use std::fs;

use portcullis::audit::read::records;
use portcullis::audit::{Content, Event, Flaw, HeadState, Log, LogError, Recovered, Trouble, verify};
use portcullis::call::Digest;
use portcullis::verdict::Decision;
use proptest::prelude::*;

use crate::support::{Place, decided, finished};

/// The troubles that the log says it had.
fn troubles(place: &Place) -> Vec<Trouble> {
    let events = records(&place.log()).unwrap().map(|record| record.unwrap().content);
    events
        .filter_map(|content| match content {
            Content::Event(Event::Recovered(Recovered { trouble, .. })) => Some(trouble),
            _ => None,
        })
        .collect()
}

#[test]
fn every_flipped_byte_is_found() {
    let place = Place::with_records(2);
    let whole = place.bytes();
    assert!(verify(&place.log()).unwrap().sound());
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(place.log(), &bytes).unwrap();
        let report = verify(&place.log()).unwrap();
        assert!(
            !report.sound(),
            "byte {at} was changed from {:?} to {:?} unseen",
            whole[at] as char,
            bytes[at] as char
        );
    }
}

#[test]
fn lines_that_are_removed_swapped_doubled_or_forged_are_found_where_they_are() {
    let place = Place::with_records(3);
    let whole = place.bytes();
    let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    assert_eq!(lines.len(), 8);
    for at in 0..lines.len() - 1 {
        let offset: usize = lines[..at].iter().map(|line| line.len()).sum();
        for (what, edited, line) in [
            ("removed", [&lines[..at], &lines[at + 1..]].concat(), at + 1),
            ("doubled", [&lines[..=at], &lines[at..]].concat(), at + 2),
            ("swapped", [&lines[..at], &[lines[at + 1], lines[at]], &lines[at + 2..]].concat(), at + 1),
        ] {
            fs::write(place.log(), edited.concat()).unwrap();
            let report = verify(&place.log()).unwrap();
            let first = report.breaks.first().unwrap_or_else(|| panic!("line {} {what}: not found", at + 1));
            assert_eq!(first.line, line as u64, "line {} {what}: {first}", at + 1);
            if what != "doubled" {
                assert_eq!(first.offset, offset as u64, "line {} {what}: {first}", at + 1);
            }
        }
    }
}

#[test]
fn a_break_says_what_was_expected_and_what_was_found() {
    let place = Place::with_records(1);
    let text = String::from_utf8(place.bytes()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let forged = lines[1].replace("agent", "tnega");
    fs::write(place.log(), text.replace(lines[1], &forged)).unwrap();
    let report = verify(&place.log()).unwrap();
    assert_eq!(report.breaks.len(), 1, "{:?}", report.breaks);
    let broken = &report.breaks[0];
    assert_eq!(broken.flaw, Flaw::Prev { expected: Digest::of(&forged), found: Digest::of(lines[1]) });
    let said = broken.to_string();
    let offset = lines[0].len() + lines[1].len() + 2;
    for part in ["line 3", &format!("byte {offset}"), &Digest::of(&forged).to_string(), "altered"] {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
}

#[test]
fn lines_cut_from_the_end_are_found_and_recorded() {
    for kept in 0..6 {
        let place = Place::with_records(2);
        let whole = place.bytes();
        let end: usize = whole.split_inclusive(|b| *b == b'\n').take(kept).map(<[u8]>::len).sum();
        fs::write(place.log(), &whole[..end]).unwrap();
        let report = verify(&place.log()).unwrap();
        assert_eq!(report.head, HeadState::Cut { seq: 5 }, "{kept} lines kept");
        assert!(!report.sound());
        Log::open(&place.state).unwrap();
        let found = troubles(&place);
        assert!(
            matches!(found[..], [Trouble::Cut { from, to: 5, rebooted: false, .. }] if from == kept as u64),
            "{kept} lines kept: {found:?}"
        );
        assert!(verify(&place.log()).unwrap().sound(), "what was recorded is not found broken again");
    }
}

#[test]
fn a_tail_that_a_power_cut_took_is_told_from_one_that_somebody_cut() {
    let place = Place::with_records(1);
    let whole = place.bytes();
    let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    let head = String::from_utf8(head_of(&whole)).unwrap();
    let boot = portcullis::state::Process::current().boot.as_str();
    let earlier = head.replace(boot, "11111111-2222-3333-4444-555555555555");
    fs::write(place.state.audit().join("head"), earlier).unwrap();
    fs::write(place.log(), &whole[..last]).unwrap();
    Log::open(&place.state).unwrap();
    assert!(
        matches!(troubles(&place)[..], [Trouble::Cut { from: 3, to: 3, rebooted: true, .. }]),
        "{:?}",
        troubles(&place)
    );
}

#[test]
fn i3_a_torn_last_line_is_set_aside_and_recorded_wherever_it_was_cut() {
    let place = Place::with_records(1);
    Log::open(&place.state).unwrap().append(&finished("last")).unwrap();
    let whole = place.bytes();
    let last = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    let head = fs::read(place.state.audit().join("head")).unwrap();
    for cut in last + 1..whole.len() {
        for entry in fs::read_dir(place.state.audit()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("torn-") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        fs::write(place.log(), &whole[..cut]).unwrap();
        // The head is written after its line: in a crash it still names the line before.
        fs::write(place.state.audit().join("head"), head_of(&whole[..last])).unwrap();
        let report = verify(&place.log()).unwrap();
        assert_eq!(report.torn.map(|torn| (torn.offset, torn.bytes)), Some((last as u64, (cut - last) as u64)));

        let log = Log::open(&place.state).unwrap();
        log.append(&finished("after")).unwrap();
        let now = place.bytes();
        assert_eq!(now[..last], whole[..last], "cut at {cut}: earlier records have changed");
        let found = troubles(&place);
        let [Trouble::Torn { bytes, sha256, file }] = &found[..] else { panic!("cut at {cut}: recorded {found:?}") };
        let fragment = fs::read(place.state.audit().join(file)).unwrap();
        assert_eq!(fragment, &whole[last..cut], "cut at {cut}: the fragment was not kept");
        assert_eq!((*bytes, *sha256), ((cut - last) as u64, Digest::of(&fragment)));
        let report = verify(&place.log()).unwrap();
        assert!(report.sound(), "cut at {cut}: {report:?}");
    }
    assert_ne!(head, head_of(&whole[..last]), "the test made no head of its own");
}

/// What the head file holds when a log has these bytes.
fn head_of(log: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = log.strip_suffix(b"\n").unwrap().split(|b| *b == b'\n').collect();
    let hash = Digest::of(lines[lines.len() - 1]);
    let boot = portcullis::state::Process::current().boot.as_str();
    format!("{:020} {:020} {hash} {boot:36}\n", lines.len() - 1, log.len()).into_bytes()
}

#[test]
fn an_altered_last_line_and_a_missing_head_are_recorded() {
    let place = Place::with_records(1);
    let text = String::from_utf8(place.bytes()).unwrap();
    fs::write(place.log(), text.replace("call-denied", "call-demied")).unwrap();
    assert!(matches!(verify(&place.log()).unwrap().head, HeadState::Altered { seq: 3, .. }));
    Log::open(&place.state).unwrap();
    assert!(matches!(troubles(&place)[..], [Trouble::Altered { seq: 3, .. }]), "{:?}", troubles(&place));

    fs::remove_file(place.state.audit().join("head")).unwrap();
    assert_eq!(verify(&place.log()).unwrap().head, HeadState::Absent);
    Log::open(&place.state).unwrap();
    assert_eq!(troubles(&place).last(), Some(&Trouble::Headless));
    assert!(verify(&place.log()).unwrap().sound());
}

#[test]
fn i3_a_log_that_is_cut_or_replaced_under_a_writer_stops_it_until_it_is_opened_anew() {
    let place = Place::with_records(1);
    let log = Log::open(&place.state).unwrap();
    log.append(&finished("x")).unwrap();
    let whole = place.bytes();
    fs::write(place.log(), &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(log.append(&finished("y")), Err(LogError::Shrunk { .. })));
    assert!(matches!(log.append(&finished("y")), Err(LogError::Stopped { .. })), "it went on after a loss");
    log.reopen().unwrap();
    log.append_durable(&finished("y")).unwrap();
    let found = troubles(&place);
    assert!(
        matches!(found[..], [Trouble::Torn { .. }, Trouble::Cut { .. }, Trouble::Stopped { .. }]),
        "not everything was recorded: {found:?}"
    );

    fs::rename(place.log(), place.log().with_extension("moved")).unwrap();
    assert!(matches!(log.append(&finished("z")), Err(LogError::Replaced { .. })));
    assert!(!place.log().exists(), "a record was written somewhere else");
}

#[test]
fn i2_a_record_that_cannot_be_read_back_is_refused_and_the_log_goes_on() {
    let place = Place::new();
    let log = Log::open(&place.state).unwrap();
    let with = |value: serde_json::Value| {
        let Event::Decided(mut record) = decided("c", Decision::Deny) else { panic!("not a decision") };
        record.call.arguments.insert("x".into(), value);
        Event::Decided(record)
    };
    let mut deep = serde_json::Value::Null;
    for _ in 0..300 {
        deep = serde_json::json!([deep]);
    }
    assert!(matches!(log.append(&with(deep)), Err(LogError::TooDeep)));
    let long = "x".repeat(portcullis::audit::MAX_LINE);
    assert!(matches!(log.append(&with(long.into())), Err(LogError::TooLarge { .. })));
    log.append(&finished("c")).unwrap();
    assert!(verify(&place.log()).unwrap().sound());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever becomes of the end of the log: it opens, says what it found, keeps what lies before, and verifies.
    #[test]
    fn i2_any_damaged_end_is_recovered(
        kept in 0.0..1.0_f64,
        garbage in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(0)], 0..300),
    ) {
        let place = Place::with_records(2);
        let whole = place.bytes();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of a small length")]
        let cut = (whole.len() as f64 * kept) as usize;
        let damaged = [&whole[..cut], &garbage].concat();
        prop_assume!(!whole.starts_with(&damaged) || damaged.len() < whole.len());
        fs::write(place.log(), &damaged).unwrap();
        // The garbage may begin as what was cut off went on.
        let same = whole.iter().zip(&damaged).take_while(|(a, b)| a == b).count();
        let sound = whole[..same].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);

        let log = Log::open(&place.state).unwrap();
        log.append_durable(&finished("after")).unwrap();
        let now = place.bytes();
        prop_assert_eq!(&now[..sound], &whole[..sound]);
        prop_assert!(!troubles(&place).is_empty(), "nothing was said of the damage");
        let report = verify(&place.log()).unwrap();
        prop_assert!(report.sound(), "{:?}", report);
        let aside: u64 = fs::read_dir(place.state.audit()).unwrap().flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("torn-"))
            .map(|entry| entry.metadata().unwrap().len())
            .sum();
        prop_assert_eq!(aside, (damaged.len() - sound) as u64, "bytes were dropped");
    }

    /// Whatever lies where the log, its head and its mark should be: nothing panics, and a record that is appended can be
    /// read back from the end.
    #[test]
    fn i2_any_bytes_in_place_of_the_log_are_survived(
        lines in proptest::collection::vec(0..10_usize, 0..12),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
        head in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        settled in prop_oneof![Just("0".to_owned()), Just("700\n".to_owned()), "[0-9]{1,25}"].prop_map(String::into_bytes).boxed()
            .prop_union(proptest::collection::vec(any::<u8>(), 0..20).boxed()),
    ) {
        let place = Place::with_records(2);
        let whole = place.bytes();
        let sound: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        let last_number = String::from_utf8_lossy(sound[1]).replacen(r#""seq":1"#, r#""seq":18446744073709551615"#, 1);
        let line = |at: &usize| match at {
            9 => last_number.as_bytes(),
            _ => sound.get(*at).copied().unwrap_or(&noise),
        };
        let log = lines.iter().map(line).collect::<Vec<_>>().concat();
        fs::write(place.log(), log).unwrap();
        fs::write(place.state.audit().join("settled"), settled).unwrap();
        if let Some(head) = head {
            fs::write(place.state.audit().join("head"), head).unwrap();
        }
        verify(&place.log()).unwrap();
        let log = Log::open(&place.state).unwrap();
        log.settle().unwrap();
        log.append(&finished("after")).unwrap();
        let last = portcullis::audit::read::newest(&place.log()).unwrap().next().unwrap().unwrap();
        prop_assert_eq!(last.content, Content::Event(finished("after")));
        verify(&place.log()).unwrap();
    }
}
