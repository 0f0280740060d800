//! Lines of a file with their places, read forwards or backwards in bounded memory.

use std::fs::File;
use std::io::{self, BufRead};
use std::os::unix::fs::FileExt;

use crate::audit::MAX_LINE;

/// A line without its newline.
pub(super) struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// Where it starts, and where the next line does, in bytes.
    pub offset: u64,
    pub next: u64,
    /// Of a line that is too long, its first [`MAX_LINE`] bytes.
    pub bytes: &'a [u8],
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Newline,
    /// The file ends in the middle of the line.
    Missing,
    /// It goes on beyond [`MAX_LINE`].
    TooLong,
}

/// Reads lines forwards.
pub(super) struct Lines<R> {
    reader: R,
    number: u64,
    offset: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The reader stands at `offset`.
    pub(super) fn new(reader: R, offset: u64) -> Self {
        Lines { reader, number: 0, offset, line: Vec::new() }
    }

    /// Whether anything follows.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        loop {
            match self.reader.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => return Ok(!other?.is_empty()),
            }
        }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let start = self.offset;
        let mut end = End::Missing;
        loop {
            let block = match self.reader.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if block.is_empty() {
                break;
            }
            let newline = memchr::memchr(b'\n', block);
            let part = block.get(..newline.unwrap_or(block.len())).unwrap_or(block);
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..room).unwrap_or(part));
            if part.len() > room {
                end = End::TooLong;
            }
            let used = part.len() + usize::from(newline.is_some());
            self.reader.consume(used);
            self.offset += used as u64;
            if newline.is_some() {
                if end == End::Missing {
                    end = End::Newline;
                }
                break;
            }
        }
        if self.offset == start {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(Line { number: self.number, offset: start, next: self.offset, bytes: &self.line, end }))
    }
}

/// A line found backwards.
pub(super) struct Found {
    pub offset: u64,
    /// Without the newline.
    pub bytes: Vec<u8>,
}

/// The line that ends just before `end` (where its newline is the last byte before `end`), if there is one within
/// [`MAX_LINE`] bytes.
pub(super) fn line_before(file: &File, end: u64) -> io::Result<Option<Found>> {
    let Some(newline) = end.checked_sub(1) else { return Ok(None) };
    let mut last = [0];
    file.read_exact_at(&mut last, newline)?;
    if last != *b"\n" {
        return Ok(None);
    }
    let offset = line_start(file, newline)?;
    let Ok(length) = usize::try_from(newline - offset) else { return Ok(None) };
    if length > MAX_LINE {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(Some(Found { offset, bytes }))
}

/// Where the line starts that holds the byte before `end`: after the last newline before `end`, or at 0.
pub(super) fn line_start(file: &File, mut end: u64) -> io::Result<u64> {
    let mut block = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let length = usize::try_from(end - start).unwrap_or(block.len());
        let part = block.get_mut(..length).unwrap_or_default();
        file.read_exact_at(part, start)?;
        if let Some(at) = memchr::memrchr(b'\n', part) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn forwards(text: &[u8]) -> Vec<(u64, u64, Vec<u8>, End)> {
        let mut lines = Lines::new(io::BufReader::with_capacity(3, text), 0);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.offset, line.bytes.to_vec(), line.end));
        }
        all
    }

    #[test]
    fn lines_have_their_places() {
        assert_eq!(
            forwards(b"one\n\nthree\nfo"),
            [
                (1, 0, b"one".to_vec(), End::Newline),
                (2, 4, b"".to_vec(), End::Newline),
                (3, 5, b"three".to_vec(), End::Newline),
                (4, 11, b"fo".to_vec(), End::Missing),
            ]
        );
        assert_eq!(forwards(b""), []);
    }

    #[test]
    fn i6_a_line_beyond_the_limit_is_cut_and_says_so() {
        let mut text = vec![b'x'; MAX_LINE + 5];
        text.extend_from_slice(b"\nnext\n");
        let all = forwards(&text);
        assert_eq!((all[0].2.len(), all[0].3), (MAX_LINE, End::TooLong));
        assert_eq!(all[1], (2, MAX_LINE as u64 + 6, b"next".to_vec(), End::Newline));
    }

    #[test]
    fn lines_are_found_backwards_over_blocks() {
        let mut file = tempfile::tempfile().unwrap();
        let long = "y".repeat(10_000);
        write!(file, "first\n{long}\n\nlast\ntorn").unwrap();
        let torn = line_start(&file, file.metadata().unwrap().len()).unwrap();
        let mut found = Vec::new();
        let mut end = torn;
        while let Some(line) = line_before(&file, end).unwrap() {
            end = line.offset;
            found.push(String::from_utf8(line.bytes).unwrap());
        }
        assert_eq!(found, ["last", "", &long, "first"]);
        assert_eq!(end, 0);
        assert!(line_before(&file, torn + 4).unwrap().is_none(), "a fragment is no line");
    }
}
