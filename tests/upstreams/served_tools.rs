//! Servers' tools through the daemon: REST, MCP, processes that are kept, started again and ended.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::served::{Served, json_headers, until};
use crate::with_server;

fn output(served: &Served, tool: &str, parameters: Value) -> String {
    let reply = served.execute(tool, parameters);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["output"].as_str().expect("text").to_owned()
}

/// The processes that have this world's script in their command line.
fn servers(marker: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_server = |id: &i32| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        command.contains("server.py") && command.contains(marker)
    };
    ids.filter(is_server).collect()
}

#[test]
fn a_servers_tools_are_reached_over_rest_and_mcp_and_its_process_is_kept_and_ended() {
    let world = with_server("");
    let marker = format!("marker-{}", std::process::id());
    let table =
        format!("[upstreams.fx]\ncommand = \"python3\"\nargs = [\"server.py\", \"{marker}\"]\ntimeout = \"5s\"\n");
    world.write("config/portcullis.toml", table);
    let mut served = Served::start(&world);

    assert_eq!(output(&served, "mcp__fx__echo", json!({ "text": "hi" })), "hi");
    assert_eq!(output(&served, "echo", json!({ "text": "by its own name" })), "by its own name");
    let raw = served.execute("mcp__fx__odd", json!({})).json();
    assert_eq!(raw["result"]["x-result"], json!({ "deep": true }), "unknown fields are kept: {raw}");
    assert_eq!(raw["result"]["content"][0]["x-part"], 1);
    let listed = served.get("/api/tools", &served.agent("local")).json();
    let echo = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "mcp__fx__echo").unwrap();
    assert_eq!((&echo["source"], &echo["standing"]), (&json!("fx"), &json!("pinned")));

    // Over MCP: in the list as it was approved, and its answer with our decision beside it.
    let ask = |method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut headers = json_headers(&served.agent("local")).to_vec();
        headers.push(("Accept", "application/json, text/event-stream".to_owned()));
        headers.push(("MCP-Protocol-Version", "2026-07-28".to_owned()));
        headers.push(("Mcp-Method", method.to_owned()));
        if !name.is_empty() {
            headers.push(("Mcp-Name", name));
        }
        let reply = served.ask("POST", "/mcp", &headers, body.to_string().as_bytes());
        let text = reply.body.clone();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).find(|data| data.contains("result"));
        serde_json::from_str::<Value>(data.unwrap_or(&text)).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let list = ask("tools/list", json!({}));
    let echo = list["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "mcp__fx__echo");
    assert_eq!(echo.expect("the tool is listed")["description"], "Says what it is told.", "{list}");
    let odd = ask("tools/call", json!({ "name": "mcp__fx__odd", "arguments": {} }));
    assert_eq!(odd["result"]["_meta"]["portcullis"]["decision"], "allow", "a server forges no decision: {odd}");
    assert_eq!(odd["result"]["_meta"]["own"], 1, "{odd}");

    // One process for all of that; killed, it is started again.
    assert_eq!(servers(&marker).len(), 1, "one process serves all calls");
    let first = servers(&marker)[0];
    kill(Pid::from_raw(first), Signal::SIGKILL).unwrap();
    until("the server to be gone", || !servers(&marker).contains(&first));
    until("the server to be started again", || {
        let reply = served.execute("mcp__fx__echo", json!({ "text": "again" })).json();
        std::thread::sleep(Duration::from_millis(50));
        reply["output"] == "again"
    });
    served.signal(Signal::SIGTERM);
    served.ended();
    until("its server to end with the daemon", || servers(&marker).is_empty());
}
