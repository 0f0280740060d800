//! What confinement costs: a sandboxed `true` against a plain one, taken in turns so that both see the same machine.
//! Budget (landlock tier): 0.8 ms over plain at the median.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that cannot go on stops")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis::facts::Surroundings;
use portcullis::sandbox::{DEFAULT_PROFILE, End, Host, Kernel, Launcher, Plan, Profiles, Program, Streams};

fn plain() -> Duration {
    let started = Instant::now();
    let output = Command::new("/bin/true").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success());
    started.elapsed()
}

struct Sandbox {
    launcher: Launcher,
    plan: Plan,
    program: Program,
}

impl Sandbox {
    fn new(workspace: &Path) -> Self {
        let profiles = Profiles::built_in().unwrap();
        let profile = profiles.get(DEFAULT_PROFILE).unwrap();
        let here = Surroundings::new(workspace.canonicalize().unwrap(), "/nonexistent");
        let plan = Plan::new(profile, Kernel::probe(), &here, &Host::current()).unwrap();
        let launcher = Launcher::with_helper(Path::new(env!("CARGO_BIN_EXE_portcullis"))).unwrap();
        let arguments = vec!["/bin/true".to_owned()];
        let program = Program { arguments, timeout: Duration::from_secs(10), streams: Streams::Capture };
        Sandbox { launcher, plan, program }
    }

    fn run(&self) -> Duration {
        let started = Instant::now();
        let outcome = self.launcher.run_blocking(&self.plan, &self.program).unwrap();
        assert_eq!(outcome.end, End::Exited(0));
        started.elapsed()
    }
}

fn in_turns(criterion: &mut Criterion) {
    let workspace = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(workspace.path());
    let mut pairs: Vec<(Duration, Duration)> = (0..400).map(|_| (plain(), sandbox.run())).collect();
    let mut over: Vec<i128> =
        pairs.iter().map(|(plain, confined)| confined.as_micros() as i128 - plain.as_micros() as i128).collect();
    over.sort_unstable();
    let at = |percent: usize| over[over.len() * percent / 100];
    pairs.sort_unstable();
    println!("plain p50 {:?}; over plain: p50 {} us, p95 {} us", pairs[pairs.len() / 2].0, at(50), at(95));

    let mut group = criterion.benchmark_group("sandbox");
    group.sample_size(50).bench_function("true, plain", |b| b.iter(plain));
    group.bench_function("true, landlock tier", |b| b.iter(|| sandbox.run()));
    group.finish();
}

criterion_group!(benches, in_turns);
criterion_main!(benches);
