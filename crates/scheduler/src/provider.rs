//! The interface of a provider connection.

use std::{sync::Arc, time::Duration};

use base::{
    Endpoint, Endpoints, FactsByModel, JobId, LoadState, ModelFacts, ModelName, ProviderId,
};
pub use dispatch::Offer;
use dispatch::{CancelReason, Distance, Input, LeaveReason, Unloaded};

pub use crate::model_change::{ModelChange, ModelChangeEnd, ModelChangeError};
use crate::{exchange::writer::AnswerWriter, job::JobRequest, service::Scheduler};

/// A load that is said to take longer than this counts as taking this long.
const LONGEST_LOAD: Duration = Duration::from_secs(3_600);

/// A provider connection. Its methods are called under the scheduler's lock: they queue a message
/// and return, and never call the scheduler back.
pub trait Provider: Send + Sync {
    /// The name it gave itself, for people.
    fn name(&self) -> &str;

    /// The name of the server that it is connected to, if that is a fellow.
    fn fellow(&self) -> Option<&str> {
        None
    }

    /// The provider is to serve this job.
    fn assign(&self, assignment: Assignment);

    /// The provider is to stop working on this job. Its slot is already free, unless this provider
    /// lingers ([`Offer::lingers`]): then [`Membership::ceased`] frees it.
    fn cancel(&self, job: JobId, reason: CancelReason);

    /// No more jobs will be assigned to it. Its present jobs may finish within `grace`.
    fn drain(&self, reason: &str, grace: Duration);

    /// The drain is over, and the provider is to close the connection. `clean` says that no job had
    /// to be cancelled.
    fn retire(&self, clean: bool);

    /// The provider is to announce its models again.
    fn refresh(&self, reason: &str);

    /// The known facts about its models, by name. They say how the provider can resume others'
    /// answers, if it can ([`ModelFacts::continuation`]).
    fn facts(&self) -> Arc<FactsByModel> {
        Arc::default()
    }

    /// Whether it loads and unloads models on request.
    fn loads_models(&self) -> bool {
        false
    }

    /// The provider is to load a model, or unload it.
    fn change_model(&self, change: ModelChange) {
        change.end(Err(ModelChangeError::NotItsWork));
    }

    /// The terms on which it serves jobs for this model, one of those that it offers.
    fn terms(&self, model: ModelName) -> Terms {
        Terms { model, edit: None }
    }
}

/// The terms on which a provider serves a job.
pub struct Terms {
    /// The model by the provider's own name, since one model may be offered under several names.
    pub model: ModelName,
    /// A further change to the requests that it gets.
    pub edit: Option<Arc<dyn RequestEdit>>,
}

/// A provider's change to the requests that it gets. It is made when a job is assigned, after any
/// translation; the job keeps the client's bytes.
pub trait RequestEdit: Send + Sync {
    /// The request as the provider gets it, at this endpoint.
    fn apply(&self, request: Arc<JobRequest>, endpoint: Endpoint) -> Arc<JobRequest>;
}

/// A job for one provider.
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// How often the job was assigned before.
    pub attempt: u32,
    /// The request to send.
    pub request: Arc<JobRequest>,
    /// The endpoint of the request.
    pub endpoint: Endpoint,
    /// The other endpoints at which the job could be served, if the provider lacks this one.
    pub alternatives: Endpoints,
    /// The writing end of the job's exchange.
    pub answer: AnswerWriter,
}

/// A provider's registration with the scheduler: dropping it makes the provider leave.
pub struct Membership {
    scheduler: Scheduler,
    id: ProviderId,
    left: bool,
}

impl Membership {
    pub(crate) fn new(scheduler: Scheduler, id: ProviderId) -> Self {
        Self { scheduler, id, left: false }
    }

    /// The provider's id.
    pub fn id(&self) -> ProviderId {
        self.id
    }

    /// Sets the models that it serves from now on, and the load that it counts itself. An empty
    /// list means that it serves none for now; see [`Membership::no_models`].
    pub fn models(&self, models: Vec<ModelName>, load: u32) {
        let whole = !models.is_empty();
        self.scheduler.models_of(self.id, models, load, whole);
    }

    /// Reports that it has no models at all any more, and sets the load that it counts itself.
    pub fn no_models(&self, load: u32) {
        self.scheduler.models_of(self.id, Vec::new(), load, true);
    }

    /// Sets which of its models it does not have in memory, and with which it can resume answers of
    /// others, by these facts. Call this before [`Membership::models`], which dispatches waiting
    /// jobs.
    pub fn memory(&self, facts: &FactsByModel) {
        let goes_on = |(model, facts): (&String, &ModelFacts)| {
            facts.continuation.map(|_| ModelName::from(model.as_str()))
        };
        let models = facts.iter().filter_map(goes_on).collect();
        self.scheduler.handle(Input::Continues { provider: self.id, models });
        let models = facts.iter().filter_map(unloaded).collect();
        self.scheduler.handle(Input::Unloaded { provider: self.id, models });
    }

    /// Sets the load that the provider counts itself.
    pub fn load(&self, load: u32) {
        self.scheduler.handle(Input::Load { provider: self.id, load });
    }

    /// Sets how many jobs it takes at once. Its current jobs stay.
    pub fn capacity(&self, max_concurrent: u32) {
        self.scheduler.handle(Input::Capacity { provider: self.id, max_concurrent });
    }

    /// Sets how far away it is.
    pub fn distance(&self, distance: Distance) {
        self.scheduler.handle(Input::Moved { provider: self.id, distance });
    }

    /// Sets its own report of its condition: its speed, in thousandths of a token a second, and the
    /// share of that speed which it gives, in per cent. The speed counts until its answers have
    /// been measured. At 0 per cent it is paused: it gets no jobs until it reports another share.
    pub fn condition(&self, speed: Option<u32>, throttle: u8) {
        self.scheduler.handle(Input::Condition { provider: self.id, speed, throttle });
    }

    /// Sets the endpoints that it serves from now on.
    pub fn endpoints(&self, endpoints: Endpoints) {
        self.scheduler.handle(Input::Endpoints { provider: self.id, endpoints });
    }

    /// Reports that it has a job, if it acknowledges jobs ([`Offer::acknowledges`]).
    pub fn acknowledged(&self, job: JobId) {
        self.scheduler.handle(Input::Acknowledged { job, provider: self.id });
    }

    /// Reports that it has stopped working on a cancelled job.
    pub fn ceased(&self, job: JobId) {
        self.scheduler.handle(Input::Ceased { job, provider: self.id });
    }

    /// Leaves the scheduler, for this reason.
    pub fn leave(mut self, why: LeaveReason) {
        self.left = true;
        self.scheduler.leave(self.id, why);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if !self.left {
            self.scheduler.leave(self.id, LeaveReason::Closed);
        }
    }
}

/// The dispatcher's entry for a model, if the facts say that it is not in memory.
fn unloaded((model, facts): (&String, &ModelFacts)) -> Option<Unloaded> {
    let is_loading = match facts.load? {
        LoadState::Loaded => return None,
        LoadState::Loading => true,
        LoadState::Unloaded => false,
    };
    let takes = facts.load_ms.map(Duration::from_millis).map(|takes| takes.min(LONGEST_LOAD));
    Some(Unloaded { model: model.as_str().into(), is_loading, takes })
}
