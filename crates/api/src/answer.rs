//! From a job to the response of its client.

use std::{sync::Arc, time::Duration};

use access::Key;
use axum::response::Response;
use base::{Endpoint, Endpoints, KeyId, ModelName, ResumeAnswers, Scope};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use rooms::Room;
use scheduler::{Answer, Ending, Failure, Head, Job, Route};

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

/// A request that is admitted and has become a job.
pub(crate) struct AdmittedJob {
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
    /// The plan for its response, if the response has state at this server.
    pub(crate) plan: Option<Box<Plan>>,
}

impl AdmittedJob {
    /// A job whose request asks for nothing special in its answer.
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

    /// Whether its client may know the names of machines: strangers may not, nor may anybody in a room.
    fn names_workers(&self) -> bool {
        let is_known = self.admission.key().is_some() || self.job.key == KeyId::local();
        self.room.is_none() && is_known
    }

    /// Whether it makes a response of the Responses API, rather than asks about an earlier one.
    fn makes_response(&self) -> bool {
        self.shape.endpoint() == Endpoint::Responses && self.job.request.method == Method::POST
    }
}

/// Submits a job and returns the response to its client, or the failure of a job whose answer never began.
pub(crate) async fn answer(api: &Api, accepted: AdmittedJob) -> Result<Response, ApiError> {
    let (names_workers, makes) = (accepted.names_workers(), accepted.makes_response());
    let every = if accepted.may_be_early { api.limits().keepalive } else { Duration::ZERO };
    let AdmittedJob { shape, job, admission, room, plan, takes_trailers, .. } = accepted;
    let (id, model) = (job.id, job.model.clone());
    let search = Search::of(api, shape, &job, admission.key(), room.clone());
    let mut answer: Answer = api.scheduler().submit(job);
    let standing = admission.submitted();
    let waiting = Early::new(accepted.translation, accepted.memory, names_workers);
    let begun = begin(&mut answer, shape, every, waiting).await;
    let failed =
        |failure| ApiError { standing: Some(Box::new(standing)), ..search.error(&failure) };
    let Begun { mut head, early, memory } = begun.map_err(failed)?;
    let trailers = takes_trailers && (early.is_some() || answer.may_be_resumed());
    put_resume(&mut head.headers, answer.may_be_resumed(), trailers);
    head::drop_bad_length(&mut head.headers);
    if room.is_some() {
        head::keep_content_only(&mut head.headers);
    }
    put_standing(&mut head.headers, shape.endpoint(), &standing);
    // Later requests about this response go to the participant that made it, so its maker is recorded.
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

/// An answer whose client gets a head now.
struct Begun {
    head: Head,
    /// Present if the provider has sent no head yet.
    early: Option<Early>,
    /// The memory of its request, if another provider may have to go on with the answer.
    memory: Option<HeldMemory>,
}

/// Waits for the provider's head. If it has not come after `every`, the client gets a head of this server instead;
/// an `every` of zero waits without end.
async fn begin(
    answer: &mut Answer,
    shape: &dyn Shape,
    every: Duration,
    mut waiting: Early,
) -> Result<Begun, Failure> {
    let Some(head) = head_within(answer, every).await else {
        return Ok(Begun { head: stream_head(shape), early: Some(waiting), memory: None });
    };
    let head = head?;
    waiting.begun(answer);
    if answer.comes_whole() {
        // The client could read nothing before that anyway, and until then a failure can still set the status.
        answer.first_byte().await?;
    }
    Ok(Begun { head, early: None, memory: waiting.memory.take() })
}

/// Where a request looked for a provider, for the words of its failure.
struct Search<'a> {
    api: &'a Api,
    model: ModelName,
    known: Known<'a>,
    untranslated: Lookup,
}

impl<'a> Search<'a> {
    fn of(
        api: &'a Api,
        shape: &dyn Shape,
        job: &Job,
        key: Option<Arc<Key>>,
        room: Option<Arc<Room>>,
    ) -> Self {
        let known = Known { api, key, room };
        Self { api, model: job.model.clone(), known, untranslated: Lookup::of(shape, job) }
    }

    /// The error of a job that failed before its answer began.
    fn error(&self, failure: &Failure) -> ApiError {
        let error = ApiError::of_failure(failure, self.model.as_str());
        match failure.ending {
            Ending::NoProvider => match self.gone_from() {
                Some(place) => error.gone_from(&place),
                None => error.with_nearest(&self.known.nearest(&self.model)),
            },
            Ending::NotServed => self.untranslated.unserved(self.api, error),
            _ => error,
        }
    }

    fn gone_from(&self) -> Option<String> {
        self.known.room.is_none().then(|| served::gone_from(self.api, &self.model)).flatten()
    }
}

/// Where a request looked for a provider; `None` for an endpoint whose requests can be translated.
struct Lookup(Option<(Endpoint, Scope, Vec<ModelName>, Route)>);

impl Lookup {
    fn of(shape: &dyn Shape, job: &Job) -> Self {
        let endpoint = Some(shape.endpoint()).filter(|endpoint| endpoint.is_untranslated());
        let all = |endpoint| (endpoint, job.scope.clone(), job.targets.clone(), job.route);
        Self(endpoint.map(all))
    }

    /// The error of a request whose endpoint no provider serves. Its words name the endpoints that they do serve.
    fn unserved(&self, api: &Api, error: ApiError) -> ApiError {
        let Some((endpoint, scope, targets, route)) = &self.0 else { return error };
        let served = targets.iter().map(|model| api.scheduler().endpoints(scope, model, *route));
        let served = served.fold(Endpoints::NONE, Endpoints::union);
        if served.is_empty() { error } else { error.with_served(*endpoint, served) }
    }
}

/// Adds the headers that say that another provider may go on with the answer, and that a trailer follows.
fn put_resume(headers: &mut HeaderMap, may_be_resumed: bool, trailers: bool) {
    if may_be_resumed {
        let how = HeaderValue::from_static(ResumeAnswers::SameModel.as_str());
        headers.insert(HeaderName::from_static(head::RESUME), how);
    }
    if trailers {
        headers.insert(header::TRAILER, HeaderValue::from_static(RESUMED));
    }
}
