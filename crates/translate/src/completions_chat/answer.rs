//! `text_completion` objects and chunks.

use protocol::{
    failure::{BadAnswer, Failure},
    json,
};
use serde::{Deserialize, Serialize};

use crate::{
    Context,
    answer::Body,
    chat::{Finish, Outcome, Part, Usage, Writer},
    errors,
};

/// Writes a completion, as a stream or as one object. Parts other than text and refusals are left
/// out.
#[derive(Debug)]
pub(super) struct TextCompletion {
    streaming: bool,
    include_usage: bool,
    /// The beginning of every object, up to its choices.
    prefix: String,
    /// Whether the open part is text.
    is_text: bool,
    /// The text of an answer that is one object.
    text: String,
    line: String,
}

impl TextCompletion {
    /// A writer that has written nothing yet. `request` is the client's own body.
    pub(super) fn new(context: &Context, request: &[u8]) -> Self {
        let wanted: RequestOptions = serde_json::from_slice(request).unwrap_or_default();
        let model = json::write(&context.model);
        Self {
            streaming: context.streaming,
            include_usage: wanted.stream_options.is_some_and(|it| it.include_usage == Some(true)),
            prefix: format!(
                r#"{{"id":"cmpl-{}","object":"text_completion","created":{},"model":{model},"choices":["#,
                context.id, context.created,
            ),
            is_text: false,
            text: String::new(),
            line: String::new(),
        }
    }

    /// Writes a chunk. `finish` is JSON.
    fn chunk(&mut self, text: &str, finish: &str, out: &mut Vec<u8>) {
        self.line.clear();
        for piece in ["data: ", &self.prefix, r#"{"index":0,"text":""#] {
            self.line.push_str(piece);
        }
        json::push_escaped(&mut self.line, text);
        for piece in [r#"","logprobs":null,"finish_reason":"#, finish, "}]}\n\n"] {
            self.line.push_str(piece);
        }
        out.extend_from_slice(self.line.as_bytes());
    }

    fn end_stream(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        self.chunk("", reason(outcome.finish), out);
        if self.include_usage {
            let usage = json::write(&CompletionUsage::of(&outcome.usage));
            let chunk = format!("data: {}],\"usage\":{usage}}}\n\n", self.prefix);
            out.extend_from_slice(chunk.as_bytes());
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn object(&self, outcome: &Outcome) -> String {
        let (prefix, finish) = (&self.prefix, reason(outcome.finish));
        let (text, usage) =
            (json::write(&self.text), json::write(&CompletionUsage::of(&outcome.usage)));
        format!(
            r#"{prefix}{{"index":0,"text":{text},"logprobs":null,"finish_reason":{finish}}}],"usage":{usage}}}"#
        )
    }
}

impl Writer for TextCompletion {
    fn body(&self) -> Body {
        if self.streaming { Body::Events } else { Body::Json }
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.is_text = matches!(part, Part::Text | Part::Refusal);
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        match (self.is_text, self.streaming) {
            (false, _) => {}
            (true, true) => self.chunk(text, "null", out),
            (true, false) => self.text.push_str(text),
        }
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.streaming {
            self.end_stream(outcome, out);
        } else {
            out.extend_from_slice(self.object(outcome).as_bytes());
        }
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::event(failure).as_bytes());
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::body(status, failure).as_bytes());
    }
}

/// `finish_reason`, as JSON.
fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => r#""stop""#,
        Finish::Length => r#""length""#,
        Finish::ContentFilter => r#""content_filter""#,
    }
}

#[derive(Default, Deserialize)]
struct RequestOptions {
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Serialize)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl CompletionUsage {
    fn of(usage: &Usage) -> Self {
        let (prompt_tokens, completion_tokens) = (usage.prompt().all, usage.completion());
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens }
    }
}
