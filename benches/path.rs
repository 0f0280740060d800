//! What it costs to look a path up.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up has nothing to measure")]

use std::fs;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis::facts::Surroundings;
use portcullis::facts::path::{Access, Protection, Resolver, standard_rules};

fn look(c: &mut Criterion) {
    let top = tempfile::tempdir().expect("a temporary directory");
    let workspace = top.path().join("w");
    fs::create_dir_all(workspace.join("a/b/c/d/e")).expect("directories");
    fs::write(workspace.join("a/b/c/d/e/file.rs"), "x").expect("a file");
    let protection = Protection::new(standard_rules()).expect("rules that compile");
    let resolver = Resolver::open(&Surroundings::new(&workspace, "/nonexistent"), protection).expect("a resolver");
    for (name, given, access) in [
        ("existing file, 6 deep, to read", "a/b/c/d/e/file.rs", Access::Read),
        ("existing file, 6 deep, to write", "a/b/c/d/e/file.rs", Access::Write),
        ("new file, 6 deep, to write", "a/b/c/d/e/new.rs", Access::Write),
        ("outside", "/etc/hosts", Access::Read),
    ] {
        c.bench_function(&format!("path/{name}"), |b| {
            b.iter(|| resolver.look("path", black_box(given), access, &workspace));
        });
    }
}

fn compile(c: &mut Criterion) {
    c.bench_function("path/compile the standard rules", |b| b.iter(|| Protection::new(black_box(standard_rules()))));
}

criterion_group!(benches, look, compile);
criterion_main!(benches);
