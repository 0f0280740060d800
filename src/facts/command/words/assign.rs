//! Assignments: to variables, items of arrays, references to other names, integers.

use std::rc::Rc;

use super::text::{UNKNOWN, inert};
use crate::facts::command::grammar::syntax::{Assignment, Part, Word};
use crate::facts::command::shell::env::Value;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::expand::Field;

impl Walker<'_> {
    pub(crate) fn assign(&mut self, assignment: &Assignment) {
        self.steps += 1;
        let index = assignment.index.as_ref().map(|word| self.text(word));
        let name = self.referred(&assignment.name);
        if let [Part::Array(words)] = assignment.value.parts.as_slice() {
            self.assign_array(&name, assignment.append, words);
            return;
        }
        let mut value = self.assigned_text(&assignment.value);
        if self.env.integers.contains(&name) {
            value = self.arithmetic_text(&value);
        }
        match index {
            Some(index) => self.assign_item(&name, index, value, assignment.append),
            None if matches!(self.env.get(&name), Some(Value::Array(_))) => {
                self.assign_item(&name, "0".to_owned(), value, assignment.append);
            }
            None => {
                let value = match self.env.get(&name).cloned() {
                    Some(Value::Text(old)) if assignment.append => {
                        self.note_read(&name);
                        self.bounded(old + &value)
                    }
                    _ => value,
                };
                self.env.set_text(&name, value);
            }
        }
        self.environment_changed(&name, assignment.span.clone());
    }

    /// The variable that a name stands for. A reference may have a subscript, which is code.
    fn referred(&mut self, name: &str) -> String {
        match self.env.references.get(name).cloned() {
            Some(name) => self.name_operand(&name),
            None => name.to_owned(),
        }
    }

    /// A value that a builtin gives to a name (`read`, `printf -v`).
    pub(crate) fn give(&mut self, name: &str, value: Value) {
        let index = name.split_once('[').map(|(_, index)| index.trim_end_matches(']').to_owned());
        let name = self.name_operand(name);
        let name = self.referred(&name);
        match (index, value) {
            (Some(index), Value::Text(text)) => self.set_item(&name, index, text),
            (_, value) => self.env.set(&name, value),
        }
        let span = self.span.clone();
        self.environment_changed(&name, span);
    }

    pub(crate) fn set_item(&mut self, name: &str, index: String, value: String) {
        self.assign_item(name, index, value, false);
    }

    /// Sets one item of an array.
    fn assign_item(&mut self, name: &str, index: String, value: String, append: bool) {
        let index = self.index(&index);
        if name == "BASH_CMDS" {
            self.remember_program(&index, &value);
        }
        if name == "BASH_ALIASES" {
            Rc::make_mut(&mut self.env.aliases).insert(index.clone(), value.clone());
        }
        let first = match self.env.get(name) {
            Some(Value::Array(_)) => None,
            Some(Value::Text(text)) => Some(vec![("0".to_owned(), text.clone())]),
            _ => Some(Vec::new()),
        };
        if let Some(items) = first {
            self.env.set(name, Value::Array(items));
        }
        let (most, longest) = (self.limits.words, self.text_limit());
        let Some(Value::Array(items)) = Rc::make_mut(&mut self.env.variables).get_mut(name) else { return };
        self.expanded += value.len();
        self.steps += items.len() / 16;
        let full = items.len() >= most;
        let fits = match items.iter_mut().find(|(key, _)| *key == index) {
            Some((_, old)) if append && old.len() + value.len() > longest => {
                *old = UNKNOWN.to_string();
                false
            }
            Some((_, old)) if append => {
                old.push_str(&value);
                self.expanded += old.len();
                true
            }
            Some((_, old)) => {
                *old = value;
                true
            }
            None if full => false,
            None => {
                items.push((index, value));
                true
            }
        };
        if !fits {
            self.limited("size of an array");
        }
    }

    /// A subscript: a number where it is known to be one, otherwise the text (a key of an associative array).
    pub(crate) fn index(&mut self, text: &str) -> String {
        if text.bytes().all(|b| b.is_ascii_digit()) || matches!(text, "@" | "*") {
            return text.to_owned();
        }
        self.arithmetic_number(text).map_or_else(|| text.to_owned(), |value| value.to_string())
    }

    /// The value of an assignment: tildes count after each colon too.
    fn assigned_text(&mut self, word: &Word) -> String {
        let text = self.text(word);
        if !text.contains(":~") {
            return text;
        }
        let home = self.home();
        text.replace(":~/", &format!(":{home}/"))
    }

    fn assign_array(&mut self, name: &str, append: bool, words: &[Word]) {
        // Its own words may read the array, so it is taken only after they were expanded.
        let given: Vec<Field> = words.iter().flat_map(|word| self.expand(std::slice::from_ref(word))).collect();
        let held = if append { Rc::make_mut(&mut self.env.variables).get_mut(name) } else { None };
        let mut items = match held {
            Some(Value::Array(items)) => std::mem::take(items),
            Some(Value::Text(text)) => vec![("0".to_owned(), std::mem::take(text))],
            _ => Vec::new(),
        };
        let mut next = items.len();
        for field in given {
            if items.len() >= self.limits.words {
                self.limited("size of an array");
                break;
            }
            let text = inert(&field.text);
            match text.strip_prefix('[').and_then(|rest| rest.split_once("]=")) {
                Some((key, value)) => items.push((key.to_owned(), value.to_owned())),
                None => {
                    items.push((next.to_string(), text));
                    next += 1;
                }
            }
        }
        self.env.set(name, Value::Array(items));
    }
}
