//! `Edit`: exact replacement, with errors that help.

use std::io::Read;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::LARGE;
use crate::facts::path::{Access, Handle};
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::tools::{PathTool, arguments, count, done, failed};

/// What comparing lines with a text that was not found may cost, in pairs of bytes.
const MOST_COMPARED: usize = 20_000_000;
/// Longer lines are not compared, in bytes.
const LONGEST_COMPARED: usize = 300;
/// Places that are named.
const MOST_NAMED: usize = 10;

/// `Edit`.
pub fn edit() -> Arc<dyn Tool> {
    let definition = Definition {
        name: "Edit".into(),
        description: "Replaces a text in a file. `old_string` must be the exact text, white space included, and must \
            occur once, unless `replace_all` is set."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace"},
                "old_string": {"type": "string", "minLength": 1, "description": "The exact text to replace"},
                "new_string": {"type": "string", "description": "The text to put in its place"},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence"}
            },
            "required": ["path", "old_string", "new_string"],
            "additionalProperties": false
        }),
        sensitivity: Sensitivity::Sensitive,
        groups: &["edit"],
        subjects: &[Subject::Path { argument: "path", access: Access::Write }],
        max_output: 8 * 1024,
        upstream: None,
    };
    Arc::new(PathTool { definition, run })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(rename = "path")]
    _path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

fn run(handle: &Handle, given: Map<String, Value>) -> Result<Output, ToolError> {
    let given: Arguments = arguments(given)?;
    if given.old_string == given.new_string {
        return Err(failed("`old_string` and `new_string` are the same, so there is nothing to change"));
    }
    let (file, stamp) = handle.open_file()?;
    let text = load(handle, file)?;
    let places = lines_of(&text, &given.old_string);
    match places.as_slice() {
        [] => return Err(failed(not_found(handle, &text, &given.old_string))),
        [_] => {}
        several if given.replace_all => {
            let grown = text.len() + several.len() * given.new_string.len();
            if grown as u64 > 2 * LARGE {
                return Err(failed("the file would grow beyond what can be edited; replace less at a time"));
            }
        }
        several => return Err(failed(not_unique(handle, several))),
    }
    let new = text.replace(&given.old_string, &given.new_string);
    handle.write(new.as_bytes(), Some(stamp))?;
    let what = count(places.len(), "occurrence", "occurrences");
    let summary = format!("replaced {what} in `{}`, line {}", handle.shown(), named(&places));
    done(summary, json!({"replaced": places.len()}))
}

fn load(handle: &Handle, file: std::fs::File) -> Result<String, ToolError> {
    let mut bytes = Vec::new();
    file.take(LARGE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(format!("`{}` could not be read: {error}", handle.shown())))?;
    if bytes.len() as u64 > LARGE {
        return Err(failed(format!("`{}` is over 10 MB, and too large to be edited", handle.shown())));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(format!("`{}` is no UTF-8 text (byte {at}), and cannot be edited", handle.shown()))
    })
}

fn not_unique(handle: &Handle, lines: &[usize]) -> String {
    format!(
        "`old_string` occurs {} times in `{}`, on lines {}: give more of the text around it, or set `replace_all`",
        lines.len(),
        handle.shown(),
        named(lines)
    )
}

/// Says what in the file comes closest to a text that is not there.
fn not_found(handle: &Handle, text: &str, wanted: &str) -> String {
    let mut message = format!("`old_string` was not found in `{}`", handle.shown());
    let unix = |text: &str| text.replace("\r\n", "\n");
    if unix(text).contains(&unix(wanted)) {
        let ends = if text.contains("\r\n") { "CRLF (\\r\\n)" } else { "LF (\\n)" };
        message.push_str(&format!(": the file's lines end in {ends}, and those of `old_string` otherwise"));
    } else if let Some(line) = same_but_for_space(text, wanted) {
        message
            .push_str(&format!(": apart from white space it is at line {line}; copy the text exactly as it is there"));
    } else {
        let near = nearest(text, wanted);
        if near.is_empty() {
            message.push_str(": no line is like it; read the file again");
        } else {
            message.push_str("; the nearest lines are\n");
            message.push_str(&near.join("\n"));
        }
    }
    message
}

/// The line where the same lines stand, were they indented and spaced alike.
fn same_but_for_space(text: &str, wanted: &str) -> Option<usize> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = wanted.trim().lines().map(squeezed).collect();
    let lines: Vec<String> = text.lines().map(squeezed).collect();
    if wanted.is_empty() || wanted.len() > 200 {
        return None;
    }
    lines.windows(wanted.len()).position(|window| window == wanted).map(|at| at + 1)
}

