//! Over standard input and output, both revisions.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, ERAS, Era, decision, pending, text, until};
use crate::common::World;

const NO_WAIT: [&str; 2] = ["--wait", "0"];

#[test]
fn a_session_begins_and_lists_the_tools_in_a_fixed_order() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::start(&world, era, &[]);
        let hello = client.begin();
        let told = hello["result"].to_string();
        assert!(told.contains("portcullis") && told.contains("DENIED"), "{era:?} is not told who serves: {hello}");
        let named = match era {
            Era::Handshake => hello["result"]["protocolVersion"] == era.version(),
            Era::Stateless => {
                hello["result"]["supportedVersions"].as_array().is_some_and(|v| v.contains(&json!(era.version())))
            }
        };
        assert!(named, "{era:?} is not agreed on: {hello}");

        let list = client.ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().expect("a list of tools").clone();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["Bash", "Edit", "Glob", "Grep", "ListDir", "Read", "Write"], "{era:?}");
        let hints = |name: &str| {
            let tool = tools.iter().find(|tool| tool["name"] == name).expect("the tool");
            ["readOnlyHint", "destructiveHint", "openWorldHint"].map(|hint| tool["annotations"][hint] == true)
        };
        assert_eq!(hints("Read"), [true, false, false], "{era:?}");
        assert_eq!(hints("Write"), [false, true, false], "{era:?}");
        assert_eq!(hints("Bash"), [false, true, true], "{era:?}");
        assert_eq!(tools[5]["inputSchema"]["required"], json!(["path"]), "{era:?}");
        if era == Era::Stateless {
            assert_eq!(list["result"]["cacheScope"], "private", "what is listed depends on who asks: {list}");
        }
        let (status, _) = client.close();
        assert!(status.success(), "{era:?}: the server ended with {status}");
    }
}

#[test]
fn calls_are_allowed_pending_granted_denied_and_failed() {
    for era in ERAS {
        let world = World::new();
        world.write("work/hello.txt", "good morning\n");
        let mut client = Client::begun(&world, era, &NO_WAIT);

        let read = client.call("Read", json!({ "path": "hello.txt" }));
        assert!(text(&read).contains("good morning"), "{era:?}: {read}");
        assert_eq!((decision(&read), &read["isError"]), ("allow", &json!(false)), "{era:?}: {read}");
        assert!(read["structuredContent"].is_object(), "{era:?}: the tool's data is missing: {read}");

        let list = json!({ "command": "ls" });
        let asked = client.call("Bash", list.clone());
        let id = pending(&asked);
        let said = text(&asked);
        assert!(said.starts_with("PENDING") && said.contains(&id) && said.contains("same call"), "{era:?}: {said}");
        let granted = world.run(["approvals", "grant", &id]);
        assert_eq!(granted.code, 0, "{era:?}: {granted:?}");
        let ran = client.call("Bash", list.clone());
        assert!(text(&ran).contains("hello.txt"), "{era:?}: {ran}");
        assert_eq!(ran["structuredContent"]["exit_code"], 0, "{era:?}: {ran}");
        assert_ne!(pending(&client.call("Bash", list)), id, "{era:?}: a grant is good for one call");

        let denied = client.call("Bash", json!({ "command": "rm -rf /" }));
        assert_eq!((decision(&denied), &denied["isError"]), ("deny", &json!(true)), "{era:?}: {denied}");
        let rule = denied["_meta"]["portcullis"]["findings"][0]["id"].as_str().expect("a rule").to_owned();
        assert!(text(&denied).starts_with(&format!("DENIED by portcullis: {rule}: ")), "{era:?}: {denied}");
        assert!(text(&denied).contains("\nInstead: "), "{era:?}: what to do instead is missing: {denied}");
        assert_eq!(denied["structuredContent"]["portcullis"]["decision"], "deny", "{era:?}: {denied}");

        let failed = client.call("Read", json!({ "path": "missing.txt" }));
        assert_eq!((decision(&failed), &failed["isError"]), ("allow", &json!(true)), "{era:?}: {failed}");
        assert_eq!(failed["_meta"]["portcullis"]["failure"], "tool", "{era:?}: {failed}");
        assert!(!text(&failed).contains("DENIED"), "{era:?}: a failure looks like a denial: {failed}");
    }
}

