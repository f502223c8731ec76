//! From a request to a job, the same for every API, for the server and for rooms.

use std::sync::Arc;

use access::{Charge, Moment};
use axum::{extract::State, response::Response};
use base::{
    Endpoint, JobId, KeyId, ModelName, NotResumeAnswers, ProviderId, ResumeAnswers,
    trace::RequestTrace,
};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header, request::Parts};
use protocol::{headers::ROUTE, room::selector::RESERVED, usage::AnswerCounter, via::VIA};
use scheduler::{Answer, Job, JobRequest, Meter, NoRoute, Route, Usage};
use translate::{BadRequest, served_as};

use crate::{
    admission::Admission,
    answer::{Accepted, RESUME, answer},
    blocking::{INLINE_LIMIT, off_thread},
    content::{Content, PeekedRequest, wire_size},
    count_tokens,
    early::may_be_early,
    elsewhere::{self, Elsewhere},
    error::{ApiError, Kind},
    head::{self, new_id},
    models::served,
    ollama::without_job::without_job,
    paths, read,
    refuse::refuse,
    request_scope::{RequestScope, Targets},
    responses::{background, plan},
    shape::{self, Shape},
    state::Api,
    trace,
    translation::{Origin, Translation},
    uploads::HeldBody,
};

/// The header by which a consumer names the only provider that may serve it.
const PIN: &str = "x-warren-provider";

/// Handles one request to an API of the server.
pub(crate) async fn consume(
    shape: &'static dyn Shape,
    State(api): State<Api>,
    request: Request<axum::body::Body>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    shape.adapt(&mut parts.headers);
    let scope = RequestScope::of_plain(&api, &parts);
    let (parts, body) = match other_servers(&api, &scope) {
        None => (parts, body),
        // Boxed: most requests are served here.
        Some((elsewhere, key)) => {
            let serving = elsewhere::serve(shape, &api, &*elsewhere, &key, parts, body);
            match Box::pin(serving).await {
                Ok(response) => return response,
                Err(here) => here,
            }
        }
    };
    serve(shape, &api, scope, parts, body).await
}

/// The other servers that may have the model of a request's key.
fn other_servers(
    api: &Api,
    scope: &Result<RequestScope, ApiError>,
) -> Option<(Arc<dyn Elsewhere>, KeyId)> {
    let key = scope.as_ref().ok()?.admitted().key.as_ref()?;
    let elsewhere = api.elsewhere().filter(|elsewhere| elsewhere.is_for(key.id()))?;
    Some((elsewhere, key.id().clone()))
}

/// Handles one request; `scope` says in which room, if in one.
pub(crate) async fn serve(
    shape: &'static dyn Shape,
    api: &Api,
    scope: Result<RequestScope, ApiError>,
    parts: Parts,
    body: axum::body::Body,
) -> Response {
    let (id, held) = (new_id(), api.uploads().hold());
    let mut incoming = Incoming { api, shape, id, parts, body, held };
    let served = match scope {
        Ok(scope) => incoming.serve(scope).await,
        Err(error) => Err(error),
    };
    match served {
        Ok(response) => response,
        Err(error) => {
            let Incoming { shape, parts, body, .. } = incoming;
            refuse(shape, api, &parts, body, &error, id).await
        }
    }
}

/// Submits a chat that the server itself makes for a room's message; `body` is a Chat Completions request.
pub(crate) async fn chat(
    api: &Api,
    scope: RequestScope,
    id: JobId,
    body: Bytes,
) -> Result<Answer, ApiError> {
    let (shape, limits) = (shape::of(Endpoint::ChatCompletions), api.limits());
    let via = head::via(api.marks(), api.via(), scope.scope(), &HeaderMap::new())?;
    let mut held = api.uploads().hold();
    held.grow(body.len()).await?;
    let (body, peeked) = Content::Json.peek(shape, body, limits.affinity).await?;
    let request = JobRequest {
        method: Method::POST,
        path_and_query: shape.endpoint().path().to_owned(),
        model: ModelName::from(&*peeked.peek.model),
        streaming: peeked.peek.stream,
        headers: head::put_via(HeaderMap::new(), via),
        body,
    };
    let (pinned, route, resumes, trace) = (None, limits.route, false, None);
    let draft = Draft { shape, id, scope, peeked, pinned, route, resumes, trace };
    let Accepted { job, admission, .. } = draft.accept(api, request, &mut held).await?;
    let answer = api.scheduler().submit(job);
    admission.submitted();
    Ok(answer)
}

