//! From a request to a job, the same for every API, for the server and for rooms.

use std::{sync::Arc, time::Duration};

use access::{Charge, Moment};
use axum::{extract::State, response::Response};
use base::{
    Endpoint, Endpoints, JobId, KeyId, ModelName, NotResumeAnswers, ProviderId, ResumeAnswers,
    Scope,
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header, request::Parts,
};
use protocol::{headers::ROUTE, room::selector::RESERVED, via::VIA};
use rooms::Room;
use scheduler::{Answer, Ending, Failure, Job, JobRequest, NoRoute, Route};
use translate::{BadRequest, served_as};

use crate::{
    admission::{Admission, put_standing},
    body::{AnswerBody, Kept, RESUMED},
    content::Content,
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
    responses::{
        background,
        plan::{self, Plan},
    },
    room::inference::recorder::Recorder,
    shape::{self, Shape},
    state::Api,
    trace,
    translation::{Origin, Translation},
    uploads::{HeldBody, HeldMemory, RoomLeft},
};

/// The header by which a consumer names the only provider that may serve it.
const PIN: &str = "x-warren-provider";

/// The header that says what is done with a streamed answer whose provider is lost; in a response, what would be.
pub(crate) const RESUME: &str = "x-warren-resume";

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
            let keeping = api.keeping().filter(|_| accepted.is_background());
            let answered = match keeping {
                // Boxed: most requests are waited for.
                Some(keeping) => {
                    let begun = background::begin(shape, api, keeping, accepted, held.take());
                    Box::pin(begun).await
                }
                None => answer(shape, api, accepted, held.take()).await,
            };
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
    let resumes = false;
    let draft = JobDraft { shape, id, request_scope, pinned: None, route, resumes, peeked };
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
    /// Whether its client reads trailers.
    pub(crate) takes_trailers: bool,
    /// The plan for its response, if that has a state here.
    pub(crate) plan: Option<Box<Plan>>,
}

impl Accepted {
    /// Whether its response is made while nobody waits.
    fn is_background(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.is_background())
    }
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
    let content = Content::of(*shape, &parts.headers)?;
    let passed_on = parts.headers.contains_key(VIA);
    let takes_trailers = takes_trailers(&parts.headers);
    let via = head::via(api.marks(), api.via(), request_scope.scope(), &parts.headers)?;
    let body = read::read(&parts.headers, body, api.limits().max_body, held).await?;
    // It is unpacked from here on.
    parts.headers.remove(header::CONTENT_ENCODING);
    let body = if content.is_form() { body } else { shaped(shape, &parts.uri, body).await? };
    let shape = *shape;
    let (body, plan) = match shape.endpoint() {
        Endpoint::Responses if request_scope.room().is_none() => {
            plan::settle(api, &request_scope, body, held).await?
        }
        _ => (body, None),
    };
    let (body, peeked) = content.peek(shape, body, api.limits().affinity).await?;
    let model = ModelName::from(&*peeked.peek.model);
    let told = without_job(api, &request_scope, shape.endpoint(), &model, &body)?;
    if let Some(mut response) = told {
        head::put_job_id(response.headers_mut(), shape, id);
        return Ok(Taken::Answered(response));
    }
    let pinned = pinned(&parts.headers)?;
    let trace = trace::of(api.sampler(), &parts.headers);
    let route = route(&parts.headers)?.unwrap_or(api.limits().route);
    let resumes = resumes(api, &request_scope, &parts.headers)?;
    let draft = JobDraft { shape, id, request_scope, pinned, route, resumes, peeked };
    let headers = head::put_via(head::for_provider(std::mem::take(&mut parts.headers)), via);
    let path = request_scope::path_and_query(&parts.uri);
    let request = draft.request(parts.method.clone(), path, model, headers, body);
    let mut accepted = draft.accept(api, request, held).await?;
    accepted.job.trace = trace;
    let may_be_early = early::may_be_early(&accepted.job.request, shape.endpoint(), passed_on);
    Ok(Taken::Job(Accepted { may_be_early, takes_trailers, plan, ..accepted }))
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
    let Accepted { job, admission, translation, room, may_be_early, takes_trailers, plan } =
        accepted;
    let (id, model, method) = (job.id, job.model.clone(), job.request.method.clone());
    let sought = Sought::of(shape, &job);
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
            Ending::NotServed => sought.unserved(api, error),
            _ => error,
        };
        ApiError { standing, ..error }
    };
    let every = if may_be_early { api.limits().keepalive } else { Duration::ZERO };
    let mut waiting = Early::new(translation, memory, names_workers);
    let mut kept = None;
    let (mut head, early) = match early::head(&mut answer, every).await {
        Some(head) => {
            let head = head.map_err(&failed)?;
            waiting.begun(&answer);
            kept = waiting.memory.take();
            if answer.comes_whole() {
                // Waiting costs nothing here, and until the first byte a failure can still set the status.
                answer.first_byte().await.map_err(failed)?;
            }
            (head, None)
        }
        None => (early::stream_head(shape), Some(waiting)),
    };
    let trailers = takes_trailers && (early.is_some() || answer.may_be_resumed());
    put_resume(&mut head.headers, answer.may_be_resumed(), trailers);
    head::drop_bad_length(&mut head.headers);
    if room.is_some() {
        head::keep_content_only(&mut head.headers);
    }
    put_standing(&mut head.headers, shape.endpoint(), &standing);
    let makes = shape.endpoint() == Endpoint::Responses && method == Method::POST;
    let recorder =
        room.filter(|_| makes).and_then(|room| Recorder::new(api, &room, &answer, &head));
    let kept = Kept { memory: kept, names_workers, trailers };
    let body = AnswerBody::new(answer, &head, shape, model, api.limits().keepalive, early, kept);
    let body = match (recorder, plan) {
        (_, Some(plan)) => plan.around(api, &mut head, body),
        (Some(recorder), None) => axum::body::Body::new(recorder.around(body)),
        (None, None) => axum::body::Body::new(body),
    };
    Ok(head::for_client(head, shape, id, body))
}

