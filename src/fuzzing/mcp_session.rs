//! The MCP server's own framing: lines in, lines out.

#![expect(clippy::indexing_slicing, reason = "a member that is not there is null")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::mcp_wire::World;
use crate::cli::STACK;
use crate::mcp::stdio::LONGEST_LINE;
use crate::mcp::{Patience, Server, stdio};

/// Sessions in one installation. Its books grow.
const SESSIONS: u32 = 2_000;
/// Nothing takes as long as this, however busy the machine is.
const LONG: Duration = Duration::from_secs(60);
const NO_PATIENCE: Patience = Patience { silent: Duration::ZERO, with_progress: Duration::ZERO };

const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":"\u0001begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"fuzz","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
const STATELESS: &str = r#"{"jsonrpc":"2.0","id":"\u0001begin","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"fuzz","version":"1"}}}}
"#;
const BEGIN: &str = "\u{1}begin";
const END: &str = "\u{1}end";
const PING: &str = r#"{"jsonrpc":"2.0","id":"\u0001end","method":"ping"}
"#;
/// A request of the stateless revision has to say so.
const STATELESS_END: &str = r#"{"jsonrpc":"2.0","id":"\u0001end","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"fuzz","version":"1"}}}}
"#;

struct Place {
    runtime: Runtime,
    world: World,
    left: u32,
}

impl Place {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().thread_stack_size(STACK).enable_all().build().expect("a runtime");
        Place { runtime, world: World::new(), left: SESSIONS }
    }

    fn server(&self) -> Server {
        Server::of(Arc::clone(&self.world.gateway), self.world.caller.clone(), NO_PATIENCE)
    }
}

thread_local! {
    static PLACE: RefCell<Place> = RefCell::new(Place::new());
}

/// In a session of either revision every request has one answer, every line that is no message one error, and nothing
/// else has any; afterwards the session goes on. Where no session was begun, no more is answered than was asked.
pub(super) fn holds(data: &[u8]) {
    PLACE.with_borrow_mut(|place| {
        if place.left == 0 {
            *place = Place::new();
        }
        place.left -= 1;
        for (begin, end) in [(HANDSHAKE, PING), (STATELESS, STATELESS_END)] {
            place.runtime.block_on(begun(place.server(), begin, data, end));
        }
        place.runtime.block_on(raw(place.server(), data));
    });
}

/// The answers that a line may have: how many at least and at most, under which id.
struct Expected {
    id: String,
    least: usize,
    most: usize,
}

/// What must come of a line.
fn expected(line: &[u8]) -> Option<Expected> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let of = |id: &str, least, most| Some(Expected { id: id.to_owned(), least, most });
    if line.len() > LONGEST_LINE {
        return of("null", 1, 1);
    }
    // A member given twice leaves open which id is meant.
    let Ok(message) = crate::json::parse(line) else { return of("null", 1, 1) };
    let id = message.get("id").map(|id| RequestId::deserialize(id).map_or_else(|_| "null".to_owned(), |id| key(&id)));
    let has_method = message.get("method").is_some_and(Value::is_string);
    match id {
        None if has_method => None,
        None => of("null", 1, 1),
        // A response to nothing is nobody's business.
        Some(id) if message.get("result").is_some() || message.get("error").is_some() => of(&id, 0, 1),
        Some(id) => of(&id, 1, 1),
    }
}

fn key(id: &impl serde::Serialize) -> String {
    serde_json::to_string(id).expect("an id is JSON")
}

/// What must come of all the lines, by id. A request that another line takes back, or whose id is used twice, may go
/// without an answer.
fn all_expected(data: &[u8]) -> BTreeMap<String, (usize, usize)> {
    let mut all: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for Expected { id, least, most } in data.split(|byte| *byte == b'\n').filter_map(expected) {
        let (all_least, all_most) = all.entry(id).or_default();
        (*all_least, *all_most) = (*all_least + least, *all_most + most);
    }
    let takes_back = data.windows(CANCELLED.len()).any(|part| part == CANCELLED) || data.contains(&b'\\');
    for (id, (least, most)) in &mut all {
        if id != "null" && (takes_back || *most > 1) {
            *least = 0;
        }
    }
    all
}

