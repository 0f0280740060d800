//! `Glob`: files by name.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::name_pattern;
use crate::facts::path::{Handle, Kind};
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::tools::{PathTool, arguments, count, done, visible};

const MOST_FILES: usize = 1_000;

/// `Glob`.
pub fn glob() -> Arc<dyn Tool> {
    let definition = Definition {
        name: "Glob",
        description: "Finds files by a pattern such as `*.rs` (at any depth), `src/**/*.{ts,tsx}` or `docs/*`. What \
            ignore files name is left out; directories are not listed.",
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "The pattern, relative to `path`"},
                "path": {"type": "string", "description": "The directory to search; the working directory unless given"}
            },
            "required": ["pattern"],
            "additionalProperties": false
        }),
        sensitivity: Sensitivity::Safe,
        groups: &[],
        subjects: &[Subject::Tree { argument: "path" }],
        max_output: 50 * 1024,
    };
    Arc::new(PathTool { definition, run })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    #[serde(rename = "path")]
    _path: Option<String>,
}

fn run(handle: &Handle, given: Map<String, Value>) -> Result<Output, ToolError> {
    let given: Arguments = arguments(given)?;
    let pattern = name_pattern(&given.pattern)?;
    let mut walk = handle.walk(true, usize::MAX)?;
    let (mut lines, mut found) = (Vec::new(), 0);
    for entry in walk.by_ref() {
        if entry.kind == Kind::Directory || !pattern.is_match(&entry.path) {
            continue;
        }
        found += 1;
        if lines.len() < MOST_FILES {
            lines.push(below(handle, &entry.path.to_string_lossy()));
        }
    }
    if found == 0 {
        lines.push(format!("no file matches `{}`", given.pattern));
    }
    if found > MOST_FILES {
        lines.push(format!("({} not shown: use a narrower pattern)", count(found - MOST_FILES, "file", "files")));
    }
    lines.extend(walk.limit().map(|limit| format!("({limit})")));
    done(lines.join("\n"), json!({"files": found}))
}

/// A path below a directory, as the tools take it.
pub(super) fn below(handle: &Handle, inner: &str) -> String {
    let whole = match handle.shown() {
        "." => inner.to_owned(),
        directory => format!("{}/{inner}", directory.trim_end_matches('/')),
    };
    whole.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::path::Access;
    use crate::tools::testing::{Scene, object};

    fn find(scene: &Scene, pattern: &str, path: &str) -> Result<String, String> {
        let given = object(json!({"pattern": pattern, "path": path}));
        run(&scene.handle(path, Access::Read), given).map(|o| o.text).map_err(|e| e.to_string())
    }

    fn scene() -> Scene {
        let scene = Scene::new();
        for file in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.ts", "target/e.rs", ".github/f.rs", ".git/g.rs"] {
            scene.put(file, "");
        }
        scene.put(".gitignore", "/target\n*.ts\n");
        scene.put("src/deep/.ignore", "c.rs\n!x.ts\n");
        scene.put("src/deep/x.ts", "");
        scene
    }

    #[test]
    fn files_are_found_by_pattern_and_ignore_files_are_honoured() {
        let scene = scene();
        for (pattern, path, expected) in [
            ("*.rs", ".", ".github/f.rs\na.rs\nsrc/b.rs"),
            ("src/*.rs", ".", "src/b.rs"),
            ("**/*.ts", ".", "src/deep/x.ts"),
            ("*.{rs,ts}", "src", "src/b.rs\nsrc/deep/x.ts"),
            ("*.ts", "src", "src/deep/x.ts"),
            ("nothing", ".", "no file matches `nothing`"),
        ] {
            assert_eq!(find(&scene, pattern, path).as_deref(), Ok(expected), "{pattern} in {path}");
        }
    }

    #[test]
    fn a_pattern_that_leads_outside_or_is_broken_is_refused() {
        let scene = scene();
        for (pattern, part) in [("/etc/*", "leads outside"), ("../*", "leads outside"), ("a[", "cannot be used")] {
            let error = find(&scene, pattern, ".").unwrap_err();
            assert!(error.contains(part), "{pattern}: {error}");
        }
    }

    #[test]
    fn links_are_listed_and_not_followed() {
        let scene = Scene::new();
        std::os::unix::fs::symlink("/etc", scene.path("out")).unwrap();
        std::os::unix::fs::symlink(".", scene.path("self")).unwrap();
        assert_eq!(find(&scene, "**", ".").unwrap(), "out\nself");
        assert_eq!(find(&scene, "passwd", ".").unwrap(), "no file matches `passwd`");
    }

    #[test]
    fn i2_an_ignore_file_that_is_a_pipe_does_not_block() {
        let scene = Scene::new();
        nix::unistd::mkfifo(&scene.path(".gitignore"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        scene.put("a", "");
        assert_eq!(find(&scene, "a", ".").unwrap(), "a");
    }
}
