//! The interface of a provider connection.

use std::{sync::Arc, time::Duration};

use base::{Endpoint, Endpoints, JobId, ModelName, ProviderId};
pub use dispatch::Offer;
use dispatch::{CancelReason, Distance, Input, LeaveReason};

use crate::{exchange::writer::AnswerWriter, job::JobRequest, service::Scheduler, terms::Terms};

/// A provider connection. Its methods are called under the scheduler's lock: they put a message
/// somewhere and return, and never call the scheduler back.
pub trait Provider: Send + Sync {
    /// The name it gave itself, for people.
    fn name(&self) -> &str;

    /// Serve this job.
    fn assign(&self, assignment: Assignment);

    /// Stop working on this job. Its slot is already free, unless this provider lingers
    /// ([`Offer::lingers`]): then it is free once [`Membership::ceased`] says so.
    fn cancel(&self, job: JobId, reason: CancelReason);

    /// No more jobs will be assigned; those in flight may finish within `grace`.
    fn drain(&self, reason: &str, grace: Duration);

    /// The drain is over: close the connection. `clean`: nothing had to be cancelled.
    fn retire(&self, clean: bool);

    /// Announce the models again.
    fn refresh(&self, reason: &str);

    /// On which terms it serves jobs for this model, one of those it offers.
    fn terms(&self, model: ModelName) -> Terms {
        Terms { model, edit: None }
    }
}

/// A job for one provider.
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// How often the job was assigned before.
    pub attempt: u32,
    /// What to send.
    pub request: Arc<JobRequest>,
    /// The endpoint that it asks for.
    pub endpoint: Endpoint,
    /// Whether the job could be served in another shape, should this endpoint not be there.
    pub alternatives: bool,
    /// Where the answer goes.
    pub answer: AnswerWriter,
}

/// A provider's place at the scheduler: it leaves when this is dropped.
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

    /// It serves these models from now on, and counts this load itself.
    pub fn models(&self, models: Vec<ModelName>, load: u32) {
        self.scheduler.models_of(self.id, models, load);
    }

    /// It counts this load itself.
    pub fn load(&self, load: u32) {
        self.scheduler.handle(Input::Load { provider: self.id, load });
    }

    /// It takes this many jobs at once from now on. Jobs that it has stay.
    pub fn capacity(&self, max_concurrent: u32) {
        self.scheduler.handle(Input::Capacity { provider: self.id, max_concurrent });
    }

    /// It is this far away from now on.
    pub fn distance(&self, distance: Distance) {
        self.scheduler.handle(Input::Moved { provider: self.id, distance });
    }

    /// How it says it is doing: its speed, in thousandths of a token a second, which counts until
    /// its own answers tell, and how much of it it gives, in per cent. At 0 it is paused: given
    /// nothing until it says otherwise.
    pub fn condition(&self, speed: Option<u32>, throttle: u8) {
        self.scheduler.handle(Input::Condition { provider: self.id, speed, throttle });
    }

    /// It serves these endpoints from now on.
    pub fn endpoints(&self, endpoints: Endpoints) {
        self.scheduler.handle(Input::Endpoints { provider: self.id, endpoints });
    }

    /// It no longer works on a cancelled job.
    pub fn ceased(&self, job: JobId) {
        self.scheduler.handle(Input::Ceased { job, provider: self.id });
    }

    /// It is gone, and why.
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
