//! `Grep`: files by content, with ripgrep's engine, in process. Reads are buffered: a file that is cut short under a
//! memory map would end the gateway.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use globset::GlobMatcher;
use grep::matcher::Matcher;
use grep::regex::{RegexMatcher, RegexMatcherBuilder};
use grep::searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::glob::below;
use super::name_pattern;
use super::report::{Line, Report, window};
use crate::facts::path::{Handle, Kind, Opened, Walk};
use crate::registry::{Definition, Output, Sensitivity, Subject, Tool, ToolError};
use crate::tools::{PathTool, arguments, done, failed};

/// Matches that are shown, in all.
const MOST_MATCHES: usize = 500;
/// Of these, in one file of data, markup or logs.
const MOST_IN_DATA: usize = 10;
/// Bytes of one file that are searched.
const MOST_OF_FILE: u64 = 256 * 1024 * 1024;
/// Bytes that are searched in all.
const MOST_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// How large a compiled pattern may be, and the longest line that it is looked for in, in bytes. A search of one line
/// takes at most time in proportion to both together, and cannot be stopped within; the line is also the memory it takes.
const PATTERNS: &[(usize, usize)] = &[(32 * 1024, 8 * 1024 * 1024), (128 * 1024, 1024 * 1024), (512 * 1024, 96 * 1024)];
/// How long one call searches.
const LONGEST: Duration = Duration::from_secs(20);
/// Files whose matches are seldom what is looked for, by extension.
const DATA: &[&str] = &[
    "csv", "htm", "html", "ipynb", "json", "jsonl", "lock", "log", "map", "md", "ndjson", "out", "rst", "svg", "tsv",
    "txt", "xml",
];

/// `Grep`.
pub fn grep() -> Arc<dyn Tool> {
    let definition = Definition {
        name: "Grep",
        description: "Searches file contents for a regular expression (Rust syntax, line by line). What ignore files \
            name, binary files and protected files are left out.",
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "maxLength": 10000, "description": "What to look for"},
                "path": {"type": "string", "description": "A file, or the directory to search; the working directory unless given"},
                "include": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Only files whose name matches, such as `*.rs`"},
                "context": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Lines to show around each match"},
                "ignore_case": {"type": "boolean", "description": "Take upper and lower case as the same"},
                "literal": {"type": "boolean", "description": "Take the pattern as plain text"}
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
    include: Option<String>,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
}

fn run(handle: &Handle, given: Map<String, Value>) -> Result<Output, ToolError> {
    let given: Arguments = arguments(given)?;
    let mut search = Search::new(&given)?;
    let include = given.include.as_deref().map(name_pattern).transpose()?;
    if handle.kind() == Some(Kind::Directory) {
        let walk = handle.walk(true, usize::MAX)?;
        search.directory(handle, walk, include.as_ref());
    } else {
        let (file, _) = handle.open_file()?;
        search.file(handle.shown().to_owned(), file);
    }
    let report = &search.report;
    done(report.text(&given.pattern), json!({"matches": report.matches(), "files": report.files()}))
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    until: Instant,
    bytes_left: u64,
    report: Report,
}

impl Search {
    fn new(given: &Arguments) -> Result<Self, ToolError> {
        let (matcher, longest_line) = pattern(given)?;
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(given.context)
            .after_context(given.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(longest_line))
            .build();
        let until = Instant::now() + LONGEST;
        Ok(Search { matcher, searcher, until, bytes_left: MOST_BYTES, report: Report::default() })
    }

