//! The endpoint of a provider that serves a request of a shape, and the translation for it.
//!
//! `PAIRS` is the only table of pairs; a route of two steps goes through Chat Completions.

use std::{sync::LazyLock, time::Duration};

use base::{Endpoint, Endpoints};
use protocol::{failure::BadAnswer, json::BadRequest};

use crate::{
    answer::{Answer, Body, Context},
    chat_messages, chat_ollama, chat_responses, completions_chat, gemini_chat, gemini_count,
    gemini_embed, messages_chat, node_chat, ollama_chat, ollama_completions, ollama_embeddings,
    ollama_generate,
    refusal::ClientNames,
    responses_chat,
};

/// The results of [`served_as`] for each endpoint, in the order of [`Endpoint::ALL`]. Cached, because every request
/// asks several times.
static SERVED_AS: LazyLock<[Endpoints; Endpoint::ALL.len()]> = LazyLock::new(|| {
    Endpoint::ALL.map(|from| {
        let serves = |to: &Endpoint| may_be_served(*to) && steps(from, *to).is_some();
        Endpoint::ALL.into_iter().filter(serves).collect()
    })
});

/// Every endpoint at which a request of this shape can be served, including its own if a provider
/// can have it.
pub fn served_as(from: Endpoint) -> Endpoints {
    let at = Endpoint::ALL.iter().position(|endpoint| *endpoint == from);
    at.map_or(Endpoints::NONE, |at| SERVED_AS[at])
}

/// Whether a provider may have this endpoint itself.
fn may_be_served(endpoint: Endpoint) -> bool {
    Endpoints::NATIVE.contains(endpoint)
}

/// The endpoint to use at a provider with these endpoints, for a request of shape `from`. The first
/// choice is `from` itself, then Chat Completions, then one that Chat Completions translates into, then
/// one that only this shape translates into. `None` if the provider cannot serve the request.
pub fn route(from: Endpoint, serves: Endpoints) -> Option<Endpoint> {
    let serves_as = served_as(from);
    let able = |to: &Endpoint| serves.contains(*to) && serves_as.contains(*to);
    use Endpoint::{ChatCompletions, Completions, CountTokens, Embeddings, Messages, Responses};
    [from, ChatCompletions, Messages, Responses, Completions, Embeddings, CountTokens]
        .into_iter()
        .find(able)
}

/// The body to send to endpoint `to` for a client's body of shape `from`. The model stays the one
/// that the client wrote. If both are the same endpoint, the body is unchanged.
///
/// # Errors
/// [`BadRequest`] when the body cannot be carried over, or there is no route from `from` to `to`.
pub fn request(
    from: Endpoint,
    to: Endpoint,
    body: &[u8],
    context: &Context,
) -> Result<Vec<u8>, BadRequest> {
    let no_way = || BadRequest { param: None, message: format!("{from} cannot be served as {to}") };
    match *steps(from, to).ok_or_else(no_way)? {
        [] => Ok(body.to_vec()),
        [only] => (only.request)(body, context),
        [outer, inner] => {
            let between = (outer.request)(body, context)?;
            (inner.request)(&between, context).map_err(|bad| outer.names.renamed(bad, body))
        }
        _ => Err(no_way()),
    }
}

/// The translation of an answer of endpoint `to` into the client's; each attempt needs its own.
/// `body` is the client's own. `None` if the answer passes unchanged, or if there is no route from
/// `from` to `to`.
pub fn answer(
    from: Endpoint,
    to: Endpoint,
    context: &Context,
    body: &[u8],
) -> Option<Box<dyn Answer>> {
    match *steps(from, to)? {
        [] => None,
        [only] => Some((only.answer)(context, body)),
        [outer, inner] => {
            // The inner pair's request is the outer pair's output, built again here. Building it
            // succeeded before, or there would be no answer.
            let between = (outer.request)(body, context).unwrap_or_default();
            let (outer, inner) = ((outer.answer)(context, body), (inner.answer)(context, &between));
            Some(Box::new(AnswerPair { inner, outer, between: Vec::new() }))
        }
        _ => None,
    }
}

