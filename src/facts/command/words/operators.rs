//! What the operators of `${name...}` make of a value.

use super::expand::Held;
use super::text::{
    CLOSE, ONE, OPEN, TOKEN, UNKNOWN, ansi_c, has_glob, has_unknown, is_known, is_unknown, matches_within, taint,
};
use crate::facts::command::grammar::syntax::{Parameter, Part};
use crate::facts::command::shell::walk::Walker;

impl Walker<'_> {
    pub(super) fn operate(&mut self, parameter: &Parameter, held: Held) -> Held {
        if parameter.length {
            return Held::Text(match held {
                Held::Text(text) if is_known(&text) => text.chars().count().to_string(),
                Held::List { items, .. } if !items.iter().any(|item| has_glob(item)) => items.len().to_string(),
                Held::Unset => "0".to_owned(),
                _ => TOKEN.to_string(),
            });
        }
        match parameter.operator {
            "" => held,
            ":-" | "-" | ":=" | "=" | ":?" | "?" | ":+" | "+" => self.test_operator(parameter, held),
            "?unknown" => {
                if parameter.name.is_empty() {
                    self.broken = true;
                    self.notes.effect("unresolved");
                }
                if let Some(word) = &parameter.argument {
                    self.text(word);
                }
                Held::Unknown
            }
            _ => self.string_operator(parameter, held),
        }
    }

    fn test_operator(&mut self, parameter: &Parameter, held: Held) -> Held {
        let absent = self.is_absent(parameter, &held);
        // The argument is only evaluated where it may be used; its commands only run then.
        let wanted = match parameter.operator.trim_start_matches(':') {
            "+" => absent != Some(true),
            _ => absent != Some(false),
        };
        let argument = match (&parameter.argument, wanted) {
            (Some(word), true) => self.text(word),
            _ => String::new(),
        };
        match parameter.operator.trim_start_matches(':') {
            "+" if wanted => Held::Text(argument),
            "+" => Held::Unset,
            "?" => {
                self.broken |= absent != Some(false);
                held
            }
            operator if wanted => {
                if operator == "=" {
                    self.env.set_text(&parameter.name, argument.clone());
                }
                Held::Text(argument)
            }
            _ => held,
        }
    }

    fn string_operator(&mut self, parameter: &Parameter, held: Held) -> Held {
        let argument = match &parameter.argument {
            Some(word) if parameter.operator == ":" => self.arithmetic(word),
            Some(word) => self.pattern(word),
            None => String::new(),
        };
        let second = match &parameter.second {
            Some(word) if parameter.operator == ":" => Some(self.arithmetic(word)),
            Some(word) => {
                let text = self.text(word);
                // `&` is what was found, for some versions of bash.
                let quoted = word.parts.iter().all(|part| matches!(part, Part::Quoted(_) | Part::Double(_)));
                Some(if text.contains('&') && !quoted { UNKNOWN.to_string() } else { text })
            }
            None => None,
        };
        match held {
            Held::List { items, star } if parameter.operator == ":" && items.iter().any(|item| has_glob(item)) => {
                let items = if argument == "0" && second.is_none() { items } else { vec![UNKNOWN.to_string()] };
                Held::List { items, star }
            }
            Held::List { items, star } if parameter.operator == ":" => {
                // For `$@` index 0 is `$0`; for arrays it is the first element.
                let parameters = parameter.name == "@" || parameter.name == "*";
                let (from, to) = slice(&argument, second.as_deref(), items.len() + usize::from(parameters));
                let from = if parameters { from.saturating_sub(1) } else { from };
                Held::List { items: items.into_iter().skip(from).take(to).collect(), star }
            }
            Held::List { items, star } => {
                let items = items.iter().map(|item| self.transform(parameter, item, &argument, second.as_deref()));
                Held::List { items: items.collect(), star }
            }
            Held::Text(text) => Held::Text(self.transform(parameter, &text, &argument, second.as_deref())),
            other => other,
        }
    }

    fn transform(&mut self, parameter: &Parameter, text: &str, argument: &str, second: Option<&str>) -> String {
        if parameter.operator == "@" {
            return match argument {
                "P" => self.prompt(text),
                "E" => ansi_c(text),
                "U" => text.to_uppercase(),
                "u" => upper_first(text),
                "L" => text.to_lowercase(),
                "Q" if is_known(text) && !text.contains(char::is_control) => {
                    format!("'{}'", text.replace('\'', r"'\''"))
                }
                _ if has_unknown(text) => text.to_owned(),
                _ => UNKNOWN.to_string(),
            };
        }
        if has_unknown(text) {
            return keep_prefix(text, parameter.operator);
        }
        // What an unknown pattern cuts, nobody knows.
        let cuts = matches!(parameter.operator, "#" | "##" | "%" | "%%" | "/" | "//" | "/#" | "/%");
        if has_glob(text) && !keeps_names(text, parameter.operator) || cuts && has_unknown(argument) {
            return UNKNOWN.to_string();
        }
        match parameter.operator {
            operator @ ("#" | "##" | "%" | "%%" | "/" | "//" | "/#" | "/%") => {
                let mut left = PATTERN_WORK.saturating_sub(self.pattern_work);
                let all = left;
                let changed = match operator {
                    "#" => strip_prefix(text, argument, false, &mut left),
                    "##" => strip_prefix(text, argument, true, &mut left),
                    "%" => strip_suffix(text, argument, false, &mut left),
                    "%%" => strip_suffix(text, argument, true, &mut left),
                    _ => replace(text, argument, second.unwrap_or_default(), operator, self.text_limit(), &mut left),
                };
                self.pattern_work += all - left;
                changed.unwrap_or_else(|| {
                    self.limited("work of matching patterns");
                    UNKNOWN.to_string()
                })
            }
            "^^" => text.to_uppercase(),
            ",," => text.to_lowercase(),
            "^" => upper_first(text),
            "," => lower_first(text),
            ":" => {
                let (from, len) = slice(argument, second, text.chars().count());
                text.chars().skip(from).take(len).collect()
            }
            _ => UNKNOWN.to_string(),
        }
    }
}

