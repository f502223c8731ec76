//! The endpoints that a provider's backend serves: announced by the provider, or learned from its
//! answers.
//!
//! Stock workers announce nothing, and stock participants little. Such a provider is assumed to
//! serve an endpoint until an answer shows that its backend does not have it. An answer that may
//! show this is held back, head included, until that is clear. The job is then served in another
//! shape, and no client sees the answer.
//!
//! A client chooses what is in its request, so one answer about something that is not there proves
//! little: see [`ServedEndpoints::judge`].

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;
use http::{StatusCode, header};
use protocol::{
    endpoint::{Missing, may_be_missing, missing},
    failure::{is_loading, may_be_loading},
};
use scheduler::{Head, JobRequest, Membership};
use tokio::time::Instant;

use crate::incoming::Incoming;

/// The longest body that is held back, in bytes. A longer one is passed on as it is.
pub(crate) const MAX_HELD: usize = 64 * 1024;

/// After this time a missing endpoint is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// How many bytes at each end of a body are compared to tell whether two requests differ.
const SAMPLE: usize = 256;

/// The endpoints of one provider.
#[derive(Debug, Clone)]
pub(crate) struct ServedEndpoints {
    endpoints: Endpoints,
    /// Whether some endpoints are assumed rather than announced.
    assumed: bool,
    /// The endpoints that have answered a request.
    proven: Endpoints,
    /// The endpoints that are taken to be missing, and since when. One entry for each at most.
    missing: Vec<(Endpoint, Instant)>,
    /// The answers that may mean that an endpoint is missing: the last for each.
    doubts: Vec<Doubt>,
}

/// An answer that may mean that an endpoint is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubt {
    endpoint: Endpoint,
    request: u64,
    answer: u64,
}

/// The treatment of a complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Its endpoint is missing from now on: serve the job in another shape.
    Missing,
    /// The backend does not have the path, but such jobs have no other endpoint here: ask another
    /// provider, if there is one.
    Elsewhere,
    /// Pass it on as it is.
    Answer,
}

impl ServedEndpoints {
    /// The endpoints that a registration announces.
    pub(crate) fn new(announced: Option<Endpoints>) -> Self {
        match announced {
            Some(endpoints) => Self { assumed: false, ..Self::assumed(endpoints) },
            None => Self::assumed(Endpoints::ASSUMED),
        }
    }

    /// The endpoints that are assumed until answers show otherwise.
    pub(crate) fn assumed(endpoints: Endpoints) -> Self {
        let (missing, doubts) = (Vec::new(), Vec::new());
        Self { endpoints, assumed: true, proven: Endpoints::NONE, missing, doubts }
    }

    /// The endpoints that it is assumed to serve now.
    pub(crate) fn endpoints(&self) -> Endpoints {
        self.missing.iter().fold(self.endpoints, |all, (endpoint, _)| all.without(*endpoint))
    }

    /// Whether answers may be held back to learn from them.
    pub(crate) fn learns(&self) -> bool {
        self.assumed
    }

    /// Records that the provider has announced itself again, with its endpoints or without: its
    /// backend may be another one, so all that was learnt is forgotten. Returns whether that changes
    /// its endpoints.
    pub(crate) fn announce(&mut self, endpoints: Option<Endpoints>) -> bool {
        let before = self.endpoints();
        *self = match endpoints {
            Some(_) => Self::new(endpoints),
            None if self.assumed => Self::assumed(self.endpoints),
            None => return false,
        };
        self.endpoints() != before
    }

