//! The parts of a server, in the order in which they are made. Each part needs those before it.

use std::{hash::RandomState, sync::Arc, time::Duration};

use access::{Invitations, Keys, Token};
use anyhow::Context;
use api::{
    Administration, Api, Elsewhere, Identity, Joining, MessageJobs, Whereabouts,
    admin::{RecentRequests, RecentSeries},
};
use base::Live;
use mesh::Mesh;
use protocol::via::Marks;
use providers::{ModelNodes, Participants, RelayWorkers};
use rooms::Rooms;
use scheduler::{Observer, Scheduler};
use store::AgeClock;
use tokio_util::task::TaskTracker;
use traces::{Export, Traces};

use crate::{
    VERSION,
    cluster_models::ClusterModels,
    data::DataDir,
    fleet_part::{FleetCell, FleetObserver},
    health::Health,
    known_models::KnownModels,
    ledger::{Ledger, Retention},
    parts::{self, LenderSecrets, Tokens},
    peering::{MeshPart, Relay},
    reload,
    response_keeper::ResponseKeeper,
    room_keeper::RoomEvents,
    settings::Settings,
    storage,
    stores::Stores,
    telemetry::{metrics::Metrics, traced_jobs::TracedJobs, tracing_export::TraceSettings},
    whereabouts::Here,
    workspace_part::WorkspacePart,
};

/// The settings, and the state that is on the disk.
pub(super) struct Base {
    pub(super) settings: Settings,
    pub(super) stores: Stores,
    pub(super) ages: Arc<AgeClock>,
    pub(super) keys: Keys,
    pub(super) invitations: Invitations,
    pub(super) here: Arc<Here>,
    pub(super) models: Arc<KnownModels>,
    pub(super) rooms: Rooms,
    pub(super) responses: ResponseKeeper,
    kept_responses: Live<Duration>,
    /// Holds the directory's lock. The last field: it is released after the stores are closed.
    pub(super) data: DataDir,
}

impl Base {
    /// Takes the data directory, and opens the database. Returns the server's secrets, too.
    pub(super) fn open(settings: Settings) -> anyhow::Result<(Self, Tokens)> {
        let data = DataDir::open(&settings.data_dir)?;
        let tokens = Tokens::load(&settings, &data)?;
        let stores = Stores::open(settings.database.as_ref(), &data)?;
        let ages = storage::age_clock(&stores.ages)?;
        let keys = parts::keys(&stores, tokens.client.as_ref(), &settings.prices)?;
        parts::add_page_sessions(&keys, &stores, &tokens.admin)?;
        let kept_responses = Live::new(settings.kept_responses);
        let base = Self {
            invitations: Invitations::open(Arc::clone(&stores.invitations), keys.clone())?,
            here: Arc::new(Here::open(&data, settings.fingerprint)?),
            models: Arc::new(KnownModels::open(&stores.own, &ages)?),
            rooms: parts::rooms(&settings, &stores)?,
            responses: ResponseKeeper::open(&stores, &keys, kept_responses.clone(), &ages)?,
            kept_responses,
            settings,
            data,
            stores,
            ages,
            keys,
        };
        Ok((base, tokens))
    }
}

/// The scheduler, and what observes its jobs.
pub(super) struct Jobs {
    pub(super) scheduler: Scheduler,
    pub(super) metrics: Arc<Metrics>,
    pub(super) ledger: Arc<Ledger>,
    retention: Live<Duration>,
    requests: Arc<RecentRequests>,
    pub(super) series: Arc<RecentSeries>,
    by_message: Arc<MessageJobs>,
    pub(super) traces: Option<Traces>,
    /// The task that sends spans, once the server runs.
    pub(super) export: Option<Export>,
}

impl Jobs {
    pub(super) fn new(base: &Base, fleet: &FleetObserver) -> anyhow::Result<Self> {
        let Base { settings, stores, ages, keys, models, rooms, .. } = base;
        let metrics = Arc::new(Metrics::new());
        let retention = Live::new(settings.usage_retention);
        let rows = Retention { time: retention.clone(), ages: Arc::clone(ages) };
        let ledger = Arc::new(Ledger::new(Arc::clone(&stores.usage), rows, metrics.ledger()));
        let requests = Arc::new(RecentRequests::default());
        let series = Arc::new(RecentSeries::default());
        let by_message = Arc::<MessageJobs>::default();
        let counting: [Arc<dyn Observer>; 4] = [
            Arc::<Metrics>::clone(&metrics),
            Arc::<RecentRequests>::clone(&requests),
            Arc::<RecentSeries>::clone(&series),
            Arc::new(RoomEvents::new(rooms.clone(), Arc::clone(&by_message))),
        ];
        let mut observers = parts::observers(settings, keys, models, &ledger, counting);
        observers.extend(fleet.observers(settings));
        let (traces, export) = traces(settings)?.unzip();
        observers.extend(traces.clone().map(|traces| Arc::new(TracedJobs::new(traces)) as _));
        Ok(Self {
            scheduler: parts::scheduler(settings, observers),
            metrics,
            ledger,
            retention,
            requests,
            series,
            by_message,
            traces,
            export,
        })
    }
}

