//! Brace expansion (bash(1), Brace Expansion), which happens before every other expansion.

use std::rc::Rc;

use crate::facts::command::grammar::syntax::{Parameter, Part};
use crate::facts::command::words::text::has_unknown;

/// A word as single unquoted characters and parts, by their number, that braces cannot look into.
#[derive(Clone, Copy)]
enum Unit {
    Char(char),
    Atom(usize),
}

/// What the braces of a word give.
pub(crate) struct Braces {
    pub words: Vec<Vec<Part>>,
    /// Whether that is all of them.
    pub complete: bool,
    /// What it cost, about in nanoseconds.
    pub work: usize,
}

/// What is left of what may be done.
struct Budget {
    words: usize,
    /// Characters of all words that are put together.
    units: usize,
}

impl Budget {
    fn spent(&self) -> bool {
        self.words == 0 || self.units == 0
    }

    fn take(&mut self, units: usize) {
        self.units = self.units.saturating_sub(units);
    }
}

/// Characters that may be put together for one word, and what each costs.
const UNITS: usize = 400_000;
const UNIT: usize = 5;

/// Whether unknown code may hold the other half of a brace in it: nobody knows how many words it is.
pub(crate) fn are_open(parts: &[Part]) -> bool {
    let texts = || parts.iter().filter_map(|part| if let Part::Literal(text) = part { Some(text) } else { None });
    let count = |brace| texts().map(|text| text.matches(brace).count()).sum::<usize>();
    texts().any(|text| has_unknown(text)) && count('{') != count('}')
}

/// The words that a word's braces give; `None` where there are none.
pub(crate) fn expand(parts: &[Part], limit: usize) -> Option<Braces> {
    if !parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains('{'))) {
        return None;
    }
    let mut units = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(text) => units.extend(text.chars().map(Unit::Char)),
            _ => units.push(Unit::Atom(i)),
        }
    }
    let mut budget = Budget { words: limit, units: UNITS.max(units.len()) };
    let most = budget.units;
    let variants = variants(&units, &mut budget, 0);
    if variants.len() == 1 && !budget.spent() {
        return None;
    }
    Some(Braces {
        words: variants.iter().map(|units| join(units, parts)).collect(),
        complete: !budget.spent(),
        work: (most - budget.units) * UNIT,
    })
}

fn join(units: &[Unit], all: &[Part]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for unit in units {
        match (unit, parts.last_mut()) {
            (Unit::Char(c), Some(Part::Literal(text))) => text.push(*c),
            (Unit::Char(c), Some(Part::Parameter(parameter)))
                if parameter.bare && (c.is_ascii_alphanumeric() || *c == '_') =>
            {
                let name = format!("{}{c}", parameter.name);
                *parameter = Rc::new(Parameter { name, bare: true, ..Parameter::default() });
            }
            (Unit::Char(c), _) => parts.push(Part::Literal(c.to_string())),
            (Unit::Atom(i), _) => parts.extend(all.get(*i).cloned()),
        }
    }
    parts
}

/// Nesting beyond which braces are taken as text.
const DEPTH: usize = 16;

fn variants(units: &[Unit], budget: &mut Budget, depth: usize) -> Vec<Vec<Unit>> {
    budget.take(units.len());
    let plain = || vec![units.to_vec()];
    if depth > DEPTH {
        budget.words = 0;
        return plain();
    }
    for (open, close, commas) in pairs(units) {
        let Some(choices) = choices(units, open, close, &commas, budget, depth) else { continue };
        let head = units.get(..open).unwrap_or_default();
        let tails = variants(units.get(close + 1..).unwrap_or_default(), budget, depth + 1);
        let mut out = Vec::new();
        for choice in &choices {
            for tail in &tails {
                if budget.spent() {
                    return if out.is_empty() { plain() } else { out };
                }
                budget.words -= 1;
                let word = [head, choice.as_slice(), tail.as_slice()].concat();
                budget.take(word.len());
                out.push(word);
            }
        }
        return out;
    }
    plain()
}

/// The braces that close, in order, each with its own commas.
fn pairs(units: &[Unit]) -> Vec<(usize, usize, Vec<usize>)> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut pairs = Vec::new();
    for (i, unit) in units.iter().enumerate() {
        match unit {
            Unit::Char('{') => open.push((i, Vec::new())),
            Unit::Char('}') => pairs.extend(open.pop().map(|(start, commas)| (start, i, commas))),
            Unit::Char(',') => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(i);
                }
            }
            _ => {}
        }
    }
    pairs.sort_unstable_by_key(|(start, ..)| *start);
    pairs
}

