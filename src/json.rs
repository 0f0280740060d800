//! JSON without second meanings: a key that comes twice is refused, not resolved. One reader's last value could be
//! another reader's first, and what is judged must be what the sender meant.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads one value. Nesting is bounded (128 levels, by serde_json), and so is the stack.
///
/// # Errors
///
/// What is wrong with the text, and where.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.chars().take(40).flat_map(char::escape_debug).collect();
                return Err(serde::de::Error::custom(format!("the key `{shown}` comes twice")));
            }
            let value = entries.next_value_seed(Strict)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plain_json_is_read_as_everybody_reads_it() {
        for text in ["null", "[1, -2, 3.5, \"a\\u00e9\", {\"b\": true, \"a\": {}}]", "\"\"", "18446744073709551615"] {
            assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn second_meanings_are_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (text, told) in [
            (r#"{"a": 1, "a": 1}"#, "comes twice"),
            (r#"{"p": {"command": "ls", "comm\u0061nd": "rm -rf /"}}"#, "comes twice"),
            (r#"[{"a": 1}] {"#, "trailing"),
            (r#"{"a": NaN}"#, "expected"),
            ("", "EOF"),
            (&deep, "recursion limit"),
        ] {
            let error = parse(text.as_bytes()).expect_err(&text[..text.len().min(40)]).to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(parse(b"{\"a\": \"\xff\"}").is_err(), "bytes that are no UTF-8 were taken");
    }
}
