//! The fields of a request body that routing needs, read in one pass without building a value.

use std::{fmt, ops::Range};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::multipart::Form;

/// The longest model name a request may carry, in bytes.
pub const MAX_MODEL_NAME: usize = 256;

/// The fields of a request body that routing needs. Spans are byte offsets into the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// The model's name, unescaped.
    pub model: String,
    /// Whether the body asks for a stream; false when it does not specify, or `null`.
    pub stream: bool,
    /// Where the model's value is, quotes included. See [`replace_model`](super::replace_model).
    pub model_span: Range<usize>,
    /// The position of the raw value of the prompt: the first of `messages`, `prompt`, `input`, and Gemini's
    /// `contents`, `content` and `requests`.
    pub prompt_span: Option<Range<usize>>,
    /// Where the value of `tools` is.
    pub tools_span: Option<Range<usize>>,
    /// Where the instructions beside the prompt are: the first of `system`, `instructions` and Gemini's
    /// `systemInstruction`.
    pub instructions_span: Option<Range<usize>>,
    /// Where the value of `stream_options` is. See [`ask_usage`](super::ask_usage).
    pub stream_options_span: Option<Range<usize>>,
    /// Where the value of `stream` is.
    pub stream_span: Option<Range<usize>>,
    /// The most tokens that the answer may have, under any of the APIs' names; 0 when the body has
    /// no such number.
    pub most_tokens: u64,
    /// Whether the body is a form, in which values are no JSON.
    pub in_form: bool,
}

impl From<Form> for Peek {
    fn from(form: Form) -> Self {
        Self {
            model: form.model,
            stream: form.stream,
            model_span: form.model_span,
            prompt_span: None,
            tools_span: None,
            instructions_span: None,
            stream_options_span: None,
            stream_span: None,
            most_tokens: 0,
            in_form: true,
        }
    }
}

/// Why a body cannot be routed; the text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBody {
    /// The body is not UTF-8.
    #[error("the request body is not valid UTF-8 (byte {0})")]
    NotUtf8(usize),
    /// The body is text but not JSON.
    #[error("the request body is not valid JSON (line {line}, column {column})")]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The byte in the line, from 1; 0 when the body is empty.
        column: usize,
    },
    /// The body is JSON, but not an object.
    #[error("the request body must be a JSON object")]
    NotAnObject,
    /// The body names no model.
    #[error("the request body has no `model`")]
    ModelMissing,
    /// The model is not a string.
    #[error("`model` must be a string")]
    ModelNotString,
    /// The model's name is empty.
    #[error("`model` must not be empty")]
    ModelEmpty,
    /// The model's name is too long.
    #[error("`model` must not be longer than {MAX_MODEL_NAME} bytes")]
    ModelTooLong,
    /// A `stream` that is neither true, false nor null.
    #[error("`stream` must be true or false")]
    StreamNotBool,
    /// A field has two values, and readers could disagree on which one counts.
    #[error("`{0}` must not appear twice")]
    Twice(&'static str),
}

impl BadBody {
    /// The field that is wrong, if it is one.
    pub fn param(&self) -> Option<&'static str> {
        match self {
            Self::NotUtf8(_) | Self::NotJson { .. } | Self::NotAnObject => None,
            Self::ModelMissing | Self::ModelNotString => Some("model"),
            Self::ModelEmpty | Self::ModelTooLong => Some("model"),
            Self::StreamNotBool => Some("stream"),
            Self::Twice(field) => Some(field),
        }
    }
}

/// Reads the fields that routing needs from a request body, and checks that the whole body is JSON.
pub fn peek(body: &[u8]) -> Result<Peek, BadBody> {
    let text = str::from_utf8(body).map_err(|error| BadBody::NotUtf8(error.valid_up_to()))?;
    let mut fields = Fields::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    (&mut fields).deserialize(&mut reader).and_then(|()| reader.end()).map_err(|e| not_json(&e))?;
    if let Some(field) = fields.twice {
        return Err(BadBody::Twice(field));
    }
    let model = fields.model.ok_or(BadBody::ModelMissing)?;
    Ok(Peek {
        model: model_name(model)?,
        stream: fields.stream.map_or(Ok(false), stream_flag)?,
        model_span: span(text, model),
        prompt_span: fields.prompt.map(|prompt| span(text, prompt)),
        tools_span: fields.tools.map(|tools| span(text, tools)),
        instructions_span: fields.instructions.map(|instructions| span(text, instructions)),
        stream_options_span: fields.stream_options.map(|options| span(text, options)),
        stream_span: fields.stream.map(|stream| span(text, stream)),
        most_tokens: fields.most_tokens,
        in_form: false,
    })
}

impl Peek {
    /// The parts of this body that the model reads, in the order in which most models read them: tools, instructions
    /// and the prompt. Each is empty if there is none.
    pub fn prompt_parts<'a>(&self, body: &'a [u8]) -> [&'a [u8]; 3] {
        let part = |span: &Option<Range<usize>>| body.get(span.clone()?);
        [&self.tools_span, &self.instructions_span, &self.prompt_span]
            .map(|span| part(span).unwrap_or_default())
    }
}

