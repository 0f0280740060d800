//! Servers over HTTP.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::World;
use crate::{OPEN, call};

/// The script, killed when the test ends.
struct Remote {
    child: Child,
    port: u16,
    heads: std::path::PathBuf,
}

impl Remote {
    fn start(world: &World) -> Self {
        let script = world.write("http_server.py", include_str!("http_server.py"));
        let heads = world.home().join("heads");
        let log = fs::File::create(&heads).unwrap();
        let mut child =
            Command::new("python3").arg(script).stdout(Stdio::piped()).stderr(log).spawn().expect("python3 starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Remote { child, port: line.trim().parse().expect("a port"), heads }
    }

    fn heads(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.heads).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_over_http_gets_its_own_credentials_and_every_fault_is_told() {
    let world = World::new();
    let remote = Remote::start(&world);
    let token = world.write("upstream-token", "Bearer upstream-secret\n");
    let table = format!(
        "[upstreams.far]\nurl = \"http://127.0.0.1:{}/mcp\"\nheaders = {{ Authorization = {{ file = {:?} }} }}\n",
        remote.port, token
    );
    world.write("config/portcullis.toml", &table);
    world.write("config/policies/mine.cedar", OPEN);
    let pinned = world.run(["mcp", "pin", "far", "--yes"]);
    assert_eq!(pinned.code, 0, "{pinned:?}");
    for tool in ["echo", "stream"] {
        let ran = call(&world, &format!("mcp__far__{tool}"), json!({ "text": "over there" }));
        assert_eq!(ran.stdout, "over there\n", "{tool}: {ran:?}");
    }
    for (tool, said) in [
        ("broken", "ended before the answer"),
        ("away", "redirects are not followed"),
        ("large", "more than 16 MiB"),
        ("html", "without a message"),
    ] {
        let ran = call(&world, &format!("mcp__far__{tool}"), json!({}));
        assert!(ran.code != 0 && ran.stderr.contains(said), "{tool}: {ran:?}");
    }
    let heads = remote.heads();
    let calls: Vec<&Value> = heads.iter().filter(|head| head["method"] == "tools/call").collect();
    assert!(calls.iter().all(|head| head["headers"]["mcp-session-id"] == "a-session"), "{calls:?}");
    assert!(calls.iter().all(|head| head["headers"]["mcp-protocol-version"] == "2025-06-18"), "{calls:?}");
    let log = fs::read_to_string(world.log()).unwrap();
    assert!(!log.contains("upstream-secret"), "the credential is in the log");

    fs::write(&token, "Bearer wrong\n").unwrap();
    let refused = call(&world, "mcp__far__echo", json!({ "text": "x" }));
    assert!(refused.stderr.contains("status 401") && refused.stderr.contains("`headers`"), "{refused:?}");
    assert!(!refused.stderr.contains("wrong"), "the credential is in the error: {refused:?}");
    drop(remote);
    let dead = call(&world, "mcp__far__echo", json!({ "text": "x" }));
    assert!(dead.code != 0 && dead.stderr.contains("cannot be reached"), "{dead:?}");
}
