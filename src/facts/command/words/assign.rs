//! Assignments: to variables, items of arrays, references to other names, integers.

use std::rc::Rc;

use super::text::{UNKNOWN, has_glob, inert};
use crate::facts::command::grammar::syntax::{Assignment, Part, Word};
use crate::facts::command::shell::attributes::place_of_item;
use crate::facts::command::shell::env::Value;
use crate::facts::command::shell::walk::Walker;

/// Of so many items it is followed which of them gets a value, where its index is unknown.
const FOLLOWED_ITEMS: usize = 4;

impl Walker<'_> {
    pub(crate) fn assign(&mut self, assignment: &Assignment) {
        self.steps += 1;
        let index = assignment.index.as_ref().map(|word| self.text(word));
        let name = self.referred(&assignment.name);
        if let [Part::Array(words)] = assignment.value.parts.as_slice() {
            self.assign_array(&name, assignment.append, words);
            return;
        }
        if self.env.attributes_of(&name).readonly {
            self.text(&assignment.value);
            return;
        }
        let value = self.assigned_text(&assignment.value);
        match index {
            Some(index) => self.assign_item(&name, index, value, assignment.append),
            None if matches!(self.env.get(&name), Some(Value::Array(_))) => {
                self.assign_item(&name, "0".to_owned(), value, assignment.append);
            }
            None => {
                let value = match self.env.get(&name).cloned() {
                    Some(Value::Text(old)) if assignment.append => {
                        self.note_read(&name);
                        self.appended(&name, old, &value)
                    }
                    _ => self.valued(&name, value),
                };
                self.env.set_text(&name, value);
            }
        }
        self.environment_changed(&name, assignment.span.clone());
    }

    /// A value as the attributes of its name make it.
    pub(crate) fn valued(&mut self, name: &str, value: String) -> String {
        let attributes = self.env.attributes_of(name);
        let value = if attributes.integer { self.arithmetic_text(&value) } else { value };
        attributes.cased(value)
    }

    /// What `+=` makes of a value.
    fn appended(&mut self, name: &str, old: String, more: &str) -> String {
        if self.env.attributes_of(name).integer {
            return self.arithmetic_text(&format!("({old}) + ({more})"));
        }
        let value = self.valued(name, old + more);
        self.bounded(value)
    }

    /// The variable that a name stands for. A reference may have a subscript, which is code.
    pub(crate) fn referred(&mut self, name: &str) -> String {
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
        if self.env.attributes_of(&name).readonly {
            return;
        }
        match (index, value) {
            (Some(index), Value::Text(text)) => self.set_item(&name, index, text),
            (_, Value::Text(text)) => {
                let text = self.valued(&name, text);
                if matches!(self.env.get(&name), Some(Value::Array(_))) {
                    self.set_item(&name, "0".to_owned(), text);
                } else {
                    self.env.set_text(&name, text);
                }
            }
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
        let index = self.index_of(name, &index);
        let keys = self.env.attributes_of(name).keys;
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
        let index = self.counted_back(name, index);
        let old = if append { self.item_text(name, &index) } else { None };
        let value = match old {
            Some(old) => self.appended(name, old, &value),
            None => self.valued(name, value),
        };
        let any = !keys && index.parse::<i64>().is_err();
        if any {
            self.any_item_is(name, &value, append);
        }
        self.put_item(name, index, value);
    }

    /// Any item of an array may be the one that gets a value.
    fn any_item_is(&mut self, name: &str, value: &str, append: bool) {
        let Some(Value::Array(items)) = self.env.get(name).cloned() else { return };
        let with = |at: &dyn Fn(usize) -> bool| {
            let given = |(place, (key, old)): (usize, &(String, String))| match (at(place), append) {
                (false, _) => (key.clone(), old.clone()),
                (true, false) => (key.clone(), value.to_owned()),
                (true, true) => (key.clone(), format!("{old}{value}")),
            };
            Value::Array(items.iter().enumerate().map(given).collect())
        };
        let values: Vec<Value> = match items.len() {
            0..=FOLLOWED_ITEMS => (0..items.len()).map(|chosen| with(&|at| at == chosen)).collect(),
            _ => vec![with(&|_| true)],
        };
        self.steps += values.len() * (1 + items.len() / 16);
        let mut env = self.env.clone();
        for value in values {
            self.add_alternative(&mut env, name, value);
        }
        self.env = env;
    }

    /// Sets the item with an index that is a number, or anything as it is.
    fn put_item(&mut self, name: &str, index: String, value: String) {
        let keys = self.env.attributes_of(name).keys;
        let most = self.limits.words;
        let Some(Value::Array(items)) = Rc::make_mut(&mut self.env.variables).get_mut(name) else { return };
        self.expanded += value.len();
        self.steps += items.len() / 16;
        let full = items.len() >= most;
        let number = |key: &str| key.parse::<i64>().ok();
        let beyond =
            !keys && items.last().is_some_and(|(last, _)| number(last) < number(&index) && number(last).is_some());
        let known = if beyond { None } else { items.iter_mut().find(|(key, _)| *key == index) };
        let fits = match known {
            Some((_, old)) => {
                *old = value;
                true
            }
            None if full => false,
            None => {
                items.insert(place_of_item(items, &index, keys), (index, value));
                true
            }
        };
        if !fits {
            self.limited("size of an array");
        }
    }

    fn item_text(&self, name: &str, index: &str) -> Option<String> {
        let Some(Value::Array(items)) = self.env.get(name) else { return None };
        items.iter().find(|(key, _)| key == index).map(|(_, value)| value.clone())
    }

    /// The index that a negative one stands for: those count from the end.
    fn counted_back(&self, name: &str, index: String) -> String {
        let back = index.parse::<i64>().ok().filter(|number| *number < 0 && !self.env.attributes_of(name).keys);
        let (Some(back), Some(Value::Array(items))) = (back, self.env.get(name)) else { return index };
        let last = items.iter().filter_map(|(key, _)| key.parse::<i64>().ok()).max();
        last.map_or(index, |last| (last + 1).saturating_add(back).to_string())
    }

    /// Takes an item out of an array.
    pub(crate) fn unset_item(&mut self, name: &str, index: &str) {
        let index = self.index_of(name, index);
        let index = self.counted_back(name, index);
        let Some(Value::Array(items)) = self.env.get(name) else { return };
        let items: Vec<_> = items.iter().filter(|(key, _)| *key != index).cloned().collect();
        self.env.set(name, Value::Array(items));
    }

    /// A subscript of a variable: a key, or a number where it is known to be one, otherwise its text.
    pub(crate) fn index_of(&mut self, name: &str, text: &str) -> String {
        let octal = text.len() > 1 && text.starts_with('0');
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && !octal;
        if text.is_empty() && !self.env.attributes_of(name).keys {
            return "0".to_owned();
        }
        if plain || matches!(text, "@" | "*") || self.env.attributes_of(name).keys {
            return text.to_owned();
        }
        self.arithmetic_number(text).map_or_else(|| text.to_owned(), |value| value.to_string())
    }

    /// The value of an assignment: tildes count after each colon too.
    fn assigned_text(&mut self, word: &Word) -> String {
        let text = self.text_of_names(word);
        if !text.contains(":~") {
            return text;
        }
        let home = self.home();
        text.replace(":~/", &format!(":{home}/"))
    }

    fn assign_array(&mut self, name: &str, append: bool, words: &[Word]) {
        if self.env.attributes_of(name).readonly {
            self.expand(words);
            return;
        }
        // The words are expanded while the variable still has its old value.
        let mut given: Vec<(Option<String>, String)> = Vec::new();
        for word in words {
            let keyed = matches!(word.parts.first(), Some(Part::Literal(text)) if text.starts_with('['));
            let plain = if keyed && self.env.attributes_of(name).keys {
                vec![self.text(word)]
            } else {
                let fields = self.expand(std::slice::from_ref(word));
                if !keyed || fields.len() != 1 || !fields.iter().all(|field| inert(&field.text).contains("]=")) {
                    given.extend(fields.into_iter().map(|field| (None, field.text)));
                    continue;
                }
                fields.into_iter().map(|field| inert(&field.text)).collect()
            };
            for text in plain {
                match text.strip_prefix('[').and_then(|rest| rest.split_once("]=")) {
                    Some((key, value)) => given.push((Some(key.to_owned()), value.to_owned())),
                    None => given.push((None, text)),
                }
            }
        }
        let held = if append { Rc::make_mut(&mut self.env.variables).get_mut(name) } else { None };
        let items = match held {
            Some(Value::Array(items)) => std::mem::take(items),
            Some(Value::Text(text)) => vec![("0".to_owned(), std::mem::take(text))],
            _ => Vec::new(),
        };
        // What comes after a glob, nobody knows the number of.
        let mut after_glob = false;
        let mut next = items.iter().filter_map(|(key, _)| key.parse::<i64>().ok()).max().map_or(0, |last| last + 1);
        self.env.set(name, Value::Array(items));
        for (key, value) in given {
            let open = has_glob(&value);
            let index = match key {
                Some(key) => self.index_of(name, &key),
                None if after_glob => {
                    let value = self.valued(name, value);
                    self.put_item(name, format!("{UNKNOWN}{next}"), value);
                    next = next.saturating_add(1);
                    continue;
                }
                None => next.to_string(),
            };
            after_glob |= open;
            next = index.parse::<i64>().unwrap_or(next).saturating_add(1);
            self.assign_item(name, index, value, false);
        }
    }
}
