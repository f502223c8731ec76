//! One peer as a provider of the scheduler, and the jobs that it has.
//!
//! Lock order: the provider's lock, then the scheduler's. So methods that the scheduler calls under
//! its own lock only queue notes, and the provider's task handles these.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{Endpoint, JobId, ProviderId};
use http::{Method, StatusCode};
use protocol::{
    mesh::{
        ClusterMessage, WireId,
        cluster::{ErrorCode, InferenceCancel, InferenceRequest},
    },
    openai::error_body,
};
use rand::RngExt;
use scheduler::{Assignment, JobRequest};
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};
use wire::until;

use super::{
    Shared,
    peer_job::PeerJob,
    request,
    sender::{Note, Sender},
    state::ProviderState,
    status::PeerStatus,
};
use crate::{
    link::{Carrier, INLINE_LIMIT, Link},
    peer::Peer,
};

/// The time limit for opening a link to a peer that has none.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// One peer as a provider.
pub(super) struct PeerProvider {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    state: Mutex<ProviderState>,
    /// Notified when the peer has reported its load.
    load_changed: Notify,
}

impl PeerProvider {
    /// Joins the scheduler for a peer.
    pub(super) fn join(shared: &Arc<Shared>, peer: &Arc<Peer>, status: PeerStatus) -> Arc<Self> {
        let provider = Arc::new(Self {
            shared: Arc::clone(shared),
            peer: Arc::clone(peer),
            state: Mutex::default(),
            load_changed: Notify::new(),
        });
        let (sender, notes) = Sender::new(&peer.id);
        let id = ProviderId::from_random(rand::rng().random());
        tracing::info!(%id, peer = %peer.id.short(), models = status.models.len(),
            capacity = status.capacity, distance = status.distance.as_str(), "a peer serves");
        let membership = shared.scheduler.join(id, status.offer(), Arc::new(sender));
        membership.condition(status.speed, status.throttle);
        let mut state = provider.lock();
        (state.membership, state.reported) = (Some(membership), Some(status));
        drop(state);
        // Started last, since the notes are about a membership that must be set by then. Until then
        // they wait in their queue.
        shared.machine.tasks.spawn(Arc::clone(&provider).run(notes));
        provider
    }

    /// Reports the peer's status to the scheduler. With `None` the peer leaves it. Returns whether
    /// the provider stays.
    pub(super) fn update(&self, status: Option<PeerStatus>) -> bool {
        let mut state = self.lock();
        let Some(mut status) = status else {
            state.leave(&self.peer);
            return false;
        };
        if !status.is_serving() {
            if state.jobs.is_empty() {
                state.leave(&self.peer);
                return false;
            }
            // It gets no new jobs, and may finish those that it has.
            status.throttle = 0;
        }
        state.report(status);
        self.load_changed.notify_one();
        true
    }

    /// Handles a part of an answer. Returns whether a job waits for it.
    pub(super) fn answered(&self, link: &Arc<Link>, message: ClusterMessage) -> bool {
        let mut state = self.lock();
        match message {
            ClusterMessage::InferenceChunk(chunk) => {
                let Some(job) = state.job_on(link, &chunk.request_id) else { return false };
                if let Err(trouble) = job.chunk(&chunk)
                    && let Some(job) = state.take(&chunk.request_id)
                {
                    self.stop(&state, link, chunk.request_id);
                    job.give_up(trouble);
                }
            }
            ClusterMessage::InferenceComplete(complete) => {
                let Some(job) = state.take_on(link, &complete.request_id) else { return false };
                job.complete(&complete, link.warren);
            }
            ClusterMessage::InferenceError(error) => {
                let Some(job) = state.take_on(link, &error.request_id) else { return false };
                if error.code == Some(ErrorCode::QueueFull) {
                    // Marked before the job is passed on. Otherwise it would come back to this peer.
                    state.mark_full();
                    self.load_changed.notify_one();
                }
                job.error(&error);
            }
            _ => return false,
        }
        true
    }

    /// Handles a part of an answer that makes no sense: the rest is of no use, so the job fails.
    pub(super) fn garbled(&self, link: &Arc<Link>, id: &WireId, why: &str) {
        let mut state = self.lock();
        let Some(job) = state.take_on(link, id) else { return };
        self.stop(&state, link, id.clone());
        job.fail(why);
    }

    /// Handles the end of a link: the jobs that were sent over it fail. A provider that has left
    /// has no jobs any more.
    pub(super) fn link_closed(&self, link: &Link) {
        let mut state = self.lock();
        let on = state.jobs.iter().filter(|(_, job)| job.is_on(link));
        let lost: Vec<_> = on.map(|(id, _)| id.clone()).collect();
        for id in lost {
            if let Some(job) = state.take(&id) {
                job.fail("the link to the peer was lost");
            }
        }
    }

