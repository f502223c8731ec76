//! From a job to the response of its client.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use base::{Endpoint, Endpoints, KeyId, ModelName, ResumeAnswers, Scope};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use rooms::Room;
use scheduler::{Answer, Ending, Failure, Job, Route};

use crate::{
    admission::{Admission, put_standing},
    body::{AnswerBody, Delivery, RESUMED},
    early::{Early, head_within, stream_head},
    error::ApiError,
    head,
    models::served,
    nearest::Known,
    response_makers::Recorder,
    responses::plan::Plan,
    shape::Shape,
    state::Api,
    translation::Translation,
    uploads::HeldMemory,
};

/// The header that says what is done with a streamed answer whose provider is lost; in a response, what would be.
pub(crate) const RESUME: &str = "x-warren-resume";

/// A request that is admitted and has become a job.
pub(crate) struct Accepted {
    pub(crate) shape: &'static dyn Shape,
    pub(crate) job: Job,
    pub(crate) admission: Admission,
    /// The memory that its body holds.
    pub(crate) memory: HeldMemory,
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
    /// One whose request says nothing about its answer.
    pub(crate) fn new(
        shape: &'static dyn Shape,
        job: Job,
        admission: Admission,
        memory: HeldMemory,
        room: Option<Arc<Room>>,
    ) -> Self {
        Self {
            shape,
            job,
            admission,
            memory,
            room,
            translation: None,
            may_be_early: false,
            takes_trailers: false,
            plan: None,
        }
    }
}

/// Submits a job and returns the response to its client, or the failure of a job whose answer never began.
pub(crate) async fn answer(api: &Api, accepted: Accepted) -> Result<Response, ApiError> {
    let Accepted { shape, job, admission, room, takes_trailers, plan, .. } = accepted;
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
    let every = if accepted.may_be_early { api.limits().keepalive } else { Duration::ZERO };
    let mut waiting = Early::new(accepted.translation, accepted.memory, names_workers);
    let mut memory = None;
    let (mut head, early) = match head_within(&mut answer, every).await {
        Some(head) => {
            let head = head.map_err(&failed)?;
            waiting.begun(&answer);
            memory = waiting.memory.take();
            if answer.comes_whole() {
                // Waiting costs nothing here, and until the first byte a failure can still set the status.
                answer.first_byte().await.map_err(failed)?;
            }
            (head, None)
        }
        None => (stream_head(shape), Some(waiting)),
    };
    let trailers = takes_trailers && (early.is_some() || answer.may_be_resumed());
    put_resume(&mut head.headers, answer.may_be_resumed(), trailers);
    head::drop_bad_length(&mut head.headers);
    if room.is_some() {
        head::keep_content_only(&mut head.headers);
    }
    put_standing(&mut head.headers, shape.endpoint(), &standing);
    let makes = shape.endpoint() == Endpoint::Responses && method == Method::POST;
    // The participant that made a response is asked for it later.
    let recorder = room.filter(|_| makes && head.status.is_success());
    let recorder =
        recorder.map(|room| Recorder::new(Arc::clone(api.response_makers()), &room, answer.job()));
    let delivery = Delivery { early, memory, names_workers, trailers, recorder };
    let body = AnswerBody::new(answer, &head, shape, model, api.limits().keepalive, delivery);
    let body = match plan {
        Some(plan) => plan.around(api, &mut head, body),
        None => axum::body::Body::new(body),
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
