//! Adds the defaults of a room and of a participant to the body of a request for the participant,
//! and turns an `llm:request` into a request.
//!
//! The request's own values win, even `null`. Defaults are added by splicing, so the request's own
//! bytes stay unchanged. The names are those of the endpoint:
//!
//! | Default | Chat, Completions | Responses | Messages | `/api/chat` |
//! | --- | --- | --- | --- | --- |
//! | `temperature` | itself | itself | itself, at most 1 | itself |
//! | `top_p` | itself | itself | itself | – |
//! | `max_tokens` | itself | `max_output_tokens` | itself | `max_new_tokens` |
//! | `stop` | itself | `stop_sequences` | `stop_sequences` | – |
//! | penalties, `seed` | themselves | themselves | – | – |
//! | `instructions` | a leading system message (Chat alone) | itself | `system` | `system` |
//!
//! Embeddings, token counts, sound, pictures, moderations and rankings have no defaults.

use std::{borrow::Cow, fmt};

use base::Endpoint;
use bytes::Bytes;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    config::{GenerationConfig, RuntimeConfig},
    message::LlmRequest,
};
use crate::{
    json,
    openai::{Edit, added, object_end, span, splice},
};

/// The body with the missing defaults added, for a provider that serves this endpoint. `None` when
/// there is nothing to add, or when the body is not an object with a member.
pub fn complete(body: &[u8], endpoint: Endpoint, defaults: &RuntimeConfig) -> Option<Bytes> {
    let parameters = parameters(endpoint, defaults);
    let instructions = defaults.instructions.as_deref().filter(|_| {
        // For other endpoints they are a parameter like the others.
        endpoint == Endpoint::ChatCompletions
    });
    if parameters.is_empty() && instructions.is_none() {
        return None;
    }
    let text = str::from_utf8(body).ok()?;
    let given = GivenBody::read(text, &parameters)?;
    let message = instructions.and_then(|text| given.system_message(text));
    let edits: Vec<Edit> = given.lacking(&parameters, body).into_iter().chain(message).collect();
    // The one copy of the body is the new one.
    (!edits.is_empty()).then(|| splice(&Bytes::copy_from_slice(body), edits))
}

