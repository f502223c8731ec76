//! Requests that a backend gets in its own API, without the client noticing.
//!
//! Only in its own API can an Ollama be told the length of a context. A server of Text Embeddings Inference ranks
//! only in its own API.

use std::{
    hash::{BuildHasher, RandomState},
    time::SystemTime,
};

use backend::{Answer, AnswerBody, BackendRequest, Change};
use base::Endpoint;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::{anthropic, openai};
use translate::{
    BadRequest, Body, Context, chat_ollama, ollama_answer, ollama_request, rerank_texts,
};

/// The endpoints whose requests are translated to Ollama's own chat API. Legacy completions and embeddings are
/// not: Ollama's own API for them is another one.
const SHAPES: [Endpoint; 3] = [Endpoint::ChatCompletions, Endpoint::Messages, Endpoint::Responses];

/// The way from a backend's answer to the client's.
#[derive(Debug)]
pub(crate) struct Translation {
    endpoint: Endpoint,
    context: Context,
    body: Bytes,
}

/// The endpoint of a request that is translated to Ollama's own API, by its path; `None` for any
/// other request.
pub(crate) fn shape(path: &str) -> Option<Endpoint> {
    let path = path.split('?').next().unwrap_or_default();
    Endpoint::of_path(path).filter(|endpoint| SHAPES.contains(endpoint))
}

/// The request in Ollama's own API, with a context of `num_ctx` tokens, and the translation of its answer.
/// `model`: the client's name for the model.
///
/// # Errors
/// The answer to a request that cannot be carried over.
pub(crate) fn translated(
    endpoint: Endpoint,
    request: BackendRequest,
    model: &str,
    num_ctx: u64,
) -> Result<(BackendRequest, Translation), Box<Answer>> {
    let body = Bytes::from(request.body.concat());
    let context = context(model, &body);
    let sent = ollama_request(endpoint, &body, &context, num_ctx);
    let sent = sent.map_err(|bad| Box::new(refusal(endpoint, &context, &bad)))?;
    let translation = Translation { endpoint, context, body };
    let path_and_query = chat_ollama::PATH.to_owned();
    Ok((BackendRequest { path_and_query, body: vec![sent.into()], ..request }, translation))
}

/// Whether a request is for a ranking, by its path.
pub(crate) fn ranks(path: &str) -> bool {
    Endpoint::of_path(path.split('?').next().unwrap_or_default()) == Some(Endpoint::Rerank)
}

/// The request for a ranking in the API of Text Embeddings Inference, and the translation of its answer. `model`: the
/// client's name for the model.
///
/// # Errors
/// The answer to a request that cannot be carried over.
pub(crate) fn ranked(
    request: BackendRequest,
    model: &str,
) -> Result<(BackendRequest, Translation), Box<Answer>> {
    let (endpoint, body) = (Endpoint::Rerank, Bytes::from(request.body.concat()));
    let context = context(model, &body);
    let sent = rerank_texts::request(&body, &context);
    let sent = sent.map_err(|bad| Box::new(refusal(endpoint, &context, &bad)))?;
    let translation = Translation { endpoint, context, body };
    Ok((BackendRequest { body: vec![sent.into()], ..request }, translation))
}

impl Translation {
    fn map(&self) -> Box<dyn translate::Answer> {
        match self.endpoint {
            Endpoint::Rerank => Box::new(rerank_texts::answer(&self.context, &self.body)),
            endpoint => ollama_answer(endpoint, &self.context, &self.body),
        }
    }

    /// The answer for the client. `backend`: the name in the error if the translation fails.
    pub(crate) fn answer(self, answer: Answer, backend: &str) -> Answer {
        let Answer { status, headers, body } = answer;
        let mut map = self.map();
        let (code, kind) = map.head(status.as_u16(), kind(&headers));
        let status = StatusCode::from_u16(code).unwrap_or(status);
        Answer {
            status,
            headers: headed(headers, kind),
            body: body.changed(Box::new(By(map)), backend),
        }
    }
}

fn kind(headers: &HeaderMap) -> Body {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.is_some_and(|kind| kind.trim_start().starts_with("application/x-ndjson")) {
        true => Body::Lines,
        false => Body::Json,
    }
}

fn headed(mut headers: HeaderMap, kind: Body) -> HeaderMap {
    headers.remove(header::CONTENT_LENGTH);
    let kind = match kind {
        Body::Events => "text/event-stream",
        Body::Json | Body::Array | Body::Lines | Body::NdJson => "application/json",
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers
}

fn context(model: &str, body: &[u8]) -> Context {
    let random = || RandomState::new().hash_one(model);
    let created = base::since_1970(SystemTime::now()).as_secs();
    let streaming = openai::peek(body).is_ok_and(|peek| peek.stream);
    let id = format!("{:016x}{:016x}", random(), random());
    Context { id, created, model: model.to_owned(), streaming }
}

/// The answer of the worker itself to a request that cannot be carried over.
fn refusal(endpoint: Endpoint, context: &Context, bad: &BadRequest) -> Answer {
    let kind = "invalid_request_error";
    let body = match endpoint {
        Endpoint::Messages => anthropic::error_body(kind, &bad.message, &context.id),
        _ => openai::error_body(&bad.message, kind, bad.param.as_deref(), None),
    };
    let headers = headed(HeaderMap::new(), Body::Json);
    Answer { status: StatusCode::BAD_REQUEST, headers, body: AnswerBody::whole(body) }
}

/// A translation as a change of a body.
struct By(Box<dyn translate::Answer>);

impl Change for By {
    fn feed(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        // Bytes after the complete answer are dropped.
        if self.0.is_over() { Ok(()) } else { self.0.feed(piece, out).map_err(|bad| bad.0) }
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.0.end(out).map_err(|bad| bad.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shapes_that_chat_are_ollamas() {
        for path in ["/v1/chat/completions", "/v1/messages?beta=true", "/v1/responses"] {
            assert!(shape(path).is_some(), "{path}");
        }
        for path in ["/v1/completions", "/v1/embeddings", "/v1/messages/count_tokens", "/v1/x"] {
            assert_eq!(shape(path), None, "{path}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_carried_is_refused_in_the_clients_api() {
        for (endpoint, body) in [
            (Endpoint::ChatCompletions, r#"{"model":"m","n":2,"messages":[]}"#),
            (Endpoint::Messages, r#"{"model":"m","messages":7}"#),
        ] {
            let request = BackendRequest { body: vec![body.into()], ..BackendRequest::default() };
            let mut answer = translated(endpoint, request, "m", 9).unwrap_err();
            assert_eq!(answer.status, 400);
            let error = answer.body.next().await.unwrap().unwrap();
            let error: serde_json::Value = serde_json::from_slice(&error).unwrap();
            assert_eq!(error["error"]["type"], "invalid_request_error");
            assert_eq!(error["type"] == "error", endpoint == Endpoint::Messages);
        }
    }
}
