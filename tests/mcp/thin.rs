//! Over standard input and output while a daemon runs: the daemon decides, and the client cannot tell.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::client::{Client, ERAS, Era, decision, pending, text, until};
use crate::common::World;
use crate::served::Served;

const NO_WAIT: [&str; 2] = ["--wait", "0"];

/// The log's records of this kind.
fn records(world: &World, kind: &str) -> Vec<Value> {
    let log = fs::read_to_string(world.log()).unwrap_or_default();
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["kind"] == kind).collect()
}

/// A message without what differs from call to call.
fn settled(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            ["call", "expires", "pending", "id"].into_iter().for_each(|name| {
                map.remove(name);
            });
            map.values_mut().for_each(|inner| *inner = settled(inner.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| *inner = settled(inner.take())),
        Value::String(text) if text.starts_with("PENDING") => {
            let words: Vec<&str> = text.split(' ').filter(|word| !word.contains('-')).collect();
            *text = words.join(" ");
        }
        _ => {}
    }
    value
}

#[test]
fn every_answer_and_record_is_the_same_with_a_daemon_and_without() {
    let requests = [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "Read", "arguments": { "path": "hello.txt" } })),
        ("tools/call", json!({ "name": "Read", "arguments": { "path": "missing.txt" } })),
        ("tools/call", json!({ "name": "Bash", "arguments": { "command": "ls" } })),
        ("tools/call", json!({ "name": "terminal", "arguments": { "command": "rm -rf /" } })),
        ("tools/call", json!({ "name": "Nope", "arguments": {} })),
        ("tools/call", json!({ "name": "Read", "arguments": ["x"] })),
        ("tools/call", json!({ "name": "Read", "arguments": { "path": "a\0b" } })),
        ("tools/call", json!({ "name": 5 })),
        ("tools/list", json!({ "cursor": "none" })),
        ("no/such/method", json!({})),
    ];
    for era in ERAS {
        let world = World::new();
        world.write("work/hello.txt", "good morning\n");
        let told = || -> Vec<Value> {
            let mut client = Client::begun(&world, era, &[NO_WAIT.as_slice(), &["--session", "s"]].concat());
            let answers = requests.iter().map(|(method, params)| settled(client.ask(method, params.clone()))).collect();
            let (status, said) = client.close();
            assert!(status.success(), "{era:?}: {said}");
            answers
        };
        let without = told();
        let (decided, rejected) = (records(&world, "decided"), records(&world, "rejected"));
        let served = Served::start(&world);
        let with = told();
        for (((method, params), with), without) in requests.iter().zip(&with).zip(&without) {
            assert_eq!(with, without, "{era:?}: {method} {params}");
        }
        let all = records(&world, "decided");
        assert_eq!((all.len(), decided.len()), (10, 5), "{era:?}: the daemon keeps other records");
        assert_eq!(records(&world, "rejected").len(), 2 * rejected.len(), "{era:?}");
        for (by_daemon, here) in all[decided.len()..].iter().zip(&decided) {
            assert_eq!(by_daemon["process"]["pid"], served.pid(), "{era:?}: the client decided: {by_daemon}");
            assert_eq!(by_daemon["call"]["origin"], "mcp", "{era:?}: {by_daemon}");
            for part in ["principal", "arguments", "cwd", "caller_id"] {
                assert_eq!(by_daemon["call"][part], here["call"][part], "{era:?}: {part}");
            }
            assert_eq!(by_daemon["digest"], here["digest"], "{era:?}: a grant of one is none of the other's");
        }
        assert_eq!(world.run(["audit", "verify"]).code, 0, "{era:?}");
    }
}

#[test]
fn a_call_that_asks_waits_for_the_daemon_s_answer() {
    let world = World::new();
    let served = Served::start(&world);
    let mut client = Client::begun(&world, Era::Stateless, &NO_WAIT);
    for (answer, reason) in [("grant", json!({})), ("refuse", json!({ "reason": "not on a Monday" }))] {
        let params = json!({
            "name": "Write",
            "arguments": { "path": format!("{answer}.txt"), "content": "x" },
            "_meta": { "progressToken": answer }
        });
        let id = client.request("tools/call", params);
        let progress = client.wait_for("progress", |m| m["params"]["progressToken"] == answer);
        let message = progress["params"]["message"].as_str().expect("a message");
        let approval = message.rsplit(' ').next().expect("an id");
        let reply = served.post(&format!("/api/approvals/{approval}/{answer}"), &served.operator(), &reason);
        assert_eq!(reply.status, 200, "{reply:?}");
        let result = client.answer(id)["result"].clone();
        let there = world.workspace().join(format!("{answer}.txt")).exists();
        if answer == "grant" {
            assert!(there && decision(&result) == "allow", "{result}");
        } else {
            assert!(!there && decision(&result) == "deny" && text(&result).contains("Monday"), "{result}");
        }
    }
}

