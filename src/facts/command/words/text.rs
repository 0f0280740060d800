//! Abstract text: ordinary characters, plus a few private-use characters that stand for what is not literal (an unquoted
//! glob, a part that cannot be known). Such characters in the input are replaced before anything is read, so a command
//! cannot forge them.

use std::str::Chars;

/// An unquoted `*`.
pub(crate) const STAR: char = '\u{10FFF0}';
/// An unquoted `?`.
pub(crate) const ONE: char = '\u{10FFF1}';
/// An unquoted `[` that a `]` closes.
pub(crate) const OPEN: char = '\u{10FFF2}';
pub(crate) const CLOSE: char = '\u{10FFF3}';
/// Text that cannot be known.
pub(crate) const UNKNOWN: char = '\u{10FFF4}';
/// Unknown, but a plain non-empty token without slashes (a number, a process id).
pub(crate) const TOKEN: char = '\u{10FFF5}';
/// Unknown text that came over the network.
pub(crate) const FETCHED: char = '\u{10FFF6}';
/// Unknown text that holds a secret.
pub(crate) const SECRET: char = '\u{10FFF7}';
/// Unknown text that is most likely empty: a positional parameter of the outermost script.
pub(crate) const MAYBE: char = '\u{10FFF8}';
/// Before a program's name: what its file holds.
pub(crate) const PROGRAM: char = '\u{10FFF9}';
/// Unknown, but the number of the gateway's process, or of the process that started this shell.
pub(crate) const KEEPER: char = '\u{10FFFA}';
const LAST: char = '\u{10FFFF}';

pub(crate) fn is_unknown(c: char) -> bool {
    (UNKNOWN..=KEEPER).contains(&c)
}

pub(crate) fn is_glob(c: char) -> bool {
    (STAR..=CLOSE).contains(&c)
}

fn is_abstract(c: char) -> bool {
    (STAR..=LAST).contains(&c)
}

/// Nothing in it is left open.
pub(crate) fn is_known(text: &str) -> bool {
    !has_abstract(text)
}

/// All abstract characters start with the same UTF-8 byte, which hardly any other text has.
fn has_abstract(text: &str) -> bool {
    text.as_bytes().contains(&0xF4) && text.chars().any(is_abstract)
}

pub(crate) fn has_unknown(text: &str) -> bool {
    text.as_bytes().contains(&0xF4) && text.chars().any(is_unknown)
}

pub(crate) fn has_glob(text: &str) -> bool {
    text.as_bytes().contains(&0xF4) && text.chars().any(is_glob)
}

/// Input text without anything that could pass for an abstract character.
/// Offsets stay the same.
pub(crate) fn sanitise(text: &str) -> std::borrow::Cow<'_, str> {
    /// As many bytes as what it replaces.
    const REPLACEMENT: char = '\u{10FFEF}';
    if has_abstract(text) {
        text.chars().map(|c| if is_abstract(c) { REPLACEMENT } else { c }).collect::<String>().into()
    } else {
        text.into()
    }
}

/// Unquoted text: its glob characters become alive.
pub(crate) fn glob_char(c: char) -> char {
    match c {
        '*' => STAR,
        '?' => ONE,
        '[' => OPEN,
        ']' => CLOSE,
        other => other,
    }
}

/// Glob characters as they were written; what is unknown stays.
pub(crate) fn inert(text: &str) -> String {
    if !has_glob(text) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| match c {
            STAR => '*',
            ONE => '?',
            OPEN => '[',
            CLOSE => ']',
            other => other,
        })
        .collect()
}

/// For people: unknown parts are shown as an ellipsis.
pub(crate) fn show(text: &str) -> String {
    let mut out: String = inert(text).chars().map(|c| if is_unknown(c) { '…' } else { c }).take(120).collect();
    if text.chars().count() > 120 {
        out.push('…');
    }
    out
}

/// Which kinds of unknown a text holds, as the text that stands for them.
pub(crate) fn taint(text: &str) -> String {
    if !has_unknown(text) {
        return String::new();
    }
    let mut out = String::new();
    for kind in [SECRET, FETCHED, KEEPER] {
        if text.contains(kind) {
            out.push(kind);
        }
    }
    if out.is_empty() {
        out.push(UNKNOWN);
    }
    out
}

/// Whether a pattern (with live globs) matches all of `name`. Unknown parts match anything. Takes at most
/// `pattern * name` steps.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    matches_within(pattern, name, &mut { usize::MAX }).unwrap_or(true)
}

