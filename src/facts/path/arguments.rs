//! Paths in the arguments of tools that do not say which of their arguments are paths: found by the schema, by the names of
//! arguments, and by what values look like.

use std::path::Path;

use serde_json::{Map, Value};

use super::Access;

/// A value in a call's arguments that is a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentPath {
    /// Where it stands, as a JSON Pointer; for a name in an object, the pointer to its value.
    pub pointer: String,
    /// Absolute, or relative to the working directory.
    pub path: String,
    pub access: Access,
}

/// Names of arguments that hold a path and nothing else.
const CERTAIN: &[&str] = &[
    "path",
    "paths",
    "pathname",
    "filepath",
    "filepaths",
    "filename",
    "filenames",
    "file",
    "files",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "folders",
    "cwd",
    "workdir",
    "pwd",
];
/// Names of arguments that may hold a path: it counts where the value looks like one.
const POSSIBLE: &[&str] = &[
    "src",
    "source",
    "sources",
    "dst",
    "dest",
    "destination",
    "target",
    "root",
    "roots",
    "uri",
    "uris",
    "location",
    "from",
    "to",
    "input",
    "inputs",
    "output",
    "outputs",
    "out",
    "workspace",
    "project",
    "repo",
    "repository",
    "base",
    "home",
];
/// Arguments that are read, and those that are written, whatever the tool does besides.
const READ_FROM: &[&str] = &["src", "source", "sources", "from", "input", "inputs", "cwd", "workdir", "pwd"];
const WRITTEN_TO: &[&str] = &["dst", "dest", "destination", "to", "output", "outputs", "out"];
/// What a schema says of a text that names a file (`format`).
const FORMATS: &[&str] = &["path", "file", "file-path", "filepath", "directory", "directory-path", "dir-path"];
const URI_FORMATS: &[&str] = &["uri", "uri-reference", "iri", "iri-reference", "url"];
/// First names of absolute paths; other texts that begin with a slash may be anything.
const TOPS: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    "Users",
    "Applications",
    "Library",
    "System",
    "Volumes",
    "private",
    "workspace",
    "workspaces",
];
/// Schemas that are looked at for one value: references lead in circles.
const MOST_SCHEMAS: usize = 64;

/// How sure it is that a text is a path before one looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hint {
    None,
    Possible,
    Certain,
}

/// Every path among the arguments. `access` is what the tool does with a path where its name does not tell; `home` is what
/// `~` stands for.
pub fn path_arguments(
    schema: &Value,
    arguments: &Map<String, Value>,
    access: Access,
    home: &Path,
) -> Vec<ArgumentPath> {
    let mut search = Search { schema, access, home, found: Vec::new() };
    search.object(&[schema], arguments, "", Hint::None, access);
    search.found
}

struct Search<'s> {
    schema: &'s Value,
    access: Access,
    home: &'s Path,
    found: Vec<ArgumentPath>,
}

