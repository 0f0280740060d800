//! What people read at a terminal: texts of others must not repaint it, hide in it, or pass for our own lines.

use std::io::{self, Write};
use std::sync::LazyLock;

use regex::Regex;

/// Characters that show nothing, or change how others show: control, format, line and paragraph separators, and whatever
/// Unicode lets a renderer ignore.
static HIDDEN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]").ok());

/// Columns of a line before it is broken here, and not by the terminal: less than the narrowest usual one has.
pub const COLUMNS: usize = 72;

pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    HIDDEN.as_ref().is_none_or(|hidden| hidden.is_match(c.encode_utf8(&mut [0; 4])))
}

/// A text in lines of at most [`COLUMNS`]. What goes on in a line of ours begins with a mark: `|` after a line break of
/// the text's own, `\\` where a line was too long. What is over `most` lines is counted and not shown.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    for (number, row) in text.split('\n').enumerate() {
        let mut mark = if number == 0 { "" } else { "| " };
        let mut rest = row;
        loop {
            let at = fitting(rest);
            let (now, later) = rest.split_at_checked(at).unwrap_or((rest, ""));
            if lines.len() >= most {
                bytes += later.len() + now.len();
                lines.push(None);
            } else {
                lines.push(Some(format!("{mark}{now}")));
            }
            if later.is_empty() {
                break;
            }
            (mark, rest) = ("\\ ", later);
        }
    }
    let more = lines.len().saturating_sub(most);
    let mut shown: Vec<String> = lines.into_iter().flatten().collect();
    if more > 0 {
        shown.push(format!("… {more} more lines, {bytes} bytes"));
    }
    shown
}

/// How many bytes of a line fit. Characters outside ASCII may take two columns.
fn fitting(line: &str) -> usize {
    let mut columns = 0;
    for (at, c) in line.char_indices() {
        columns += match c {
            '\t' => 8,
            c if c.is_ascii() => 1,
            _ => 2,
        };
        if columns > COLUMNS {
            return at;
        }
    }
    line.len()
}

/// A terminal's writer that lets our own styles through and shows every other control character as an escape.
pub struct Screen<W> {
    inner: W,
    /// The beginning of what may be one of our styles.
    held: String,
}

/// What [`anstyle`] writes for the styles that are used here.
fn is_style(sequence: &str) -> bool {
    let codes = sequence.strip_prefix("\u{1b}[").and_then(|rest| rest.strip_suffix('m'));
    codes.is_some_and(|code| {
        matches!(code, "0" | "1" | "2" | "31" | "32" | "33" | "34" | "36" | "91" | "92" | "93" | "94" | "96")
    })
}

impl<W: Write> Screen<W> {
    pub fn new(inner: W) -> Self {
        Screen { inner, held: String::new() }
    }

    fn put(&mut self, c: char, shown: &mut String) {
        if !self.held.is_empty() {
            let going_on = match self.held.len() {
                1 => c == '[',
                _ => c.is_ascii_digit() && self.held.len() < 5,
            };
            if going_on {
                self.held.push(c);
                return;
            }
            if c == 'm' {
                self.held.push(c);
                let sequence = std::mem::take(&mut self.held);
                shown.push_str(&if is_style(&sequence) { sequence } else { escaped(&sequence) });
                return;
            }
            let cut = std::mem::take(&mut self.held);
            shown.push_str(&escaped(&cut));
        }
        match c {
            '\u{1b}' => self.held.push(c),
            '\n' | '\t' => shown.push(c),
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        shown
    })
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut shown = String::new();
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| self.put(c, &mut shown));
            chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
        }
        self.inner.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.inner.write_all(escaped(&held).as_bytes())?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_is_shown() {
        for c in [
            '\u{0}',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{202e}',
            '\u{2028}',
            '\u{2029}',
            '\u{2066}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{e0001}',
            '\u{e0041}',
        ] {
            assert!(is_hidden(c), "{}", c.escape_unicode());
        }
        for c in ['a', ' ', 'é', '你', '😀', '\u{301}', '…', '\u{a0}'] {
            assert!(!is_hidden(c), "{c}");
        }
    }

    #[test]
    fn a_long_line_cannot_pass_for_one_of_ours() {
        let spoof = format!("echo {}\n  [x] harmless", "x".repeat(200));
        let lines = wrapped(&spoof, 20);
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS + 2), "{lines:?}");
        assert!(lines.iter().skip(1).all(|line| line.starts_with("\\ ") || line.starts_with("| ")), "{lines:?}");
        assert_eq!(wrapped("ls", 20), ["ls"]);
        let many = wrapped(&"a\n".repeat(50), 20);
        assert_eq!((many.len(), many[20].as_str()), (21, "… 31 more lines, 30 bytes"));
    }

    #[test]
    fn our_styles_pass_and_nothing_else_does() {
        let shown = |parts: &[&str]| {
            let mut out = Vec::new();
            let mut screen = Screen::new(&mut out);
            parts.iter().for_each(|part| screen.write_all(part.as_bytes()).unwrap());
            screen.flush().unwrap();
            String::from_utf8(out).unwrap()
        };
        let style = anstyle::Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
        let own = format!("{style}deny{style:#}\n");
        assert_eq!(shown(&[&own]), own);
        assert_eq!(shown(&["\u{1b}", "[1", "mx"]), "\u{1b}[1mx", "in parts");
        for (given, told) in [
            ("x\u{1b}[2Jy", "x\\u{1b}[2Jy"),
            ("x\u{1b}[8my", "x\\u{1b}[8my"),
            ("x\u{1b}]0;title\u{7}", "x\\u{1b}]0;title\\u{7}"),
            ("x\u{1b}\u{1b}[1m", "x\\u{1b}\u{1b}[1m"),
            ("x\u{1b}", "x\\u{1b}"),
            ("x\u{202e}y\rz", "x\\u{202e}y\\u{d}z"),
        ] {
            assert_eq!(shown(&[given]), told, "{}", given.escape_debug());
        }
    }
}