/// A request that comes in.
struct Incoming<'a> {
    api: &'a Api,
    /// The shape of its path, until its body shows another one.
    shape: &'static dyn Shape,
    id: JobId,
    parts: Parts,
    body: axum::body::Body,
    /// The memory that its body holds.
    held: HeldBody<'a>,
}

/// The outcome of a request so far.
#[expect(clippy::large_enum_variant, reason = "most are jobs, and none is kept")]
enum Taken {
    /// A job.
    Job(Accepted),
    /// It needs none.
    Answered(Response),
}

impl Incoming<'_> {
    /// Answers the request.
    ///
    /// # Errors
    /// The client's error, when it never became a job.
    async fn serve(&mut self, scope: RequestScope) -> Result<Response, ApiError> {
        let (api, id) = (self.api, self.id);
        let accepted = match self.accept(scope).await? {
            Taken::Job(accepted) => accepted,
            Taken::Answered(response) => return Ok(response),
        };
        let shape = accepted.shape;
        if shape.endpoint().counts() {
            return count_tokens::count(api, accepted).await;
        }
        let is_background = accepted.plan.as_ref().is_some_and(|plan| plan.is_background());
        let answered = match api.keeping().filter(|_| is_background) {
            // Boxed: most requests are waited for.
            Some(keeping) => Box::pin(background::begin(api, keeping, accepted)).await,
            None => answer(api, accepted).await,
        };
        Ok(answered.unwrap_or_else(|error| error.response(shape, id)))
    }

    /// Reads the body and makes a job of the request.
    async fn accept(&mut self, scope: RequestScope) -> Result<Taken, ApiError> {
        let (api, limits, id) = (self.api, self.api.limits(), self.id);
        let content = Content::of(self.shape, &self.parts.headers)?;
        let passed_on = self.parts.headers.contains_key(VIA);
        let takes_trailers = takes_trailers(&self.parts.headers);
        // Before the body is read: one that has come in a circle would hold memory at each of its servers.
        let via = head::via(api.marks(), api.via(), scope.scope(), &self.parts.headers)?;
        let (headers, held) = (&self.parts.headers, &mut self.held);
        let body = read::read(headers, &mut self.body, limits.max_body, held).await?;
        // It is unpacked from here on.
        self.parts.headers.remove(header::CONTENT_ENCODING);
        let body = if content.is_form() { body } else { self.completed(body).await? };
        let (shape, endpoint) = (self.shape, self.shape.endpoint());
        let (body, plan) = match endpoint {
            Endpoint::Responses if scope.room().is_none() => {
                plan::settle(api, &scope, body, &mut self.held).await?
            }
            _ => (body, None),
        };
        let (body, peeked) = content.peek(shape, body, limits.affinity).await?;
        let model = ModelName::from(&*peeked.peek.model);
        if let Some(mut response) = without_job(api, &scope, endpoint, &model, &body)? {
            head::put_job_id(response.headers_mut(), shape, id);
            return Ok(Taken::Answered(response));
        }
        let headers = &self.parts.headers;
        let pinned = pinned(headers)?;
        let trace = trace::of(api.sampler(), headers);
        let route = route(headers)?.unwrap_or(limits.route);
        let resumes = resumes(api, &scope, headers)?;
        let request = JobRequest {
            method: self.parts.method.clone(),
            path_and_query: paths::without_room(&self.parts.uri),
            model,
            streaming: peeked.peek.stream || shape.always_streams(),
            headers: head::put_via(
                head::for_provider(std::mem::take(&mut self.parts.headers)),
                via,
            ),
            body,
        };
        let draft = Draft { shape, id, scope, peeked, pinned, route, resumes, trace };
        let accepted = draft.accept(api, request, &mut self.held).await?;
        let may_be_early = may_be_early(&accepted.job.request, endpoint, passed_on);
        Ok(Taken::Job(Accepted { may_be_early, takes_trailers, plan, ..accepted }))
    }

    /// Finds the shape that the body shows, and completes the body for it.
    async fn completed(&mut self, body: Bytes) -> Result<Bytes, ApiError> {
        let given = self.shape;
        let completed = move |uri: &Uri, body: Bytes| {
            let found = given.of_body(&body).unwrap_or(given);
            (found, found.complete(uri, body))
        };
        let (found, body) = match body.len() {
            // Most are small, and need no URI of their own.
            0..=INLINE_LIMIT => completed(&self.parts.uri, body),
            len => {
                let uri = self.parts.uri.clone();
                off_thread(len, move || completed(&uri, body)).await?
            }
        };
        self.shape = found;
        body
    }
}

