//! One connection to a mesh relay: the registration, the listed nodes, and the sessions over it.
//!
//! - `messages`: handles the mesh relay's messages
//! - `links`: the links over relay sessions

mod links;
mod messages;

use std::{collections::HashMap, sync::Arc, time::Duration};

use base::{NodeId, plain};
use protocol::mesh::relay::{Discover, MAX_MESSAGE, RelayNodeId};
use tokio::{
    sync::{Mutex as Turn, mpsc, oneshot},
    time::{Instant, sleep_until},
};
use wire::{Frame, Link as Socket, LinkError, Outbox};

use self::links::SessionLink;
use super::{
    clock::{self, Clock},
    memory::Memory,
    registration::Registration,
    relay::LiveStatus,
    roster::Roster,
    sessions::{Handle, Sessions},
    sort::Sort,
};
use crate::{
    link::{Link, LinkEvents, NoLink},
    peer::Peers,
    this_machine::ThisMachine,
};

/// How often to check whether links are alive.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The most notices of closed links that wait.
const MAX_NOTICES: usize = 256;

/// The code with which a mesh relay closes the connection when another one registers with the same
/// key.
const REPLACED: u16 = 1012;

/// The words for a mesh relay that is known as a Warren's and sent no challenge. It is never sent
/// the signature that stock mesh relays get.
const NO_CHALLENGE: &str = "the relay sent no challenge within 10 s, though it is known as a Warren's: \
                            somebody in between may hold it back; if a stock relay has taken its \
                            place, restart this server";

/// A request for a link to a peer.
pub(super) struct Ask {
    pub(super) peer: NodeId,
    pub(super) answer: LinkCaller,
}

/// The caller that waits for a link.
type LinkCaller = oneshot::Sender<Result<Arc<Link>, NoLink>>;

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// This node is stopping.
    Stopped,
    /// Another machine has registered with this node's key.
    Replaced,
    /// Any other reason.
    Broken(String),
}

/// The parts of a connection beside its socket.
pub(super) struct Parts {
    pub(super) machine: Arc<ThisMachine>,
    pub(super) peers: Arc<Peers>,
    pub(super) events: Arc<dyn LinkEvents>,
    pub(super) memory: Arc<Memory>,
    /// The mesh relay's host, for people.
    pub(super) relay: Arc<str>,
    pub(super) status: Arc<LiveStatus>,
}

/// One connection to a mesh relay.
pub(super) struct Connection<'a> {
    parts: &'a Parts,
    outbox: Outbox,
    clock: Clock,
    registration: Registration,
    roster: Roster,
    sessions: Sessions,
    links: HashMap<Handle, SessionLink>,
    waiting: HashMap<NodeId, Vec<LinkCaller>>,
    turn: Arc<Turn<()>>,
    /// Receives the handles of links that were closed at this end.
    notice: mpsc::Sender<Handle>,
    /// When the links are checked next.
    check: Instant,
    /// Why the mesh relay does not register this node, if it has said so.
    refused: Option<String>,
}

impl<'a> Connection<'a> {
    fn new(
        parts: &'a Parts,
        outbox: Outbox,
        registration: Registration,
        notice: mpsc::Sender<Handle>,
    ) -> Self {
        let now = Instant::now();
        Self {
            clock: Clock::new(now, registration.sort()),
            sessions: Sessions::new(Arc::clone(&parts.machine), Arc::clone(&parts.memory)),
            parts,
            outbox,
            registration,
            roster: Roster::default(),
            links: HashMap::new(),
            waiting: HashMap::new(),
            turn: Arc::default(),
            notice,
            check: now + CHECK_EVERY,
            refused: None,
        }
    }

    /// Runs until the connection ends.
    pub(super) async fn run(
        parts: &'a Parts,
        mut socket: Socket,
        outbox: Outbox,
        registration: Registration,
        asks: &mut mpsc::Receiver<Ask>,
    ) -> ConnectionEnd {
        socket.set_max_message(MAX_MESSAGE);
        let (notice, mut notices) = mpsc::channel(MAX_NOTICES);
        let mut connection = Self::new(parts, outbox, registration, notice);
        let ended = connection.serve(&mut socket, &mut notices, asks).await;
        let why = match &ended {
            ConnectionEnd::Stopped => "this node stops",
            ConnectionEnd::Replaced => "another machine has registered with this node's key",
            ConnectionEnd::Broken(why) => why,
        };
        connection.leave(why, ended == ConnectionEnd::Stopped);
        if ended == ConnectionEnd::Stopped {
            socket.close(1000, why).await;
        }
        ended
    }

