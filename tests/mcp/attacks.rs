//! What an agent might try over MCP with its own token: to use up what others need, to reach into their sessions, to send
//! what no client sends.

use std::fs;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{ERAS, Era, decision, pending, until};
use crate::http::{Answer, Client, Server, world};

const SSE: &str = "application/json, text/event-stream";

/// Sends a body in the client's session.
fn post(server: &Server, client: &Client, more: &[(&str, &str)], body: &str) -> Answer {
    let token = format!("Bearer {}", server.token("a"));
    let mut headers = vec![
        ("Host", "localhost"),
        ("Authorization", &*token),
        ("Content-Type", "application/json"),
        ("Accept", SSE),
        ("MCP-Protocol-Version", client.era.version()),
        ("Mcp-Session-Id", &*client.session),
    ];
    headers.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    headers.extend(more);
    server.send("POST", &headers, body)
}

#[test]
fn sessions_without_end_cost_their_own_agent_its_oldest_and_nobody_else_anything() {
    let world = world();
    let server = Server::start(&world);
    let others = Client::begun(&server, Era::Handshake, "b");
    let first = Client::begun(&server, Era::Handshake, "a");
    let second = Client::begun(&server, Era::Handshake, "a");
    for n in 0..300 {
        let next = Client::begun(&server, Era::Handshake, "a");
        assert!(!next.session.is_empty(), "session {n} was not begun");
        if n % 50 == 0 {
            assert_eq!(second.ask("tools/list", json!({})).status, 200, "a session in use was ended, at {n}");
        }
    }
    assert_eq!(first.ask("tools/list", json!({})).status, 404, "sessions without end");
    assert_eq!(others.ask("tools/list", json!({})).status, 200, "another agent's session was ended");
}

#[test]
fn events_are_resumed_in_ones_own_session_alone() {
    let world = world();
    let server = Server::start(&world);
    let (mine, theirs) = (Client::begun(&server, Era::Handshake, "a"), Client::begun(&server, Era::Handshake, "b"));
    let (one, two) = (format!("Bearer {}", server.token("a")), format!("Bearer {}", server.token("b")));
    assert_eq!(theirs.ask("tools/list", json!({})).status, 200);
    for last in ["0", "0/0", "0/1", "1/0", "999/0", "-1/-1", "18446744073709551616/0", "x", "../0", ""] {
        for (token, session, fine) in
            [(&one, &mine.session, true), (&one, &theirs.session, false), (&two, &mine.session, false)]
        {
            let headers = [
                ("Host", "localhost"),
                ("Authorization", token.as_str()),
                ("Accept", "text/event-stream"),
                ("Mcp-Session-Id", session.as_str()),
                ("MCP-Protocol-Version", "2025-11-25"),
                ("Last-Event-ID", last),
            ];
            let mut stream = server.open("GET", &headers, "");
            let mut status = [0; 12];
            std::io::Read::read_exact(&mut stream, &mut status).expect("an answer");
            let status = String::from_utf8_lossy(&status).into_owned();
            assert!(fine || status.ends_with(" 404"), "`{last}` in another's session: {status}");
            assert!(!status.ends_with(" 500"), "`{last}`: {status}");
        }
    }
    assert_eq!(mine.ask("tools/list", json!({})).status, 200, "the session did not survive it");
}

#[test]
fn i2_ids_of_every_kind_have_one_answer_or_one_error() {
    let world = world();
    let server = Server::start(&world);
    for era in ERAS {
        let client = Client::begun(&server, era, "a");
        let huge = "i".repeat(1 << 20);
        for (what, id, answered) in [
            ("null", json!(null), false),
            ("an object", json!({}), false),
            ("a list", json!([1]), false),
            ("a truth", json!(true), false),
            ("a fraction", json!(1.5), false),
            ("a text", json!("x"), true),
            ("an empty text", json!(""), true),
            ("a huge text", json!(huge), true),
            ("a negative number", json!(-1), true),
            ("a large number", json!(9_007_199_254_740_993_i64), true),
            ("a number beyond", json!(18_446_744_073_709_551_615_u64), false),
        ] {
            let params = era.params(json!({}));
            let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params }).to_string();
            let more: &[(&str, &str)] = if era == Era::Stateless { &[("Mcp-Method", "tools/list")] } else { &[] };
            let answer = post(&server, &client, more, &body);
            assert_eq!(answer.status == 200, answered, "{era:?}: {what}: {}", answer.status);
            if answered {
                assert_eq!(answer.message()["id"], id, "{era:?}: {what}");
            }
        }
        assert_eq!(client.ask("tools/list", json!({})).status, 200, "{era:?}: the server did not go on");
    }
}

