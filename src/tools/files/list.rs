//! `ListDir`: what a directory holds.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::facts::path::{Access, Handle, Kind};
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::tools::{PathTool, count, done, failed, visible};

const MOST_ENTRIES: usize = 1_000;

/// `ListDir`.
pub fn list_dir() -> Arc<dyn Tool> {
    let definition = Definition {
        name: "ListDir".into(),
        description: "Lists a directory: `name/` is a directory, `name@` a symbolic link, `name|` something special."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The directory, relative to the workspace; `.` is its root"}
            },
            "required": ["path"],
            "additionalProperties": false
        }),
        sensitivity: Sensitivity::Safe,
        groups: &[],
        subjects: &[Subject::Path { argument: "path", access: Access::Read }],
        max_output: 50 * 1024,
        upstream: None,
    };
    Arc::new(PathTool { definition, run })
}

fn run(handle: &Handle, _given: Map<String, Value>) -> Result<Output, ToolError> {
    if handle.kind() == Some(Kind::File) {
        return Err(failed(format!("`{}` is a file: use Read", handle.shown())));
    }
    let (mut lines, mut total) = (Vec::new(), 0);
    let mut walk = handle.walk(false, 1)?;
    for entry in walk.by_ref() {
        total += 1;
        if lines.len() == MOST_ENTRIES {
            continue;
        }
        let mark = match entry.kind {
            Kind::File => "",
            Kind::Directory => "/",
            Kind::Symlink => "@",
            Kind::Fifo | Kind::Socket | Kind::CharacterDevice | Kind::BlockDevice => "|",
        };
        let protected = if entry.protected { " (protected)" } else { "" };
        // A name may hold anything but `/`, line ends too.
        let name: String = entry.path.to_string_lossy().chars().map(visible).collect();
        lines.push(format!("{name}{mark}{protected}"));
    }
    if total == 0 {
        lines.push(format!("(`{}` is empty)", handle.shown()));
    }
    if total > MOST_ENTRIES {
        let left = count(total - MOST_ENTRIES, "entry is", "entries are");
        lines.push(format!("(another {left} not shown: use Glob with a pattern)"));
    }
    lines.extend(walk.limit().map(|limit| format!("({limit})")));
    done(lines.join("\n"), json!({"entries": total}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Scene;

    fn list(scene: &Scene, path: &str) -> Result<String, String> {
        run(&scene.handle(path, Access::Read), Map::new()).map(|o| o.text).map_err(|e| e.to_string())
    }

    #[test]
    fn entries_are_listed_with_what_they_are() {
        let scene = Scene::new();
        scene.put("d/inner/x", "");
        scene.put("d/.env", "SECRET=1");
        scene.put("d/two\nlines", "");
        std::os::unix::fs::symlink("inner", scene.path("d/link")).unwrap();
        assert_eq!(list(&scene, "d").unwrap(), ".env (protected)\ninner/\nlink@\ntwo\u{fffd}lines");
        assert_eq!(list(&scene, "d/inner").unwrap(), "x");
        assert!(list(&scene, "d/inner/x").unwrap_err().contains("use Read"));
    }

    #[test]
    fn i6_entries_that_are_not_shown_are_counted() {
        let scene = Scene::new();
        for n in 0..MOST_ENTRIES + 7 {
            scene.put(&format!("d/{n}"), "");
        }
        assert!(list(&scene, "d").unwrap().ends_with("(another 7 entries are not shown: use Glob with a pattern)"));
    }
}
