//! Over streamable HTTP, both revisions, against the daemon.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::client::{ERAS, Era, LONG, decision, pending, text, until};
use crate::common::World;
use crate::served::Served;

/// The daemon, with two agents.
pub struct Server {
    pub served: Served,
}

impl Server {
    pub fn start(world: &World) -> Server {
        Server { served: Served::start(world) }
    }

    pub fn token(&self, who: &str) -> String {
        if who == "boss" { self.served.operator() } else { self.served.agent(who) }
    }

    pub fn open(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.served.address).expect("a connection");
        stream.set_read_timeout(Some(LONG)).expect("a time limit");
        let mut head = format!("{method} /mcp HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // A server that refuses a request need not read all of it.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        stream
    }

    pub fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        Answer::read(self.open(method, headers, body))
    }
}

/// An HTTP answer, its body taken out of chunks and events.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub messages: Vec<Value>,
    pub body: String,
}

impl Answer {
    pub fn read(stream: TcpStream) -> Answer {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("a status line");
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { chunks(&mut reader) } else { all(&mut reader) };
        let events = body.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
        let mut messages: Vec<Value> = events.map(|data| serde_json::from_str(data).expect("a message")).collect();
        messages.extend(serde_json::from_str::<Value>(&body).ok());
        Answer { status, headers, messages, body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The response to the request, result or error.
    pub fn message(&self) -> &Value {
        let answer = self.messages.iter().find(|m| m.get("method").is_none());
        answer.unwrap_or_else(|| panic!("no answer in {self:?}"))
    }
}

fn all(reader: &mut impl Read) -> String {
    let mut body = String::new();
    reader.read_to_string(&mut body).expect("a body");
    body
}

fn chunks(reader: &mut impl BufRead) -> String {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).expect("a chunk");
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or_else(|_| panic!("no chunk size: {size}"));
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).expect("a chunk's bytes");
        chunk.truncate(size);
        if chunk.is_empty() {
            return String::from_utf8(body).expect("UTF-8");
        }
        body.extend(chunk);
    }
}

/// One agent's client.
pub struct Client<'a> {
    pub server: &'a Server,
    pub era: Era,
    pub agent: &'a str,
    pub session: String,
}

impl<'a> Client<'a> {
    pub fn begun(server: &'a Server, era: Era, agent: &'a str) -> Client<'a> {
        let mut client = Client { server, era, agent, session: String::new() };
        if era == Era::Handshake {
            let hello = json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" }
            });
            let answer = client.ask("initialize", hello);
            assert_eq!(answer.message()["result"]["protocolVersion"], "2025-11-25", "{answer:?}");
            client.session = answer.header("mcp-session-id").expect("a session").to_owned();
        }
        client
    }

    pub fn ask(&self, method: &str, params: Value) -> Answer {
        self.ask_with(method, params, &[])
    }

    pub fn ask_with(&self, method: &str, params: Value, more: &[(&str, &str)]) -> Answer {
        Answer::read(self.open(method, params, more))
    }

    pub fn open(&self, method: &str, params: Value, more: &[(&str, &str)]) -> TcpStream {
        let name = params["name"].as_str().unwrap_or("").to_owned();
        let params = self.era.params(params);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let token = format!("Bearer {}", self.server.token(self.agent));
        let modern = self.era == Era::Stateless;
        let mut headers = vec![
            ("Host", "127.0.0.1"),
            ("Authorization", &*token),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Portcullis-Wait", "0"),
            ("Mcp-Session-Id", &self.session),
            ("MCP-Protocol-Version", self.era.version()),
            ("Mcp-Method", if modern { method } else { "" }),
            ("Mcp-Name", if modern { &name } else { "" }),
        ];
        headers.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        headers.extend(more);
        self.server.open("POST", &headers, &body)
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_with(tool, arguments, &[])
    }

    pub fn call_with(&self, tool: &str, arguments: Value, more: &[(&str, &str)]) -> Value {
        let answer = self.ask_with("tools/call", json!({ "name": tool, "arguments": arguments }), more);
        answer.message().get("result").unwrap_or_else(|| panic!("{tool}: {answer:?}")).clone()
    }
}

pub fn world() -> World {
    let world = World::new();
    let workspace = world.workspace();
    let place = format!("workspace = \"{}\"", workspace.display());
    world.write("config/portcullis.toml", format!("[[agents]]\nname = \"a\"\n{place}\n[[agents]]\nname = \"b\"\n"));
    world.write("work/hello.txt", "good morning\n");
    world
}