/// The body to send to an Ollama in its own API, with a context of `num_ctx` tokens, for a client's body of shape
/// `from`, which Chat Completions can serve.
///
/// # Errors
/// As [`request`].
pub fn ollama_request(
    from: Endpoint,
    body: &[u8],
    context: &Context,
    num_ctx: u64,
) -> Result<Vec<u8>, BadRequest> {
    let to = Endpoint::ChatCompletions;
    let between = request(from, to, body, context)?;
    let pair = PAIRS.iter().find(|pair| pair.from == from && pair.to == to);
    chat_ollama::request(&between, context, Some(num_ctx))
        .map_err(|bad| pair.map_or(bad.clone(), |pair| pair.names.renamed(bad, body)))
}

/// The translation of an Ollama's answer into the client's; each attempt needs its own.
pub fn ollama_answer(from: Endpoint, context: &Context, body: &[u8]) -> Box<dyn Answer> {
    let to = Endpoint::ChatCompletions;
    let between = request(from, to, body, context).unwrap_or_default();
    let inner: Box<dyn Answer> = Box::new(chat_ollama::answer(context, &between));
    match answer(from, to, context, body) {
        Some(outer) => Box::new(AnswerPair { inner, outer, between: Vec::new() }),
        None => inner,
    }
}

/// One shape of requests that is served in another.
struct Pair {
    from: Endpoint,
    to: Endpoint,
    request: fn(&[u8], &Context) -> Result<Vec<u8>, BadRequest>,
    answer: fn(&Context, &[u8]) -> Box<dyn Answer>,
    /// The client's names of fields, for refusals by a second translation.
    names: ClientNames,
}