fn not_json(error: &serde_json::Error) -> BadBody {
    if error.is_data() {
        return BadBody::NotAnObject;
    }
    BadBody::NotJson { line: error.line(), column: error.column() }
}

fn model_name(raw: &RawValue) -> Result<String, BadBody> {
    let name: String = serde_json::from_str(raw.get()).map_err(|_| BadBody::ModelNotString)?;
    match name.len() {
        _ if name.trim().is_empty() => Err(BadBody::ModelEmpty),
        0..=MAX_MODEL_NAME => Ok(name),
        _ => Err(BadBody::ModelTooLong),
    }
}

fn stream_flag(raw: &RawValue) -> Result<bool, BadBody> {
    match raw.get() {
        "true" => Ok(true),
        "false" | "null" => Ok(false),
        _ => Err(BadBody::StreamNotBool),
    }
}

/// The position in `text` of a value borrowed from it.
pub fn span(text: &str, raw: &RawValue) -> Range<usize> {
    let start = raw.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + raw.get().len()
}

/// The fields of interest as raw JSON.
#[derive(Default)]
struct Fields<'a> {
    model: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
    stream_options: Option<&'a RawValue>,
    most_tokens: u64,
    twice: Option<&'static str>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Model,
    Stream,
    Messages,
    Prompt,
    Input,
    Contents,
    Content,
    Requests,
    Tools,
    System,
    Instructions,
    #[serde(alias = "systemInstruction")]
    SystemInstruction,
    #[serde(alias = "generationConfig")]
    GenerationConfig,
    StreamOptions,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
    MaxNewTokens,
    #[serde(other)]
    Other,
}

/// The object in which Gemini's requests have the bound on the answer's tokens.
#[derive(Deserialize)]
struct Config {
    #[serde(rename = "maxOutputTokens", alias = "max_output_tokens", default)]
    most: u64,
}

