//! Parsing and judging a command, over the corpus: typical cost, and hostile input.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis::facts::Surroundings;
use portcullis::facts::command::Guard;

fn corpus() -> Vec<String> {
    let text = include_str!("../tests/cases/commands.tsv");
    text.lines()
        .filter_map(|line| line.split('\t').nth(3))
        .map(|text| text.replace("\\n", "\n").replace("\\\\", "\\"))
        .collect()
}

fn benches(criterion: &mut Criterion) {
    let guard = Guard::embedded();
    let here = Surroundings::new("/home/alice/proj", "/home/alice");
    let commands = corpus();
    criterion.bench_function("load embedded packs", |b| b.iter(|| black_box(Guard::embedded())));
    criterion.bench_function("git status", |b| b.iter(|| black_box(guard.analyse("git status --short", &here))));
    criterion.bench_function("corpus, all rows", |b| {
        b.iter(|| {
            for command in &commands {
                black_box(guard.analyse(command, &here));
            }
        });
    });
    for (name, text) in [
        ("64 KB of $(", "$(".repeat(32 * 1024)),
        ("64 KB argument", format!("rm {}", "a".repeat(64 * 1024))),
        ("64 KB of commands", "true; ".repeat(11_000)),
    ] {
        criterion.bench_function(name, |b| b.iter(|| black_box(guard.analyse(&text, &here))));
    }
}

criterion_group!(command, benches);
criterion_main!(command);