const CANCELLED: &[u8] = b"cancelled";

/// A session that begins well, brings the data, and must still answer then.
async fn begun(server: Server, begin: &str, data: &[u8], end: &str) {
    let (mut input, mut output, served) = start(server);
    input.write_all(begin.as_bytes()).await.expect("the server reads");
    let hello = next(&mut output).await.expect("an answer to the beginning");
    assert_eq!(hello["id"], BEGIN, "something else was answered first: {hello}");
    let expected = all_expected(data);
    let (data, end) = (data.to_vec(), end.as_bytes().to_vec());
    let writing = tokio::spawn(async move {
        input.write_all(&data).await?;
        // The data may end within a line.
        input.write_all(b"\n").await?;
        input.write_all(&end).await?;
        input.flush().await?;
        Ok::<_, std::io::Error>(input)
    });
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let short = |seen: &BTreeMap<String, usize>| {
        expected.iter().any(|(id, (least, _))| seen.get(id).copied().unwrap_or_default() < *least)
    };
    let mut ended = false;
    while !ended || short(&seen) {
        let Some(answer) = next(&mut output).await else { panic!("missing of {expected:?}: had {seen:?}") };
        if answer["id"] == END {
            assert!(answer.get("result").is_some() && !ended, "the session does not go on: {answer}");
            ended = true;
        } else {
            count(&mut seen, &answer);
        }
    }
    let input = writing.await.expect("written").expect("the server reads");
    drop(input);
    served.await.expect("the server ends").expect("and ends well");
    while let Some(answer) = next(&mut output).await {
        count(&mut seen, &answer);
    }
    for (id, times) in &seen {
        let most = expected.get(id).map_or(0, |(_, most)| *most);
        assert!(*times <= most, "{times} answers under {id}, and {most} were asked for");
    }
}

/// The data alone, whatever it begins.
async fn raw(server: Server, data: &[u8]) {
    let (mut input, mut output, served) = start(server);
    let expected = all_expected(data);
    let data = data.to_vec();
    // A server that has ended reads no more.
    let writing = tokio::spawn(async move { input.write_all(&data).await });
    let mut seen = BTreeMap::new();
    while let Some(answer) = next(&mut output).await {
        count(&mut seen, &answer);
    }
    let _ = writing.await.expect("written");
    // How it ends depends on how it began.
    let _ = timeout(LONG, served).await.expect("the server ends").expect("and does not panic");
    for (id, times) in &seen {
        let most = expected.get(id).map_or(0, |(_, most)| *most);
        assert!(*times <= most, "{times} answers under {id}, and {most} were asked for");
    }
}

type Served = tokio::task::JoinHandle<Result<(), stdio::ServeError>>;

fn start(server: Server) -> (DuplexStream, BufReader<DuplexStream>, Served) {
    let ((input, far_input), (output, far_output)) = (tokio::io::duplex(64 << 10), tokio::io::duplex(64 << 10));
    let served = tokio::spawn(stdio::serve(server, far_input, far_output, std::future::pending()));
    (input, BufReader::new(output), served)
}

/// The next answer. Notes of progress, the only other messages of this server's, are passed over.
async fn next(output: &mut BufReader<DuplexStream>) -> Option<Value> {
    loop {
        let mut line = Vec::new();
        let read = timeout(LONG, output.read_until(b'\n', &mut line)).await.expect("the server does not hang");
        if read.expect("memory can be read") == 0 {
            return None;
        }
        let message: Value = serde_json::from_slice(&line).expect("every line is JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message.get("method").is_some() {
            assert_eq!(message["method"], "notifications/progress", "{message}");
            continue;
        }
        assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
        return Some(message);
    }
}

fn count(seen: &mut BTreeMap<String, usize>, answer: &Value) {
    let id = answer.get("id").unwrap_or(&Value::Null);
    if id.is_null() {
        assert!(answer.get("error").is_some(), "a result for nobody: {answer}");
    }
    *seen.entry(key(id)).or_default() += 1;
}