#[test]
fn calls_over_http_are_allowed_pending_granted_denied_and_failed() {
    for era in ERAS {
        let world = world();
        let server = Server::start(&world);
        let client = Client::begun(&server, era, "a");
        let tools = client.ask("tools/list", json!({})).message()["result"]["tools"].clone();
        assert_eq!((&tools[0]["name"], &tools[5]["name"]), (&json!("Bash"), &json!("Read")), "{era:?}: {tools}");
        let read = client.call("Read", json!({ "path": "hello.txt" }));
        assert!(text(&read).contains("good morning"), "{era:?}: {read}");
        let bash = json!({ "command": "touch made; ls; cat /etc/shadow" });
        let id = pending(&client.call("Bash", bash.clone()));
        assert!(!world.workspace().join("made").exists(), "{era:?}: it ran before anybody answered");
        assert_eq!(world.run(["approvals", "grant", &id]).code, 0, "{era:?}");
        let ran = client.call("Bash", bash);
        assert_eq!(decision(&ran), "allow", "{era:?}: {ran}");
        assert!(text(&ran).contains("made\n"), "{era:?}: {ran}");
        assert!(text(&ran).contains("/etc/shadow: Permission denied"), "{era:?}: it was not confined: {ran}");
        let denied = client.call("Bash", json!({ "command": "rm -rf /" }));
        assert!(text(&denied).starts_with("DENIED by portcullis: "), "{era:?}: {denied}");
        let failed = client.call("Read", json!({ "path": "missing.txt" }));
        assert_eq!((decision(&failed), &failed["isError"]), ("allow", &json!(true)), "{era:?}: {failed}");
    }
}

