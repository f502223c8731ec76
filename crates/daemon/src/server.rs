//! A running server, from start to drain.
//!
//! - `assembly`: its parts, in the order in which they are made
//! - `tasks`: its tasks, and how they end

mod assembly;
mod tasks;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use access::Moment;
use api::{Api, Whereabouts as _};
use base::{Live, Secret};
use protocol::admin::stop::StopProgress;
use providers::RelayWorkers;
use scheduler::Scheduler;
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use traces::Traces;

use self::{
    assembly::{Base, Jobs, Links, api, cluster_models, reloadable},
    tasks::Tasks,
};
use crate::{
    announcement::Announcement,
    cluster_models::ClusterModels,
    cluster_part::ClusterPart,
    fleet_part::{FleetCell, FleetObserver, FleetPart, RoomsOfFleet},
    listener::Listener,
    parts::SecretSources,
    peering::{MeshPart, RunningMesh},
    reload::{Reloading, Source},
    routes::{self, Acceptors},
    running::{self, ServerFile},
    settings::Settings,
    signals::{HangUps, Stop},
    stopping::{PendingWork, RunningSessions, StopCell},
};

/// How often a draining server checks whether it is idle.
const LOOK: Duration = Duration::from_millis(20);

/// How long each step after the drain may take at most, such as the wait for complete responses to reach their
/// clients.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the code that is shown at the start is good for.
const INVITED_FOR: Duration = Duration::from_secs(60 * 60);

/// A server that is bound and ready, and serves once it is [`Server::run`].
pub struct Server {
    listener: Listener,
    parts: Parts,
}

/// The parts of a server beside its listener.
struct Parts {
    base: Base,
    jobs: Jobs,
    links: Links,
    api: Api,
    secrets: SecretSources,
    sessions: RunningSessions,
    /// Kept alive here: the other parts have weak references only, since it has references to them.
    _cluster_models: Option<Arc<ClusterModels>>,
    cluster: Option<ClusterPart>,
    fleet: Option<FleetPart>,
    rooms_of_fleet: Option<RoomsOfFleet>,
    /// Cancelled when the ports stop taking new connections.
    closing: CancellationToken,
    reloading: Reloading,
    /// The signals at which the server reads its configuration again.
    hang_ups: Option<HangUps>,
    /// The handle that ends the server; it is set once the server runs.
    stop: StopCell,
    pending: PendingWork,
}

