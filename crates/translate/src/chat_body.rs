//! The body of a Chat Completions request, for the translation to every other provider.

use protocol::json::{
    BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The fields of `POST /v1/chat/completions` as raw JSON, so that a translation validates only the
/// fields that it carries over.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ChatBody<'a> {
    pub(super) model: Option<&'a RawValue>,
    pub(super) messages: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    pub(super) tool_choice: Option<&'a RawValue>,
    parallel_tool_calls: Option<&'a RawValue>,
    pub(super) response_format: Option<&'a RawValue>,
    pub(super) verbosity: Option<&'a RawValue>,
    pub(super) reasoning_effort: Option<&'a RawValue>,
    max_completion_tokens: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    pub(super) temperature: Option<&'a RawValue>,
    pub(super) top_p: Option<&'a RawValue>,
    pub(super) top_k: Option<&'a RawValue>,
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) user: Option<&'a RawValue>,
    pub(super) stop: Option<&'a RawValue>,
    pub(super) stream: Option<&'a RawValue>,
    pub(super) stream_options: Option<&'a RawValue>,
    pub(super) n: Option<&'a RawValue>,
    pub(super) logprobs: Option<&'a RawValue>,
    pub(super) top_logprobs: Option<&'a RawValue>,
    logit_bias: Option<&'a RawValue>,
    pub(super) functions: Option<&'a RawValue>,
    function_call: Option<&'a RawValue>,
    pub(super) audio: Option<&'a RawValue>,
    pub(super) modalities: Option<&'a RawValue>,
    pub(super) web_search_options: Option<&'a RawValue>,
}

impl<'a> ChatBody<'a> {
    /// Refuses fields that neither Messages nor Responses can express. `one_answer` holds the
    /// values of `n` that ask for one answer.
    pub(super) fn refuse(&self, one_answer: &[&str], reason: &str) -> Result<(), BadRequest> {
        let parameters = [
            ("n", self.n.filter(|n| !one_answer.contains(&n.get()))),
            ("logprobs", self.logprobs),
            ("top_logprobs", self.top_logprobs.filter(|count| count.get() != "0")),
            ("logit_bias", self.logit_bias),
            ("functions", self.functions),
            ("function_call", self.function_call),
            ("audio", self.audio),
        ];
        fields::refuse(&parameters, reason)?;
        let text_alone = |raw: &RawValue| {
            serde_json::from_str::<Vec<Text<'_>>>(raw.get())
                .is_ok_and(|kinds| kinds.iter().all(|Text(kind)| kind == "text"))
        };
        let modalities = self.modalities.filter(|raw| !text_alone(raw));
        fields::refuse(&[("modalities", modalities)], reason)?;
        // An empty object asks for a search as well.
        let search = |_| {
            let name = "web_search_options";
            BadRequest::new(name, format!("`{name}` {reason}"))
        };
        self.web_search_options.map(search).map_or(Ok(()), Err)
    }

    pub(super) fn tools(&self) -> Result<Vec<&'a RawValue>, BadRequest> {
        self.optional(self.tools, "tools").map(Option::unwrap_or_default)
    }

    /// `tools` as raw JSON.
    pub(super) fn raw_tools(&self) -> Option<&'a RawValue> {
        self.tools
    }

    pub(super) fn parallel_tool_calls(&self) -> Result<Option<bool>, BadRequest> {
        self.optional(self.parallel_tool_calls, "parallel_tool_calls")
    }

    pub(super) fn streams(&self) -> Result<bool, BadRequest> {
        self.optional(self.stream, "stream").map(Option::unwrap_or_default)
    }

    /// The limit of the answer's tokens under its newer or its older name, and that name.
    pub(super) fn max_tokens(&self) -> Option<(&'a RawValue, &'static str)> {
        let newer = self.max_completion_tokens.map(|raw| (raw, "max_completion_tokens"));
        newer.or(self.max_tokens.map(|raw| (raw, "max_tokens")))
    }

    /// Reads one of the fields.
    pub(super) fn optional<T: Deserialize<'a>>(
        &self,
        field: Option<&'a RawValue>,
        name: &str,
    ) -> Result<Option<T>, BadRequest> {
        field.map(|raw| fields::value(raw, name)).transpose()
    }
}
