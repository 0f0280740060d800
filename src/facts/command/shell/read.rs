//! `read` and `mapfile`: what they take from a descriptor, and the names that get it.

use std::rc::Rc;

use super::env::Value;
use super::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::words::text::{UNKNOWN, has_unknown, is_known, taint};
use crate::facts::command::wrappers::options::Options;

/// What a descriptor holds.
fn input(walker: &Walker<'_>, descriptor: Option<u32>) -> Option<Rc<str>> {
    match descriptor {
        Some(number) => walker.env.descriptors.get(&number).map(|text| text.as_str().into()),
        None => walker.env.stdin.clone(),
    }
}

/// What is left to read.
fn leave(walker: &mut Walker<'_>, descriptor: Option<u32>, rest: String) {
    match descriptor {
        Some(number) => {
            Rc::make_mut(&mut walker.env.descriptors).insert(number, rest);
        }
        None => walker.env.stdin = Some(rest.into()),
    }
}

fn descriptor(options: &Options) -> Option<u32> {
    options.values('u').first().and_then(|number| number.parse::<u32>().ok()).filter(|number| *number != 0)
}

fn separators(walker: &Walker<'_>) -> String {
    match walker.env.get("IFS") {
        Some(Value::Text(text)) => text.clone(),
        _ => " \t\n".to_owned(),
    }
}

/// The part of an input that one `read` takes.
struct Taken {
    /// Its characters; `true` where a backslash makes one ordinary.
    chars: Vec<(char, bool)>,
    rest: String,
    /// It ended where it should.
    whole: bool,
}

/// Takes as much as `read` does: up to the delimiter, or so many characters. Without `raw` a backslash makes the next
/// character ordinary, and a line that ends in one goes on.
fn take(text: &str, delimiter: char, count: Option<usize>, exactly: bool, raw: bool) -> Taken {
    let mut chars = Vec::new();
    let mut given = text.chars();
    let mut whole = false;
    while count.is_none_or(|count| chars.len() < count) {
        let Some(c) = given.next() else { break };
        if c == '\\' && !raw {
            match given.next() {
                Some('\n') => {}
                Some(c) => chars.push((c, true)),
                None => break,
            }
        } else if c == delimiter && !exactly {
            whole = true;
            break;
        } else {
            chars.push((c, false));
        }
    }
    whole |= count.is_some_and(|count| chars.len() >= count);
    Taken { chars, rest: given.as_str().to_owned(), whole }
}

/// Splits at separators, blanks and others, as `read` does for so many names; the last gets all that is left.
fn split(chars: &[(char, bool)], separators: &str, names: usize) -> Vec<String> {
    let separates = |at: usize| chars.get(at).is_some_and(|(c, ordinary)| !ordinary && separators.contains(*c));
    let blank = |at: usize| separates(at) && chars.get(at).is_some_and(|(c, _)| c.is_ascii_whitespace());
    let text = |from: usize, to: usize| chars.iter().take(to).skip(from).map(|(c, _)| c).collect::<String>();
    // After a word: blanks, at most one other separator, blanks.
    let after = |mut at: usize| {
        while blank(at) {
            at += 1;
        }
        if separates(at) {
            at += 1;
        }
        while blank(at) {
            at += 1;
        }
        at
    };
    let mut at = 0;
    while blank(at) {
        at += 1;
    }
    let mut words = Vec::new();
    while at < chars.len() {
        let end = (at..chars.len()).find(|at| separates(*at)).unwrap_or(chars.len());
        if words.len() + 1 < names {
            words.push(text(at, end));
            at = after(end);
            continue;
        }
        // All that is left; what ends a single last word belongs to no word.
        let mut last = chars.len();
        if after(end) == chars.len() {
            last = end;
        }
        while last > at && blank(last - 1) {
            last -= 1;
        }
        words.push(text(at, last));
        break;
    }
    words
}