#[test]
fn i2_versions_that_do_not_exist_or_do_not_agree_begin_nothing_odd() {
    let world = world();
    let server = Server::start(&world);
    let token = format!("Bearer {}", server.token("a"));
    for (version, header, fine) in [
        ("1999-01-01", "", true),
        ("2024-11-05", "", true),
        ("2025-11-25", "2025-11-25", true),
        ("2025-11-25", "2024-11-05", false),
        ("9999-12-31", "", true),
        ("2025-11-25", "1999-01-01", false),
    ] {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
        let mut headers = vec![
            ("Host", "localhost"),
            ("Authorization", &*token),
            ("Content-Type", "application/json"),
            ("Accept", SSE),
        ];
        headers.extend((!header.is_empty()).then_some(("MCP-Protocol-Version", header)));
        let answer = server.send("POST", &headers, &hello.to_string());
        assert_eq!(answer.status == 200, fine, "{version} under {header}: {answer:?}");
        if fine {
            let agreed = answer.message()["result"]["protocolVersion"].as_str().unwrap_or("none").to_owned();
            assert!(["2024-11-05", "2025-11-25"].contains(&&*agreed), "{version}: {agreed}");
        }
    }
    // The stateless revision by header without what it wants, and the other way round.
    let client = Client::begun(&server, Era::Handshake, "a");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }).to_string();
    for more in [
        &[("MCP-Protocol-Version", "2026-07-28")][..],
        &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Session-Id", "")],
        &[("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", "")],
        &[("MCP-Protocol-Version", "2025-11-25, 2026-07-28")],
    ] {
        let answer = post(&server, &client, more, &list);
        assert!((400..500).contains(&answer.status), "{more:?}: {answer:?}");
    }
}

#[test]
fn floods_of_notes_and_cancellations_of_others_calls_change_nothing() {
    let world = world();
    let server = Server::start(&world);
    let mine = Client::begun(&server, Era::Handshake, "a");
    let theirs = Client::begun(&server, Era::Handshake, "b");
    let arguments = json!({ "command": "touch started; sleep 3; echo finished" });
    let id = pending(&mine.call("Bash", arguments.clone()));
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let call = mine.open("tools/call", json!({ "name": "Bash", "arguments": arguments }), &[]);
    until(|| world.workspace().join("started").exists().then_some(()));
    let token = format!("Bearer {}", server.token("b"));
    let headers = [
        ("Host", "localhost"),
        ("Authorization", &*token),
        ("Content-Type", "application/json"),
        ("Accept", SSE),
        ("Mcp-Session-Id", &*theirs.session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    for n in 0..500 {
        let note = match n % 4 {
            0 => json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
            1 => {
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": n, "progress": 1 } })
            }
            2 => json!({ "jsonrpc": "2.0", "method": "notifications/no-such", "params": { "x": "y".repeat(1000) } }),
            _ => json!({ "jsonrpc": "2.0", "id": n, "result": {} }),
        };
        let status = server.send("POST", &headers, &note.to_string()).status;
        assert!(matches!(status, 202 | 400), "{note}: {status}");
    }
    let ran = Answer::read(call);
    let ran = &ran.message()["result"];
    assert!(decision(ran) == "allow" && ran.to_string().contains("finished"), "another agent ended the call: {ran}");
    assert_eq!(theirs.ask("tools/list", json!({})).status, 200);
}

#[test]
fn a_stateless_call_whose_client_hung_up_while_it_waited_does_not_run_when_it_is_granted() {
    let world = world();
    let server = Server::start(&world);
    let client = Client::begun(&server, Era::Stateless, "a");
    let arguments = json!({ "command": "touch made" });
    let id = pending(&client.call("Bash", arguments.clone()));
    let waiting = [("Portcullis-Wait", "60")];
    let asked = || fs::read_to_string(world.log()).map_or(0, |log| log.matches("\"kind\":\"decided\"").count());
    let before = asked();
    let mut stream = client.open("tools/call", json!({ "name": "Bash", "arguments": arguments }), &waiting);
    until(|| (asked() > before).then_some(()));
    stream.flush().expect("sent");
    drop(stream);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    std::thread::sleep(Duration::from_secs(1));
    assert!(!world.workspace().join("made").exists(), "it ran for nobody");
    let ran: Value = client.call("Bash", arguments);
    assert_eq!(decision(&ran), "allow", "the grant is gone: {ran}");
}

#[test]
fn answers_that_were_sent_are_not_kept() {
    let world = world();
    let server = Server::start(&world);
    world.write("work/large.txt", "some text of a line\n".repeat(6000));
    let client = Client::begun(&server, Era::Handshake, "a");
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.served.pid())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory").to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    let read = |times: u32| {
        for _ in 0..times {
            assert_eq!(decision(&client.call("Read", json!({ "path": "large.txt" }))), "allow");
        }
        resident()
    };
    let before = read(50);
    // 400 answers of 120 kB.
    let after = read(400);
    assert!(after < before + 24_000, "resident memory went from {before} kB to {after} kB");
}