#[test]
fn a_call_taken_back_is_ended_by_the_daemon_and_on_record() {
    for way in ["cancel", "close"] {
        let world = World::new();
        let served = Served::start(&world);
        let mut client = Client::begun(&world, Era::Handshake, &NO_WAIT);
        let command = json!({ "command": "touch started; sleep 60; touch ended" });
        let id = pending(&client.call("Bash", command.clone()));
        assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
        let call = client.request_call("Bash", command);
        until(|| world.workspace().join("started").exists().then_some(()));
        if way == "cancel" {
            client.cancel(call);
        } else {
            let (status, said) = client.close();
            assert!(status.success(), "{way}: {said}");
        }
        let finished = until(|| records(&world, "finished").pop());
        assert!(finished.to_string().contains("cancelled"), "{way}: {finished}");
        assert_eq!(served.execute("ListDir", json!({ "path": "." })).status, 200, "{way}: the daemon goes on");
        assert!(records(&world, "unknown").is_empty(), "{way}");
    }
}

#[test]
fn a_session_outlives_the_daemon_and_finds_the_next_one() {
    for era in ERAS {
        let world = World::new();
        world.write("work/hello.txt", "good morning\n");
        let served = Served::start(&world);
        let mut client = Client::begun(&world, era, &NO_WAIT);
        let list = json!({ "command": "ls" });
        let deciders = |client: &mut Client| {
            let read = client.call("Read", json!({ "path": "hello.txt" }));
            assert_eq!(decision(&read), "allow", "{era:?}: {read}");
            let last = records(&world, "decided").pop().expect("a record");
            u32::try_from(last["process"]["pid"].as_u64().expect("a pid")).expect("a pid")
        };
        assert_eq!(deciders(&mut client), served.pid(), "{era:?}");
        let id = pending(&client.call("Bash", list.clone()));
        served.signal(Signal::SIGKILL);
        drop(served);

        assert_eq!(deciders(&mut client), client.pid(), "{era:?}: nobody else is there to decide");
        assert_eq!(pending(&client.call("Bash", list.clone())), id, "{era:?}: what waits was forgotten");
        assert_eq!(world.run(["approvals", "grant", &id]).code, 0);

        let served = Served::start(&world);
        assert_eq!(deciders(&mut client), served.pid(), "{era:?}: the new daemon was not found");
        let ran = client.call("Bash", list.clone());
        assert!(text(&ran).contains("hello.txt"), "{era:?}: {ran}");
        // Longer than the client keeps a connection.
        std::thread::sleep(Duration::from_millis(2500));
        assert_eq!(deciders(&mut client), served.pid(), "{era:?}");
        let (status, said) = client.close();
        assert!(status.success(), "{era:?}: {said}");
        assert_eq!(world.run(["audit", "verify"]).code, 0, "{era:?}");
    }
}

#[test]
fn i7_an_agent_s_credential_makes_calls_as_that_agent_alone() {
    let world = World::new();
    world.write(
        "config/portcullis.toml",
        "[[agents]]\nname = \"one\"\nallowed_tools = [\"Read\"]\n[[agents]]\nname = \"two\"\n",
    );
    let served = Served::start(&world);
    let serve = |args: &[&str]| {
        let mut command = world.portcullis([&["mcp", "serve"], args].concat());
        command.env("PORTCULLIS_TOKEN", served.agent("one"));
        command.stdin(std::process::Stdio::null()).output().expect("the binary starts")
    };
    let fine = serve(&[]);
    let said = String::from_utf8_lossy(&fine.stderr).into_owned();
    assert!(fine.status.success() && said.contains("agent one") && said.contains("running gateway"), "{said}");
    for args in [&["--agent", "two"][..], &["--workspace", "/"]] {
        let refused = serve(args);
        assert_eq!(refused.status.code(), Some(64), "{args:?}: {refused:?}");
    }
}