pub(crate) fn read(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "adinNptu", &[]);
    let descriptor = descriptor(&options);
    let input = input(walker, descriptor);
    let number = |short| options.values(short).first().and_then(|text| text.parse::<usize>().ok());
    let (exactly, count) = (number('N').is_some(), number('N').or(number('n')));
    let delimiter = options.values('d').first().map_or('\n', |text| text.chars().next().unwrap_or('\0'));
    let taken = match &input {
        None => Taken { chars: vec![(UNKNOWN, false)], rest: String::new(), whole: true },
        Some(text) => take(text, delimiter, count, exactly, options.has('r')),
    };
    let line: String = taken.chars.iter().map(|(c, _)| *c).collect();
    walker.status = input.as_deref().filter(|text| !has_unknown(text)).map(|_| taken.whole);
    if input.is_some() {
        // Where a line is unknown, more of its kind may follow.
        let rest = if taken.rest.is_empty() { taint(&line) } else { taken.rest };
        leave(walker, descriptor, rest);
    }
    let separators = separators(walker);
    if let Some(name) = options.values('a').first() {
        let words = split(&taken.chars, &separators, usize::MAX);
        let items = words.into_iter().enumerate().map(|(i, word)| (i.to_string(), word)).collect();
        walker.give(name, Value::Array(items));
        return;
    }
    if options.operands.is_empty() || exactly {
        let name = options.operands.first().map_or("REPLY", String::as_str);
        walker.give(name, Value::Text(line));
        return;
    }
    let mut words = split(&taken.chars, &separators, options.operands.len()).into_iter();
    for name in &options.operands {
        let value = words.next().unwrap_or_default();
        // Whatever cannot be known of the line cannot be known of its words.
        let value = if value.is_empty() && !is_known(&line) { UNKNOWN.to_string() } else { value };
        walker.give(name, Value::Text(value));
    }
}

pub(crate) fn mapfile(walker: &mut Walker<'_>, args: &[String]) {
    let options = Options::read(args, "dnOsuCc", &[]);
    let descriptor = descriptor(&options);
    let input = input(walker, descriptor);
    let number = |short| options.values(short).first().and_then(|text| text.parse::<usize>().ok());
    let delimiter = options.values('d').first().map_or('\n', |text| text.chars().next().unwrap_or('\0'));
    let text = input.filter(|text| is_known(text));
    let mut items = Vec::new();
    if let Some(text) = &text {
        let lines = text.split_inclusive(delimiter).skip(number('s').unwrap_or(0));
        let most = number('n').filter(|most| *most > 0).unwrap_or(usize::MAX);
        let first = number('O').unwrap_or(0);
        for (i, line) in lines.take(most).enumerate() {
            let line = if options.has('t') { line.strip_suffix(delimiter).unwrap_or(line) } else { line };
            items.push(((first + i).to_string(), line.to_owned()));
        }
        leave(walker, descriptor, String::new());
    }
    let name = options.operands.first().map_or("MAPFILE", String::as_str);
    for command in options.values('C') {
        callbacks(walker, &command, number('c'), text.is_some().then_some(items.as_slice()));
    }
    let value = if text.is_some() { Value::Array(items) } else { Value::Text(UNKNOWN.to_string()) };
    // All that the array held before is gone.
    walker.give(name, Value::Array(Vec::new()));
    let name = walker.name_operand(name);
    let name = walker.referred(&name);
    if !walker.env.attributes_of(&name).readonly {
        walker.env.set(&name, value);
    }
}

/// `-C command`: it is given the index and the line.
fn callbacks(walker: &mut Walker<'_>, command: &str, every: Option<usize>, items: Option<&[(String, String)]>) {
    let Some(items) = items else {
        walker.run_here(&format!("{command} {} {UNKNOWN}", text::TOKEN));
        return;
    };
    let every = every.unwrap_or(5000).max(1);
    for (i, (index, line)) in items.iter().enumerate() {
        if (i + 1) % every == 0 {
            walker.run_here(&format!("{command} {index} {}", super::exec::quote(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_in_bash() {
        let words = |line: &str, separators: &str, names: usize| {
            split(&take(line, '\n', None, false, false).chars, separators, names)
        };
        for (line, separators, names, want) in [
            (" k  l m \n", " \t\n", 2, &["k", "l m"][..]),
            ("k:l:m\n", ":", 2, &["k", "l:m"]),
            ("k:\n", ":", 1, &["k"]),
            ("k::\n", ":", 1, &["k::"]),
            (":k\n", ":", 2, &["", "k"]),
            ("k : l\n", " :", 2, &["k", "l"]),
            ("k\\ l m\n", " ", 2, &["k l", "m"]),
            ("k\\\nl\n", " ", 2, &["kl"]),
            ("  \n", " ", 1, &[]),
            (" k ", "", 1, &[" k "]),
        ] {
            assert_eq!(words(line, separators, names), want, "{line:?} at {separators:?} for {names}");
        }
    }

    #[test]
    fn a_read_takes_up_to_its_delimiter_or_its_count() {
        let taken = |text: &str, delimiter, count, exactly| {
            let taken = take(text, delimiter, count, exactly, true);
            (taken.chars.iter().map(|(c, _)| *c).collect::<String>(), taken.rest, taken.whole)
        };
        assert_eq!(taken("k:l", ':', None, false), ("k".into(), "l".into(), true));
        assert_eq!(taken("kl", '\n', None, false), ("kl".into(), String::new(), false));
        assert_eq!(taken("klm\n", '\n', Some(2), false), ("kl".into(), "m\n".into(), true));
        assert_eq!(taken("k\nm", '\n', Some(3), true), ("k\nm".into(), String::new(), true));
    }
}
