//! Conditions whose outcome is known: `test`, `[[ ]]`, `(( ))`. And names that hide commands in their subscripts.

use super::arithmetic::{Memory, evaluate};
use super::expand::Held;
use super::text::{MAYBE, TOKEN, UNKNOWN, has_unknown, is_known, matches};
use crate::facts::command::grammar::syntax::{Part, Word};
use crate::facts::command::shell::env::Value;
use crate::facts::command::shell::walk::Walker;

/// Nesting of brackets and `!` beyond which a condition is left open.
const DEPTH: usize = 32;

impl Memory for Walker<'_> {
    fn text(&mut self, name: &str, index: Option<&str>) -> Option<String> {
        match self.variable(name, index) {
            Held::Text(text) if is_known(&text) => Some(text),
            Held::Unset => Some("0".to_owned()),
            _ => None,
        }
    }

    fn set(&mut self, name: &str, index: Option<&str>, value: Option<i64>, certain: bool) {
        let text = value.map_or_else(|| TOKEN.to_string(), |value| value.to_string());
        let name = &self.referred(name);
        if let Some(index) = index {
            self.set_item(name, index.to_owned(), text);
        } else if certain {
            self.env.set_text(name, text);
        } else {
            let mut env = self.env.clone();
            self.add_alternative(&mut env, name, Value::Text(text));
            self.env = env;
        }
    }

    fn subscript(&mut self, text: &str) {
        if text.contains(['`', '$']) {
            self.subshell(|walker| walker.prompt(text));
        }
    }
}

impl Walker<'_> {
    /// An arithmetic expression as text. Its value where it is known.
    pub(crate) fn arithmetic_number(&mut self, text: &str) -> Option<i64> {
        let outer = std::mem::take(&mut self.reads);
        let value = evaluate(text, self);
        let open = !self.reads.is_empty();
        self.reads.extend(outer);
        // A variable with several values makes it open, where nobody tries each of them.
        if open { None } else { value }
    }

    pub(crate) fn arithmetic_text(&mut self, text: &str) -> String {
        evaluate(text, self).map_or_else(|| TOKEN.to_string(), |value| value.to_string())
    }

    /// `(( ))` and `let`: true where it is not zero.
    pub(crate) fn arithmetic_status(&mut self, text: &str) {
        self.status = self.arithmetic_number(text).map(|value| value != 0);
    }

    /// A variable's name as a builtin takes it: the subscript is code.
    pub(crate) fn name_operand(&mut self, text: &str) -> String {
        let Some((name, subscript)) = text.split_once('[') else { return text.to_owned() };
        self.arithmetic_text(text);
        Memory::subscript(self, subscript);
        name.to_owned()
    }

    /// `test` and `[`.
    pub(crate) fn test(&mut self, args: &[String]) -> Option<bool> {
        let args = match args {
            [rest @ .., last] if last == "]" => rest,
            args => args,
        };
        for pair in args.windows(2) {
            if let [operator, name] = pair
                && operator == "-v"
            {
                self.name_operand(name);
            }
        }
        match args {
            [] => Some(false),
            [operator, rest @ ..] if operator == "!" && rest.len() < 4 => self.test(rest).map(|holds| !holds),
            [text] => not_empty(text),
            [operator, text] => unary(operator, text),
            [left, operator, right] => binary(operator, left, right),
            _ => None,
        }
    }

    /// `[[ ]]`: all its words are expanded; the outcome where it is known.
    pub(crate) fn double_bracket(&mut self, words: &[Word]) -> Option<bool> {
        let outer = std::mem::take(&mut self.reads);
        let operands = words.iter().map(|word| self.text(word)).collect();
        let open = !self.reads.is_empty();
        let mut reader = Condition { words, operands, at: 0, depth: 0, walker: self };
        let holds = reader.or();
        let whole = reader.at == words.len();
        self.reads.extend(outer);
        if open || !whole { None } else { holds }
    }
}

/// The words of `[[ ]]`, being read.
struct Condition<'c, 'w, 'a> {
    words: &'c [Word],
    operands: Vec<String>,
    at: usize,
    depth: usize,
    walker: &'w mut Walker<'a>,
}

