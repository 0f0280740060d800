//! The tools there are: lookup, coercion, validation, filtering, output limits.

mod alias;
mod canonical;
mod coerce;
pub mod definition;
mod listing;
mod near;
mod output;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::alias::aliases;
pub use self::canonical::{CallError, DEEPEST_ARGUMENTS, LARGEST_ARGUMENTS};
pub use self::definition::{Confined, Definition, Foreign, Sensitivity, Standing, Subject};
pub use self::listing::{is_listed, listed};
pub use self::near::nearest;
pub use self::output::{ERROR_HINT, clip, with_hint};

use crate::firewall::Cleared;

/// A tool that the gateway can run.
pub trait Tool: Send + Sync {
    fn definition(&self) -> &Definition;

    /// Whether the gateway runs it. Otherwise an agent's own program does, and the gateway only judges the call: such a tool
    /// is offered to nobody, and only a hook may name it.
    fn runs_here(&self) -> bool {
        true
    }

    /// Runs a call that the firewall cleared. Nothing else can be run: only the firewall makes a [`Cleared`].
    fn execute(&self, cleared: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>>;
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub text: String,
    /// The same as data, for callers that can take it.
    pub structured: Option<Value>,
    /// The tool ran and says that it failed (a command with a non-zero exit code, for one).
    pub is_error: bool,
    /// A server's own result, with every field, where the tool is a server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl Output {
    /// What one of the gateway's own tools says as data. A server's data is its own, whatever its names are.
    pub fn of_own(&self, name: &str) -> Option<&Value> {
        self.structured.as_ref().filter(|_| self.raw.is_none())?.get(name)
    }
}

/// Why a cleared call could not do its work.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub enum ToolError {
    /// The tool did its best and failed; the text tells the model why and what to try.
    #[error("{0}")]
    Failed(String),
    #[error("the sandbox could not be set up: {0}")]
    Setup(String),
    /// The caller took the call back while it ran.
    #[error("the call was cancelled while it ran: its processes were ended; what it had done by then is done")]
    Cancelled,
}

/// A tool's name: written down in the program, or taken from a server's list.
pub type Name = Cow<'static, str>;

/// The tools there are, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<Name, Entry>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    validator: Arc<Validator>,
}

/// Why a tool cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    #[error("there is a tool `{0}` already: unregister it first")]
    Taken(Name),
    #[error("the parameters of the tool `{tool}` are no usable JSON Schema: {reason}")]
    Schema { tool: Name, reason: String },
    #[error("the tool `{tool}` names the parameter `{argument}` as a subject, and its schema has no such parameter")]
    Subject { tool: Name, argument: &'static str },
}

