//! Output of a program that is shown on a terminal: text and colours pass, what commands the terminal does not.

/// Takes what would command a terminal out of a stream: control characters but those of a text's layout, and escape
/// sequences but those that set colours. What is cut stays cut across pieces of the stream.
#[derive(Debug, Default)]
pub struct Tame {
    /// An escape sequence that has begun, of which it is not known yet whether it sets colours.
    pending: Vec<u8>,
}

/// The longest sequence that is waited for.
const LONGEST: usize = 64;

impl Tame {
    /// The next piece of the stream, as it may be shown.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut shown);
        }
        shown
    }

    fn take(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match (self.pending.len(), byte) {
            (0, 0x1b) => self.pending.push(byte),
            // The first byte of a control character beyond ASCII, or of a harmless one.
            (0, 0xc2) => self.pending.push(byte),
            (0, b'\n' | b'\t' | b'\r' | 0x08) => shown.push(byte),
            (0, 0..0x20 | 0x7f) => shown.push(b'?'),
            (0, _) => shown.push(byte),
            (1, 0x80..=0x9f) if self.pending == [0xc2] => self.end(b"?", shown),
            (1, _) if self.pending == [0xc2] => {
                self.end(&[0xc2], shown);
                self.take(byte, shown);
            }
            (1, b'[') => self.pending.push(byte),
            (2.., b'0'..=b'9' | b';' | b':') if self.pending.len() < LONGEST => self.pending.push(byte),
            (2.., b'm') => {
                self.pending.push(byte);
                let colours = self.pending.clone();
                self.end(&colours, shown);
            }
            // Some other sequence: without its beginning the rest of it is text.
            _ => {
                self.end(b"?", shown);
                self.take(byte, shown);
            }
        }
    }

    fn end(&mut self, with: &[u8], shown: &mut Vec<u8>) {
        self.pending.clear();
        shown.extend_from_slice(with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_colours_pass_and_commands_do_not() {
        for (said, shown) in [
            ("plain\ttext\r\n", "plain\ttext\r\n"),
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("\x1b]52;c;ZXZpbA==\x07", "?]52;c;ZXZpbA==?"),
            ("\x1b[2J\x1b[H", "?J?H"),
            ("\x1b\x1b[6n", "??n"),
            ("a\0b\x7f", "a?b?"),
            ("é漢\u{9b}2J\u{a0}", "é漢?2J\u{a0}"),
        ] {
            for piece in [1, 2, 100] {
                let mut tame = Tame::default();
                let out: Vec<u8> = said.as_bytes().chunks(piece).flat_map(|bytes| tame.pass(bytes)).collect();
                assert_eq!(String::from_utf8_lossy(&out), shown, "{said:?} in pieces of {piece}");
            }
        }
    }
}
