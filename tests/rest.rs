//! The HTTP interface, as an agent with a token and an operator with another one use it.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]

mod common;
mod served;

use std::thread;
use std::time::{Duration, Instant};

use common::World;
use serde_json::{Value, json};
use served::{Connection, Served, json_headers, until};

#[test]
fn a_call_is_allowed_asked_for_or_denied_and_every_answer_says_what_to_do_next() {
    let world = World::new();
    world.write("work/hello.txt", "good morning\n");
    let served = Served::start(&world);
    let (agent, operator) = (served.agent("local"), served.operator());

    let read = served.execute("Read", json!({ "path": "hello.txt" }));
    assert_eq!(read.status, 200, "{read:?}");
    assert!(read.json()["output"].as_str().expect("text").contains("good morning"), "{read:?}");
    assert_eq!(read.json()["is_error"], false);

    let asked = served.execute("Bash", json!({ "command": "ls" }));
    let id = asked.pending();
    assert_eq!(asked.header("location"), Some(&*format!("/api/pending/{id}")), "{asked:?}");
    assert!(asked.header("retry-after").is_some(), "{asked:?}");
    let status = served.get(asked.header("location").expect("checked"), &agent);
    assert_eq!((status.status, &status.json()["status"]), (200, &json!("pending")), "{status:?}");
    let listed = served.get("/api/approvals", &operator).json();
    assert_eq!(listed["approvals"][0]["call"]["arguments"]["command"], "ls", "{listed}");
    let granted = served.post(&format!("/api/approvals/{id}/grant"), &operator, &json!({}));
    assert_eq!((granted.status, &granted.json()["approval"]["status"]), (200, &json!("granted")), "{granted:?}");
    let ran = served.execute("Bash", json!({ "command": "ls" }));
    assert_eq!(ran.status, 200, "{ran:?}");
    assert!(ran.json()["output"].as_str().expect("text").contains("hello.txt"), "{ran:?}");
    assert_eq!(served.execute("Bash", json!({ "command": "ls" })).status, 202, "a grant is good for one call");

    let denied = served.execute("Bash", json!({ "command": "rm -rf /" }));
    assert_eq!(denied.status, 403, "{denied:?}");
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    let problem = denied.json();
    assert_eq!(problem["decision"], "deny");
    assert!(problem["rule"].as_str().is_some_and(|rule| rule.contains('.')), "no rule: {problem}");
    assert!(problem["next"].as_str().is_some_and(|next| !next.is_empty()), "no advice: {problem}");
    assert_eq!(problem["type"], "urn:portcullis:problem:denied");
}

#[test]
fn i1_aliases_are_the_tools_they_stand_for() {
    let world = World::new();
    world.write("work/a.txt", "needle\n");
    world.write(
        "config/policies/mine.cedar",
        "@id(\"mine.no-bash\") @reason(\"closed\") forbid (principal, action == Action::\"Bash\", resource);",
    );
    let served = Served::start(&world);
    for (tool, parameters, status, told) in [
        ("terminal", json!({ "command": "ls" }), 403, "mine.no-bash"),
        ("grep_tool", json!({ "pattern": "needle" }), 200, "a.txt"),
        ("glob_tool", json!({ "pattern": "*.txt" }), 200, "a.txt"),
        ("file_system", json!({ "operation": "read", "path": "a.txt" }), 200, "needle"),
        ("file_system", json!({ "operation": "list", "path": "." }), 200, "a.txt"),
        ("file_system", json!({ "operation": "burn", "path": "." }), 422, "read, write, edit, list"),
        ("file_system", json!({ "operation": "read", "path": "../outside" }), 403, "outside"),
        (
            "file_system",
            json!({ "operation": "edit", "path": "a.txt", "old_string": "needle", "new_string": "pin" }),
            202,
            "",
        ),
        ("web_search", json!({}), 404, "no tool"),
    ] {
        let reply = served.execute(tool, parameters.clone());
        assert_eq!(reply.status, status, "{tool} {parameters}: {reply:?}");
        assert!(reply.body.contains(told), "{tool} {parameters} should mention `{told}`: {reply:?}");
    }
    // What is on record is the real tool.
    let records = std::fs::read_to_string(world.log()).expect("a log");
    assert!(records.contains("\"tool\":\"Grep\"") && !records.contains("\"tool\":\"grep_tool\""), "{records}");
}