    async fn serve(
        &mut self,
        socket: &mut Socket,
        notices: &mut mpsc::Receiver<Handle>,
        asks: &mut mpsc::Receiver<Ask>,
    ) -> ConnectionEnd {
        loop {
            if let Some(ended) = self.due(socket) {
                return ended;
            }
            // Before waiting, since a step may have left messages to send.
            self.act();
            if let Some(why) = self.refused.take() {
                return ConnectionEnd::Broken(why);
            }
            let next = self.next(socket.heard());
            tokio::select! {
                frame = socket.next() => match frame {
                    Ok(Some(frame)) => self.frame(&frame),
                    other => return ended(socket, other),
                },
                Some(ask) = asks.recv() => self.ask(ask),
                Some(handle) = notices.recv() => self.closed_here(handle),
                () = sleep_until(next) => {}
                () = self.parts.machine.stop.cancelled() => return ConnectionEnd::Stopped,
            }
        }
    }

    fn next(&self, heard: Instant) -> Instant {
        let next = self.clock.next(heard);
        let next = self.sessions.next_timeout().map_or(next, |at| next.min(at));
        if self.links.is_empty() { next } else { next.min(self.check) }
    }

    /// Takes all due steps. Returns why the connection must end, if it must.
    fn due(&mut self, socket: &mut Socket) -> Option<ConnectionEnd> {
        let now = Instant::now();
        while let Some(step) = self.clock.due(now, socket.heard()) {
            match step {
                clock::Step::Register => self.register(),
                clock::Step::Check => self.register_what_changed(),
                clock::Step::Discover => self.discover(),
                // If the connection is broken, the next read fails.
                clock::Step::Ping => _ = socket.ping(),
                clock::Step::Dead => return Some(broken("the relay says nothing any more")),
                clock::Step::Unregistered => return Some(broken(self.unregistered())),
            }
        }
        self.sessions.expire(now);
        if now >= self.check {
            self.check = now + CHECK_EVERY;
            self.check_links(now);
        }
        None
    }

    fn register(&mut self) {
        match self.registration.message(&self.parts.machine) {
            Some(text) => self.send(text),
            None => tracing::debug!("no challenge yet"),
        }
    }

    /// Why the mesh relay has not registered this node in time.
    fn unregistered(&self) -> &'static str {
        if self.registration.sort() == Sort::Warren && !self.registration.is_challenged() {
            NO_CHALLENGE
        } else {
            "the relay did not answer the registration within 10 s"
        }
    }

    fn register_what_changed(&mut self) {
        if let Some(text) = self.registration.if_changed(&self.parts.machine) {
            self.send(text);
        }
    }

    fn discover(&self) {
        let node = RelayNodeId::from(self.own());
        self.send(Discover { node, filter: None }.encode());
    }

    fn own(&self) -> NodeId {
        self.parts.machine.id()
    }

    fn send(&self, text: String) {
        // If the connection is closed, the next read fails.
        let _ = self.outbox.push(text);
    }
}

fn ended(socket: &Socket, end: Result<Option<Frame>, LinkError>) -> ConnectionEnd {
    match (end, socket.close_reason()) {
        (Ok(_), Some((REPLACED, _))) => ConnectionEnd::Replaced,
        (Ok(_), Some((code, reason))) => {
            broken(&format!("the relay closed the connection: {code} {}", clip(&reason)))
        }
        (Ok(_), None) => broken("the relay closed the connection"),
        (Err(error), _) => broken(&base::error::chain(&error)),
    }
}

fn broken(why: &str) -> ConnectionEnd {
    ConnectionEnd::Broken(why.to_owned())
}

/// A mesh relay's text, shortened and cleaned for people and logs.
fn clip(text: &str) -> String {
    plain::line(text).chars().take(300).collect()
}