#[test]
fn a_call_that_asks_waits_with_progress_and_runs_when_granted() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::begun(&world, era, &NO_WAIT);
        let params = json!({
            "name": "Write",
            "arguments": { "path": "new.txt", "content": "x" },
            "_meta": { "progressToken": "p1" }
        });
        let id = client.request("tools/call", params);
        let progress = client.wait_for("progress", |m| m["method"] == "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "p1", "{era:?}: {progress}");
        let message = progress["params"]["message"].as_str().expect("a message");
        let approval = message.rsplit(' ').next().expect("an id").to_owned();
        assert!(!world.workspace().join("new.txt").exists(), "{era:?}: it ran before anybody answered");
        assert_eq!(world.run(["approvals", "grant", &approval]).code, 0, "{era:?}: {message}");
        let answer = client.answer(id);
        assert_eq!(decision(&answer["result"]), "allow", "{era:?}: {answer}");
        assert!(world.workspace().join("new.txt").exists(), "{era:?}: {answer}");
    }
}

#[test]
fn a_call_that_a_person_refuses_is_denied_with_the_reason() {
    let world = World::new();
    let mut client = Client::begun(&world, Era::Handshake, &["--wait", "60"]);
    let id = client.request_call("Write", json!({ "path": "new.txt", "content": "x" }));
    let approval = until(|| {
        let listed = world.run(["approvals", "list", "--json"]).json();
        listed[0]["approval"]["id"].as_str().map(str::to_owned)
    });
    assert_eq!(world.run(["approvals", "refuse", &approval, "--reason", "not on a Monday"]).code, 0);
    let result = client.answer(id)["result"].clone();
    assert_eq!((decision(&result), &result["isError"]), ("deny", &json!(true)), "{result}");
    assert!(text(&result).contains("approval.refused") && text(&result).contains("not on a Monday"), "{result}");
    assert!(!world.workspace().join("new.txt").exists(), "a refused call ran");
}

#[test]
fn i1_a_tool_that_can_never_be_allowed_is_not_shown_and_denied_on_record() {
    for (agent, shown, hidden) in [
        ("mode = \"plan\"", vec!["Glob", "Grep", "ListDir", "Read"], "Bash"),
        ("unattended = true", vec!["Glob", "Grep", "ListDir", "Read"], "Write"),
        ("allowed_tools = [\"Write\", \"Read\"]", vec!["Read", "Write"], "Bash"),
    ] {
        let world = World::new();
        world.write("config/portcullis.toml", format!("[[agents]]\nname = \"a\"\n{agent}\n"));
        let mut client = Client::begun(&world, Era::Handshake, &["--agent", "a"]);
        let list = client.ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().expect("a list").clone();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
        assert_eq!(names, shown, "{agent}");
        let arguments = json!({ "command": "ls", "path": "a", "content": "b" });
        let result = client.call(hidden, arguments);
        assert_eq!(decision(&result), "deny", "{agent}: {result}");
        let log = fs::read_to_string(world.log()).expect("a log");
        assert!(log.contains(&format!("\"{hidden}\"")), "{agent}: the refusal is not on record: {log}");
    }
}