#[test]
fn i7_an_agents_token_answers_no_approval_and_an_operators_makes_no_call() {
    let world = World::new();
    let served = Served::start(&world);
    let (agent, operator) = (served.agent("local"), served.operator());
    let id = served.execute("Bash", json!({ "command": "ls" })).pending();
    for (method, path) in [
        ("GET", "/api/approvals".to_owned()),
        ("GET", format!("/api/approvals/{id}")),
        ("POST", format!("/api/approvals/{id}/grant")),
        ("POST", format!("/api/approvals/{id}/refuse")),
    ] {
        let refused = served.ask(method, &path, &json_headers(&agent), b"{}");
        assert_eq!(refused.status, 403, "{method} {path}: {refused:?}");
        assert!(refused.body.contains("cannot approve itself"), "{refused:?}");
    }
    let status = served.get(&format!("/api/pending/{id}"), &agent);
    assert_eq!(status.json()["status"], "pending", "the agent's attempts changed something: {status:?}");
    let as_operator = served.post("/api/tools/Read/execute", &operator, &json!({ "parameters": { "path": "x" } }));
    assert_eq!(as_operator.status, 403, "{as_operator:?}");

    for headers in [
        vec![],
        vec![("Authorization", "Bearer ".to_owned())],
        vec![("Authorization", format!("Basic {agent}"))],
        vec![("Authorization", format!("Bearer {agent}x"))],
        vec![("Authorization", "Bearer pcl_op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned())],
    ] {
        for path in ["/api/tools", "/api/approvals", "/api/pending/0000-0000"] {
            let refused = served.ask("GET", path, &headers, b"");
            assert_eq!(refused.status, 401, "{path} {headers:?}: {refused:?}");
            assert!(refused.header("www-authenticate").is_some(), "{refused:?}");
        }
    }
    let twice = [("Authorization", format!("Bearer {agent}")), ("Authorization", format!("Bearer {operator}"))];
    assert_eq!(served.ask("GET", "/api/tools", &twice, b"").status, 400, "two credentials have no one meaning");
    let errand = served.ask("POST", "/errand/call", &json_headers(&operator), b"{}");
    assert_eq!(errand.status, 404, "the thin clients' way is open to the network: {errand:?}");
}

#[test]
fn a_second_person_approves_what_needs_one() {
    let world = World::new();
    let token = "a-reviewers-token-of-the-test";
    let hash = portcullis::call::Digest::of(token);
    world.write("config/portcullis.toml", format!("[[reviewers]]\nname = \"sec\"\ntoken_sha256 = \"{hash}\"\n"));
    world.write(
        "config/policies/mine.cedar",
        "@id(\"mine.two\") @reason(\"needs two\") forbid (principal, action == Action::\"Bash\", resource)\n\
         unless { context.approval.level >= 2 };",
    );
    let served = Served::start(&world);
    let call = json!({ "command": "echo both" });
    let asked = served.execute("Bash", call.clone());
    assert_eq!(asked.json()["level"], 2, "{asked:?}");
    let path = format!("/api/approvals/{}/grant", asked.pending());
    let alone = served.post(&path, &served.operator(), &json!({}));
    assert!(alone.status == 403 && alone.body.contains("reviewer"), "an operator answered for a reviewer: {alone:?}");
    assert_eq!(served.post(&path, token, &json!({})).status, 200);
    assert_eq!(served.execute("Bash", call).status, 200);
}

#[test]
fn foreign_hosts_and_origins_are_turned_away_before_anything_else() {
    let world = World::new();
    let served = Served::start(&world);
    let token = format!("Bearer {}", served.operator());
    let port = served.address.rsplit(':').next().expect("a port");
    let own = format!("http://127.0.0.1:{port}");
    for (header, value, status) in [
        ("Host", "evil.example", 421),
        ("Host", "127.0.0.1.evil.example", 421),
        ("Host", "localhost:1", 200),
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost:1", 403),
        ("Origin", &own, 200),
    ] {
        for path in ["/api/approvals", "/healthz"] {
            let reply = served.ask("GET", path, &[("Authorization", token.as_str()), (header, value)], b"");
            assert_eq!(reply.status, status, "{path} with {header}: {value}: {reply:?}");
            assert!(reply.header("access-control-allow-origin").is_none(), "{reply:?}");
        }
    }
}

#[test]
fn a_call_that_waits_is_answered_as_soon_as_it_is_granted() {
    let world = World::new();
    let served = Served::start(&world);
    let operator = served.operator();
    for by_http in [true, false] {
        let command = format!("echo {by_http}");
        let (waited, reply) = thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let body = json!({ "parameters": { "command": command } });
                let reply = served.post("/api/tools/Bash/execute?wait=30s", &served.agent("local"), &body);
                (Instant::now(), reply)
            });
            let mut id = String::new();
            until("the call to ask", || {
                let listed = served.get("/api/approvals", &operator).json();
                id = listed["approvals"][0]["approval"]["id"].as_str().unwrap_or_default().to_owned();
                !id.is_empty()
            });
            if by_http {
                assert_eq!(served.post(&format!("/api/approvals/{id}/grant"), &operator, &json!({})).status, 200);
            } else {
                // By another process, which only writes to the database.
                assert_eq!(world.run(["approvals", "grant", &id]).code, 0);
            }
            let granted = Instant::now();
            let (ended, reply) = caller.join().expect("an answer");
            (ended.saturating_duration_since(granted), reply)
        });
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["output"].as_str().map(str::trim), Some(&*by_http.to_string()), "{reply:?}");
        assert!(waited < Duration::from_secs(5), "the answer came {waited:?} after the grant");
    }
}

