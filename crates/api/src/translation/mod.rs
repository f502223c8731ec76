//! A client's request as a provider gets it: where needed in another shape, with another model's name, or with a
//! request for usage added.
//!
//! A provider of the client's own shape gets the client's bytes, with at most two edits spliced in;
//! any other gets the request translated. This is done before the job is submitted, for the
//! provider that will most likely get the job. If the job is assigned to another sort of provider or another model, it
//! is done again at the assignment: for a large request on a thread for blocking work.

mod answer;
mod coding;
mod rest;

use std::sync::{Arc, Mutex, PoisonError};

use access::Moment;
use base::{Endpoint, Endpoints, JobId, ModelName};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{
    anthropic,
    json::mended,
    openai::{self, AskUsage, Edit, Peek},
};
use scheduler::{AnswerMap, JobRequest, Record, Translator, Untranslatable};
use translate::{self, BadRequest, Context};

use self::{
    answer::{PassedOn, TranslatedAnswer},
    coding::Decoder,
    rest::AnswerRecord,
};
use crate::{blocking::INLINE_LIMIT, uploads::RoomLeft};

/// Makes the providers' requests from one client's request.
pub(crate) struct Translation {
    endpoint: Endpoint,
    origin: Origin,
    peek: Peek,
    /// Says whether there is memory to keep the requests of answers that have begun.
    room: RoomLeft,
    /// The last request that was made, until a provider gets it.
    made: Mutex<Option<ProviderRequest>>,
}

/// The facts about the request that is translated.
pub(crate) struct Origin {
    pub(crate) job: JobId,
    /// When the job was accepted.
    pub(crate) accepted: Moment,
    /// The model by the name that the client used.
    pub(crate) model: ModelName,
    /// Whether the client asked for a stream.
    pub(crate) streaming: bool,
}

impl Origin {
    fn context(&self) -> Context {
        Context {
            id: self.job.digits(),
            created: self.accepted.seconds(),
            model: self.model.to_string(),
            streaming: self.streaming,
        }
    }
}

/// The request for a provider at one endpoint and for one model.
struct ProviderRequest {
    model: ModelName,
    to: Endpoint,
    /// `None`: the client's request as it is.
    request: Option<Arc<JobRequest>>,
    answer: Option<Box<dyn AnswerMap>>,
}

impl Translation {
    /// The translation of a request of shape `endpoint`. `peek`: the fields of its body that routing needs.
    pub(crate) fn new(endpoint: Endpoint, origin: Origin, peek: Peek, room: RoomLeft) -> Self {
        Self { endpoint, origin, peek, room, made: Mutex::default() }
    }

    /// Prepares the request for a provider that serves these endpoints and this model. Returns its body, if that
    /// differs from the client's.
    ///
    /// # Errors
    /// [`BadRequest`] when the request has no form in any shape that these endpoints have.
    pub(crate) fn prepare(
        &self,
        request: &JobRequest,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<Option<Bytes>, BadRequest> {
        let Some(to) = translate::route(self.endpoint, endpoints) else { return Ok(None) };
        let made = self.make(request, model, to)?;
        let body = made.request.as_ref().map(|request| request.body.clone());
        self.keep(Some(made));
        Ok(body)
    }

    /// Drops the prepared request. Called once the answer has begun, when the job will not move any more, or not soon.
    pub(crate) fn forget(&self) {
        self.keep(None);
    }

    fn keep(&self, made: Option<ProviderRequest>) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = made;
    }