impl Server {
    /// Takes the data directory, opens the database and binds the address.
    ///
    /// # Errors
    /// When any of that fails; the text says what to do.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let (base, tokens) = Base::open(settings)?;
        let (observer, fleet_cell) = (FleetObserver::default(), FleetCell::default());
        let jobs = Jobs::new(&base, &observer)?;
        let links = Links::start(&base, &jobs, &tokens).await?;
        let api = api(&base, &tokens, &jobs, &links, &fleet_cell);
        let models = links.workspace.as_ref().map(|it| cluster_models(&api, &base.keys, it));
        let sessions = RunningSessions::new(links.workspace.clone());
        let (stop, closing) = (StopCell::default(), CancellationToken::new());
        let pending = PendingWork::new(&jobs.scheduler, &sessions);
        let patience = Live::new(base.settings.dispatch.idle_timeout);
        let changed = reloadable(&base, &jobs, &links, &api, &patience);
        let reloading = Reloading::new(base.settings.clone(), changed);
        let ends = (Arc::clone(&stop), pending.clone());
        let acceptors = acceptors(&jobs, &links, &fleet_cell, ends, &reloading);
        let (scheduler, metrics) = (&jobs.scheduler, &jobs.metrics);
        let router = routes::router(api.clone(), acceptors, scheduler.clone(), Arc::clone(metrics));
        let listener = listener(&base.settings, &api, router.clone(), &jobs, patience)?;
        let address = listener.address()?;
        let cluster = cluster(&base, &jobs, &links, closing.clone()).await?;
        let fleet = FleetPart::start(&base.settings, &tokens, &jobs.scheduler, observer, address)?;
        let rooms_of_fleet = match &fleet {
            Some(fleet) => {
                // The cell is set here only, so there is no earlier value.
                let _earlier = fleet_cell.set(fleet.clone());
                share_rooms(fleet, &base, &jobs, &links, &api, router).await
            }
            None => None,
        };
        let parts = Parts {
            base,
            jobs,
            links,
            api,
            secrets: tokens.sources,
            sessions,
            _cluster_models: models,
            cluster,
            fleet,
            rooms_of_fleet,
            closing,
            reloading,
            hang_ups: None,
            stop,
            pending,
        };
        parts.listening(address);
        Ok(Self { listener, parts })
    }

    /// Lets the server read its configuration again from `source`, at a SIGHUP or a request over HTTP.
    ///
    /// # Errors
    /// When the process cannot listen to the signal.
    pub fn reloaded_from(self, source: Source) -> std::io::Result<Self> {
        self.parts.reloading.read_from(source);
        let parts = Parts { hang_ups: Some(HangUps::new()?), ..self.parts };
        Ok(Self { parts, ..self })
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// When the socket's address cannot be read.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// The URLs of the server: the first for this machine, the others for other machines.
    ///
    /// # Errors
    /// When the socket's address cannot be read.
    pub fn urls(&self) -> std::io::Result<Vec<String>> {
        Ok(running::urls(self.address()?, self.parts.base.settings.tls.is_some()))
    }

    /// The URL of the server for this machine.
    ///
    /// # Errors
    /// When the socket's address cannot be read.
    pub fn own_url(&self) -> std::io::Result<String> {
        Ok(running::own_url(self.address()?, self.parts.base.settings.tls.is_some()))
    }

    /// Where the secrets that other machines need come from.
    pub fn secrets(&self) -> &SecretSources {
        &self.parts.secrets
    }

    /// A function that lists the models and aliases that are served when it is called.
    pub fn served(&self) -> impl Fn() -> Vec<String> + use<> {
        let api = self.parts.api.clone();
        move || api.served().iter().map(ToString::to_string).collect()
    }

    /// A new code by which one machine can become a worker, within an hour and while this server runs. `None` if only
    /// programs of this machine reach the server.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn invite(&self) -> anyhow::Result<Option<Secret>> {
        if self.address()?.ip().is_loopback() {
            return Ok(None);
        }
        let (_, code) = self.parts.api.joining().invite(None, INVITED_FOR, None, false)?;
        Ok(Some(code.text))
    }

    /// A code by which one browser can sign in at the page as the server's owner, once and within ten minutes. `None`
    /// if too many codes are open.
    pub fn login_code(&self) -> Option<Secret> {
        let sessions = self.parts.base.keys.page_sessions();
        sessions.codes().create(sessions.owner()?, Moment::now()).ok()
    }

    /// The terminals and agents, for the caller that stops the server.
    pub fn sessions(&self) -> RunningSessions {
        self.parts.sessions.clone()
    }

    /// The acceptor of workers, for a worker in this process.
    pub fn workers(&self) -> RelayWorkers {
        self.parts.links.workers.clone()
    }

    /// Where spans go, for a worker in this process.
    pub fn traces(&self) -> Option<Traces> {
        self.parts.jobs.traces.clone()
    }

    /// Serves until `ending` is asked for, by a signal or over HTTP. Then drains: no new jobs are taken, and jobs in
    /// flight may finish within the drain time-out. When the drain begins, `tell` gets the work that the server waits
    /// for.
    ///
    /// # Errors
    /// When a part cannot write its state at the end.
    pub async fn run(
        self,
        ending: Stop,
        tell: impl FnOnce(&StopProgress) + Send,
    ) -> anyhow::Result<()> {
        let Self { listener, mut parts } = self;
        // A server runs once, so there is no earlier value.
        let _earlier = parts.stop.set(ending.clone());
        let tasks = Tasks::start(&mut parts, &ending);
        let Base { settings, here, invitations, .. } = &parts.base;
        let announced =
            Announcement::start(settings, listener.address(), here.id(), invitations.clone());
        let connections = tokio::spawn(listener.run(parts.closing.clone()));
        let mesh = parts.links.mesh.take().map(MeshPart::run);
        ending.drain().cancelled().await;
        tracing::info!("stopping: what is in flight may finish");
        tell(&parts.pending.now());
        let drain_time = parts.reloading.settings().drain;
        let drained = Instant::now() + drain_time;
        let withdrawing = tokio::spawn(announced.withdraw());
        parts.api.start_draining();
        if let Some(fleet) = &parts.fleet {
            fleet.drain();
        }
        // Comes before the links are told: clients and workers that then connect again must find the port closed.
        parts.closing.cancel();
        let connections = connections.await;
        parts.finish_jobs(drain_time, ending.at_once()).await;
        if let Ok(connections) = connections {
            let left = if ending.at_once().is_cancelled() { Instant::now() } else { drained };
            see_off(&connections, left).await;
        }
        parts.close_links(mesh).await;
        tasks.end(&parts.jobs.ledger).await?;
        withdrawing.await?;
        running::forget(parts.base.data.path());
        Ok(())
    }
}

impl Parts {
    /// Tells the parts, and commands of this machine, where the server listens.
    fn listening(&self, address: SocketAddr) {
        let settings = &self.base.settings;
        self.api.listening(address);
        self.base.here.listening(address);
        if let Some(workspace) = &self.links.workspace {
            workspace.listening(address, settings.tls.is_some());
        }
        let own = ServerFile::own(address, settings.tls_certificate.as_deref());
        if let Err(error) = own.write(self.base.data.path()) {
            tracing::warn!(%error, "commands of this machine cannot look up where the server is");
        }
    }