impl<'s> Search<'s> {
    fn object(&mut self, schemas: &[&'s Value], object: &Map<String, Value>, at: &str, outer: Hint, access: Access) {
        let schemas = self.expand(schemas);
        for (name, value) in object {
            let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            let own: Vec<&Value> = schemas.iter().filter_map(|schema| member(schema, name)).collect();
            let (hint, of_name) = (by_name(name), access_by_name(name));
            // Of files by name, such as `{"files": {"a/b": "text"}}`, the names are the paths.
            if let Some(path) =
                self.path(name, if outer == Hint::Certain && name.contains('/') { outer } else { Hint::None })
            {
                self.found.push(ArgumentPath { pointer: pointer.clone(), path, access });
            }
            self.value(&own, value, &pointer, hint, of_name.unwrap_or(self.access));
        }
    }

    fn value(&mut self, schemas: &[&'s Value], value: &Value, at: &str, hint: Hint, access: Access) {
        match value {
            Value::String(text) => {
                let hint = self.expand(schemas).into_iter().map(by_schema).fold(hint, Hint::max);
                if let Some(path) = self.path(text, hint) {
                    self.found.push(ArgumentPath { pointer: at.to_owned(), path, access });
                }
            }
            Value::Array(items) => {
                let expanded = self.expand(schemas);
                let inner: Vec<&Value> = expanded.iter().filter_map(|schema| schema.get("items")).collect();
                for (index, item) in items.iter().enumerate() {
                    self.value(&inner, item, &format!("{at}/{index}"), hint, access);
                }
            }
            Value::Object(object) => self.object(schemas, object, at, hint, access),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The schemas with all that they refer to and are put together of.
    fn expand(&self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut open: Vec<&Value> = schemas.to_vec();
        let mut all: Vec<&Value> = Vec::new();
        while let Some(schema) = open.pop() {
            if all.len() == MOST_SCHEMAS || all.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            all.push(schema);
            let reference = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            open.extend(reference.and_then(|pointer| self.schema.pointer(pointer)));
            let parts = ["anyOf", "oneOf", "allOf"].iter().filter_map(|part| schema.get(*part)?.as_array());
            open.extend(parts.flatten());
        }
        all
    }

    /// The path that a text is, if it is one.
    fn path(&self, text: &str, hint: Hint) -> Option<String> {
        // An option with its value.
        let text = match text.split_once('=') {
            Some((option, value)) if option.starts_with('-') => value,
            _ => text,
        };
        if let Some(path) = file_uri(text) {
            return Some(path);
        }
        if text.is_empty() || has_scheme(text) {
            return None;
        }
        let expanded = |rest: &str| format!("{}{rest}", self.home.display());
        if let Some(rest) = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            return (hint > Hint::None || !rest.is_empty()).then(|| expanded(rest));
        }
        let path = match hint {
            Hint::Certain => true,
            Hint::Possible => looks_possible(text),
            Hint::None => looks_certain(text),
        };
        path.then(|| text.to_owned())
    }
}

/// What an object's schema says of one of its members.
fn member<'v>(schema: &'v Value, name: &str) -> Option<&'v Value> {
    let declared = schema.get("properties").and_then(|properties| properties.get(name));
    declared.or_else(|| schema.get("additionalProperties"))
}

fn by_schema(schema: &Value) -> Hint {
    match schema.get("format").and_then(Value::as_str) {
        Some(format) if FORMATS.contains(&format) => Hint::Certain,
        Some(format) if URI_FORMATS.contains(&format) => Hint::Possible,
        _ => Hint::None,
    }
}

/// By the last word of a name, or the last two as one: `outputFile`, `target_dir`, `repo-path`, `fileName`.
fn by_name(name: &str) -> Hint {
    let words = words(name);
    let last = words.last().map(String::as_str).unwrap_or_default();
    let two = words.get(words.len().saturating_sub(2)..).unwrap_or_default().concat();
    if CERTAIN.contains(&last) || CERTAIN.contains(&two.as_str()) {
        Hint::Certain
    } else if POSSIBLE.contains(&last) {
        Hint::Possible
    } else {
        Hint::None
    }
}

/// By any word of a name: `outputFile` is written, `src_path` is read.
fn access_by_name(name: &str) -> Option<Access> {
    let words = words(name);
    let any = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
    if any(WRITTEN_TO) {
        Some(Access::Write)
    } else if any(READ_FROM) {
        Some(Access::Read)
    } else {
        None
    }
}

fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before_lower) {
            words.push(String::new());
        }
        before_lower = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The path of a `file:` URI on this machine.
