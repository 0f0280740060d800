//! What holds over the events of a session: where it works, how its calls ended, and the same with a daemon as without.

use std::fs;
use std::os::unix::fs::symlink;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::{Ran, World};
use crate::served::Served;
use crate::simulator::{Does, Ended, does};

fn claude(world: &World, name: &str, more: Value) -> Ran {
    let mut event = json!({
        "session_id": "s", "cwd": world.workspace(), "permission_mode": "default", "hook_event_name": name,
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.run_with_input(["hook", "claude"], event.to_string().as_bytes())
}

fn bash(command: &str, id: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id})
}

#[test]
fn a_session_works_where_it_began() {
    let world = World::new();
    world.write("outside/notes.txt", "x");
    assert_eq!(claude(&world, "SessionStart", json!({"source": "startup"})).code, 0);
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": world.outside().join("notes.txt")}});
    let elsewhere = |mut event: Value| {
        event["cwd"] = json!(world.outside());
        event
    };
    let ran = claude(&world, "PreToolUse", elsewhere(read));
    assert!(ran.code == 2 && ran.stderr.contains("outside"), "an event moved the workspace: {ran:?}");
    let ran = claude(&world, "PreToolUse", elsewhere(bash("ls", "t")));
    assert!(ran.code == 2 && ran.stderr.contains("call.cwd"), "{ran:?}");
}

#[test]
fn i7_a_session_in_a_directory_that_holds_the_gateway_is_refused() {
    let world = World::new();
    let ran = claude(
        &world,
        "PreToolUse",
        json!({
            "cwd": world.home(), "tool_name": "Read", "tool_input": {"file_path": world.config().join("portcullis.toml")}
        }),
    );
    assert!(ran.code == 2 && ran.stderr.contains("contains the gateway's"), "{ran:?}");
}

