//! Schemas of Google's form in the words of JSON Schema, which every model server reads.
//!
//! | In the schema | Becomes |
//! | --- | --- |
//! | `type: "STRING"` | `"string"`; `TYPE_UNSPECIFIED` is left out |
//! | `nullable: true` | `null` among the types; left out if there is no `type` |
//! | `propertyOrdering` | the order of `properties` |
//! | `format` of numbers and of enums, `example` | left out: no server acts on them, and strict ones refuse them |
//! | `minItems: "3"` and other counts as texts | numbers |
//! | everything else | stays; known keywords with underscores get JSON Schema's spelling |

use std::borrow::Cow;

use protocol::json::{self, BadRequest, fields};
use serde_json::value::RawValue;

use crate::schema::Members;

/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 64;

/// The schema at `path`, in the words of JSON Schema.
///
/// # Errors
/// [`BadRequest`] when it is no object, or nested too deep.
pub(super) fn in_json_schema(raw: &RawValue, path: &str) -> Result<Box<RawValue>, BadRequest> {
    let mut out = String::with_capacity(raw.get().len());
    write(fields::object(Some(raw), path)?, path, MAX_DEPTH, &mut out)?;
    RawValue::from_string(out).map_err(|_| BadRequest::new(path, format!("`{path}` is not JSON")))
}

/// Writes one schema. A value that is not an object, such as `true`, stays as it is.
fn write(raw: &RawValue, path: &str, depth: usize, out: &mut String) -> Result<(), BadRequest> {
    if !raw.get().starts_with('{') {
        out.push_str(raw.get());
        return Ok(());
    }
    let too_deep = || BadRequest::new(path, format!("`{path}` is nested too deep"));
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    let Members(members) = fields::value(raw, path)?;
    let get = |name: &str| {
        members.iter().find(|(given, _)| camel_case(given) == name).map(|(_, value)| *value)
    };
    let mut writing = SchemaWriter { path, depth, out, is_first: true };
    writing.out.push('{');
    writing.kind(get("type"), get("nullable").is_some_and(|raw| raw.get() == "true"));
    for (name, value) in &members {
        writing.member(&camel_case(name), value, get("propertyOrdering"))?;
    }
    writing.out.push('}');
    Ok(())
}

struct SchemaWriter<'w> {
    path: &'w str,
    depth: usize,
    out: &'w mut String,
    is_first: bool,
}

impl SchemaWriter<'_> {
    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(',');
        }
        self.out.push_str(&json::write(&name));
        self.out.push(':');
    }

    fn kind(&mut self, raw: Option<&RawValue>, nullable: bool) {
        let Some(raw) = raw else { return };
        let Ok(fields::Text(kind)) = serde_json::from_str(raw.get()) else {
            self.name("type");
            return self.out.push_str(&list_of_types(raw, nullable));
        };
        if kind == "TYPE_UNSPECIFIED" {
            return;
        }
        let kind = json::write(&kind.to_ascii_lowercase());
        self.name("type");
        match nullable {
            true => self.out.push_str(&format!("[{kind},\"null\"]")),
            false => self.out.push_str(&kind),
        }
    }

    fn member(
        &mut self,
        name: &str,
        value: &RawValue,
        ordering: Option<&RawValue>,
    ) -> Result<(), BadRequest> {
        match name {
            "type" | "nullable" | "propertyOrdering" | "example" => Ok(()),
            "format" if is_of_number(value) => Ok(()),
            "properties" | "defs" | "$defs" | "definitions" => {
                self.name(if name == "defs" { "$defs" } else { name });
                self.properties(value, ordering.filter(|_| name == "properties"))
            }
            "items" | "additionalProperties" | "not" => {
                self.name(name);
                write(value, self.path, self.depth, self.out)
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                self.name(name);
                self.list(value)
            }
            "ref" => {
                self.name("$ref");
                self.out.push_str(value.get());
                Ok(())
            }
            _ => {
                self.name(name);
                self.out.push_str(&counted(name, value));
                Ok(())
            }
        }
    }

    fn properties(
        &mut self,
        raw: &RawValue,
        ordering: Option<&RawValue>,
    ) -> Result<(), BadRequest> {
        if raw.get() == "null" {
            self.out.push_str("{}");
            return Ok(());
        }
        let Members(mut properties) = fields::value(raw, self.path)?;
        let order: Vec<fields::Text<'_>> =
            ordering.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        // A stable sort: properties that the order does not name stay in their order, after the
        // others.
        let place = |name: &str| order.iter().position(|fields::Text(at)| at == name);
        properties.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        self.out.push('{');
        for (at, (name, value)) in properties.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            self.out.push_str(&format!("{comma}{}:", json::write(name)));
            write(value, self.path, self.depth, self.out)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn list(&mut self, raw: &RawValue) -> Result<(), BadRequest> {
        let schemas: Vec<&RawValue> = fields::value(raw, self.path)?;
        self.out.push('[');
        for (at, schema) in schemas.into_iter().enumerate() {
            self.out.push_str(if at > 0 { "," } else { "" });
            write(schema, self.path, self.depth, self.out)?;
        }
        self.out.push(']');
        Ok(())
    }
}