#[test]
fn a_call_that_waits_in_vain_is_told_why() {
    let world = World::new();
    let served = Served::start(&world);
    let (agent, operator) = (served.agent("local"), served.operator());
    let body = json!({ "parameters": { "command": "touch made" } });
    let still = served.post("/api/tools/Bash/execute?wait=300ms", &agent, &body);
    let id = still.pending();
    let refused = thread::scope(|scope| {
        let caller = scope.spawn(|| served.post("/api/tools/Bash/execute?wait=1m", &agent, &body));
        let asked =
            || std::fs::read_to_string(world.log()).map_or(0, |log| log.matches("\"kind\":\"decided\"").count());
        until("the call to ask", || asked() >= 2);
        let answer = served.post(&format!("/api/approvals/{id}/refuse"), &operator, &json!({ "reason": "not today" }));
        assert_eq!(answer.status, 200, "{answer:?}");
        caller.join().expect("an answer")
    });
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.json()["type"], "urn:portcullis:problem:not-approved");
    assert!(refused.body.contains("not today"), "{refused:?}");
    let status = served.get(&format!("/api/pending/{id}"), &agent).json();
    assert_eq!((&status["status"], &status["reason"]), (&json!("refused"), &json!("not today")), "{status}");
    let again = served.post(&format!("/api/approvals/{id}/grant"), &operator, &json!({}));
    assert_eq!(again.status, 409, "a refusal is final: {again:?}");
    assert!(!world.workspace().join("made").exists(), "a refused call ran");
}

