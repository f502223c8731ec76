//! All links together, from start to drain.

use std::{sync::Arc, time::Duration};

use backend::NotABackend;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::dial::jitter;

use crate::{
    config::{Lend, LinkProtocol, Protocol, ServerTarget, WorkerConfig},
    context::LinkContext,
    crew::{Backends, Crew},
    dialer::Dialer,
    event::{EventSink, Observer},
    lent::LentBackend,
    models,
    outcome::WorkerEnd,
    room::{JoinRoom, member::RoomMember},
};

/// Why a worker cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAWorker {
    /// No server is given.
    #[error("a worker needs at least one server to lend to")]
    NoServer,
    /// No backend is given.
    #[error("a worker needs at least one backend to lend")]
    NoBackend,
    /// A backend cannot be used.
    #[error(transparent)]
    Backend(#[from] NotABackend),
    /// The server of a room cannot be used.
    #[error("the server of the room cannot be used: {0}")]
    Server(#[source] NotABackend),
    /// A room is given, and several backends. A participant is one backend.
    #[error("one participant of a room lends one backend: start a worker for each")]
    SeveralInRoom,
    /// A room is given, and the node protocol, which has no rooms.
    #[error("a room is joined as a relay worker or by a tunnel, not as a node")]
    NodeInRoom,
    /// Models of a cloud are not lent to others, because the worker's owner would pay for them.
    #[error(
        "the models of a cloud ({0}) are lent to no room and over no node protocol: others would cost you money"
    )]
    CloudForOthers(String),
    /// The tunnel protocol is given, but no room. Tunnels lead into rooms.
    #[error("a tunnel leads into a room: say which")]
    TunnelToNoRoom,
}

/// The present work at a worker's backends.
#[derive(Debug, Clone)]
pub struct Activity(Arc<Backends>);

impl Activity {
    /// How many requests are in flight.
    pub fn in_flight(&self) -> u64 {
        self.0.sum(|lent| u64::from(lent.load()))
    }

    /// How many requests the present backends have answered to their end so far.
    pub fn answered(&self) -> u64 {
        self.0.sum(LentBackend::answered)
    }

    /// How many bytes of answers the present backends have given so far.
    pub fn answer_bytes(&self) -> u64 {
        self.0.sum(LentBackend::answer_bytes)
    }
}

/// The shortest interval between two heartbeats of a tunnel.
const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(10);

/// Lends backends to servers.
pub struct Worker {
    pub(crate) config: WorkerConfig,
    /// The backends of the configuration.
    lent: Vec<Arc<LentBackend>>,
    /// The found backends, which come and go.
    found: Option<watch::Receiver<Vec<Lend>>>,
    pub(crate) present: Arc<Backends>,
    /// Each server, with the room to join there.
    servers: Vec<(ServerTarget, Option<Arc<RoomMember>>)>,
    dialer: Arc<dyn Dialer>,
    pub(crate) events: EventSink,
}

impl Worker {
    /// A worker that has not begun. `dialer` gives it its links; usually [`crate::NetDialer`].
    ///
    /// # Errors
    /// [`NotAWorker`] when there is no server or no backend, or a backend cannot be used.
    pub fn new(config: WorkerConfig, dialer: impl Dialer) -> Result<Self, NotAWorker> {
        match config.backends.is_empty() {
            true => Err(NotAWorker::NoBackend),
            false => Self::make(config, None, dialer),
        }
    }

    /// The same, but the worker also lends the backends in `found`, each for as long as it is in
    /// the list. They are identified by their [place](Lend::place).
    ///
    /// # Errors
    /// [`NotAWorker`] when there is no server, or a backend of the configuration cannot be used.
    pub fn following(
        config: WorkerConfig,
        found: watch::Receiver<Vec<Lend>>,
        dialer: impl Dialer,
    ) -> Result<Self, NotAWorker> {
        Self::make(config, Some(found), dialer)
    }

