//! From a request to a job, the same for every API, for the server and for rooms.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use base::{Endpoint, JobId, KeyId, ModelName};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri, header, request::Parts};
use protocol::via::VIA;
use scheduler::{Answer, JobRequest};

use crate::{
    answer::{AdmittedJob, answer},
    blocking::{INLINE_LIMIT, off_thread},
    content::Content,
    count_tokens,
    draft::Draft,
    early::may_be_early,
    elsewhere::{self, Carried, Elsewhere},
    error::ApiError,
    handling::{Handling, takes_trailers},
    head::{self, new_id},
    ollama::without_job::without_job,
    paths, read,
    refuse::refuse,
    request_scope::RequestScope,
    responses::{
        background,
        plan::{self, Plan},
    },
    shape::{self, Shape},
    state::Api,
    uploads::{HeldBody, HeldMemory},
};

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
        // Boxed, so that this future stays small for the requests that are served here, which are most.
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

/// Submits a chat that the server itself makes for a room's message; `body` is a Chat Completions request. Its memory
/// is to be held until the answer's head.
pub(crate) async fn chat(
    api: &Api,
    scope: RequestScope,
    id: JobId,
    body: Bytes,
) -> Result<(Answer, HeldMemory), ApiError> {
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
    let draft = Draft { shape, id, scope, peeked, handling: Handling::usual(api) };
    let AdmittedJob { job, admission, memory, .. } = draft.accept(api, request, &mut held).await?;
    let answer = api.scheduler().submit(job);
    admission.submitted();
    Ok((answer, memory))
}

/// A request that comes in.
struct Incoming<'a> {
    api: &'a Api,
    /// The shape that its path has, until its body shows another one.
    shape: &'static dyn Shape,
    id: JobId,
    parts: Parts,
    body: axum::body::Body,
    /// The memory that its body holds.
    held: HeldBody<'a>,
}

/// The outcome of a request that was read.
#[expect(clippy::large_enum_variant, reason = "most are jobs, and none is kept")]
enum Intake {
    /// A job.
    Job(AdmittedJob),
    /// The response to a request that needs no job.
    Answered(Response),
}

impl Incoming<'_> {
    /// Answers the request.
    ///
    /// # Errors
    /// The client's error, when the request never became a job.
    async fn serve(&mut self, scope: RequestScope) -> Result<Response, ApiError> {
        let (api, id) = (self.api, self.id);
        let accepted = match self.accept(scope).await? {
            Intake::Job(accepted) => accepted,
            Intake::Answered(response) => return Ok(response),
        };
        let shape = accepted.shape;
        if shape.endpoint().counts() {
            return count_tokens::count(api, accepted).await;
        }
        let is_background = accepted.plan.as_ref().is_some_and(|plan| plan.is_background());
        let answered = match api.keeping().filter(|_| is_background) {
            // Boxed, so that this future stays small for the requests whose client waits, which are most.
            Some(keeping) => Box::pin(background::begin(api, keeping, accepted)).await,
            None => answer(api, accepted).await,
        };
        Ok(answered.unwrap_or_else(|error| error.response(shape, id)))
    }

    /// Reads the body and makes a job of the request.
    async fn accept(&mut self, scope: RequestScope) -> Result<Intake, ApiError> {
        let (api, limits, id) = (self.api, self.api.limits(), self.id);
        let content = Content::of(self.shape, &self.parts.headers)?;
        let is_carried = self.parts.extensions.get::<Carried>().is_some();
        let passed_on = self.parts.headers.contains_key(VIA) && !is_carried;
        let takes_trailers = takes_trailers(&self.parts.headers);
        // Checked before the body is read: a request that goes in a circle would hold memory at each of its servers.
        let via = head::via(api.marks(), api.via(), scope.scope(), &self.parts.headers)?;
        let (headers, held) = (&self.parts.headers, &mut self.held);
        let body = read::read(headers, &mut self.body, limits.max_body, held).await?;
        // The body is unpacked from here on.
        self.parts.headers.remove(header::CONTENT_ENCODING);
        let body = if content.is_form() { body } else { self.completed(body).await? };
        let (body, plan) = self.settled(&scope, body).await?;
        let (shape, endpoint) = (self.shape, self.shape.endpoint());
        let (body, peeked) = content.peek(shape, body, limits.affinity).await?;
        let model = ModelName::from(&*peeked.peek.model);
        let handling = Handling::of(api, &scope, &self.parts.headers)?;
        let jobless = without_job(api, &scope, endpoint, &model, &body, handling.route)?;
        if let Some(mut response) = jobless {
            head::put_job_id(response.headers_mut(), shape, id);
            return Ok(Intake::Answered(response));
        }
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
        let draft = Draft { shape, id, scope, peeked, handling };
        let accepted = draft.accept(api, request, &mut self.held).await?;
        let may_be_early = may_be_early(&accepted.job.request, endpoint, passed_on);
        Ok(Intake::Job(AdmittedJob { may_be_early, takes_trailers, plan, ..accepted }))
    }

    /// The body for the provider, and the plan for the response, if the response has state at this server.
    async fn settled(
        &mut self,
        scope: &RequestScope,
        body: Bytes,
    ) -> Result<(Bytes, Option<Box<Plan>>), ApiError> {
        match self.shape.endpoint() {
            Endpoint::Responses if scope.room().is_none() => {
                plan::settle(self.api, scope, body, &mut self.held).await
            }
            _ => Ok((body, None)),
        }
    }

    /// Finds the shape that the body shows, and completes the body for it.
    async fn completed(&mut self, body: Bytes) -> Result<Bytes, ApiError> {
        let given = self.shape;
        let completed = move |uri: &Uri, body: Bytes| {
            let found = given.of_body(&body).unwrap_or(given);
            (found, found.complete(uri, body))
        };
        let (found, body) = match body.len() {
            // Most bodies are small: they are completed in this task, without a copy of the URI.
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
