//! A tool's arguments as policies see them. The mapping from JSON Schema is Cedar's own generator; what policies cannot
//! compare (floats, null, unions, maps with free keys) is left out of it.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use cedar_policy::SchemaFragment;
use cedar_policy_core::ast::Value as CedarValue;
use cedar_policy_mcp_schema_generator::{SchemaGenerator, SchemaGeneratorConfig};
use mcp_tools_sdk::description::ServerDescription;
use serde_json::{Map, Value, json};

/// The most bytes of a JSON Schema that is mapped; a longer one makes the tool opaque.
const MAX_SCHEMA: usize = 256 << 10;
/// The deepest JSON Schema that is mapped, and the deepest type that comes of it.
const MAX_DEPTH: usize = 24;

/// The generator wants a namespace, a principal and a resource; only the input type that it makes is used.
const GENERATOR_STUB: &str =
    r#"namespace Stub { @mcp_principal("Caller") entity Caller; @mcp_resource("Server") entity Server; }"#;

/// A type that both JSON and Cedar have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Bool,
    Long,
    String,
    Set(Box<Shape>),
    Record(Record),
}

/// An object's typed members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record(BTreeMap<String, Member>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    shape: Shape,
    required: bool,
}

/// What became of a call's arguments on the way into Cedar.
#[derive(Debug, Default)]
pub(super) struct Residue {
    /// Arguments that have no type in Cedar, so that no policy can read them.
    pub hidden: Vec<String>,
    /// Arguments that have a type in Cedar and a value that does not fit it. A policy would decide without them.
    pub unfit: Vec<String>,
}

impl Record {
    /// The type of a tool's arguments, or `None` where the schema cannot be mapped.
    pub fn of_parameters(parameters: &Value) -> Option<Record> {
        if deeper_than(parameters, MAX_DEPTH) || parameters.to_string().len() > MAX_SCHEMA {
            return None;
        }
        let mut parameters = parameters.clone();
        drop_null(&mut parameters);
        // The schema may come from a server that nobody vouches for, and the generator unwraps.
        let generated = catch_unwind(move || generate(&parameters)).ok()??;
        let types = generated.get("Stub")?.get("commonTypes")?;
        match resolve(types.get("toolInput")?, types, 0)? {
            Shape::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The type in Cedar's JSON form.
    pub fn to_cedar(&self) -> Value {
        let members = self.0.iter().map(|(name, member)| {
            let mut kind = member.shape.to_cedar();
            if let Some(object) = kind.as_object_mut() {
                object.insert("required".to_owned(), member.required.into());
            }
            (name.clone(), kind)
        });
        json!({ "type": "Record", "attributes": members.collect::<Map<_, _>>() })
    }

    /// The arguments as a Cedar record. `at` is the name that leads to them, empty at the top.
    pub fn value(&self, arguments: &Map<String, Value>, at: &str, residue: &mut Residue) -> CedarValue {
        let name = |member: &str| if at.is_empty() { member.to_owned() } else { format!("{at}.{member}") };
        let mut pairs = Vec::with_capacity(self.0.len());
        for (key, member) in &self.0 {
            match arguments.get(key) {
                None | Some(Value::Null) if !member.required => {}
                None => residue.unfit.push(name(key)),
                Some(value) => match member.shape.value(value, &name(key), residue) {
                    Some(value) => pairs.push((key.as_str(), value)),
                    None => residue.unfit.push(name(key)),
                },
            }
        }
        residue.hidden.extend(arguments.keys().filter(|key| !self.0.contains_key(*key)).map(|key| name(key)));
        CedarValue::record(pairs, None)
    }
}

impl Shape {
    fn to_cedar(&self) -> Value {
        match self {
            Shape::Bool => json!({ "type": "Boolean" }),
            Shape::Long => json!({ "type": "Long" }),
            Shape::String => json!({ "type": "String" }),
            Shape::Set(element) => json!({ "type": "Set", "element": element.to_cedar() }),
            Shape::Record(record) => record.to_cedar(),
        }
    }

    fn value(&self, value: &Value, at: &str, residue: &mut Residue) -> Option<CedarValue> {
        match (self, value) {
            (Shape::Bool, Value::Bool(flag)) => Some(CedarValue::from(*flag)),
            (Shape::Long, Value::Number(number)) => Some(CedarValue::from(whole(number)?)),
            (Shape::String, Value::String(text)) => Some(CedarValue::from(text.as_str())),
            (Shape::Set(element), Value::Array(items)) => {
                let items: Option<Vec<_>> = items.iter().map(|item| element.value(item, at, residue)).collect();
                Some(CedarValue::set(items?, None))
            }
            (Shape::Record(record), Value::Object(members)) => Some(record.value(members, at, residue)),
            _ => None,
        }
    }
}

/// JSON Schema counts `3.0` as an integer; so does this, as far as Cedar's 64 bits go.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
        Some(float as i64)
    })
}

/// Looks no deeper than it must.
fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| deeper_than(item, limit - 1)),
        Value::Object(members) => limit == 0 || members.values().any(|member| deeper_than(member, limit - 1)),
        _ => false,
    }
}

/// A member that may be null is, for policies, a member that may be absent: drops `null` from the unions that allow it,
/// and the member from `required`.
fn drop_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    let mut nullable = Vec::new();
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties.iter_mut() {
            if let Some(rest) = without_null(property) {
                *property = rest;
                nullable.push(name.clone());
            }
            drop_null(property);
        }
    }
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !nullable.iter().any(|nullable| name == nullable));
    }
    if let Some(items) = object.get_mut("items") {
        drop_null(items);
    }
}

