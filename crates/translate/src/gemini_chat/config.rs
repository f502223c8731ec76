//! `generationConfig`: the settings for the answer.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::schema;
use crate::chat_request::{ChatRequest, JsonSchema, ResponseFormat};

/// The path of the settings, for errors.
const PATH: &str = "generationConfig";

/// Why a setting is refused.
const NOT_HERE: &str = "cannot be carried over to the model server";

/// The settings that are carried over, completed by an alias's defaults.
pub(super) struct Config<'a> {
    settings: Defaults<'a>,
    response_format: Option<ResponseFormat<'a>>,
}

impl<'a> Config<'a> {
    pub(super) fn read(
        raw: Option<&'a RawValue>,
        defaults: &Defaults<'a>,
    ) -> Result<Self, BadRequest> {
        let given: GenerationConfig<'a> = match raw {
            Some(raw) => fields::value(raw, PATH)?,
            None => GenerationConfig::default(),
        };
        given.check()?;
        let settings = Defaults {
            max_tokens: whole_number(given.max_output_tokens, "maxOutputTokens")?
                .or(defaults.max_tokens),
            temperature: number(given.temperature, "temperature")?.or(defaults.temperature),
            top_p: number(given.top_p, "topP")?.or(defaults.top_p),
            top_k: number(given.top_k, "topK")?.or(defaults.top_k),
            stop: stop_sequences(given.stop_sequences)?.or(defaults.stop),
            seed: number(given.seed, "seed")?.or(defaults.seed),
            presence_penalty: number(given.presence_penalty, "presencePenalty")?
                .or(defaults.presence_penalty),
            frequency_penalty: number(given.frequency_penalty, "frequencyPenalty")?
                .or(defaults.frequency_penalty),
        };
        Ok(Self { response_format: given.response_format()?, settings })
    }

    pub(super) fn into_chat(self) -> ChatRequest<'a> {
        ChatRequest {
            max_tokens: self.settings.max_tokens,
            temperature: self.settings.temperature,
            top_p: self.settings.top_p,
            top_k: self.settings.top_k,
            stop: self.settings.stop,
            seed: self.settings.seed,
            presence_penalty: self.settings.presence_penalty,
            frequency_penalty: self.settings.frequency_penalty,
            response_format: self.response_format,
            ..ChatRequest::default()
        }
    }
}

/// Whether the client wants the model's thoughts in the answer.
pub(super) fn wants_thoughts(config: &RawValue) -> bool {
    let given: Option<GenerationConfig<'_>> = serde_json::from_str(config.get()).ok();
    let thinking = given.and_then(|given| given.thinking_config);
    let thinking = thinking.and_then(|raw| serde_json::from_str::<Thinking>(raw.get()).ok());
    thinking.and_then(|thinking| thinking.include_thoughts).unwrap_or(false)
}

/// A number. Google's JSON also allows a number as a text, but no model server reads that.
fn number<'a>(raw: Option<&'a RawValue>, name: &str) -> Result<Option<&'a RawValue>, BadRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let path = format!("{PATH}.{name}");
    match serde_json::from_str::<f64>(raw.get()) {
        Ok(value) if value.is_finite() => Ok(Some(raw)),
        _ => Err(BadRequest::new(&*path, format!("`{path}` must be a number"))),
    }
}

fn whole_number(raw: Option<&RawValue>, name: &str) -> Result<Option<u64>, BadRequest> {
    raw.map(|raw| fields::value(raw, format!("{PATH}.{name}"))).transpose()
}

/// A list of texts; `None` for an empty one.
fn stop_sequences(raw: Option<&RawValue>) -> Result<Option<&RawValue>, BadRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let texts: Vec<Text<'_>> = fields::value(raw, format!("{PATH}.stopSequences"))?;
    Ok(Some(raw).filter(|_| !texts.is_empty()))
}

