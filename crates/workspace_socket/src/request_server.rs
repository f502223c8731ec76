//! Serves the requests of one client, wherever its connection ends: at this machine's socket, or
//! at another member of the cluster.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{
    ClientMessage, ServerMessage,
    client::{Attach, OfSession},
};
use tokio::task;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::{Outbox, OutboxClosed};
use workspace::{ClientId, Identity, Refusal};

use crate::{
    admission::Admission,
    allowed::allowed,
    answers::asker::{Answer, Asker},
    echoes::{Echoes, PendingAnswer},
    family::Family,
    lanes::{Lane, Lanes},
    message_slots::TakenSlot,
    moving,
    output_stream::OutputStream,
    policy::{Audience, Memory, Policy},
    project_watch::ProjectWatch,
    shares::{Share, Shares},
    table::{self, Work},
};

/// The refusal of a `detach` by a client that is not attached.
pub(crate) const NOT_ATTACHED: &str = "this connection is attached to no session";

/// The answer to a client that is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttachAnswer {
    Attached,
    Nothing,
}

/// Serves the requests of one client.
pub(crate) struct RequestServer {
    pub(crate) asker: Asker,
    pub(crate) echoes: Echoes,
    pub(crate) lanes: Lanes,
    stream: Option<OutputStream>,
    /// The name of this machine, which refusals to clients of other members contain.
    place: Option<Arc<str>>,
    gone: CancellationToken,
    /// Cancels `gone` when this is dropped, also if [`RequestServer::end`] was not called.
    _gone: DropGuard,
}

impl RequestServer {
    /// Serves a client whose answers go into `outbox`. `hears_events`: whether this machine sends it
    /// the events for all clients.
    pub(crate) fn new(
        admission: &Admission,
        client: ClientId,
        me: Identity,
        outbox: Outbox,
        hears_events: bool,
    ) -> Self {
        let asker = Asker {
            services: Arc::clone(&admission.services),
            me: Arc::new(me),
            client,
            outbox,
            watch: ProjectWatch::default(),
            shares: Shares::new(&admission.answers),
            attached: None,
            hears_events,
        };
        let gone = CancellationToken::new();
        Self {
            asker,
            echoes: Echoes::default(),
            lanes: Lanes::default(),
            stream: None,
            place: None,
            _gone: gone.clone().drop_guard(),
            gone,
        }
    }

    /// Puts the name of this machine into refusals, for a client of another member.
    pub(crate) fn at(self, place: Option<Arc<str>>) -> Self {
        Self { place, ..self }
    }

    /// Ends everything that only sends to the client. Returns the requests that are left.
    pub(crate) async fn end(self) -> Lanes {
        let Self { asker, stream, lanes, gone, .. } = self;
        gone.cancel();
        asker.watch.end_all();
        if let Some(stream) = stream {
            stream.end().await;
        }
        lanes
    }

    /// Serves a request of this client, if the client may send it. `done` is called once it is answered.
    pub(crate) async fn request(
        &mut self,
        message: ClientMessage,
        slot: Option<TakenSlot>,
        done: impl FnOnce() + Send + 'static,
    ) -> Result<(), OutboxClosed> {
        let policy = Policy::of(&message);
        let family = policy.family.clone();
        let mut checked = allowed(&self.asker.me, message.kind(), &policy);
        if checked.is_ok() {
            checked = moving::ready(&self.asker.services, &policy.target).await;
        }
        if let Err(refusal) = checked {
            let said = self.say(&family.refused(&refusal));
            done();
            return said;
        }
        let said = match table::serve(&self.asker, message) {
            Work::Done(answer) => self.answer(family, answer),
            Work::Later(lane, answering) => match self.lanes.room(lane) {
                Ok(()) => {
                    let place = self.place.clone();
                    let answering = async move {
                        answering.await.map_err(|refusal| placed(place.as_deref(), refusal))
                    };
                    // The lane calls `done`, behind the answer.
                    self.begin(lane, policy, answering.boxed(), slot, done);
                    return Ok(());
                }
                Err(refusal) => self.say(&family.refused(&refusal)),
            },
            Work::Attach(attach) => self.attach_as(&attach, AttachAnswer::Attached).await,
            Work::Detach => self.detach().await,
        };
        done();
        said
    }

    fn answer(&self, family: Family, answer: Answer) -> Result<(), OutboxClosed> {
        match answer {
            Ok(Some(answer)) => self.say(&answer),
            Ok(None) => Ok(()),
            Err(refusal) => self.say(&family.refused(&placed(self.place.as_deref(), refusal))),
        }
    }

    /// Puts a request into its lane, which has room for it. It is answered when its turn comes.
    fn begin(
        &mut self,
        lane: Lane,
        policy: Policy,
        answering: BoxFuture<'static, Answer>,
        slot: Option<TakenSlot>,
        done: impl FnOnce() + Send + 'static,
    ) {
        let slot = slot.filter(|_| policy.memory == Memory::Request);
        let pending = match policy.audience {
            Audience::Asker => None,
            Audience::Everyone => Some(self.echoes.pending()),
        };
        let (outbox, gone) = (self.asker.outbox.clone(), self.gone.clone());
        let shares = self.asker.shares.clone();
        let request =
            QueuedRequest { lane, policy, answering, slot, pending, shares, outbox, gone };
        let job = async move {
            if request.run().await {
                done();
            }
        };
        let put = self.lanes.put(lane, job.boxed());
        debug_assert!(put.is_ok(), "{put:?}");
    }