    /// Waits until all jobs have ended, within the drain time-out.
    async fn finish_jobs(&self, within: Duration, at_once: &CancellationToken) {
        self.jobs.scheduler.shut_down("the server is shutting down", within);
        drain(&self.jobs.scheduler, within, at_once).await;
        // Responses in the background have ended with their jobs, but may still write their last state.
        let _ = timeout(FAREWELL, self.api.background_ended()).await;
        self.pending.drained();
    }

    /// Closes long-lived connections. This comes last, so that requests on them could finish.
    async fn close_links(&self, mesh: Option<RunningMesh>) {
        if let Some(rooms) = &self.rooms_of_fleet {
            rooms.see_off(FAREWELL).await;
        }
        if let Some(fleet) = &self.fleet {
            fleet.shut_down().await;
        }
        if let Some(mesh) = mesh {
            mesh.end().await;
        }
        if let Some(relay) = &self.links.relay {
            relay.shut_down();
        }
        if let Some(workspace) = &self.links.workspace {
            workspace.shut_down(self.sessions.fate()).await;
        }
        if let Some(cluster) = &self.cluster {
            cluster.shut_down().await;
        }
        self.links.tracker.close();
        let _ = timeout(FAREWELL, self.links.tracker.wait()).await;
    }
}

/// The acceptors of connections. `stop` and `pending`: the handle that ends the server, and the work that it then
/// waits for.
fn acceptors(
    jobs: &Jobs,
    links: &Links,
    fleet: &FleetCell,
    (stop, pending): (StopCell, PendingWork),
    reloading: &Reloading,
) -> Acceptors {
    Acceptors {
        workers: links.workers.clone(),
        nodes: links.nodes.clone(),
        participants: links.participants.clone(),
        mesh: links.mesh(),
        relay: links.relay.clone(),
        fleet: Arc::clone(fleet),
        workspace: links.workspace.clone(),
        stop,
        pending,
        traces: jobs.traces.clone(),
        reloading: reloading.clone(),
    }
}

/// This machine's part in a workspace cluster, if it has one. `closing` ends it.
async fn cluster(
    base: &Base,
    jobs: &Jobs,
    links: &Links,
    closing: CancellationToken,
) -> anyhow::Result<Option<ClusterPart>> {
    let (settings, store, metrics) = (&base.settings, &base.stores.own, &jobs.metrics);
    let workspace = links.workspace.as_ref();
    ClusterPart::start(settings, store, workspace, metrics, links.mesh(), closing).await
}

/// The rooms that this server shares with its fellows, if it does.
async fn share_rooms(
    fleet: &FleetPart,
    base: &Base,
    jobs: &Jobs,
    links: &Links,
    api: &Api,
    router: axum::Router,
) -> Option<RoomsOfFleet> {
    if !base.settings.shares_rooms() {
        return None;
    }
    let (stored, tracker) = ((&base.rooms, &base.stores), links.tracker.clone());
    Some(fleet.share_rooms(api, router, stored, &jobs.scheduler, tracker).await)
}

/// Binds the address. `patience`: how long a client may read nothing.
fn listener(
    settings: &Settings,
    api: &Api,
    router: axum::Router,
    jobs: &Jobs,
    patience: Live<Duration>,
) -> anyhow::Result<Listener> {
    let (local, of_fleet) = (settings.local.clone(), settings.shares_rooms());
    let for_clients = routes::for_clients(api, router, local, of_fleet);
    let (listen, tls) = (settings.listen, settings.tls.clone());
    Listener::bind(listen, tls, for_clients, Arc::clone(&jobs.metrics), patience)
}

/// Waits for connections that still write a response, until `until` and for [`FAREWELL`] at least.
async fn see_off(connections: &TaskTracker, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let _ = timeout(left.max(FAREWELL), connections.wait()).await;
}

async fn drain(scheduler: &Scheduler, within: Duration, at_once: &CancellationToken) {
    let idle = async {
        while !scheduler.is_idle() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = at_once.cancelled() => scheduler.abort(),
        drained = timeout(within, idle) => if drained.is_err() {
            tracing::warn!("the drain took too long: what is left is ended");
            scheduler.abort();
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// How long `see_off` waits for a connection that needs `takes` when the drain has `left`.
    async fn waited(takes: u64, left: u64) -> u64 {
        let (connections, began) = (TaskTracker::new(), Instant::now());
        connections.spawn(sleep(Duration::from_secs(takes)));
        connections.close();
        see_off(&connections, began + Duration::from_secs(left)).await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_of_a_finished_answer_has_the_rest_of_the_drain() {
        assert_eq!(waited(20, 30).await, 20);
        assert_eq!(waited(40, 30).await, 30);
        assert_eq!(waited(40, 0).await, FAREWELL.as_secs());
    }
}
