//! The usual mistakes of models, put right before anything is judged: `"3"` for 3, `"true"` for true, a JSON text for
//! the object it holds, one value for a list of one, null for nothing.

use serde_json::{Map, Number, Value};

/// Rewrites arguments towards a schema. What does not fit is left as it is, for validation to name.
pub(super) fn coerce_arguments(arguments: &mut Map<String, Value>, schema: &Value) {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|other| other == name))
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    arguments.retain(|name, value| {
        let optional = properties.get(name).is_some_and(|schema| !allows(schema, "null")) && !required(name);
        !(value.is_null() && optional)
    });
    for (name, value) in arguments {
        if let Some(schema) = properties.get(name) {
            coerce(value, schema);
        }
    }
}

/// Schemas nest only as deep as their authors wrote them, and values are bounded before.
fn coerce(value: &mut Value, schema: &Value) {
    if !fits(value, schema)
        && let Some(better) = reread(value, schema)
    {
        *value = better;
    }
    match value {
        Value::Object(map) => coerce_arguments(map, schema),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| coerce(item, schema));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The value that was probably meant, where its type is one that the schema takes.
fn reread(value: &Value, schema: &Value) -> Option<Value> {
    let meant = match value {
        Value::String(text) => from_text(text.trim(), schema),
        Value::Number(number) if allows(schema, "integer") => whole(number).map(Value::Number),
        Value::Number(number) if allows(schema, "string") => Some(Value::String(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    // A single value stands for a list of one.
    let list = || (allows(schema, "array") && !value.is_null()).then(|| Value::Array(vec![value.clone()]));
    meant.or_else(list)
}

fn from_text(text: &str, schema: &Value) -> Option<Value> {
    match text {
        "true" | "True" if allows(schema, "boolean") => return Some(Value::Bool(true)),
        "false" | "False" if allows(schema, "boolean") => return Some(Value::Bool(false)),
        _ => {}
    }
    if allows(schema, "integer") || allows(schema, "number") {
        let number = text.parse::<Number>().ok()?;
        return if allows(schema, "number") { Some(number) } else { whole(&number) }.map(Value::Number);
    }
    let structured = match text.as_bytes().first() {
        Some(b'{') => allows(schema, "object"),
        Some(b'[') => allows(schema, "array"),
        _ => false,
    };
    if !structured {
        return None;
    }
    // Bounded in depth by the parser itself.
    crate::json::parse(text.as_bytes()).ok().filter(|value| fits(value, schema))
}

/// 3 for 3.0.
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    // Beyond this, neighbouring integers share a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT)?;
    Some(Number::from(float as i64))
}

fn fits(value: &Value, schema: &Value) -> bool {
    let names: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_i64() || number.is_u64() => &["integer", "number"],
        Value::Number(_) => &["number"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    };
    schema.get("type").is_none() || names.iter().any(|name| allows(schema, name))
}

fn allows(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "x": {"type": "number"},
                "b": {"type": "boolean"},
                "s": {"type": "string"},
                "o": {"type": "object", "properties": {"n": {"type": "integer"}}},
                "l": {"type": "array", "items": {"type": "integer"}},
                "e": {"type": ["integer", "null"]},
                "any": {},
                "r": {"type": "string"}
            },
            "required": ["r"]
        })
    }

    fn coerced(arguments: Value) -> Value {
        let schema = schema();
        let Value::Object(mut map) = arguments else { panic!("an object") };
        coerce_arguments(&mut map, &schema);
        Value::Object(map)
    }

    #[test]
    fn mistakes_are_put_right() {
        for (given, expected) in [
            (json!({"n": "3"}), json!({"n": 3})),
            (json!({"n": " -3 "}), json!({"n": -3})),
            (json!({"n": 3.0}), json!({"n": 3})),
            (json!({"n": "3.0"}), json!({"n": 3})),
            (json!({"x": "1.5"}), json!({"x": 1.5})),
            (json!({"b": "true"}), json!({"b": true})),
            (json!({"b": "False"}), json!({"b": false})),
            (json!({"s": 3}), json!({"s": "3"})),
            (json!({"o": "{\"n\": \"4\"}"}), json!({"o": {"n": 4}})),
            (json!({"l": "[1, \"2\"]"}), json!({"l": [1, 2]})),
            (json!({"l": 5}), json!({"l": [5]})),
            (json!({"l": "5"}), json!({"l": [5]})),
            (json!({"n": null, "b": true}), json!({"b": true})),
        ] {
            assert_eq!(coerced(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn what_is_no_mistake_stays() {
        for given in [
            json!({"n": "three"}),
            json!({"n": "3.5"}),
            json!({"n": "1e999"}),
            json!({"n": true}),
            json!({"b": 1}),
            json!({"s": "3"}),
            json!({"s": "{\"a\": 1}"}),
            json!({"o": "{broken"}),
            json!({"o": "[1]"}),
            json!({"e": null}),
            json!({"r": null}),
            json!({"any": "3"}),
            json!({"unknown": null}),
        ] {
            assert_eq!(coerced(given.clone()), given);
        }
    }

    fn anything() -> impl Strategy<Value = Value> {
        let texts = vec!["3", "3.0", "true", "[1, \"2\"]", "[[\"1\"]]", "{\"n\": \"4\"}", "\"3\"", "null", "", "x"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            proptest::sample::select(texts).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                proptest::collection::vec((proptest::sample::select(&["n", "o", "l", "q"][..]), inner), 0..3)
                    .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        /// What was judged would otherwise be read differently when it is made canonical once more.
        #[test]
        fn i4_coercion_is_finished_after_one_pass(
            value in anything(),
            name in proptest::sample::select(&["n", "x", "b", "s", "o", "l", "e", "any", "r", "unknown"][..]),
        ) {
            let once = coerced(json!({name: value}));
            prop_assert_eq!(coerced(once.clone()), once);
        }

        #[test]
        fn what_a_schema_takes_is_not_touched(value in anything()) {
            let arguments = json!({"any": value, "r": "text"});
            if !value.is_null() {
                prop_assert_eq!(coerced(arguments.clone()), arguments);
            }
        }
    }
}
