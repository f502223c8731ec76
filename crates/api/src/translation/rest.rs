//! Answers with which another provider goes on: the record of what was delivered, and the next provider's request.

use std::sync::Arc;

use base::{Continuation, Endpoint, Endpoints};
use bytes::Bytes;
use scheduler::{
    Delivered as Passed, Head, JobRequest, NextRequest, NoRequest, Record, Rest, Unreadable,
};
use translate::{
    Answer, BadAnswer, Body, Context,
    continuation::{self, CannotContinue, Delivered, Seam},
};

use super::for_another_shape;

/// The record of what was delivered of an answer that began at `endpoint`.
pub(super) struct AnswerRecord {
    endpoint: Endpoint,
    context: Context,
    state: State,
}

enum State {
    /// The first provider still has the answer.
    First(Box<Delivered>),
    /// Another provider goes on with it.
    Rest(Box<NextAnswer>),
}

/// The answer of a provider that goes on.
struct NextAnswer {
    /// The translation of its answer, if that is in another shape than the client's.
    translated: Option<Box<dyn Answer>>,
    seam: Seam,
    /// The output of the translation, before it comes to the seam; empty between calls.
    between: Vec<u8>,
}

impl AnswerRecord {
    /// An empty record; `None` if no provider can go on with answers of this endpoint.
    pub(super) fn new(endpoint: Endpoint, context: Context) -> Option<Self> {
        Some(Self { endpoint, context, state: State::First(Box::new(Delivered::new(endpoint)?)) })
    }

    fn delivered(&mut self) -> &mut Delivered {
        match &mut self.state {
            State::First(delivered) => delivered,
            State::Rest(next) => next.seam.delivered(),
        }
    }

    /// The endpoint at which a provider that has `endpoints` goes on in this way: the one where the answer began, if
    /// it can go on there.
    fn next_endpoint(&self, endpoints: Endpoints, how: Continuation) -> Option<Endpoint> {
        let all = [self.endpoint, Endpoint::ChatCompletions, Endpoint::Messages];
        all.into_iter().find(|to| {
            let served = endpoints.contains(*to) && self.serve_as().contains(*to);
            served && continuation::endpoint(*to, how) == *to
        })
    }

    fn made(
        &mut self,
        request: &JobRequest,
        to: Endpoint,
        how: Continuation,
    ) -> Result<Vec<u8>, NoRequest> {
        let (from, context) = (self.endpoint, self.context.clone());
        let delivered = self.delivered();
        let body = continuation::translated(from, to, &request.body, delivered, how, &context);
        body.map_err(|why| match why {
            CannotContinue::Full => NoRequest::Closing(continuation::closing(delivered).into()),
            why => NoRequest::Refused(why.to_string()),
        })
    }

    /// Prepares for the answer of the next provider, which gets the request at the endpoint `to`.
    fn await_rest(&mut self, to: Endpoint, body: &[u8]) {
        let translated = translate::answer(self.endpoint, to, &self.context, body);
        let seam = Seam::new(self.delivered().clone());
        self.state = State::Rest(Box::new(NextAnswer { translated, seam, between: Vec::new() }));
    }
}

impl Record for AnswerRecord {
    fn serve_as(&self) -> Endpoints {
        let own = Endpoints::only(self.endpoint);
        match self.endpoint {
            Endpoint::Messages | Endpoint::Responses => own.with(Endpoint::ChatCompletions),
            Endpoint::ChatCompletions => own.with(Endpoint::Messages),
            _ => own,
        }
    }

    fn goes_on(&mut self, head: &Head) -> bool {
        let State::Rest(next) = &mut self.state else { return false };
        let is_stream = crate::head::is_event_stream(head);
        if let Some(map) = next.translated.as_mut().filter(|_| is_stream) {
            map.head(head.status.as_u16(), Body::Events);
        }
        is_stream
    }

    fn pass(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        match &mut self.state {
            State::First(delivered) => Ok(delivered.pass(chunk)),
            State::Rest(next) => next.pass(&chunk),
        }
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        match &mut self.state {
            State::First(delivered) => {
                let mut out = Vec::new();
                delivered.end(&mut out);
                Ok(out.into())
            }
            State::Rest(next) => next.end(),
        }
    }

    fn rest(&mut self) -> Rest {
        let delivered = self.delivered();
        match delivered.rest() {
            continuation::Rest::Nothing => Rest::Closing(continuation::closing(delivered).into()),
            continuation::Rest::No(why) => Rest::No(why.to_string()),
            continuation::Rest::Text => {
                let (characters, tokens) = (delivered.characters(), delivered.tokens());
                Rest::Text(Passed { characters, tokens })
            }
        }
    }

    fn copy(&self) -> Box<dyn Record> {
        let delivered = match &self.state {
            State::First(delivered) => delivered.clone(),
            State::Rest(next) => Box::new(next.seam.so_far().clone()),
        };
        let (endpoint, context) = (self.endpoint, self.context.clone());
        Box::new(Self { endpoint, context, state: State::First(delivered) })
    }

    fn request(
        mut self: Box<Self>,
        request: &Arc<JobRequest>,
        endpoints: Endpoints,
        how: Continuation,
    ) -> Result<NextRequest, NoRequest> {
        let none = || NoRequest::Refused(CannotContinue::NotHere.to_string());
        let endpoint = self.next_endpoint(endpoints, how).ok_or_else(none)?;
        let body = Bytes::from(self.made(request, endpoint, how)?);
        self.await_rest(endpoint, &request.body);
        let own = JobRequest { body, ..(**request).clone() };
        let next = if endpoint == self.endpoint { own } else { translated(own, endpoint) };
        Ok(NextRequest { request: Arc::new(next), endpoint, record: self })
    }
}

