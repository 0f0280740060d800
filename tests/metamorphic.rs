//! No rewriting of a denied command makes it pass, a small share; `fuzz/metamorphic` runs as many cases as you like.
//! `PORTCULLIS_METAMORPHIC_CASES` sets the number of cases of each property.

use std::fs;
use std::path::Path;

use portcullis::facts::command::Guard;
use portcullis::fuzzing::metamorphic;

const CASES: u64 = 400;

#[test]
fn rewriting_a_denied_command_never_makes_it_pass() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/commands.tsv");
    let text = fs::read_to_string(corpus).expect("readable");
    let commands: Vec<String> = text.lines().filter_map(|line| line.split('\t').nth(3)).map(str::to_owned).collect();
    let cases = std::env::var("PORTCULLIS_METAMORPHIC_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let report = metamorphic::run(&Guard::embedded(), &commands, cases, 1);
    println!("{report}");
    assert!(report.rows.values().all(|(tried, _)| *tried > cases / 2), "too few cases: {report}");
    assert_eq!(report.broken, [], "a rewriting changed the answer");
}