#[test]
fn i2_calls_that_make_no_sense_are_answered_and_nothing_runs() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::begun(&world, era, &NO_WAIT);
        for (tool, arguments, told) in [
            ("Nope", json!({}), "Nope"),
            ("Read", json!({}), "path"),
            ("Read", json!({ "path": "x", "limit": "many" }), "limit"),
            ("Read", json!({ "path": "x", "colour": "red" }), "colour"),
            ("Read", json!({ "path": "a\0b" }), "NUL byte"),
            ("Read", json!(["x"]), "object"),
            ("Read", json!("x"), "object"),
            ("", json!({}), "no tool"),
        ] {
            let result = client.call(tool, arguments.clone());
            assert_eq!(decision(&result), "deny", "{era:?}: {tool} {arguments}: {result}");
            assert!(text(&result).contains(told), "{era:?}: {tool} {arguments} should mention {told}: {result}");
        }
        for (method, params, code) in [
            ("tools/call", json!({}), -32602),
            ("tools/call", json!({ "name": 5 }), -32602),
            ("tools/list", json!({ "cursor": "none" }), -32602),
            ("no/such/method", json!({}), -32601),
            ("resources/list", json!({}), -32601),
        ] {
            let answer = client.ask(method, params.clone());
            assert_eq!(answer["error"]["code"], code, "{era:?}: {method} {params}: {answer}");
        }
        let again = client.call("ListDir", json!({ "path": "." }));
        assert_eq!(decision(&again), "allow", "{era:?}: the server did not go on: {again}");
    }
}

#[test]
fn i2_lines_that_are_no_message_are_answered_and_the_server_goes_on() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::start(&world, era, &NO_WAIT);
        let stray: [&[u8]; 3] = [b"\n", b"\r\n", b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"];
        stray.iter().for_each(|line| client.send_bytes(line));
        client.send_bytes(b"not json, before anything began\n");
        error(&mut client, era, "garbage at the start", -32700);
        client.begin();
        let nested = [vec![b'['; 200_000], b"\n".to_vec()].concat();
        let long =
            [b"{\"jsonrpc\":\"2.0\",\"id\":9,\"x\":\"".to_vec(), vec![b'a'; 5 << 20], b"\"}\n".to_vec()].concat();
        let cases: [(&str, &[u8], i64); 7] = [
            ("garbage", b"{]\n", -32700),
            ("half a message", b"{\"jsonrpc\":\"2.0\",\n", -32700),
            ("bytes that are no UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\xff\xfe\"}\n", -32700),
            ("deep nesting", &nested, -32700),
            ("an oversize line", &long, -32600),
            ("a batch", b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]\n", -32600),
            ("no JSON-RPC", b"{\"jsonrpc\":\"1.0\",\"id\":99,\"method\":\"ping\"}\n", -32600),
        ];
        for (what, line, code) in cases {
            client.send_bytes(line);
            error(&mut client, era, what, code);
        }
        client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no-such\"}\n");
        let result = client.call("ListDir", json!({ "path": "." }));
        assert_eq!(decision(&result), "allow", "{era:?}: the server did not go on: {result}");
        assert_eq!(client.seen, Vec::<Value>::new(), "{era:?}: more was answered than was asked");
    }
}

fn error(client: &mut Client, era: Era, what: &str, code: i64) {
    let answer = client.wait_for(&format!("error for {what} ({era:?})"), |m| m.get("error").is_some());
    assert_eq!(answer["error"]["code"], code, "{era:?}: {what}: {answer}");
    assert!(answer.to_string().len() < 1000, "{era:?}: {what}: the error repeats what was sent");
}

#[test]
fn a_cancelled_call_is_ended_and_on_record() {
    for era in ERAS {
        let world = World::new();
        let mut client = Client::begun(&world, era, &NO_WAIT);
        let command = json!({ "command": "touch started; sleep 60; touch ended" });
        let id = pending(&client.call("Bash", command.clone()));
        assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
        let began = Instant::now();
        let call = client.request_call("Bash", command);
        until(|| world.workspace().join("started").exists().then_some(()));
        client.cancel(call);
        let finished = until(|| {
            let log = fs::read_to_string(world.log()).unwrap_or_default();
            log.lines().find(|line| line.contains("cancelled")).map(str::to_owned)
        });
        assert!(finished.contains("finished"), "{era:?}: {finished}");
        assert!(began.elapsed() < Duration::from_secs(50), "{era:?}: the command ran to its end");
        let result = client.call("ListDir", json!({ "path": "." }));
        assert!(!text(&result).contains("ended"), "{era:?}: {result}");
        assert!(!client.seen.iter().any(|m| m["id"] == call), "{era:?}: a cancelled request was answered");
    }
}

