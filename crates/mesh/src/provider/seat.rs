//! The place of one peer, and the jobs that it has.
//!
//! Lock order: the place's, then the scheduler's. What the scheduler calls under its own lock leaves
//! notes, which the place's task takes in.

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
    time::{Instant, sleep_until, timeout},
};

use super::{
    Shared,
    peer_job::PeerJob,
    request::{self, WORKED_ON_AT_ONCE},
    sender::{Note, Sender},
    state::ProviderState,
    wanted::Wanted,
};
use crate::{
    link::{Carrier, Link},
    peer::Peer,
};

/// So long a link to a peer may take that has none.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// The place of one peer.
pub(super) struct Seat {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    state: Mutex<ProviderState>,
    /// Notified when the peer has reported its load.
    load_told: Notify,
}

impl Seat {
    /// Takes a place for a peer.
    pub(super) fn join(shared: &Arc<Shared>, peer: &Arc<Peer>, wanted: Wanted) -> Arc<Self> {
        let seat = Arc::new(Self {
            shared: Arc::clone(shared),
            peer: Arc::clone(peer),
            state: Mutex::default(),
            load_told: Notify::new(),
        });
        let (sender, notes) = Sender::new(&peer.id);
        let id = ProviderId::from_random(rand::rng().random());
        tracing::info!(%id, peer = %peer.id.short(), models = wanted.models.len(),
            capacity = wanted.capacity, distance = wanted.distance.as_str(), "a peer serves");
        let membership = shared.scheduler.join(id, wanted.offer(), Arc::new(sender));
        membership.condition(wanted.speed, wanted.throttle);
        let mut state = seat.lock();
        (state.membership, state.told) = (Some(membership), Some(wanted));
        drop(state);
        shared.tasks.spawn(Arc::clone(&seat).run(notes));
        seat
    }

    /// Tells the scheduler what the peer is now. Whether it keeps its place.
    pub(super) fn adjust(&self, wanted: Option<Wanted>) -> bool {
        let mut state = self.lock();
        let Some(mut wanted) = wanted else {
            state.leave(&self.peer);
            return false;
        };
        if !wanted.is_worth_a_seat() {
            if state.asked.is_empty() {
                state.leave(&self.peer);
                return false;
            }
            // What it has, it may finish.
            wanted.throttle = 0;
        }
        state.tell(wanted);
        self.load_told.notify_one();
        true
    }

    /// Takes in a part of an answer. Whether anybody waits for it.
    pub(super) fn answered(&self, link: &Arc<Link>, message: ClusterMessage) -> bool {
        let mut state = self.lock();
        match message {
            ClusterMessage::InferenceChunk(chunk) => {
                let Some(asked) = state.on(link, &chunk.request_id) else { return false };
                if let Err(trouble) = asked.chunk(&chunk)
                    && let Some(asked) = state.take(&chunk.request_id)
                {
                    self.stop(&state, link, chunk.request_id);
                    asked.give_up(trouble);
                }
            }
            ClusterMessage::InferenceComplete(complete) => {
                let Some(asked) = state.take_on(link, &complete.request_id) else { return false };
                asked.complete(&complete, link.warren);
            }
            ClusterMessage::InferenceError(error) => {
                let Some(asked) = state.take_on(link, &error.request_id) else { return false };
                if error.code == Some(ErrorCode::QueueFull) {
                    state.mark_full();
                    self.load_told.notify_one();
                }
                asked.error(&error);
            }
            _ => return false,
        }
        true
    }

    /// A part of an answer came that makes no sense: what is left of it is no answer.
    pub(super) fn garbled(&self, link: &Arc<Link>, id: &WireId, why: &str) {
        let mut state = self.lock();
        let Some(asked) = state.take_on(link, id) else { return };
        self.stop(&state, link, id.clone());
        asked.fail(why);
    }

    /// Ends the requests over this link as failed, unless the place was given up with it.
    pub(super) fn link_closed(&self, link: &Link) {
        let mut state = self.lock();
        let on = state.asked.iter().filter(|(_, asked)| asked.is_on(link));
        let lost: Vec<_> = on.map(|(id, _)| id.clone()).collect();
        for id in lost {
            if let Some(asked) = state.take(&id) {
                asked.fail("the link to the peer was lost");
            }
        }
    }