/// Where a request that is never translated looked for a provider.
struct Sought(Option<(Endpoint, Scope, Vec<ModelName>, Route)>);

impl Sought {
    fn of(shape: &dyn Shape, job: &Job) -> Self {
        let endpoint = Some(shape.endpoint()).filter(|endpoint| endpoint.is_untranslated());
        let all = |endpoint| (endpoint, job.scope.clone(), job.targets.clone(), job.route);
        Self(endpoint.map(all))
    }

    /// The error of a request whose endpoint no provider has, with those that they have.
    fn unserved(&self, api: &Api, error: ApiError) -> ApiError {
        let Some((endpoint, scope, targets, route)) = &self.0 else { return error };
        let served = targets.iter().map(|model| api.scheduler().endpoints(scope, model, *route));
        let served = served.fold(Endpoints::NONE, Endpoints::union);
        if served.is_empty() { error } else { error.with_served(*endpoint, served) }
    }
}

/// A request without its body and headers.
struct JobDraft {
    shape: &'static dyn Shape,
    id: JobId,
    request_scope: RequestScope,
    pinned: Option<ProviderId>,
    route: Route,
    /// Whether its answer may be gone on with by another provider.
    resumes: bool,
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
        if self.request_scope.room().is_none() && !self.peeked.peek.in_form {
            request.body = with_defaults(api, &request.model, request.body).await?;
        }
        let room = api.uploads().room_left();
        let translation = Arc::new(self.translation(&request, now, room));
        let prepared = prepare(api, &self, &translation, request, &targets.models).await?;
        if let Some(more) = &prepared.body {
            held.grow(prepared.request.body.len() + more.len()).await?;
        }
        let room = self.request_scope.room().cloned();
        let job = self.job(targets, prepared, &translation);
        let translation = Some(translation);
        let (may_be_early, takes_trailers, plan) = (false, false, None);
        Ok(Accepted { job, admission, translation, room, may_be_early, takes_trailers, plan })
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

    fn translation(&self, request: &JobRequest, accepted: Moment, room: RoomLeft) -> Translation {
        let (model, streaming) = (request.model.clone(), request.streaming);
        let origin = Origin { job: self.id, accepted, model, streaming };
        Translation::new(self.shape.endpoint(), origin, self.peeked.peek.clone(), room)
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
            clouds: self.may_use_clouds(),
            affinity: self.peeked.affinity,
            pinned: self.pinned,
            lent: None,
            route: self.route,
            resumes: self.resumes,
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

/// Whether an answer may be gone on with by another provider: the request says so, or its key, or the setting. In a
/// room nobody goes on: each of its participants speaks for itself.
fn resumes(api: &Api, request_scope: &RequestScope, headers: &HeaderMap) -> Result<bool, ApiError> {
    let of_key = || request_scope.admitted().key.as_ref()?.resume_answers();
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
    Ok(how == ResumeAnswers::SameModel && request_scope.room().is_none())
}

/// Says in a response whether another provider may go on with the answer, and that a trailer follows.
fn put_resume(headers: &mut HeaderMap, may_be_resumed: bool, trailers: bool) {
    if may_be_resumed {
        let how = HeaderValue::from_static(ResumeAnswers::SameModel.as_str());
        headers.insert(HeaderName::from_static(RESUME), how);
    }
    if trailers {
        headers.insert(header::TRAILER, HeaderValue::from_static(RESUMED));
    }
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
