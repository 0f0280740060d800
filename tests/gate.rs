//! The gate as a library, and what modes, people and reloads change about it.

#![expect(clippy::expect_used, reason = "a test stops where it cannot go on")]

mod common;

use std::fs;

use common::World;
use portcullis::approval::Role;
use portcullis::config::{Config, Places};
use portcullis::gateway::{Gateway, Outcome};
use portcullis::sandbox::Kernel;
use portcullis::verdict::{Decision, Level, Stage};
use serde_json::json;

fn places(world: &World) -> Places {
    Places { system: None, config: world.config(), state: world.state(), home: world.home().to_owned() }
}

fn gateway(world: &World) -> Gateway {
    Gateway::open(Config::load(places(world)).expect("a sound configuration")).expect("a gateway")
}

fn decision(gateway: &Gateway, world: &World, tool: &str, arguments: serde_json::Value) -> Decision {
    let caller = gateway.caller(None, "test", Some(&world.workspace())).expect("a caller");
    gateway.judge(&caller, caller.request(tool.to_owned(), arguments)).verdict.decision
}

#[test]
fn a_bad_reload_keeps_the_old_rules_and_goes_on_record() {
    let world = World::new();
    let gateway = gateway(&world);
    let glob = || decision(&gateway, &world, "Glob", json!({ "pattern": "*" }));
    assert_eq!(glob(), Decision::Allow);
    world.write("config/policies/p.cedar", "@id(\"closed\") forbid (principal, action == Action::\"Glob\", resource);");
    assert_eq!(glob(), Decision::Allow, "nothing changes before the reload");
    gateway.reload().expect("a sound policy");
    assert_eq!(glob(), Decision::Deny);
    world
        .write("config/policies/p.cedar", "@id(\"closed\") forbid (principal, action == Action::\"Gloob\", resource);");
    let error = gateway.reload().expect_err("the policy names no action");
    assert!(error.to_string().contains("Gloob"), "{error}");
    assert_eq!(glob(), Decision::Deny, "the old rules stay in force");
    let log = fs::read_to_string(world.log()).expect("a log");
    assert!(log.contains("\"policy-loaded\"") && log.contains("\"policy-failed\""), "{log}");
}

#[test]
fn modes_grant_what_they_say_and_no_more() {
    let remote = "aws s3 rb s3://customers --force";
    for (mode, bash, write, remote_wanted) in [
        ("plan", "deny", "deny", "deny"),
        ("default", "ask", "ask", "ask"),
        ("acceptEdits", "ask", "allow", "ask"),
        // Bypass is no policy: the verdict stays, it is only answered in advance.
        ("bypass", "ask", "ask", "ask"),
    ] {
        let world = World::new();
        world.write("config/portcullis.toml", format!("[[agents]]\nname = \"bot\"\nmode = \"{mode}\"\n"));
        let gateway = gateway(&world);
        let word = |tool: &str, arguments| decision(&gateway, &world, tool, arguments).word();
        assert_eq!(word("Bash", json!({ "command": "ls" })), bash, "Bash in {mode}");
        assert_eq!(word("Write", json!({ "path": "new.txt", "content": "" })), write, "Write in {mode}");
        assert_eq!(word("Bash", json!({ "command": remote })), remote_wanted, "destroying remote data in {mode}");
        assert_eq!(word("Bash", json!({ "command": "rm -rf /" })), "deny", "in {mode}");
        assert_eq!(word("ListDir", json!({ "path": "." })), "allow", "ListDir in {mode}");
    }
}

#[test]
fn bypass_runs_what_asks_the_operator_and_nothing_graver() {
    let world = World::new();
    world.write("config/portcullis.toml", "[[agents]]\nname = \"bot\"\nmode = \"bypass\"\n");
    world.write(
        "config/policies/two.cedar",
        "@id(\"two\") forbid (principal, action == Action::\"Bash\", resource)\n\
         when { context.command.programs.contains(\"uptime\") } unless { context.approval.level >= 2 };",
    );
    let checked = world.run(["check", "Bash", "command=echo hi"]);
    assert_eq!(checked.code, 3, "the verdict itself is ASK: {checked:?}");
    assert!(checked.stdout.contains("approval.standing"), "check must say that nobody will be asked: {checked:?}");
    let ran = world.run(["run", "Bash", "command=echo hi"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "hi"), "{ran:?}");
    assert_eq!(world.run(["run", "Bash", "command=uptime"]).code, 3, "ASK(2) is not the mode's to answer");
    assert_eq!(world.run(["run", "Bash", "command=rm -rf /"]).code, 2);
}