/// The queue for spans and the task that sends them, if requests are traced.
fn traces(settings: &Settings) -> anyhow::Result<Option<(Traces, Export)>> {
    let Some(tracing) = &settings.tracing else { return Ok(None) };
    let started = tracing.start("warren-server");
    started.map(Some).context("spans cannot be sent: see SSL_CERT_FILE")
}

/// The parts that other machines and programs are linked to.
pub(super) struct Links {
    /// The tasks of the links of workers, model nodes and participants, and of nodes of the mesh at the mesh relay.
    pub(super) tracker: TaskTracker,
    lenders: LenderSecrets,
    pub(super) workers: RelayWorkers,
    pub(super) nodes: ModelNodes,
    pub(super) participants: Participants,
    marks: Marks,
    pub(super) mesh: Option<MeshPart>,
    pub(super) relay: Option<Relay>,
    pub(super) workspace: Option<WorkspacePart>,
}

impl Links {
    pub(super) async fn start(base: &Base, jobs: &Jobs, tokens: &Tokens) -> anyhow::Result<Self> {
        let (Base { settings, stores, keys, rooms, .. }, scheduler) = (base, &jobs.scheduler);
        let (tracker, lenders) = (TaskTracker::new(), LenderSecrets::default());
        lenders.set(settings, &tokens.worker);
        let workers = parts::relay_workers(settings, &lenders, keys.clone(), scheduler, rooms);
        let nodes = parts::model_nodes(&lenders, keys.clone(), scheduler);
        let participants = Participants::new(rooms.clone(), scheduler.clone());
        let marks = Marks::new(RandomState::new());
        let usage = Arc::clone(&stores.usage);
        Ok(Self {
            workers: workers.tracked_by(tracker.clone()),
            nodes: nodes.tracked_by(tracker.clone()),
            participants: participants.tracked_by(tracker.clone()),
            mesh: MeshPart::start(settings, scheduler, usage, marks.clone()).await?,
            relay: Relay::of(settings, &tracker)?,
            workspace: WorkspacePart::of(settings, &tokens.admin, keys, stores),
            tracker,
            lenders,
            marks,
        })
    }

    pub(super) fn mesh(&self) -> Option<Mesh> {
        self.mesh.as_ref().map(MeshPart::mesh)
    }
}

/// The APIs.
pub(super) fn api(
    base: &Base,
    tokens: &Tokens,
    jobs: &Jobs,
    links: &Links,
    fleet: &FleetCell,
) -> Api {
    let Base { settings, stores, keys, models, rooms, .. } = base;
    let condition = Health {
        stores: stores.clone(),
        ledger: Arc::clone(&jobs.ledger),
        mesh: links.mesh(),
        fleet: Arc::clone(fleet),
        workspace: links.workspace.clone(),
    };
    let here: Arc<dyn Whereabouts> = Arc::<Here>::clone(&base.here);
    let administration = Administration {
        token: Token::new(&tokens.admin),
        usage: Arc::clone(&stores.usage),
        audit: Arc::clone(&stores.audit),
        requests: Arc::clone(&jobs.requests),
        series: Arc::clone(&jobs.series),
        joining: Joining::new(base.invitations.clone(), here),
    };
    let api = Api::new(
        jobs.scheduler.clone(),
        parts::consumer_rules(settings, keys.clone()),
        administration,
        Arc::new(condition),
        parts::names(settings, models, rooms, Arc::clone(&jobs.by_message)),
        parts::limits(settings),
        Identity {
            marks: links.marks.clone(),
            version: VERSION,
            sampler: settings.tracing.as_ref().map(TraceSettings::sampler),
        },
    );
    api.keep_responses(Arc::clone(&stores.responses));
    api
}

/// The models of other members of the workspace's cluster. The API and the workspace get them.
pub(super) fn cluster_models(
    api: &Api,
    keys: &Keys,
    workspace: &WorkspacePart,
) -> Arc<ClusterModels> {
    let models = Arc::new(ClusterModels::of(api, keys));
    workspace.set_models(&models);
    let elsewhere: Arc<dyn Elsewhere> = Arc::<ClusterModels>::clone(&models);
    api.set_elsewhere(Arc::downgrade(&elsewhere));
    models
}

/// The parts that a reload of the configuration changes. `patience`: that of the listener.
pub(super) fn reloadable(
    base: &Base,
    jobs: &Jobs,
    links: &Links,
    api: &Api,
    patience: &Live<Duration>,
) -> reload::Parts {
    reload::Parts {
        api: api.clone(),
        keys: base.keys.clone(),
        rooms: base.rooms.clone(),
        scheduler: jobs.scheduler.clone(),
        here: Arc::clone(&base.here),
        lenders: links.lenders.clone(),
        retention: jobs.retention.clone(),
        kept_responses: base.kept_responses.clone(),
        patience: patience.clone(),
    }
}
