//! A running server, from start to drain.

use std::{hash::RandomState, net::SocketAddr, sync::Arc, time::Duration};

use access::{Invitations, Keys, Moment, Token};
use anyhow::Context;
use api::{
    Administration, Api, Elsewhere, Identity, Joining, MessageJobs, Whereabouts,
    admin::{RecentRequests, RecentSeries},
};
use base::{Live, Secret};
use protocol::{admin::stop::StopProgress, via::Marks};
use providers::{Participants, RelayWorkers};
use rooms::Rooms;
use scheduler::{Observer, Scheduler};
use store::AgeClock;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use traces::{Export, Traces};

use crate::{
    VERSION,
    announcement::Announcement,
    cluster_models::ClusterModels,
    cluster_part::ClusterPart,
    data::DataDir,
    fleet_part::{FleetCell, FleetObserver, FleetPart, RoomsOfFleet},
    health::Health,
    key_keeper,
    known_models::KnownModels,
    ledger::{Ledger, Retention},
    listener::Listener,
    parts::{self, LenderSecrets, SecretSources, Tokens},
    peering::{MeshPart, Relay},
    reload::{self, Reloading, Source},
    response_keeper::ResponseKeeper,
    room_keeper::{self, RoomEvents},
    routes::{self, Acceptors},
    running::{self, ServerFile},
    settings::Settings,
    signals::{HangUps, Stop},
    stopping::{PendingWork, RunningSessions, StopCell},
    storage,
    stores::{SharingTasks, Stores},
    telemetry::{metrics::Metrics, traced_jobs::TracedJobs, tracing_export::TraceSettings},
    whereabouts::Here,
    workspace_part::WorkspacePart,
};

/// How often a draining server checks whether it is idle.
const LOOK: Duration = Duration::from_millis(20);

/// How long complete responses may still take to reach their clients when the drain has used all its time.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the code that is shown at the start is good for.
const INVITED_FOR: Duration = Duration::from_secs(60 * 60);

/// How long the last rows of usage may take to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);

/// A server that is bound and ready, and serves once it is [`Server::run`].
pub struct Server {
    settings: Settings,
    /// Holds the directory's lock.
    data: DataDir,
    here: Arc<Here>,
    secrets: SecretSources,
    stores: Stores,
    ages: Arc<AgeClock>,
    metrics: Arc<Metrics>,
    scheduler: Scheduler,
    workers: RelayWorkers,
    models: Arc<KnownModels>,
    keys: Keys,
    rooms: Rooms,
    participants: Participants,
    ledger: Arc<Ledger>,
    responses: ResponseKeeper,
    series: Arc<RecentSeries>,
    api: Api,
    listener: Listener,
    mesh: Option<MeshPart>,
    relay: Option<Relay>,
    workspace: Option<WorkspacePart>,
    sessions: RunningSessions,
    /// Held here: the other parts refer to it weakly, since it refers to them.
    _cluster_models: Option<Arc<ClusterModels>>,
    cluster: Option<ClusterPart>,
    fleet: Option<FleetPart>,
    rooms_of_fleet: Option<RoomsOfFleet>,
    /// Cancelled when no port takes new connections.
    closing: CancellationToken,
    /// The links of workers, nodes, participants and nodes of the mesh at the relay.
    links: TaskTracker,
    reloading: Reloading,
    traces: Option<Traces>,
    /// The task that sends spans, once the server runs.
    export: Option<Export>,
    /// The signals by which it reads its configuration again.
    hang_ups: Option<HangUps>,
    /// The cell that ends it, once it runs.
    stop: StopCell,
    pending: PendingWork,
}

