//! Rules that are sound and of no use: that can never fire, or that an earlier one always fires with.

use std::collections::BTreeSet;

use super::{PackError, PackProblem, PackSource, RuleEntry};

/// What is most likely not meant in these packs, each with its place.
///
/// # Errors
///
/// When a pack cannot be read at all.
pub fn lint(packs: &[PackSource]) -> Result<Vec<PackError>, PackError> {
    let mut found = Vec::new();
    let mut before: Vec<RuleEntry> = Vec::new();
    for source in packs {
        for entry in source.read()?.rule {
            let at = entry.id.span().start;
            let id = entry.id.get_ref().clone();
            let mut say = |what: String| found.push(source.error(at, PackProblem::Lint { id: id.clone(), what }));
            if let Some(why) = never(&entry) {
                say(format!("can never fire: {why}"));
            }
            if entry.matches.is_empty() {
                say("has no `match` example, so nothing shows that it fires".to_owned());
            }
            if let Some(other) = before.iter().find(|other| covers(other, &entry)) {
                say(format!("is shadowed: `{}` fires wherever it does, and is as grave", other.id.get_ref()));
            }
            before.push(entry);
        }
    }
    Ok(found)
}

/// Why no call can meet all that a rule asks for.
fn never(rule: &RuleEntry) -> Option<String> {
    let within =
        |words: &[String], others: &[String]| !words.is_empty() && words.iter().all(|word| others.contains(word));
    if within(&rule.option, &rule.no_option) || within(&rule.and_option, &rule.no_option) {
        return Some("every `option` is in `no_option` too".to_owned());
    }
    if within(&rule.arg, &rule.no_arg) {
        return Some("every `arg` is in `no_arg` too".to_owned());
    }
    let kinds =
        |kinds: &Option<toml::Spanned<Vec<String>>>| kinds.as_ref().map(|k| k.get_ref().clone()).unwrap_or_default();
    if within(&kinds(&rule.target), &kinds(&rule.no_target)) {
        return Some("every `target` is in `no_target` too".to_owned());
    }
    let asks_words =
        [&rule.subcommand, &rule.option, &rule.and_option, &rule.arg].iter().any(|words| !words.is_empty());
    if rule.bare == Some(true) && (asks_words || rule.operand.is_some()) {
        return Some("a `bare` call has no arguments to ask for".to_owned());
    }
    None
}

/// Whether `wide` fires wherever `narrow` does, and is as grave.
fn covers(wide: &RuleEntry, narrow: &RuleEntry) -> bool {
    let grave = |rule: &RuleEntry| match rule.severity.get_ref().as_str() {
        "fatal" => 5,
        "deny" => 4,
        "review" => 3,
        "warn" => 2,
        _ => 1,
    };
    let (wide_asks, narrow_asks) = (wide.predicates(), narrow.predicates());
    let asked = |asks: &[(&'static str, Vec<String>)], name: &str| {
        asks.iter().find(|(key, _)| *key == name).map(|(_, words)| words.iter().cloned().collect::<BTreeSet<String>>())
    };
    grave(wide) >= grave(narrow)
        && (wide.in_scripts || !narrow.in_scripts)
        && wide_asks.iter().all(|(name, words)| {
            let words: BTreeSet<String> = words.iter().cloned().collect();
            match asked(&narrow_asks, name) {
                // What a rule leaves out may be fewer than what the other one leaves out.
                Some(other) if name.starts_with("no_") => words.is_subset(&other),
                Some(other) => other.is_subset(&words),
                None => false,
            }
        })
}