fn file_uri(text: &str) -> Option<String> {
    let scheme = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = text.get(scheme.len()..)?;
    let path = match rest.strip_prefix("//") {
        // What comes before the path is a host; whatever it is, the path is meant.
        Some(with_host) => with_host.find('/').and_then(|at| with_host.get(at..)).unwrap_or("/"),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Some(percent_decoded(path))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `https:`, `git+ssh:`, `data:`; a drive of Windows is none.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// A text that nothing but its look makes a path.
fn looks_certain(text: &str) -> bool {
    let plain = !text.contains(|c: char| c.is_control());
    let first = text.strip_prefix('/').map(|rest| rest.trim_start_matches('/').split('/').next().unwrap_or_default());
    let absolute = first.is_some_and(|top| TOPS.contains(&top));
    let upwards = text == ".." || text.starts_with("../") || text.starts_with("./") || text.contains("/../");
    plain && text.len() < 4096 && (absolute || upwards && !text.contains(char::is_whitespace))
}

/// A text that is a path if its name says that it may be one.
fn looks_possible(text: &str) -> bool {
    let one_word = !text.contains(|c: char| c.is_control() || c.is_whitespace());
    looks_certain(text) || text.starts_with('/') || (one_word && (text.contains('/') || text.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: Value, arguments: Value) -> Vec<(String, String)> {
        let found = path_arguments(&schema, arguments.as_object().unwrap(), Access::Write, Path::new("/home/a"));
        found.into_iter().map(|found| (found.pointer, found.path)).collect()
    }

    fn paths(arguments: Value) -> Vec<String> {
        found(json!({}), arguments).into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn a_name_that_means_a_path_makes_its_value_one() {
        for name in
            ["path", "file_path", "filePath", "FILE", "outputDir", "repo-path", "cwd", "fileName", "target.folder"]
        {
            assert_eq!(paths(json!({name: "notes"})), ["notes"], "{name}");
        }
        for name in ["query", "profile", "pathology", "directive", "text", "filetype", "cd"] {
            assert_eq!(paths(json!({name: "notes"})), [] as [&str; 0], "{name}");
        }
    }

    #[test]
    fn a_name_that_may_mean_a_path_needs_a_value_that_looks_like_one() {
        for (value, is_path) in [
            ("a/b", true),
            ("/x", true),
            (".env", true),
            ("..", true),
            ("main", false),
            ("two words/and more", false),
            ("https://x/y", false),
            ("git@host:a/b", true),
            ("", false),
            ("C:/x", true),
        ] {
            assert_eq!(!paths(json!({"source": value})).is_empty(), is_path, "{value}");
        }
    }

    #[test]
    fn a_value_that_looks_like_a_path_is_one_whatever_its_name() {
        for (value, path) in [
            ("/etc/passwd", Some("/etc/passwd")),
            ("//etc/passwd", Some("//etc/passwd")),
            ("../x", Some("../x")),
            ("a/../../x", Some("a/../../x")),
            ("~/.ssh/id_rsa", Some("/home/a/.ssh/id_rsa")),
            ("--config=/etc/x", Some("/etc/x")),
            ("file:///etc/a%20b?x#y", Some("/etc/a b")),
            ("FILE://host/etc/x", Some("/etc/x")),
            ("file:/etc/x", Some("/etc/x")),
            ("/api/v1/users", None),
            ("/regex/", None),
            ("a/b", None),
            ("~", None),
            ("hello", None),
            ("https://h/etc/passwd", None),
            ("see a/../b for more", None),
            ("line\n/etc/passwd", None),
        ] {
            assert_eq!(paths(json!({"q": value})).first().map(String::as_str), path, "{value}");
        }
    }

    #[test]
    fn arrays_and_objects_are_looked_into() {
        let arguments = json!({
            "paths": ["a", ["b"]],
            "edits": [{"file": "c", "text": "d"}],
            "options": {"nested": {"output_dir": "e"}},
            "files": {"f/g": "content", "plain": "content"},
            "n": 3, "none": null
        });
        let expected = [
            ("/paths/0", "a"),
            ("/paths/1/0", "b"),
            ("/edits/0/file", "c"),
            ("/options/nested/output_dir", "e"),
            ("/files/f~1g", "f/g"),
        ];
        let found = found(json!({}), arguments);
        let found: Vec<(&str, &str)> = found.iter().map(|(at, path)| (at.as_str(), path.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_schema_says_what_a_value_is_through_references_and_alternatives() {
        let schema = json!({
            "properties": {
                "a": {"type": "string", "format": "path"},
                "b": {"$ref": "#/$defs/place"},
                "c": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]},
                "d": {"type": "array", "items": {"format": "file-path"}},
                "e": {"format": "uri"},
                "f": {"additionalProperties": {"format": "directory"}},
                "g": {"$ref": "#/properties/g"}
            },
            "$defs": {"place": {"type": "string", "format": "directory-path"}}
        });
        let arguments =
            json!({"a": "1", "b": "2", "c": "3", "d": ["4"], "e": "file:///5", "f": {"x": "6"}, "g": "7", "h": "8"});
        let paths: Vec<String> = found(schema.clone(), arguments).into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["1", "2", "3", "4", "/5", "6"]);
        assert_eq!(found(schema, json!({"e": "https://x/y"})), []);
    }

    #[test]
    fn what_is_done_with_a_path_is_told_by_its_name_or_by_the_tool() {
        let arguments = json!({"src_path": "a", "dest": "b/c", "path": "d", "outputFile": "e"});
        let access = |default| -> Vec<Access> {
            let found = path_arguments(&json!({}), arguments.as_object().unwrap(), default, Path::new("/"));
            found.into_iter().map(|found| found.access).collect()
        };
        assert_eq!(access(Access::Read), [Access::Read, Access::Write, Access::Read, Access::Write]);
        assert_eq!(access(Access::Write), [Access::Read, Access::Write, Access::Write, Access::Write]);
    }

    #[test]
    fn i2_odd_arguments_are_only_arguments() {
        for value in ["%", "file:", "file:%2", "file://", "-=", "=", "~", "\u{0}", ":", "é:x"] {
            let _ = paths(json!({"path": value, value: value, "q": [value]}));
        }
        assert_eq!(paths(json!({"path": "a\u{0}b"})), ["a\u{0}b"], "for the guard to refuse");
    }
}