#[test]
fn two_calls_run_at_once() {
    let world = World::new();
    let mut client = Client::begun(&world, Era::Handshake, &NO_WAIT);
    let slow = json!({ "command": "touch started; while [ ! -e go ]; do sleep 0.05; done" });
    let id = pending(&client.call("Bash", slow.clone()));
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let first = client.request_call("Bash", slow);
    until(|| world.workspace().join("started").exists().then_some(()));
    let second = client.call("ListDir", json!({ "path": "." }));
    assert!(text(&second).contains("started"), "{second}");
    world.write("work/go", "");
    let result = client.answer(first)["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn a_client_that_goes_away_leaves_no_call_without_an_end() {
    for stop in ["close", "terminate"] {
        let world = World::new();
        let mut client = Client::begun(&world, Era::Handshake, &NO_WAIT);
        let command = json!({ "command": "touch started; sleep 60; touch ended" });
        let id = pending(&client.call("Bash", command.clone()));
        assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
        client.request_call("Bash", command);
        until(|| world.workspace().join("started").exists().then_some(()));
        let began = Instant::now();
        if stop == "terminate" {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(client.pid()).expect("a pid"));
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("a signal");
        }
        let (status, said) = client.close();
        assert!(status.success(), "{stop}: {status}: {said}");
        assert!(began.elapsed() < Duration::from_secs(50), "{stop}: the server waited for the command");
        let log = fs::read_to_string(world.log()).expect("a log");
        let ends = log.lines().filter(|line| line.contains("\"finished\"")).count();
        assert_eq!(ends, 1, "{stop}: the call's end is not on record: {log}");
        assert!(!world.workspace().join("ended").exists(), "{stop}: the command went on");
        assert_eq!(world.run(["audit", "verify"]).code, 0, "{stop}");
    }
}

#[test]
fn mcp_without_arguments_serves() {
    let world = World::new();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }
    });
    let ran = world.run_with_input(["mcp"], format!("{hello}\n").as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.lines()[0]["result"]["serverInfo"]["name"], "portcullis", "{ran:?}");
    let nothing = world.run_with_input(["mcp", "serve"], b"");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, ""), "{nothing:?}");
    for (args, told) in [(["--agent", "ghost"], "ghost"), (["--workspace", "/"], "PORTCULLIS_STATE")] {
        let refused = world.run(["mcp", "serve"].iter().chain(&args));
        assert_eq!((refused.code, refused.stdout.as_str()), (64, ""), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains(told), "{args:?}: {refused:?}");
    }
}

#[test]
fn init_prints_what_puts_the_gateway_in_front() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_portcullis");
    for (client, at) in
        [("claude", "/mcpServers/portcullis"), ("cursor", "/mcpServers/portcullis"), ("vscode", "/servers/portcullis")]
    {
        let ran = world.run(["init", "--mcp-client", client]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let entry = ran.json().pointer(at).cloned().unwrap_or_else(|| panic!("{client}: no {at}: {ran:?}"));
        assert_eq!(entry["args"], json!(["mcp", "serve"]), "{client}");
        let command = entry["command"].as_str().expect("a command");
        assert_eq!(fs::canonicalize(command).expect("it is there"), fs::canonicalize(program).expect("so is this"));
    }
    let codex = world.run(["init", "--mcp-client", "codex"]);
    let table: toml::Value = toml::from_str(&codex.stdout).unwrap_or_else(|e| panic!("{e}: {codex:?}"));
    assert_eq!(table["mcp_servers"]["portcullis"]["args"][1].as_str(), Some("serve"), "{codex:?}");
    let names: Vec<_> = fs::read_dir(world.config()).expect("a directory").collect();
    assert!(names.is_empty(), "printing wrote files: {names:?}");
}