    /// When the next missing endpoint is tried again.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.missing.iter().map(|(_, since)| *since + RETRY).min()
    }

    /// Assumes again that endpoints are served which were found missing [`RETRY`] ago. Returns
    /// whether there were any.
    pub(crate) fn retry(&mut self, now: Instant) -> bool {
        let before = self.missing.len();
        self.missing.retain(|(_, since)| *since + RETRY > now);
        self.missing.len() < before
    }

    /// Judges a complete answer; `body` is its body if it was held back. An endpoint counts as
    /// missing in two cases: if an answer surely says so, or if two different requests got the same
    /// answer that may say so and the endpoint has never answered one. It is not marked as missing if
    /// such jobs have no other endpoint here.
    pub(crate) fn judge(
        &mut self,
        shape: &RequestShape,
        status: StatusCode,
        body: Option<&[u8]>,
        now: Instant,
    ) -> Judgement {
        let endpoint = shape.endpoint;
        let missing =
            body.filter(|_| self.assumed).map(|body| shape.missing(status.as_u16(), body));
        let sure = match (missing, body) {
            (Some(Missing::Surely), _) => true,
            (Some(Missing::Perhaps), Some(body)) => self.doubts_twice(shape, body),
            _ => false,
        };
        if !sure {
            // An error about the content of a request shows that it was read.
            if status.is_success() || matches!(status.as_u16(), 400 | 422) {
                self.proven = self.proven.with(endpoint);
            }
            return Judgement::Answer;
        }
        if !shape.alternatives.meets(self.endpoints().without(endpoint)) {
            return Judgement::Elsewhere;
        }
        self.doubts.retain(|doubt| doubt.endpoint != endpoint);
        self.missing.retain(|(other, _)| *other != endpoint);
        self.missing.push((endpoint, now));
        Judgement::Missing
    }

    /// Ends a complete answer that came through [`Incoming`]. `provider` names the provider in the
    /// log.
    pub(crate) fn end(
        &mut self,
        membership: &Membership,
        incoming: Incoming,
        provider: &'static str,
    ) {
        let Some(status) = incoming.status() else { return incoming.end() };
        if incoming.held_body().is_some_and(|body| is_loading(status.as_u16(), body)) {
            return incoming.writer.unready(true);
        }
        match self.judge(&incoming.shape, status, incoming.held_body(), Instant::now()) {
            Judgement::Missing => self.unserved(membership, incoming, provider),
            Judgement::Elsewhere => {
                if let Some(incoming) = incoming.pass_on() {
                    incoming.end();
                }
            }
            Judgement::Answer => incoming.end(),
        }
    }

    /// Makes the scheduler serve a job in another shape, after [`Judgement::Missing`].
    pub(crate) fn unserved(
        &self,
        membership: &Membership,
        incoming: Incoming,
        provider: &'static str,
    ) {
        let endpoint = incoming.shape.endpoint;
        tracing::info!(%endpoint, "the {provider}'s backend does not serve this: translating");
        membership.endpoints(self.endpoints());
        incoming.writer.unserved();
    }

    /// Notes an answer that may mean that the endpoint is missing. Returns whether a different
    /// request got the same answer just before, and the endpoint is not proven.
    fn doubts_twice(&mut self, shape: &RequestShape, body: &[u8]) -> bool {
        let RequestShape { endpoint, request, .. } = *shape;
        let doubt = Doubt { endpoint, request, answer: hashed(&body) };
        let is_second = self.doubts.iter().any(|before| {
            (before.endpoint, before.answer) == (endpoint, doubt.answer)
                && before.request != request
        });
        self.doubts.retain(|before| before.endpoint != endpoint);
        self.doubts.push(doubt);
        is_second && !self.proven.contains(endpoint)
    }
}

/// The parts of a request that are needed to judge its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestShape {
    pub(crate) endpoint: Endpoint,
    /// The other endpoints that the job can be served at.
    alternatives: Endpoints,
    /// The model, by the provider's name for it.
    model: ModelName,
    /// A hash that distinguishes it from other requests.
    request: u64,
}

impl RequestShape {
    pub(crate) fn new(endpoint: Endpoint, alternatives: Endpoints, request: &JobRequest) -> Self {
        let body = &*request.body;
        let (first, last) = (body.len().min(SAMPLE), body.len().saturating_sub(SAMPLE));
        let request_hash = hashed(&(body.len(), &body[..first], &body[last..]));
        let model = request.model.clone();
        Self { endpoint, alternatives, model, request: request_hash }
    }

    /// Whether a complete answer says that the endpoint does not exist.
    fn missing(&self, status: u16, body: &[u8]) -> Missing {
        match body.len() {
            ..=MAX_HELD => missing(status, body, self.endpoint.path(), self.model.as_str()),
            _ => Missing::No,
        }
    }
}

