//! Calls as they come over a wire: lines of JSON, a call each, or a message of an MCP session each.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::mcp_session;
use super::scratch::Scratch;
use crate::call::{Call, Digest, Request};
use crate::cli::{Line, judge_lines};
use crate::config::{Config, Places};
use crate::gateway::{Caller, Gateway};
use crate::registry::{DEEPEST_ARGUMENTS, LARGEST_ARGUMENTS};
use crate::verdict::Decision;

pub(super) struct World {
    pub gateway: Arc<Gateway>,
    pub caller: Caller,
    _scratch: Scratch,
}

impl World {
    pub fn new() -> Self {
        let scratch = Scratch::new();
        let [workspace, config, state, home] = ["w", "config", "state", "home"].map(|name| scratch.path().join(name));
        fs::create_dir(&workspace).expect("a workspace is made");
        fs::write(workspace.join("a"), "text").expect("a file is made");
        let config = Config::load(Places { system: None, config, state, home }).expect("no configuration is sound");
        let gateway = Arc::new(Gateway::open(config).expect("the gateway opens"));
        let caller = gateway.caller(None, "fuzz", Some(&workspace)).expect("the local agent is a caller");
        World { gateway, caller, _scratch: scratch }
    }
}

thread_local! {
    /// Of a thread, so that it is gone with it.
    static WORLD: World = World::new();
}

/// Any bytes are answered: one verdict a line, the same for a line alone as among others. What becomes a call is
/// bounded, and canonical: made a call once more it is the same call. The same bytes as lines of an MCP session are
/// answered as [`mcp_session::holds`] says.
///
/// # Panics
///
/// Where that does not hold.
pub fn mcp_wire(data: &[u8]) {
    WORLD.with(|world| {
        let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
        let lines: Vec<&[u8]> = lines.into_iter().filter(|line| !line.trim_ascii().is_empty()).collect();
        let (answers, worst) = answers(world, data);
        assert_eq!(answers.len(), lines.len(), "not every line has one answer");
        assert_eq!(answers.iter().map(|(decision, _)| *decision).max().unwrap_or(Decision::Allow), worst);
        for (line, (decision, id)) in lines.iter().zip(&answers) {
            let (alone, _) = self::answers(world, line);
            assert_eq!(alone.first(), Some(&(*decision, id.clone())), "a line alone is answered otherwise");
            if let Ok(value) = serde_json::from_slice(line) {
                calls(&value).for_each(|(tool, arguments, cwd)| canonical(world, tool, arguments, cwd));
            }
        }
    });
    mcp_session::holds(data);
}

/// Each answer's decision, and the id that it echoes.
fn answers(world: &World, mut data: &[u8]) -> (Vec<(Decision, Value)>, Decision) {
    let mut out = Vec::new();
    let judge = |line: Line| {
        let request = Request { cwd: line.cwd, ..world.caller.request(line.tool, line.arguments) };
        Ok::<_, std::io::Error>(world.gateway.judge(&world.caller, request))
    };
    let (worst, shown) = judge_lines(judge, &mut data, &mut out).expect("memory can be read");
    shown.expect("memory can be written");
    let answer = |line: &[u8]| {
        let answer: Value = serde_json::from_slice(line).expect("an answer is JSON");
        let level = answer.get("level").and_then(Value::as_u64).unwrap_or_default();
        let decision = match answer.get("decision").and_then(Value::as_str) {
            Some("ask") => format!("ask({level})"),
            other => other.expect("an answer has a decision").to_owned(),
        };
        let id = answer.get("id").cloned().unwrap_or_default();
        (Decision::try_from(decision).expect("a decision"), id)
    };
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    (lines.map(answer).collect(), worst)
}

type Parts<'a> = (&'a Value, &'a Value, Option<&'a Value>);

/// What of a message could be a call: a batch's line, MCP's `tools/call`, or several in an array.
fn calls(message: &Value) -> Box<dyn Iterator<Item = Parts<'_>> + '_> {
    static NONE: Value = Value::Null;
    let parts = |part: &'static str, value| -> Option<Parts<'_>> {
        let arguments = Value::get(value, "arguments").unwrap_or(&NONE);
        Some((value.get(part)?, arguments, value.get("cwd")))
    };
    match message {
        Value::Array(several) => Box::new(several.iter().flat_map(move |one| {
            parts("tool", one).into_iter().chain(one.get("params").and_then(|params| parts("name", params)))
        })),
        one => Box::new(
            parts("tool", one).into_iter().chain(one.get("params").and_then(move |params| parts("name", params))),
        ),
    }
}

fn canonical(world: &World, tool: &Value, arguments: &Value, cwd: Option<&Value>) {
    let Some(tool) = tool.as_str() else { return };
    let make = |arguments: Value, cwd: Option<&Path>| -> Option<Call> {
        let request = Request { cwd: cwd.map(Into::into), ..world.caller.request(tool.to_owned(), arguments) };
        world.gateway.registry().canonicalise(request, &world.caller.workspace).ok()
    };
    let Some(call) = make(arguments.clone(), cwd.and_then(Value::as_str).map(Path::new)) else { return };
    let arguments = Value::Object(call.arguments.clone());
    let again = make(arguments.clone(), Some(&call.cwd)).expect("a call can be made a call once more");
    assert_eq!(again.arguments, call.arguments, "the arguments are not canonical");
    assert!(depth(&arguments) <= DEEPEST_ARGUMENTS, "the arguments nest too deep: {arguments}");
    let text = arguments.to_string();
    // The bound is on their size before escapes.
    assert!(text.len() <= 6 * LARGEST_ARGUMENTS, "the arguments have {} bytes", text.len());
    assert!(call.cwd.is_absolute() && !call.cwd.to_string_lossy().contains(char::is_control), "{:?}", call.cwd);
    let recorded = serde_json::to_vec(&call).expect("a call can be recorded");
    let replayed: Call = serde_json::from_slice(&recorded).expect("a recorded call can be read");
    assert_eq!(replayed, call, "a call does not survive the record");
    let mut turned: Vec<_> = call.arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    turned.reverse();
    let turned = Value::Object(Map::from_iter(turned));
    assert_eq!(Digest::of_json(&turned), Digest::of_json(&arguments), "the order of arguments changes their digest");
}

fn depth(value: &Value) -> usize {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return 1,
    };
    1 + inner.map(depth).max().unwrap_or_default()
}
