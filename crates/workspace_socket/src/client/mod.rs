//! One authenticated connection.
//!
//! - `news`: events for all clients; `forwarding`: requests that other members serve

mod forwarding;
mod news;

use std::{pin::pin, sync::Arc, sync::atomic::Ordering, time::Duration};

use protocol::workspace::{ClientMessage, ServerMessage, limits::MAX_MESSAGE};
use tokio::{
    sync::{
        OwnedSemaphorePermit,
        broadcast::{Receiver, error::RecvError},
    },
    task,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use tracing::Span;
use wire::{Frame, Link, LinkError, Outbox, OutboxClosed, Utf8Bytes, until};
use workspace::{ClientId, Event};

use super::{
    admission::Admission,
    answers::asker::Asker,
    bucket::Bucket,
    gate::Gate,
    greeting::{Credential, NewClient},
    message_slots::TakenSlot,
    reading,
    remotes::{FromMember, Remotes},
    request_server::RequestServer,
};

/// The interval of pings, and of the checks in [`Client::tick`].
const TICK: Duration = Duration::from_secs(15);
/// Messages longer than this, in bytes, are decoded on another thread.
const LONG: usize = 256 * 1024;
/// The memory of unread answers, in bytes, at which the server stops reading from a client.
const UNREAD: usize = 2 * 1024 * 1024;

/// Why a connection ends.
enum End {
    /// The server closes it.
    Goodbye(u16, &'static str),
    Closed,
    /// The link broke.
    Broken(LinkError),
}

impl From<OutboxClosed> for End {
    fn from(_: OutboxClosed) -> Self {
        Self::Broken(LinkError::GivenUp)
    }
}

/// The next thing for a connection's task.
enum Input {
    /// A frame of the client; `None` if the client has closed the link.
    Frame(Result<Option<Frame>, LinkError>),
    /// A request in a lane is done.
    Done(Result<(), task::JoinError>),
    Member(FromMember),
    /// An event for all clients.
    Event(Result<Event, RecvError>),
    /// The outbox has room again.
    Room(Result<(), OutboxClosed>),
    /// A lost attachment is tried again.
    AttachDue,
    /// A large message has taken too long.
    Overdue,
    Tick,
}

pub(super) struct Client {
    server: RequestServer,
    /// The members that serve some of its requests.
    remotes: Remotes,
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
    ticks: Interval,
    counted: ClientCount,
    _permit: OwnedSemaphorePermit,
}

impl Client {
    pub(super) fn new(
        admission: &Arc<Admission>,
        admitted: NewClient,
        mut link: Link,
        outbox: Outbox,
        gate: Arc<Gate>,
    ) -> Self {
        // The limit was that of a greeting until now.
        link.set_max_message(MAX_MESSAGE);
        let client = admission.next_client();
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        // After a long piece of work one ping is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            server: RequestServer::new(admission, client, admitted.me, outbox, true),
            remotes: Remotes::default(),
            credential: Arc::new(admitted.credential),
            link,
            gate,
            bucket: Bucket::new(admission.message_rate, Instant::now().into_std()),
            paused: None,
            events: admission.services.events.subscribe(),
            has_missed: false,
            ticks,
            counted: ClientCount::new(admission, client),
            admission: Arc::clone(admission),
            _permit: admitted.permit,
        }
    }

    /// The span of its connection, so that a log can be searched for one client.
    pub(super) fn span(&self) -> Span {
        let Asker { client, me, .. } = &self.server.asker;
        tracing::info_span!(parent: None, "workspace_client", client = client.0, who = me.who)
    }

    pub(super) async fn run(mut self) {
        let end = self.until_end().await;
        let Self { server, admission, credential, link, gate, counted, .. } = self;
        let who = Arc::clone(&server.asker.me);
        let lanes = server.end().await;
        drop(counted);
        let is_cut_off = matches!(end, End::Goodbye(..));
        match end {
            End::Goodbye(code, reason) => link.close(code, reason).await,
            End::Closed => drop(link),
            End::Broken(error) => {
                tracing::debug!(who = who.who, %error, "a client's link broke");
                drop(link);
            }
        }
        // An unfinished message must not keep others waiting for its slot.
        drop(gate.complete_message());
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
            // Biased: a stopping server and a revoked key are noticed before another request is
            // read.
            let input = tokio::select! {
                biased;
                () = &mut closed => return End::Goodbye(1001, "the server is stopping"),
                () = &mut ended => {
                    return End::Goodbye(1008, "the key or the page's session has ended");
                }
                input = self.next_input() => input,
            };
            if let Err(end) = self.handle(input).await {
                return end;
            }
        }
    }

    /// Waits for the next input. Nothing is lost when the wait is dropped.
    async fn next_input(&mut self) -> Input {
        let outbox = &self.server.asker.outbox;
        let (has_room, is_heard) = (outbox.has_room(), outbox.queued() <= UNREAD);
        let due = self.remotes.due();
        tokio::select! {
            biased;
            frame = next_frame(&mut self.link, self.paused, is_heard) => Input::Frame(frame),
            Some(done) = self.server.lanes.next() => Input::Done(done),
            heard = self.remotes.next(&self.admission.services.membership), if has_room => {
                Input::Member(heard)
            }
            event = self.events.recv(), if has_room => Input::Event(event),
            room = outbox.room(), if !has_room => Input::Room(room),
            () = until(due) => Input::AttachDue,
            () = self.gate.overdue() => Input::Overdue,
            _ = self.ticks.tick() => Input::Tick,
        }
    }

    async fn handle(&mut self, input: Input) -> Result<(), End> {
        match input {
            Input::Frame(Ok(Some(frame))) => self.frame(frame).await,
            Input::Frame(Ok(None)) => Err(End::Closed),
            Input::Frame(Err(error)) => Err(End::Broken(error)),
            Input::Done(Ok(())) => Ok(()),
            Input::Done(Err(error)) => Ok(self.server.failed(&error)?),
            Input::Member(heard) => self.hear_member(heard),
            Input::Event(event) => self.event(event).await,
            Input::Room(room) => Ok(room?),
            Input::AttachDue => self.attach_again(),
            Input::Overdue => Err(End::Goodbye(1008, "a large message does not come to its end")),
            Input::Tick => {
                self.tick()?;
                self.follow_attached().await
            }
        }
    }

    fn tick(&mut self) -> Result<(), End> {
        self.gate.forget_signs_of_life();
        let asker = &self.server.asker;
        if asker.shares.is_wanted() && self.gate.is_deaf() {
            return Err(End::Goodbye(1008, "a long answer is not read"));
        }
        if let Credential::Member(token) = &*self.credential
            && asker.services.member_tokens.member(token.expose()).is_none()
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
        let slot = self.gate.complete_message();
        let wait = self.bucket.take(Instant::now().into_std());
        self.paused = wait.map(|wait| Instant::now() + wait);
        let Frame::Text(text) = frame else {
            return self.say(&ServerMessage::error("messages are text; binary frames are output"));
        };
        let read = match text.len() > LONG {
            true => {
                let reading = text.clone();
                let reading = task::spawn_blocking(move || reading::read(&reading));
                self.meanwhile(reading).await
            }
            false => Ok(reading::read(&text)),
        };
        match read {
            Ok(Ok(message)) => self.request(message, text, slot).await,
            Ok(Err(answer)) => self.say(&answer),
            Err(error) => Ok(self.server.failed(&error)?),
        }
    }

    /// Serves a request, or has another member serve it.
    async fn request(
        &mut self,
        message: ClientMessage,
        text: Utf8Bytes,
        slot: Option<TakenSlot>,
    ) -> Result<(), End> {
        if self.admission.services.membership.cluster().is_some()
            && self.forward(&message, text).await?
        {
            return Ok(());
        }
        let attach = match &message {
            ClientMessage::Attach(attach) => Some(attach.session_id),
            _ => None,
        };
        self.server.request(message, slot, || {}).await?;
        // Only now: a client that was refused stays attached to the earlier session. None of its output was
        // passed on meanwhile.
        if attach.is_some() && self.server.asker.attached == attach {
            self.remotes.let_go();
        }
        Ok(())
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
        Ok(self.server.say(message)?)
    }
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

/// Counts as one client until it is dropped.
struct ClientCount(Arc<Admission>, ClientId);

impl ClientCount {
    fn new(admission: &Arc<Admission>, client: ClientId) -> Self {
        admission.connected.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(admission), client)
    }
}

impl Drop for ClientCount {
    fn drop(&mut self) {
        let Self(admission, client) = self;
        admission.connected.fetch_sub(1, Ordering::Relaxed);
        // Done in `drop`, so that the sessions forget the client even if its task panics or is
        // aborted.
        admission.services.sessions.client_gone(*client);
    }
}
