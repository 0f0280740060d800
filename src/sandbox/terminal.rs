//! Output of a program that is shown on a terminal: text and colours pass, what commands the terminal does not.

/// Takes what would command a terminal out of a stream: control characters but those of a text's layout, and escape
/// sequences but those that set colours. What is cut stays cut across pieces of the stream.
#[derive(Debug, Default)]
pub struct Tame {
    /// An escape sequence that has begun, of which it is not known yet whether it may pass.
    pending: Vec<u8>,
    /// The program has a screen: it may move the cursor, clear, scroll and set modes.
    screen: bool,
    /// A text for the terminal itself (its title, the clipboard, ...) goes on; nothing of it passes.
    swallows: bool,
}

/// The longest sequence that is waited for.
const LONGEST: usize = 64;

/// The last bytes of the control sequences (ECMA-48, DEC) that draw. Those that make the terminal answer, and its answer
/// is typed input, are not among them.
const DRAWS: &[u8] = b"@ABCDEFGHIJKLMPSTXZ`adefghlmrsu";
/// As above, of sequences of two bytes: save and restore the cursor, keypad modes, lines and tab stops.
const DRAWS_ALONE: &[u8] = b"78=>DEHM";

impl Tame {
    /// For a program that has a screen of its own.
    pub fn screen() -> Self {
        Tame { screen: true, ..Tame::default() }
    }

    pub fn is_screen(&self) -> bool {
        self.screen
    }

    /// The next piece of the stream, as it may be shown.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.take(*byte, &mut shown);
        }
        shown
    }

    fn take(&mut self, byte: u8, shown: &mut Vec<u8>) {
        if self.screen && self.draw(byte, shown) {
            return;
        }
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

    /// What a screen may have beyond text and colours; false where the byte is none of it.
    fn draw(&mut self, byte: u8, shown: &mut Vec<u8>) -> bool {
        if self.swallows {
            // A bell or `ESC \` ends it; the backslash is what is still to come.
            self.swallows = !matches!(byte, 0x07 | 0x1b | 0x18 | 0x1a);
            if byte == 0x1b {
                self.pending.push(byte);
            }
            return true;
        }
        let whole = match (self.pending.as_slice(), byte) {
            ([], 0x07 | 0x0e | 0x0f) => {
                shown.push(byte);
                return true;
            }
            ([0x1b], b']' | b'P' | b'_' | b'^' | b'X') => {
                self.pending.clear();
                self.swallows = true;
                return true;
            }
            ([0x1b], b'\\') => {
                self.pending.clear();
                return true;
            }
            ([0x1b], b'(' | b')') | ([0x1b, b'[', ..], b' '..=b'?') if self.pending.len() < LONGEST => false,
            ([0x1b], _) => DRAWS_ALONE.contains(&byte),
            ([0x1b, b'(' | b')'], _) => byte.is_ascii_alphanumeric(),
            ([0x1b, b'[', ..], b'@'..=b'~') => {
                if !DRAWS.contains(&byte) {
                    // Known where it ends, so all of it goes.
                    self.pending.clear();
                    return true;
                }
                true
            }
            _ => return false,
        };
        let begins = !whole && matches!((self.pending.len(), byte), (1, b'(' | b')') | (2.., b' '..=b'?'));
        if whole || begins {
            self.pending.push(byte);
        }
        if whole {
            let sequence = self.pending.clone();
            self.end(&sequence, shown);
        }
        whole || begins
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
    fn a_screen_is_drawn_and_its_terminal_is_not_commanded() {
        for (said, shown) in [
            (
                "\x1b[?1049h\x1b[H\x1b[2J\x1b[10;20Hx\x1b[K\x1b[31mred\x1b[m\x07",
                "\x1b[?1049h\x1b[H\x1b[2J\x1b[10;20Hx\x1b[K\x1b[31mred\x1b[m\x07",
            ),
            ("\x1b7\x1b(B\x1b=\x1bM\x1b8", "\x1b7\x1b(B\x1b=\x1bM\x1b8"),
            ("a\x1b]52;c;ZXZpbA==\x07b\x1b]0;title\x1b\\c\x1bP$q\x1b\\d", "abcd"),
            ("a\x1b[6nb\x1b[21tc\x1b[>cd\x1b[5n", "abcd"),
            ("\x1bc\x1bZ\u{9b}6n\0", "?c?Z?6n?"),
            ("é漢", "é漢"),
        ] {
            for piece in [1, 2, 100] {
                let mut tame = Tame::screen();
                let out: Vec<u8> = said.as_bytes().chunks(piece).flat_map(|bytes| tame.pass(bytes)).collect();
                assert_eq!(String::from_utf8_lossy(&out), shown, "{said:?} in pieces of {piece}");
            }
        }
    }

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