/// Whether an operator gives for a pattern what it gives for all that the pattern matches: it changes letters, or cuts
/// where the pattern is text, or anything.
fn keeps_names(text: &str, operator: &str) -> bool {
    let open = |c: Option<char>| c.is_some_and(|c| matches!(c, ONE | OPEN | CLOSE));
    match operator {
        "^^" | ",," => !text.contains(OPEN),
        "#" | "##" => !open(text.chars().next()),
        "%" | "%%" => !open(text.chars().next_back()),
        _ => false,
    }
}

/// What is left of a text with unknown parts after an operator: its kind of unknown, at least.
fn keep_prefix(text: &str, operator: &str) -> String {
    match operator {
        // Cutting at the end keeps the beginning.
        "%" | "%%" => text.chars().take_while(|c| *c != UNKNOWN).collect::<String>() + &taint(text),
        _ => taint(text),
    }
}

/// Steps that all patterns of a command may take against the texts that they cut.
pub(super) const PATTERN_WORK: usize = 1_000_000;

fn boundaries(text: &str) -> Vec<usize> {
    text.char_indices().map(|(i, _)| i).chain([text.len()]).collect()
}

fn strip_prefix(text: &str, pattern: &str, longest: bool, work: &mut usize) -> Option<String> {
    let mut ends = boundaries(text);
    if longest {
        ends.reverse();
    }
    for end in ends {
        if let (Some(head), Some(tail)) = (text.get(..end), text.get(end..))
            && matches_within(pattern, head, work)?
        {
            return Some(tail.to_owned());
        }
    }
    Some(text.to_owned())
}