impl Registry {
    pub fn new() -> Self {
        Registry::default()
    }

    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let definition = tool.definition();
        let name = definition.name.clone();
        if self.has(&name) {
            return Err(RegisterError::Taken(name));
        }
        let validator = Arc::new(compile(definition)?);
        for subject in definition.subjects {
            let (Subject::Path { argument, .. } | Subject::Tree { argument } | Subject::Command { argument }) = subject;
            if definition.parameters.pointer(&format!("/properties/{argument}")).is_none() {
                return Err(RegisterError::Subject { tool: name, argument });
            }
        }
        self.tools.insert(name, Entry { tool, validator });
        Ok(())
    }

    /// Registers tools up to the first that cannot be.
    pub fn register_all(&mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<(), RegisterError> {
        tools.into_iter().try_for_each(|tool| self.register(tool))
    }

    pub fn unregister(&mut self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.remove(name).map(|entry| entry.tool)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|entry| &entry.tool)
    }

    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// The tool of a server that is meant by the name that it has there: where that is no tool's own name, and one server
    /// alone has it.
    pub fn by_original(&self, name: &str) -> Option<&str> {
        if self.has(name) {
            return None;
        }
        let of = |entry: &Entry| entry.tool.definition().upstream.as_ref().is_some_and(|f| f.original == name);
        let mut found = self.tools.iter().filter(|(_, entry)| of(entry)).map(|(name, _)| &**name);
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    /// Every tool that can be called, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.known().filter(|tool| tool.runs_here())
    }

    /// Every tool that policies can speak of: besides those that can be called, those that agents' programs run.
    pub fn known(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values().map(|entry| &entry.tool)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|tool| &*tool.definition().name)
    }

    /// The names of the tools that clients are shown.
    fn listed_names(&self) -> Vec<String> {
        self.all().map(|tool| tool.definition()).filter(|d| is_listed(d)).map(|d| d.name.to_string()).collect()
    }

    /// The definitions in the form of OpenAI's function calling.
    pub fn definitions(&self) -> Vec<Value> {
        let form = |definition: &Definition| {
            json!({
                "type": "function",
                "function": {
                    "name": definition.name,
                    "description": definition.description,
                    "parameters": definition.parameters,
                }
            })
        };
        self.all().map(|tool| tool.definition()).filter(|d| is_listed(d)).map(form).collect()
    }

    /// The definitions in the form of MCP's `tools/list`.
    pub fn mcp_definitions(&self) -> Vec<Value> {
        self.all().map(|tool| tool.definition()).filter(|d| is_listed(d)).map(listed).collect()
    }

    /// The registry with those of its tools that are allowed. A name that it has not is no error.
    pub fn filtered<'a>(&self, allowed: impl IntoIterator<Item = &'a str>) -> Registry {
        let kept = allowed.into_iter().filter_map(|name| self.tools.get_key_value(name));
        Registry { tools: kept.map(|(name, entry)| (name.clone(), entry.clone())).collect() }
    }
}

