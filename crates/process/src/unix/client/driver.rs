//! The task that talks to the supervisor and notices its end.

use std::{collections::HashMap, io, os::fd::OwnedFd, path::PathBuf, time::Duration};

use tokio::{
    io::{Interest, unix::AsyncFd},
    process,
    sync::{mpsc, oneshot, watch},
    time,
};
use uuid::Uuid;

use super::{Keep, Limits, answers};
use crate::{
    Adopted,
    error::ProcessError,
    signal::{Exit, Signal},
    unix::{
        channel, leftovers,
        messages::{Event, MAX_EVENT, Order, Request},
        unsafe_calls::watch,
    },
};

/// The most requests that wait for an answer.
const MOST_OUTSTANDING: usize = 1024;
/// The most events that are handled before the next request.
const EVENTS_AT_ONCE: usize = 64;
/// How long a supervisor may take to end after its socket was closed.
const LAST_BREATH: Duration = Duration::from_secs(15);

/// A request of the daemon, and the receiver of the answer.
pub(super) struct Ask {
    pub(super) wanted: Call,
    pub(super) reply: oneshot::Sender<Result<Reply, ProcessError>>,
}

pub(super) enum Call {
    Spawn(Box<Order>),
    Signal(Uuid, Signal),
    Stop(Uuid, Duration),
    Members(Uuid),
    CloseInput(Uuid),
    Shutdown(Duration),
    Detach,
}

pub(super) enum Reply {
    Started(Box<StartedChild>),
    Count(u32),
    Members(Vec<u32>),
}

pub(super) struct StartedChild {
    pub(super) pid: u32,
    pub(super) start_time: u64,
    pub(super) ends: Vec<OwnedFd>,
    pub(super) exit: watch::Receiver<Option<Exit>>,
}

struct Outstanding {
    /// The order to start a process, for the text of the error if that fails.
    order: Option<Box<Order>>,
    reply: Option<oneshot::Sender<Result<Reply, ProcessError>>>,
}

/// The supervisor's process.
pub(super) enum Helper {
    /// This daemon has started it.
    Started(Box<process::Child>),
    /// An earlier daemon has started it.
    TakenOver { pid: u32 },
}

impl Helper {
    pub(super) fn pid(&self) -> u32 {
        match self {
            Self::Started(child) => child.id().unwrap_or(0),
            Self::TakenOver { pid } => *pid,
        }
    }

    pub(super) const fn is_new(&self) -> bool {
        matches!(self, Self::Started(_))
    }

    /// The supervisor, for messages.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "supervisor",
            Self::TakenOver { .. } => "supervisor of an earlier server",
        }
    }

    /// Waits for its end. Returns whether it has certainly ended all its processes.
    async fn ended(&mut self) -> bool {
        let ended = match self {
            Self::Started(child) => {
                let ended = time::timeout(LAST_BREATH, child.wait()).await;
                return matches!(ended, Ok(Ok(status)) if status.success());
            }
            Self::TakenOver { pid } => Adopted::open(*pid),
        };
        match ended {
            Ok(helper) => matches!(time::timeout(LAST_BREATH, helper.wait()).await, Ok(Ok(()))),
            Err(_) => true,
        }
    }

    fn kill(&mut self) {
        match self {
            Self::Started(child) => drop(child.start_kill()),
            Self::TakenOver { pid } => {
                let helper = Adopted::open(*pid);
                let _ = helper.and_then(|helper| helper.signal(Signal::Kill));
            }
        }
    }
}

pub(super) struct Driver {
    socket: AsyncFd<OwnedFd>,
    helper: Helper,
    asks: mpsc::Receiver<Ask>,
    living: watch::Sender<bool>,
    limits: Limits,
    /// The control groups of all processes of the supervisor, if there are any.
    groups: Vec<PathBuf>,
    sessions: HashMap<Uuid, watch::Sender<Option<Exit>>>,
    outstanding: HashMap<u64, Outstanding>,
    last_request: u64,
    /// The packet that the socket had no room for.
    unsent: Option<Vec<u8>>,
    /// The sessions whose callers did not wait for the start.
    unwanted: Vec<Uuid>,
    /// Whether the supervisor goes on without this daemon.
    is_detached: bool,
    buffer: Vec<u8>,
}

