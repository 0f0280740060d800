//! What an agent might try with its token, and a stranger without one, to answer an approval or to be somebody else.

use std::io::Write;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::common::World;
use crate::hostile::raw;
use crate::records;
use crate::served::{Connection, Served, json_headers, until};

/// A daemon, and a call in it that waits.
struct Waiting {
    world: World,
    served: Served,
    id: String,
}

impl Waiting {
    fn new() -> Self {
        let world = World::new();
        world.write("config/portcullis.toml", "[[agents]]\nname = \"one\"\n[[agents]]\nname = \"two\"\n");
        let served = Served::start(&world);
        let call = json!({ "parameters": { "command": "touch made" } });
        let id = served.post("/api/tools/Bash/execute", &served.agent("one"), &call).pending();
        Waiting { world, served, id }
    }

    fn still_waits(&self, after: &str) {
        let status = self.served.get(&format!("/api/pending/{}", self.id), &self.served.operator());
        assert_eq!(status.json()["status"], "pending", "after {after}: {status:?}");
    }
}

#[test]
fn i7_no_spelling_of_a_path_or_method_answers_an_approval() {
    let waiting = Waiting::new();
    let (served, id) = (&waiting.served, &waiting.id);
    let agent = served.agent("one");
    let plain = format!("/api/approvals/{id}/grant");
    for target in [
        plain.clone(),
        format!("/api/tools/../approvals/{id}/grant"),
        format!("/api/tools/%2e%2e/approvals/{id}/grant"),
        format!("/api/./approvals/{id}/grant"),
        format!("//api/approvals/{id}/grant"),
        format!("/api//approvals/{id}/grant"),
        format!("/api/approvals/{id}/grant/"),
        format!("/api/approvals/{id}%2fgrant"),
        format!("/api/approvals/{id}/%67rant"),
        format!("/API/approvals/{id}/grant"),
        format!("/api/approvals/{id}/grant;a=b"),
        format!("/api/approvals/{id}/grant?token={}", served.operator()),
        format!("/api/approvals/{id}/grant#x"),
        format!("/api/tools/..%2f..%2fapprovals%2f{id}%2fgrant/execute"),
        "/api/tools/%2e%2e%2fapprovals/execute".to_owned(),
        format!("/mcp/../api/approvals/{id}/grant"),
        format!("/healthz/../api/approvals/{id}/grant"),
        format!("/api/pending/{id}/../../approvals/{id}/grant"),
        format!("http://localhost/api/approvals/{id}/grant"),
        format!("http://operator@localhost/api/approvals/{id}/grant"),
        format!("http://evil.example/api/approvals/{id}/grant"),
        format!("localhost/api/approvals/{id}/grant"),
        format!("/api/approvals/{id}\\grant"),
        format!("/api/approvals/{id}/grant%00"),
        format!("/api/approvals/{id}%0d%0aX: y/grant"),
    ] {
        for method in ["POST", "PUT", "GET", "HEAD", "PATCH", "post", "POSTX", "OPTIONS", "TRACE", "CONNECT"] {
            let request = format!(
                "{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {agent}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
            );
            let reply = raw(served, request.as_bytes());
            assert!(reply.is_none_or(|r| r.status >= 400), "{method} {target} was taken");
        }
    }
    waiting.still_waits("all spellings");
    let status = format!("/api/pending/{id}");
    for header in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"] {
        let value = if header.contains("URL") { plain.as_str() } else { "POST" };
        let headers = [("Authorization", &*format!("Bearer {agent}")), (header, value)];
        for (method, path) in [("GET", &status), ("GET", &plain), ("POST", &status)] {
            let reply = served.ask(method, path, &headers, b"");
            assert_ne!(reply.json()["approval"]["status"], "granted", "{method} {path} with {header}: {reply:?}");
        }
    }
    waiting.still_waits("headers that would change method or path");
    assert!(records(&waiting.world, "approval").iter().all(|r| !r.to_string().contains("granted")));
}

