//! The fields of its request that a response repeats.

use protocol::json::{self, fields::Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::tools::Names;
use crate::Context;

/// The fields of the `response` object that stay the same from its first event to its last, as
/// JSON without the closing brace, and the names of its tools.
#[derive(Debug)]
pub(super) struct Echo {
    pub(super) fields: String,
    pub(super) names: Names,
}

/// Every repeated field, with its value when the request does not set it.
const REPEATED: [(&str, &str); 15] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("prompt_cache_key", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("safety_identifier", "null"),
    ("temperature", "null"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", r#""auto""#),
    ("tools", "[]"),
    ("top_p", "null"),
    ("truncation", r#""disabled""#),
    ("user", "null"),
];

impl Echo {
    /// Reads the client's own body, which was translated before.
    pub(super) fn of(context: &Context, request: &[u8]) -> Self {
        let request: Request<'_> = serde_json::from_slice(request).unwrap_or_default();
        let mut fields = format!(
            r#"{{"id":"resp_{}","object":"response","created_at":{},"model":{}"#,
            context.id,
            context.created,
            json::write(&context.model),
        );
        fields.push_str(r#","background":false,"previous_response_id":null,"store":false"#);
        for ((name, default), value) in REPEATED.iter().zip(request.repeated()) {
            fields.push_str(&format!(",\"{name}\":"));
            push_line(&mut fields, value.map_or(default, RawValue::get));
        }
        Self { fields, names: request.names() }
    }
}

/// Appends JSON without its line breaks, which would end the line of an event. No text is lost: in
/// strings, line breaks are always escaped.
fn push_line(out: &mut String, json: &str) {
    out.extend(json.split(['\n', '\r']));
}

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    instructions: Option<&'a RawValue>,
    max_output_tokens: Option<&'a RawValue>,
    max_tool_calls: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    parallel_tool_calls: Option<&'a RawValue>,
    prompt_cache_key: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    safety_identifier: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    truncation: Option<&'a RawValue>,
    user: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    /// The values of [`REPEATED`], in its order.
    fn repeated(&self) -> [Option<&'a RawValue>; REPEATED.len()] {
        [
            self.instructions,
            self.max_output_tokens,
            self.max_tool_calls,
            self.metadata,
            self.parallel_tool_calls,
            self.prompt_cache_key,
            self.reasoning,
            self.safety_identifier,
            self.temperature,
            self.text,
            self.tool_choice,
            self.tools,
            self.top_p,
            self.truncation,
            self.user,
        ]
    }

    fn names(&self) -> Names {
        let lists = [self.tools].into_iter().flatten().chain(self.added_tools());
        Names::of(lists)
    }

    /// The lists of tools in the items of `input`.
    fn added_tools(&self) -> Vec<&'a RawValue> {
        let items: Vec<AddedTools<'a>> =
            self.input.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        items.into_iter().filter(AddedTools::is_one).filter_map(|item| item.tools).collect()
    }
}

#[derive(Deserialize)]
struct AddedTools<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

impl AddedTools<'_> {
    fn is_one(&self) -> bool {
        self.kind.as_ref().is_some_and(|Text(kind)| kind == "additional_tools")
    }
}