static PAIRS: [Pair; 15] = [
    Pair {
        from: Endpoint::Messages,
        to: Endpoint::ChatCompletions,
        request: messages_chat::request,
        answer: |context, body| Box::new(messages_chat::answer(context, body)),
        names: messages_chat::NAMES,
    },
    Pair {
        from: Endpoint::ChatCompletions,
        to: Endpoint::Messages,
        request: chat_messages::request,
        answer: |context, body| Box::new(chat_messages::answer(context, body)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::Responses,
        to: Endpoint::ChatCompletions,
        request: responses_chat::request,
        answer: |context, body| Box::new(responses_chat::answer(context, body)),
        names: responses_chat::NAMES,
    },
    Pair {
        from: Endpoint::ChatCompletions,
        to: Endpoint::Responses,
        request: chat_responses::request,
        answer: |context, body| Box::new(chat_responses::answer(context, body)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::Completions,
        to: Endpoint::ChatCompletions,
        request: completions_chat::request,
        answer: |context, body| Box::new(completions_chat::answer(context, body)),
        names: ClientNames { said: "prompt", ..ClientNames::SAME },
    },
    Pair {
        from: Endpoint::NodeChat,
        to: Endpoint::ChatCompletions,
        request: node_chat::request,
        answer: |context, body| Box::new(node_chat::answer(context, body)),
        names: ClientNames { fields: &[("max_tokens", "max_new_tokens")], ..ClientNames::SAME },
    },
    Pair {
        from: Endpoint::GeminiGenerate,
        to: Endpoint::ChatCompletions,
        request: gemini_chat::request,
        answer: |context, body| Box::new(gemini_chat::answer(context, body)),
        names: gemini_chat::NAMES,
    },
    Pair {
        from: Endpoint::GeminiCountTokens,
        to: Endpoint::CountTokens,
        request: gemini_count::request,
        answer: |context, body| Box::new(gemini_count::answer(context, body)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::GeminiEmbed,
        to: Endpoint::Embeddings,
        request: gemini_embed::request,
        answer: |context, body| Box::new(gemini_embed::answer(context, body)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::GeminiBatchEmbed,
        to: Endpoint::Embeddings,
        request: gemini_embed::batch_request,
        answer: |context, body| Box::new(gemini_embed::batch_answer(context, body)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::OllamaChat,
        to: Endpoint::ChatCompletions,
        request: ollama_chat::request,
        answer: |context, body| Box::new(ollama_chat::answer(context, body)),
        names: ollama_chat::NAMES,
    },
    Pair {
        from: Endpoint::OllamaGenerate,
        to: Endpoint::ChatCompletions,
        request: ollama_generate::request,
        answer: |context, body| Box::new(ollama_generate::answer(context, body)),
        names: ollama_generate::NAMES,
    },
    Pair {
        from: Endpoint::OllamaRaw,
        to: Endpoint::Completions,
        request: ollama_completions::request,
        answer: |context, body| Box::new(ollama_completions::answer(context, body)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::OllamaEmbed,
        to: Endpoint::Embeddings,
        request: ollama_embeddings::embed_request,
        answer: |context, _| Box::new(ollama_embeddings::embed_answer(context)),
        names: ClientNames::SAME,
    },
    Pair {
        from: Endpoint::OllamaEmbeddings,
        to: Endpoint::Embeddings,
        request: ollama_embeddings::embeddings_request,
        answer: |context, _| Box::new(ollama_embeddings::embeddings_answer(context)),
        names: ClientNames::SAME,
    },
];

/// The pairs that lead from one endpoint to another: none if they are the same; `None` if there is
/// no way.
fn steps(from: Endpoint, to: Endpoint) -> Option<Vec<&'static Pair>> {
    if from == to {
        return Some(Vec::new());
    }
    let pair = |from, to| PAIRS.iter().find(|pair| pair.from == from && pair.to == to);
    let through =
        || Some(vec![pair(from, Endpoint::ChatCompletions)?, pair(Endpoint::ChatCompletions, to)?]);
    pair(from, to).map(|pair| vec![pair]).or_else(through)
}

/// Two translations, one after the other.
struct AnswerPair {
    /// Reads the provider's answer.
    inner: Box<dyn Answer>,
    /// Writes the client's answer.
    outer: Box<dyn Answer>,
    /// The bytes between the two, kept to reuse the buffer.
    between: Vec<u8>,
}

impl Answer for AnswerPair {
    fn head(&mut self, status: u16, body: Body) -> (u16, Body) {
        let (status, body) = self.inner.head(status, body);
        self.outer.head(status, body)
    }

    fn passed(&mut self, since: Duration) {
        self.inner.passed(since);
        self.outer.passed(since);
    }

    fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let read = self.inner.feed(chunk, &mut self.between);
        self.pass_on(out)?;
        read
    }

    fn is_over(&self) -> bool {
        self.outer.is_over()
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let read = self.inner.end(&mut self.between);
        self.pass_on(out)?;
        read?;
        self.outer.end(out)
    }
}

impl AnswerPair {
    /// Passes on what the inner translation wrote, also what it wrote before an error.
    fn pass_on(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let written = match self.between.as_slice() {
            [] => Ok(()),
            between => self.outer.feed(between, out),
        };
        self.between.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: Endpoint = Endpoint::ChatCompletions;

    #[test]
    fn a_native_endpoint_is_asked_natively() {
        for from in Endpoints::NATIVE.iter() {
            assert_eq!(route(from, Endpoints::NATIVE), Some(from));
            assert_eq!(request(from, from, b"x", &context()).as_deref(), Ok(&b"x"[..]));
            assert!(answer(from, from, &context(), b"x").is_none());
        }
    }

    #[test]
    fn chat_serves_every_shape_that_generates() {
        use Endpoint::{Completions, GeminiGenerate, Messages, NodeChat, Responses};
        for from in [Completions, GeminiGenerate, Messages, NodeChat, Responses] {
            assert_eq!(route(from, Endpoints::only(CHAT)), Some(CHAT), "{from}");
        }
        let embeddings = Endpoints::only(Endpoint::Embeddings);
        assert_eq!(route(CHAT, embeddings), None);
        for from in [Endpoint::Embeddings, Endpoint::CountTokens] {
            assert_eq!(route(from, Endpoints::ASSUMED.without(from)), None, "{from}");
            assert_eq!(served_as(from), Endpoints::only(from));
        }
        for from in Endpoints::UNTRANSLATED.iter() {
            assert_eq!(route(from, Endpoints::NATIVE.without(from)), None, "{from}");
            assert_eq!(served_as(from), Endpoints::only(from));
        }
        for from in [Endpoint::GeminiEmbed, Endpoint::GeminiBatchEmbed] {
            assert_eq!(served_as(from), embeddings, "{from}");
        }
        let counts = Endpoints::only(Endpoint::CountTokens);
        assert_eq!(served_as(Endpoint::GeminiCountTokens), counts);
    }

    #[test]
    fn two_steps_go_through_chat() {
        let only = Endpoints::only(Endpoint::Responses);
        assert_eq!(route(Endpoint::Messages, only), Some(Endpoint::Responses));
        assert_eq!(route(Endpoint::NodeChat, only), Some(Endpoint::Responses));
        let both = only.with(Endpoint::Messages);
        assert_eq!(route(Endpoint::Completions, both), Some(Endpoint::Messages));
        let node = served_as(Endpoint::NodeChat);
        assert_eq!(node, Endpoints::only(CHAT).with(Endpoint::Messages).with(Endpoint::Responses));
        assert!(answer(Endpoint::Messages, Endpoint::Responses, &context(), b"{}").is_some());
    }

    #[test]
    fn a_refusal_names_what_the_client_wrote() {
        use Endpoint::{Completions, Messages, Responses};
        let picture = r#"{"type":"input_image","image_url":"data:image/png,x"}"#;
        let said = r#"{"type":"function_call_output","output":"x"},{"type":"message","role":"user","content":"#;
        let items = format!(r#"{{"model":"m","instructions":"x","input":[{said}[{picture}]}}]}}"#);
        let text = |from: &str| format!(r#"{{"model":"m",{from}}}"#);
        let message = r#""messages":[{"role":"user","content":"x"}]"#;
        for (from, to, body, param) in [
            (
                Messages,
                Responses,
                text(&format!(r#""stop_sequences":["x"],{message}"#)),
                "stop_sequences",
            ),
            (Responses, Messages, items, "input[1].content"),
            (
                Responses,
                Messages,
                text(r#""input":"x","text":{"format":{"type":"json_object"}}"#),
                "text.format",
            ),
            (Completions, Responses, text(r#""prompt":"x","stop":"y""#), "stop"),
            (Completions, Messages, text(r#""prompt":" ""#), "prompt"),
            (Messages, Responses, text(r#""messages":7"#), "messages"),
        ] {
            let refused = request(from, to, body.as_bytes(), &context()).unwrap_err();
            assert_eq!(refused.param.as_deref(), Some(param), "{body}");
            assert!(refused.message.contains(&format!("`{param}")), "{refused}");
        }
    }

    #[test]
    fn every_shape_that_generates_reaches_an_ollama() {
        let body = br#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#;
        let sent = ollama_request(Endpoint::Messages, body, &context(), 9).unwrap();
        let sent: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(
            (&sent["options"]["num_ctx"], &sent["options"]["num_predict"]),
            (&9.into(), &5.into())
        );
        let mut map = ollama_answer(Endpoint::Messages, &context(), body);
        map.head(200, Body::Json);
        let mut out = Vec::new();
        map.feed(br#"{"message":{"content":"hi"},"done":true,"eval_count":1}"#, &mut out).unwrap();
        map.end(&mut out).unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            (&answer["type"], &answer["content"][0]["text"]),
            (&"message".into(), &"hi".into())
        );
        let picture = br#"{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y"}}]}]}"#;
        let refused = ollama_request(Endpoint::Messages, picture, &context(), 9).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("messages[0].content"));
    }

    #[test]
    fn where_no_way_leads_is_said() {
        let error = request(CHAT, Endpoint::Embeddings, b"{}", &context()).unwrap_err();
        assert_eq!(error.message, "/v1/chat/completions cannot be served as /v1/embeddings");
        assert!(answer(CHAT, Endpoint::Embeddings, &context(), b"{}").is_none());
    }

    fn context() -> Context {
        Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming: false }
    }
}
