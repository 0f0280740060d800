//! Structured values out of arbitrary bytes: every input is some value, and a small change of it a small change of that.

use serde_json::{Map, Number, Value};

/// The bytes that are left. Past their end everything is zero.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let wide = if limit > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (wide | usize::from(self.byte())) % limit
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn pick<'t, T>(&mut self, among: &'t [T]) -> &'t T {
        among.get(self.below(among.len())).expect("below the length")
    }

    /// Any number, small and extreme ones often.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            0..=99 => u64::from(self.byte()),
            100..=149 => u64::MAX - u64::from(self.byte()),
            150..=199 => (i64::MAX as u64).wrapping_add(u64::from(self.byte())),
            _ => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }

    /// One of the words, or a text of up to 31 bytes that is none.
    pub fn word(&mut self, words: &[&str]) -> String {
        if self.byte() < 200 {
            return (*self.pick(words)).to_owned();
        }
        let length = self.below(32).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    /// A few values.
    pub fn several<T>(&mut self, most: usize, mut value: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| value(self)).collect()
    }

    /// A JSON value that nests up to `depth` levels.
    pub fn json(&mut self, words: &[&str], depth: usize) -> Value {
        match self.byte() % if depth == 0 { 7 } else { 9 } {
            0 => Value::Null,
            1 => Value::Bool(self.flag()),
            2 => Value::from(self.number()),
            3 => Value::from(self.number().cast_signed()),
            4 => Number::from_f64(f64::from_bits(self.number())).map_or(Value::Null, Value::Number),
            5 | 6 => Value::String(self.word(words)),
            7 => Value::Array(self.several(4, |input| input.json(words, depth - 1))),
            _ => Value::Object(self.object(words, depth - 1)),
        }
    }

    pub fn object(&mut self, words: &[&str], depth: usize) -> Map<String, Value> {
        self.several(5, |input| (input.word(words), input.json(words, depth))).into_iter().collect()
    }
}