#[test]
fn nobody_is_asked_where_nobody_is_there() {
    let world = World::new();
    world.write("config/portcullis.toml", "[[agents]]\nname = \"ci\"\nunattended = true\n");
    let ran = world.run(["run", "Bash", "command=ls"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("approval.unattended"), "{ran:?}");
}

#[test]
fn level_two_takes_a_reviewer_who_is_somebody_else() {
    let world = World::new();
    let reviewer = "pcl_rev_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";
    let digest = portcullis::call::Digest::of(reviewer);
    world.write(
        "config/portcullis.toml",
        format!("[[agents]]\nname = \"bot\"\noperator = \"ann\"\n[[reviewers]]\nname = \"rob\"\ntoken_sha256 = \"{digest}\"\n"),
    );
    world.write(
        "config/policies/two.cedar",
        "@id(\"two\") @reason(\"needs two\") forbid (principal, action == Action::\"Glob\", resource)\n\
         unless { context.approval.level >= 2 };",
    );
    let call = ["run", "Glob", "pattern=*"];
    let asked = world.run(call);
    assert_eq!(asked.code, 3, "{asked:?}");
    let operator = world.run(["approvals", "grant", &asked.pending()]);
    assert_ne!(operator.code, 0, "the operator is no reviewer: {operator:?}");
    let granted = world
        .portcullis(["approvals", "grant", &asked.pending()])
        .env("PORTCULLIS_TOKEN", reviewer)
        .output()
        .expect("the binary starts");
    assert!(granted.status.success(), "{}", String::from_utf8_lossy(&granted.stderr));
    assert_eq!(world.run(call).code, 0);

    let own = Role::Reviewer("ann".to_owned());
    let gateway = gateway(&world);
    let caller = gateway.caller(None, "again", Some(&world.workspace())).expect("a caller");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let request = caller.request("Glob".to_owned(), json!({ "pattern": "*" }));
    let Outcome::Asks(asks) = runtime.block_on(gateway.call(&caller, request)) else { panic!("it was to ask") };
    assert_eq!(asks.judged.verdict.decision, Decision::Ask(Level::Reviewer));
    let error = gateway.grant(&asks.pending.id, &own).expect_err("ann answers for this session herself");
    assert!(error.to_string().contains("ann"), "{error}");
}

#[test]
fn i5_a_kernel_that_cannot_confine_is_a_deny_that_says_so() {
    let world = World::new();
    let less = Kernel::probe().with_landlock_at_most(0);
    let config = Config::load(places(&world)).expect("a sound configuration");
    let gateway = Gateway::with_kernel(config, less).expect("a gateway");
    let caller = gateway.caller(None, "test", Some(&world.workspace())).expect("a caller");
    let judged = gateway.judge(&caller, caller.request("Bash".to_owned(), json!({ "command": "ls" })));
    assert_eq!(judged.verdict.decision, Decision::Deny);
    assert_eq!(judged.verdict.stage(Stage::Sandbox), Some(Decision::Deny), "{:?}", judged.verdict);
    assert!(format!("{:?}", judged.verdict).to_lowercase().contains("landlock"), "{:?}", judged.verdict);
    assert_eq!(
        decision(&gateway, &world, "ListDir", json!({ "path": "." })),
        Decision::Allow,
        "no program runs for it"
    );
}

#[test]
fn a_workspaces_own_rules_only_tighten() {
    let world = World::new();
    world.write("work/f", "");
    world.write(
        "work/.portcullis/policies/open.cedar",
        "@id(\"open\") permit (principal, action == Action::\"Bash\", resource);",
    );
    let refused = world.run(["check", "Bash", "command=ls"]);
    assert_eq!(refused.code, 2, "a permit from a workspace is refused: {refused:?}");
    fs::remove_dir_all(world.workspace().join(".portcullis")).expect("ours");
    world.write(
        "work/.portcullis/policies/closed.cedar",
        "@id(\"closed\") forbid (principal, action == Action::\"Read\", resource);",
    );
    let tightened = world.run(["check", "Read", "path=f", "--output", "json"]).json();
    assert_eq!(tightened["stages"]["policy"], "deny", "{tightened}");
    world.write("work/.portcullis/commands/pack.toml", include_str!("cases/extra-pack.toml"));
    let pack = world.run(["check", "Bash", "command=frobnicate --all", "--output", "json"]).json();
    assert_eq!(pack["stages"]["command"], "deny", "{pack}");
    world.write("work/.portcullis.toml", "restrict_to_workspace = false\n");
    let loosened = world.run(["check", "Read", "path=f"]);
    assert_eq!(loosened.code, 2, "{loosened:?}");
    assert!(loosened.stdout.contains("only tighten"), "{loosened:?}");
}
