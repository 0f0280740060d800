//! Whether what the guard understood covers what bash did.

use super::bash::{Seen, Started};
use crate::facts::command::{Element, Parse, Site, Text, Understanding};

/// Where unquoted unknown text may end one word and begin the next.
const BETWEEN: char = '\u{1}';

/// How a script came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What nothing in the facts stands for.
    pub uncovered: Vec<String>,
    /// The facts say that something was not resolved.
    pub unresolved: bool,
    /// Something was only covered by words with unknown parts.
    pub by_unknown: bool,
}

pub fn compare(understood: &Understanding, seen: &Seen) -> Outcome {
    let mut outcome = Outcome { unresolved: says_unresolved(understood), ..Outcome::default() };
    for started in &seen.started {
        let mut covering = understood.sites.iter().filter(|site| covers(site, started)).peekable();
        if covering.peek().is_none() {
            outcome.uncovered.push(format!("started {:?} in {}", started.argv, started.cwd));
        } else {
            outcome.by_unknown |= covering.all(|site| site.words.iter().chain(&site.cwd).any(Text::has_unknown));
        }
    }
    for path in &seen.written {
        let opened = understood.writes.iter().flat_map(|opened| &opened.paths);
        let used = understood.sites.iter().flat_map(|site| &site.paths).filter(|path| path.access.changes());
        let mut covering = opened.chain(used.map(|used| &used.path)).filter(|text| is_at(text, path)).peekable();
        if covering.peek().is_none() {
            outcome.uncovered.push(format!("wrote {path}"));
        } else {
            outcome.by_unknown |= covering.all(|text| text.known().is_none_or(str::is_empty));
        }
    }
    outcome
}

fn says_unresolved(understood: &Understanding) -> bool {
    let facts = &understood.facts;
    facts.parse == Parse::Opaque
        || facts.effects.iter().any(|effect| effect.0 == "unresolved" || effect.0 == "run-unknown")
        || facts.findings.iter().any(|finding| finding.id == "command.not-fully-analysed")
}

fn covers(site: &Site, started: &Started) -> bool {
    let Some((head, rest)) = site.words.split_first() else { return false };
    let Some((name, arguments)) = started.argv.split_first() else { return false };
    let named = match head.known() {
        // What a program is called by is not what it is: only the last part of the path counts.
        Some(known) => known.rsplit('/').next() == Some(name),
        // A name that is open may bring arguments along.
        None => return at(site, started) && words(&site.words, &started.argv, site.splits),
    };
    named && at(site, started) && words(rest, arguments, site.splits)
}

fn at(site: &Site, started: &Started) -> bool {
    site.cwd.iter().any(|cwd| is_at(cwd, &started.cwd))
}

/// A path of the facts; an empty one may be anywhere.
fn is_at(text: &Text, path: &str) -> bool {
    match text.known() {
        Some(known) => known.is_empty() || known == path,
        // An unknown last part may be none.
        None => {
            let pieces = pieces(text);
            let is = |path: &str| element_match(&pieces, &path.chars().collect::<Vec<_>>());
            *path == text.to_string() || is(path) || is(&format!("{path}/"))
        }
    }
}

/// Whether the words can become these arguments; where names of files are split, a pattern can become any number.
fn words(words: &[Text], argv: &[String], splits: bool) -> bool {
    // The numbers of arguments that the words so far can have become.
    let mut taken = vec![false; argv.len() + 1];
    taken[0] = true;
    for word in words {
        let mut next = vec![false; argv.len() + 1];
        for at in (0..=argv.len()).filter(|at| taken[*at]) {
            arguments(word, &argv[at..], &mut next[at..], splits);
        }
        taken = next;
    }
    taken[argv.len()]
}

/// Marks how many of these arguments one word can become.
fn arguments(word: &Text, argv: &[String], counts: &mut [bool], splits: bool) {
    if let Some(known) = word.known() {
        let is = |argument: &String| argument == known || is_descriptor(argument) && is_descriptor(known);
        if argv.first().is_some_and(is) {
            counts[1] = true;
        }
        return;
    }
    let mut pieces = pieces(word);
    if !word.has_unknown() {
        // A pattern that no file matches stays as it is; otherwise it becomes the names of files, one or more.
        if argv.first().is_some_and(|first| *first == word.to_string()) {
            counts[1] = true;
        }
        let names = argv.iter().take_while(|name| element_match(&pieces, &name.chars().collect::<Vec<_>>())).count();
        counts[1..=names].fill(true);
        if !splits {
            return;
        }
        pieces.iter_mut().filter(|piece| **piece == Piece::Many).for_each(|piece| *piece = Piece::Any);
    }
    if pieces.iter().all(|piece| *piece == Piece::Any) {
        counts.fill(true);
        return;
    }
    let joined: Vec<char> = argv.join(&BETWEEN.to_string()).chars().collect();
    let ends = ends(&pieces, &joined);
    let boundaries = joined.iter().enumerate().filter(|(_, c)| **c == BETWEEN).map(|(at, _)| at).chain([joined.len()]);
    for (count, at) in boundaries.enumerate().take(argv.len()) {
        counts[count + 1] |= ends[at];
    }
}

