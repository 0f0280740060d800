//! What a search has found, as text that costs a model little.

use std::fmt::Write;

use crate::tools::{count, visible};

/// From this many matches on, a file's path stands once above its lines.
const GROUP_FROM: usize = 5;
/// Bytes of a line that are shown, and where in them the hit stands.
const WIDTH: usize = 240;
const BEFORE: usize = 80;
/// Where the text ends, in bytes; the notes come after.
const MOST_TEXT: usize = 48 * 1024;

/// One line of a file.
#[derive(Debug)]
pub(super) struct Line {
    pub number: u64,
    /// A match; a line around one otherwise.
    pub hit: bool,
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Report {
    files: Vec<Found>,
    /// Files, and directories with what they hold, that were left out, each for its reason.
    pub protected: usize,
    pub binary: usize,
    pub unreadable: usize,
    limits: Vec<String>,
}

#[derive(Debug)]
struct Found {
    name: String,
    lines: Vec<Line>,
    shown: usize,
    found: usize,
}

impl Report {
    pub fn add(&mut self, name: String, lines: Vec<Line>, shown: usize, found: usize) {
        self.files.push(Found { name, lines, shown, found });
    }

    pub fn limit(&mut self, limit: String) {
        self.limits.push(limit);
    }

    pub fn shown(&self) -> usize {
        self.files.iter().map(|file| file.shown).sum()
    }

    pub fn matches(&self) -> usize {
        self.files.iter().map(|file| file.found).sum()
    }

    pub fn files(&self) -> usize {
        self.files.len()
    }

    pub fn text(&self, pattern: &str) -> String {
        self.render(pattern, self.shown() >= GROUP_FROM)
    }

    pub fn render(&self, pattern: &str, grouped: bool) -> String {
        let mut text = String::new();
        let mut cut = 0;
        for file in &self.files {
            if text.len() > MOST_TEXT {
                cut += file.found;
                continue;
            }
            file.render(&mut text, grouped);
        }
        if self.files.is_empty() {
            let _ = writeln!(text, "no match for `{pattern}`");
        }
        let mut notes = Vec::new();
        let mut note = |number: usize, one: &str, several: &str, what: &str| {
            if number > 0 {
                notes.push(format!("({} {what})", count(number, one, several)));
            }
        };
        note(cut, "match", "matches", "in further files not shown: use a narrower pattern or path");
        note(self.protected, "protected file or directory", "protected files or directories", "not searched");
        note(self.binary, "binary file", "binary files", "not searched");
        note(self.unreadable, "file", "files", "could not be read to the end");
        notes.extend(self.limits.iter().map(|limit| format!("({limit})")));
        text.push_str(&notes.join("\n"));
        text.truncate(text.trim_end().len());
        text
    }
}

impl Found {
    fn render(&self, text: &mut String, grouped: bool) {
        if grouped {
            let _ = writeln!(text, "{}", self.name);
        }
        for line in &self.lines {
            let mark = if line.hit { ':' } else { '-' };
            let _ = match grouped {
                true => writeln!(text, "  {}{mark} {}", line.number, line.text),
                false => writeln!(text, "{}{mark}{}{mark} {}", self.name, line.number, line.text),
            };
        }
        if self.found > self.shown {
            let more = count(self.found - self.shown, "more match", "more matches");
            let _ = writeln!(text, "  ({more} in {})", self.name);
        }
    }
}

/// A line without its end, safe to print; of a long one, the part around byte `at`.
pub(super) fn window(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let start = if line.len() <= WIDTH { 0 } else { at.saturating_sub(BEFORE) };
    let end = line.len().min(start + WIDTH);
    // Step to where characters begin.
    let inside = |byte: Option<&u8>| byte.is_some_and(|byte| byte & 0xc0 == 0x80);
    let start = (start..end).find(|at| !inside(line.get(*at))).unwrap_or(start);
    let end = (end..line.len().min(end + 4)).find(|at| !inside(line.get(*at))).unwrap_or(end);
    let part = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    let mut text = String::with_capacity(part.len() + 6);
    text.push_str(if start > 0 { "…" } else { "" });
    text.extend(part.chars().map(|c| if c == '\t' { c } else { visible(c) }));
    text.push_str(if end < line.len() { "…" } else { "" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_never_split_a_character_and_hold_the_hit() {
        let line = "aä€🦀".repeat(200);
        for (at, _) in line.char_indices() {
            let shown = window(line.as_bytes(), at);
            assert!(!shown.contains('\u{fffd}') && shown.len() <= WIDTH + 12, "at {at}: {shown}");
            let hit: String = line[at..].chars().take(3).collect();
            assert!(shown.contains(&hit), "at {at}: the hit is not in {shown}");
        }
        assert_eq!(window(b"\tshort\r\n", 0), "\tshort");
        assert_eq!(window(b"\x1b[31mred\n", 0), "\u{fffd}[31mred");
    }
}
