//! One authenticated connection.
//!
//! - `news`: events for all clients

mod news;

use std::{pin::pin, sync::Arc, sync::atomic::Ordering, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{
    ClientMessage, ServerMessage,
    client::{Attach, OfSession},
    limits::MAX_MESSAGE,
};
use tokio::{
    sync::{OwnedSemaphorePermit, broadcast::Receiver},
    task,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Span;
use wire::{Frame, Link, LinkError, Outbox};
use workspace::{ClientId, Event};

use super::{
    admission::Admission,
    allowed::allowed,
    answers::asker::{Answer, Asker},
    bucket::Bucket,
    echoes::Echoes,
    family::Family,
    gate::Gate,
    greeting::{Admitted, Credential},
    lanes::{Lane, Lanes},
    places::TakenPlace,
    policy::{Audience, Memory, Policy},
    reading,
    shares::{Share, Shares},
    stream::Stream,
    table::{self, Work},
    watching::Watching,
};

/// The interval of pings, and of the checks in [`Client::tick`].
const TICK: Duration = Duration::from_secs(15);
/// Messages longer than this, in bytes, are decoded on another thread.
const LONG: usize = 256 * 1024;
/// The unread answers, in bytes, at which the server stops reading from a client.
const UNREAD: usize = 2 * 1024 * 1024;

/// Why a connection ends.
enum End {
    /// The server closes it.
    Goodbye(u16, &'static str),
    Closed,
    /// The link broke.
    Broken(LinkError),
}

pub(super) struct Client {
    asker: Asker,
    admission: Arc<Admission>,
    credential: Arc<Credential>,
    link: Link,
    gate: Arc<Gate>,
    bucket: Bucket,
    /// Nothing is read before this time, because the client has sent too fast.
    paused: Option<Instant>,
    events: Receiver<Event>,
    /// Whether it has missed an event for all clients.
    has_missed: bool,
    stream: Option<Stream>,
    lanes: Lanes,
    echoes: Echoes,
    ticks: Interval,
    gone: CancellationToken,
    /// Cancels `gone` when the client is dropped, also if [`Client::run`] did not come to its end.
    _gone: DropGuard,
    counted: Counted,
    _place: OwnedSemaphorePermit,
}

impl Client {
    pub(super) fn new(
        admission: &Arc<Admission>,
        admitted: Admitted,
        mut link: Link,
        outbox: Outbox,
        gate: Arc<Gate>,
    ) -> Self {
        link.set_max_message(MAX_MESSAGE);
        let client = admission.next_client();
        let services = &admission.services;
        let asker = Asker {
            services: Arc::clone(services),
            me: Arc::new(admitted.me),
            client,
            outbox,
            watching: Watching::default(),
            shares: Shares::new(&admission.answers),
            attached: None,
        };
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let gone = CancellationToken::new();
        Self {
            asker,
            credential: Arc::new(admitted.credential),
            link,
            gate,
            bucket: Bucket::new(admission.message_rate, Instant::now().into_std()),
            paused: None,
            events: services.events.subscribe(),
            has_missed: false,
            stream: None,
            lanes: Lanes::default(),
            echoes: Echoes::default(),
            ticks,
            _gone: gone.clone().drop_guard(),
            gone,
            counted: Counted::new(admission, client),
            admission: Arc::clone(admission),
            _place: admitted.place,
        }
    }

    /// The span of its connection, so that a log can be searched for one client.
    pub(super) fn span(&self) -> Span {
        let Asker { client, me, .. } = &self.asker;
        tracing::info_span!(parent: None, "workspace_client", client = client.0, who = me.who)
    }

    pub(super) async fn run(mut self) {
        let end = self.until_end().await;
        let Self { asker, admission, credential, link, gate, stream, lanes, gone, counted, .. } =
            self;
        gone.cancel();
        asker.watching.end_all();
        if let Some(stream) = stream {
            stream.end().await;
        }
        drop(counted);
        let is_cut_off = matches!(end, End::Goodbye(..));
        match end {
            End::Goodbye(code, reason) => link.close(code, reason).await,
            End::Closed => drop(link),
            End::Broken(error) => {
                tracing::debug!(who = asker.me.who, %error, "a client's link broke");
                drop(link);
            }
        }
        // An unfinished message must not keep others waiting for its place.
        drop(gate.message_is_here());
        // The requests of a client that left are carried out. A revoked key and a stopping server
        // discard those that have not begun.
        let closing = &admission.closing;
        let cut_off = async {
            tokio::select! {
                () = credential.ended() => {}
                () = closing.cancelled() => {}
                () = std::future::ready(()), if is_cut_off => {}
            }
        };
        lanes.finish(cut_off).await;
    }

    async fn until_end(&mut self) -> End {
        let credential = Arc::clone(&self.credential);
        let mut ended = pin!(credential.ended());
        let closing = self.admission.closing.clone();
        let mut closed = pin!(closing.cancelled());
        loop {
            let has_room = self.asker.outbox.has_room();
            let is_heard = self.asker.outbox.queued() <= UNREAD;
            // Biased: a stopping server and a revoked key are noticed before another request is
            // read.
            let done = tokio::select! {
                biased;
                () = &mut closed => Err(End::Goodbye(1001, "the server is stopping")),
                () = &mut ended => Err(End::Goodbye(1008, "the key was revoked or has expired")),
                frame = next_frame(&mut self.link, self.paused, is_heard) => match frame {
                    Ok(Some(frame)) => self.frame(frame).await,
                    Ok(None) => Err(End::Closed),
                    Err(error) => Err(End::Broken(error)),
                },
                Some(done) = self.lanes.next() => match done {
                    Ok(()) => Ok(()),
                    Err(error) => self.failed(&error),
                },
                event = self.events.recv(), if has_room => self.event(event),
                room = self.asker.outbox.room(), if !has_room => given_up(room),
                () = self.gate.overdue() => {
                    Err(End::Goodbye(1008, "a large message does not come to its end"))
                }
                _ = self.ticks.tick() => self.tick(),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    fn tick(&mut self) -> Result<(), End> {
        self.gate.forget_signs_of_life();
        if self.asker.shares.is_wanted() && self.gate.is_deaf() {
            return Err(End::Goodbye(1008, "a long answer is not read"));
        }
        if let Credential::Member(token) = &*self.credential
            && self.asker.services.member_tokens.member(token.expose()).is_none()
        {
            return Err(End::Goodbye(1008, "the team, or the session in it, is gone"));
        }
        self.make_up();
        // The error is ignored here: the link reports it again once everything that came has been
        // read.
        let _broken = self.link.ping();
        Ok(())
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), End> {
        let place = self.gate.message_is_here();
        let wait = self.bucket.take(Instant::now().into_std());
        self.paused = wait.map(|wait| Instant::now() + wait);
        let Frame::Text(text) = frame else {
            return self.say(&ServerMessage::error("messages are text; binary frames are output"));
        };
        let read = match text.len() > LONG {
            true => {
                let reading = task::spawn_blocking(move || reading::read(&text));
                self.meanwhile(reading).await
            }
            false => Ok(reading::read(&text)),
        };
        match read {
            Ok(Ok(message)) => self.request(message, place).await,
            Ok(Err(answer)) => self.say(&answer),
            Err(error) => self.failed(&error),
        }
    }

    async fn request(
        &mut self,
        message: ClientMessage,
        place: Option<TakenPlace>,
    ) -> Result<(), End> {
        let policy = Policy::of(&message);
        if let Err(refusal) = allowed(&self.asker.me, message.kind(), &policy) {
            return self.say(&policy.family.refused(&refusal));
        }
        let family = policy.family.clone();
        let answer = match table::serve(&self.asker, message) {
            Work::Done(answer) => answer,
            Work::Later(lane, answering) => self.begin(lane, policy, answering, place),
            Work::Attach(attach) => return self.attach(attach).await,
            Work::Detach => return self.detach().await,
        };
        match answer {
            Ok(Some(answer)) => self.say(&answer),
            Ok(None) => Ok(()),
            Err(refusal) => self.say(&family.refused(&refusal)),
        }
    }

    /// Puts a request into its lane, where it is answered when its turn comes.
    fn begin(
        &mut self,
        lane: Lane,
        policy: Policy,
        answering: BoxFuture<'static, Answer>,
        place: Option<TakenPlace>,
    ) -> Answer {
        let (outbox, gone) = (self.asker.outbox.clone(), self.gone.clone());
        let place = place.filter(|_| policy.memory == Memory::Request);
        let awaited = match policy.audience {
            Audience::Asker => None,
            Audience::Everyone => Some(self.echoes.awaited()),
        };
        let shares = self.asker.shares.clone();
        let job = async move {
            // Only queries wait for a share, and they are given up when the client has gone. A
            // request that changes something is carried out.
            let share = tokio::select! {
                biased;
                share = shares.of(policy.memory, &outbox) => share,
                () = gone.cancelled() => return,
            };
            let Ok(share) = share else { return };
            let answer = match lane {
                // A wait can be given up without loss, but only once it has begun. Everything else
                // runs to its end.
                Lane::Waits => tokio::select! {
                    biased;
                    answer = answering => answer,
                    () = gone.cancelled() => return,
                },
                _ => answering.await,
            };
            drop(place);
            let answer = answer.unwrap_or_else(|refusal| Some(policy.family.refused(&refusal)));
            let Some(answer) = answer else { return };
            if !awaited.is_some_and(|awaited| awaited.was_told(&answer)) {
                send(&outbox, answer, share).await;
            }
        };
        self.lanes.put(lane, job.boxed()).map(|()| None)
    }

    async fn attach(&mut self, attach: Attach) -> Result<(), End> {
        let Asker { services, client, outbox, .. } = &self.asker;
        let id = attach.session_id;
        let attachment = match services.sessions.attach(id, *client, attach.after_seq) {
            Ok(attachment) => attachment,
            Err(refusal) => return self.say(&Family::Plain.refused(&refusal)),
        };
        if self.asker.attached != Some(id) {
            self.asker.note("session.attach", &id.to_string(), "done");
        }
        let outbox = outbox.clone();
        self.let_go().await;
        self.say(&ServerMessage::Attached(OfSession { session_id: id }))?;
        self.asker.attached = Some(id);
        self.stream = Some(Stream::start(attachment, outbox));
        Ok(())
    }

    async fn detach(&mut self) -> Result<(), End> {
        let Some(stream) = &self.stream else {
            return self.say(&ServerMessage::error("this connection is attached to no session"));
        };
        let session_id = stream.session;
        self.let_go().await;
        self.say(&ServerMessage::Detached(OfSession { session_id }))
    }

    async fn let_go(&mut self) {
        self.asker.attached = None;
        if let Some(stream) = self.stream.take() {
            stream.end().await;
        }
    }

    fn failed(&self, error: &task::JoinError) -> Result<(), End> {
        tracing::error!(%error, "a request ended badly");
        self.say(&ServerMessage::error("it failed: the server's log says more"))
    }

    /// Waits for something, and meanwhile writes but does not read.
    async fn meanwhile<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        tokio::select! {
            biased;
            waited = &mut wait => return waited,
            // The link reports the error again once everything that came has been read.
            _broken = self.link.write_only() => {}
        }
        wait.await
    }

    fn say(&self, message: &ServerMessage) -> Result<(), End> {
        given_up(self.asker.outbox.push(message.encode()))
    }
}

fn given_up(taken: Result<(), wire::OutboxClosed>) -> Result<(), End> {
    taken.map_err(|_| End::Broken(LinkError::GivenUp))
}

/// The next frame. Nothing is read before `paused`, nor while `is_heard` is false, that is while
/// the client leaves too many answers unread. Frames that came before the link broke are still
/// returned, at the permitted rate.
async fn next_frame(
    link: &mut Link,
    paused: Option<Instant>,
    is_heard: bool,
) -> Result<Option<Frame>, LinkError> {
    if !is_heard {
        let _broken = link.write_only().await;
    }
    if let Some(until) = paused.filter(|until| *until > Instant::now()) {
        tokio::select! {
            () = sleep_until(until) => {}
            _broken = link.write_only() => sleep_until(until).await,
        }
    }
    link.next().await
}

/// Sends an answer once there is room for it. It is no error if the client has gone.
async fn send(outbox: &Outbox, answer: ServerMessage, share: Option<Share>) {
    let is_long = matches!(
        answer,
        ServerMessage::ProjectFileChunk(_)
            | ServerMessage::ProjectFileContent(_)
            | ServerMessage::GitDiffResult(_)
            | ServerMessage::History(_)
    );
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

/// Counts as one client until it is dropped.
struct Counted(Arc<Admission>, ClientId);

impl Counted {
    fn new(admission: &Arc<Admission>, client: ClientId) -> Self {
        admission.connected.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(admission), client)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Self(admission, client) = self;
        admission.connected.fetch_sub(1, Ordering::Relaxed);
        // Done in `drop`, so that the sessions forget the client even if its task panics or is
        // aborted.
        admission.services.sessions.client_gone(*client);
    }
}
