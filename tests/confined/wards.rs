//! Protected paths that a command reaches without naming them.

use super::*;

use portcullis::facts::path::{Guarded, ProtectedAction, ProtectedRule, Protection, Resolver, standard_rules};

fn deny(glob: &str, on: Guarded) -> ProtectedRule {
    ProtectedRule { glob: glob.into(), action: ProtectedAction::Deny, on, except: Vec::new() }
}

fn write(world: &World, name: &str, text: &str) {
    let path = world.path("ws").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn protected_paths_are_kept_from_commands_that_do_not_name_them() {
    let Some(world) = World::new("workspace-write") else { return };
    for name in ["src/sec1/k", "a/.ssh/id", "deep/er/.aws/credentials", "b\n c/*.pin"] {
        write(&world, name, "CANARY");
    }
    write(&world, "prod.lock", "kept");
    write(&world, ".portcullis/policies/x.cedar", "kept");
    write(&world, "src/plain", "plain");
    fs::hard_link(world.path("ws/src/sec1/k"), world.path("ws/other")).unwrap();
    let rules = [deny("src/sec*/k", Guarded::Any), deny("*.pin", Guarded::Any), deny("prod.lock", Guarded::Change)];
    let protection = Protection::new(standard_rules().into_iter().chain(rules).collect()).unwrap();
    let here = Surroundings::new(world.path("ws"), "/nonexistent");
    let plan = world.plan().guarded_by(&Resolver::open(&here, protection).unwrap());
    let run = |script: &str| {
        let outcome = world.launcher.run_blocking(&plan, &bash(script, Duration::from_secs(60)));
        let outcome = outcome.unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(!outcome.not_all_kept);
        (outcome.end, outcome.stdout.text(4000), outcome.stderr.text(4000), outcome.denials)
    };
    for script in [
        "cat src/sec*/k",
        "grep -r CANARY .",
        "find . -type f -exec cat {} +",
        "tar -cf - . | cat -v",
        "cat other",
        "shopt -s dotglob globstar; cat **/*",
        "cat $(echo c3JjL3NlYzEvaw== | base64 -d)",
        "exec 3<src; cd /proc/self/fd/3; cat sec1/k",
        "cat /proc/1/root$PWD/src/sec1/k",
        "chmod -R 777 . ; cat src/sec1/k other",
        "cp -r --reflink=auto . /tmp/x; grep -r CANARY /tmp/x",
        "mv src/sec1/k x; mv src/sec1 y; mv src z; mv other u; ln src/sec1/k v; grep -rh CANARY .",
        "mv a aa; mv deep/er er; grep -rh CANARY .; mv aa a; mv er deep/er",
        "rm -rf src/sec1/k; git init -q . 2>/dev/null; cat src/sec1/k",
    ] {
        let (_, out, err, _) = run(script);
        assert!(!out.contains("CANARY"), "{script}: {out}\n{err}");
    }
    for script in ["echo x > prod.lock", "rm -f prod.lock", "mv prod.lock p", "rm -rf .portcullis", "mv .portcullis p"]
    {
        let (end, _, err, _) = run(script);
        assert!(matches!(end, End::Exited(1..)), "{script}: {err}");
    }
    assert_eq!(run("cat src/plain prod.lock && echo new > src/new && mv src/new src/plain").0, End::Exited(0));
    for name in ["src/sec1/k", "a/.ssh/id", "deep/er/.aws/credentials", "b\n c/*.pin", "other"] {
        assert_eq!(fs::read_to_string(world.path("ws").join(name)).unwrap(), "CANARY", "{name} is not what it was");
    }
    assert_eq!(fs::read_to_string(world.path("ws/prod.lock")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(world.path("ws/.portcullis/policies/x.cedar")).unwrap(), "kept");
    let (.., denials) = run("cat src/sec*/k");
    assert_eq!(denials.first().unwrap().what, format!("protected path: {}", world.path("ws/src/sec1/k").display()));
}

#[test]
fn protected_paths_that_are_too_many_to_keep_are_a_refusal() {
    let Some(world) = World::new("workspace-write") else { return };
    for n in 0..1025 {
        write(&world, &format!("{n}.pin"), "");
    }
    let protection = Protection::new(vec![deny("*.pin", Guarded::Any)]).unwrap();
    let here = Surroundings::new(world.path("ws"), "/nonexistent");
    let plan = world.plan().guarded_by(&Resolver::open(&here, protection).unwrap());
    let refused = world.launcher.run_blocking(&plan, &bash("true", Duration::from_secs(60))).unwrap_err();
    assert!(refused.to_string().starts_with("1025 protected paths would have to be kept"), "{refused}");
}