/// The lines that are most like the first line of a text, with their numbers.
fn nearest(text: &str, wanted: &str) -> Vec<String> {
    let Some(word) = wanted.lines().map(str::trim).find(|line| !line.is_empty()) else { return Vec::new() };
    if word.len() > LONGEST_COMPARED {
        return Vec::new();
    }
    let mut left = MOST_COMPARED;
    let lines = text.lines().map(str::trim).filter(|line| line.len() <= LONGEST_COMPARED);
    let affordable = lines.take_while(|line| {
        left = left.saturating_sub(line.len() * word.len());
        left > 0
    });
    let mut candidates: Vec<&str> = affordable.collect();
    candidates.sort_unstable();
    candidates.dedup();
    similar::get_close_matches(word, &candidates, 3, 0.6)
        .into_iter()
        .filter_map(|near| {
            let at = text.lines().position(|line| line.trim() == near)?;
            Some(format!("{}: {}", at + 1, text.lines().nth(at)?))
        })
        .collect()
}

/// The line that each occurrence begins on, in one pass over the text.
fn lines_of(text: &str, wanted: &str) -> Vec<usize> {
    let (mut line, mut passed) = (1, 0);
    let occurrences = text.match_indices(wanted).map(|(at, _)| {
        line += text.get(passed..at).map_or(0, |part| part.bytes().filter(|byte| *byte == b'\n').count());
        passed = at;
        line
    });
    occurrences.collect()
}

fn named(lines: &[usize]) -> String {
    let mut named: Vec<String> = lines.iter().take(MOST_NAMED).map(usize::to_string).collect();
    if lines.len() > MOST_NAMED {
        named.push(format!("and {} more", lines.len() - MOST_NAMED));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Scene, object};

    fn edit(scene: &Scene, old: &str, new: &str, all: bool) -> Result<String, String> {
        let given = json!({"path": "f", "old_string": old, "new_string": new, "replace_all": all});
        let output = run(&scene.handle("f", Access::Write), object(given));
        output.map(|output| output.text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_exact_text_is_replaced_once_or_everywhere() {
        let scene = Scene::new();
        scene.put("f", "a\nfoo\nb\nfoo\n");
        assert_eq!(edit(&scene, "a\nfoo", "A\nbar", false).unwrap(), "replaced 1 occurrence in `f`, line 1");
        assert_eq!(scene.get("f"), "A\nbar\nb\nfoo\n");
        scene.put("f", "foo foo\nfoo\n");
        let ambiguous = edit(&scene, "foo", "x", false).unwrap_err();
        assert!(ambiguous.contains("occurs 3 times") && ambiguous.contains("lines 1, 1, 2"), "{ambiguous}");
        assert_eq!(edit(&scene, "foo", "x", true).unwrap(), "replaced 3 occurrences in `f`, line 1, 1, 2");
        assert_eq!(scene.get("f"), "x x\nx\n");
        assert!(edit(&scene, "x", "x", true).is_err(), "nothing to change");
    }

    #[test]
    fn a_text_that_is_not_there_is_answered_with_what_is() {
        let scene = Scene::new();
        scene.put("f", "fn main() {\n    let total = compute(1);\n}\n");
        for (old, part) in [
            ("let  total = compute(1);", "apart from white space it is at line 2"),
            ("fn main() {\nlet total = compute(1);", "it is at line 1"),
            ("let totl = compute(2);", "2:     let total = compute(1);"),
            ("zzzzzz", "no line is like it"),
        ] {
            let error = edit(&scene, old, "", false).unwrap_err();
            assert!(error.contains(part), "{old:?}: {error}");
        }
        scene.put("f", "a\r\nb\r\n");
        assert!(edit(&scene, "a\nb", "c", false).unwrap_err().contains("CRLF"));
    }

    #[test]
    fn i2_large_files_are_answered_in_time() {
        let scene = Scene::new();
        let began = std::time::Instant::now();
        scene.put("f", "x\n".repeat(4_000_000));
        let error = edit(&scene, "x", "y", false).unwrap_err();
        assert!(error.contains("occurs 4000000 times") && error.contains("and 3999990 more"), "{error}");
        let lines: Vec<String> = (0..20_000).map(|n| format!("{}{n}\n", "ab".repeat(140))).collect();
        scene.put("f", lines.concat());
        assert!(edit(&scene, &"ba".repeat(145), "y", false).is_err());
        assert!(began.elapsed().as_secs() < 30, "editing took {:?}", began.elapsed());
    }

    #[test]
    fn what_is_no_text_is_not_edited() {
        let scene = Scene::new();
        scene.put("f", b"caf\xe9");
        assert!(edit(&scene, "caf", "x", false).unwrap_err().contains("byte 3"));
        std::fs::remove_file(scene.path("f")).unwrap();
        assert_eq!(edit(&scene, "a", "b", false).unwrap_err(), "`f` does not exist");
    }
}
