//! Clients that take what they can: connections, headers, bodies, time, guesses. Each is refused cheaply, and nobody else
//! notices.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::World;
use crate::load::memory;
use crate::served::{Connection, Reply, Served, until};

/// A good request, which must work whatever happened before.
fn still_serves(served: &Served, after: &str) {
    let began = Instant::now();
    let reply = served.execute("Read", json!({ "path": "a.txt" }));
    assert_eq!(reply.status, 200, "after {after}: {reply:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "after {after} a request took {:?}", began.elapsed());
}

pub fn raw(served: &Served, bytes: &[u8]) -> Option<Reply> {
    let mut connection = Connection::open(&served.address);
    // The server may close before it has read all of it.
    let _ = connection.stream.get_mut().write_all(bytes);
    connection.reply()
}

#[test]
fn abuse_is_bounded_and_harms_nobody_else() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let agent = served.agent("local");
    let post = format!(
        "POST /api/tools/Read/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {agent}\r\n\
         Content-Type: application/json\r\n"
    );

    let many: String = (0..10_000).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let reply = raw(&served, format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes());
    assert!(reply.is_none_or(|r| r.status == 431), "10,000 headers were taken");
    still_serves(&served, "10,000 headers");

    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(1 << 20));
    let reply = raw(&served, long.as_bytes());
    assert!(reply.is_none_or(|r| r.status == 414 || r.status == 431), "a path of 1 MiB was taken");
    still_serves(&served, "a long path");

    let reply = raw(&served, format!("{post}Content-Length: {}\r\n\r\n", 1u64 << 30).as_bytes()).expect("an answer");
    assert_eq!(reply.status, 413, "{reply:?}");
    let chunked = format!(
        "{post}Transfer-Encoding: chunked\r\n\r\n{}",
        format!("100000\r\n{}\r\n", "a".repeat(1 << 20)).repeat(4)
    );
    let reply = raw(&served, chunked.as_bytes());
    assert!(reply.is_none_or(|r| r.status == 413), "4 MiB in chunks were taken");
    still_serves(&served, "large bodies");

    let deep = format!("{{\"parameters\": {}", "[".repeat(100_000));
    for (what, body) in [
        ("invalid UTF-8", &b"{\"parameters\": {\"path\": \"\xff\xfe\"}}"[..]),
        ("duplicate keys", b"{\"parameters\": {\"path\": \"a.txt\", \"path\": \"../x\"}}"),
        ("nesting", deep.as_bytes()),
        ("a NUL", b"\0"),
    ] {
        let mut request = format!("{post}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        request.extend_from_slice(body);
        let reply = raw(&served, &request).expect("an answer");
        assert_eq!(reply.status, 400, "{what}: {reply:?}");
        still_serves(&served, what);
    }

    for (what, request) in [
        ("no Host", "GET /healthz HTTP/1.1\r\n\r\n"),
        ("two Hosts", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"),
        (
            "two lengths",
            "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        ),
        (
            "length and chunks",
            "POST /api/tools HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
        ),
        ("no HTTP", "hello there, is this a server?\r\n\r\n"),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n"),
    ] {
        let reply = raw(&served, request.as_bytes());
        assert!(reply.is_none_or(|r| r.status == 400), "{what} was taken");
        still_serves(&served, what);
    }
}

#[test]
fn slow_and_silent_clients_do_not_keep_others_out() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let began = Instant::now();
    let mut slow: Vec<TcpStream> = (0..200)
        .map(|n| {
            let mut stream = TcpStream::connect(&served.address).expect("a connection");
            // A third says nothing, a third begins, a third has sent all but the body.
            let said = match n % 3 {
                0 => String::new(),
                1 => "GET /healthz HTTP/1.1\r\nHost: local".to_owned(),
                _ => format!(
                    "POST /api/tools/Read/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
                     Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
                    served.agent("local")
                ),
            };
            stream.write_all(said.as_bytes()).expect("sent");
            if n % 2 == 0 {
                // Half-open: this end says that it will say no more.
                stream.shutdown(Shutdown::Write).expect("shut");
            }
            stream
        })
        .collect();
    for _ in 0..5 {
        still_serves(&served, "200 slow clients");
    }
    // A byte a second does not keep a connection open.
    let dripping = &mut slow[1];
    dripping.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    let mut closed = false;
    while !closed && began.elapsed() < Duration::from_secs(40) {
        let wrote = dripping.write_all(b"h");
        let mut answer = [0; 512];
        closed = wrote.is_err() || dripping.read(&mut answer).is_ok();
    }
    assert!(closed, "a request that never ends was waited for");
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a timeout");
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(
            !ended.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock),
            "a silent client is still connected"
        );
    }
    still_serves(&served, "their end");
}

#[test]
fn wrong_tokens_by_the_thousand_are_cheap_and_lock_nobody_out() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let began = Instant::now();
    thread::scope(|scope| {
        for guesser in 0..4 {
            let served = &served;
            scope.spawn(move || {
                for n in 0..500 {
                    let token = format!("pcl_op_{guesser:0>21}{n:0>22}");
                    let reply = served.get("/api/approvals", &token);
                    assert_eq!(reply.status, 401, "{reply:?}");
                }
            });
        }
        for _ in 0..5 {
            still_serves(&served, "the guessing began");
        }
    });
    eprintln!("2000 wrong tokens took {:?}", began.elapsed());
    let lines = served.log().lines().filter(|line| line.contains("unknown credentials")).count();
    assert!((1..=10).contains(&lines), "{lines} lines about wrong tokens");
    still_serves(&served, "2000 wrong tokens");
}