#[test]
fn ends_are_recorded_with_what_ran() {
    let world = World::new();
    assert_eq!(claude(&world, "PreToolUse", bash("ls", "a")).code, 0);
    let failed =
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "a", "error": "Exit code 3"});
    assert_eq!(claude(&world, "PostToolUseFailure", failed).code, 0);
    assert!(claude(&world, "PreToolUse", bash("touch x", "b")).stdout.contains(r#""ask""#));
    let done = json!({"tool_response": {"stdout": "", "exit_code": 0}});
    let mut ended = bash("touch x", "b");
    ended.as_object_mut().unwrap().extend(done.as_object().unwrap().clone());
    assert_eq!(claude(&world, "PostToolUse", ended).code, 0);
    let log = world.run(["audit", "tail", "--json", "-n", "20"]);
    let kinds: Vec<Value> = log.lines();
    let ends: Vec<&Value> = kinds.iter().filter(|record| record["kind"] == "finished").collect();
    let decided: Vec<&Value> = kinds.iter().filter(|record| record["kind"] == "decided").collect();
    assert_eq!(ends.len(), 2, "{}", log.stdout);
    for (decided, end) in decided.iter().zip(&ends) {
        assert_eq!(decided["call"]["origin"], "hook");
        assert_eq!(decided["facts"]["sandbox"]["offers"], "none", "who runs it confines it, and this one does not");
        assert_eq!(decided["call"]["id"], end["call_id"]);
    }
    assert_eq!(ends[0]["outcome"]["result"], "tool-error");
    assert_eq!(ends[1]["outcome"], json!({"result": "exited", "code": 0}));
    assert!(ends[1]["notes"].to_string().contains("a person let it run"), "{}", ends[1]);
    let verify = world.run(["audit", "verify"]);
    assert!(verify.code == 0 && verify.stdout.contains("0 outcome unknown"), "{verify:?}");
}

#[test]
fn what_strangers_wrote_taints_the_session() {
    let world = World::new();
    let fetch = json!({"tool_name": "WebFetch", "tool_input": {"url": "https://example.org"}, "tool_use_id": "w"});
    assert!(claude(&world, "PreToolUse", fetch.clone()).stdout.contains(r#""ask""#));
    let before = claude(&world, "PreToolUse", bash("git push", "p"));
    assert!(!before.stdout.contains("untrusted"), "{before:?}");
    assert_eq!(claude(&world, "PostToolUse", fetch).code, 0);
    let after = claude(&world, "PreToolUse", bash("git push", "q"));
    assert!(after.stdout.contains("effect.send-after-taint"), "{after:?}");
}

#[test]
fn a_mode_that_is_reported_only_tightens() {
    let world = World::new();
    let event = |mode: &str| {
        let mut event = bash("touch x", "t");
        event["permission_mode"] = mode.into();
        event
    };
    assert_eq!(claude(&world, "PreToolUse", event("bypassPermissions")).code, 2, "a reported mode loosened");
    world.write("config/portcullis.toml", "[[agents]]\nname = \"claude\"\nmode = \"bypass\"\n");
    assert_eq!(claude(&world, "PreToolUse", event("default")).stdout, "", "the operator's own word holds");
    let plan = claude(&world, "PreToolUse", event("plan"));
    assert!(plan.code == 2 && plan.stderr.contains("mode.plan"), "{plan:?}");
}

#[test]
fn a_shell_is_put_into_the_sandbox_where_that_was_chosen() {
    let world = World::new();
    let event = json!({
        "session_id": "s", "cwd": world.workspace(), "permission_mode": "default", "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "touch made; echo 'it''s'; cat /proc/self/status | grep NoNewPrivs", "timeout": 5},
        "tool_use_id": "t",
    });
    world.write(
        "config/policies/x.cedar",
        "@id(\"x\") permit (principal, action == Action::\"Bash\", resource) \
        when { context.sandbox.tier != \"none\" };",
    );
    let words = ["hook", "claude", "--confine", "workspace-write"];
    let ran = world.run_with_input(words, event.to_string().as_bytes());
    let output = &ran.json()["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "allow", "{ran:?}");
    assert_eq!(output["updatedInput"]["timeout"], 5);
    let command = output["updatedInput"]["command"].as_str().unwrap();
    // What the agent's program does with it.
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", command]).current_dir(world.workspace()).env_clear().env("PATH", "/usr/bin:/bin");
    shell.env("HOME", world.home()).env("PORTCULLIS_CONFIG", world.config()).env("PORTCULLIS_STATE", world.state());
    let done = shell.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.starts_with("its\n") && text.contains("NoNewPrivs:\t1"), "{command}: {done:?}");
    // Without it the same policy does not permit.
    let bare = world.run_with_input(["hook", "claude"], event.to_string().as_bytes());
    assert!(bare.stdout.contains(r#""ask""#), "{bare:?}");
}

/// The same answers, the same session and one log, whether the gateway runs or not; and when it goes in between.
#[test]
fn a_daemon_answers_as_the_hook_does_itself() {
    let world = World::new();
    let commands = ["ls", "touch x", "rm -rf /", "cat ../../etc/passwd"];
    let all = || commands.map(|command| claude(&world, "PreToolUse", bash(command, command)));
    let told = |answers: [Ran; 4]| answers.map(|ran| (ran.code, ran.stdout, ran.stderr));
    let alone = told(all());
    let mut served = Served::start(&world);
    let with = told(all());
    assert_eq!(alone, with);
    let tail = world.run(["audit", "tail", "--json", "-n", "8"]);
    let by: Vec<Value> = tail.lines().iter().map(|record| record["process"]["pid"].clone()).collect();
    assert!(by[4..].iter().all(|pid| *pid == by[4]), "not the daemon, but each hook itself decided: {by:?}");
    served.signal(Signal::SIGKILL);
    served.ended();
    assert_eq!(told(all()), alone, "after the gateway died");
    let verify = world.run(["audit", "verify"]);
    assert!(verify.code == 0 && verify.stdout.contains("13 records"), "{verify:?}");
}

/// Many at once, with the gateway: everyone is answered, and what is to be blocked is.
#[test]
fn i2_a_hundred_hooks_at_once_all_hold() {
    let world = World::new();
    let _served = Served::start(&world);
    let answers: Vec<(bool, Ran)> = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let deny = number.is_multiple_of(2);
            (deny, claude(&world, "PreToolUse", bash(if deny { "rm -rf /" } else { "ls" }, &number.to_string())))
        };
        let started: Vec<_> = (0..100).map(|number| scope.spawn(move || ask(number))).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (deny, ran) in answers {
        let ended = Ended { code: Some(ran.code), stdout: ran.stdout, stderr: ran.stderr };
        let expected = if deny { Does::Blocks } else { Does::Runs };
        assert_eq!(does("claude", "PreToolUse", "default", &ended), expected, "{ended:?}");
    }
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn i7_an_agents_credential_cannot_pose_as_a_hook_to_run_something() {
    let world = World::new();
    let served = Served::start(&world);
    let token = served.agent("local");
    let ran = world
        .portcullis(["run", "HostTool", "name=x", "arguments={}"])
        .env("PORTCULLIS_TOKEN", &token)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("no tool `HostTool`"), "{ran:?}");
    assert!(!world.run(["tools"]).stdout.contains("Host"), "a tool that nobody can call is offered");
}

/// Nothing confines what an agent's own program runs: what is left to the sandbox elsewhere needs a person's word here, and
/// what only looks around in the workspace does not.
#[test]
fn i5_what_a_sandbox_would_refuse_asks_where_there_is_none() {
    let world = World::new();
    world.write("work/ls", "#!/bin/sh\ntouch run\n");
    world.write("work/notes.txt", "x\n");
    let goes_on =
        ["ls -la", "cat notes.txt | wc -l", "grep -rn x .", "cd sub; pwd", "head -n 3 < notes.txt", "ls /tmp"];
    let asks = [
        "./ls",
        "cat /etc/passwd",
        "tail -f /var/log/syslog",
        "cat \"$(head -n 1 notes.txt)\"",
        "echo x > made",
        "LD_PRELOAD=./x.so ls",
        "PATH=. ls",
        "test -v 'a[$(touch run)]'",
        "ls $(touch run)",
        "git status",
        "python3 notes.txt",
    ];
    let told = |command: &str| claude(&world, "PreToolUse", bash(command, command));
    for command in goes_on {
        let ran = told(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{command}: {ran:?}");
    }
    for command in asks {
        let ran = told(command);
        assert!(ran.code == 0 && ran.stdout.contains(r#""ask""#), "{command}: {ran:?}");
    }
}

/// What a pattern matches and what a recursion meets is not named, and nothing keeps it from an unconfined command.
#[test]
fn i5_what_is_protected_is_not_to_be_had_by_a_pattern_or_a_recursion() {
    let told = |world: &World, command: &str| claude(world, "PreToolUse", bash(command, command));
    type Plant = fn(&World);
    let plant: [(&str, Plant); 4] = [
        ("protected", |world| drop(world.write("work/deep/.env", "x\n"))),
        ("a link", |world| symlink("/etc/passwd", world.workspace().join("deep/notes")).unwrap()),
        ("a link to a directory", |world| symlink(world.home(), world.workspace().join("deep/more")).unwrap()),
        ("another name", |world| {
            let key = world.write("work/key.pem", "x\n");
            fs::hard_link(key, world.workspace().join("deep/notes")).unwrap();
        }),
    ];
    for (what, plant) in plant {
        let world = World::new();
        world.write("work/deep/a.txt", "x\n");
        for command in ["cat deep/*", "grep -rn x deep"] {
            let ran = told(&world, command);
            assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{command}: {ran:?}");
        }
        plant(&world);
        for command in ["cat deep/*", "grep -rn x deep", "cd deep && head -n 1 *", "cat deep/[!a]*", "grep -R x ."] {
            let ran = told(&world, command);
            assert!(ran.code == 0 && ran.stdout.contains(r#""ask""#), "{what}: {command}: {ran:?}");
        }
    }
}

#[test]
fn a_policy_speaks_of_tools_that_only_the_program_has() {
    let world = World::new();
    world.write(
        "config/policies/mail.cedar",
        "@id(\"no-mail\") @reason(\"no mail from here\")\n\
         forbid (principal, action == Action::\"HostTool\", resource)\n\
         when { context.input.name like \"mcp__gmail__*\" };\n\
         @id(\"search\") permit (principal, action == Action::\"HostTool\", resource)\n\
         when { context.origin == \"hook\" && context.input.name == \"WebSearch\" };\n",
    );
    let use_of =
        |name: &str| claude(&world, "PreToolUse", json!({"tool_name": name, "tool_input": {}, "tool_use_id": name}));
    let mail = use_of("mcp__gmail__send_email");
    assert!(mail.code == 2 && mail.stderr.contains("no-mail"), "{mail:?}");
    let other = use_of("mcp__github__list");
    assert!(other.code == 0 && other.stdout.contains(r#""ask""#), "{other:?}");
    let search = use_of("WebSearch");
    assert_eq!((search.code, search.stdout.as_str()), (0, ""), "{search:?}");
}

#[test]
fn an_agent_works_where_its_configuration_says() {
    let world = World::new();
    world.write("outside/notes.txt", "x");
    let place = |name: &str| {
        let text = format!("[[agents]]\nname = {name:?}\nworkspace = {:?}\n", world.outside());
        world.write("config/portcullis.toml", text);
        let read = json!({"tool_name": "Read", "tool_input": {"file_path": world.outside().join("notes.txt")},
            "cwd": world.outside(), "tool_use_id": name});
        claude(&world, "PreToolUse", read)
    };
    // By its name, and as the only one that there is.
    for name in ["claude", "somebody"] {
        let ran = place(name);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}: {ran:?}");
    }
    world.write("config/portcullis.toml", "[[agents]]\nname = \"a\"\n[[agents]]\nname = \"b\"\n");
    let several = claude(&world, "PreToolUse", bash("ls", "t"));
    assert!(several.code == 2 && several.stderr.contains("--agent"), "{several:?}");
}