/// A list of types, as JSON Schema allows, with `null` among them if that is asked for.
fn list_of_types(raw: &RawValue, nullable: bool) -> String {
    let types = raw.get().to_ascii_lowercase();
    let Ok(mut list) = serde_json::from_str::<Vec<String>>(&types) else { return types };
    if !nullable || list.iter().any(|kind| kind == "null") {
        return types;
    }
    list.push("null".to_owned());
    json::write(&list)
}

/// Whether a format is one of those that only Google's API has.
fn is_of_number(format: &RawValue) -> bool {
    let googles = ["\"int32\"", "\"int64\"", "\"float\"", "\"double\"", "\"enum\""];
    googles.contains(&format.get())
}

/// A count as a number, even if it is written as a text.
fn counted<'a>(name: &str, value: &'a RawValue) -> Cow<'a, str> {
    let is_count = name.starts_with("min") || name.starts_with("max");
    let digits = value.get().trim_matches('"');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number with leading zeros would not be JSON.
    match is_count && is_number && (digits == "0" || !digits.starts_with('0')) {
        true => Cow::Borrowed(digits),
        false => Cow::Borrowed(value.get()),
    }
}

/// Known keywords with underscores, in JSON Schema's spelling. Other names stay, since they may be
/// names of the client's own.
fn camel_case(name: &str) -> Cow<'_, str> {
    const SPELLINGS: [(&str, &str); 10] = [
        ("any_of", "anyOf"),
        ("min_items", "minItems"),
        ("max_items", "maxItems"),
        ("min_length", "minLength"),
        ("max_length", "maxLength"),
        ("min_properties", "minProperties"),
        ("max_properties", "maxProperties"),
        ("property_ordering", "propertyOrdering"),
        ("prefix_items", "prefixItems"),
        ("additional_properties", "additionalProperties"),
    ];
    let other = SPELLINGS.iter().find(|(snake, _)| *snake == name).map(|(_, camel)| *camel);
    Cow::Borrowed(other.unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(given: &str) -> Result<String, BadRequest> {
        let raw = RawValue::from_string(given.to_owned()).unwrap();
        in_json_schema(&raw, "s").map(|made| made.get().to_owned())
    }

    #[test]
    fn googles_words_become_those_of_json_schema() {
        for (given, expected) in [
            (r#"{"type":"STRING"}"#, r#"{"type":"string"}"#),
            (
                r#"{"type":"string","format":"date-time"}"#,
                r#"{"type":"string","format":"date-time"}"#,
            ),
            (r#"{"type":"INTEGER","format":"int64","example":7}"#, r#"{"type":"integer"}"#),
            (r#"{"nullable":true,"type":"NUMBER"}"#, r#"{"type":["number","null"]}"#),
            (r#"{"type":["STRING","null"]}"#, r#"{"type":["string","null"]}"#),
            (
                r#"{"type":["STRING","NUMBER"],"nullable":true}"#,
                r#"{"type":["string","number","null"]}"#,
            ),
            (r#"{"type":["NULL","STRING"],"nullable":true}"#, r#"{"type":["null","string"]}"#),
            (r#"{"type":"TYPE_UNSPECIFIED","description":"any"}"#, r#"{"description":"any"}"#),
            (
                r#"{"type":"ARRAY","min_items":"1","maxItems":"03","items":{"type":"BOOLEAN"}}"#,
                r#"{"type":"array","minItems":1,"maxItems":"03","items":{"type":"boolean"}}"#,
            ),
            (
                r#"{"any_of":[{"type":"STRING"},true],"type":"OBJECT","additional_properties":false}"#,
                r#"{"type":"object","anyOf":[{"type":"string"},true],"additionalProperties":false}"#,
            ),
            (
                r#"{"type":"OBJECT","properties":{"b":{"type":"STRING"},"type":{"type":"NUMBER"},"a_b":{"enum":["X"]}},"propertyOrdering":["a_b","type"],"required":["b"]}"#,
                r#"{"type":"object","properties":{"a_b":{"enum":["X"]},"type":{"type":"number"},"b":{"type":"string"}},"required":["b"]}"#,
            ),
        ] {
            assert_eq!(made(given).as_deref(), Ok(expected), "{given}");
        }
    }

    #[test]
    fn a_schema_that_is_none_or_too_deep_is_refused() {
        assert_eq!(made("[]").unwrap_err().message, "`s` must be an object");
        assert!(made(r#"{"properties":7}"#).is_err() && made(r#"{"anyOf":{}}"#).is_err());
        let nested = |depth| format!("{}{{}}{}", r#"{"items":"#.repeat(depth), "}".repeat(depth));
        assert!(made(&nested(MAX_DEPTH - 1)).is_ok());
        assert_eq!(made(&nested(MAX_DEPTH)).unwrap_err().message, "`s` is nested too deep");
    }
}
