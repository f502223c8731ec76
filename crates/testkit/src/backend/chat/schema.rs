//! An example for a JSON schema, as a constrained model would write one.

use serde_json::{Map, Value, json};

/// A value of the schema: every property, the first of each choice.
pub(in crate::backend) fn example(schema: &Value) -> Value {
    of(schema, schema)
}

fn of(root: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'));
        return target.map_or(Value::Null, |target| of(root, target));
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| schema[name].get(0));
    if let Some(first) = choices {
        return of(root, first);
    }
    if let Some(fixed) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return fixed.clone();
    }
    match schema["type"].as_str() {
        Some("object") => object(root, schema),
        Some("array") => json!([of(root, &schema["items"])]),
        Some("integer" | "number") => json!(7),
        Some("boolean") => json!(true),
        Some("string") => json!("example"),
        _ => Value::Null,
    }
}

fn object(root: &Value, schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let filled = properties.map(|(name, schema)| (name.clone(), of(root, schema)));
    Value::Object(filled.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_fits_its_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "size": {"$ref": "#/$defs/size"},
                "tags": {"type": "array", "items": {"enum": ["red", "blue"]}},
                "maybe": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            },
            "$defs": {"size": {"type": "integer"}},
        });
        let expected = json!({"name": "example", "size": 7, "tags": ["red"], "maybe": true});
        assert_eq!(example(&schema), expected);
    }
}
