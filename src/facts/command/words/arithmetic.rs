//! Arithmetic of the shell: the values that scripts compute, the variables that it sets, and the commands that hide in
//! subscripts, in the expression itself or in what its variables hold.

/// What an expression works on.
pub(crate) trait Memory {
    /// The text of a variable; `None` where it cannot be known.
    fn text(&mut self, name: &str, index: Option<&str>) -> Option<String>;
    /// An assignment that runs, or that may run.
    fn set(&mut self, name: &str, index: Option<&str>, value: Option<i64>, certain: bool);
    /// The shell expands a subscript once more.
    fn subscript(&mut self, text: &str);
}

/// Numbers without variables.
pub(crate) struct Constants;

impl Memory for Constants {
    fn text(&mut self, _: &str, _: Option<&str>) -> Option<String> {
        None
    }
    fn set(&mut self, _: &str, _: Option<&str>, _: Option<i64>, _: bool) {}
    fn subscript(&mut self, _: &str) {}
}

/// Variables that hold expressions that name variables.
const INDIRECTIONS: usize = 12;
/// All expressions that variables hold.
const EXPRESSIONS: usize = 256;
const DEPTH: usize = 48;

/// The value of an expression; `None` where it cannot be known.
pub(crate) fn evaluate(text: &str, memory: &mut dyn Memory) -> Option<i64> {
    let mut budget = EXPRESSIONS;
    within(text, memory, INDIRECTIONS, &mut budget, Reach::Runs)
}

/// Whether a part of an expression is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Runs,
    May,
    Skipped,
}

fn within(text: &str, memory: &mut dyn Memory, left: usize, budget: &mut usize, reach: Reach) -> Option<i64> {
    if text.trim().is_empty() {
        return Some(0);
    }
    let mut parser = Arithmetic { rest: text, memory, depth: 0, left, budget, reach };
    let value = parser.comma();
    if parser.rest.trim().is_empty() {
        return value;
    }
    // What is left was not understood, but its subscripts are still expanded.
    let rest = parser.rest;
    if rest.contains('[') && parser.reach != Reach::Skipped {
        parser.memory.subscript(rest);
    }
    None
}

struct Arithmetic<'t, 'm> {
    rest: &'t str,
    memory: &'m mut dyn Memory,
    depth: usize,
    left: usize,
    budget: &'m mut usize,
    reach: Reach,
}

