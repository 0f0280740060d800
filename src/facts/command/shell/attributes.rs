//! What `declare` says of a name beside its value: integers, letters, keys, readonly.

use std::rc::Rc;

use super::env::{Env, Value};
use crate::facts::command::words::text::is_known;

/// The attributes of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// `-i`: values are expressions.
    pub integer: bool,
    /// `-u`, `-l`, `-c`: what happens to letters.
    pub letters: Option<Letters>,
    /// `-A`: subscripts are keys.
    pub keys: bool,
    /// `-r`.
    pub readonly: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Upper,
    Lower,
    Capital,
}

impl Attributes {
    /// With the options of one `declare` word, such as `-iu` or `+i`.
    pub fn with(mut self, word: &str) -> Self {
        let on = word.starts_with('-');
        for letter in word.chars().skip(1) {
            let letters = match letter {
                'i' => {
                    self.integer = on;
                    continue;
                }
                'A' if on => {
                    self.keys = true;
                    continue;
                }
                'r' if on => {
                    self.readonly = true;
                    continue;
                }
                'u' => Letters::Upper,
                'l' => Letters::Lower,
                'c' => Letters::Capital,
                _ => continue,
            };
            self.letters = on.then_some(letters);
        }
        self
    }

    /// A value as the name takes it.
    pub fn cased(self, value: String) -> String {
        match self.letters {
            None => value,
            Some(Letters::Upper) => value.to_uppercase(),
            Some(Letters::Lower) => value.to_lowercase(),
            Some(Letters::Capital) => {
                let mut chars = value.chars();
                let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
                first + &chars.as_str().to_lowercase()
            }
        }
    }
}

impl Env {
    pub fn attributes_of(&self, name: &str) -> Attributes {
        self.attributes.get(name).copied().unwrap_or_default()
    }

    pub fn set_attributes(&mut self, name: &str, attributes: Attributes) {
        if self.attributes_of(name) != attributes {
            Rc::make_mut(&mut self.attributes).insert(name.to_owned(), attributes);
        }
        // An array with keys is one from the beginning.
        if attributes.keys && !self.variables.contains_key(name) {
            self.set(name, Value::Array(Vec::new()));
        }
    }
}

/// Where a key comes in the order in which bash gives the items of an array with keys: its place in a table of so many
/// buckets (`hash_string` in hashlib.c, ASSOC_HASH_BUCKETS in assoc.h).
pub(crate) fn bucket(key: &str) -> u32 {
    const BUCKETS: u32 = 1024;
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(16_777_619) ^ u32::from(*byte);
    key.as_bytes().iter().fold(2_166_136_261, step) & (BUCKETS - 1)
}

/// Where a new item goes: arrays give their items by number, those with keys by bucket, the newest of a bucket first.
pub(crate) fn place_of_item(items: &[(String, String)], key: &str, keys: bool) -> usize {
    if keys {
        let own = bucket(key);
        return items.iter().position(|(other, _)| is_known(other) && bucket(other) >= own).unwrap_or(items.len());
    }
    let Ok(number) = key.parse::<i64>() else { return items.len() };
    let after = items.iter().rev().take_while(|(other, _)| other.parse::<i64>().is_ok_and(|other| other > number));
    items.len() - after.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_bash() {
        // As bash 5.2 gives them, whatever the order in which they were set.
        let mut items: Vec<(String, String)> = Vec::new();
        for key in ["k", "l", "one", "two", "three", "x y"] {
            items.insert(place_of_item(&items, key, true), (key.to_owned(), String::new()));
        }
        let order: Vec<&str> = items.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(order, ["l", "k", "two", "x y", "three", "one"]);
    }

    #[test]
    fn numbers_are_in_their_order() {
        let mut items: Vec<(String, String)> = Vec::new();
        for key in ["3", "1", "10", "2"] {
            items.insert(place_of_item(&items, key, false), (key.to_owned(), String::new()));
        }
        assert_eq!(items.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "10"]);
    }
}