impl Server {
    /// Takes the data directory, opens the database and binds the address.
    ///
    /// # Errors
    /// When any of that fails; the text says what to do.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let data = DataDir::open(&settings.data_dir)?;
        let tokens = Tokens::load(&settings, &data)?;
        let stores = Stores::open(settings.database.as_ref(), &data)?;
        let ages = storage::age_clock(&stores.ages)?;
        let keys = parts::keys(&stores, tokens.client.as_ref(), &settings.prices)?;
        parts::add_page_sessions(&keys, &stores, &tokens.admin)?;
        let invitations = Invitations::open(Arc::clone(&stores.invitations), keys.clone())?;
        let here = Arc::new(Here::open(&data, settings.fingerprint)?);
        let models = Arc::new(KnownModels::open(&stores.own, &ages)?);
        let rooms = parts::rooms(&settings, &stores)?;
        let metrics = Arc::new(Metrics::new());
        let usage = Arc::clone(&stores.usage);
        let retention = Live::new(settings.usage_retention);
        let row_retention = Retention { time: retention.clone(), ages: Arc::clone(&ages) };
        let kept_responses = Live::new(settings.kept_responses);
        let responses = ResponseKeeper::open(&stores, &keys, kept_responses.clone(), &ages)?;
        let ledger = Arc::new(Ledger::new(Arc::clone(&usage), row_retention, metrics.ledger()));
        let requests = Arc::new(RecentRequests::default());
        let series = Arc::new(RecentSeries::default());
        let by_message = Arc::<MessageJobs>::default();
        let counting: [Arc<dyn Observer>; 4] = [
            Arc::<Metrics>::clone(&metrics),
            Arc::<RecentRequests>::clone(&requests),
            Arc::<RecentSeries>::clone(&series),
            Arc::new(RoomEvents::new(rooms.clone(), Arc::clone(&by_message))),
        ];
        let mut observers = parts::observers(&settings, &keys, &models, &ledger, counting);
        let fleet_observer = FleetObserver::default();
        observers.extend(fleet_observer.observers(&settings));
        let (traces, export) = traces(&settings)?.unzip();
        observers.extend(traces.clone().map(|traces| Arc::new(TracedJobs::new(traces)) as _));
        let scheduler = parts::scheduler(&settings, observers);
        let links = TaskTracker::new();
        let lenders = LenderSecrets::default();
        lenders.set(&settings, &tokens.worker);
        let workers = parts::relay_workers(&settings, &lenders, keys.clone(), &scheduler, &rooms)
            .tracked_by(links.clone());
        let nodes =
            parts::model_nodes(&lenders, keys.clone(), &scheduler).tracked_by(links.clone());
        let participants =
            Participants::new(rooms.clone(), scheduler.clone()).tracked_by(links.clone());
        let marks = Marks::new(RandomState::new());
        let part =
            MeshPart::start(&settings, &scheduler, Arc::clone(&usage), marks.clone()).await?;
        let mesh = part.as_ref().map(MeshPart::mesh);
        let relay = Relay::of(&settings, &links)?;
        let workspace = WorkspacePart::of(&settings, &tokens.admin, &keys, &stores);
        let token = Token::new(&tokens.admin);
        let audit = Arc::clone(&stores.audit);
        let joining = Joining::new(invitations, Arc::<Here>::clone(&here));
        let fleet_cell = FleetCell::default();
        let condition = Health {
            stores: stores.clone(),
            ledger: Arc::clone(&ledger),
            mesh: mesh.clone(),
            fleet: Arc::clone(&fleet_cell),
            workspace: workspace.clone(),
        };
        let api = Api::new(
            scheduler.clone(),
            parts::consumer_rules(&settings, keys.clone()),
            Administration { token, usage, audit, requests, series: Arc::clone(&series), joining },
            Arc::new(condition),
            parts::names(&settings, &models, &rooms, by_message),
            parts::limits(&settings),
            Identity {
                marks,
                version: VERSION,
                sampler: settings.tracing.as_ref().map(TraceSettings::sampler),
            },
        );
        api.keep_responses(Arc::clone(&stores.responses));
        let cluster_models = workspace.as_ref().map(|workspace| {
            let models = Arc::new(ClusterModels::of(&api, &keys));
            workspace.set_models(&models);
            let elsewhere: Arc<dyn Elsewhere> = Arc::<ClusterModels>::clone(&models);
            api.set_elsewhere(Arc::downgrade(&elsewhere));
            models
        });
        let (of_workers, of_participants) = (workers.clone(), participants.clone());
        let sessions = RunningSessions::new(workspace.clone());
        let (stop, pending) = (StopCell::default(), PendingWork::new(&scheduler, &sessions));
        let patience = Live::new(settings.dispatch.idle_timeout);
        let changed = reload::Parts {
            api: api.clone(),
            keys: keys.clone(),
            rooms: rooms.clone(),
            scheduler: scheduler.clone(),
            here: Arc::clone(&here),
            lenders,
            retention,
            kept_responses,
            patience: patience.clone(),
        };
        let reloading = Reloading::new(settings.clone(), changed);
        let router = routes::router(
            api.clone(),
            Acceptors {
                workers: of_workers,
                nodes,
                participants: of_participants,
                mesh,
                relay: relay.clone(),
                fleet: Arc::clone(&fleet_cell),
                workspace: workspace.clone(),
                stop: Arc::clone(&stop),
                pending: pending.clone(),
                traces: traces.clone(),
                reloading: reloading.clone(),
            },
            scheduler.clone(),
            Arc::clone(&metrics),
        );
        let (local, of_fleet) = (settings.local.clone(), settings.shares_rooms());
        let for_clients = routes::for_clients(&api, router.clone(), local, of_fleet);
        let (listen, tls) = (settings.listen, settings.tls.clone());
        let listener = Listener::bind(listen, tls, for_clients, Arc::clone(&metrics), patience)?;
        let closing = CancellationToken::new();
        let of_mesh = part.as_ref().map(MeshPart::mesh);
        let (of_workspace, closes) = (workspace.as_ref(), closing.clone());
        let cluster =
            ClusterPart::start(&settings, &stores.own, of_workspace, &metrics, of_mesh, closes)
                .await?;
        let fleet =
            FleetPart::start(&settings, &tokens, &scheduler, fleet_observer, listener.address()?)?;
        if let Some(fleet) = &fleet {
            // It is set here only.
            let _earlier = fleet_cell.set(fleet.clone());
        }
        let rooms_of_fleet = match fleet.as_ref().filter(|_| settings.shares_rooms()) {
            Some(fleet) => {
                let stored = (&rooms, &stores);
                Some(fleet.share_rooms(&api, router, stored, &scheduler, links.clone()).await)
            }
            None => None,
        };
        api.listening(listener.address()?);
        here.listening(listener.address()?);
        if let Some(workspace) = &workspace {
            workspace.listening(listener.address()?, settings.tls.is_some());
        }
        let own = ServerFile::own(listener.address()?, settings.tls_certificate.as_deref());
        if let Err(error) = own.write(data.path()) {
            tracing::warn!(%error, "commands of this machine cannot look up where the server is");
        }
        Ok(Self {
            settings,
            data,
            here,
            stores,
            ages,
            metrics,
            secrets: tokens.sources,
            scheduler,
            workers,
            models,
            keys,
            rooms,
            participants,
            ledger,
            responses,
            series,
            api,
            listener,
            mesh: part,
            relay,
            sessions,
            workspace,
            _cluster_models: cluster_models,
            cluster,
            fleet,
            rooms_of_fleet,
            closing,
            links,
            reloading,
            traces,
            export,
            hang_ups: None,
            stop,
            pending,
        })
    }

    /// The same server, which reads its configuration again at SIGHUP and when it is asked over HTTP.
    ///
    /// # Errors
    /// When the process cannot listen to the signal.
    pub fn reloaded_from(self, source: Source) -> std::io::Result<Self> {
        self.reloading.read_from(source);
        Ok(Self { hang_ups: Some(HangUps::new()?), ..self })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the socket does not tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// The URLs of the server: the first for this machine, the others for other machines.
    ///
    /// # Errors
    /// When the socket does not tell.
    pub fn urls(&self) -> std::io::Result<Vec<String>> {
        Ok(running::urls(self.address()?, self.settings.tls.is_some()))
    }

    /// The URL of the server for this machine.
    ///
    /// # Errors
    /// When the socket does not tell.
    pub fn own_url(&self) -> std::io::Result<String> {
        Ok(running::own_url(self.address()?, self.settings.tls.is_some()))
    }

    /// Where the secrets that other machines need come from.
    pub fn secrets(&self) -> &SecretSources {
        &self.secrets
    }

    /// Lists the models and aliases that are served at the time of a call.
    pub fn served(&self) -> impl Fn() -> Vec<String> + use<> {
        let api = self.api.clone();
        move || api.served().iter().map(ToString::to_string).collect()
    }

    /// A new code by which one machine becomes a worker, within an hour and while this server runs. `None` when
    /// only programs of this machine reach it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn invite(&self) -> anyhow::Result<Option<Secret>> {
        if self.address()?.ip().is_loopback() {
            return Ok(None);
        }
        let (_, code) = self.api.joining().invite(None, INVITED_FOR, None, false)?;
        Ok(Some(code.text))
    }

    /// A code by which one browser signs in at the page as the server's owner, once and within ten minutes. `None` when
    /// too many are open.
    pub fn login_code(&self) -> Option<Secret> {
        let sessions = self.keys.page_sessions();
        sessions.codes().create(sessions.owner()?, Moment::now()).ok()
    }

    /// The terminals and agents, for the caller that stops the server.
    pub fn sessions(&self) -> RunningSessions {
        self.sessions.clone()
    }

    /// The links to workers, for one in this process.
    pub fn workers(&self) -> RelayWorkers {
        self.workers.clone()
    }

    /// Where spans go, for a worker in this process.
    pub fn traces(&self) -> Option<Traces> {
        self.traces.clone()
    }

    /// Serves until `ending` is asked for, by a signal or over HTTP, then drains: nothing new is taken, and jobs in flight may finish
    /// within the drain time-out. `tell` first gets the work that the server waits for.
    ///
    /// # Errors
    /// When a part cannot write its state at the end.
    pub async fn run(
        self,
        ending: Stop,
        tell: impl FnOnce(&StopProgress) + Send,
    ) -> anyhow::Result<()> {
        // It runs once, so there is no earlier one.
        let _earlier = self.stop.set(ending.clone());
        let stop = ending.drain().clone();
        let timers = tokio::spawn(self.scheduler.clone().run());
        let steps = tokio::spawn(end_steps(self.series, self.scheduler.clone()));
        let keeping =
            tokio::spawn(Arc::clone(&self.models).keep(self.scheduler.clone(), stop.clone()));
        let keeper = key_keeper::keep(self.keys.clone(), self.scheduler.clone(), stop.clone());
        let keeper = tokio::spawn(keeper);
        let (rooms, ages) = (self.rooms.clone(), Arc::clone(&self.ages));
        let caretaker = room_keeper::keep(rooms, ages, self.scheduler.clone(), stop.clone());
        let caretaker = tokio::spawn(caretaker);
        let deleting = tokio::spawn(self.responses.keep(stop.clone()));
        let degraded = self.metrics.database_degraded().clone();
        let invitations = self.api.joining().invitations.clone();
        let shared_rooms = self.rooms_of_fleet.is_some().then(|| self.rooms.clone());
        let sharing = SharingTasks::start(
            &self.stores,
            &self.keys,
            &invitations,
            &self.scheduler,
            shared_rooms,
            &stop,
        );
        let homes = self.rooms_of_fleet.clone().map(|homes| tokio::spawn(homes.keep(stop.clone())));
        let watcher = storage::watch(self.stores, self.ages, degraded, stop.clone());
        let watcher = tokio::spawn(watcher);
        let caller = tokio::spawn(self.participants.clone().call_endpoints());
        let ledger = Arc::clone(&self.ledger);
        let writer = tokio::task::spawn_blocking(move || ledger.write());
        let closing = self.closing;
        let announced = Announcement::start(
            &self.settings,
            self.listener.address(),
            self.here.id(),
            invitations,
        );
        let connections = tokio::spawn(self.listener.run(closing.clone()));
        let mesh = self.mesh.map(MeshPart::run);
        let exported = CancellationToken::new();
        let exporting = self.export.map(|export| tokio::spawn(export.run(exported.clone())));
        let following = self.hang_ups.map(|hang_ups| {
            tokio::spawn(reload::follow(hang_ups, self.reloading.clone(), ending.clone()))
        });
        stop.cancelled().await;
        tracing::info!("stopping: what is in flight may finish");
        tell(&self.pending.now());
        let drain_time = self.reloading.settings().drain;
        let drained = Instant::now() + drain_time;
        let withdrawing = tokio::spawn(announced.withdraw());
        self.api.start_draining();
        if let Some(fleet) = &self.fleet {
            fleet.drain();
        }
        // Clients and workers that hear of the end must find the listener closed.
        closing.cancel();
        let connections = connections.await;
        self.scheduler.shut_down("the server is shutting down", drain_time);
        drain(&self.scheduler, drain_time, ending.at_once()).await;
        // They have ended with their jobs, but for what they note.
        let _ = timeout(FAREWELL, self.api.background_ended()).await;
        self.pending.drained();
        if let Ok(connections) = connections {
            let left = if ending.at_once().is_cancelled() { Instant::now() } else { drained };
            see_off(&connections, left).await;
        }
        if let Some(rooms) = self.rooms_of_fleet {
            rooms.see_off(FAREWELL).await;
        }
        if let Some(fleet) = self.fleet {
            fleet.shut_down().await;
        }
        // Long-lived connections are closed last: until here they could finish their requests.
        if let Some(mesh) = mesh {
            mesh.end().await;
        }
        if let Some(relay) = self.relay {
            relay.shut_down();
        }
        if let Some(workspace) = self.workspace {
            workspace.shut_down(self.sessions.fate()).await;
        }
        if let Some(cluster) = self.cluster {
            cluster.shut_down().await;
        }
        self.links.close();
        let _ = timeout(FAREWELL, self.links.wait()).await;
        if let Some(following) = following {
            following.abort();
        }
        timers.abort();
        steps.abort();
        caller.abort();
        // All jobs have ended, so the ledger has every row.
        self.ledger.close(FLUSH_WITHIN);
        writer.await?;
        exported.cancel();
        if let Some(exporting) = exporting {
            exporting.await?;
        }
        if let Some(sharing) = sharing {
            sharing.end().await;
        }
        keeper.await?;
        caretaker.await?;
        deleting.await?;
        if let Some(homes) = homes {
            homes.await?;
        }
        watcher.await?;
        keeping.await?;
        withdrawing.await?;
        running::forget(self.data.path());
        Ok(())
    }
}

/// The queue for spans, if requests are traced, and what sends them.
fn traces(settings: &Settings) -> anyhow::Result<Option<(Traces, Export)>> {
    let Some(tracing) = &settings.tracing else { return Ok(None) };
    let started = tracing.start("warren-server");
    started.map(Some).context("spans cannot be sent: see SSL_CERT_FILE")
}

/// Ends the steps of the series in time, forever.
async fn end_steps(series: Arc<RecentSeries>, scheduler: Scheduler) {
    let mut steps = tokio::time::interval(RecentSeries::STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is at once.
    steps.tick().await;
    loop {
        steps.tick().await;
        let (queued, in_flight) = scheduler.counts();
        series.end_step(Moment::now().seconds(), queued, in_flight);
    }
}

/// Waits until `until` for connections that still write a response.
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