/// The one other type that a union with `null` allows.
fn without_null(property: &Value) -> Option<Value> {
    if let Some(types) = property.get("type").and_then(Value::as_array) {
        let [one] = types.iter().filter(|kind| *kind != "null").collect::<Vec<_>>()[..] else { return None };
        let mut rest = property.clone();
        rest.as_object_mut()?.insert("type".to_owned(), one.clone());
        return (types.len() == 2).then_some(rest);
    }
    let types = property.get("anyOf").or_else(|| property.get("oneOf"))?.as_array()?;
    let is_null = |kind: &&Value| kind.get("type").is_some_and(|name| name == "null");
    let [one] = types.iter().filter(|kind| !is_null(kind)).collect::<Vec<_>>()[..] else { return None };
    (types.len() == 2).then(|| one.clone())
}

/// The generator's Cedar schema for one tool, in JSON.
fn generate(parameters: &Value) -> Option<Value> {
    let tool = json!([{ "name": "tool", "description": "", "inputSchema": parameters }]).to_string();
    let config = SchemaGeneratorConfig::default().objects_as_records(true).flatten_namespaces(true);
    let mut generator = SchemaGenerator::from_cedarschema_str_with_config(GENERATOR_STUB, config).ok()?;
    generator.add_actions_from_server_description(&ServerDescription::from_json_str(&tool).ok()?).ok()?;
    let (fragment, _warnings) = SchemaFragment::from_cedarschema_str(&generator.get_schema_as_str()).ok()?;
    fragment.to_json_value().ok()
}

/// Reads a type of Cedar's JSON form. `None`: not a type that a policy could use here.
fn resolve(kind: &Value, types: &Value, depth: usize) -> Option<Shape> {
    if depth > MAX_DEPTH {
        return None;
    }
    match kind.get("type")?.as_str()? {
        "Boolean" => Some(Shape::Bool),
        "Long" => Some(Shape::Long),
        "String" => Some(Shape::String),
        "Set" => match resolve(kind.get("element")?, types, depth + 1)? {
            // An element that hides a member would compare equal to others.
            Shape::Record(_) => None,
            element => Some(Shape::Set(Box::new(element))),
        },
        "Record" => {
            let mut members = BTreeMap::new();
            for (name, member) in kind.get("attributes")?.as_object()? {
                if let Some(shape) = resolve(member, types, depth + 1) {
                    let required = member.get("required").and_then(Value::as_bool).unwrap_or(true);
                    members.insert(name.clone(), Member { shape, required });
                }
            }
            Some(Shape::Record(Record(members)))
        }
        name => {
            let name = if name == "EntityOrCommon" { kind.get("name")?.as_str()? } else { name };
            named(name, types, depth)
        }
    }
}

fn named(name: &str, types: &Value, depth: usize) -> Option<Shape> {
    match name.trim_start_matches("__cedar::") {
        "Bool" | "Boolean" => Some(Shape::Bool),
        "Long" => Some(Shape::Long),
        // JSON holds the last four as text, and their grammars differ from Cedar's in corners.
        "String" | "datetime" | "duration" | "ipaddr" | "decimal" => Some(Shape::String),
        name => {
            let own = name.trim_start_matches("Stub::");
            resolve(types.get(own)?, types, depth + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(properties: Value, required: Value) -> Record {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Record::of_parameters(&schema).expect("an ordinary schema maps")
    }

    #[test]
    fn plain_types_map_and_the_rest_is_hidden() {
        let record = of(
            json!({
                "path": { "type": "string" },
                "limit": { "type": "integer" },
                "ratio": { "type": "number" },
                "deep": { "type": "object", "properties": { "on": { "type": "boolean" } }, "required": ["on"] },
                "names": { "type": "array", "items": { "type": "string" } },
                "language": { "type": "string", "enum": ["bash", "python"] },
                "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            }),
            json!(["path", "ratio", "maybe"]),
        );
        let mut residue = Residue::default();
        let arguments = json!({
            "path": "a", "limit": 3.0, "ratio": 0.5, "deep": { "on": true }, "names": ["x"], "maybe": null,
        });
        let value = record.value(arguments.as_object().unwrap(), "", &mut residue);
        assert_eq!(value.to_string(), r#"{deep: {on: true}, limit: 3, names: ["x"], path: "a"}"#);
        assert_eq!(residue.hidden, ["ratio"], "a float has no type in Cedar");
        assert_eq!(residue.unfit, Vec::<String>::new());
    }

    #[test]
    fn i2_a_value_that_does_not_fit_its_type_is_named() {
        let record = of(
            json!({ "limit": { "type": "integer" }, "deep": { "type": "object",
                "properties": { "on": { "type": "boolean" } } , "required": ["on"] } }),
            json!([]),
        );
        let mut residue = Residue::default();
        let arguments: Value = serde_json::from_str(r#"{"limit":99999999999999999999,"deep":{"on":1}}"#).unwrap();
        let _ = record.value(arguments.as_object().unwrap(), "", &mut residue);
        assert_eq!(residue.unfit, ["deep.on", "limit"], "a policy would have decided without these");
    }

    #[test]
    fn i2_a_schema_that_cannot_be_mapped_is_opaque() {
        let mut deep = json!({ "type": "object" });
        for _ in 0..100 {
            deep = json!({ "type": "object", "properties": { "x": deep } });
        }
        for hostile in [
            deep,
            json!(null),
            json!({ "type": "object", "properties": { "x": { "$ref": "#/nowhere" } } }),
            json!({ "type": "object", "properties": { "not an identifier": { "type": "string" } } }),
        ] {
            assert_eq!(Record::of_parameters(&hostile), None, "mapped: {:.80}", hostile.to_string());
        }
    }
}