    fn take_or_make(
        &self,
        request: &JobRequest,
        model: &ModelName,
        to: Endpoint,
    ) -> Result<ProviderRequest, BadRequest> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        match made.filter(|made| made.is_for(model, to)) {
            Some(made) => Ok(made),
            None => self.make(request, model, to),
        }
    }

    fn make(
        &self,
        request: &JobRequest,
        model: &ModelName,
        to: Endpoint,
    ) -> Result<ProviderRequest, BadRequest> {
        if to == self.endpoint {
            Ok(self.edited(request, model))
        } else {
            self.translated(request, model, to)
        }
    }

    /// The client's own body, unchanged or with the necessary edits.
    fn edited(&self, request: &JobRequest, model: &ModelName) -> ProviderRequest {
        let to = self.endpoint;
        let Edits { edits, asks_usage } = edits(&request.body, &self.peek, model, to);
        let passed = PassedOn::new(to, self.origin.job, asks_usage);
        let answer = Some(Box::new(passed) as Box<dyn AnswerMap>);
        let unchanged = ProviderRequest { model: model.clone(), to, request: None, answer };
        if edits.is_empty() {
            return unchanged;
        }
        let body = openai::splice(&request.body, edits);
        let edited = JobRequest { model: model.clone(), body, ..request.clone() };
        ProviderRequest { request: Some(Arc::new(edited)), ..unchanged }
    }

    fn translated(
        &self,
        request: &JobRequest,
        model: &ModelName,
        to: Endpoint,
    ) -> Result<ProviderRequest, BadRequest> {
        let context = self.origin.context();
        let (given, body) = self.translated_body(&request.body, to, &context)?;
        let peek = openai::peek(&body).map_err(|bad| BadRequest {
            param: bad.param().map(str::to_owned),
            message: format!("in {to}, as which it would be served: {bad}"),
        })?;
        let body = openai::splice(&body, edits(&body, &peek, model, to).edits);
        let translated = JobRequest {
            method: request.method.clone(),
            path_and_query: to.path().to_owned(),
            model: model.clone(),
            streaming: peek.stream,
            headers: for_another_shape(request.headers.clone(), to),
            body,
        };
        let answer = translate::answer(self.endpoint, to, &context, &given);
        let since = self.origin.accepted.steady;
        let answer = answer
            .map(|map| TranslatedAnswer::new(map, since))
            .map(|map| Box::new(Decoder::new(map)) as Box<dyn AnswerMap>);
        Ok(ProviderRequest {
            model: model.clone(),
            to,
            request: Some(Arc::new(translated)),
            answer,
        })
    }
}

impl Translation {
    /// The client's body as it was read, and its translation. A body that strict readers refuse is
    /// mended before it is read.
    fn translated_body(
        &self,
        given: &Bytes,
        to: Endpoint,
        context: &Context,
    ) -> Result<(Bytes, Bytes), BadRequest> {
        let translate = |body: &[u8]| translate::request(self.endpoint, to, body, context);
        match translate(given) {
            Ok(body) => Ok((given.clone(), body.into())),
            Err(bad) => {
                let Some(mended) = mended(given) else { return Err(bad) };
                let body = translate(mended.as_bytes())?;
                Ok((mended.into(), body.into()))
            }
        }
    }
}

impl ProviderRequest {
    fn is_for(&self, model: &ModelName, to: Endpoint) -> bool {
        self.to == to && self.model == *model
    }
}

impl Translator for Translation {
    fn is_quick(&self, request: &JobRequest, model: &ModelName, endpoints: Endpoints) -> bool {
        let ready = |to| {
            let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.as_ref().is_some_and(|made| made.is_for(model, to))
        };
        let small = request.body.len() <= INLINE_LIMIT;
        small || translate::route(self.endpoint, endpoints).is_none_or(ready)
    }