    /// Handles the scheduler's calls until the scheduler drops its end.
    async fn run(self: Arc<Self>, mut notes: mpsc::Receiver<Note>) {
        loop {
            let load_until = self.lock().load_until();
            tokio::select! {
                biased;
                () = until(load_until) => self.lock().forget_load(),
                // The loop only has to look at the new deadline.
                () = self.load_changed.notified() => {}
                note = notes.recv() => match note {
                    Some(Note::Assigned(assignment)) => self.assigned(*assignment),
                    Some(Note::Canceled(job)) => self.canceled(job),
                    None => return,
                },
            }
        }
    }

    fn assigned(self: &Arc<Self>, assignment: Assignment) {
        let Assignment { job, request, endpoint, answer: writer, .. } = assignment;
        let peer_job = PeerJob::new(job, writer, request.streaming);
        if request.method != Method::POST {
            let words = "whoever answered this cannot be asked with this method";
            let body = error_body(words, "invalid_request_error", None, None);
            return peer_job.pass_on(StatusCode::NOT_IMPLEMENTED, body);
        }
        if endpoint != Endpoint::ChatCompletions {
            return peer_job.unserved();
        }
        let id = request::new_id();
        let mut state = self.lock();
        if state.left {
            return peer_job.abandon();
        }
        state.ids.insert(job, id.clone());
        state.jobs.insert(id.clone(), peer_job);
        drop(state);
        self.ask(id, request);
    }

    /// Sends the request: at once if there is a link and the request is small, and otherwise from a
    /// task of its own.
    fn ask(self: &Arc<Self>, id: WireId, request: Arc<JobRequest>) {
        match self.link() {
            Some(link) if request.body.len() <= INLINE_LIMIT => {
                let message = request::message(id.clone(), &request, link.warren);
                self.send(&id, &link, message);
            }
            _ => {
                drop(self.shared.machine.tasks.spawn(Arc::clone(self).ask_later(id, request)));
            }
        }
    }

    async fn ask_later(self: Arc<Self>, id: WireId, request: Arc<JobRequest>) {
        let link = match self.reach().await {
            Ok(link) => link,
            Err(why) => return self.fail(&id, &why),
        };
        let (own, warren) = (id.clone(), link.warren);
        let making = move || request::message(own, &request, warren);
        match tokio::task::spawn_blocking(making).await {
            Ok(message) => self.send(&id, &link, message),
            Err(_) => self.fail(&id, "the request could not be worked on"),
        }
    }

    /// The link over which requests may go, if there is one.
    fn link(&self) -> Option<Arc<Link>> {
        self.peer.link().filter(|link| self.shared.machine.may_ask_over(link))
    }

    async fn reach(&self) -> Result<Arc<Link>, String> {
        if let Some(link) = self.link() {
            return Ok(link);
        }
        match timeout(REACHED_WITHIN, self.shared.wan.reach(&self.peer)).await {
            Ok(Ok(link)) if self.shared.machine.may_ask_over(&link) => Ok(link),
            Ok(Ok(_)) => Err("the peer has not proved the passcode, and is not trusted".to_owned()),
            Ok(Err(why)) => Err(format!("the peer cannot be reached: {why}")),
            Err(_) => Err("the peer cannot be reached: it did not answer in time".to_owned()),
        }
    }

    fn send(&self, id: &WireId, link: &Arc<Link>, message: Result<InferenceRequest, String>) {
        let mut state = self.lock();
        // The job may have been cancelled meanwhile.
        let Some(job) = state.jobs.get_mut(id) else { return };
        // Set before the message is sent, so that its answer finds the job.
        job.link = Some(Arc::clone(link));
        let sent = message.and_then(|message| {
            let sent = link.tell(&ClusterMessage::InferenceRequest(message));
            sent.map_err(|_| "the link to the peer was lost".to_owned())
        });
        if let Err(why) = sent
            && let Some(job) = state.take(id)
        {
            job.fail(&why);
        }
    }

    fn fail(&self, id: &WireId, why: &str) {
        let job = self.lock().take(id);
        if let Some(job) = job {
            job.fail(why);
        }
    }

    fn canceled(&self, job: JobId) {
        let mut state = self.lock();
        let Some(id) = state.ids.get(&job).cloned() else { return };
        let Some(job) = state.take(&id) else { return };
        if let Some(link) = &job.link {
            self.stop(&state, link, id);
        }
        job.abandon();
    }

    /// Tells the peer to stop answering. Stock peers know no message for that. So a relay session
    /// that is not needed otherwise is closed, and on the LAN the rest of the answer is ignored.
    fn stop(&self, state: &ProviderState, link: &Arc<Link>, request_id: WireId) {
        if link.warren {
            // If the link is closed, the answer has stopped already.
            let _ = link.tell(&ClusterMessage::InferenceCancel(InferenceCancel { request_id }));
            return;
        }
        let idle = !state.jobs.values().any(|job| job.is_on(link));
        let is_relayed = matches!(link.carrier, Carrier::Relay(_));
        if idle && is_relayed && !self.shared.inbound.answers_on(link) {
            link.close("what was asked over it is not wanted any more");
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
