//! What the gate costs an MCP client: calls over stdio, against a bare rmcp server that echoes, in turns in the same run.
//!
//! `cargo bench --bench mcp` prints percentiles in microseconds. The overhead is the median's difference from the echo.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where it cannot go on")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

const ROUNDS: usize = 20;
const CALLS: usize = 100;
/// The argument that makes this program the echo server.
const ECHO: &str = "echo-server";

struct Echo;

impl ServerHandler for Echo {
    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = Value::from(params.arguments.unwrap_or_default()).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn main() {
    if std::env::args().any(|word| word == ECHO) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let running = Echo.serve(rmcp::transport::stdio_pipes()).await.expect("a client");
            running.waiting().await.expect("an end");
        });
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let workspace = home.path().join("work");
    std::fs::create_dir(&workspace).expect("a directory");
    std::fs::write(workspace.join("small.txt"), "line\n".repeat(20)).expect("a file");

    let mut echo = Command::new(std::env::current_exe().expect("this program"));
    echo.arg(ECHO);
    let mut echo = Server::start(echo);
    let mut gate = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    gate.args(["mcp", "serve", "--wait", "0"]).current_dir(&workspace).env("HOME", home.path());
    gate.env("PORTCULLIS_CONFIG", home.path().join("config")).env("PORTCULLIS_STATE", home.path().join("state"));
    let mut gate = Server::start(gate);

    let read = json!({ "path": "small.txt" });
    let listing = json!({ "path": "." });
    let refused = json!({ "command": "rm -rf /" });
    let invalid = json!({ "colour": "red" });
    let mut times: [(&str, Vec<f64>); 5] =
        ["echo", "Read", "ListDir", "Bash, denied", "Read, invalid"].map(|name| (name, Vec::new()));
    for round in 0..=ROUNDS {
        for (at, (_, times)) in times.iter_mut().enumerate() {
            let took = match at {
                0 => echo.calls("echo", &read),
                1 => gate.calls("Read", &read),
                2 => gate.calls("ListDir", &listing),
                3 => gate.calls("Bash", &refused),
                _ => gate.calls("Read", &invalid),
            };
            // The first round warms up.
            if round > 0 {
                times.extend(took);
            }
        }
    }
    println!("{:<14} {:>8} {:>8} {:>8} {:>10}", "µs a call", "p50", "p95", "p99", "overhead");
    let mut base = 0.0;
    for (name, mut times) in times {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        if name == "echo" {
            base = at(0.5);
        }
        println!("{name:<14} {:>8.0} {:>8.0} {:>8.0} {:>10.0}", at(0.5), at(0.95), at(0.99), at(0.5) - base);
    }
}

/// A server and the pipes to it.
struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
    line: String,
}

impl Server {
    fn start(mut command: Command) -> Server {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Server { child, stdin, stdout, next_id: 1, line: String::new() };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" }
        });
        server.ask("initialize", &hello);
        writeln!(server.stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).expect("a reader");
        server
    }

    /// Makes calls one after the other and gives how long each took, in microseconds.
    fn calls(&mut self, tool: &str, arguments: &Value) -> Vec<f64> {
        let params = json!({ "name": tool, "arguments": arguments });
        let timed = |_| {
            let began = Instant::now();
            self.ask("tools/call", &params);
            began.elapsed().as_secs_f64() * 1e6
        };
        (0..CALLS).map(timed).collect()
    }

    fn ask(&mut self, method: &str, params: &Value) {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.stdin.write_all(format!("{request}\n").as_bytes()).expect("a reader");
        self.line.clear();
        self.stdout.read_line(&mut self.line).expect("an answer");
        assert!(self.line.contains(&format!("\"id\":{id}")) && self.line.contains("\"result\""), "{}", self.line);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
