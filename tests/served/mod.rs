//! A daemon of its own in a throw-away installation, and the little HTTP that talks to it.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::World;

/// Waits for something that another process does; gives up after twenty seconds.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "waited twenty seconds for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `portcullis serve`, killed when the test ends.
pub struct Served {
    child: Child,
    /// Such as `127.0.0.1:41234`.
    pub address: String,
    log: PathBuf,
    keys: PathBuf,
}

impl Served {
    /// Starts it in the workspace, on a port that is free.
    pub fn start(world: &World) -> Self {
        Served::launch(world, world.portcullis(["serve", "--listen", "127.0.0.1:0"]))
    }

    pub fn launch(world: &World, mut command: Command) -> Self {
        let log = tempfile::Builder::new()
            .prefix("serve-")
            .tempfile_in(world.home())
            .expect("a log")
            .into_temp_path()
            .keep()
            .expect("kept");
        let file = File::create(&log).expect("a log file");
        let child = command.stdout(Stdio::null()).stderr(file).spawn().expect("the binary starts");
        let mut served = Served { child, address: String::new(), log, keys: world.state().join("keys") };
        until("the daemon to serve", || {
            if let Ok(Some(status)) = served.child.try_wait() {
                panic!("the daemon ended with {status}: {}", served.log());
            }
            let found = served.lines().into_iter().find_map(|line| Some(line["address"].as_str()?.to_owned()));
            served.address = found.unwrap_or_default().trim_start_matches("http://").to_owned();
            !served.address.is_empty()
        });
        served
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// The log's lines; one that is just being written is left out.
    pub fn lines(&self) -> Vec<Value> {
        self.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.pid()).expect("a pid")), signal).expect("a signal");
    }

    /// Waits for the end, at most twenty seconds.
    pub fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the daemon to end", || {
            ended = self.child.try_wait().expect("a child");
            ended.is_some()
        });
        ended.expect("it ended")
    }

    pub fn operator(&self) -> String {
        fs::read_to_string(self.keys.join("operator.token")).expect("the operator's token")
    }

    pub fn agent(&self, name: &str) -> String {
        fs::read_to_string(self.keys.join(format!("agent-{name}.token"))).expect("the agent's token")
    }

    pub fn get(&self, path: &str, token: &str) -> Reply {
        self.ask("GET", path, &[("Authorization", &format!("Bearer {token}"))], b"")
    }

    pub fn post(&self, path: &str, token: &str, body: &Value) -> Reply {
        self.ask("POST", path, &json_headers(token), body.to_string().as_bytes())
    }

    /// Makes a call as the built-in agent.
    pub fn execute(&self, tool: &str, parameters: Value) -> Reply {
        let body = serde_json::json!({ "parameters": parameters });
        self.post(&format!("/api/tools/{tool}/execute"), &self.agent("local"), &body)
    }

    /// Sends one request on a connection of its own.
    pub fn ask<V: AsRef<str>>(&self, method: &str, path: &str, headers: &[(&str, V)], body: &[u8]) -> Reply {
        Connection::open(&self.address).ask(method, path, headers, body)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The headers of a request with a JSON body.
pub fn json_headers(token: &str) -> [(&'static str, String); 2] {
    [("Authorization", format!("Bearer {token}")), ("Content-Type", "application/json".to_owned())]
}

/// A connection that is kept alive.
pub struct Connection {
    pub stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    pub fn open(address: &str) -> Self {
        Connection::try_open(address).expect("the daemon takes connections")
    }

    /// None where nobody listens.
    pub fn try_open(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Some(Connection { stream: BufReader::new(stream), host: address.to_owned() })
    }

    pub fn ask<V: AsRef<str>>(&mut self, method: &str, path: &str, headers: &[(&str, V)], body: &[u8]) -> Reply {
        self.try_ask(method, path, headers, body).expect("an answer")
    }

    /// The same for a daemon that may be killed meanwhile: None where there is no answer.
    pub fn try_ask<V: AsRef<str>>(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, V)],
        body: &[u8],
    ) -> Option<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let given = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        if !given("host") {
            head += &format!("Host: {}\r\n", self.host);
        }
        if !given("content-length") && (!body.is_empty() || method == "POST") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            head += &format!("{name}: {}\r\n", value.as_ref());
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        // The server may answer, and close, before it has read everything.
        let _ = self.stream.get_mut().write_all(&bytes);
        self.reply()
    }

    /// Reads an answer. None where the connection was closed instead.
    pub fn reply(&mut self) -> Option<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut reply = Reply { status, headers, body: String::new() };
        if reply.header("transfer-encoding") == Some("chunked") {
            reply.body = self.chunks()?;
            return Some(reply);
        }
        let length = reply.header("content-length").map_or(0, |text| text.parse().expect("a length"));
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        reply.body = String::from_utf8(body).expect("UTF-8");
        Some(reply)
    }

    fn chunks(&mut self) -> Option<String> {
        let mut body = Vec::new();
        loop {
            let mut size = String::new();
            self.stream.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or_else(|_| panic!("no chunk size: {size}"));
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).ok()?;
            if size == 0 {
                return Some(String::from_utf8(body).expect("UTF-8"));
            }
            body.extend(chunk.get(..size)?);
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("not JSON ({e}): {self:?}"))
    }

    /// The pending id of a 202.
    pub fn pending(&self) -> String {
        assert_eq!(self.status, 202, "{self:?}");
        self.json()["pending"].as_str().expect("an id").to_owned()
    }
}