fn strip_suffix(text: &str, pattern: &str, longest: bool, work: &mut usize) -> Option<String> {
    let mut starts = boundaries(text);
    if !longest {
        starts.reverse();
    }
    for start in starts {
        if let (Some(head), Some(tail)) = (text.get(..start), text.get(start..))
            && matches_within(pattern, tail, work)?
        {
            return Some(head.to_owned());
        }
    }
    Some(text.to_owned())
}

/// `None` where the result is longer than `limit`, or the work too much.
fn replace(
    text: &str,
    pattern: &str,
    replacement: &str,
    operator: &str,
    limit: usize,
    work: &mut usize,
) -> Option<String> {
    *work = work.checked_sub(text.len() + pattern.len())?;
    if is_known(pattern) {
        return Some(match operator {
            _ if pattern.is_empty() => text.to_owned(),
            "//" => {
                let added = text.matches(pattern).count().saturating_mul(replacement.len());
                if text.len().saturating_add(added) > limit.saturating_mul(2) {
                    return None;
                }
                text.replace(pattern, replacement)
            }
            "/#" => text.strip_prefix(pattern).map_or(text.to_owned(), |rest| format!("{replacement}{rest}")),
            "/%" => text.strip_suffix(pattern).map_or(text.to_owned(), |rest| format!("{rest}{replacement}")),
            _ => text.replacen(pattern, replacement, 1),
        });
    }
    // One character at a time is what patterns in scripts mostly match (`${x//[^a-z]/}`).
    let bracket =
        pattern.starts_with(OPEN) && pattern.find(CLOSE).is_some_and(|at| at + CLOSE.len_utf8() == pattern.len());
    let one = (bracket || pattern.chars().eq([ONE])) && !pattern.chars().any(is_unknown);
    if !one || matches!(operator, "/#" | "/%") {
        return replace_longest(text, pattern, replacement, operator, work);
    }
    let mut out = String::with_capacity(text.len());
    let mut done = false;
    for c in text.chars() {
        if !done && matches_within(pattern, c.encode_utf8(&mut [0; 4]), work)? {
            out.push_str(replacement);
            done = operator == "/";
            if out.len() > limit.saturating_mul(2) {
                return None;
            }
        } else {
            out.push(c);
        }
    }
    Some(out)
}

/// Replaces the longest match at each place.
fn replace_longest(text: &str, pattern: &str, replacement: &str, operator: &str, work: &mut usize) -> Option<String> {
    let ends = boundaries(text);
    let mut out = String::new();
    let mut at = 0;
    while let Some(&start) = ends.get(at) {
        let anchored = operator == "/#" && at > 0;
        let mut found = None;
        for (end_at, &end) in ends.iter().enumerate().skip(at + 1).rev().filter(|_| !anchored) {
            let fits = operator != "/%" || end == text.len();
            if fits && matches_within(pattern, text.get(start..end)?, work)? {
                found = Some(end_at);
                break;
            }
        }
        match found {
            Some(end_at) => {
                out.push_str(replacement);
                at = end_at;
                if operator != "//" {
                    out.push_str(text.get(*ends.get(at)?..)?);
                    return Some(out);
                }
            }
            None => {
                let next = ends.get(at + 1).copied().unwrap_or(text.len());
                out.push_str(text.get(start..next)?);
                at += 1;
            }
        }
    }
    Some(out)
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Offset and length of `${name:offset:length}`, negative ones counted from the end.
fn slice(offset: &str, length: Option<&str>, total: usize) -> (usize, usize) {
    let total_i = i64::try_from(total).unwrap_or(i64::MAX);
    let offset = offset.trim().parse::<i64>().unwrap_or(0);
    let from = if offset < 0 { (total_i + offset).max(0) } else { offset.min(total_i) };
    let len = match length.map(|text| text.trim().parse::<i64>()) {
        Some(Ok(n)) if n < 0 => (total_i + n - from).max(0),
        Some(Ok(n)) => n,
        _ => total_i,
    };
    (usize::try_from(from).unwrap_or(0), usize::try_from(len).unwrap_or(0))
}