impl<'a> DeserializeSeed<'a> for &mut Fields<'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for &mut Fields<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                Key::Model if self.model.is_some() => self.again("model", &mut map)?,
                Key::Stream if self.stream.is_some() => self.again("stream", &mut map)?,
                Key::StreamOptions if self.stream_options.is_some() => {
                    self.again("stream_options", &mut map)?;
                }
                Key::Model => self.model = Some(map.next_value()?),
                Key::Stream => self.stream = Some(map.next_value()?),
                Key::StreamOptions => self.stream_options = Some(map.next_value()?),
                Key::MaxTokens
                | Key::MaxCompletionTokens
                | Key::MaxOutputTokens
                | Key::MaxNewTokens => {
                    let most = map.next_value::<&RawValue>()?.get().parse().unwrap_or(0);
                    self.most_tokens = self.most_tokens.max(most);
                }
                Key::GenerationConfig => {
                    let config = map.next_value::<&RawValue>()?.get();
                    let most = serde_json::from_str(config).map_or(0, |Config { most }| most);
                    self.most_tokens = self.most_tokens.max(most);
                }
                Key::Messages
                | Key::Prompt
                | Key::Input
                | Key::Contents
                | Key::Content
                | Key::Requests
                    if self.prompt.is_none() =>
                {
                    self.prompt = Some(map.next_value()?);
                }
                Key::Tools if self.tools.is_none() => self.tools = Some(map.next_value()?),
                Key::System | Key::Instructions | Key::SystemInstruction
                    if self.instructions.is_none() =>
                {
                    self.instructions = Some(map.next_value()?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'a> Fields<'a> {
    fn again<A: MapAccess<'a>>(&mut self, name: &'static str, map: &mut A) -> Result<(), A::Error> {
        self.twice.get_or_insert(name);
        map.next_value::<IgnoredAny>().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bad(body: &str) -> BadBody {
        peek(body.as_bytes()).unwrap_err()
    }

    #[test]
    fn finds_model_stream_and_prompt_wherever_they_stand() {
        let body = br#" {"x":{"model":"no"}, "messages" : [ {"role":"user"} ],"stream":true , "model": "m-a" } "#;
        let found = peek(body).unwrap();
        assert_eq!((found.model.as_str(), found.stream), ("m-a", true));
        assert_eq!(&body[found.model_span], b"\"m-a\"");
        assert_eq!(&body[found.prompt_span.unwrap()], br#"[ {"role":"user"} ]"#);
    }

    #[test]
    fn finds_what_the_model_reads_before_the_prompt() {
        let parts = |body: &'static str| {
            let found = peek(body.as_bytes()).unwrap();
            found.prompt_parts(body.as_bytes()).map(|part| str::from_utf8(part).unwrap())
        };
        let anthropic =
            r#"{"model":"m","messages":[1],"system" : "be brief","tools":[2],"tools":[3]}"#;
        assert_eq!(parts(anthropic), ["[2]", "\"be brief\"", "[1]"]);
        let responses = r#"{"instructions":"x","model":"m","input":"hi"}"#;
        assert_eq!(parts(responses), ["", "\"x\"", "\"hi\""]);
        let gemini = r#"{"model":"m","systemInstruction":{"parts":[]},"contents":[4]}"#;
        assert_eq!(parts(gemini), ["", r#"{"parts":[]}"#, "[4]"]);
    }

    #[test]
    fn finds_the_options_of_streams_once() {
        let body = br#"{"model":"m","stream_options" : {"x":{}} }"#;
        let found = peek(body).unwrap();
        assert_eq!(&body[found.stream_options_span.unwrap()], br#"{"x":{}}"#);
        let twice = r#"{"model":"m","stream_options":null,"stream_options":null}"#;
        assert_eq!(bad(twice).to_string(), "`stream_options` must not appear twice");
    }

    #[test]
    fn the_most_tokens_are_found_by_each_apis_name() {
        let cases = [
            (r#""max_tokens":7"#, 7),
            (r#""max_tokens":7,"max_completion_tokens":9"#, 9),
            (r#""max_output_tokens":5,"messages":[{"max_tokens":99}]"#, 5),
            (r#""max_new_tokens":3"#, 3),
            (r#""generationConfig":{"maxOutputTokens":6,"x":{}}"#, 6),
            (r#""generation_config":{"max_output_tokens":4}"#, 4),
            (r#""generationConfig":{"maxOutputTokens":"6"}"#, 0),
            (r#""generationConfig":7"#, 0),
            (r#""max_tokens":-1"#, 0),
            (r#""max_tokens":null"#, 0),
            (r#""max_tokens":{"max_tokens":1}"#, 0),
            (r#""x":0"#, 0),
        ];
        for (fields, most) in cases {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            assert_eq!(peek(body.as_bytes()).unwrap().most_tokens, most, "{body}");
        }
    }

    #[test]
    fn reads_escapes_in_names_and_keys() {
        let body = br#"{"mod\u0065l":"a\/b\u00e9\n","input":"hi"}"#;
        let found = peek(body).unwrap();
        assert_eq!((found.model.as_str(), found.stream), ("a/bé\n", false));
        assert_eq!(&body[found.prompt_span.unwrap()], b"\"hi\"");
        assert_eq!(peek(br#"{"model":"m"}"#).unwrap().prompt_span, None);
    }

    #[test]
    fn null_asks_for_no_stream() {
        let body = br#"{"model":"m","stream": null,"stream_options":null}"#;
        let found = peek(body).unwrap();
        assert!(!found.stream);
        assert_eq!(&body[found.stream_span.unwrap()], b"null");
    }

    #[test]
    fn each_wrong_body_gets_its_own_words() {
        let cases = [
            ("", "the request body is not valid JSON (line 1, column 0)"),
            ("{\n \"model\": }", "the request body is not valid JSON (line 2, column 11)"),
            (r#"{"model":"m"} x"#, "the request body is not valid JSON (line 1, column 15)"),
            (r#"{"model":"m""#, "the request body is not valid JSON (line 1, column 12)"),
            ("[]", "the request body must be a JSON object"),
            ("\"model\"", "the request body must be a JSON object"),
            ("{}", "the request body has no `model`"),
            (r#"{"model":null}"#, "`model` must be a string"),
            (r#"{"model":["m"]}"#, "`model` must be a string"),
            (r#"{"model":"\ud800"}"#, "`model` must be a string"),
            (r#"{"model":" "}"#, "`model` must not be empty"),
            (r#"{"model":"m","stream":"true"}"#, "`stream` must be true or false"),
            (r#"{"model":"m","stream":1}"#, "`stream` must be true or false"),
            (r#"{"model":"m","model":"m"}"#, "`model` must not appear twice"),
            (
                r#"{"stream":true,"model":"m","str\u0065am":false}"#,
                "`stream` must not appear twice",
            ),
        ];
        for (body, words) in cases {
            assert_eq!(bad(body).to_string(), words, "{body}");
        }
        assert_eq!(peek(b"{\"model\":\"\xff\"}"), Err(BadBody::NotUtf8(10)));
        assert_eq!((bad("{}").param(), bad("[]").param()), (Some("model"), None));
    }

    #[test]
    fn a_name_may_reach_its_bound_and_not_pass_it() {
        let body = |length: usize| format!(r#"{{"model":"{}"}}"#, "m".repeat(length));
        assert_eq!(peek(body(MAX_MODEL_NAME).as_bytes()).unwrap().model.len(), MAX_MODEL_NAME);
        assert_eq!(bad(&body(MAX_MODEL_NAME + 1)), BadBody::ModelTooLong);
    }

    #[test]
    fn deep_nesting_is_passed_over() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let body = format!(r#"{{"messages":{deep},"y":{deep},"model":"m"}}"#);
        assert_eq!(peek(body.as_bytes()).unwrap().model, "m");
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(body: Vec<u8>) {
            prop_assert!(peek(&body).is_err());
        }
    }
}