impl Driver {
    pub(super) fn new(
        socket: OwnedFd,
        helper: Helper,
        asks: mpsc::Receiver<Ask>,
        living: watch::Sender<bool>,
        limits: Limits,
    ) -> io::Result<Self> {
        Ok(Self {
            socket: watch(socket, Interest::READABLE | Interest::WRITABLE)?,
            helper,
            asks,
            living,
            limits,
            groups: Vec::new(),
            sessions: HashMap::new(),
            outstanding: HashMap::new(),
            last_request: 0,
            unsent: None,
            unwanted: Vec::new(),
            is_detached: false,
            buffer: vec![0; MAX_EVENT],
        })
    }

    /// Sends the configuration and waits for the answer: the processes that the supervisor has
    /// already, if it is not new.
    pub(super) async fn ready(
        &mut self,
        keep: Option<&Keep>,
        is_new: bool,
    ) -> io::Result<Vec<(Uuid, StartedChild)>> {
        channel::send(self.socket.get_ref(), &self.limits.order(keep).encode(), &[])?;
        let Some((Event::Ready { groups }, _)) = self.next_event().await? else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no supervisor"));
        };
        self.groups = groups.into_iter().map(PathBuf::from).collect();
        let mut held = Vec::new();
        if is_new {
            return Ok(held);
        }
        loop {
            match self.next_event().await? {
                Some((Event::AllHeld, _)) => return Ok(held),
                Some((Event::Held { id, pid, start_time, exit }, ends)) => {
                    held.push((id, self.held(id, pid, start_time, exit, ends)));
                }
                Some((event, ends)) => self.heard(event, ends),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    fn held(
        &mut self,
        id: Uuid,
        pid: u32,
        start_time: u64,
        ended: Option<Exit>,
        ends: Vec<OwnedFd>,
    ) -> StartedChild {
        let (living, exit) = watch::channel(ended);
        // An ended process sends no further event.
        if ended.is_none() {
            self.sessions.insert(id, living);
        }
        StartedChild { pid, start_time, ends, exit }
    }

    /// Runs until the supervisor is gone, or no handle to it is left.
    pub(super) async fn run(mut self) {
        while self.turn().await {}
        self.end().await;
    }

    /// Waits for the next event; `None` if the message was not an event.
    async fn next_event(&mut self) -> io::Result<Option<(Event, Vec<OwnedFd>)>> {
        loop {
            let mut ready = self.socket.readable().await?;
            let buffer = &mut self.buffer;
            if let Ok(received) = ready.try_io(|fd| channel::receive(fd.get_ref(), buffer)) {
                let (length, ends) = received?;
                return Ok(Event::decode(&self.buffer[..length]).map(|event| (event, ends)));
            }
        }
    }

    /// Waits and does one step. Returns whether there is more to do.
    async fn turn(&mut self) -> bool {
        // Callers wait in the channel, which is bounded, too.
        let may_ask = self.unsent.is_none() && self.outstanding.len() < MOST_OUTSTANDING;
        let interest = match self.unsent {
            Some(_) => Interest::READABLE | Interest::WRITABLE,
            None => Interest::READABLE,
        };
        tokio::select! {
            ask = self.asks.recv(), if may_ask => match ask {
                Some(Ask { wanted: Call::Detach, .. }) => {
                    self.is_detached = true;
                    return false;
                }
                Some(ask) => self.ask(ask),
                None => return false,
            },
            ready = self.socket.ready(interest) => if ready.is_err() { return false },
        }
        self.send_rest() && self.hear() && self.stop_unwanted()
    }

    fn ask(&mut self, ask: Ask) {
        self.last_request += 1;
        let request = self.last_request;
        let (message, order) = match ask.wanted {
            Call::Spawn(order) => {
                (Request::Spawn { request, order: (*order).clone() }, Some(order))
            }
            Call::Signal(id, signal) => (Request::Signal { request, id, signal }, None),
            Call::Stop(id, grace) => (Request::Stop { request, id, grace }, None),
            Call::Members(id) => (Request::Members { request, id }, None),
            Call::Detach => return,
            Call::CloseInput(id) => (Request::CloseInput { request, id }, None),
            Call::Shutdown(grace) => (Request::Shutdown { request, grace }, None),
        };
        self.outstanding.insert(request, Outstanding { order, reply: Some(ask.reply) });
        self.unsent = Some(message.encode());
    }

    /// Sends the waiting packet, if there is room. Returns whether the supervisor still exists.
    fn send_rest(&mut self) -> bool {
        let Some(packet) = self.unsent.take() else { return true };
        let sent = self.socket.try_io(Interest::WRITABLE, |fd| channel::send(fd, &packet, &[]));
        match sent {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.unsent = Some(packet);
                true
            }
            Err(_) => false,
        }
    }

    /// Handles received events. Returns whether the supervisor still exists.
    fn hear(&mut self) -> bool {
        for _ in 0..EVENTS_AT_ONCE {
            let buffer = &mut self.buffer;
            let came = self.socket.try_io(Interest::READABLE, |fd| channel::receive(fd, buffer));
            match came {
                Ok((0, _)) => return false,
                Ok((length, ends)) => match Event::decode(&self.buffer[..length]) {
                    Some(event) => self.heard(event, ends),
                    None => return false,
                },
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn heard(&mut self, event: Event, ends: Vec<OwnedFd>) {
        if let Event::Exited { id, exit } = event {
            if let Some(session) = self.sessions.remove(&id) {
                session.send_replace(Some(exit));
            }
            return;
        }
        let outstanding = answers(&event).and_then(|request| self.outstanding.remove(&request));
        if let Some(outstanding) = outstanding {
            self.answer(outstanding, event, ends);
        }
    }

    fn answer(&mut self, outstanding: Outstanding, event: Event, ends: Vec<OwnedFd>) {
        let Outstanding { order, reply } = outstanding;
        let id = order.as_ref().map(|order| order.id);
        let answer = match (event, order) {
            (Event::Started { pid, start_time, .. }, Some(order)) => {
                let (living, exit) = watch::channel(None);
                // Before the answer: the process may end, and its event come, before the caller has it.
                self.sessions.insert(order.id, living);
                Ok(Reply::Started(Box::new(StartedChild { pid, start_time, ends, exit })))
            }
            (Event::Failed { failure, .. }, Some(order)) => {
                Err(failure.into_error(&order, self.limits.max_children))
            }
            (Event::Done { count, .. }, _) => Ok(Reply::Count(count)),
            (Event::Members { pids, .. }, _) => Ok(Reply::Members(pids)),
            _ => Err(ProcessError::SupervisorGone),
        };
        let undelivered = reply.and_then(|reply| reply.send(answer).err());
        if let (Some(Ok(Reply::Started(_))), Some(id)) = (undelivered, id) {
            // Nobody has a handle to it, so nobody else would ever stop it.
            self.unwanted.push(id);
        }
    }

    /// Stops a session whose caller did not wait for the start. Always returns `true`.
    fn stop_unwanted(&mut self) -> bool {
        if self.unsent.is_none()
            && let Some(id) = self.unwanted.pop()
        {
            self.last_request += 1;
            let request = self.last_request;
            self.outstanding.insert(request, Outstanding { order: None, reply: None });
            self.unsent = Some(Request::Stop { request, id, grace: Duration::ZERO }.encode());
        }
        true
    }

    /// Closes the socket, waits for the end of the supervisor, and ends leftover processes.
    async fn end(self) {
        let Self { socket, mut helper, mut asks, living, groups, sessions, is_detached, .. } = self;
        // The id is known only until the supervisor has been waited for.
        let supervisor = helper.pid();
        // New calls fail at once instead of waiting for an answer that never comes.
        asks.close();
        if is_detached {
            drop(socket);
            living.send_replace(false);
            return;
        }
        // A supervisor that keeps sessions must not wait for another daemon now.
        let end = Request::Shutdown { request: 0, grace: Duration::ZERO };
        let _gone = channel::send(socket.get_ref(), &end.encode(), &[]);
        drop(socket);
        if !helper.ended().await {
            tracing::error!(
                supervisor,
                "the supervisor of processes was lost; ending what it left"
            );
            helper.kill();
            let left = leftovers::end(sessions.keys().copied().collect(), groups).await;
            if left > 0 {
                tracing::error!(supervisor, left, "processes that cannot be ended");
            }
        }
        for session in sessions.into_values() {
            session.send_replace(Some(Exit::Lost));
        }
        living.send_replace(false);
    }
}
