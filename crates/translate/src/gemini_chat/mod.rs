//! From a client of Gemini's API to a Chat Completions provider. Fields are read in both spellings,
//! as `systemInstruction` and as `system_instruction`.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `model`, `stream`, `alt` | carried; the server writes them into the body, from the path |
//! | `systemInstruction` | the system message |
//! | `contents` of `user`, `model` and `function` | messages; a `functionResponse` is a tool's result, whoever's content it is in |
//! | text, pictures | carried |
//! | sound (`wav`, `mp3`), PDF | carried, as `input_audio` and `file`; text files as text; data of other types is refused |
//! | `fileData` | pictures by their `https:` address; anything else is refused: there is no store of files here |
//! | `functionCall` without an `id` | gets one by its place; a `functionResponse` without one belongs to the first open call of its name |
//! | `functionResponse.response` | its `output`, or its `error` after `Error: `, where there is nothing else in it; else the whole object as JSON |
//! | thoughts of earlier turns | as `reasoning_content`; a `thoughtSignature` that was given out here as what it was made of, see `signature`; other signatures are dropped |
//! | `executableCode`, `codeExecutionResult`, `toolCall`, `toolResponse` | left out, as traces of tools that Google ran |
//! | `tools.functionDeclarations` | functions; schemas of Google's form in JSON Schema's words, see `schema`; `response` and `behavior` are dropped |
//! | tools that Google runs (`googleSearch`, `codeExecution`, `urlContext`, …) | refused by name: without them the model would make the results up |
//! | `toolConfig.functionCallingConfig` | as `tool_choice`; of several `allowedFunctionNames` only these are offered |
//! | `temperature`, `topP`, `topK`, `maxOutputTokens`, `stopSequences`, `seed`, penalties | carried; `topK` is no field of OpenAI's, but local servers know it |
//! | `responseMimeType`, `responseSchema`, `responseJsonSchema` | as `response_format`; a schema alone counts as JSON |
//! | `thinkingConfig` | `includeThoughts` decides whether the answer has them; the rest is dropped: local models think as they are made to |
//! | `candidateCount` above 1, `responseLogprobs`, `logprobs`, `responseModalities` beside text, `speechConfig`, `imageConfig`, other types of `responseMimeType` | refused by name |
//! | `cachedContent` | refused: nothing is kept here |
//! | `safetySettings`, `labels`, `mediaResolution`, `store` and fields not known | dropped: they change no answer here |
//! | defaults of an alias, as `temperature` beside `contents` | where `generationConfig` does not say otherwise |
//!
//! In the answer, each piece of text is a part, and a call comes whole. A call whose arguments are no JSON
//! object is left out, and the answer ends with `MALFORMED_FUNCTION_CALL`. A stream is events or, where
//! `alt` is `json`, an array that is complete even if the answer breaks off.

mod candidate;
mod config;
mod conversation;
mod part;
mod request;
mod results;
mod schema;
mod signature;
mod stream;
mod tools;
mod whole;

use protocol::{gemini::complete::ARRAY, json::lenient};
use serde::Deserialize;
use serde_json::value::RawValue;

pub use request::request;

use crate::{
    Context, answer::Answer, chat::FromChat, gemini_chat::stream::Framing, refusal::ClientNames,
};

/// The client's names of fields, for refusals by a second translation.
pub(crate) const NAMES: ClientNames = ClientNames {
    fields: &[
        ("stop", "generationConfig.stopSequences"),
        ("max_tokens", "generationConfig.maxOutputTokens"),
        ("temperature", "generationConfig.temperature"),
        ("seed", "generationConfig.seed"),
        ("response_format", "generationConfig.responseSchema"),
        ("tool_choice", "toolConfig.functionCallingConfig"),
    ],
    said: "contents",
    origins: request::origins,
};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    let form: AnswerForm<'_> = serde_json::from_slice(request).unwrap_or_default();
    let with_thoughts = form.wants_thoughts();
    let answer: Box<dyn Answer> = if context.streaming {
        let framing = if form.alt.0 == ARRAY { Framing::Array } else { Framing::Events };
        Box::new(FromChat::new(stream::Stream::new(context, framing, with_thoughts)))
    } else {
        Box::new(FromChat::new(whole::Whole::new(context, with_thoughts)))
    };
    answer
}

/// The fields of a request that decide the form of its answer.
#[derive(Default, Deserialize)]
struct AnswerForm<'a> {
    #[serde(borrow, default)]
    alt: lenient::Text<'a>,
    #[serde(borrow, default, rename = "generationConfig", alias = "generation_config")]
    generation_config: Option<&'a RawValue>,
}

impl AnswerForm<'_> {
    fn wants_thoughts(&self) -> bool {
        self.generation_config.is_some_and(config::wants_thoughts)
    }
}

#[cfg(test)]
mod tests;