    fn directory(&mut self, handle: &Handle, mut walk: Walk, include: Option<&GlobMatcher>) {
        while let Some(entry) = walk.next() {
            if entry.kind == Kind::Directory && entry.protected {
                self.report.protected += 1;
            }
            if entry.kind != Kind::File || include.is_some_and(|include| !include.is_match(&entry.path)) {
                continue;
            }
            match walk.open(&entry) {
                Opened::File(file, _) => self.file(below(handle, &entry.path.to_string_lossy()), file),
                Opened::Protected => self.report.protected += 1,
                Opened::Unreadable => self.report.unreadable += 1,
            }
            if self.report.shown() >= MOST_MATCHES {
                self.report.limit(format!("stopped after {MOST_MATCHES} matches: use a narrower pattern or path"));
                break;
            }
            if self.is_late() {
                break;
            }
            if self.bytes_left == 0 {
                self.report.limit("stopped after 2 GB: use a narrower path or `include`".to_owned());
                break;
            }
        }
        if let Some(limit) = walk.limit() {
            self.report.limit(limit.to_owned());
        }
        if !walk.names_were_checked() {
            self.report.limit("there are too many files to see whether hard links lead to protected ones".to_owned());
        }
    }

    /// Whether the time is over, which the report then says.
    fn is_late(&mut self) -> bool {
        let late = Instant::now() >= self.until;
        if late {
            let seconds = LONGEST.as_secs();
            self.report.limit(format!("stopped after {seconds} s: use a simpler pattern or a narrower path"));
        }
        late
    }

    fn file(&mut self, name: String, file: File) {
        let most = MOST_OF_FILE.min(self.bytes_left);
        let mut reader = Counted { inner: file.take(most), until: self.until, bytes: 0 };
        let is_data = Path::new(&name)
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| DATA.iter().any(|data| extension.eq_ignore_ascii_case(data)));
        let most_shown = if is_data { MOST_IN_DATA } else { MOST_MATCHES };
        let mut hits = Hits {
            matcher: &self.matcher,
            lines: Vec::new(),
            most_shown: most_shown.min(MOST_MATCHES.saturating_sub(self.report.shown())),
            shown: 0,
            found: 0,
            binary: false,
        };
        let result = self.searcher.search_reader(&self.matcher, &mut reader, &mut hits);
        let Hits { lines, found, shown, binary, .. } = hits;
        let read = reader.bytes;
        self.bytes_left -= read.min(self.bytes_left);
        if binary {
            self.report.binary += 1;
            return;
        }
        if result.is_err() && !self.is_late() {
            self.report.unreadable += 1;
        } else if read == MOST_OF_FILE {
            self.report.limit(format!("only the first 256 MB of {name} were searched"));
        }
        if found > 0 {
            self.report.add(name, lines, shown, found);
        }
    }
}

/// The pattern, and the longest line that it may be looked for in.
fn pattern(given: &Arguments) -> Result<(RegexMatcher, usize), ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).case_insensitive(given.ignore_case).fixed_strings(given.literal);
    let mut refused = None;
    for (size, longest_line) in PATTERNS {
        match builder.size_limit(*size).dfa_size_limit(4 * size).build(&given.pattern) {
            Ok(matcher) => return Ok((matcher, *longest_line)),
            Err(error) => refused = Some(error),
        }
    }
    let why = refused.map(|error| error.to_string()).unwrap_or_default();
    Err(failed(format!("the pattern cannot be used: {why}; set `literal` for plain text")))
}

struct Counted {
    inner: std::io::Take<File>,
    until: Instant,
    bytes: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if Instant::now() >= self.until {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let length = self.inner.read(buffer)?;
        self.bytes += length as u64;
        Ok(length)
    }
}

/// What one file has to show.
struct Hits<'a> {
    matcher: &'a RegexMatcher,
    lines: Vec<Line>,
    most_shown: usize,
    shown: usize,
    /// Lines that match, shown or not.
    found: usize,
    binary: bool,
}

