//! Output of which only the beginning and the end are kept.

use std::collections::VecDeque;

/// What was kept of an output stream: the first bytes, the last bytes, and how many between them were dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    dropped: u64,
}

impl Capture {
    /// Keeps at most `limit` bytes, half of them from the end.
    pub fn new(limit: usize) -> Self {
        Capture { head: Vec::new(), tail: VecDeque::new(), limit, dropped: 0 }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let head_room = (self.limit - self.limit / 2).saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(head_room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let tail_limit = self.limit / 2;
        let (skipped, kept) = rest.split_at(rest.len().saturating_sub(tail_limit));
        let excess = (self.tail.len() + kept.len()).saturating_sub(tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(kept);
        self.dropped += (excess + skipped.len()) as u64;
    }

    /// Bytes that the stream had and that are not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes that are kept.
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that was kept, without a mark where something is missing.
    pub fn bytes(&self) -> Vec<u8> {
        self.head.iter().chain(&self.tail).copied().collect()
    }

    /// The stream as text of about `limit` bytes at most: bytes that are no UTF-8 are replaced, and a line of its own
    /// says how much is missing in the middle.
    pub fn text(&self, limit: usize) -> String {
        let mut cut = Capture::new(limit);
        cut.push(&self.head);
        let (a, b) = self.tail.as_slices();
        // What was dropped before lies between head and tail: a head that is cut here ends earlier, never later.
        cut.push(a);
        cut.push(b);
        let missing = self.dropped + cut.dropped;
        if missing == 0 {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        // Where nothing was cut here, the gap is between our own two parts.
        let (head, tail) = if cut.dropped == 0 { (&self.head, &self.tail) } else { (&cut.head, &cut.tail) };
        let tail: Vec<u8> = tail.iter().copied().collect();
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(&tail));
        let newline = if head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{newline}... ({missing} bytes truncated) ...\n{tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        for chunk in [1, 3, 7, 1000] {
            let whole: Vec<u8> = (0..1000u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
            let mut capture = Capture::new(101);
            whole.chunks(chunk).for_each(|c| capture.push(c));
            let expected: Vec<u8> = whole[..51].iter().chain(&whole[950..]).copied().collect();
            assert_eq!(capture.bytes(), expected, "chunks of {chunk}");
            assert_eq!(capture.dropped(), 899, "chunks of {chunk}: bytes went missing without being counted");
        }
    }

    #[test]
    fn what_fits_is_untouched() {
        let mut capture = Capture::new(10);
        capture.push("héllo\n".as_bytes());
        assert_eq!((capture.text(100).as_str(), capture.dropped()), ("héllo\n", 0));
    }

    #[test]
    fn i6_text_says_what_is_missing_where_it_is_missing() {
        let mut capture = Capture::new(20);
        capture.push(b"aaaaaaaaaaccccccbbbbbbbbbb");
        assert_eq!(capture.text(100), "aaaaaaaaaa\n... (6 bytes truncated) ...\nbbbbbbbbbb");
        assert_eq!(capture.text(8), "aaaa\n... (18 bytes truncated) ...\nbbbb", "cut once more");
        assert_eq!(Capture::new(0).text(5), "");
    }
}