/// The request with the path and headers of another endpoint.
fn translated(request: JobRequest, to: Endpoint) -> JobRequest {
    JobRequest {
        path_and_query: to.path().to_owned(),
        headers: for_another_shape(request.headers, to),
        ..request
    }
}

impl NextAnswer {
    fn pass(&mut self, chunk: &[u8]) -> Result<Bytes, Unreadable> {
        let Self { translated, seam, between } = self;
        let mut out = Vec::with_capacity(chunk.len());
        let read = match translated {
            None => seam.feed(chunk, &mut out),
            Some(map) => {
                let read = map.feed(chunk, between);
                let fed = seam.feed(between, &mut out);
                between.clear();
                read.and(fed)
            }
        };
        written(out, read)
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        let Self { translated, seam, between } = self;
        let mut out = Vec::new();
        let read = match translated.as_mut().filter(|map| !map.is_over()) {
            None => Ok(()),
            Some(map) => {
                let read = map.end(between);
                let fed = seam.feed(between, &mut out);
                between.clear();
                read.and(fed)
            }
        };
        let read = match read {
            Ok(()) if !seam.is_over() => seam.end(&mut out),
            read => read,
        };
        written(out, read)
    }
}

fn written(out: Vec<u8>, read: Result<(), BadAnswer>) -> Result<Bytes, Unreadable> {
    match read {
        Ok(()) => Ok(out.into()),
        Err(BadAnswer(why)) => Err(Unreadable { before: out.into(), why }),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

    use super::*;

    fn request(path: &str, body: &str) -> Arc<JobRequest> {
        Arc::new(JobRequest {
            method: Method::POST,
            path_and_query: path.to_owned(),
            model: "m".into(),
            streaming: true,
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        })
    }

    fn record(endpoint: Endpoint) -> Box<AnswerRecord> {
        let context =
            Context { id: "1".to_owned(), created: 1, model: "m".to_owned(), streaming: true };
        Box::new(AnswerRecord::new(endpoint, context).unwrap())
    }

    fn stream() -> Head {
        let kind = HeaderValue::from_static("text/event-stream");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
        Head { status: StatusCode::OK, headers }
    }

    const CHAT: Endpoints = Endpoints::only(Endpoint::ChatCompletions);

    fn delta(id: &str, text: &str) -> String {
        format!(
            "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        )
    }

    #[test]
    fn a_chat_goes_on_in_its_own_shape_as_one_answer() {
        let mut first = record(Endpoint::ChatCompletions);
        let begun = delta("a", "one ");
        let half = &delta("a", "lost")[..20];
        let passed = first.pass(Bytes::from(format!("{begun}{half}"))).unwrap();
        assert_eq!(passed, begun, "half an event is held back");
        let delivered = Passed { characters: 4, tokens: 1 };
        assert_eq!(first.rest(), Rest::Text(delivered));
        let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"count"}]}"#;
        let sent = request("/v1/chat/completions", body);
        let next = first.copy().request(&sent, CHAT, Continuation::LastMessage).ok().unwrap();
        let body = std::str::from_utf8(&next.request.body).unwrap();
        assert!(body.contains("one ") && body.contains("assistant"), "{body}");
        let mut rest = next.record;
        assert!(rest.goes_on(&stream()));
        let passed = rest.pass(delta("b", "two").into()).unwrap();
        let passed = std::str::from_utf8(&passed).unwrap();
        assert!(passed.contains("two") && passed.contains(r#""id":"a""#), "{passed}");
        assert!(matches!(rest.rest(), Rest::Text(Passed { characters: 7, .. })));
    }

    #[test]
    fn messages_go_on_as_chat_where_that_is_how_a_provider_continues() {
        let mut first = record(Endpoint::Messages);
        let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\
            \"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\
            \"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n\
            event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
            \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
            event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
            \"delta\":{\"type\":\"text_delta\",\"text\":\"one \"}}\n\n";
        first.pass(start.into()).unwrap();
        let body = r#"{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"count"}]}"#;
        let sent = request("/v1/messages", body);
        let both = CHAT.with(Endpoint::Messages);
        let next = first.copy().request(&sent, both, Continuation::FinalMessage).ok().unwrap();
        assert_eq!(next.endpoint, Endpoint::ChatCompletions);
        assert_eq!(next.request.path_and_query, "/v1/chat/completions");
        let body = std::str::from_utf8(&next.request.body).unwrap();
        assert!(body.contains(r#""continue_final_message":true"#), "{body}");
        let mut rest = next.record;
        assert!(rest.goes_on(&stream()));
        let passed = rest.pass(delta("b", "two").into()).unwrap();
        let passed = std::str::from_utf8(&passed).unwrap();
        assert!(passed.contains("text_delta") && passed.contains("two"), "{passed}");
        assert!(!passed.contains("message_start"), "{passed}");
    }

    #[test]
    fn structured_answers_are_not_gone_on_with() {
        let mut first = record(Endpoint::ChatCompletions);
        first.pass(delta("a", "one ").into()).unwrap();
        let body =
            r#"{"model":"m","stream":true,"response_format":{"type":"json_object"},"messages":[]}"#;
        let sent = request("/v1/chat/completions", body);
        let none = first.copy().request(&sent, CHAT, Continuation::LastMessage).err().unwrap();
        assert!(
            matches!(&none, NoRequest::Refused(why) if why.contains("response_format")),
            "{none:?}"
        );
    }
}
