//! From a request to a job, the same for every API.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use access::Moment;
use axum::{extract::State, response::Response};
use base::{JobId, KeyId, ModelName, ProviderId, Scope};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, request::Parts};
use protocol::translate::{BadRequest, Context, served_as};
use scheduler::{Answer, Job, JobRequest};

use crate::{
    admission::{Admission, put_standing},
    body::AnswerBody,
    error::{ApiError, Kind, new_id},
    head,
    looked::{Looked, look_into, off_the_way, wire_size},
    meter::UsageMeter,
    read,
    shape::Shape,
    state::{Api, Peer},
    translation::Translation,
    uploads::Held,
};

/// The header by which a consumer names the only provider that may serve it.
const PIN: &str = "x-warren-provider";

/// Handles one request of an API.
pub(crate) async fn consume(
    shape: &'static dyn Shape,
    State(api): State<Api>,
    request: Request<axum::body::Body>,
) -> Response {
    let id = new_id();
    let (mut parts, mut body) = request.into_parts();
    let mut held = api.uploads().hold();
    match accept(shape, &api, &mut parts, &mut body, &mut held, id).await {
        Ok(accepted) => {
            let answered = answer(shape, &api, accepted).await;
            answered.unwrap_or_else(|error| error.response(shape, id))
        }
        Err(error) => refuse(shape, &api, &parts, body, &error, id).await,
    }
}

/// Tells why a request is none. Those that never become jobs are in no request log but this, and
/// in no other count.
pub(crate) async fn refuse(
    shape: &'static dyn Shape,
    api: &Api,
    parts: &Parts,
    body: axum::body::Body,
    error: &ApiError,
    id: JobId,
) -> Response {
    let status = error.status.as_u16();
    api.refusals().count(error.status);
    tracing::info!(target: "request", request_id = %id, path = parts.uri.path(),
        outcome = "refused", status, message = %error.message);
    read::discard(&parts.headers, body).await;
    error.response(shape, id)
}

/// A request that was found good.
pub(crate) struct Accepted {
    pub(crate) job: Job,
    translation: Arc<Translation>,
    admission: Admission,
}

/// Finds out who asks, reads the body and makes a job of it.
///
/// # Errors
/// What is wrong with the request.
pub(crate) async fn accept(
    shape: &'static dyn Shape,
    api: &Api,
    parts: &mut Parts,
    body: &mut axum::body::Body,
    held: &mut Held<'_>,
    id: JobId,
) -> Result<Accepted, ApiError> {
    shape.adapt(&mut parts.headers);
    let peer = Peer::of(&parts.extensions);
    let admitted = api.rules().admit(peer, &parts.uri, &parts.headers, Moment::now())?;
    if shape.says_json() {
        read::expect_json(&parts.headers)?;
    }
    let body = read::read(&parts.headers, body, api.limits().max_body, held).await?;
    let looked = look_into(&body, api.limits().affinity).await?;
    let pinned = pinned(&parts.headers)?;
    let model = ModelName::from(&*looked.peek.model);
    let admission = Admission::new(&admitted, id, &model, looked.tokens())?;
    let asked = Asked { shape, id, key: admitted.id, pinned, looked };
    asked.accept(api, parts, body, held, admission).await
}

/// Submits a job; the response to its client.
///
/// # Errors
/// How the job failed, if it did so before its answer began.
pub(crate) async fn answer(
    shape: &'static dyn Shape,
    api: &Api,
    accepted: Accepted,
) -> Result<Response, ApiError> {
    let Accepted { job, translation, admission } = accepted;
    let (id, model) = (job.id, job.model.clone());
    let mut answer: Answer = api.scheduler().submit(job);
    let standing = admission.submitted();
    let failed = |failure| {
        let standing = Some(Box::new(standing));
        ApiError { standing, ..ApiError::of_failure(&failure, model.as_str()) }
    };
    let mut head = answer.head().await.map_err(&failed)?;
    translation.forget();
    if answer.comes_whole() {
        // Nothing is lost by waiting, and a failure can still be told as what it is.
        answer.first_byte().await.map_err(failed)?;
    }
    head::drop_bad_length(&mut head.headers);
    put_standing(&mut head.headers, shape.endpoint(), &standing);
    let body = AnswerBody::new(answer, &head, shape, model, api.limits().keepalive);
    Ok(head::for_client(head, shape, id, axum::body::Body::new(body)))
}