    /// Until the scheduler has let go of it.
    async fn run(self: Arc<Self>, mut notes: mpsc::Receiver<Note>) {
        loop {
            let load_until = self.lock().load_until();
            tokio::select! {
                biased;
                () = at(load_until) => self.lock().forget_load(),
                () = self.load_told.notified() => {}
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
        let asked = PeerJob::new(job, writer, request.streaming);
        if request.method != Method::POST {
            let words = "whoever answered this cannot be asked with this method";
            let body = error_body(words, "invalid_request_error", None, None);
            return asked.pass_on(StatusCode::NOT_IMPLEMENTED, body);
        }
        if endpoint != Endpoint::ChatCompletions {
            return asked.unserved();
        }
        let id = request::new_id();
        let mut state = self.lock();
        if state.left {
            return asked.abandon();
        }
        state.ids.insert(job, id.clone());
        state.asked.insert(id.clone(), asked);
        drop(state);
        self.ask(id, request);
    }

    /// At once, where there is a link and little to do.
    fn ask(self: &Arc<Self>, id: WireId, request: Arc<JobRequest>) {
        match self.shared.link(&self.peer) {
            Some(link) if request.body.len() <= WORKED_ON_AT_ONCE => {
                let message = request::message(id.clone(), &request, link.warren);
                self.send(&id, &link, message);
            }
            _ => drop(self.shared.tasks.spawn(Arc::clone(self).ask_later(id, request))),
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

    async fn reach(&self) -> Result<Arc<Link>, String> {
        if let Some(link) = self.shared.link(&self.peer) {
            return Ok(link);
        }
        let node = self.shared.node.upgrade().ok_or("this machine leaves the mesh")?;
        match timeout(REACHED_WITHIN, Arc::clone(&node).reach(Arc::clone(&self.peer))).await {
            Ok(Ok(link)) if node.may_ask_over(&link) => Ok(link),
            Ok(Ok(_)) => Err("the peer has not proved the passcode, and is not trusted".to_owned()),
            Ok(Err(why)) => Err(format!("the peer cannot be reached: {why}")),
            Err(_) => Err("the peer cannot be reached: it did not answer in time".to_owned()),
        }
    }

    fn send(&self, id: &WireId, link: &Arc<Link>, message: Result<InferenceRequest, String>) {
        let mut state = self.lock();
        // It may have been cancelled meanwhile.
        let Some(asked) = state.asked.get_mut(id) else { return };
        asked.link = Some(Arc::clone(link));
        let told = match message {
            Ok(message) => link
                .tell(&ClusterMessage::InferenceRequest(message))
                .map_err(|_| "the link to the peer was lost".to_owned()),
            Err(why) => Err(why),
        };
        if let (Err(why), Some(asked)) =
            (told.as_ref(), told.is_err().then(|| state.take(id)).flatten())
        {
            asked.fail(why);
        }
    }

    fn fail(&self, id: &WireId, why: &str) {
        let asked = self.lock().take(id);
        if let Some(asked) = asked {
            asked.fail(why);
        }
    }

    fn canceled(&self, job: JobId) {
        let mut state = self.lock();
        let Some(id) = state.ids.get(&job).cloned() else { return };
        let Some(asked) = state.take(&id) else { return };
        if let Some(link) = &asked.link {
            self.stop(&state, link, id);
        }
        asked.abandon();
    }

    /// Has the peer stop answering. Stock peers know no word for it: a relay session that nothing
    /// else needs is closed, and on the LAN what still comes is passed over.
    fn stop(&self, state: &ProviderState, link: &Arc<Link>, request_id: WireId) {
        if link.warren {
            // A closed link has stopped it already.
            let _ = link.tell(&ClusterMessage::InferenceCancel(InferenceCancel { request_id }));
            return;
        }
        let idle = !state.asked.values().any(|asked| asked.is_on(link));
        let answers = || {
            let node = self.shared.node.upgrade();
            node.is_some_and(|node| node.answers_on(link))
        };
        if idle && matches!(link.carrier, Carrier::Relay(_)) && !answers() {
            link.close("what was asked over it is not wanted any more");
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until then, if ever.
async fn at(then: Option<Instant>) {
    match then {
        Some(then) => sleep_until(then).await,
        None => std::future::pending().await,
    }
}