/// The body of the streaming Chat Completions request that an `llm:request` becomes. Its model is
/// the selector.
pub fn llm_request_body(request: &LlmRequest) -> String {
    json::write(&ChatRequest {
        model: &request.target_id,
        messages: [Message { role: "user", content: &request.prompt }],
        options: request.options.as_ref(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    })
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: [Message<'a>; 1],
    #[serde(flatten)]
    options: Option<&'a GenerationConfig>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Parameter {
    /// The name under which it is added.
    name: &'static str,
    /// Another name under which a body may already have it.
    alias: &'static str,
    value: String,
}

/// These defaults as parameters of an endpoint.
fn parameters(endpoint: Endpoint, defaults: &RuntimeConfig) -> Vec<Parameter> {
    let generation = &defaults.generation;
    let instructions = defaults.instructions.as_ref();
    match endpoint {
        Endpoint::ChatCompletions | Endpoint::Completions => {
            let all = [
                parameter("max_tokens", "max_completion_tokens", generation.max_tokens),
                parameter("stop", "stop", generation.stop.as_ref()),
            ];
            sampling(generation).into_iter().chain(all).flatten().collect()
        }
        Endpoint::Responses => {
            let all = [
                parameter("max_output_tokens", "max_tokens", generation.max_tokens),
                parameter("stop_sequences", "stop", generation.stop.as_ref()),
                parameter("instructions", "instructions", instructions),
            ];
            sampling(generation).into_iter().chain(all).flatten().collect()
        }
        Endpoint::Messages => messages_parameters(defaults),
        Endpoint::NodeChat => {
            let all = [
                parameter("temperature", "temperature", generation.temperature),
                parameter("max_new_tokens", "max_new_tokens", generation.max_tokens),
                parameter("system", "system", instructions),
            ];
            all.into_iter().flatten().collect()
        }
        Endpoint::Embeddings | Endpoint::CountTokens => Vec::new(),
        // The parameters are for generated text, and not for sound, pictures or judgements.
        Endpoint::Transcriptions
        | Endpoint::SoundTranslations
        | Endpoint::Speech
        | Endpoint::ImageGenerations
        | Endpoint::ImageEdits
        | Endpoint::ImageVariations
        | Endpoint::Moderations
        | Endpoint::Rerank
        | Endpoint::Score => Vec::new(),
        // Participants do not get requests in these APIs: their defaults are added after the
        // translation.
        Endpoint::OllamaChat
        | Endpoint::OllamaGenerate
        | Endpoint::OllamaRaw
        | Endpoint::OllamaEmbed
        | Endpoint::OllamaEmbeddings
        | Endpoint::GeminiGenerate
        | Endpoint::GeminiCountTokens
        | Endpoint::GeminiEmbed
        | Endpoint::GeminiBatchEmbed => Vec::new(),
    }
}

/// Messages has a smaller range of temperatures, and neither penalties nor seeds.
fn messages_parameters(defaults: &RuntimeConfig) -> Vec<Parameter> {
    let generation = &defaults.generation;
    let temperature = generation.temperature.map(|temperature| temperature.min(1.0));
    let all = [
        parameter("temperature", "temperature", temperature),
        parameter("top_p", "top_p", generation.top_p),
        parameter("max_tokens", "max_tokens", generation.max_tokens),
        parameter("stop_sequences", "stop_sequences", generation.stop.as_ref()),
        parameter("system", "system", defaults.instructions.as_ref()),
    ];
    all.into_iter().flatten().collect()
}

/// Parameters that have the same names in OpenAI's APIs.
fn sampling(generation: &GenerationConfig) -> [Option<Parameter>; 5] {
    [
        parameter("temperature", "temperature", generation.temperature),
        parameter("top_p", "top_p", generation.top_p),
        parameter("frequency_penalty", "frequency_penalty", generation.frequency_penalty),
        parameter("presence_penalty", "presence_penalty", generation.presence_penalty),
        parameter("seed", "seed", generation.seed),
    ]
}

fn parameter(
    name: &'static str,
    alias: &'static str,
    value: Option<impl Serialize>,
) -> Option<Parameter> {
    value.map(|value| Parameter { name, alias, value: json::write(&value) })
}

/// The fields that a body has already.
struct GivenBody<'a> {
    text: &'a str,
    /// For each parameter, whether the body has it.
    there: Vec<bool>,
    /// Whether the body has at least one member.
    any: bool,
    /// The value of `messages`, unless there are several.
    messages: Option<&'a RawValue>,
    messages_twice: bool,
}

impl<'a> GivenBody<'a> {
    fn read(text: &'a str, parameters: &[Parameter]) -> Option<Self> {
        let there = vec![false; parameters.len()];
        let mut given = Self { text, there, any: false, messages: None, messages_twice: false };
        let mut reader = serde_json::Deserializer::from_str(text);
        let seed = Members { given: &mut given, parameters };
        seed.deserialize(&mut reader).and_then(|()| reader.end()).ok()?;
        given.any.then_some(given)
    }

    /// The edit that adds the missing parameters.
    fn lacking(&self, parameters: &[Parameter], body: &[u8]) -> Option<Edit> {
        let lacking = parameters.iter().zip(&self.there).filter(|(_, there)| !**there);
        let mut lacking = lacking.map(|(it, _)| (it.name, it.value.as_str())).peekable();
        lacking.peek()?;
        Some(added(object_end(body)?, lacking))
    }

    /// The edit that puts a system message first, unless there is one already or the messages are
    /// not a list, which the backend will refuse.
    fn system_message(&self, instructions: &str) -> Option<Edit> {
        let messages = self.messages.filter(|_| !self.messages_twice)?;
        let list: List = serde_json::from_str(messages.get()).ok()?;
        if list.has_system {
            return None;
        }
        let mut text = json::write(&Message { role: "system", content: instructions });
        if !list.is_empty {
            text.push(',');
        }
        let first = span(self.text, messages).start + 1;
        Some(Edit { span: first..first, text })
    }
}

struct Members<'b, 'a> {
    given: &'b mut GivenBody<'a>,
    parameters: &'b [Parameter],
}

impl<'a> DeserializeSeed<'a> for Members<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Members<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'a, str>>()? {
            self.given.any = true;
            if name == "messages" {
                self.given.messages_twice = self.given.messages.is_some();
                self.given.messages = Some(map.next_value()?);
                continue;
            }
            for (there, it) in self.given.there.iter_mut().zip(self.parameters) {
                *there |= name == it.name || name == it.alias;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

struct List {
    is_empty: bool,
    has_system: bool,
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = List;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List, A::Error> {
        let mut list = List { is_empty: true, has_system: false };
        while let Some(message) = seq.next_element::<&RawValue>()? {
            list.is_empty = false;
            list.has_system |= is_system(message);
        }
        Ok(list)
    }
}

/// Whether a message has the role of instructions. An invalid message does not count.
fn is_system(message: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct RoleOnly<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
    }
    serde_json::from_str::<RoleOnly<'_>>(message.get())
        .is_ok_and(|said| matches!(&*said.role, "system" | "developer"))
}

#[cfg(test)]
mod tests;