    fn make(
        config: WorkerConfig,
        found: Option<watch::Receiver<Vec<Lend>>>,
        dialer: impl Dialer,
    ) -> Result<Self, NotAWorker> {
        if config.servers.is_empty() {
            return Err(NotAWorker::NoServer);
        }
        let new = |lend| {
            let aliases = Arc::clone(&config.aliases);
            let lent = LentBackend::new(lend, aliases, config.patience);
            lent.map(|lent| Arc::new(lent.traced_by(config.traces.clone())))
        };
        let lent = config.backends.iter().map(new);
        let lent: Vec<Arc<LentBackend>> = lent.collect::<Result<_, _>>()?;
        let servers = config.servers.iter().map(|server| {
            let room = server.room.as_ref().map(|join| in_room(&config, server, join));
            Ok((server.clone(), room.transpose()?))
        });
        let servers = servers.collect::<Result<Vec<_>, NotAWorker>>()?;
        let for_others =
            config.protocol == Protocol::Node || servers.iter().any(|it| it.1.is_some());
        let is_cloud = |lent: &&Arc<LentBackend>| lent.backend().is_cloud();
        if let Some(cloud) = lent.iter().find(is_cloud).filter(|_| for_others) {
            return Err(NotAWorker::CloudForOthers(cloud.backend().label().to_owned()));
        }
        let in_rooms = servers.iter().all(|(_, room)| room.is_some());
        if config.protocol == Protocol::Tunnel && !in_rooms {
            return Err(NotAWorker::TunnelToNoRoom);
        }
        let (dialer, events) = (Arc::new(dialer), EventSink::default());
        let present = Arc::new(Backends::of(&lent));
        Ok(Self { config, lent, found, present, servers, dialer, events })
    }

    /// The present work at the backends, to be shown to people.
    pub fn activity(&self) -> Activity {
        Activity(Arc::clone(&self.present))
    }

    /// Reports each event to this observer, beside the log.
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        Self { events: EventSink(Some(observer)), ..self }
    }

    /// Lends until `shutdown`. Then takes no new requests, finishes those in flight within the
    /// drain time-out, and returns. Dropping this future cuts off all requests at once.
    pub async fn run(mut self, shutdown: CancellationToken) -> WorkerEnd {
        let mut found = self.found.take();
        let mut crew = Crew::new(&self, shutdown.clone());
        for lent in &self.lent {
            crew.lend(Arc::clone(lent), self.lent.len() == 1, &shutdown);
        }
        let mut all = WorkerEnd::default();
        loop {
            if let Some(found) = &mut found {
                // Marked as seen in the same step, so that a later change wakes the loop again.
                crew.follow(&found.borrow_and_update());
            }
            tokio::select! {
                Some(ended) = crew.tasks.join_next() => {
                    // A backend whose task has panicked must not end the others.
                    let ended = ended.unwrap_or_default();
                    all.cut_off += ended.cut_off;
                    all.gave_up = ended.gave_up.or(all.gave_up);
                }
                // From now on the list is ignored, and the loop ends when the last backend is drained.
                () = shutdown.cancelled(), if found.is_some() => found = None,
                () = models::changed(&mut found), if found.is_some() => {}
                else => return all,
            }
        }
    }

    /// The links of a backend, one to each server.
    pub(crate) fn links(
        &self,
        lent: &Arc<LentBackend>,
        is_alone: bool,
        shutdown: &CancellationToken,
    ) -> Vec<LinkContext> {
        let link = |(server, room): &(ServerTarget, Option<Arc<RoomMember>>)| LinkContext {
            server: server.clone(),
            room: room.clone(),
            protocol: self.link_protocol(room.is_some()),
            name: self.link_name(lent, is_alone),
            id: format!("{:08x}{:08x}{:08x}{:08x}", jitter(), jitter(), jitter(), jitter()),
            lent: Arc::clone(lent),
            dialer: Arc::clone(&self.dialer),
            events: self.events.clone(),
            drain_timeout: self.config.drain_timeout,
            heartbeat: self.config.heartbeat.max(SHORTEST_HEARTBEAT),
            shutdown: shutdown.clone(),
        };
        self.servers.iter().map(link).collect()
    }

    fn link_protocol(&self, in_room: bool) -> LinkProtocol {
        match self.config.protocol {
            Protocol::Tunnel => LinkProtocol::Tunnel,
            Protocol::Auto if in_room => LinkProtocol::Any,
            _ => LinkProtocol::Relay,
        }
    }

    /// The worker's name; with several backends, the backend is added.
    fn link_name(&self, lent: &LentBackend, is_alone: bool) -> String {
        match is_alone {
            true => self.config.name.clone(),
            false => format!("{}/{}", self.config.name, lent.backend().label()),
        }
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("config", &self.config).finish_non_exhaustive()
    }
}

fn in_room(
    config: &WorkerConfig,
    server: &ServerTarget,
    join: &Arc<JoinRoom>,
) -> Result<Arc<RoomMember>, NotAWorker> {
    match config.protocol {
        Protocol::Node => return Err(NotAWorker::NodeInRoom),
        _ if config.backends.len() > 1 => return Err(NotAWorker::SeveralInRoom),
        _ => {}
    }
    let room = RoomMember::new(Arc::clone(join), server).map_err(NotAWorker::Server)?;
    Ok(Arc::new(room))
}
