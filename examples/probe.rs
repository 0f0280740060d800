use portcullis::facts::{Surroundings, command::Guard};
use portcullis::verdict::*;
use std::io::BufRead;
fn main() {
    let guard = Guard::embedded();
    let here = Surroundings::new("/home/alice/proj", "/home/alice");
    let (mut ok, mut bad) = (0, 0);
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        if line.trim().is_empty() {
            continue;
        }
        let (want, command) = line.split_once(' ').unwrap();
        let command = command.replace("⏎", "\n");
        let facts = guard.analyse(&command, &here);
        let d = StageVerdict::new(Stage::Command, facts.findings.clone()).decision;
        let right = match want {
            "D" => d == Decision::Deny,
            "W" => d > Decision::Allow,
            "w" => matches!(d, Decision::Ask(_)),
            _ => d == Decision::Allow,
        };
        if right {
            ok += 1
        } else {
            bad += 1;
            println!(
                "{want} got {d}: {command}   {:?}",
                facts.findings.iter().map(|f| f.id.as_str()).collect::<Vec<_>>()
            );
        }
    }
    println!("{ok} right, {bad} wrong");
}