/// Settings with OpenAI's names beside `contents`. An alias puts its defaults there.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Defaults<'a> {
    max_tokens: Option<u64>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_k: Option<&'a RawValue>,
    stop: Option<&'a RawValue>,
    seed: Option<&'a RawValue>,
    presence_penalty: Option<&'a RawValue>,
    frequency_penalty: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct GenerationConfig<'a> {
    temperature: Option<&'a RawValue>,
    #[serde(alias = "top_p")]
    top_p: Option<&'a RawValue>,
    #[serde(alias = "top_k")]
    top_k: Option<&'a RawValue>,
    #[serde(alias = "max_output_tokens")]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(alias = "stop_sequences")]
    stop_sequences: Option<&'a RawValue>,
    #[serde(alias = "candidate_count")]
    candidate_count: Option<&'a RawValue>,
    seed: Option<&'a RawValue>,
    #[serde(alias = "presence_penalty")]
    presence_penalty: Option<&'a RawValue>,
    #[serde(alias = "frequency_penalty")]
    frequency_penalty: Option<&'a RawValue>,
    #[serde(alias = "response_mime_type")]
    response_mime_type: Option<Text<'a>>,
    #[serde(alias = "response_schema")]
    response_schema: Option<&'a RawValue>,
    #[serde(alias = "response_json_schema", alias = "_responseJsonSchema")]
    response_json_schema: Option<&'a RawValue>,
    #[serde(alias = "response_logprobs")]
    response_logprobs: Option<&'a RawValue>,
    logprobs: Option<&'a RawValue>,
    #[serde(alias = "response_modalities")]
    response_modalities: Option<&'a RawValue>,
    #[serde(alias = "speech_config")]
    speech_config: Option<&'a RawValue>,
    #[serde(alias = "image_config")]
    image_config: Option<&'a RawValue>,
    #[serde(alias = "thinking_config")]
    thinking_config: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    #[serde(alias = "include_thoughts")]
    include_thoughts: Option<bool>,
}

impl<'a> GenerationConfig<'a> {
    /// Refuses settings that cannot be carried over.
    fn check(&self) -> Result<(), BadRequest> {
        let one = |raw: &&RawValue| !matches!(raw.get(), "0" | "1");
        let more = self.candidate_count.filter(one);
        fields::refuse(&[(&*format!("{PATH}.candidateCount"), more)], "must be 1 here")?;
        let logprobs = self.logprobs.filter(|raw| raw.get() != "0");
        let parameters = [
            ("responseLogprobs", self.response_logprobs),
            ("logprobs", logprobs),
            ("speechConfig", self.speech_config),
            ("imageConfig", self.image_config),
        ];
        for (name, raw) in parameters {
            fields::refuse(&[(&*format!("{PATH}.{name}"), raw)], NOT_HERE)?;
        }
        let Some(raw) = self.thinking_config else { return self.check_modalities() };
        fields::value::<Thinking>(raw, format!("{PATH}.thinkingConfig"))?;
        self.check_modalities()
    }

    fn check_modalities(&self) -> Result<(), BadRequest> {
        let Some(raw) = self.response_modalities else { return Ok(()) };
        let path = format!("{PATH}.responseModalities");
        let kinds: Vec<Text<'a>> = fields::value(raw, &path)?;
        match kinds.iter().find(|Text(kind)| !kind.eq_ignore_ascii_case("text")) {
            None => Ok(()),
            Some(Text(kind)) => {
                let kind = json::clip(kind, 64);
                let message = format!("`{path}` asks for `{kind}`; models here answer in text");
                Err(BadRequest::new(path, message))
            }
        }
    }

    fn response_format(&self) -> Result<Option<ResponseFormat<'a>>, BadRequest> {
        let schema = match (self.response_json_schema, self.response_schema) {
            (Some(raw), _) if raw.get() != "null" => {
                let path = format!("{PATH}.responseJsonSchema");
                Some(Cow::Borrowed(fields::object(Some(raw), path)?))
            }
            (_, Some(raw)) if raw.get() != "null" => {
                Some(Cow::Owned(schema::in_json_schema(raw, &format!("{PATH}.responseSchema"))?))
            }
            _ => None,
        };
        let kind = self.response_mime_type.as_ref().map_or("", |Text(kind)| kind);
        match (kind, schema) {
            ("" | "application/json", Some(schema)) => Ok(Some(json_schema(schema))),
            ("application/json", None) => Ok(Some(ResponseFormat::JsonObject)),
            ("" | "text/plain", _) => Ok(None),
            (kind, _) => {
                let path = format!("{PATH}.responseMimeType");
                let kind = json::clip(kind, 64);
                let message =
                    format!("`{path}` is `{kind}`; it must be text/plain or application/json");
                Err(BadRequest::new(path, message))
            }
        }
    }
}

fn json_schema(schema: Cow<'_, RawValue>) -> ResponseFormat<'_> {
    let name = Cow::Borrowed("answer");
    // Not `strict`: schemas of this API need not name every property as required.
    let json_schema = JsonSchema { name, description: None, schema, strict: None };
    ResponseFormat::JsonSchema { json_schema }
}
