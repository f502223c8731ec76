//! From a request to a job, the same for every API, for the server and for rooms.

use std::{sync::Arc, time::Duration};

use access::{Charge, Moment};
use axum::{extract::State, response::Response};
use base::{Endpoint, JobId, KeyId, ModelName, ProviderId};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, request::Parts};
use protocol::{headers::ROUTE, room::selector::RESERVED, via::VIA};
use rooms::Room;
use scheduler::{Answer, Ending, Failure, Job, JobRequest, NoRoute, Route};
use translate::{BadRequest, served_as};

use crate::{
    admission::{Admission, put_standing},
    body::AnswerBody,
    count_tokens,
    early::{self, Early},
    elsewhere::{self, Elsewhere},
    error::{ApiError, Kind},
    head,
    head::new_id,
    meter::UsageMeter,
    models::served,
    nearest::Known,
    ollama::without_job::without_job,
    peeked::{INLINE_LIMIT, PeekedRequest, off_thread, peek_request, wire_size},
    read,
    refuse::refuse,
    request_scope::{self, RequestScope, Targets},
    room::inference::recorder::Recorder,
    shape::{self, Shape},
    state::Api,
    trace,
    translation::{Origin, Translation},
    uploads::{HeldBody, HeldMemory},
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
    let request_scope = RequestScope::of_plain(&api, &parts);
    let (parts, body) = match other_servers(&api, &request_scope) {
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
    serve(shape, &api, request_scope, parts, body).await
}

/// The other servers that may have the model of a request's key.
fn other_servers(
    api: &Api,
    request_scope: &Result<RequestScope, ApiError>,
) -> Option<(Arc<dyn Elsewhere>, KeyId)> {
    let key = request_scope.as_ref().ok()?.admitted().key.as_ref()?;
    let elsewhere = api.elsewhere().filter(|elsewhere| elsewhere.is_for(key.id()))?;
    Some((elsewhere, key.id().clone()))
}

/// Handles one request; `request_scope` says in which room, if in one.
pub(crate) async fn serve(
    mut shape: &'static dyn Shape,
    api: &Api,
    request_scope: Result<RequestScope, ApiError>,
    mut parts: Parts,
    mut body: axum::body::Body,
) -> Response {
    let id = new_id();
    let mut held = api.uploads().hold();
    let accepted = match request_scope {
        Ok(request_scope) => {
            accept(&mut shape, api, request_scope, &mut parts, &mut body, &mut held, id).await
        }
        Err(error) => Err(error),
    };
    let accepted = match accepted {
        Ok(Taken::Job(accepted)) => Ok(accepted),
        Ok(Taken::Answered(response)) => return response,
        Err(error) => Err(error),
    };
    let counted = match accepted {
        Ok(accepted) if shape.endpoint().counts() => {
            count_tokens::count(shape, api, accepted, &mut held).await
        }
        Ok(accepted) => {
            let answered = answer(shape, api, accepted, held.take()).await;
            return answered.unwrap_or_else(|error| error.response(shape, id));
        }
        Err(error) => Err(error),
    };
    match counted {
        Ok(response) => response,
        Err(error) => refuse(shape, api, &parts, body, &error, id).await,
    }
}

/// Submits a chat that the server itself makes for a room's message; `body` is a Chat Completions request.
pub(crate) async fn chat(
    api: &Api,
    request_scope: RequestScope,
    id: JobId,
    body: Bytes,
    held: &mut HeldBody<'_>,
) -> Result<Answer, ApiError> {
    let shape = shape::of_path(Endpoint::ChatCompletions.path());
    let via = head::via(api.marks(), api.via(), request_scope.scope(), &HeaderMap::new())?;
    held.grow(body.len()).await?;
    let (body, peeked) = peek_request(body, api.limits().affinity).await?;
    let route = api.limits().route;
    let model = ModelName::from(&*peeked.peek.model);
    let draft = JobDraft { shape, id, request_scope, pinned: None, route, peeked };
    let path = shape.endpoint().path().to_owned();
    let headers = head::put_via(HeaderMap::new(), via);
    let request = draft.request(Method::POST, path, model, headers, body);
    let Accepted { job, admission, .. } = draft.accept(api, request, held).await?;
    let answer = api.scheduler().submit(job);
    admission.submitted();
    Ok(answer)
}

pub(crate) struct Accepted {
    pub(crate) job: Job,
    pub(crate) admission: Admission,
    /// The translation between its client and its provider.
    pub(crate) translation: Option<Arc<Translation>>,
    /// Its room, if it is served in one.
    pub(crate) room: Option<Arc<Room>>,
    /// Whether its client may get a head before the provider's.
    pub(crate) may_be_early: bool,
}

/// The outcome of a request so far.
#[expect(clippy::large_enum_variant, reason = "most are jobs, and none is kept")]
enum Taken {
    /// A job.
    Job(Accepted),
    /// It needs none.
    Answered(Response),
}

/// Reads the body of a request and makes a job of it. The body may show that its shape is another one.
async fn accept(
    shape: &mut &'static dyn Shape,
    api: &Api,
    request_scope: RequestScope,
    parts: &mut Parts,
    body: &mut axum::body::Body,
    held: &mut HeldBody<'_>,
    id: JobId,
) -> Result<Taken, ApiError> {
    if shape.says_json() {
        read::expect_json(&parts.headers)?;
    }
    let passed_on = parts.headers.contains_key(VIA);
    let via = head::via(api.marks(), api.via(), request_scope.scope(), &parts.headers)?;
    let body = read::read(&parts.headers, body, api.limits().max_body, held).await?;
    let body = shaped(shape, &parts.uri, body).await?;
    let shape = *shape;
    let (body, peeked) = peek_request(body, api.limits().affinity).await?;
    let model = ModelName::from(&*peeked.peek.model);
    let told = without_job(api, &request_scope, shape.endpoint(), &model, &body)?;
    if let Some(mut response) = told {
        head::put_job_id(response.headers_mut(), shape, id);
        return Ok(Taken::Answered(response));
    }
    let pinned = pinned(&parts.headers)?;
    let trace = trace::of(api.sampler(), &parts.headers);
    let route = route(&parts.headers)?.unwrap_or(api.limits().route);
    let draft = JobDraft { shape, id, request_scope, pinned, route, peeked };
    let headers = head::put_via(head::for_provider(std::mem::take(&mut parts.headers)), via);
    let path = request_scope::path_and_query(&parts.uri);
    let request = draft.request(parts.method.clone(), path, model, headers, body);
    let mut accepted = draft.accept(api, request, held).await?;
    accepted.job.trace = trace;
    let may_be_early = early::may_be_early(&accepted.job.request, shape.endpoint(), passed_on);
    Ok(Taken::Job(Accepted { may_be_early, ..accepted }))
}

/// Finds the shape that a body shows, and completes the body for it.
async fn shaped(shape: &mut &'static dyn Shape, uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
    let given = *shape;
    let completed = move |uri: &Uri, body: Bytes| {
        let found = given.of_body(&body).unwrap_or(given);
        (found, found.complete(uri, body))
    };
    let (found, body) = match body.len() {
        // Most are small, and need no URI of their own.
        0..=INLINE_LIMIT => completed(uri, body),
        len => {
            let uri = uri.clone();
            off_thread(len, move || completed(&uri, body)).await?
        }
    };
    *shape = found;
    body
}

/// Submits a job and returns the response to its client, or the failure of a job whose answer never began.
pub(crate) async fn answer(
    shape: &'static dyn Shape,
    api: &Api,
    accepted: Accepted,
    memory: HeldMemory,
) -> Result<Response, ApiError> {
    let Accepted { job, admission, translation, room, may_be_early } = accepted;
    let (id, model, method) = (job.id, job.model.clone(), job.request.method.clone());
    // Strangers, and guests of a room, do not learn the names of machines.
    let is_known = admission.key().is_some() || job.key == KeyId::local();
    let names_workers = room.is_none() && is_known;
    let gone_from = || room.is_none().then(|| served::gone_from(api, &model)).flatten();
    let known = Known { api, key: admission.key(), room: room.clone() };
    let mut answer: Answer = api.scheduler().submit(job);
    let standing = admission.submitted();
    let failed = |failure: Failure| {
        let standing = Some(Box::new(standing));
        let error = ApiError::of_failure(&failure, model.as_str());
        let error = match failure.ending {
            Ending::NoProvider => match gone_from() {
                Some(place) => error.gone_from(&place),
                None => error.with_nearest(&known.nearest(&model)),
            },
            _ => error,
        };
        ApiError { standing, ..error }
    };
    let every = if may_be_early { api.limits().keepalive } else { Duration::ZERO };
    let (mut head, early) = match early::head(&mut answer, every).await {
        Some(head) => {
            let head = head.map_err(&failed)?;
            Early::new(translation, memory, names_workers).begun();
            if answer.comes_whole() {
                // Waiting costs nothing here, and until the first byte a failure can still set the status.
                answer.first_byte().await.map_err(failed)?;
            }
            (head, None)
        }
        None => (early::stream_head(shape), Some(Early::new(translation, memory, names_workers))),
    };
    head::drop_bad_length(&mut head.headers);
    if room.is_some() {
        head::keep_content_only(&mut head.headers);
    }
    put_standing(&mut head.headers, shape.endpoint(), &standing);
    let makes = shape.endpoint() == Endpoint::Responses && method == Method::POST;
    let recorder =
        room.filter(|_| makes).and_then(|room| Recorder::new(api, &room, &answer, &head));
    let body = AnswerBody::new(answer, &head, shape, model, api.limits().keepalive, early);
    let body = match recorder {
        Some(recorder) => axum::body::Body::new(recorder.around(body)),
        None => axum::body::Body::new(body),
    };
    Ok(head::for_client(head, shape, id, body))
}

/// A request without its body and headers.
struct JobDraft {
    shape: &'static dyn Shape,
    id: JobId,
    request_scope: RequestScope,
    pinned: Option<ProviderId>,
    route: Route,
    peeked: PeekedRequest,
}

impl JobDraft {
    async fn accept(
        self,
        api: &Api,
        mut request: JobRequest,
        held: &mut HeldBody<'_>,
    ) -> Result<Accepted, ApiError> {
        let targets = self.request_scope.resolve(api, &request.model)?;
        let (charge, now) = (self.charge(api, &targets.models), Moment::now());
        let admission = Admission::new(self.request_scope.admitted(), self.id, charge, now).await?;
        if self.request_scope.room().is_none() {
            request.body = with_defaults(api, &request.model, request.body).await?;
        }
        let translation = Arc::new(self.translation(&request, now));
        let prepared = prepare(api, &self, &translation, request, &targets.models).await?;
        if let Some(more) = &prepared.body {
            held.grow(prepared.request.body.len() + more.len()).await?;
        }
        let room = self.request_scope.room().cloned();
        let job = self.job(targets, prepared, &translation);
        Ok(Accepted { job, admission, translation: Some(translation), room, may_be_early: false })
    }

    fn request(
        &self,
        method: Method,
        path_and_query: String,
        model: ModelName,
        headers: HeaderMap,
        body: Bytes,
    ) -> JobRequest {
        JobRequest {
            method,
            path_and_query,
            model,
            streaming: self.peeked.peek.stream || self.shape.always_streams(),
            headers,
            body,
        }
    }

    fn translation(&self, request: &JobRequest, accepted: Moment) -> Translation {
        let (model, streaming) = (request.model.clone(), request.streaming);
        let origin = Origin { job: self.id, accepted, model, streaming };
        Translation::new(self.shape.endpoint(), origin, self.peeked.peek.clone())
    }

    /// The most that it may cost, wherever it is served. What members of a room lend costs nothing.
    fn charge(&self, api: &Api, models: &[ModelName]) -> Charge {
        let in_room = self.request_scope.room().is_some();
        let models = models.iter().filter(|_| !in_room).map(ModelName::as_str);
        let money = api.keys().prices().most(models, self.peeked.priced_tokens());
        Charge { tokens: self.peeked.tokens(), money }
    }

    fn may_use_clouds(&self) -> bool {
        self.request_scope.admitted().key.as_ref().is_none_or(|key| key.may_use_clouds())
    }

    fn job(self, targets: Targets, prepared: Prepared, translation: &Arc<Translation>) -> Job {
        let endpoint = self.shape.endpoint();
        let Prepared { request, body } = prepared;
        let sent = body.map_or(0, |body| wire_size(&body));
        Job {
            id: self.id,
            scope: self.request_scope.scope().clone(),
            model: targets.name,
            targets: targets.models,
            known: targets.known,
            endpoint,
            serve_as: served_as(endpoint),
            translator: Arc::<Translation>::clone(translation),
            key: self.request_scope.admitted().id.clone(),
            page_session: self.request_scope.admitted().page_session.clone(),
            size: self.peeked.size.max(sent),
            affinity: self.peeked.affinity,
            pinned: self.pinned,
            lent: None,
            route: self.route,
            clouds: self.may_use_clouds(),
            trace: None,
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
    draft: &JobDraft,
    translation: &Arc<Translation>,
    request: JobRequest,
    targets: &[ModelName],
) -> Result<Prepared, ApiError> {
    // The model name that a participant is asked for is known only at its assignment.
    let targets = targets.iter().filter(|target| !target.as_str().starts_with(RESERVED));
    let scope = draft.request_scope.scope();
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

fn route(headers: &HeaderMap) -> Result<Option<Route>, ApiError> {
    let Some(value) = headers.get(ROUTE) else { return Ok(None) };
    let bad = |why: NoRoute| {
        let words = format!("{ROUTE}: {:?} is {why}", String::from_utf8_lossy(value.as_bytes()));
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    };
    value.to_str().map_err(|_| NoRoute).and_then(str::parse).map(Some).map_err(bad)
}