/// The resident memory may grow by this many kB in a test: buffers of connections that are there at the same time.
const ROOM: u64 = 48 << 10;

/// Sends a head and then `piece` over and over, up to a gigabyte or until the daemon has enough. How much was sent, and
/// the answer.
fn pour(served: &Served, head: &str, piece: &[u8]) -> (usize, Option<Reply>) {
    let mut connection = Connection::open(&served.address);
    let stream = connection.stream.get_mut();
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut sent = 0;
    if stream.write_all(head.as_bytes()).is_ok() {
        while sent < 1 << 30 && stream.write_all(piece).is_ok() {
            sent += piece.len();
        }
    }
    (sent, connection.reply())
}

#[test]
fn a_gigabyte_is_not_read_whoever_sends_it_and_however() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    still_serves(&served, "its start");
    let before = memory(served.pid());
    let chunk = format!("100000\r\n{}\r\n", "a".repeat(1 << 20));
    let plain = "a".repeat(1 << 20);
    let agent = format!("Authorization: Bearer {}\r\n", served.agent("local"));
    for (path, who, refused) in [
        ("/api/tools/Read/execute", agent.as_str(), 413),
        ("/mcp", agent.as_str(), 413),
        ("/api/tools/Read/execute", "", 401),
        ("/mcp", "", 401),
        ("/api/approvals/x/refuse", agent.as_str(), 403),
        ("/healthz", "", 405),
        ("/nowhere", "", 404),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{who}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        for (how, rest, piece) in [
            ("declared", format!("Content-Length: {}\r\n\r\n", 1u64 << 30), &plain),
            ("chunked", "Transfer-Encoding: chunked\r\n\r\n".to_owned(), &chunk),
        ] {
            let (sent, reply) = pour(&served, &format!("{head}{rest}"), piece.as_bytes());
            assert!(sent < 64 << 20, "{path}, {how}: {sent} bytes were taken");
            // The answer may be lost where the connection was closed while bytes were under way.
            assert!(reply.as_ref().is_none_or(|r| r.status == refused), "{path}, {how}: {reply:?}");
        }
        still_serves(&served, path);
    }
    let after = memory(served.pid());
    assert!(after < before + ROOM, "resident memory went from {before} kB to {after} kB");
}

#[test]
fn connections_that_only_lie_there_make_place_for_who_asks() {
    let world = World::new();
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    still_serves(&served, "its start");
    let before = memory(served.pid());
    let mut held = Vec::new();
    for n in 0..1500 {
        let mut stream = TcpStream::connect(&served.address).expect("a connection");
        let said: &[u8] = match n % 3 {
            0 => b"",
            1 => b"GET /healthz HTTP/1.1\r\nHost: local",
            _ => b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        };
        stream.write_all(said).expect("sent");
        held.push(stream);
        if n % 250 == 249 {
            still_serves(&served, &format!("{n} connections that ask nothing"));
        }
    }
    // In a tenth of the time that a silent connection is given.
    let began = Instant::now();
    for _ in 0..20 {
        still_serves(&served, "1500 connections that ask nothing");
    }
    assert!(began.elapsed() < Duration::from_secs(4), "20 requests took {:?}", began.elapsed());
    let after = memory(served.pid());
    assert!(after < before + ROOM, "resident memory went from {before} kB to {after} kB");
}

#[test]
fn an_agent_that_keeps_its_requests_open_leaves_room_for_everybody_else() {
    let world = World::new();
    let agents: String =
        ["greedy", "hungry", "other"].iter().map(|n| format!("[[agents]]\nname = \"{n}\"\n")).collect();
    world.write("config/portcullis.toml", agents);
    world.write("work/a.txt", "text\n");
    let served = Served::start(&world);
    let ask = json!({ "parameters": { "command": "ls" } }).to_string();
    let waiting = |agent: &str| {
        format!(
            "POST /api/tools/Bash/execute?wait=5m HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{ask}",
            served.agent(agent),
            ask.len()
        )
    };
    let mut held = Vec::new();
    for agent in ["greedy", "hungry"] {
        let request = waiting(agent);
        for _ in 0..300 {
            let mut stream = TcpStream::connect(&served.address).expect("a connection");
            stream.write_all(request.as_bytes()).expect("sent");
            held.push(stream);
        }
    }
    // Those above the share are told so, and cut off.
    until("the surplus to be refused", || {
        let refused = held.iter_mut().filter(|stream| {
            stream.set_nonblocking(true).expect("set");
            let mut answer = [0; 12];
            stream.peek(&mut answer).is_ok_and(|n| answer[..n].ends_with(b" 503"))
        });
        refused.count() >= 100
    });
    let read = json!({ "parameters": { "path": "a.txt" } });
    let others = served.post("/api/tools/Read/execute", &served.agent("other"), &read);
    assert!(matches!(others.status, 200 | 503), "{others:?}");
    // A person gets in, whatever agents do.
    for _ in 0..10 {
        let began = Instant::now();
        assert_eq!(served.get("/api/approvals", &served.operator()).status, 200);
        assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
    }
    drop(held);
    let last = || served.post("/api/tools/Read/execute", &served.agent("greedy"), &read).status == 200;
    until("the greedy agent's share to be free again", last);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named_with_its_remedy() {
    let world = World::new();
    // What root may write all the same, a file system that is read-only keeps from it: /proc stands in for one.
    let output = world.portcullis(["serve"]).env("PORTCULLIS_STATE", "/proc/portcullis").output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{told}");
    assert!(told.contains("/proc/portcullis") && told.contains("PORTCULLIS_STATE"), "{told}");
}