/// Binary operators with how tightly they bind, the longer ones first.
const BINARY: &[(&str, u8)] = &[
    ("||", 1),
    ("&&", 2),
    ("**", 11),
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("==", 6),
    ("!=", 6),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

const ASSIGNMENTS: &[&str] = &["<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "="];

impl<'t> Arithmetic<'t, '_> {
    fn take(&mut self, operator: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn comma(&mut self) -> Option<i64> {
        let mut value = self.ternary();
        while self.take(",") {
            value = self.ternary();
        }
        value
    }

    fn ternary(&mut self) -> Option<i64> {
        if self.depth >= DEPTH {
            return None;
        }
        self.depth += 1;
        let value = self.choice();
        self.depth -= 1;
        value
    }

    fn choice(&mut self) -> Option<i64> {
        let condition = self.binary(1);
        if !self.take("?") {
            return condition;
        }
        let yes = self.reached(condition.map(|value| value != 0), Self::ternary);
        if !self.take(":") {
            return None;
        }
        let no = self.reached(condition.map(|value| value == 0), Self::ternary);
        match condition {
            Some(0) => no,
            Some(_) => yes,
            None => None,
        }
    }

    /// Evaluates a part that runs where `runs` holds.
    fn reached(&mut self, runs: Option<bool>, part: impl FnOnce(&mut Self) -> Option<i64>) -> Option<i64> {
        let outer = self.reach;
        self.reach = match (outer, runs) {
            (Reach::Skipped, _) | (_, Some(false)) => Reach::Skipped,
            (_, None) => Reach::May,
            (outer, Some(true)) => outer,
        };
        let value = part(self);
        self.reach = outer;
        value
    }

    fn binary(&mut self, least: u8) -> Option<i64> {
        let mut value = self.unary();
        loop {
            self.rest = self.rest.trim_start();
            let rest = self.rest;
            let found = BINARY.iter().find(|(operator, _)| rest.starts_with(operator));
            let Some(&(operator, binding)) = found.filter(|(_, binding)| *binding >= least) else { return value };
            self.rest = rest.get(operator.len()..).unwrap_or_default();
            let next = if operator == "**" { binding } else { binding + 1 };
            let runs = match operator {
                "&&" => value.map(|value| value != 0),
                "||" => value.map(|value| value == 0),
                _ => Some(true),
            };
            if self.depth >= DEPTH {
                return None;
            }
            self.depth += 1;
            let right = self.reached(runs, |parser| parser.binary(next));
            self.depth -= 1;
            value = apply(operator, value, right);
        }
    }

    fn unary(&mut self) -> Option<i64> {
        self.rest = self.rest.trim_start();
        for operator in ["++", "--"] {
            let named = self.rest.strip_prefix(operator).filter(|rest| starts_name(rest.trim_start()));
            if let Some(rest) = named {
                self.rest = rest.trim_start();
                let (name, index) = self.place();
                let step = if operator == "++" { 1 } else { -1 };
                let value = self.load(&name, index.as_deref()).and_then(|value| value.checked_add(step));
                self.store(&name, index.as_deref(), value);
                return value;
            }
        }
        let Some(operator @ ('!' | '~' | '-' | '+')) = self.rest.chars().next() else { return self.atom() };
        self.rest = self.rest.get(1..).unwrap_or_default();
        if self.depth >= DEPTH {
            return None;
        }
        self.depth += 1;
        let value = self.unary();
        self.depth -= 1;
        match operator {
            '!' => value.map(|value| i64::from(value == 0)),
            '~' => value.map(|value| !value),
            '-' => value.and_then(i64::checked_neg),
            _ => value,
        }
    }

    fn atom(&mut self) -> Option<i64> {
        if self.take("(") {
            if self.depth >= DEPTH {
                return None;
            }
            self.depth += 1;
            let value = self.comma();
            self.depth -= 1;
            return if self.take(")") { value } else { None };
        }
        if !starts_name(self.rest) {
            return self.number();
        }
        let (name, index) = self.place();
        self.rest = self.rest.trim_start();
        let rest = self.rest;
        let assigns = |operator: &&&str| rest.starts_with(**operator) && !(**operator == "=" && rest.starts_with("=="));
        if let Some(operator) = ASSIGNMENTS.iter().find(assigns) {
            self.rest = rest.get(operator.len()..).unwrap_or_default();
            let right = self.ternary();
            let value = match operator.strip_suffix('=').filter(|operator| !operator.is_empty()) {
                Some(operator) => apply(operator, self.load(&name, index.as_deref()), right),
                None => right,
            };
            self.store(&name, index.as_deref(), value);
            return value;
        }
        let value = self.load(&name, index.as_deref());
        for (operator, step) in [("++", 1), ("--", -1)] {
            if self.take(operator) {
                self.store(&name, index.as_deref(), value.and_then(|value| value.checked_add(step)));
                break;
            }
        }
        value
    }

    /// A variable, perhaps with a subscript.
    fn place(&mut self) -> (String, Option<String>) {
        let len = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (name, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest;
        let Some(subscript) = rest.strip_prefix('[') else { return (name.to_owned(), None) };
        let mut open = 1_usize;
        let end = subscript.bytes().position(|byte| {
            match byte {
                b'[' => open += 1,
                b']' => open -= 1,
                _ => {}
            }
            open == 0
        });
        let (index, rest) = match end {
            Some(end) => (subscript.get(..end).unwrap_or_default(), subscript.get(end + 1..).unwrap_or_default()),
            None => (subscript, ""),
        };
        self.rest = rest;
        if self.reach == Reach::Skipped {
            return (name.to_owned(), Some(index.to_owned()));
        }
        self.memory.subscript(index);
        let plain = index.bytes().all(|b| b.is_ascii_digit());
        if plain || self.left == 0 || *self.budget == 0 {
            return (name.to_owned(), Some(index.to_owned()));
        }
        *self.budget -= 1;
        let value = within(index, self.memory, self.left - 1, self.budget, self.reach);
        (name.to_owned(), Some(value.map_or_else(|| index.to_owned(), |value| value.to_string())))
    }

    fn load(&mut self, name: &str, index: Option<&str>) -> Option<i64> {
        let text = self.memory.text(name, index)?;
        let trimmed = text.trim();
        if let Ok(value) = trimmed.parse() {
            return Some(value).filter(|_| trimmed == "0" || !trimmed.starts_with('0'));
        }
        if self.left == 0 || *self.budget == 0 || trimmed == name {
            return None;
        }
        *self.budget -= 1;
        within(trimmed, self.memory, self.left - 1, self.budget, self.reach)
    }

    fn store(&mut self, name: &str, index: Option<&str>, value: Option<i64>) {
        if self.reach != Reach::Skipped {
            self.memory.set(name, index, value, self.reach == Reach::Runs);
        }
    }

    fn number(&mut self) -> Option<i64> {
        let len =
            self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#' | b'@')).count();
        let (word, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        if let Some((base, digits)) = word.split_once('#') {
            let base: u32 = base.parse().ok()?;
            return (2..=36).contains(&base).then(|| i64::from_str_radix(digits, base).ok())?;
        }
        if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            return i64::from_str_radix(digits, 16).ok();
        }
        if word.len() > 1 && word.starts_with('0') {
            return i64::from_str_radix(word, 8).ok();
        }
        word.parse().ok()
    }
}

fn starts_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn apply(operator: &str, left: Option<i64>, right: Option<i64>) -> Option<i64> {
    match (operator, left, right) {
        ("&&", Some(0), _) | ("&&", _, Some(0)) => return Some(0),
        ("||", Some(value), _) | ("||", _, Some(value)) if value != 0 => return Some(1),
        _ => {}
    }
    let (left, right) = (left?, right?);
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < 64);
    match operator {
        "||" => Some(i64::from(left != 0 || right != 0)),
        "&&" => Some(i64::from(left != 0 && right != 0)),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "==" => Some(i64::from(left == right)),
        "!=" => Some(i64::from(left != right)),
        "<" => Some(i64::from(left < right)),
        "<=" => Some(i64::from(left <= right)),
        ">" => Some(i64::from(left > right)),
        ">=" => Some(i64::from(left >= right)),
        "<<" => left.checked_shl(shift()?),
        ">>" => left.checked_shr(shift()?),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "**" => left.checked_pow(u32::try_from(right).ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[derive(Default)]
    struct Map(HashMap<String, String>, Vec<String>);

    impl Memory for Map {
        fn text(&mut self, name: &str, _: Option<&str>) -> Option<String> {
            self.0.get(name).cloned()
        }
        fn set(&mut self, name: &str, _: Option<&str>, value: Option<i64>, certain: bool) {
            let value = value.filter(|_| certain).map_or_else(|| "?".to_owned(), |value| value.to_string());
            self.0.insert(name.to_owned(), value);
        }
        fn subscript(&mut self, text: &str) {
            self.1.push(text.to_owned());
        }
    }

    #[test]
    fn values_of_expressions() {
        for (text, want) in [
            ("1 + 2 * (x - 3)", Some(5)),
            ("16#ff + 010 + 0x10", Some(279)),
            ("y + 1", None),
            ("1 / 0", None),
            ("2 ** 3 ** 2", Some(512)),
            ("x > 3 && x < 9 ? 7 : 8", Some(7)),
            ("!x || y", None),
            ("x || y", Some(1)),
            ("x++ + x", Some(11)),
            ("a = b = 3, a + b", Some(6)),
            ("1 << 4 | 1", Some(17)),
            ("e + 1", Some(7)),
            ("0 && (x = 9), x", Some(5)),
            ("", Some(0)),
        ] {
            let mut map = Map::default();
            map.0.insert("x".into(), "5".into());
            map.0.insert("e".into(), "x + 1".into());
            assert_eq!(evaluate(text, &mut map), want, "{text}");
        }
        for text in ["(".repeat(5000), "-".repeat(5000), "x[".repeat(5000), "a=".repeat(5000), "1**".repeat(5000)] {
            assert_eq!(evaluate(&text, &mut Map::default()), None);
        }
    }

    #[test]
    fn subscripts_are_expanded_wherever_they_hide() {
        let mut map = Map::default();
        map.0.insert("x".into(), "a[$(cmd)]".into());
        evaluate("1 + x", &mut map);
        assert_eq!(map.1, ["$(cmd)"]);
    }
}