impl Condition<'_, '_, '_> {
    fn operator(&self, ahead: usize) -> &str {
        self.words.get(self.at + ahead).and_then(Word::literal).unwrap_or_default()
    }

    fn operand(&self, at: usize) -> String {
        self.operands.get(at).cloned().unwrap_or_default()
    }

    fn or(&mut self) -> Option<bool> {
        let mut holds = self.and();
        while self.operator(0) == "||" {
            self.at += 1;
            holds = match (holds, self.and()) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        holds
    }

    fn and(&mut self) -> Option<bool> {
        let mut holds = self.not();
        while self.operator(0) == "&&" {
            self.at += 1;
            holds = match (holds, self.not()) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        holds
    }

    fn not(&mut self) -> Option<bool> {
        let mut turned = false;
        while self.operator(0) == "!" {
            self.at += 1;
            turned = !turned;
        }
        self.primary().map(|holds| holds != turned)
    }

    fn primary(&mut self) -> Option<bool> {
        if self.operator(0) == "(" && self.depth < DEPTH {
            self.at += 1;
            self.depth += 1;
            let holds = self.or();
            self.depth -= 1;
            if self.operator(0) != ")" {
                return None;
            }
            self.at += 1;
            return holds;
        }
        let at = self.at;
        if is_binary(self.operator(1)) && self.words.len() > at + 2 {
            self.at += 3;
            return self.comparison(at);
        }
        let operator = self.operator(0).to_owned();
        if operator.len() == 2 && operator.starts_with('-') && self.words.len() > at + 1 && !ends(self.operator(1)) {
            self.at += 2;
            let operand = self.operand(at + 1);
            if operator == "-v" {
                self.walker.name_operand(&operand);
            }
            return unary(&operator, &operand);
        }
        self.at += 1;
        not_empty(&self.operand(at))
    }

    fn comparison(&mut self, at: usize) -> Option<bool> {
        let operator = self.words.get(at + 1).and_then(Word::literal).unwrap_or_default().to_owned();
        let (left, right) = (self.operand(at), self.operand(at + 2));
        match operator.as_str() {
            "==" | "=" | "!=" => {
                let word = self.words.get(at + 2)?;
                let loose = word.parts.iter().any(|part| matches!(part, Part::Quoted(text) if text.is_empty()));
                let pattern = self.walker.pattern(word);
                if loose || !is_known(&left) || has_unknown(&pattern) {
                    return None;
                }
                Some(matches(&pattern, &left) == (operator != "!="))
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let left = self.walker.arithmetic_number(&left);
                let right = self.walker.arithmetic_number(&right);
                compare(&operator, left?, right?)
            }
            _ => None,
        }
    }
}

fn ends(operator: &str) -> bool {
    matches!(operator, "&&" | "||" | ")")
}

fn is_binary(operator: &str) -> bool {
    matches!(
        operator,
        "==" | "=" | "!=" | "=~" | "<" | ">" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-nt" | "-ot" | "-ef"
    )
}

/// Whether a text is not empty; one of which anything is known is not.
fn not_empty(text: &str) -> Option<bool> {
    let sure = text.chars().any(|c| c != UNKNOWN && c != MAYBE && !super::text::is_unknown(c) || c == TOKEN);
    if text.is_empty() {
        Some(false)
    } else if sure {
        Some(true)
    } else {
        None
    }
}

fn unary(operator: &str, text: &str) -> Option<bool> {
    match operator {
        "-n" => not_empty(text),
        "-z" => not_empty(text).map(|holds| !holds),
        "!" => not_empty(text).map(|holds| !holds),
        _ => None,
    }
}

fn binary(operator: &str, left: &str, right: &str) -> Option<bool> {
    if !is_known(left) || !is_known(right) {
        return None;
    }
    match operator {
        "=" | "==" => Some(left == right),
        "!=" => Some(left != right),
        _ => compare(operator, left.trim().parse().ok()?, right.trim().parse().ok()?),
    }
}

fn compare(operator: &str, left: i64, right: i64) -> Option<bool> {
    Some(match operator {
        "-eq" => left == right,
        "-ne" => left != right,
        "-lt" => left < right,
        "-le" => left <= right,
        "-gt" => left > right,
        "-ge" => left >= right,
        _ => return None,
    })
}