#[test]
fn a_request_has_one_length_one_host_and_one_meaning() {
    let waiting = Waiting::new();
    let served = &waiting.served;
    let agent = served.agent("one");
    let hidden = format!(
        "POST /api/approvals/{}/grant HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 0\r\n\r\n",
        waiting.id,
        served.operator()
    );
    let head = format!("POST /api/tools/Read/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {agent}\r\n");
    for (what, fields) in [
        ("a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        ("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
        ("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
        ("an unknown coding", "Transfer-Encoding: xchunked"),
        ("a coding in another place", "Transfer-Encoding: chunked, gzip"),
        ("a space before the colon", "Transfer-Encoding : chunked"),
        ("a folded field", "Transfer-Encoding:\r\n chunked"),
        ("a signed length", "Content-Length: +5"),
        ("a length twice", "Content-Length: 5\r\nContent-Length: 6"),
        ("a list of lengths", "Content-Length: 5, 6"),
        ("a hexadecimal length", "Content-Length: 0x5"),
        ("a huge length", "Content-Length: 99999999999999999999999"),
        ("a NUL", "X: a\0b"),
        ("a lone CR", "X: a\rContent-Length: 5"),
        ("two hosts", "Host: localhost"),
        ("another host", "Host: evil.example"),
    ] {
        let request = format!("{head}{fields}\r\n\r\n0\r\n\r\n{hidden}");
        let mut connection = Connection::open(&served.address);
        let _ = connection.stream.get_mut().write_all(request.as_bytes());
        let first = connection.reply();
        assert!(first.as_ref().is_none_or(|r| (400..500).contains(&r.status)), "{what}: {first:?}");
        let second = connection.reply();
        assert!(second.is_none(), "{what}: what followed was taken for a request: {second:?}");
        waiting.still_waits(what);
    }
    for (what, request, fine) in [
        ("HTTP/1.0", "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", true),
        ("HTTP/1.0 without a host", "GET /healthz HTTP/1.0\r\n\r\n", false),
        ("HTTP/0.9", "GET /healthz\r\n\r\n", false),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false),
        ("an upgrade", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", true),
        ("an absolute target", "GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", true),
        ("a foreign target", "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", false),
        ("a tunnel", "CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n", false),
        ("an asterisk", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", false),
        ("a trace", "TRACE /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", false),
    ] {
        let reply = raw(served, request.as_bytes());
        assert_eq!(reply.as_ref().is_some_and(|r| r.status == 200), fine, "{what}: {reply:?}");
    }
    waiting.still_waits("everything");
}

#[test]
fn i7_what_waits_for_one_agent_is_nothing_to_another_and_a_grant_is_used_once() {
    let waiting = Waiting::new();
    let (served, id) = (&waiting.served, &waiting.id);
    let (one, two) = (served.agent("one"), served.agent("two"));
    assert_eq!(served.get(&format!("/api/pending/{id}"), &two).status, 404);
    assert_eq!(served.post(&format!("/api/approvals/{id}/grant"), &served.operator(), &json!({})).status, 200);
    let call = json!({ "parameters": { "command": "touch made" } });
    // Another agent's, and another session's, identical call.
    assert_eq!(served.post("/api/tools/Bash/execute", &two, &call).status, 202);
    let elsewhere = json!({ "parameters": { "command": "touch made" }, "session": "other" });
    assert_eq!(served.post("/api/tools/Bash/execute", &one, &elsewhere).status, 202);
    // A session's name cannot be spelled so that it is another agent's.
    for session in ["../one/rest", "one/rest", "/", "x/../../one/rest", "a\nb", "", &"s".repeat(129)] {
        let forged = json!({ "parameters": { "command": "touch made" }, "session": session });
        let refused = served.post("/api/tools/Bash/execute", &two, &forged);
        assert!(refused.status == 400 && refused.body.contains("session"), "{session}: {refused:?}");
    }
    assert!(!waiting.world.workspace().join("made").exists());
    let statuses: Vec<u16> = thread::scope(|scope| {
        let (call, one) = (&call, &one);
        let racing: Vec<_> =
            (0..16).map(|_| scope.spawn(move || served.post("/api/tools/Bash/execute", one, call).status)).collect();
        racing.into_iter().map(|racer| racer.join().expect("an answer")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "one grant, sixteen calls: {statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 202)), "{statuses:?}");
    let again = served.post(&format!("/api/approvals/{id}/grant"), &served.operator(), &json!({}));
    assert_eq!(again.status, 409, "a grant was granted again: {again:?}");
}

#[test]
fn a_call_whose_caller_hung_up_while_it_waited_does_not_run_when_it_is_granted() {
    let waiting = Waiting::new();
    let (served, id) = (&waiting.served, &waiting.id);
    let body = json!({ "parameters": { "command": "touch made" } }).to_string();
    let mut connection = Connection::open(&served.address);
    let mut request = String::from("POST /api/tools/Bash/execute?wait=1m HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in json_headers(&served.agent("one")) {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let asked = records(&waiting.world, "decided").len();
    connection.stream.get_mut().write_all(request.as_bytes()).expect("sent");
    until("the call to ask", || records(&waiting.world, "decided").len() > asked);
    drop(connection);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(served.post(&format!("/api/approvals/{id}/grant"), &served.operator(), &json!({})).status, 200);
    thread::sleep(Duration::from_secs(1));
    assert!(!waiting.world.workspace().join("made").exists(), "it ran for nobody");
    let call = json!({ "parameters": { "command": "touch made" } });
    assert_eq!(
        served.post("/api/tools/Bash/execute", &served.agent("one"), &call).status,
        200,
        "the grant is still there"
    );
}

#[test]
fn pages_of_other_sites_get_no_leave_to_ask() {
    let waiting = Waiting::new();
    let served = &waiting.served;
    let port = served.address.rsplit(':').next().expect("a port").to_owned();
    for (origin, status) in
        [("http://evil.example".to_owned(), 403), ("null".to_owned(), 403), (format!("http://localhost:{port}"), 405)]
    {
        for path in ["/api/tools/Bash/execute", "/api/approvals", "/mcp"] {
            let headers = [
                ("Origin", origin.as_str()),
                ("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", "authorization, content-type"),
                ("Access-Control-Request-Private-Network", "true"),
            ];
            let reply = served.ask("OPTIONS", path, &headers, b"");
            // Without a credential it gets no further than that.
            assert!(reply.status == status || reply.status == 401, "{path} from {origin}: {reply:?}");
            let leave = reply.headers.iter().find(|(name, _)| name.starts_with("access-control-allow"));
            assert!(leave.is_none(), "{path} from {origin}: {reply:?}");
        }
    }
    for (host, fine) in [
        ("localhost", true),
        ("LocalHost:1", true),
        ("[::1]", true),
        ("[::1]:8460", true),
        ("127.0.0.1:0", true),
        ("localhost.", false),
        ("127.0.0.1.", false),
        ("127.1", false),
        ("2130706433", false),
        ("0.0.0.0", false),
        ("[::]", false),
        ("[::ffff:127.0.0.1]", false),
        ("operator@localhost", false),
        ("localhost:8460@evil.example", false),
        ("localhost:port", false),
        ("localhost/x", false),
        ("localhost, evil.example", false),
        ("", false),
    ] {
        let reply = served.ask("GET", "/healthz", &[("Host", host)], b"");
        assert_eq!(reply.status == 200, fine, "{host}: {reply:?}");
    }
}
