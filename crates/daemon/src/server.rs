//! A running server, from start to drain.

use std::{hash::RandomState, net::SocketAddr, sync::Arc, time::Duration};

use access::{Keys, Token};
use anyhow::Context;
use api::{Administration, Api, Condition, Cors, Identity, MessageJobs, admin::RecentRequests};
use axum::Router;
use base::Secret;
use mesh::Mesh;
use protocol::{admin::status::WorkspaceHealth, via::Marks};
use providers::{Participants, RelayWorkers};
use rooms::Rooms;
use scheduler::Scheduler;
use store::{SqliteStore, UsageStore};
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    VERSION,
    data::DataDir,
    keeper,
    ledger::Ledger,
    listener::Listener,
    mdns::Announced,
    parts::{self, Tokens},
    peering::{Part, Relay},
    remember::Remember,
    room_keeper::{self, RoomEvents},
    routes::{self, Doors},
    settings::Settings,
    telemetry::metrics::Metrics,
    working::Working,
};

/// How often a draining server looks whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// How long responses that are complete may take to reach their clients, at the end of a drain
/// that took all its time.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the last rows of usage may take to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);

/// A server that is bound and ready, and serves once it is [`Server::run`].
pub struct Server {
    settings: Settings,
    /// Held as long as the server runs.
    _data: DataDir,
    worker_secret: Secret,
    client_token: Option<Secret>,
    scheduler: Scheduler,
    workers: RelayWorkers,
    models: Arc<Remember>,
    keys: Keys,
    rooms: Rooms,
    participants: Participants,
    ledger: Arc<Ledger>,
    api: Api,
    listener: Listener,
    mesh: Option<Part>,
    relay: Option<Relay>,
    workspace: Option<Working>,
    /// The links of workers, nodes, participants and nodes of the mesh at the relay.
    links: TaskTracker,
}

impl Server {
    /// Takes the data directory, opens the database and binds the address.
    ///
    /// # Errors
    /// When any of that fails; the text says what to do.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let data = DataDir::open(&settings.data_dir)?;
        let tokens = Tokens::kept(&settings, &data)?;
        let store = Arc::new(SqliteStore::open(&data.database()?)?);
        let keys = parts::keys(&store, tokens.client.as_ref())?;
        let models = Arc::new(Remember::open(&store)?);
        let rooms = parts::rooms(&settings, &store)?;
        let metrics = Arc::new(Metrics::new());
        let usage: Arc<dyn UsageStore> = Arc::<SqliteStore>::clone(&store);
        let ledger = Ledger::new(Arc::clone(&usage), settings.usage_retention, metrics.ledger());
        let ledger = Arc::new(ledger);
        let requests = Arc::new(RecentRequests::default());
        let mut observers =
            parts::observers(&settings, &keys, &models, &metrics, &requests, &ledger);
        let by_message = Arc::<MessageJobs>::default();
        observers.push(Arc::new(RoomEvents::new(rooms.clone(), Arc::clone(&by_message))));
        let scheduler = parts::scheduler(&settings, observers);
        let links = TaskTracker::new();
        let workers =
            parts::relay_workers(&settings, &tokens.worker, keys.clone(), &scheduler, &rooms)
                .tracked_by(links.clone());
        let nodes =
            parts::model_nodes(&settings, keys.clone(), &scheduler).tracked_by(links.clone());
        let participants =
            Participants::new(rooms.clone(), scheduler.clone()).tracked_by(links.clone());
        let marks = Marks::new(RandomState::new());
        let part = Part::start(&settings, &scheduler, Arc::clone(&usage), marks.clone()).await?;
        let mesh = part.as_ref().map(Part::mesh);
        let relay = Relay::of(&settings, &links)?;
        let workspace = Working::of(&settings, &tokens.admin, &keys, &store);
        let token = Token::new(&tokens.admin);
        let condition = Health {
            ledger: Arc::clone(&ledger),
            mesh: mesh.clone(),
            workspace: workspace.clone(),
        };
        let api = Api::new(
            scheduler.clone(),
            parts::consumer_rules(&settings, keys.clone()),
            Administration { token, usage, audit: store, requests },
            Arc::new(condition),
            parts::names(&settings, &models, &rooms, by_message),
            parts::limits(&settings),
            Identity { marks, version: VERSION },
        );
        let (of_workers, of_participants) = (workers.clone(), participants.clone());
        let router = routes::router(
            api.clone(),
            Doors {
                workers: of_workers,
                nodes,
                participants: of_participants,
                mesh,
                relay: relay.clone(),
                workspace: workspace.clone(),
            },
            scheduler.clone(),
            Arc::clone(&metrics),
            settings.local.clone(),
        );
        let listener = listener(&settings, router, metrics).await?;
        api.listening(listener.address()?);
        if let Some(workspace) = &workspace {
            workspace.listening(listener.address()?, settings.tls.is_some());
        }
        Ok(Self {
            settings,
            _data: data,
            worker_secret: tokens.worker,
            client_token: tokens.client,
            scheduler,
            workers,
            models,
            keys,
            rooms,
            participants,
            ledger,
            api,
            listener,
            mesh: part,
            relay,
            workspace,
            links,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the socket does not tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// The URL of the server on this machine.
    ///
    /// # Errors
    /// When the socket does not tell.
    pub fn url(&self) -> std::io::Result<String> {
        let scheme = if self.settings.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.address()?))
    }

