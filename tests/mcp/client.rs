//! A small MCP client that speaks the protocol by hand, so that it can also speak it wrongly.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::World;

/// How long a message is waited for. Long, because the machine may be busy; nothing waits that long when all is well.
pub const LONG: Duration = Duration::from_secs(60);

/// The two ways of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: a handshake, then a session.
    Handshake,
    /// 2026-07-28: each request stands for itself.
    Stateless,
}

pub const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

impl Era {
    pub fn version(self) -> &'static str {
        match self {
            Era::Handshake => "2025-11-25",
            Era::Stateless => "2026-07-28",
        }
    }

    /// Parameters as this era wants them.
    pub fn params(self, mut params: Value) -> Value {
        if self == Era::Stateless {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.version());
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        }
        params
    }
}

/// `portcullis mcp serve` and the pipes to it.
pub struct Client {
    pub era: Era,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    reader: Option<JoinHandle<()>>,
    /// Messages that came before the one that was waited for.
    pub seen: Vec<Value>,
    next_id: u64,
}

impl Client {
    pub fn start(world: &World, era: Era, args: &[&str]) -> Client {
        let mut child = world
            .portcullis(["mcp", "serve"].iter().chain(args))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.expect("standard output is UTF-8");
                let message = serde_json::from_str(&line)
                    .unwrap_or_else(|e| panic!("standard output holds what is no message ({e}): {line}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Client { era, child, stdin, lines, reader: Some(reader), seen: Vec::new(), next_id: 1 }
    }

    /// Starts one and begins a session.
    pub fn begun(world: &World, era: Era, args: &[&str]) -> Client {
        let mut client = Client::start(world, era, args);
        client.begin();
        client
    }

    /// Says hello in the way of the era, and gives the answer.
    pub fn begin(&mut self) -> Value {
        match self.era {
            Era::Handshake => {
                let hello = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": { "name": "test", "version": "1" }
                });
                let answer = self.ask("initialize", hello);
                self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
                answer
            }
            Era::Stateless => self.ask("server/discover", json!({})),
        }
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the server reads");
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// Sends a request and gives its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let params = self.era.params(params);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn request_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The next message that `wanted` picks; others are kept in `seen`.
    pub fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&wanted) {
            return self.seen.remove(at);
        }
        let until = Instant::now() + LONG;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(message) = self.lines.recv_timeout(left) else {
                let said = self.last_words();
                panic!("no {what} came; came instead: {:?}; the server said: {said}", self.seen);
            };
            if wanted(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    /// The answer to a request, result or error.
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(&format!("answer to request {id}"), |m| m["id"] == id && m.get("method").is_none())
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Makes a call and gives its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.request_call(tool, arguments);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{tool} was answered with a protocol error: {answer}");
        answer["result"].clone()
    }

    pub fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id, "reason": "the test changed its mind" });
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }

    /// Closes the input and waits for the server's end.
    pub fn close(mut self) -> (ExitStatus, String) {
        drop(self.stdin.take());
        let status = self.child.wait().expect("the server ends");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("standard output held nothing but messages");
        }
        (status, self.last_words())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn last_words(&mut self) -> String {
        let _ = self.child.kill();
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// What the gateway decided, as a result says.
pub fn decision(result: &Value) -> &str {
    result["_meta"]["portcullis"]["decision"].as_str().unwrap_or_else(|| panic!("no decision in {result}"))
}

/// The id that a call which waits was told.
pub fn pending(result: &Value) -> String {
    assert_eq!((decision(result), &result["isError"]), ("ask", &json!(true)), "the call was to ask: {result}");
    result["_meta"]["portcullis"]["pending"].as_str().unwrap_or_else(|| panic!("no id in {result}")).to_owned()
}

/// Tries until there is something.
pub fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(50));
    }
}