/// What is asked for, but for its body and headers.
struct Asked {
    shape: &'static dyn Shape,
    id: JobId,
    key: KeyId,
    pinned: Option<ProviderId>,
    looked: Looked,
}

impl Asked {
    async fn accept(
        self,
        api: &Api,
        parts: &mut Parts,
        body: Bytes,
        held: &mut Held<'_>,
        admission: Admission,
    ) -> Result<Accepted, ApiError> {
        let model = ModelName::from(&*self.looked.peek.model);
        let body = with_defaults(api, &model, body).await?;
        let targets = match api.aliases().get(&model) {
            Some(alias) => alias.targets.clone(),
            None => vec![model.clone()],
        };
        let request = self.request(parts, model.clone(), body);
        let translation = Arc::new(self.translation(&request));
        let prepared = prepare(api, &translation, request, &targets).await?;
        if let Some(more) = &prepared.body {
            held.grow(prepared.request.body.len() + more.len()).await?;
        }
        let job = self.job(api, model, targets, prepared, &translation);
        Ok(Accepted { job, translation, admission })
    }

    fn request(&self, parts: &mut Parts, model: ModelName, body: Bytes) -> JobRequest {
        let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        JobRequest {
            method: parts.method.clone(),
            path_and_query: path_and_query.to_owned(),
            model,
            streaming: self.looked.peek.stream || self.shape.always_streams(),
            headers: head::for_provider(std::mem::take(&mut parts.headers)),
            body,
        }
    }

    fn translation(&self, request: &JobRequest) -> Translation {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let context = Context {
            id: self.id.digits(),
            created: since.as_secs(),
            model: request.model.to_string(),
            streaming: request.streaming,
        };
        Translation::new(self.shape.endpoint(), context, self.looked.peek.clone())
    }

    fn job(
        self,
        api: &Api,
        model: ModelName,
        targets: Vec<ModelName>,
        prepared: Prepared,
        translation: &Arc<Translation>,
    ) -> Job {
        let scope = Scope::server();
        let endpoint = self.shape.endpoint();
        let Prepared { request, body } = prepared;
        let sent = body.map_or(0, |body| wire_size(&body));
        Job {
            id: self.id,
            known: targets.iter().any(|target| api.models().knows(&scope, target)),
            scope,
            model,
            targets,
            endpoint,
            serve_as: served_as(endpoint),
            translator: Arc::<Translation>::clone(translation),
            key: self.key,
            size: self.looked.size.max(sent),
            affinity: self.looked.affinity,
            pinned: self.pinned,
            request,
            meter: Box::new(UsageMeter::new(endpoint, self.looked.prompt_tokens)),
        }
    }
}

/// The body with those parameters that its alias has for it.
async fn with_defaults(api: &Api, model: &ModelName, body: Bytes) -> Result<Bytes, ApiError> {
    let Some(alias) = api.aliases().get(model) else { return Ok(body) };
    if alias.defaults.is_empty() {
        return Ok(body);
    }
    let defaults = alias.defaults.clone();
    off_the_way(body.len(), move || defaults.complete(&body)).await
}

/// A request, and the body that will most likely be sent for it, if that is another.
struct Prepared {
    request: JobRequest,
    body: Option<Bytes>,
}

/// Makes ready what the first target that is served now will be sent.
async fn prepare(
    api: &Api,
    translation: &Arc<Translation>,
    request: JobRequest,
    targets: &[ModelName],
) -> Result<Prepared, ApiError> {
    let scope = Scope::server();
    let endpoints = |target| (target, api.scheduler().endpoints(&scope, target));
    let served = targets.iter().map(endpoints).find(|(_, endpoints)| !endpoints.is_empty());
    let Some((model, endpoints)) = served else { return Ok(Prepared { request, body: None }) };
    let (translation, model, len) = (Arc::clone(translation), model.clone(), request.body.len());
    let preparing = move || {
        let body = translation.prepare(&request, &model, endpoints)?;
        Ok(Prepared { request, body })
    };
    off_the_way(len, preparing).await?.map_err(|bad: BadRequest| ApiError::from(bad))
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
