//! `Read`: a file, or a range of its lines.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{LARGE, PROBE, is_binary};
use crate::facts::path::{Access, Handle, Kind};
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::tools::{PathTool, arguments, done, failed};

const MAX_OUTPUT: usize = 128 * 1024;
/// Of which this much is for the file's own text, and the rest for the note below it.
const MAX_TEXT: usize = MAX_OUTPUT - 512;
/// How far into a file a range may start, in bytes.
const FARTHEST: u64 = 1 << 30;

/// `Read`.
pub fn read() -> Arc<dyn Tool> {
    let definition = Definition {
        name: "Read".into(),
        description: "Reads a text file. Without `offset` and `limit` the whole file, up to 128 KB; a note below the \
            text says how to go on. Files over 10 MB need `offset` or `limit`."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace"},
                "offset": {"type": "integer", "minimum": 1, "description": "The first line to read; the file's first is 1"},
                "limit": {"type": "integer", "minimum": 1, "description": "The number of lines to read"}
            },
            "required": ["path"],
            "additionalProperties": false
        }),
        sensitivity: Sensitivity::Safe,
        groups: &[],
        subjects: &[Subject::Path { argument: "path", access: Access::Read }],
        max_output: MAX_OUTPUT,
        upstream: None,
    };
    Arc::new(PathTool { definition, run })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(rename = "path")]
    _path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

fn run(handle: &Handle, given: Map<String, Value>) -> Result<Output, ToolError> {
    let given: Arguments = arguments(given)?;
    if handle.kind() == Some(Kind::Directory) {
        return Err(failed(format!("`{}` is a directory: use ListDir", handle.shown())));
    }
    let (file, _) = handle.open_file()?;
    let size = file.metadata().map_err(|e| broken(handle, &e))?.len();
    if size > LARGE && given.offset.is_none() && given.limit.is_none() {
        return Err(failed(format!(
            "`{}` is {size} bytes long: files over 10 MB are read in parts, with `offset` and `limit`",
            handle.shown()
        )));
    }
    let mut reader = BufReader::with_capacity(PROBE.max(64 * 1024), file);
    if is_binary(reader.fill_buf().map_err(|e| broken(handle, &e))?) {
        return done(
            format!("(`{}` is a binary file of {size} bytes; its content is not shown)", handle.shown()),
            json!({"binary": true, "size": size}),
        );
    }
    let first = given.offset.unwrap_or(1);
    let range = Range { first, count: given.limit.unwrap_or(u64::MAX), count_all: size <= LARGE };
    let excerpt = range.read(reader).map_err(|e| broken(handle, &e))?;
    present(handle, size, first, &excerpt)
}

fn broken(handle: &Handle, error: &io::Error) -> ToolError {
    failed(format!("`{}` could not be read: {error}", handle.shown()))
}

fn present(handle: &Handle, size: u64, first: u64, excerpt: &Excerpt) -> Result<Output, ToolError> {
    if excerpt.too_far {
        return Err(failed(format!("line {first} of `{}` lies more than 1 GB into the file", handle.shown())));
    }
    if size == 0 {
        return done(format!("(`{}` is empty)", handle.shown()), json!({"lines": 0}));
    }
    if excerpt.bytes.is_empty() {
        let lines = excerpt.total.unwrap_or_default();
        return Err(failed(format!("`{}` has {lines} lines, and line {first} is beyond its end", handle.shown())));
    }
    let text = String::from_utf8_lossy(&excerpt.bytes);
    let mut notes = Vec::new();
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
    }
    if let Some(next) = excerpt.next {
        let total = excerpt.total.map_or_else(|| "more than 10 MB".to_owned(), |total| format!("{total} lines"));
        notes.push(if excerpt.cut_line {
            format!("line {first} is too long and was cut; the file has {total}: go on with offset={next}")
        } else {
            format!("lines {first} to {} of {total}: go on with offset={next}", next - 1)
        });
    }
    let mut shown = text.into_owned();
    if !notes.is_empty() {
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown.push_str(&format!("({})", notes.join("; ")));
    }
    done(shown, json!({"first": first, "next": excerpt.next, "lines": excerpt.total, "size": size}))
}

struct Range {
    first: u64,
    count: u64,
    count_all: bool,
}

#[derive(Default)]
struct Excerpt {
    bytes: Vec<u8>,
    /// The line to go on with, where there is one.
    next: Option<u64>,
    /// Not even the first line fits.
    cut_line: bool,
    too_far: bool,
    /// How many lines the file has, where all of it was read.
    total: Option<u64>,
}