    fn translate(
        &self,
        request: &Arc<JobRequest>,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<scheduler::ProviderRequest, Untranslatable> {
        let to = translate::route(self.endpoint, endpoints).ok_or_else(|| {
            Untranslatable(format!("{} cannot be served by this provider", self.endpoint))
        })?;
        let made = self.take_or_make(request, model, to);
        let ProviderRequest { request: made, answer, .. } =
            made.map_err(|bad| Untranslatable(bad.message))?;
        let request = made.unwrap_or_else(|| Arc::clone(request));
        Ok(scheduler::ProviderRequest { request, endpoint: to, answer })
    }

    fn record(&self, _: &JobRequest, endpoint: Endpoint) -> Option<Box<dyn Record>> {
        let is_recorded = self.origin.streaming && self.room.is_ample();
        let record = is_recorded.then(|| AnswerRecord::new(endpoint, self.origin.context()));
        Some(Box::new(record??))
    }
}

/// The changes to a body before it is sent to the provider.
struct Edits {
    edits: Vec<Edit>,
    /// Whether an edit asks for usage, for which the client did not ask.
    asks_usage: bool,
}

fn edits(body: &[u8], peek: &Peek, model: &ModelName, to: Endpoint) -> Edits {
    let mut edits = Vec::new();
    if peek.model != model.as_str() {
        edits.push(model_edit(peek, model));
    }
    // Providers report usage in the other shapes without being asked.
    let can_ask = matches!(to, Endpoint::ChatCompletions | Endpoint::Completions) && peek.stream;
    let mut asks_usage = false;
    if can_ask
        && let AskUsage::Edit(edit) = openai::ask_usage(body, peek.stream_options_span.clone())
    {
        edits.push(edit);
        asks_usage = true;
    }
    Edits { edits, asks_usage }
}

/// The edit that puts a model's name in the place of the client's.
fn model_edit(peek: &Peek, model: &ModelName) -> Edit {
    match peek.in_form {
        true => Edit { span: peek.model_span.clone(), text: model.to_string() },
        false => openai::model_edit(peek.model_span.clone(), model.as_str()),
    }
}

/// The client's headers without those that only its own API understands, and with those that the
/// provider's demands.
fn for_another_shape(mut headers: HeaderMap, to: Endpoint) -> HeaderMap {
    const PREFIXES: [&str; 4] = ["anthropic-", "openai-", "x-stainless-", "x-goog-"];
    let foreign = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let dropped: Vec<_> = headers.keys().filter(|name| foreign(name.as_str())).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
    headers.remove(header::ACCEPT);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The answer is read on its way back, so it must not be compressed. Without this header any coding would be
    // allowed.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if to == Endpoint::Messages {
        let name = HeaderName::from_static(anthropic::VERSION_HEADER);
        headers.insert(name, HeaderValue::from_static(anthropic::VERSION));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uploads::Uploads;

    const CHAT: Endpoints = Endpoints::only(Endpoint::ChatCompletions);

    fn request() -> (Translation, Arc<JobRequest>) {
        let body = Bytes::from_static(
            br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#,
        );
        let peek = openai::peek(&body).unwrap();
        let origin = Origin {
            job: JobId::from_random(0),
            accepted: Moment::now(),
            model: "m".into(),
            streaming: peek.stream,
        };
        let request = JobRequest {
            method: http::Method::POST,
            path_and_query: "/v1/messages".to_owned(),
            model: "m".into(),
            streaming: peek.stream,
            headers: HeaderMap::new(),
            body,
        };
        let room = Uploads::new(1024).room_left();
        (Translation::new(Endpoint::Messages, origin, peek, room), Arc::new(request))
    }

    #[test]
    fn a_prepared_body_is_sent_and_made_again_for_other_providers() {
        let (translation, request) = request();
        let ready = translation.prepare(&request, &"m".into(), CHAT).unwrap().unwrap();
        let sent = |model: &str| {
            let translated = translation.translate(&request, &model.into(), CHAT);
            translated.map(|translated| translated.request.body.clone()).unwrap()
        };
        assert_eq!(sent("m").as_ptr(), ready.as_ptr());
        let second = sent("m");
        assert!(second == ready && second.as_ptr() != ready.as_ptr(), "it was given away");
        assert_eq!(openai::peek(&sent("other")).unwrap().model, "other");
    }

    #[test]
    fn a_body_prepared_for_another_model_is_not_sent() {
        let (translation, request) = request();
        translation.prepare(&request, &"other".into(), CHAT).unwrap();
        let translated = translation.translate(&request, &"m".into(), CHAT).unwrap();
        assert_eq!(openai::peek(&translated.request.body).unwrap().model, "m");
        let native = Endpoints::only(Endpoint::Messages);
        let unchanged = translation.translate(&request, &"m".into(), native).unwrap();
        assert!(Arc::ptr_eq(&unchanged.request, &request));
    }

    #[test]
    fn only_a_large_body_that_was_not_made_ready_takes_its_time() {
        let (translation, request) = request();
        let body = Bytes::from(vec![b' '; INLINE_LIMIT + 1]);
        let large = JobRequest { body, ..(*request).clone() };
        let quick = |request, model: &str| translation.is_quick(request, &model.into(), CHAT);
        assert!(quick(&request, "m") && !quick(&large, "m"));
        translation.prepare(&request, &"m".into(), CHAT).unwrap();
        assert!(quick(&large, "m") && !quick(&large, "other"));
        let nowhere = Endpoints::only(Endpoint::Embeddings);
        assert!(translation.is_quick(&large, &"m".into(), nowhere), "it is refused");
    }

    #[test]
    fn a_translated_request_has_the_headers_of_the_other_api() {
        let own = [
            ("anthropic-beta", "x"),
            ("openai-beta", "x"),
            ("x-goog-api-client", "x"),
            ("accept", "x"),
            ("x-mine", "1"),
        ];
        let own = own
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        for to in [Endpoint::Messages, Endpoint::ChatCompletions, Endpoint::Responses] {
            let sent = for_another_shape(own.clone().into_iter().collect(), to);
            let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
            names.retain(|name| *name != "anthropic-version");
            names.sort_unstable();
            assert_eq!(names, ["accept-encoding", "content-type", "x-mine"]);
            assert_eq!(sent["accept-encoding"], "identity");
            let version = sent.get("anthropic-version").map(HeaderValue::as_bytes);
            assert_eq!(version, (to == Endpoint::Messages).then_some(&b"2023-06-01"[..]));
        }
    }

    #[test]
    fn a_body_that_strict_readers_refuse_is_translated_mended() {
        let (translation, request) = request();
        let body = r#"{"model":"m","max_tokens":9,"max_tokens":1,"messages":[{"role":"user","role":"user","content":"a\ud83cb"}]}"#;
        let odd = JobRequest { body: Bytes::from(body), ..(*request).clone() };
        let made = translation.prepare(&odd, &"m".into(), CHAT).unwrap().unwrap();
        let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
        assert_eq!(made["messages"][0]["content"], "a\u{fffd}b");
        assert_eq!(made["max_tokens"], 1);
    }

    #[tokio::test]
    async fn an_answer_is_recorded_only_while_there_is_memory_for_its_request() {
        let uploads = Uploads::new(4 * 1024);
        let (translation, request) = request();
        let origin = Origin { streaming: true, ..translation.origin };
        let room = uploads.room_left();
        let translation = Translation::new(Endpoint::Messages, origin, translation.peek, room);
        let is_recorded = |at| translation.record(&request, at).is_some();
        assert!(is_recorded(Endpoint::Messages) && is_recorded(Endpoint::ChatCompletions));
        assert!(!is_recorded(Endpoint::Embeddings), "nobody goes on with these");
        let mut other = uploads.hold();
        other.grow(3 * 1024).await.unwrap();
        assert!(!is_recorded(Endpoint::Messages));
    }

    #[test]
    fn nothing_is_kept_once_the_answer_has_begun() {
        let (translation, request) = request();
        translation.prepare(&request, &"m".into(), CHAT).unwrap();
        translation.forget();
        assert!(translation.made.lock().unwrap().is_none());
    }

    #[test]
    fn a_field_without_a_counterpart_is_reported() {
        let (translation, request) = request();
        let embeddings = Endpoints::only(Endpoint::Embeddings);
        assert!(translation.translate(&request, &"m".into(), embeddings).is_err());
        assert_eq!(translation.prepare(&request, &"m".into(), embeddings), Ok(None));
    }
}
