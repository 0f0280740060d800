//! One call over HTTP, `Read` of a small file, against a bare axum handler that reads the same file in the same run. Both
//! are asked over a kept-alive connection by the same client, so the difference is what the gate costs: authentication,
//! judging, the record, and the hop to a thread that may block.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a bench that cannot be set up may fail")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use criterion::{Criterion, criterion_group, criterion_main};
use portcullis::config::{Config, File, Places};
use portcullis::daemon::{Daemon, Listeners, serve};
use portcullis::gateway::Gateway;
use tokio::runtime::Runtime;

struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    request: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr, token: &str) -> Self {
        let body = r#"{"parameters": {"path": "small.txt"}}"#;
        let request = format!(
            "POST /api/tools/Read/execute HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream), address, request: request.into_bytes() }
    }

    fn ask(&mut self) {
        // The server closes connections that lie idle, as they do between two measurements.
        if self.stream.get_mut().write_all(&self.request).is_err() || !self.answered() {
            self.stream = BufReader::new(TcpStream::connect(self.address).unwrap());
            self.stream.get_ref().set_nodelay(true).unwrap();
            self.stream.get_mut().write_all(&self.request).unwrap();
            assert!(self.answered(), "no answer");
        }
    }

    fn answered(&mut self) -> bool {
        let (mut status, mut length) = (String::new(), 0);
        if self.stream.read_line(&mut status).is_err() || status.is_empty() {
            return false;
        }
        assert!(status.contains(" 200 "), "{status}");
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        assert!(body.windows(4).any(|word| word == b"text"), "the file's text is not in the answer");
        true
    }
}

fn bare(runtime: &Runtime, file: PathBuf) -> SocketAddr {
    let read = move |_: axum::body::Bytes| {
        let file = file.clone();
        async move { tokio::task::spawn_blocking(move || std::fs::read_to_string(file).unwrap()).await.unwrap() }
    };
    let router = Router::new().route("/api/tools/Read/execute", post(read));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

fn gateway(runtime: &Runtime, dir: &std::path::Path) -> (SocketAddr, String) {
    let places = Places { system: None, config: dir.join("config"), state: dir.join("state"), home: dir.to_owned() };
    let gateway =
        Gateway::open(Config { places, file: File::default(), exceptions: Vec::new(), read: Vec::new() }).unwrap();
    let gateway = Arc::new(gateway);
    let listeners = Listeners::bind(&gateway.config().places, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listeners.address().unwrap();
    let Some((_, token)) = gateway.agent_tokens().unwrap().pop() else { panic!("no agent") };
    let token = std::fs::read_to_string(token).unwrap();
    let daemon = Arc::new(Daemon::new(gateway, dir.join("work"), address));
    let routes = portcullis::http::router(Arc::clone(&daemon), axum::Router::new());
    runtime.spawn(serve(daemon, listeners, routes, std::future::pending()));
    (address, token)
}

fn rest(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(64 << 20).build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("work")).unwrap();
    let file = dir.path().join("work/small.txt");
    std::fs::write(&file, "some text\n".repeat(20)).unwrap();
    let mut group = c.benchmark_group("rest");
    let mut client = Client::new(bare(&runtime, file), "none");
    group.bench_function("bare axum handler", |b| b.iter(|| client.ask()));
    let (address, token) = gateway(&runtime, dir.path());
    let mut client = Client::new(address, &token);
    group.bench_function("Read through the gate", |b| b.iter(|| client.ask()));
    group.finish();
    runtime.shutdown_background();
}

criterion_group!(benches, rest);
criterion_main!(benches);