impl Range {
    /// Reads in pieces, so that neither a long line nor a long way to the range takes memory.
    fn read(&self, mut reader: impl BufRead) -> io::Result<Excerpt> {
        let mut excerpt = Excerpt::default();
        let last = self.first.saturating_add(self.count);
        let (mut line, mut passed, mut open_line) = (1, 0u64, false);
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let length = chunk.len();
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                if excerpt.next.is_none() && line >= self.first && line < last {
                    excerpt.take(piece, line);
                } else if line == last {
                    excerpt.next.get_or_insert(line);
                }
                open_line = !piece.ends_with(b"\n");
                line += u64::from(!open_line);
            }
            reader.consume(length);
            passed += length as u64;
            if excerpt.next.is_some() && !self.count_all {
                return Ok(excerpt);
            }
            if passed > FARTHEST && excerpt.bytes.is_empty() {
                excerpt.too_far = true;
                return Ok(excerpt);
            }
        }
        excerpt.total = Some(if open_line { line } else { line - 1 });
        // Nothing is left after a line that was cut and is the last.
        excerpt.next = excerpt.next.filter(|next| excerpt.total.is_some_and(|total| *next <= total));
        Ok(excerpt)
    }
}

impl Excerpt {
    fn take(&mut self, piece: &[u8], line: u64) {
        if self.bytes.len() + piece.len() <= MAX_TEXT {
            self.bytes.extend_from_slice(piece);
            return;
        }
        match self.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                self.bytes.truncate(end + 1);
                self.next = Some(line);
            }
            None => {
                let room = MAX_TEXT - self.bytes.len();
                self.bytes.extend(piece.iter().take(room));
                self.cut_line = true;
                self.next = Some(line + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::{Scene, object};

    fn read(scene: &Scene, given: Value) -> Result<String, String> {
        let handle = scene.handle(given["path"].as_str().unwrap(), Access::Read);
        run(&handle, object(given)).map(|output| output.text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_or_a_range_of_lines() {
        let scene = Scene::new();
        scene.put("a", "one\ntwo\nthree");
        scene.put("empty", "");
        for (given, expected) in [
            (json!({"path": "a"}), "one\ntwo\nthree"),
            (json!({"path": "a", "limit": 2}), "one\ntwo\n(lines 1 to 2 of 3 lines: go on with offset=3)"),
            (json!({"path": "a", "offset": 2, "limit": 1}), "two\n(lines 2 to 2 of 3 lines: go on with offset=3)"),
            (json!({"path": "a", "offset": 3}), "three"),
            (json!({"path": "a", "offset": 2, "limit": u64::MAX}), "two\nthree"),
            (json!({"path": "empty"}), "(`empty` is empty)"),
        ] {
            assert_eq!(read(&scene, given.clone()).as_deref(), Ok(expected), "{given}");
        }
        let beyond = read(&scene, json!({"path": "a", "offset": 4})).unwrap_err();
        assert!(beyond.contains("has 3 lines"), "{beyond}");
    }

    #[test]
    fn i6_a_long_file_is_cut_and_says_how_to_go_on() {
        let scene = Scene::new();
        let lines: Vec<String> = (1..=20_000).map(|n| format!("line number {n}\n")).collect();
        scene.put("long", lines.concat());
        let (mut offset, mut whole) = (1, String::new());
        loop {
            let text = read(&scene, json!({"path": "long", "offset": offset})).unwrap();
            assert!(text.len() <= MAX_OUTPUT, "{} bytes", text.len());
            match text.rsplit_once("go on with offset=") {
                Some((shown, next)) => {
                    whole.push_str(&shown[..shown.rfind('(').unwrap()]);
                    offset = next.trim_end_matches(')').parse().unwrap();
                }
                None => break whole.push_str(&text),
            }
        }
        assert_eq!(whole, lines.concat(), "going on by the notes reads everything once");
    }

    #[test]
    fn i6_a_line_that_is_too_long_is_cut_and_passed() {
        let scene = Scene::new();
        scene.put("wide", format!("{}\nnext\n", "x".repeat(300_000)));
        let text = read(&scene, json!({"path": "wide"})).unwrap();
        assert!(text.len() <= MAX_OUTPUT && text.ends_with("go on with offset=2)"), "{}", &text[text.len() - 90..]);
        assert_eq!(read(&scene, json!({"path": "wide", "offset": 2})).unwrap(), "next\n");
    }

    #[test]
    fn large_files_need_a_range_and_binary_files_are_named() {
        let scene = Scene::new();
        scene.put("large", "a line\n".repeat(1_600_000));
        assert!(read(&scene, json!({"path": "large"})).unwrap_err().contains("in parts"));
        let part = read(&scene, json!({"path": "large", "offset": 1_500_000, "limit": 1})).unwrap();
        assert!(part.starts_with("a line\n(lines 1500000 to 1500000"), "{part}");
        scene.put("binary", b"\x7fELF\0\0");
        assert!(read(&scene, json!({"path": "binary"})).unwrap().contains("binary file of 6 bytes"));
        scene.put("latin", b"caf\xe9\n");
        assert!(read(&scene, json!({"path": "latin"})).unwrap().contains("not UTF-8"));
    }

    #[test]
    fn what_is_no_file_is_said() {
        let scene = Scene::new();
        scene.put("d/x", "");
        assert!(read(&scene, json!({"path": "d"})).unwrap_err().contains("use ListDir"));
        assert_eq!(read(&scene, json!({"path": "none"})).unwrap_err(), "`none` does not exist");
    }
}
