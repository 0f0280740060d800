//! The gateway's own files from inside every profile: configuration, policies, tokens, audit log, lock, socket and binary are
//! unreachable, or as they were. What file tools and commands say of them: `facts/path`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod confined;

use std::ffi::OsString;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use confined::{bash, has};
use portcullis::facts::Surroundings;
use portcullis::sandbox::{End, Host, Kernel, Launcher, Outcome, Plan, Profiles, Tier};

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const PROFILES: &[&str] = &["read-only", "workspace-write", "build", "mcp-server", "debug", "landlock-only"];
const OWN_BINARY: &str = "target/debug/portcullis";
const STATE_FILES: &[&str] =
    &["portcullis.toml", "policies/own.cedar", "tokens", "audit/log.jsonl", "audit/lock", "state.db", "pins.lock"];

/// A workspace that holds the gateway's binary, and its state outside with a secret in each file.
struct World {
    root: tempfile::TempDir,
    launcher: Launcher,
    _socket: UnixListener,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let top = root.path();
        fs::create_dir_all(top.join("ws").join(OWN_BINARY).parent().unwrap()).unwrap();
        fs::write(top.join("ws").join(OWN_BINARY), "own").unwrap();
        for file in STATE_FILES {
            fs::create_dir_all(top.join("state").join(file).parent().unwrap()).unwrap();
            fs::write(top.join("state").join(file), "CANARY").unwrap();
        }
        let socket = UnixListener::bind(top.join("state/gateway.sock")).unwrap();
        std::os::unix::fs::symlink(top.join("state"), top.join("ws/link")).unwrap();
        World { launcher: Launcher::with_helper(Path::new(BINARY)).unwrap(), root, _socket: socket }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// A plan under a profile; `None`, said aloud, where the kernel cannot give it.
    fn plan(&self, profile: &str, tier: Tier) -> Option<Plan> {
        let kernel = Kernel::probe().with_tier_at_most(tier);
        let profile = Arc::clone(Profiles::built_in().unwrap().get(profile).unwrap());
        if !kernel.missing(&profile).is_empty() || kernel.tier(&profile) == Tier::None {
            eprintln!(
                "NOT PROVED: profile `{}` in tier {}, which this kernel does not give",
                profile.name,
                tier.as_str()
            );
            return None;
        }
        let mut here = Surroundings::new(self.path("ws"), self.path("home"));
        here.gateway = vec![self.path("state"), self.path("ws").join(OWN_BINARY)];
        let path = (OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"));
        let host = Host { scratch: self.path("scratch"), caches: self.path("caches"), environment: vec![path] };
        let mut plan = Plan::new(&profile, &kernel, &here, &host).unwrap();
        assert!(plan.set_variable("STATE", self.path("state").to_str().unwrap()));
        assert!(plan.set_variable("OUTER", &std::process::id().to_string()));
        Some(plan)
    }

    fn run(&self, plan: &Plan, script: &str) -> Outcome {
        let outcome = self.launcher.run_blocking(plan, &bash(script, Duration::from_secs(60)));
        outcome.unwrap_or_else(|error| panic!("set-up failed: {error}\n{script}"))
    }
}

/// Every profile in every tier that this kernel gives it.
fn plans(world: &World) -> Vec<(String, Plan)> {
    let mut plans = Vec::new();
    for profile in PROFILES {
        for tier in [Tier::Full, Tier::Landlock] {
            let Some(plan) = world.plan(profile, tier) else { continue };
            let name = format!("{profile} in tier {}", plan.tier().as_str());
            if plans.iter().all(|(known, _)| *known != name) {
                plans.push((name, plan));
            }
        }
    }
    plans
}

#[test]
fn i7_state_cannot_be_reached_from_any_profile_by_any_spelling() {
    let world = World::new();
    let spellings = [
        "$STATE",
        "link",
        "/proc/self/root$STATE",
        "/proc/1/root$STATE",
        "/proc/$OUTER/root$STATE",
        "/proc/self/cwd/../state",
        "/proc/$OUTER/cwd/link",
        "$STATE/../ws/link",
        "//$STATE/.",
    ];
    let plans = plans(&world);
    for (name, plan) in &plans {
        for spelling in spellings {
            let script = format!(
                "for n in {files}; do f={spelling}/$n; \
                 cat \"$f\"; ln \"$f\" hard && cat hard; cp \"$f\" copy && cat copy; \
                 echo x >> \"$f\"; rm -f \"$f\"; mv \"$f\" moved; ln -sf \"$f\" soft; cat soft; \
                 mount --bind {spelling} . && cat $n; unshare -rm mount --bind {spelling} /mnt && cat /mnt/$n; done; true",
                files = STATE_FILES.join(" ")
            );
            let outcome = world.run(plan, &script);
            assert_eq!(outcome.end, End::Exited(0), "{name}: {spelling}");
            let shown = outcome.stdout.text(4000);
            assert!(!shown.contains("CANARY"), "{name} read {spelling}: {shown}");
            for file in STATE_FILES {
                assert_eq!(fs::read_to_string(world.path("state").join(file)).unwrap(), "CANARY", "{name}: {spelling}");
            }
        }
        assert_eq!(fs::metadata(world.path("state/gateway.sock")).map(|_| ()).ok(), Some(()), "{name}: the socket");
    }
    eprintln!("{} profiles and tiers, {} spellings, {} files", plans.len(), spellings.len(), STATE_FILES.len());
}

#[test]
fn i7_the_socket_answers_nobody_inside() {
    if !has("python3") {
        return;
    }
    let world = World::new();
    for (name, plan) in plans(&world) {
        for spelling in ["$STATE/gateway.sock", "link/gateway.sock", "/proc/$OUTER/root$STATE/gateway.sock"] {
            let connect = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('CONNECTED')";
            let outcome = world.run(&plan, &format!("python3 -c \"{connect}\" {spelling}"));
            let shown = outcome.stdout.text(4000) + &outcome.stderr.text(4000);
            assert!(!shown.contains("CONNECTED"), "{name}: {spelling}");
            assert_ne!(outcome.end, End::Exited(0), "{name}: {spelling}: {shown}");
        }
    }
}

/// Ways to make a file another one.
const REPLACEMENTS: &[&str] = &[
    "echo evil > $F",
    "echo evil >> $F",
    "truncate -s 0 $F",
    "rm -f $F; test ! -e $F",
    "mv $F away",
    "echo evil > new && mv -f new $F",
    "echo evil > new && cp --remove-destination new $F",
    "echo evil > new && ln -f new $F",
    "ln -sf /bin/true $F",
    "sed -i s/own/evil/ $F",
    "mv target away",
    "mv target/debug target/away",
    "rm -rf target; test ! -e $F",
    "mkdir -p new/debug && echo evil > new/debug/portcullis && mv -T --exchange new target",
    "ln $F hard && echo evil > hard",
    "echo evil > /proc/self/root$PWD/$F",
    "echo evil > /proc/self/cwd/$F",
    "exec 3< $F && echo evil > /proc/self/fd/3",
    "umount $F && echo evil > $F",
    "mount -o remount,rw $F && echo evil > $F",
];

/// Landlock says nothing about these, so only the full tiers refuse them.
const METADATA: &[&str] = &["chmod 777 $F", "touch -d @0 $F"];

#[test]
fn i7_the_binary_in_a_workspace_stays_as_it_is() {
    let world = World::new();
    let mut proved = 0;
    for (name, plan) in plans(&world) {
        if plan.exposes_own() {
            assert!(!plan.tier().is_full(), "{name}");
            continue;
        }
        let metadata = if plan.tier().is_full() { METADATA } else { &[] };
        for script in REPLACEMENTS.iter().chain(metadata) {
            let outcome = world.run(&plan, &format!("F={OWN_BINARY}; {script}"));
            let (out, err) = (outcome.stdout.text(4000), outcome.stderr.text(4000));
            assert_ne!(outcome.end, End::Exited(0), "{name}: {script}\n{out}\n{err}");
            let file = world.path("ws").join(OWN_BINARY);
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some("own"), "{name}: {script}");
            proved += 1;
        }
    }
    eprintln!("{proved} ways to replace the binary, each refused");
    if Kernel::probe().without_full().is_none() {
        assert!(proved >= 4 * REPLACEMENTS.len(), "profiles of the full tiers keep the binary");
    }
}

#[test]
fn programs_work_beside_a_binary_that_is_kept() {
    let world = World::new();
    let Some(plan) = world.plan("workspace-write", Tier::Full) else { return };
    let outcome = world.run(
        &plan,
        "cat target/debug/portcullis && mkdir -p target/debug/deps && echo x > target/debug/deps/a \
         && ln target/debug/deps/a target/debug/a && mv target/debug/a target/debug/b && rm target/debug/b && echo y > z",
    );
    assert_eq!(outcome.end, End::Exited(0), "{}", outcome.stderr.text(4000));
    assert_eq!(plan.describe(Kernel::probe())["own_kept"], serde_json::json!([OWN_BINARY]));
}

#[test]
fn i5_a_tier_that_cannot_keep_the_binary_says_so() {
    let world = World::new();
    let Some(plan) = world.plan("workspace-write", Tier::Landlock) else { return };
    assert!(plan.exposes_own());
    assert_eq!(plan.describe(Kernel::probe())["own_exposed"], serde_json::json!([OWN_BINARY]));
    let Some(reading) = world.plan("read-only", Tier::Landlock) else { return };
    assert!(!reading.exposes_own(), "what cannot be written is not exposed");
}