#[test]
fn an_agent_sees_its_own_tools_and_its_own_waiting_calls() {
    let world = World::new();
    let workspace = world.workspace();
    world.write(
        "config/portcullis.toml",
        format!(
            "[[agents]]\nname = \"one\"\nworkspace = {workspace:?}\n\
             [[agents]]\nname = \"two\"\nworkspace = {workspace:?}\nallowed_tools = [\"Read\"]\n\
             [[agents]]\nname = \"planner\"\nworkspace = {workspace:?}\nmode = \"plan\"\n\
             [[agents]]\nname = \"alone\"\nworkspace = {workspace:?}\nunattended = true\n"
        ),
    );
    let served = Served::start(&world);
    let (one, two) = (served.agent("one"), served.agent("two"));
    let names = |token: &str| -> Vec<String> {
        let tools = served.get("/api/tools", token).json();
        tools["tools"].as_array().expect("tools").iter().map(|t| t["name"].as_str().expect("a name").into()).collect()
    };
    assert_eq!(names(&two), ["Read"]);
    assert_eq!(names(&one), names(&served.operator()), "nothing is hidden from an agent without allowed_tools");
    for agent in ["planner", "alone"] {
        assert_eq!(names(&served.agent(agent)), ["Glob", "Grep", "ListDir", "Read"], "{agent} can be allowed no other");
    }
    let call = json!({ "parameters": { "command": "ls" } });
    let hidden = served.post("/api/tools/terminal/execute", &two, &call);
    assert_eq!(hidden.status, 404, "{hidden:?}");
    let id = served.post("/api/tools/Bash/execute", &one, &call).pending();
    assert_eq!(served.get(&format!("/api/pending/{id}"), &one).status, 200);
    assert_eq!(served.get(&format!("/api/pending/{id}"), &two).status, 404, "one agent sees another's calls");
    assert_eq!(served.get(&format!("/api/pending/{id}"), &served.operator()).status, 200);
}