fn choices(
    units: &[Unit],
    open: usize,
    close: usize,
    commas: &[usize],
    budget: &mut Budget,
    depth: usize,
) -> Option<Vec<Vec<Unit>>> {
    if commas.is_empty() {
        return sequence(units.get(open + 1..close)?, budget.words);
    }
    let mut out = Vec::new();
    let mut start = open + 1;
    for end in commas.iter().copied().chain([close]) {
        out.extend(variants(units.get(start..end)?, budget, depth + 1));
        start = end + 1;
    }
    Some(out)
}

/// `{1..5}`, `{a..e}`, `{01..10..3}`.
fn sequence(units: &[Unit], limit: usize) -> Option<Vec<Vec<Unit>>> {
    let mut text = String::new();
    for unit in units {
        match unit {
            Unit::Char(c) => text.push(*c),
            Unit::Atom(_) => return None,
        }
    }
    let mut ends = text.split("..");
    let (first, last) = (ends.next()?, ends.next()?);
    let step: i64 = ends.next().map_or(Some(1), |step| step.parse().ok())?;
    let step = step.unsigned_abs().max(1);
    let single =
        |s: &str| (s.chars().count() == 1).then(|| s.chars().next()).flatten().filter(char::is_ascii_alphabetic);
    let (from, to, letters) = match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(from), Ok(to)) => (from, to, false),
        _ => (i64::from(u32::from(single(first)?)), i64::from(u32::from(single(last)?)), true),
    };
    let width = if first.starts_with('0') || last.starts_with('0') { first.len().max(last.len()) } else { 0 };
    // Formatting takes no more than 65535; nobody pads numbers this far.
    let width = width.min(255);
    let count = (from.abs_diff(to) / step).saturating_add(1);
    let mut out = Vec::new();
    for i in 0..count.min(limit.max(1) as u64) {
        let distance = i64::try_from(i.saturating_mul(step)).unwrap_or(i64::MAX);
        let value = if from <= to { from.saturating_add(distance) } else { from.saturating_sub(distance) };
        let text = if letters {
            u32::try_from(value).ok().and_then(char::from_u32)?.to_string()
        } else {
            format!("{value:0width$}")
        };
        out.push(text.chars().map(Unit::Char).collect());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let parts = [Part::Literal(text.to_owned())];
        let Some(found) = expand(&parts, 100) else { return vec![text.to_owned()] };
        found
            .words
            .into_iter()
            .map(|parts| {
                let mut out = String::new();
                crate::facts::command::grammar::parse_word::unquoted_text(&parts, &mut out);
                out
            })
            .collect()
    }

    #[test]
    fn braces_expand_as_in_bash() {
        assert_eq!(words("{rm,-rf,/}"), ["rm", "-rf", "/"]);
        assert_eq!(words("a{b,c{d,e}}f"), ["abf", "acdf", "acef"]);
        assert_eq!(words("{1..3}{a..b}"), ["1a", "1b", "2a", "2b", "3a", "3b"]);
        assert_eq!(words("{08..10}"), ["08", "09", "10"]);
        assert_eq!(words("conf{,.bak}"), ["conf", "conf.bak"]);
        assert_eq!(words("{x}"), ["{x}"]);
        assert_eq!(words("{}"), ["{}"]);
    }

    #[test]
    fn i6_a_cut_expansion_says_so() {
        let parts = [Part::Literal("{1..9}{1..9}{1..9}{1..9}".to_owned())];
        let found = expand(&parts, 100).unwrap();
        assert!(!found.complete && found.words.len() <= 101, "{} words, all: {}", found.words.len(), found.complete);
    }

    #[test]
    fn i6_long_words_are_not_copied_without_end() {
        let parts = [Part::Literal("x".repeat(60_000) + "{a,b,c,d}{a,b,c,d}{a,b,c,d}{a,b,c,d}")];
        let found = expand(&parts, 1_000).unwrap();
        assert!(!found.complete && found.words.len() < 10, "{} words, all: {}", found.words.len(), found.complete);
    }
}