    /// The ready-made key of consumers.
    pub fn client_token(&self) -> Option<&Secret> {
        self.client_token.as_ref()
    }

    /// What workers present.
    pub fn worker_secret(&self) -> &Secret {
        &self.worker_secret
    }

    /// The links to workers, for one in this process.
    pub fn workers(&self) -> RelayWorkers {
        self.workers.clone()
    }

    /// Serves until `stop`, then drains: nothing new is taken, what is in flight may finish within
    /// the drain time-out, and then ends.
    ///
    /// # Errors
    /// When what was learnt cannot be written at the end.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let timers = tokio::spawn(self.scheduler.clone().run());
        let keeping =
            tokio::spawn(Arc::clone(&self.models).keep(self.scheduler.clone(), stop.clone()));
        let keeper = keeper::keep(self.keys.clone(), self.scheduler.clone(), stop.clone());
        let keeper = tokio::spawn(keeper);
        let caretaker = room_keeper::keep(self.rooms.clone(), self.scheduler.clone(), stop.clone());
        let caretaker = tokio::spawn(caretaker);
        let caller = tokio::spawn(self.participants.clone().call_endpoints());
        let ledger = Arc::clone(&self.ledger);
        let writer = tokio::task::spawn_blocking(move || ledger.write());
        let closing = CancellationToken::new();
        let announced = Announced::start(&self.settings, self.listener.address());
        let connections = tokio::spawn(self.listener.run(closing.clone()));
        let mesh = self.mesh.map(Part::run);
        stop.cancelled().await;
        let drained = Instant::now() + self.settings.drain;
        let withdrawing = tokio::spawn(announced.withdraw());
        self.api.start_draining();
        // Whoever hears of the end finds the listener closed.
        closing.cancel();
        let connections = connections.await;
        self.scheduler.shut_down("the server is shutting down", self.settings.drain);
        drain(&self.scheduler, self.settings.drain).await;
        if let Ok(connections) = connections {
            see_off(&connections, drained).await;
        }
        // Whoever is connected is told goodbye.
        if let Some(mesh) = mesh {
            mesh.end().await;
        }
        if let Some(relay) = self.relay {
            relay.shut_down();
        }
        if let Some(workspace) = self.workspace {
            workspace.shut_down().await;
        }
        self.links.close();
        let _ = timeout(FAREWELL, self.links.wait()).await;
        timers.abort();
        caller.abort();
        // Every job has ended, and told so.
        self.ledger.close(FLUSH_WITHIN);
        writer.await?;
        keeper.await?;
        caretaker.await?;
        keeping.await?;
        withdrawing.await?;
        Ok(())
    }
}

/// How the server is, as `/health` tells it.
struct Health {
    ledger: Arc<Ledger>,
    mesh: Option<Mesh>,
    workspace: Option<Working>,
}

impl Condition for Health {
    fn degraded(&self) -> Option<String> {
        self.ledger.degraded()
    }

    fn peers(&self) -> u32 {
        let linked = self.mesh.as_ref().map_or(0, Mesh::linked);
        u32::try_from(linked).unwrap_or(u32::MAX)
    }

    fn workspace(&self) -> Option<WorkspaceHealth> {
        self.workspace.as_ref().map(Working::health)
    }
}

/// Waits for connections that still have a response to write. Whoever has not read its own by
/// `until` is not waited for.
async fn see_off(connections: &TaskTracker, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let _ = timeout(left.max(FAREWELL), connections.wait()).await;
}

async fn listener(
    settings: &Settings,
    router: Cors<Router>,
    metrics: Arc<Metrics>,
) -> anyhow::Result<Listener> {
    let (listen, tls) = (settings.listen, settings.tls.clone());
    let patience = settings.dispatch.idle_timeout;
    let bound = Listener::bind(listen, tls, router, metrics, patience).await;
    bound.with_context(|| {
        format!("{listen} cannot be listened on: is another server running there?")
    })
}

async fn drain(scheduler: &Scheduler, within: Duration) {
    let idle = async {
        while !scheduler.is_idle() {
            tokio::time::sleep(LOOK).await;
        }
    };
    if timeout(within, idle).await.is_err() {
        tracing::warn!("the drain took too long: what is left is ended");
        scheduler.abort();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// How long a connection that takes `takes` is waited for, when `left` of a drain is left.
    async fn waited(takes: u64, left: u64) -> u64 {
        let (connections, began) = (TaskTracker::new(), Instant::now());
        connections.spawn(sleep(Duration::from_secs(takes)));
        connections.close();
        see_off(&connections, began + Duration::from_secs(left)).await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_a_finished_answer_has_what_is_left_of_the_drain() {
        assert_eq!(waited(20, 30).await, 20);
        assert_eq!(waited(40, 30).await, 30);
        assert_eq!(waited(40, 0).await, FAREWELL.as_secs());
    }
}
