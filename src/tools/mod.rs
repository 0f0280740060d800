//! The built-in tools.

pub mod files;
pub mod hosted;
pub mod search;
pub mod shell;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::facts::path::{Handle, HandleError};
use crate::firewall::Cleared;
use crate::registry::{Definition, Output, RegisterError, Registry, Tool, ToolError};
use crate::sandbox::Launcher;

/// Every built-in tool, in the order in which a session's registry is built.
///
/// # Errors
///
/// When the gateway cannot hold its own executable open, which is what confines programs.
pub fn all() -> Result<Registry, SetupError> {
    let launcher = Launcher::new().map_err(SetupError::Launcher)?;
    let mut registry = Registry::new();
    registry.register_all(file_tools())?;
    registry.register_all(hosted::all())?;
    registry.register(Arc::new(shell::Bash::new(Arc::new(launcher))))?;
    Ok(registry)
}

/// Why the tools cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the sandbox's helper cannot be opened: {0}")]
    Launcher(std::io::Error),
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// The tools that work on files of the workspace, in the order in which a session's registry is built.
pub fn file_tools() -> Vec<Arc<dyn Tool>> {
    vec![files::read(), files::write(), files::edit(), files::list_dir(), search::glob(), search::grep()]
}

/// A tool whose work is done on the handle of its `path`, in one go, off the event loop.
struct PathTool {
    definition: Definition,
    run: fn(&Handle, Map<String, Value>) -> Result<Output, ToolError>,
}

impl Tool for PathTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute(&self, cleared: Cleared) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + '_>> {
        let run = self.run;
        Box::pin(async move {
            let work = move || {
                let handle = cleared.handle("path").ok_or_else(|| failed("the call has no path that was looked up"))?;
                run(handle, cleared.call().arguments.clone())
            };
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(failed("the tool broke down; report this")))
        })
    }
}

/// A tool's arguments. They fit, because the call was validated against the schema.
fn arguments<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| failed(format!("unusable arguments: {error}")))
}

fn failed(message: impl Into<String>) -> ToolError {
    ToolError::Failed(message.into())
}

fn done(text: impl Into<String>, structured: Value) -> Result<Output, ToolError> {
    Ok(Output { text: text.into(), structured: Some(structured), is_error: false, raw: None })
}

impl From<HandleError> for ToolError {
    fn from(error: HandleError) -> Self {
        failed(error.to_string())
    }
}

/// "1 match", "2 matches".
fn count(number: usize, one: &str, several: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {several}") }
}

/// A character of a file's name or content, safe to print.
fn visible(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

/// A workspace for tests, and the handles of paths in it.
#[cfg(test)]
mod testing {
    use std::path::PathBuf;

    use serde_json::{Map, Value};
    use tempfile::TempDir;

    use crate::facts::Surroundings;
    use crate::facts::path::{Access, Handle, Protection, Resolver, standard_rules};

    pub struct Scene {
        top: TempDir,
        resolver: Resolver,
    }

    impl Scene {
        pub fn new() -> Self {
            let top = tempfile::tempdir().unwrap();
            std::fs::create_dir(top.path().join("w")).unwrap();
            let surroundings = Surroundings::new(top.path().join("w"), "/nonexistent");
            let protection = Protection::new(standard_rules()).unwrap();
            Scene { resolver: Resolver::open(&surroundings, protection).unwrap(), top }
        }

        pub fn path(&self, inner: &str) -> PathBuf {
            self.top.path().join("w").join(inner)
        }

        pub fn put(&self, inner: &str, content: impl AsRef<[u8]>) {
            std::fs::create_dir_all(self.path(inner).parent().unwrap()).unwrap();
            std::fs::write(self.path(inner), content).unwrap();
        }

        pub fn get(&self, inner: &str) -> String {
            std::fs::read_to_string(self.path(inner)).unwrap()
        }

        pub fn handle(&self, given: &str, access: Access) -> Handle {
            let (fact, handle) = self.resolver.look("path", given, access, &self.path(""));
            handle.unwrap_or_else(|| panic!("{fact:?}"))
        }
    }

    pub fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }
}