#[test]
fn a_named_session_outlives_connections_and_no_agent_reaches_into_anothers() {
    let world = world();
    let server = Server::start(&world);
    let named = [("Portcullis-Session", "ticket-7")];
    let write = json!({ "path": "new.txt", "content": "x" });
    let id = pending(&Client::begun(&server, Era::Handshake, "a").call_with("Write", write.clone(), &named));
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let other = Client::begun(&server, Era::Stateless, "b").call_with("Write", write.clone(), &named);
    assert_eq!(decision(&other), "ask", "another agent used the grant: {other}");
    let unnamed = Client::begun(&server, Era::Handshake, "a").call("Write", write.clone());
    assert_eq!(decision(&unnamed), "ask", "another session used the grant: {unnamed}");
    let done = Client::begun(&server, Era::Stateless, "a").call_with("Write", write, &named);
    assert_eq!(decision(&done), "allow", "{done}");
    for bad in ["a/b", "..%2f", &"x".repeat(65), "a b"] {
        let answer = Client::begun(&server, Era::Stateless, "a").ask_with(
            "tools/list",
            json!({}),
            &[("Portcullis-Session", bad)],
        );
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
}

#[test]
fn i7_only_agents_make_calls_and_a_session_is_its_agents() {
    let world = world();
    let server = Server::start(&world);
    for era in ERAS {
        let client = Client::begun(&server, era, "a");
        let boss = client.ask_with(
            "tools/list",
            json!({}),
            &[("Authorization", &*format!("Bearer {}", server.token("boss")))],
        );
        assert_eq!(boss.status, 403, "{era:?}: {boss:?}");
        let nobody = client.ask_with("tools/list", json!({}), &[("Authorization", "")]);
        assert_eq!(nobody.status, 401, "{era:?}: {nobody:?}");
    }
    let client = Client::begun(&server, Era::Handshake, "a");
    let thief = Client { agent: "b", session: client.session.clone(), ..client };
    let token = format!("Bearer {}", server.token("b"));
    for method in ["POST", "GET", "DELETE"] {
        let headers = [
            ("Host", "localhost"),
            ("Authorization", &*token),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Mcp-Session-Id", &*client.session),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        let answer = server.send(method, &headers, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
        assert_eq!(answer.status, 404, "{method} with another agent's session: {answer:?}");
    }
    assert_eq!(thief.ask("tools/list", json!({})).status, 404);
    let unknown = Client { agent: "a", session: "no-such-session".to_owned(), ..client };
    assert_eq!(unknown.ask("tools/list", json!({})).status, 404);
    let still = client.ask("tools/list", json!({}));
    assert_eq!(still.status, 200, "the session's own agent was shut out: {still:?}");
}

#[test]
fn hosts_origins_and_headers_are_checked() {
    let world = world();
    let server = Server::start(&world);
    let own = format!("http://{}", server.served.address);
    for era in ERAS {
        let client = Client::begun(&server, era, "a");
        let list = |more: &[(&str, &str)]| client.ask_with("tools/list", json!({}), more);
        for (name, value, status) in [
            ("Host", "evil.example", 421),
            ("Host", "localhost.evil.example", 421),
            ("Host", "127.0.0.1:8460", 200),
            ("Host", "[::1]:8460", 200),
            ("Origin", "http://evil.example", 403),
            ("Origin", "null", 403),
            ("Origin", "https://localhost", 403),
            ("Origin", "http://localhost:6274", 403),
            ("Origin", &own, 200),
            ("Portcullis-Wait", "-1", 400),
            ("Portcullis-Wait", "3601", 400),
            ("Content-Type", "text/plain", 415),
            ("Accept", "text/html", 406),
            ("MCP-Protocol-Version", "1999-01-01", 400),
        ] {
            let answer = list(&[(name, value)]);
            assert_eq!(answer.status, status, "{era:?}: {name}: {value}: {answer:?}");
            assert!(answer.header("access-control-allow-origin").is_none(), "{era:?}: {answer:?}");
        }
    }
    let client = Client::begun(&server, Era::Stateless, "a");
    let mismatch = client.ask_with("tools/list", json!({}), &[("Mcp-Method", "tools/call")]);
    assert_eq!((mismatch.status, &mismatch.message()["error"]["code"]), (400, &json!(-32020)), "{mismatch:?}");
    let large = client.ask("tools/call", json!({ "name": "Read", "arguments": { "path": "x".repeat(5 << 20) } }));
    assert_eq!(large.status, 413, "{}", large.body);
}

#[test]
fn i2_bodies_that_are_no_message_are_answered_and_ones_that_never_come_are_given_up() {
    let world = world();
    let server = Server::start(&world);
    for era in ERAS {
        let client = Client::begun(&server, era, "a");
        let token = format!("Bearer {}", server.token("a"));
        let mut headers = vec![
            ("Host", "localhost"),
            ("Authorization", &*token),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", era.version()),
        ];
        if era == Era::Handshake {
            headers.push(("Mcp-Session-Id", &*client.session));
        }
        let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":{}", "[".repeat(200_000));
        for (what, body, code) in [
            ("nothing", "", -32700),
            ("garbage", "{]", -32700),
            ("half a message", "{\"jsonrpc\":\"2.0\",", -32700),
            ("deep nesting", &*deep, -32700),
            ("a key twice", "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32700),
            ("a batch", "[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]", -32600),
            ("no message", "{}", -32600),
            ("no JSON-RPC", "{\"jsonrpc\":\"1.0\",\"id\":99,\"method\":\"ping\"}", -32600),
        ] {
            let answer = server.send("POST", &headers, body);
            assert_eq!(answer.status, 400, "{era:?}: {what}: {answer:?}");
            let told: Value = serde_json::from_str(&answer.body).unwrap_or_else(|e| panic!("{what}: {e}: {answer:?}"));
            assert_eq!(told["error"]["code"], code, "{era:?}: {what}: {told}");
            assert!(answer.body.len() < 1000, "{era:?}: {what}: the error repeats what was sent");
        }
        let unknown = server.send("POST", &headers, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no-such\"}");
        // The stateless revision wants the method in a header, too.
        let expected = if era == Era::Handshake { 202 } else { 400 };
        assert_eq!(unknown.status, expected, "{era:?}: {unknown:?}");
        assert_eq!(client.ask("tools/list", json!({})).status, 200, "{era:?}: the server did not go on");
    }
    let token = server.token("a");
    let mut slow = TcpStream::connect(&server.served.address).expect("a connection");
    slow.set_read_timeout(Some(LONG)).expect("a time limit");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).expect("sent");
    assert_eq!(Answer::read(slow).status, 408, "a body that never comes was waited for");
}

#[test]
fn a_call_that_asks_waits_with_progress_and_runs_when_granted() {
    for era in ERAS {
        let world = world();
        let server = Server::start(&world);
        let client = Client::begun(&server, era, "a");
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                let approval = until(|| {
                    let listed = world.run(["approvals", "list", "--json"]).json();
                    listed[0]["approval"]["id"].as_str().map(str::to_owned)
                });
                assert_eq!(world.run(["approvals", "grant", &approval]).code, 0, "{era:?}: granting failed");
            });
            let arguments = json!({ "path": "new.txt", "content": "x" });
            let params = json!({ "name": "Write", "arguments": arguments, "_meta": { "progressToken": 7 } });
            client.ask("tools/call", params)
        });
        let progress = answer.messages.iter().find(|m| m["method"] == "notifications/progress");
        let progress = progress.unwrap_or_else(|| panic!("{era:?}: no progress: {answer:?}"));
        assert_eq!(progress["params"]["progressToken"], 7, "{era:?}: {progress}");
        assert_eq!(decision(&answer.message()["result"]), "allow", "{era:?}: {answer:?}");
        assert!(world.workspace().join("new.txt").exists(), "{era:?}: {answer:?}");
    }
}