/// The same within so many steps, of which it takes what it uses; `None` where they are not enough.
pub(crate) fn matches_within(pattern: &str, name: &str, work: &mut usize) -> Option<bool> {
    *work = work.checked_sub(pattern.len() + name.len())?;
    let (mut p, mut n) = (pattern.chars(), name.chars());
    // After the last star, and where in the name what follows it was tried last.
    let mut back: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let (here, at) = (p.clone(), n.clone());
        let Some(c) = n.next() else { return Some(here.clone().all(|k| k == STAR || is_unknown(k))) };
        *work = work.checked_sub(1)?;
        let fits = match p.next() {
            Some(k) if k == STAR || is_unknown(k) => {
                back = Some((p.clone(), at.clone()));
                n = at;
                continue;
            }
            Some(ONE) => true,
            Some(OPEN) => {
                *work = work.checked_sub(p.clone().take_while(|k| *k != CLOSE).count() + 1)?;
                match class(p.as_str(), c) {
                    Some(rest) => {
                        p = rest.chars();
                        true
                    }
                    None => false,
                }
            }
            k => k == Some(c),
        };
        if fits {
            continue;
        }
        let Some((after, tried)) = &mut back else { return Some(false) };
        tried.next();
        (p, n) = (after.clone(), tried.clone());
    }
}

/// What follows a bracket expression, of which `body` is all but its `[`, where that matches `c`.
fn class(body: &str, c: char) -> Option<&str> {
    let first = body.chars().next().map_or(0, char::len_utf8);
    let end = body.get(first..).and_then(|rest| rest.find(CLOSE)).map(|end| first + end);
    let (body, rest) = match end {
        Some(end) => (body.get(..end)?, body.get(end + CLOSE.len_utf8()..)?),
        None => (body, ""),
    };
    let negated = body.starts_with(['!', '^']);
    let body = if negated { body.get(1..)? } else { body };
    // A named class (`[:alpha:]`) is not read closely.
    let mut found = body.contains(':');
    let mut chars = body.chars();
    while let Some(low) = chars.next() {
        let mut ahead = chars.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) => {
                found |= low <= c && c <= high;
                chars = ahead;
            }
            _ => found |= low == c,
        }
    }
    (found != negated).then_some(rest)
}

/// The text of `$'...'` (bash(1), QUOTING).
pub(crate) fn ansi_c(raw: &str) -> String {
    escapes(raw, true)
}

/// Backslash escapes as `printf`, `echo -e` and `$'...'` read them. A byte that is not UTF-8 becomes U+FFFD.
pub(crate) fn escapes(raw: &str, ansi: bool) -> String {
    let mut bytes: Vec<u8> = Vec::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    let push = |bytes: &mut Vec<u8>, c: char| bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let Some(c) = chars.next() else {
            bytes.push(b'\\');
            break;
        };
        let mut number = |radix: u32, max: usize, first: Option<char>| {
            let mut text: String = first.into_iter().collect();
            while text.len() < max
                && let Some(digit) = chars.next_if(|d| d.is_digit(radix))
            {
                text.push(digit);
            }
            u32::from_str_radix(&text, radix).ok()
        };
        match c {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' => bytes.push(b'\\'),
            '\'' | '"' | '?' if ansi => push(&mut bytes, c),
            '0' if !ansi => bytes.push(plain_byte(number(8, 3, None).unwrap_or(0))),
            '0'..='7' => bytes.push(plain_byte(number(8, 3, Some(c)).unwrap_or(0))),
            'x' => match number(16, 2, None) {
                Some(value) => bytes.push(plain_byte(value)),
                None => bytes.extend_from_slice(b"\\x"),
            },
            'u' | 'U' => match number(16, if c == 'u' { 4 } else { 8 }, None).and_then(char::from_u32) {
                Some(value) => push(&mut bytes, if is_abstract(value) { char::REPLACEMENT_CHARACTER } else { value }),
                None => bytes.push(b'\\'),
            },
            'c' if ansi => {
                if let Some(control) = chars.next() {
                    bytes.push((control as u32 & 0x1f) as u8);
                }
            }
            other => {
                bytes.push(b'\\');
                push(&mut bytes, other);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A byte that an escape names. The one that abstract characters start with becomes one that is never valid, so that
/// escapes cannot spell them.
fn plain_byte(value: u32) -> u8 {
    match value & 0xff {
        0xF4 => 0xFF,
        byte => byte as u8,
    }
}

/// Decoded bytes (base64, hexadecimal) as text that cannot pass for abstract characters.
pub(crate) fn decoded(bytes: &[u8]) -> String {
    sanitise(&String::from_utf8_lossy(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(pattern: &str) -> String {
        pattern.chars().map(glob_char).collect()
    }

    #[test]
    fn globs_match_as_in_bash() {
        for (pattern, name, want) in [
            ("*", "etc", true),
            ("e?c", "etc", true),
            ("[a-f]tc", "etc", true),
            ("[!a-f]tc", "etc", false),
            ("????", "home", true),
            ("????", "etc", false),
            ("*a*b*c", "xaxbxc", true),
            ("r[m]", "rm", true),
            ("*.o", "etc", false),
        ] {
            assert_eq!(matches(&live(pattern), name), want, "{pattern} against {name}");
        }
    }

    #[test]
    fn ansi_c_quoting() {
        assert_eq!(ansi_c(r"\x72\155\u0020-\\rf\n"), "rm -\\rf\n");
        assert_eq!(escapes(r"\0162\x6d", false), "rm");
    }

    #[test]
    fn i2_input_cannot_forge_abstract_characters() {
        assert!(is_known(&sanitise("rm \u{10FFF0} \u{10FFF4}")), "abstract characters of the input must be replaced");
    }
}