impl Sink for Hits<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.found += 1;
        if self.shown < self.most_shown {
            self.shown += 1;
            let at = self.matcher.find(hit.bytes()).ok().flatten().map_or(0, |found| found.start());
            let number = hit.line_number().unwrap_or_default();
            self.lines.push(Line { number, hit: true, text: window(hit.bytes(), at) });
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> Result<bool, Self::Error> {
        // Beyond the last match that is shown, only what follows it belongs to it.
        let belongs = self.shown == self.found && *near.kind() != SinkContextKind::Before;
        if self.shown < self.most_shown || belongs {
            let number = near.line_number().unwrap_or_default();
            self.lines.push(Line { number, hit: false, text: window(near.bytes(), 0) });
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, Self::Error> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), Self::Error> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::path::Access;
    use crate::tools::testing::{Scene, object};

    fn search(scene: &Scene, given: Value) -> Result<String, String> {
        let path = given.get("path").and_then(Value::as_str).unwrap_or(".");
        let output = run(&scene.handle(path, Access::Read), object(given.clone()));
        output.map(|output| output.text).map_err(|error| error.to_string())
    }

    #[test]
    fn few_matches_carry_their_path_and_many_are_grouped() {
        let scene = Scene::new();
        scene.put("src/a.rs", "fn one() {}\n\nfn two() {}\n");
        assert_eq!(
            search(&scene, json!({"pattern": "^fn"})).unwrap(),
            "src/a.rs:1: fn one() {}\nsrc/a.rs:3: fn two() {}"
        );
        scene.put("b.rs", "fn x() {}\nfn y() {}\nfn z() {}\n");
        assert_eq!(
            search(&scene, json!({"pattern": "^fn"})).unwrap(),
            "b.rs\n  1: fn x() {}\n  2: fn y() {}\n  3: fn z() {}\nsrc/a.rs\n  1: fn one() {}\n  3: fn two() {}"
        );
        assert_eq!(search(&scene, json!({"pattern": "^fn", "include": "a.*"})).unwrap().lines().count(), 2);
        assert_eq!(search(&scene, json!({"pattern": "two", "path": "src/a.rs"})).unwrap(), "src/a.rs:3: fn two() {}");
    }

    #[test]
    fn options_do_what_they_say() {
        let scene = Scene::new();
        scene.put("a", "one\nTwo (2)\nthree\n");
        for (given, expected) in [
            (json!({"pattern": "two"}), "no match for `two`"),
            (json!({"pattern": "two", "ignore_case": true}), "a:2: Two (2)"),
            (json!({"pattern": "(2)", "literal": true}), "a:2: Two (2)"),
            (json!({"pattern": "Two", "context": 1}), "a-1- one\na:2: Two (2)\na-3- three"),
        ] {
            assert_eq!(search(&scene, given.clone()).as_deref(), Ok(expected), "{given}");
        }
        let broken = search(&scene, json!({"pattern": "a("})).unwrap_err();
        assert!(broken.contains("cannot be used") && broken.contains("literal"), "{broken}");
    }

    #[test]
    fn protected_files_are_not_printed_under_any_name() {
        let scene = Scene::new();
        scene.put(".env", "TOKEN=hunter2\n");
        scene.put(".ssh/id_rsa", "TOKEN=hunter2\n");
        std::fs::hard_link(scene.path(".env"), scene.path("innocent.txt")).unwrap();
        std::os::unix::fs::symlink(".env", scene.path("link.txt")).unwrap();
        let text = search(&scene, json!({"pattern": "TOKEN"})).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("3 protected"), "{text}");
    }

    #[test]
    fn i6_what_is_left_out_is_said() {
        let scene = Scene::new();
        scene.put("binary", b"needle\0needle");
        scene.put("data.json", "needle\n".repeat(30));
        let text = search(&scene, json!({"pattern": "needle"})).unwrap();
        assert!(text.contains("20 more") && text.contains("1 binary"), "{text}");
        scene.put("data.json", format!("{}last\nbefore\nneedle\n", "needle\n".repeat(MOST_IN_DATA)));
        let text = search(&scene, json!({"pattern": "needle", "context": 1})).unwrap();
        assert!(text.contains("last") && !text.contains("before"), "context of a match that is not shown: {text}");
        scene.put("code.rs", "needle\n".repeat(MOST_MATCHES + 50));
        let text = search(&scene, json!({"pattern": "needle"})).unwrap();
        assert!(text.contains("stopped after 500 matches"), "{}", &text[text.len() - 200..]);
    }

    #[test]
    fn i2_no_pattern_blows_up_and_no_file_blocks() {
        let scene = Scene::new();
        scene.put("a", format!("{}b\n", "a".repeat(2_000_000)));
        nix::unistd::mkfifo(&scene.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let began = std::time::Instant::now();
        assert!(search(&scene, json!({"pattern": "(a*)*c"})).unwrap().starts_with("no match"));
        assert!(search(&scene, json!({"pattern": "(((a{1000}){1000}){1000})"})).is_err(), "too large a pattern");
        assert!(search(&scene, json!({"pattern": "a\nb"})).is_err(), "no pattern crosses lines");
        assert!(began.elapsed().as_secs() < 20, "searching took {:?}", began.elapsed());
    }

    #[test]
    fn i2_a_large_pattern_is_looked_for_in_short_lines_only() {
        let scene = Scene::new();
        // Nothing that a prefilter or a small automaton could decide.
        let noise = |length: usize| -> String {
            (0..length as u64)
                .map(|n| if n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 13 & 1 == 0 { 'a' } else { 'b' })
                .collect()
        };
        scene.put("long", format!("{}\n", noise(3_000_000)));
        scene.put("short", format!("needle{}\n", noise(3_000)));
        let large = json!({"pattern": "a[ab]{2500}[^ab]|needle"});
        let text = search(&scene, large).unwrap();
        assert!(text.contains("needle") && text.contains("could not be read"), "{text}");
        assert!(search(&scene, json!({"pattern": "a[ab]{200000}[^ab]"})).is_err());
        for usual in [r"\w+\s*=\s*\w+", r"(?i)fn\s+\w+\(&?self", r"\p{L}+\d{2,4}", r"^\s*(pub )?(fn|struct|enum) "] {
            let given: Arguments = serde_json::from_value(json!({"pattern": usual})).unwrap();
            assert!(pattern(&given).unwrap().1 >= 1024 * 1024, "{usual} is no large pattern");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_hit() {
        let scene = Scene::new();
        scene.put("a.min.js", format!("{}needle{}\n", "ä".repeat(5_000), "y".repeat(5_000)));
        let text = search(&scene, json!({"pattern": "needle"})).unwrap();
        assert!(text.contains("äneedley") && text.len() < 500, "{} bytes: {text}", text.len());
    }

    /// The saving that grouping is for, on this crate's own sources.
    #[test]
    fn grouping_saves_what_the_repeated_path_costs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let surroundings = crate::facts::Surroundings::new(root, "/nonexistent");
        let protection = crate::facts::path::Protection::new(Vec::new()).unwrap();
        let resolver = crate::facts::path::Resolver::open(&surroundings, protection).unwrap();
        let handle = resolver.look("path", "src", Access::Read, root).1.unwrap();
        let (mut flat, mut grouped) = (0, 0);
        for pattern in ["fn ", "pub struct", "Result<", "#\\[test\\]", "use crate::", "unwrap\\(\\)", "impl .* for"] {
            let given: Arguments = arguments(object(json!({"pattern": pattern}))).unwrap();
            let mut search = Search::new(&given).unwrap();
            search.directory(&handle, handle.walk(true, usize::MAX).unwrap(), None);
            let (a, b) = (search.report.render(pattern, false), search.report.render(pattern, true));
            eprintln!("{pattern:12} {:6} -> {:6} bytes, {:.0} % saved", a.len(), b.len(), saved(a.len(), b.len()));
            flat += a.len();
            grouped += b.len();
        }
        eprintln!("in all {flat} -> {grouped} bytes, {:.0} % saved", saved(flat, grouped));
        assert!(saved(flat, grouped) > 10.0, "grouping saves {:.0} %", saved(flat, grouped));
    }

    fn saved(before: usize, after: usize) -> f64 {
        100.0 * (1.0 - after as f64 / before as f64)
    }
}