#[test]
fn a_client_that_hangs_up_ends_its_call() {
    let world = world();
    let server = Server::start(&world);
    let client = Client::begun(&server, Era::Stateless, "a");
    let arguments = json!({ "command": "touch started; sleep 60; touch ended" });
    let id = pending(&client.call("Bash", arguments.clone()));
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let stream = client.open("tools/call", json!({ "name": "Bash", "arguments": arguments }), &[]);
    until(|| world.workspace().join("started").exists().then_some(()));
    drop(stream);
    until(|| fs::read_to_string(world.log()).ok().filter(|log| log.contains("cancelled")));
    assert!(!world.workspace().join("ended").exists(), "the command ran to its end");
}

/// A daemon in which a call of this command runs, and the stream that waits for its answer.
fn running(world: &World, command: &str) -> (Server, TcpStream) {
    let server = Server::start(world);
    let client = Client::begun(&server, Era::Handshake, "a");
    let arguments = json!({ "command": command });
    let id = pending(&client.call("Bash", arguments.clone()));
    assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
    let call = client.open("tools/call", json!({ "name": "Bash", "arguments": arguments }), &[]);
    until(|| world.workspace().join("started").exists().then_some(()));
    (server, call)
}

#[test]
fn told_to_stop_the_daemon_finishes_its_calls_and_answers_those_that_wait() {
    let world = world();
    let (mut server, call) = running(&world, "touch started; sleep 4; echo finished");
    let client = Client::begun(&server, Era::Stateless, "a");
    let waits = client.open(
        "tools/call",
        json!({ "name": "Bash", "arguments": { "command": "pwd" } }),
        &[("Portcullis-Wait", "60")],
    );
    until(|| world.run(["approvals", "list", "--json"]).json()[0]["approval"]["id"].as_str().map(str::to_owned));
    server.served.signal(Signal::SIGTERM);
    let waits = Answer::read(waits);
    assert_eq!(decision(&waits.message()["result"]), "ask", "a call that waited was cut off: {waits:?}");
    let ran = Answer::read(call);
    let ran = &ran.message()["result"];
    assert!(decision(ran) == "allow" && text(ran).contains("finished"), "a call in flight was cut off: {ran}");
    assert!(server.served.ended().success(), "{}", server.served.log());
    assert!(!fs::read_to_string(world.log()).expect("a log").contains("cancelled"));
    assert_eq!(world.run(["audit", "verify"]).code, 0);
}

#[test]
fn i3_a_daemon_that_stops_ends_its_streams_and_the_calls_that_outlast_the_grace() {
    let world = world();
    let (mut server, call) = running(&world, "touch started; sleep 60; touch ended");
    let client = Client::begun(&server, Era::Handshake, "a");
    let token = format!("Bearer {}", server.token("a"));
    let headers = [
        ("Host", "localhost"),
        ("Authorization", &*token),
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", &*client.session),
    ];
    let mut stream = server.open("GET", &headers, "");
    let mut first = [0; 15];
    stream.read_exact(&mut first).expect("the stream opens");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let began = Instant::now();
    server.served.signal(Signal::SIGTERM);
    let told = Answer::read(call);
    assert!(told.message().to_string().contains("cancelled"), "the caller was not told: {told:?}");
    let took = began.elapsed();
    assert!((9..20).contains(&took.as_secs()), "the call was given {took:?}");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the stream ends with the daemon");
    let status = server.served.ended();
    assert!(status.success(), "{status}: {}", server.served.log());
    let log = fs::read_to_string(world.log()).expect("a log");
    assert!(log.contains("cancelled"), "the call's end is not on record: {log}");
    assert!(!world.workspace().join("ended").exists());
}
