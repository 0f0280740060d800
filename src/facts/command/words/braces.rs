//! Brace expansion (bash(1), Brace Expansion), which happens before every other expansion.

use crate::facts::command::grammar::syntax::Part;

/// A word as single unquoted characters and parts that braces cannot look into.
#[derive(Clone)]
enum Unit {
    Char(char),
    Atom(Part),
}

/// The words that a word's braces give, and whether that is all of them; `None` where there are none.
pub(crate) fn expand(parts: &[Part], limit: usize) -> Option<(Vec<Vec<Part>>, bool)> {
    if !parts.iter().any(|part| matches!(part, Part::Literal(text) if text.contains('{'))) {
        return None;
    }
    let mut units = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => units.extend(text.chars().map(Unit::Char)),
            other => units.push(Unit::Atom(other.clone())),
        }
    }
    let mut budget = limit;
    let variants = variants(&units, &mut budget, 0);
    if variants.len() == 1 && budget > 0 {
        return None;
    }
    Some((variants.into_iter().map(join).collect(), budget > 0))
}

fn join(units: Vec<Unit>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for unit in units {
        match (unit, parts.last_mut()) {
            (Unit::Char(c), Some(Part::Literal(text))) => text.push(c),
            (Unit::Char(c), _) => parts.push(Part::Literal(c.to_string())),
            (Unit::Atom(part), _) => parts.push(part),
        }
    }
    parts
}

/// Nesting beyond which braces are taken as text.
const DEPTH: usize = 16;

fn variants(units: &[Unit], budget: &mut usize, depth: usize) -> Vec<Vec<Unit>> {
    let plain = || vec![units.to_vec()];
    if depth > DEPTH {
        *budget = 0;
        return plain();
    }
    for (open, close, commas) in pairs(units) {
        let Some(choices) = choices(units, open, close, &commas, budget, depth) else { continue };
        let head = units.get(..open).unwrap_or_default();
        let tails = variants(units.get(close + 1..).unwrap_or_default(), budget, depth + 1);
        let mut out = Vec::new();
        for choice in &choices {
            for tail in &tails {
                if *budget == 0 {
                    return if out.is_empty() { plain() } else { out };
                }
                *budget -= 1;
                out.push([head, choice.as_slice(), tail.as_slice()].concat());
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
    budget: &mut usize,
    depth: usize,
) -> Option<Vec<Vec<Unit>>> {
    if commas.is_empty() {
        return sequence(units.get(open + 1..close)?, *budget);
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
        let Some((variants, _)) = expand(&parts, 100) else { return vec![text.to_owned()] };
        variants
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
        let (variants, complete) = expand(&parts, 100).unwrap();
        assert!(!complete && variants.len() <= 101, "{} variants, complete: {complete}", variants.len());
    }
}