fn hashed(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// An answer that is held back.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    head: Head,
    /// Whether it may say that the backend loads its model.
    loading: bool,
    body: Vec<u8>,
}

impl HeldAnswer {
    /// Holds an answer back, unless its head alone shows that it is a good one: then returns the
    /// head.
    pub(crate) fn of(head: Head) -> Result<Self, Head> {
        let status = head.status.as_u16();
        let loading = may_be_loading(status, announced_length(&head));
        let plain_refusal = matches!(status, 404 | 405 | 501) || loading;
        if plain_refusal || (is_json(&head) && may_be_missing(head.status.as_u16(), b"")) {
            Ok(Self { head, loading, body: Vec::new() })
        } else {
            Err(head)
        }
    }

    /// Takes more of the body. Returns whether it must still be held back.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> bool {
        self.body.extend_from_slice(bytes);
        let status = self.head.status.as_u16();
        let unclear = may_be_missing(status, &self.body) || self.loading;
        self.body.len() <= MAX_HELD && unclear
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The answer so far.
    pub(crate) fn release(self) -> (Head, Bytes) {
        (self.head, self.body.into())
    }
}

/// The length of the body, if the head announces it.
pub(crate) fn announced_length(head: &Head) -> Option<u64> {
    head.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_json(head: &Head) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("application/json"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn head(status: u16, kind: &'static str) -> Head {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let status = StatusCode::from_u16(status).unwrap();
        Head { status, headers: HeaderMap::from_iter([kind]) }
    }

    const MESSAGES: Endpoint = Endpoint::Messages;
    const CHAT: Endpoint = Endpoint::ChatCompletions;
    const NO_PATH: &str = "404 page not found";
    const NO_IMAGE: &str = r#"{"error":"image not found"}"#;

    fn request(body: &'static str) -> JobRequest {
        JobRequest {
            method: http::Method::POST,
            path_and_query: String::new(),
            model: "m".into(),
            streaming: false,
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    /// A request to this endpoint that can also be served at the other one of chats.
    fn to(endpoint: Endpoint, body: &'static str) -> RequestShape {
        let chats = Endpoints::only(MESSAGES).with(CHAT);
        RequestShape::new(endpoint, chats.without(endpoint), &request(body))
    }

    fn judge(
        served: &mut ServedEndpoints,
        shape: &RequestShape,
        status: u16,
        body: &str,
    ) -> Judgement {
        let status = StatusCode::from_u16(status).unwrap();
        served.judge(shape, status, Some(body.as_bytes()), Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_path_that_is_missing_for_sure_is_missing_for_a_minute() {
        let mut served = ServedEndpoints::new(None);
        assert_eq!(served.endpoints(), Endpoints::ASSUMED);
        assert_eq!(judge(&mut served, &to(MESSAGES, "a"), 404, NO_PATH), Judgement::Missing);
        assert_eq!(served.endpoints(), Endpoints::ASSUMED.without(MESSAGES));
        let retry = served.next_retry().unwrap();
        assert_eq!(retry, Instant::now() + Duration::from_secs(60));
        assert!(!served.retry(retry - Duration::from_millis(1)) && served.retry(retry));
        assert_eq!((served.endpoints(), served.next_retry()), (Endpoints::ASSUMED, None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_endpoint_for_a_job_stays() {
        let mut served = ServedEndpoints::new(None);
        assert_eq!(judge(&mut served, &to(MESSAGES, "a"), 404, NO_PATH), Judgement::Missing);
        for _ in 0..3 {
            assert_eq!(judge(&mut served, &to(CHAT, "a"), 404, NO_PATH), Judgement::Elsewhere);
        }
        let alone = RequestShape::new(Endpoint::Embeddings, Endpoints::NONE, &request("a"));
        assert_eq!(judge(&mut served, &alone, 404, NO_PATH), Judgement::Elsewhere);
        assert_eq!(served.endpoints(), Endpoints::ASSUMED.without(MESSAGES));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unclear_answer_counts_from_the_second_request_on() {
        let mut served = ServedEndpoints::new(None);
        for (body, answer) in [("a", NO_IMAGE), ("a", NO_IMAGE), ("b", "no tool"), ("b", NO_IMAGE)]
        {
            let judged = judge(&mut served, &to(MESSAGES, body), 404, answer);
            assert_eq!(judged, Judgement::Answer, "{body} {answer}");
        }
        assert_eq!(judge(&mut served, &to(CHAT, "c"), 404, NO_IMAGE), Judgement::Answer);
        assert_eq!(judge(&mut served, &to(MESSAGES, "c"), 404, NO_IMAGE), Judgement::Missing);
        assert_eq!(served.endpoints(), Endpoints::ASSUMED.without(MESSAGES));
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_has_answered_is_missing_only_for_sure() {
        for status in [200, 400, 422] {
            let mut served = ServedEndpoints::new(None);
            let answered = StatusCode::from_u16(status).unwrap();
            served.judge(&to(MESSAGES, "a"), answered, None, Instant::now());
            for body in ["b", "c", "d"] {
                let judged = judge(&mut served, &to(MESSAGES, body), 404, NO_IMAGE);
                assert_eq!(judged, Judgement::Answer, "{status} {body}");
            }
            assert_eq!(judge(&mut served, &to(MESSAGES, "e"), 404, NO_PATH), Judgement::Missing);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_announcement_begins_anew() {
        let mut served = ServedEndpoints::new(None);
        judge(&mut served, &to(MESSAGES, "a"), 404, NO_PATH);
        assert!(served.announce(None) && !served.announce(None));
        assert_eq!(served.endpoints(), Endpoints::ASSUMED);
        assert!(served.announce(Some(Endpoints::only(MESSAGES))) && !served.learns());
        assert_eq!(judge(&mut served, &to(MESSAGES, "a"), 404, NO_PATH), Judgement::Answer);
        assert!(!served.announce(None));
        assert!(!ServedEndpoints::new(Some(Endpoints::NONE)).learns());
    }

    #[test]
    fn requests_are_told_apart_by_their_length_and_their_ends() {
        let shape = |body| to(CHAT, body).request;
        assert_eq!(shape("a"), shape("a"));
        assert!(shape("a") != shape("b") && shape("") != shape("a"));
    }

    #[test]
    fn an_answer_that_cannot_mean_a_missing_path_is_not_held_back() {
        for (status, kind) in [(404, "text/plain"), (405, ""), (501, ""), (200, "application/json")]
        {
            assert!(HeldAnswer::of(head(status, kind)).is_ok(), "{status} {kind}");
        }
        for (status, kind) in [(200, "text/event-stream"), (502, "application/json"), (200, "")] {
            assert!(HeldAnswer::of(head(status, kind)).is_err(), "{status} {kind}");
        }
    }

    #[test]
    fn a_refusal_that_may_say_that_a_model_loads_is_held_back() {
        for status in [500, 503] {
            assert!(HeldAnswer::of(head(status, "application/json")).is_err(), "it may never end");
            let mut short = head(status, "application/json");
            short.headers.insert(header::CONTENT_LENGTH, 40.into());
            let mut held = HeldAnswer::of(short).unwrap();
            assert!(held.take(b"{\"error\":{\"message\":\"Loading model\"}}"), "{status}");
            assert!(!held.take(&[b'x'; MAX_HELD]), "{status}");
        }
    }

    #[test]
    fn a_body_is_held_back_until_it_is_clear_and_within_its_bound() {
        let mut good = HeldAnswer::of(head(200, "application/json")).unwrap();
        assert!(good.take(b"{") && !good.take(b"\"id\":1}"));
        let (_, body) = good.release();
        assert_eq!(body, "{\"id\":1}");
        let mut long = HeldAnswer::of(head(404, "")).unwrap();
        assert!(long.take(&[b'x'; MAX_HELD]));
        assert_eq!(to(CHAT, "").missing(404, long.body()), Missing::Perhaps);
        assert!(!long.take(b"x"));
        assert_eq!(to(CHAT, "").missing(404, long.body()), Missing::No);
    }

    #[test]
    fn a_missing_model_is_not_a_missing_path() {
        let mut held = HeldAnswer::of(head(404, "application/json")).unwrap();
        assert!(held.take(b"{\"error\":\"'m' not found\"}"));
        assert_eq!(to(CHAT, "").missing(404, held.body()), Missing::No);
    }
}
