//! All links together, from start to drain.

use std::{sync::Arc, time::Duration};

use backend::NotABackend;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Protocol, ServerTarget, WorkerConfig},
    dialer::Dialer,
    event::{Observer, Teller},
    lent::Lent,
    link::{LinkLoop, Speaks},
    models,
    node::slots,
    room::{GiveUpReason, InRoom, JoinRoom},
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
    /// A participant is one backend.
    #[error("one participant of a room lends one backend: start a worker for each")]
    SeveralInRoom,
    /// Nodes know no rooms.
    #[error("a room is joined as a relay worker or by a tunnel, not as a node")]
    NodeInRoom,
    /// Tunnels lead into rooms.
    #[error("a tunnel leads into a room: say which")]
    TunnelToNoRoom,
}

/// How a worker ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerEnd {
    /// How many requests were not finished when the time to drain was over.
    pub cut_off: usize,
    /// Why a room was given up, if one was; the last one, if there were several.
    pub gave_up: Option<GiveUpReason>,
}

/// What goes on at a worker's backends.
#[derive(Debug, Clone)]
pub struct Activity(Vec<Arc<Lent>>);

impl Activity {
    /// How many requests there are at the moment.
    pub fn in_flight(&self) -> u64 {
        self.0.iter().map(|lent| u64::from(lent.load())).sum()
    }

    /// How many requests were answered to their end so far.
    pub fn answered(&self) -> u64 {
        self.0.iter().map(|lent| lent.answered()).sum()
    }

    /// How many bytes of answers the backends have given so far.
    pub fn answer_bytes(&self) -> u64 {
        self.0.iter().map(|lent| lent.answer_bytes()).sum()
    }
}

/// Tunnels do not show more often than this that they are alive.
const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(10);

/// Lends backends to servers.
pub struct Worker {
    config: WorkerConfig,
    lent: Vec<Arc<Lent>>,
    /// The servers, with what there is to know of the rooms in them.
    servers: Vec<(ServerTarget, Option<Arc<InRoom>>)>,
    dialer: Arc<dyn Dialer>,
    teller: Teller,
}

impl Worker {
    /// A worker that has not begun. `dialer` gives it its links; usually [`crate::NetDialer`].
    ///
    /// # Errors
    /// [`NotAWorker`] when there is no server or no backend, or a backend cannot be used.
    pub fn new(config: WorkerConfig, dialer: impl Dialer) -> Result<Self, NotAWorker> {
        if config.servers.is_empty() {
            return Err(NotAWorker::NoServer);
        }
        if config.backends.is_empty() {
            return Err(NotAWorker::NoBackend);
        }
        let lent = config.backends.iter().map(|lend| Lent::new(lend).map(Arc::new));
        let lent = lent.collect::<Result<_, _>>()?;
        let servers = config.servers.iter().map(|server| {
            let room = server.room.as_ref().map(|join| in_room(&config, server, join));
            Ok((server.clone(), room.transpose()?))
        });
        let servers = servers.collect::<Result<Vec<_>, NotAWorker>>()?;
        let in_rooms = servers.iter().all(|(_, room)| room.is_some());
        if config.protocol == Protocol::Tunnel && !in_rooms {
            return Err(NotAWorker::TunnelToNoRoom);
        }
        let (dialer, teller) = (Arc::new(dialer), Teller::default());
        Ok(Self { config, lent, servers, dialer, teller })
    }

    /// What goes on at the backends, for whoever shows it.
    pub fn activity(&self) -> Activity {
        Activity(self.lent.clone())
    }

    /// Has this observer told of each event, beside the log.
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        Self { teller: Teller(Some(observer)), ..self }
    }

    /// Lends until `shutdown`; then takes nothing new, finishes what is in flight within the
    /// drain time-out, and returns. Dropping this future cuts everything off at once.
    pub async fn run(self, shutdown: CancellationToken) -> WorkerEnd {
        // Dropped, and so ended, when the links are.
        let mut keepers = JoinSet::new();
        for lent in &self.lent {
            let (lent, teller) = (Arc::clone(lent), self.teller.clone());
            keepers.spawn(models::watch(lent, self.config.poll_interval, teller));
        }
        let mut links = JoinSet::new();
        for link in self.links(&shutdown) {
            match self.config.protocol {
                Protocol::Node => links.spawn(slots::run(link)),
                _ => links.spawn(link.run()),
            };
        }
        let mut all = WorkerEnd::default();
        while let Some(link) = links.join_next().await {
            // A link that has failed must not take the others down.
            let link = link.unwrap_or_default();
            all.cut_off += link.cut_off;
            all.gave_up = link.gave_up.or(all.gave_up);
        }
        all
    }

    fn links(&self, shutdown: &CancellationToken) -> impl Iterator<Item = LinkLoop> {
        let pairs =
            self.servers.iter().flat_map(|server| self.lent.iter().map(move |l| (server, l)));
        pairs.map(|((server, room), lent)| LinkLoop {
            server: server.clone(),
            room: room.clone(),
            speaks: self.speaks(room.is_some()),
            name: self.link_name(lent),
            lent: Arc::clone(lent),
            dialer: Arc::clone(&self.dialer),
            teller: self.teller.clone(),
            drain_timeout: self.config.drain_timeout,
            heartbeat: self.config.heartbeat.max(SHORTEST_HEARTBEAT),
            shutdown: shutdown.clone(),
        })
    }

    fn speaks(&self, in_room: bool) -> Speaks {
        match self.config.protocol {
            Protocol::Tunnel => Speaks::Tunnel,
            Protocol::Auto if in_room => Speaks::Any,
            _ => Speaks::Relay,
        }
    }

    /// The worker's name; with several backends also which one it is.
    fn link_name(&self, lent: &Lent) -> String {
        match self.lent.len() {
            1 => self.config.name.clone(),
            _ => format!("{}/{}", self.config.name, lent.backend().label()),
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
) -> Result<Arc<InRoom>, NotAWorker> {
    match config.protocol {
        Protocol::Node => return Err(NotAWorker::NodeInRoom),
        _ if config.backends.len() > 1 => return Err(NotAWorker::SeveralInRoom),
        _ => {}
    }
    let room = InRoom::new(Arc::clone(join), server).map_err(NotAWorker::Server)?;
    Ok(Arc::new(room))
}