#[test]
fn mistakes_are_named() {
    let world = World::new();
    let served = Served::start(&world);
    let agent = served.agent("local");
    let read = "/api/tools/Read/execute";
    let cases: &[(&str, &str, &str, u16, &str)] = &[
        ("POST", "/api/tools/Raed/execute", "{}", 404, "Raed"),
        ("POST", read, "{}", 422, "`path` is missing"),
        ("POST", read, r#"{"parameters": {"path": "x", "colour": 1}}"#, 422, "colour"),
        ("POST", read, r#"{"parameters": {"path": "missing.txt"}}"#, 200, "missing.txt"),
        ("POST", read, r#"{"parameters": {"path": "a"}, "parameters": {"path": "b"}}"#, 400, "comes twice"),
        ("POST", read, r#"{"parameters": {"path": "a", "path": "b"}}"#, 400, "`path` comes twice"),
        ("POST", read, r#"{"parameter": {}}"#, 400, "parameter"),
        ("POST", read, "[]", 400, "object"),
        ("POST", read, "{", 400, "EOF"),
        ("POST", read, r#"{"session": ""}"#, 400, "session"),
        ("POST", "/api/tools/Read/execute?wait=soon", "{}", 400, "wait"),
        ("POST", "/api/tools/Read/execute?wait=1h", "{}", 400, "5 minutes"),
        ("POST", "/api/tools/Read/execute?wiat=1s", "{}", 400, "wiat"),
        ("GET", "/api/pending/xyz", "", 404, "xyz"),
        ("GET", "/api/pending/0000-0000", "", 404, "0000-0000"),
        ("GET", "/api/pending/%ff%fe", "", 400, "UTF-8"),
        ("GET", "/api/nothing", "", 404, "openapi"),
        ("DELETE", "/api/tools", "", 405, "openapi"),
    ];
    for (method, path, body, status, told) in cases {
        let reply = served.ask(method, path, &json_headers(&agent), body.as_bytes());
        assert_eq!(reply.status, *status, "{method} {path} {body}: {reply:?}");
        assert!(reply.body.contains(told), "{method} {path} {body} should mention `{told}`: {reply:?}");
        assert!(*status == 200 || reply.header("content-type") == Some("application/problem+json"), "{reply:?}");
    }
    let failed = served.execute("Read", json!({ "path": "missing.txt" }));
    assert_eq!(failed.json()["is_error"], true, "a tool's own failure: {failed:?}");
    let plain = [("Authorization", format!("Bearer {agent}")), ("Content-Type", "text/plain".to_owned())];
    assert_eq!(served.ask("POST", read, &plain, b"{}").status, 415);
}

#[test]
fn the_openapi_document_tells_what_the_answers_are() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let (agent, operator) = (served.agent("local"), served.operator());
    let document = served.ask::<&str>("GET", "/api/openapi.json", &[], b"").json();
    let id = served.execute("Bash", json!({ "command": "ls" })).pending();
    let other = served.execute("Bash", json!({ "command": "pwd" })).pending();
    let one = json!({ "parameters": { "path": "a.txt" }, "session": "s", "call_id": "c1" });
    let asks = json!({ "parameters": { "command": "ls" } });
    let deny = json!({ "parameters": { "command": "rm -rf /" } });
    let nothing = json!({});
    let requests: Vec<(&str, &str, String, &str, &Value)> = vec![
        ("get", "/healthz", "/healthz".into(), "", &nothing),
        ("get", "/api/openapi.json", "/api/openapi.json".into(), "", &nothing),
        ("get", "/api/tools", "/api/tools".into(), &agent, &nothing),
        ("get", "/api/tools", "/api/tools".into(), "wrong", &nothing),
        ("post", "/api/tools/{name}/execute", "/api/tools/Read/execute".into(), &agent, &one),
        ("post", "/api/tools/{name}/execute", "/api/tools/Bash/execute".into(), &agent, &asks),
        ("post", "/api/tools/{name}/execute", "/api/tools/Bash/execute".into(), &agent, &deny),
        ("post", "/api/tools/{name}/execute", "/api/tools/Nope/execute".into(), &agent, &nothing),
        ("post", "/api/tools/{name}/execute", "/api/tools/Read/execute".into(), &agent, &nothing),
        ("get", "/api/pending/{id}", format!("/api/pending/{id}"), &agent, &nothing),
        ("get", "/api/approvals", "/api/approvals".into(), &operator, &nothing),
        ("get", "/api/approvals", "/api/approvals".into(), &agent, &nothing),
        ("get", "/api/approvals/{id}", format!("/api/approvals/{id}"), &operator, &nothing),
        ("post", "/api/approvals/{id}/grant", format!("/api/approvals/{id}/grant"), &operator, &nothing),
        ("post", "/api/approvals/{id}/grant", format!("/api/approvals/{id}/grant"), &operator, &nothing),
        ("post", "/api/approvals/{id}/refuse", format!("/api/approvals/{other}/refuse"), &operator, &nothing),
        ("get", "/api/pending/{id}", format!("/api/pending/{other}"), &agent, &nothing),
        ("post", "/api/approvals/{id}/revoke", format!("/api/approvals/{id}/revoke"), &operator, &nothing),
        ("post", "/api/approvals/{id}/revoke", format!("/api/approvals/{id}/revoke"), &operator, &nothing),
        ("get", "/metrics", "/metrics".into(), &agent, &nothing),
        ("get", "/metrics", "/metrics".into(), &operator, &nothing),
    ];
    let mut asked = std::collections::BTreeSet::new();
    for (method, route, path, token, body) in requests {
        asked.insert((route.to_owned(), method.to_owned()));
        let body = if method == "post" { body.to_string() } else { String::new() };
        let reply = served.ask(&method.to_uppercase(), &path, &json_headers(token), body.as_bytes());
        let described = &document["paths"][route][method]["responses"][reply.status.to_string()]["content"];
        let kind = reply.header("content-type").expect("a type").split(';').next().expect("a word").to_owned();
        let mut schema = described[&kind]["schema"].clone();
        assert!(schema.is_object(), "{method} {path}: {} {kind} is not described", reply.status);
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let told = if kind.contains("json") { reply.json() } else { reply.body.as_str().into() };
        let wrong: Vec<String> =
            validator.iter_errors(&told).map(|e| format!("{} at {}", e, e.instance_path())).collect();
        assert!(wrong.is_empty(), "{method} {path}: {wrong:?} in {}", reply.body);
    }
    let paths = document["paths"].as_object().expect("paths");
    let described = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().expect("methods").keys().map(move |method| (path.clone(), method.clone()))
    });
    assert_eq!(
        described.collect::<std::collections::BTreeSet<_>>(),
        asked,
        "an operation was described, and not tried"
    );
}

#[test]
fn no_secret_is_logged_and_every_request_is() {
    let world = World::new();
    let mut command = world.portcullis(["serve", "--listen", "127.0.0.1:0"]);
    command.env("PORTCULLIS_LOG", "trace");
    let served = Served::launch(&world, command);
    let (agent, operator) = (served.agent("local"), served.operator());
    let id = served.execute("Bash", json!({ "command": "echo s3cr3t-word" })).pending();
    served.post(&format!("/api/approvals/{id}/grant?token={operator}"), &operator, &json!({}));
    served.get("/api/approvals", &format!("{operator}x"));
    assert_eq!(world.run(["run", "Read", "path=s3cr3t-word", "--no-prompt"]).code, 1);
    let log = served.log();
    for secret in [agent.as_str(), operator.as_str(), "s3cr3t-word"] {
        assert!(!log.contains(secret), "the log holds `{secret}`");
    }
    let by_agent = served.lines().iter().any(|line| line["by"] == "agent `local`");
    assert!(by_agent, "the log does not say who asked: {log}");
    let routes: Vec<String> =
        served.lines().iter().filter_map(|line| Some(line["route"].as_str()?.to_owned())).collect();
    for route in ["/api/tools/{name}/execute", "/api/approvals/{id}/grant", "/api/approvals", "/errand/call"] {
        assert!(routes.iter().any(|logged| logged == route), "{route} is not among {routes:?}");
    }
}

#[test]
fn one_connection_carries_many_requests() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let mut connection = Connection::open(&served.address);
    let headers = json_headers(&served.agent("local"));
    for n in 0..20 {
        let body = json!({ "parameters": { "path": "a.txt" }, "call_id": n.to_string() }).to_string();
        let reply = connection.ask("POST", "/api/tools/Read/execute", &headers, body.as_bytes());
        assert_eq!(reply.status, 200, "request {n}: {reply:?}");
    }
}

#[test]
fn numbers_for_a_monitoring_system_are_for_people() {
    let world = World::new();
    world.write("work/a.txt", "x\n");
    let served = Served::start(&world);
    served.execute("Read", json!({ "path": "a.txt" }));
    served.execute("Bash", json!({ "command": "ls" }));
    served.execute("Bash", json!({ "command": "rm -rf /" }));
    assert_eq!(served.get("/metrics", &served.agent("local")).status, 403);
    let numbers = served.get("/metrics", &served.operator());
    assert_eq!(numbers.status, 200, "{numbers:?}");
    for line in [
        "portcullis_calls_total{answer=\"allow\",tool=\"Read\"} 1",
        "portcullis_calls_total{answer=\"ask(1)\",tool=\"Bash\"} 1",
        "portcullis_calls_total{answer=\"deny\",tool=\"Bash\"} 1",
        "portcullis_decision_seconds_count 3",
        "portcullis_approvals_pending 1",
        "portcullis_audit_ready 1",
    ] {
        assert!(numbers.body.contains(line), "`{line}` is missing: {numbers:?}");
    }
}

#[test]
fn a_grant_for_the_session_is_given_shown_and_taken_back() {
    let world = World::new();
    let served = Served::start(&world);
    let operator = served.operator();
    let id = served.execute("Bash", json!({ "command": "echo a" })).pending();
    let shown = served.get(&format!("/api/approvals/{id}"), &operator).json();
    assert_eq!(shown["scopes"][2]["scope"]["words"], json!(["echo"]), "{shown}");
    let odd = served.post(&format!("/api/approvals/{id}/grant"), &operator, &json!({ "scope": "everything" }));
    assert_eq!(odd.status, 400, "{odd:?}");
    let granted = served.post(&format!("/api/approvals/{id}/grant"), &operator, &json!({ "scope": "prefix" }));
    assert_eq!(granted.status, 200, "{granted:?}");
    for word in ["a", "b"] {
        assert_eq!(served.execute("Bash", json!({ "command": format!("echo {word}") })).status, 200);
    }
    let listed = served.get("/api/approvals", &operator).json();
    assert_eq!(listed["grants"][0]["uses"], 2, "{listed}");
    let by_agent = served.post(&format!("/api/approvals/{id}/revoke"), &served.agent("local"), &json!({}));
    assert_eq!(by_agent.status, 403, "{by_agent:?}");
    let revoked = served.post(&format!("/api/approvals/{id}/revoke"), &operator, &json!({}));
    assert_eq!(revoked.status, 200, "{revoked:?}");
    assert_eq!(served.execute("Bash", json!({ "command": "echo a" })).status, 202);
}
