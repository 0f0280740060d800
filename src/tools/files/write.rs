//! `Write`: a whole file, atomically.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::facts::path::{Access, Handle};
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::tools::{PathTool, arguments, count, done};

/// `Write`.
pub fn write() -> Arc<dyn Tool> {
    let definition = Definition {
        name: "Write".into(),
        description: "Writes a whole file: creates it, with the directories that are missing, or replaces it. To \
            change a part of a file use Edit."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace"},
                "content": {"type": "string", "description": "The file's whole new content"}
            },
            "required": ["path", "content"],
            "additionalProperties": false
        }),
        sensitivity: Sensitivity::Sensitive,
        groups: &["edit"],
        subjects: &[Subject::Path { argument: "path", access: Access::Write }],
        max_output: 4 * 1024,
        upstream: None,
    };
    Arc::new(PathTool { definition, run })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(rename = "path")]
    _path: String,
    content: String,
}

fn run(handle: &Handle, given: Map<String, Value>) -> Result<Output, ToolError> {
    let given: Arguments = arguments(given)?;
    let new = handle.write(given.content.as_bytes(), None)?;
    let what = if new { "created" } else { "replaced" };
    let lines = count(given.content.lines().count(), "line", "lines");
    done(
        format!("{what} `{}` ({lines}, {} bytes)", handle.shown(), given.content.len()),
        json!({"created": new, "size": given.content.len()}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Scene, object};

    #[test]
    fn a_file_is_created_and_replaced() {
        let scene = Scene::new();
        let write = |content: &str| {
            let handle = scene.handle("a/b.txt", Access::Write);
            run(&handle, object(json!({"path": "a/b.txt", "content": content}))).unwrap().text
        };
        assert_eq!(write("one\ntwo\n"), "created `a/b.txt` (2 lines, 8 bytes)");
        assert_eq!(write("x"), "replaced `a/b.txt` (1 line, 1 bytes)");
        assert_eq!(scene.get("a/b.txt"), "x");
    }

    #[test]
    fn a_directory_or_a_file_in_the_way_is_said() {
        let scene = Scene::new();
        scene.put("d/file", "x");
        for (path, part) in [("d", "is a directory"), ("d/file/x", "Not a directory")] {
            let given = object(json!({"path": path, "content": ""}));
            let error = run(&scene.handle(path, Access::Write), given).unwrap_err().to_string();
            assert!(error.contains(part), "{path}: {error}");
        }
    }
}