/// Compiles a tool's schema: with a regex engine that cannot blow up, and nothing is fetched.
fn compile(definition: &Definition) -> Result<Validator, RegisterError> {
    const LARGEST_PATTERN: usize = 1024 * 1024;
    let patterns = PatternOptions::regex().size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN);
    jsonschema::options()
        .with_pattern_options(patterns)
        .offline()
        .build(&definition.parameters)
        .map_err(|error| RegisterError::Schema { tool: definition.name.clone(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::call::{Call, Mode, Origin, Principal, Request};

    struct Sample(Definition);

    impl Tool for Sample {
        fn definition(&self) -> &Definition {
            &self.0
        }

        fn execute(&self, _: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>> {
            Box::pin(async { Err(ToolError::Failed("a sample".into())) })
        }
    }

    fn sample(name: &'static str, parameters: Value) -> Arc<dyn Tool> {
        Arc::new(Sample(Definition {
            name: name.into(),
            description: "".into(),
            parameters,
            sensitivity: Sensitivity::Safe,
            groups: &[],
            subjects: &[],
            max_output: 100,
            upstream: None,
        }))
    }

    fn registry() -> Registry {
        let mut registry = Registry::new();
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1},
                "tags": {"type": "array", "items": {"type": "string", "pattern": "^(a+)+$"}}
            },
            "required": ["path"],
            "additionalProperties": false
        });
        registry.register_all([sample("Read", parameters), sample("Glob", json!({"type": "object"}))]).unwrap();
        registry
    }

    fn request(tool: &str, arguments: Value, cwd: Option<&str>) -> Request {
        Request {
            tool: tool.into(),
            arguments,
            cwd: cwd.map(PathBuf::from),
            principal: Principal {
                agent: "a".into(),
                sub_agent: None,
                teams: Vec::new(),
                session: "s".into(),
                mode: Mode::Default,
                unattended: false,
            },
            origin: Origin::Library,
            caller_id: Some("c1".into()),
        }
    }

    fn canonical(arguments: Value) -> Result<Call, CallError> {
        registry().canonicalise(request("Read", arguments, None), Path::new("/w"))
    }

    #[test]
    fn a_request_becomes_a_call() {
        let call = canonical(json!({"path": "a", "limit": "3", "tags": "aa"})).unwrap();
        assert_eq!(Value::Object(call.arguments), json!({"path": "a", "limit": 3, "tags": ["aa"]}));
        assert_eq!(call.cwd, Path::new("/w"));
        assert_eq!(call.caller_id.as_deref(), Some("c1"));
        assert_eq!(uuid::Uuid::parse_str(&call.id).unwrap().get_version_num(), 7);
        let text = canonical(Value::String(r#"{"path": "a"}"#.into())).unwrap();
        assert_eq!(text.text("path"), Some("a"), "a JSON text is the object it holds");
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        let message = canonical(json!({"limit": 0, "pth": "a", "tags": [3, "b"]})).unwrap_err().to_string();
        for part in ["`path` is missing", "`pth`", "path, limit, tags", "/limit", "/tags/1"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_tools_there_are() {
        let error = registry().canonicalise(request("Raed", json!({}), None), Path::new("/w")).unwrap_err();
        assert_eq!(error.to_string(), "there is no tool `Raed` (did you mean `Read`?): the tools are Glob, Read");
    }

    #[test]
    fn i2_arguments_are_bounded() {
        let mut deep = Value::Null;
        for _ in 0..200_000 {
            deep = Value::Array(vec![deep]);
        }
        assert_eq!(canonical(deep).unwrap_err(), CallError::TooDeep("Read".into()));
        let large = canonical(json!({"path": "x".repeat(LARGEST_ARGUMENTS)})).unwrap_err();
        assert!(matches!(large, CallError::TooLarge { .. }), "{large}");
        let nested = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(canonical(json!({"path": "a", "tags": nested})).is_err(), "a nested text stays a text");
        for arguments in [json!([1]), json!(3), json!("text"), json!("[1]"), json!(true)] {
            assert_eq!(canonical(arguments).unwrap_err(), CallError::NotAnObject("Read".into()));
        }
    }

    #[test]
    fn i2_a_pattern_cannot_blow_up() {
        let began = std::time::Instant::now();
        let tag = format!("{}!", "a".repeat(100_000));
        assert!(canonical(json!({"path": "a", "tags": [tag]})).is_err());
        assert!(began.elapsed().as_secs() < 2, "validation took {:?}", began.elapsed());
    }

    #[test]
    fn the_working_directory_is_absolute_and_normal() {
        let cwd = |given: &str| {
            let call = registry().canonicalise(request("Glob", json!({}), Some(given)), Path::new("/w"));
            call.map(|call| call.cwd)
        };
        assert_eq!(cwd("src/./x/..").unwrap(), Path::new("/w/src"));
        assert_eq!(cwd("/tmp//a/").unwrap(), Path::new("/tmp/a"));
        assert_eq!(cwd("../../../x").unwrap(), Path::new("/x"), "where it lies is for the path stage to judge");
        assert!(cwd("a\u{7}b").is_err());
        assert!(cwd("").is_err());
    }

    #[test]
    fn tools_are_registered_once_with_a_sound_schema() {
        let mut registry = registry();
        let again = registry.register(sample("Read", json!({}))).unwrap_err();
        assert!(matches!(again, RegisterError::Taken(_)));
        for schema in [json!({"type": "no-type"}), json!({"$ref": "http://127.0.0.1:1/x"}), json!({"pattern": "(?=a)"})]
        {
            let error = registry.register(sample("Bad", schema.clone())).unwrap_err();
            assert!(matches!(error, RegisterError::Schema { .. }), "{schema}");
        }
        assert!(registry.unregister("Read").is_some() && !registry.has("Read"));
    }

    #[test]
    fn a_filtered_registry_has_what_is_allowed_and_nothing_else() {
        let filtered = registry().filtered(["Read", "Bash"]);
        assert_eq!(filtered.names().collect::<Vec<_>>(), ["Read"]);
        assert!(filtered.get("Glob").is_none());
    }

    #[test]
    fn definitions_have_both_forms() {
        let registry = registry();
        let function = registry.definitions().remove(1);
        assert_eq!(function.pointer("/function/name"), Some(&json!("Read")));
        assert_eq!(function.pointer("/function/parameters/required/0"), Some(&json!("path")));
        let mcp = registry.mcp_definitions().remove(1);
        assert_eq!(mcp.pointer("/inputSchema/required/0"), Some(&json!("path")));
    }
}