    /// Attaches a client to a session that another member ran until now. The client gets no answer.
    pub(crate) async fn attach_again(&mut self, attach: &Attach) -> Result<(), OutboxClosed> {
        self.attach_as(attach, AttachAnswer::Nothing).await
    }

    async fn attach_as(&mut self, attach: &Attach, said: AttachAnswer) -> Result<(), OutboxClosed> {
        let Asker { services, client, outbox, .. } = &self.asker;
        let id = attach.session_id;
        // Before the earlier session is let go: if there is no such session, the client stays attached to the
        // earlier one.
        let attachment = match services.sessions.attach(id, *client, attach.after_seq) {
            Ok(attachment) => attachment,
            Err(refusal) => return self.say(&Family::Plain.refused(&refusal)),
        };
        if self.asker.attached != Some(id) {
            self.asker.note("session.attach", &id.to_string(), "done");
        }
        let outbox = outbox.clone();
        self.let_go().await;
        if said == AttachAnswer::Attached {
            self.say(&ServerMessage::Attached(OfSession { session_id: id }))?;
        }
        self.asker.attached = Some(id);
        self.stream = Some(OutputStream::start(attachment, outbox));
        Ok(())
    }

    async fn detach(&mut self) -> Result<(), OutboxClosed> {
        let Some(stream) = &self.stream else {
            return self.say(&ServerMessage::error(NOT_ATTACHED));
        };
        let session_id = stream.session;
        self.let_go().await;
        self.say(&ServerMessage::Detached(OfSession { session_id }))
    }

    /// Ends the attachment to a session of this machine, if there is one. The result is the number
    /// of the newest output that the client was sent.
    pub(crate) async fn let_go(&mut self) -> Option<u64> {
        self.asker.attached = None;
        self.stream.take()?.end().await
    }

    /// Reports that a request ended in a fault of the program.
    pub(crate) fn failed(&self, error: &task::JoinError) -> Result<(), OutboxClosed> {
        tracing::error!(%error, "a request ended badly");
        self.say(&ServerMessage::error("it failed: the server's log says more"))
    }

    /// Sends a message at once.
    pub(crate) fn say(&self, message: &ServerMessage) -> Result<(), OutboxClosed> {
        self.asker.outbox.push(message.encode())
    }
}

/// A request in its lane.
struct QueuedRequest {
    lane: Lane,
    policy: Policy,
    answering: BoxFuture<'static, Answer>,
    /// The slot of a large request, until it is answered.
    slot: Option<TakenSlot>,
    /// Set if the answer is also announced to all clients.
    pending: Option<PendingAnswer>,
    shares: Shares,
    outbox: Outbox,
    /// Cancelled when the client has gone.
    gone: CancellationToken,
}

impl QueuedRequest {
    /// Carries out the request and sends its answer. Returns `false` if the request was given up.
    async fn run(self) -> bool {
        let Self { lane, policy, answering, slot, pending, shares, outbox, gone } = self;
        // Only queries wait for a share, and they are given up when the client has gone. A request
        // that changes something is carried out.
        let share = tokio::select! {
            biased;
            share = shares.of(policy.memory, &outbox) => share,
            () = gone.cancelled() => return false,
        };
        let Ok(share) = share else { return false };
        let answer = match lane {
            // A wait can be given up without loss, but only once it has begun. Everything else runs
            // to its end.
            Lane::Waits => tokio::select! {
                biased;
                answer = answering => answer,
                () = gone.cancelled() => return false,
            },
            _ => answering.await,
        };
        drop(slot);
        let answer = answer.unwrap_or_else(|refusal| Some(policy.family.refused(&refusal)));
        if let Some(answer) = answer
            && pending.is_none_or(|pending| pending.admit_answer(&answer))
        {
            send(&outbox, answer, share).await;
        }
        true
    }
}

/// A refusal with the name of this machine in its words.
fn placed(place: Option<&str>, refusal: Refusal) -> Refusal {
    let at = |words| match place {
        Some(place) => format!("on {place}: {words}"),
        None => words,
    };
    match refusal {
        Refusal::Invalid(words) => Refusal::Invalid(at(words)),
        Refusal::Failed(words) => Refusal::Failed(at(words)),
        other => other,
    }
}

/// Sends an answer once there is room for it. It is no error if the client has gone.
pub(crate) async fn send(outbox: &Outbox, answer: ServerMessage, share: Option<Share>) {
    let is_long = matches!(
        answer,
        ServerMessage::ProjectFileChunk(_)
            | ServerMessage::ProjectFileContent(_)
            | ServerMessage::GitDiffResult(_)
            | ServerMessage::History(_)
            | ServerMessage::Turns(_)
    );
    // A long answer would hold up the other connections of this thread.
    let text = match is_long {
        true => task::spawn_blocking(move || answer.encode()).await,
        false => Ok(answer.encode()),
    };
    let Ok(text) = text else { return };
    let share = share.map(|mut share| {
        share.made(text.len());
        share
    });
    if outbox.send(text).await.is_ok()
        && let Some(share) = share
    {
        let _gone = outbox.push_source(Box::new(share));
    }
}