/// A request that is read and not yet admitted.
struct Draft {
    shape: &'static dyn Shape,
    id: JobId,
    scope: RequestScope,
    peeked: PeekedRequest,
    pinned: Option<ProviderId>,
    route: Route,
    /// Whether its answer may be gone on with by another provider.
    resumes: bool,
    trace: Option<RequestTrace>,
}

impl Draft {
    async fn accept(
        self,
        api: &Api,
        mut request: JobRequest,
        held: &mut HeldBody<'_>,
    ) -> Result<Accepted, ApiError> {
        let targets = self.scope.resolve(api, &request.model)?;
        let (charge, now) = (self.charge(api, &targets.models), Moment::now());
        // Before the work on the body, which a key that is over its limits is not given.
        let admission = Admission::new(self.scope.admitted(), self.id, charge, now).await?;
        let (shape, room) = (self.shape, self.scope.room().cloned());
        if room.is_none() && !self.peeked.peek.in_form {
            request.body = with_defaults(api, &request.model, request.body).await?;
        }
        let (model, streaming) = (request.model.clone(), request.streaming);
        let origin = Origin { job: self.id, accepted: now, model, streaming };
        let (peek, memory) = (self.peeked.peek.clone(), api.uploads().room_left());
        let translation = Arc::new(Translation::new(shape.endpoint(), origin, peek, memory));
        let prepared = prepare(api, &self, &translation, request, &targets.models).await?;
        if let Some(more) = &prepared.body {
            held.grow(prepared.request.body.len() + more.len()).await?;
        }
        let job = self.job(targets, prepared, &translation);
        let translation = Some(translation);
        Ok(Accepted { translation, ..Accepted::new(shape, job, admission, held.take(), room) })
    }

    /// The most that it may cost, wherever it is served. What members of a room lend costs nothing.
    fn charge(&self, api: &Api, models: &[ModelName]) -> Charge {
        let in_room = self.scope.room().is_some();
        let models = models.iter().filter(|_| !in_room).map(ModelName::as_str);
        let money = api.keys().prices().most(models, self.peeked.priced_tokens());
        Charge { tokens: self.peeked.tokens(), money }
    }

    fn may_use_clouds(&self) -> bool {
        self.scope.admitted().key.as_ref().is_none_or(|key| key.may_use_clouds())
    }

    fn job(self, targets: Targets, prepared: Prepared, translation: &Arc<Translation>) -> Job {
        let endpoint = self.shape.endpoint();
        let Prepared { request, body } = prepared;
        let sent = body.map_or(0, |body| wire_size(&body));
        Job {
            id: self.id,
            scope: self.scope.scope().clone(),
            model: targets.name,
            targets: targets.models,
            known: targets.known,
            endpoint,
            serve_as: served_as(endpoint),
            translator: Arc::<Translation>::clone(translation),
            key: self.scope.admitted().id.clone(),
            page_session: self.scope.admitted().page_session.clone(),
            size: self.peeked.size.max(sent),
            clouds: self.may_use_clouds(),
            affinity: self.peeked.affinity,
            pinned: self.pinned,
            lent: None,
            route: self.route,
            resumes: self.resumes,
            trace: self.trace,
            request,
            meter: Box::new(UsageMeter::new(endpoint, self.peeked.prompt_tokens)),
        }
    }
}

/// The body, completed with the default parameters of its alias.
async fn with_defaults(api: &Api, model: &ModelName, body: Bytes) -> Result<Bytes, ApiError> {
    let aliases = api.aliases();
    let Some((_, alias)) = served::alias_of(api, &aliases, model) else { return Ok(body) };
    if alias.defaults.is_empty() {
        return Ok(body);
    }
    let defaults = alias.defaults.clone();
    off_thread(body.len(), move || defaults.complete(&body)).await
}

/// A request, and the translated body for its most likely provider, if it needs one.
struct Prepared {
    request: JobRequest,
    body: Option<Bytes>,
}

/// Prepares the body for the first target that is served now.
async fn prepare(
    api: &Api,
    draft: &Draft,
    translation: &Arc<Translation>,
    request: JobRequest,
    targets: &[ModelName],
) -> Result<Prepared, ApiError> {
    // The model name that a participant is asked for is known only at its assignment.
    let targets = targets.iter().filter(|target| !target.as_str().starts_with(RESERVED));
    let scope = draft.scope.scope();
    let endpoints = |target| (target, api.scheduler().endpoints(scope, target, draft.route));
    let served = targets.map(endpoints).find(|(_, endpoints)| !endpoints.is_empty());
    let Some((model, endpoints)) = served else { return Ok(Prepared { request, body: None }) };
    let (translation, model, len) = (Arc::clone(translation), model.clone(), request.body.len());
    let preparing = move || {
        let body = translation.prepare(&request, &model, endpoints)?;
        Ok(Prepared { request, body })
    };
    off_thread(len, preparing).await?.map_err(|bad: BadRequest| ApiError::from(bad))
}

