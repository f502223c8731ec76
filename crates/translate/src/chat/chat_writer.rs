//! Answers in the shape of Chat Completions.

use protocol::{
    failure::{BadAnswer, Failure},
    json,
};
use serde::{Deserialize, Serialize};

use super::{
    chunk::{PromptTokens, Usage},
    provider::{FromProvider, ProviderReader},
    writer::{Finish, Outcome, Part, Writer},
};
use crate::{
    answer::{Answer, Body, Context},
    errors,
};

/// The answer for a client of Chat Completions, from a provider's answer that `R` reads. `request` is the client's
/// own body.
pub(crate) fn chat_answer<R: ProviderReader + 'static>(
    context: &Context,
    request: &[u8],
) -> Box<dyn Answer> {
    if context.streaming {
        Box::new(FromProvider::<R, _>::new(ChatStream::new(context, request)))
    } else {
        Box::new(FromProvider::<R, _>::new(ChatWhole::new(context)))
    }
}

/// Writes chunks, and `[DONE]` at the end.
#[derive(Debug)]
pub struct ChatStream {
    /// The start of every chunk, up to its choices.
    prefix: String,
    /// Whether the client asked for the usage, which is sent in its own chunk.
    include_usage: bool,
    /// The beginning and the end of a delta of the open part, around its text.
    around: (String, &'static str),
    context_id: String,
    /// A buffer for a text with its escapes, used again for each delta.
    escaped: String,
}

impl ChatStream {
    /// A writer that has written nothing yet. `request` is the client's own body.
    pub fn new(context: &Context, request: &[u8]) -> Self {
        let wanted: RequestOptions = serde_json::from_slice(request).unwrap_or_default();
        let (id, created, model) = (&context.id, context.created, json::write(&context.model));
        Self {
            prefix: format!(
                "data: {{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion.chunk\",\
                 \"created\":{created},\"model\":{model},\"choices\":["
            ),
            include_usage: wanted.stream_options.is_some_and(|options| options.include_usage),
            around: (String::new(), ""),
            context_id: id.clone(),
            escaped: String::new(),
        }
    }

    fn chunk(&self, delta: &str, finish: Option<&str>, out: &mut Vec<u8>) {
        let finish = json::write(&finish);
        let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#);
        out.extend_from_slice(self.prefix.as_bytes());
        out.extend_from_slice(choice.as_bytes());
        out.extend_from_slice(b"\n\n");
    }

    fn usage(&self, usage: &Usage, out: &mut Vec<u8>) {
        let usage = json::write(&ChatUsage::of(usage));
        out.extend_from_slice(self.prefix.as_bytes());
        out.extend_from_slice(format!("],\"usage\":{usage}}}\n\n").as_bytes());
    }
}

impl Writer for ChatStream {
    fn body(&self) -> Body {
        Body::Events
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        self.chunk(r#"{"role":"assistant","content":""}"#, None, out);
    }

    fn open(&mut self, part: &Part, out: &mut Vec<u8>) {
        let (before, after) = match part {
            Part::Reasoning => (r#"{"reasoning_content":""#.to_owned(), r#""}"#),
            Part::Text => (r#"{"content":""#.to_owned(), r#""}"#),
            Part::Refusal => (r#"{"refusal":""#.to_owned(), r#""}"#),
            Part::Call { id, name, number } => {
                let call = Call::new(&self.context_id, id, name, *number, "");
                self.chunk(&format!(r#"{{"tool_calls":[{}]}}"#, json::write(&call)), None, out);
                let arguments = r#""function":{"arguments":""#;
                (format!(r#"{{"tool_calls":[{{"index":{number},{arguments}"#), r#""}}]}"#)
            }
        };
        let before = format!(r#"{}{{"index":0,"delta":{before}"#, self.prefix);
        self.around = (before, after);
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        self.escaped.clear();
        json::push_escaped(&mut self.escaped, text);
        let (before, after) = &self.around;
        let finish = ",\"finish_reason\":null}]}\n\n";
        for piece in [before.as_str(), &self.escaped, after, finish] {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.chunk("{}", Some(reason(outcome.finish)), out);
        if self.include_usage {
            self.usage(&outcome.usage, out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::event(failure).as_bytes());
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::body(status, failure).as_bytes());
    }
}

/// Keeps an answer and writes it when it is complete.
#[derive(Debug)]
pub struct ChatWhole {
    context: Context,
    parts: Vec<(Part, String)>,
}

impl ChatWhole {
    /// A writer that has no part yet.
    pub fn new(context: &Context) -> Self {
        Self { context: context.clone(), parts: Vec::new() }
    }

    /// The joined text of all parts of a kind; `None` if there is no such part.
    fn text(&self, kind: &Part) -> Option<String> {
        let mut texts = self.parts.iter().filter(|(part, _)| part == kind).map(|(_, text)| &**text);
        let first = texts.next()?.to_owned();
        Some(texts.fold(first, |all, text| all + text))
    }

    fn calls(&self) -> Vec<Call<'_>> {
        let calls = self.parts.iter().filter_map(|(part, text)| match part {
            Part::Call { id, name, number } => {
                Some(Call::new(&self.context.id, id, name, *number, text))
            }
            _ => None,
        });
        calls.map(|call| Call { index: None, ..call }).collect()
    }
}

impl Writer for ChatWhole {
    fn body(&self) -> Body {
        Body::Json
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.parts.push((part.clone(), String::new()));
    }

    fn delta(&mut self, more: &str, _: &mut Vec<u8>) {
        if let Some((_, text)) = self.parts.last_mut() {
            text.push_str(more);
        }
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let message = Message {
            role: "assistant",
            content: self.text(&Part::Text),
            refusal: self.text(&Part::Refusal),
            reasoning_content: self.text(&Part::Reasoning),
            tool_calls: self.calls(),
        };
        let choice =
            Choice { index: 0, message, logprobs: None, finish_reason: reason(outcome.finish) };
        let answer = Completion {
            id: format!("chatcmpl-{}", self.context.id),
            object: "chat.completion",
            created: self.context.created,
            model: &self.context.model,
            choices: [choice],
            usage: ChatUsage::of(&outcome.usage),
        };
        out.extend_from_slice(json::write(&answer).as_bytes());
        Ok(())
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::body(status, failure).as_bytes());
    }
}

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
    }
}

#[derive(Default, Deserialize)]
struct RequestOptions {
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Serialize)]
struct Completion<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
    usage: ChatUsage,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    /// In chunks only.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    fn new(context_id: &str, id: &str, name: &'a str, number: usize, arguments: &'a str) -> Self {
        let id = if id.is_empty() { format!("call_{context_id}_{number}") } else { id.to_owned() };
        Self { index: Some(number), id, kind: "function", function: Function { name, arguments } }
    }
}

#[derive(Serialize)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Serialize)]
struct PromptDetails {
    cached_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
}

#[derive(Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl ChatUsage {
    fn of(usage: &Usage) -> Self {
        let PromptTokens { all: prompt_tokens, cached: cached_tokens, written } = usage.prompt();
        let completion_tokens = usage.completion();
        let reasoning = usage.completion_tokens_details.reasoning_tokens.0;
        Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            prompt_tokens_details: PromptDetails {
                cached_tokens,
                cache_write_tokens: Some(written).filter(|&written| written > 0),
            },
            completion_tokens_details: reasoning
                .map(|reasoning_tokens| CompletionDetails { reasoning_tokens }),
        }
    }
}