/// Which number a process substitution gets is nobody's business.
fn is_descriptor(path: &str) -> bool {
    path.strip_prefix("/dev/fd/").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[derive(Clone, Copy, PartialEq)]
enum Piece {
    Is(char),
    /// `?`.
    One,
    /// `*`.
    Many,
    /// Any text, over the ends of words too.
    Any,
    /// At least one character of a word.
    Token,
}

/// A line break beside unknown output stands for output that may be none.
fn absorb(pieces: &mut Vec<Piece>) {
    let open = |piece: Option<&Piece>| matches!(piece, Some(Piece::Any));
    let mut at = 0;
    while at < pieces.len() {
        let beside = at > 0 && open(pieces.get(at - 1)) || open(pieces.get(at + 1));
        if pieces.get(at) == Some(&Piece::Is('\n')) && beside {
            pieces.remove(at);
            at = at.saturating_sub(1);
        } else {
            at += 1;
        }
    }
}

fn pieces(text: &Text) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut bracket = false;
    for element in text.elements() {
        match element {
            // What is in brackets is one character; which one does not matter here.
            Element::Glob(']') => bracket = false,
            _ if bracket => {}
            Element::Known(text) => pieces.extend(text.chars().map(Piece::Is)),
            Element::Glob('*') => pieces.push(Piece::Many),
            Element::Glob('[') => {
                bracket = true;
                pieces.push(Piece::One);
            }
            Element::Glob(_) => pieces.push(Piece::One),
            Element::Token => pieces.push(Piece::Token),
            Element::Unknown => pieces.push(Piece::Any),
        }
    }
    absorb(&mut pieces);
    pieces
}

fn element_match(pieces: &[Piece], text: &[char]) -> bool {
    ends(pieces, text)[text.len()]
}

/// Which places in the text the pieces can end at.
fn ends(pieces: &[Piece], text: &[char]) -> Vec<bool> {
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for piece in pieces {
        let mut next = vec![false; text.len() + 1];
        // Whether a piece that takes any number of characters may go on here.
        let mut going = false;
        for at in 0..=text.len() {
            let c = text.get(at);
            let in_word = at > 0 && text[at - 1] != BETWEEN && text[at - 1] != '/';
            match piece {
                Piece::Is(_) | Piece::One => {
                    let fits = c.is_some_and(|c| *piece == Piece::One || *piece == Piece::Is(*c));
                    if ends[at] && fits {
                        next[at + 1] = true;
                    }
                }
                Piece::Any => {
                    going |= ends[at];
                    next[at] = going;
                }
                Piece::Many => {
                    going = ends[at] || going && in_word;
                    next[at] = going;
                }
                Piece::Token => {
                    next[at] = going && in_word;
                    going = ends[at] || going && in_word;
                }
            }
        }
        ends = next;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Surroundings;
    use crate::facts::command::Guard;

    fn outcome(script: &str, argv: &[&str]) -> Outcome {
        let here = Surroundings::new("/w", "/w/h");
        let started = Started { cwd: "/w".into(), argv: argv.iter().map(|arg| (*arg).to_owned()).collect() };
        let seen = Seen { started: vec![started], ..Seen::default() };
        compare(&Guard::embedded().understand(script, &here), &seen)
    }

    #[test]
    fn what_the_words_can_become_is_covered() {
        for (script, argv) in [
            ("pa b c", &["pa", "b", "c"][..]),
            ("pa *.txt c", &["pa", "a.txt", "b.txt", "c"]),
            ("pa *.nope", &["pa", "*.nope"]),
            ("pa $x c", &["pa", "c"]),
            ("pa $x c", &["pa", "a", "b", "c"]),
            ("pa a$x", &["pa", "ab", "c"]),
            ("pa $$", &["pa", "4711"]),
            ("pa [ab].txt", &["pa", "b.txt"]),
        ] {
            assert_eq!(outcome(script, argv).uncovered, Vec::<String>::new(), "{script}");
        }
    }

    #[test]
    fn what_they_cannot_become_is_not() {
        for (script, argv) in [
            ("pa b", &["pa", "c"][..]),
            ("pa b", &["pa"]),
            ("pa", &["pb"]),
            ("pa *.txt", &["pa", "x.o"]),
            ("pa a$x", &["pa", "b"]),
            ("pa $$ b", &["pa", "b"]),
            ("pa ?", &["pa"]),
        ] {
            assert_eq!(outcome(script, argv).uncovered.len(), 1, "{script}");
        }
    }

    #[test]
    fn the_directory_counts() {
        let here = Surroundings::new("/w", "/w/h");
        let seen =
            |cwd: &str| Seen { started: vec![Started { cwd: cwd.into(), argv: vec!["pa".into()] }], ..Seen::default() };
        let understood = Guard::embedded().understand("cd sub && pa", &here);
        assert!(compare(&understood, &seen("/w/sub")).uncovered.is_empty());
        assert!(!compare(&understood, &seen("/w")).uncovered.is_empty());
    }
}