fn pinned(headers: &HeaderMap) -> Result<Option<ProviderId>, ApiError> {
    let Some(value) = headers.get(PIN) else { return Ok(None) };
    let pinned = value.to_str().ok().and_then(|value| value.parse().ok());
    let bad = || {
        let words = format!("{PIN} must name a worker by its id, such as w-0123456789abcdef");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    pinned.map(Some).ok_or_else(bad)
}

/// Whether an answer may be gone on with by another provider: the request says so, or its key, or the setting. In a
/// room nobody goes on: each of its participants speaks for itself.
fn resumes(api: &Api, scope: &RequestScope, headers: &HeaderMap) -> Result<bool, ApiError> {
    let of_key = || scope.admitted().key.as_ref()?.resume_answers();
    let how = match headers.get(RESUME) {
        None => of_key().unwrap_or(api.limits().resume_answers),
        Some(value) => {
            let bad = |why: NotResumeAnswers| {
                let given = String::from_utf8_lossy(value.as_bytes());
                let words = format!("{RESUME}: {why}, not {given:?}");
                ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
            };
            value.to_str().map_err(|_| NotResumeAnswers).and_then(str::parse).map_err(bad)?
        }
    };
    Ok(how == ResumeAnswers::SameModel && scope.room().is_none())
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    let mut all = values.flat_map(|value| value.split(','));
    all.any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

fn route(headers: &HeaderMap) -> Result<Option<Route>, ApiError> {
    let Some(value) = headers.get(ROUTE) else { return Ok(None) };
    let bad = |why: NoRoute| {
        let words = format!("{ROUTE}: {:?} is {why}", String::from_utf8_lossy(value.as_bytes()));
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    value.to_str().map_err(|_| NoRoute).and_then(str::parse).map(Some).map_err(bad)
}

/// Reads usage from a copy of the answer, and estimates it for answers that do not report it.
pub(crate) struct UsageMeter(AnswerCounter);

impl UsageMeter {
    /// A meter for a request of this endpoint with about `prompt_tokens` tokens.
    pub(crate) fn new(endpoint: Endpoint, prompt_tokens: u64) -> Self {
        Self(AnswerCounter::new(endpoint, prompt_tokens))
    }
}

impl Meter for UsageMeter {
    fn feed(&mut self, chunk: &[u8]) {
        self.0.feed(chunk);
    }

    fn usage(&self) -> Usage {
        self.0.told()
    }

    fn has_text(&self) -> bool {
        self.0.has_text()
    }

    fn estimate(&self) -> Usage {
        Usage { estimated: true, ..self.0.estimate() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(endpoint: Endpoint, answer: &str) -> (Option<u64>, Option<u64>, bool) {
        let mut meter = UsageMeter::new(endpoint, 9);
        meter.feed(answer.as_bytes());
        let Usage { estimated, prompt_tokens, completion_tokens, .. } =
            meter.usage().or(meter.estimate());
        (prompt_tokens, completion_tokens, estimated)
    }

    #[test]
    fn reported_usage_counts_and_only_gaps_are_estimated() {
        let chat = Endpoint::ChatCompletions;
        let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        assert_eq!(used(chat, &delta.repeat(3)), (Some(9), Some(3), true));
        let told = format!(
            "{delta}data: {{\"usage\":{{\"prompt_tokens\":0,\"completion_tokens\":0}}}}\n\n"
        );
        assert_eq!(used(chat, &told), (Some(0), Some(0), false));
        let half = r#"{"type":"message_start","message":{"usage":{"input_tokens":5}}}"#;
        assert_eq!(
            used(Endpoint::Messages, &format!("data: {half}\n\n")),
            (Some(5), Some(0), true)
        );
    }

    #[test]
    fn where_nothing_is_generated_nothing_is_counted() {
        let embedding = r#"{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":7}}"#;
        assert_eq!(used(Endpoint::Embeddings, embedding), (Some(7), None, false));
        assert_eq!(used(Endpoint::Embeddings, "{}"), (Some(9), None, true));
        let counted = meter_of_a_count();
        assert_eq!((counted.prompt_tokens, counted.completion_tokens), (None, None));
    }

    fn meter_of_a_count() -> Usage {
        let mut meter = UsageMeter::new(Endpoint::CountTokens, 9);
        meter.feed(br#"{"input_tokens":9}"#);
        meter.usage().or(meter.estimate())
    }
}
