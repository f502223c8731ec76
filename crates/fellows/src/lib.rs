//! Several servers that act as one, over NATS: the *fleet*. Another server of it is a *fellow*.
//!
//! Each server says in a key-value bucket of NATS who it is and which workers it has, and sees there who else is
//! alive. A fellow's workers are providers of this server's scheduler, with as many slots as the fellow lends; a job for
//! one goes to the fellow over a stream, and the answer comes back on it. Everything is sealed, so NATS only carries
//! it. The decisions are made in [`fleet`], which is pure; this crate keeps async-nats to itself and drives the machines.
//!
//! - [`address`]: where NATS is, and the group of servers that meets there
//! - [`facts`]: what a server says of itself
//! - [`membership`]: the fellows that are there
//! - [`streams`]: ordered streams of bytes between servers, as tokio's reader and writer
//! - `jobs`: jobs at fellows' workers, and fellows' jobs at workers of this server
//! - `slots`: what is lent and borrowed
//! - `connection`: the connection to NATS, and the bucket
//! - [`shared`]: records that all servers see, changed by compare-and-set
//! - `node`: the parts that messages of fellows reach
//! - `own`: what this server tells, kept true
//! - `record`, `sealing`, `transport`: what goes over NATS
//! - `counts`: figures

pub mod address;
mod clock;
mod connection;
mod counts;
pub mod examination;
pub mod facts;
mod jobs;
pub mod membership;
mod node;
mod own;
mod record;
mod sealing;
pub mod shared;
mod slots;
pub mod streams;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transport;

use std::{sync::Arc, time::Duration};

use base::Secret;
use fleet::{Members, State};
use scheduler::Scheduler;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

pub use fleet::{ServerId, ServerName};

pub use self::{
    address::{BadAddress, NatsAddress},
    counts::JobCounts,
    facts::{Facts, WorkerFacts},
    membership::Fellow,
    own::Announcements,
    shared::{NotPut, SharedRecords, Sight},
    slots::SlotCounts,
    streams::{FellowStream, Handler, Over, Service, end::Reason},
};
use self::{
    connection::Connection,
    counts::Counts,
    facts::EncodedFacts,
    jobs::{seat::Seats, serving::Servant},
    membership::{Fleet, Membership},
    node::{Node, Trouble},
    own::Own,
    sealing::{GroupKey, Sealer},
    slots::Slots,
    streams::Streams,
    transport::Transport,
};

/// The most events that wait for the task of the membership. A sender of more waits.
const MOST_HEARD: usize = 256;

/// How long the farewell to NATS may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// The settings of a server of a fleet.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where NATS is, and the group.
    pub address: NatsAddress,
    /// The name of this server, which it keeps over its starts. 1 to 128 bytes.
    pub name: String,
    /// The administrator's token, which all servers of the group share: from it follow the keys by which they seal
    /// what they send each other.
    pub admin_token: Secret,
    /// The version of the program.
    pub version: &'static str,
    /// Where workers and clients reach this server, if it knows.
    pub url: Option<String>,
    /// The longest body of a request, in bytes.
    pub max_body: usize,
}

/// The fellows of this server, and what it is to them. Clones share it.
#[derive(Clone)]
pub struct Fellows {
    node: Arc<Node>,
    address: NatsAddress,
    records: SharedRecords,
    state: Arc<watch::Sender<State>>,
    stop: CancellationToken,
}

/// The tasks of a [`Fellows`], for its end.
pub struct FellowTasks {
    fellows: Fellows,
    connection: tokio::task::JoinHandle<()>,
    tasks: JoinSet<()>,
}

/// The fleet as this server sees it.
#[derive(Debug, Clone)]
pub struct Status {
    /// This server.
    pub id: ServerId,
    /// Its name.
    pub name: ServerName,
    /// The group of servers.
    pub group: String,
    /// The NATS servers, without credentials.
    pub nats: String,
    /// Whether NATS is reached.
    pub is_connected: bool,
    /// The problem, and what to do.
    pub problem: Option<String>,
    /// The fellows, by id.
    pub fellows: Vec<Fellow>,
    /// Slots that are lent and borrowed.
    pub slots: SlotCounts,
    /// Jobs between servers.
    pub jobs: JobCounts,
    /// Streams with fellows, those of jobs among them.
    pub streams: usize,
    /// Messages to fellows: those that were sent, and those that could not be.
    pub messages: (u64, u64),
}

impl Fellows {
    /// Begins to look for fellows, and to be one. `announcements` is among the scheduler's observers. `None` only if the
    /// cipher takes no keys.
    pub fn start(
        settings: Settings,
        scheduler: &Scheduler,
        announcements: Announcements,
    ) -> Option<FellowTasks> {
        let (fellows, tasks, connection) = Self::parts(settings, scheduler, announcements)?;
        let connection = tokio::spawn(connection.run(fellows.stop.clone()));
        Some(FellowTasks { fellows, connection, tasks })
    }

    /// All of it, but for the connection, which does not run yet.
    fn parts(
        settings: Settings,
        scheduler: &Scheduler,
        announcements: Announcements,
    ) -> Option<(Self, JoinSet<()>, Connection)> {
        let id = ServerId::from_random(rand::random());
        let name = ServerName::from(settings.name.as_str());
        let group = GroupKey::new(&settings.admin_token, settings.address.group());
        let transport = Transport::new(settings.address.group(), Sealer::new(&group, id)?);
        let node = node(id, &name, scheduler, transport);
        let (heard, hears) = mpsc::channel(MOST_HEARD);
        let (publish, own) = watch::channel(None);
        let (state, states) = watch::channel(State::Active);
        let members = Members::new(id, name, EncodedFacts::new(Facts::default()));
        let membership = Membership::new(members, (hears, states), publish, Arc::clone(&node));
        let (address, version, url) = (settings.address, settings.version, settings.url);
        let (of_connection, transport) = (address.clone(), Arc::clone(&node.transport));
        let records = SharedRecords::new(address.group(), group.clone(), transport);
        let (stop, state) = (CancellationToken::new(), Arc::new(state));
        let of_own = heard.clone();
        let facts = Own { node: Arc::clone(&node), version, url, announcements, heard: of_own };
        let fellows =
            Self { node: Arc::clone(&node), address, records: records.clone(), state, stop };
        fellows.serve_jobs(settings.max_body);
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&node.streams).keep());
        tasks.spawn(Arc::clone(&node.slots).keep());
        tasks.spawn(membership.run());
        tasks.spawn(facts.keep());
        let connection = Connection { address: of_connection, group, node, records, heard, own };
        Some((fellows, tasks, connection))
    }

    /// The id of this start of the server.
    pub fn id(&self) -> ServerId {
        self.node.id
    }

    /// The name of this server, which it keeps over its starts.
    pub fn name(&self) -> &ServerName {
        &self.node.name
    }

    /// The fellows that are there now, by id.
    pub fn all(&self) -> Vec<Fellow> {
        self.node.fleet.all()
    }

    /// Marked as changed whenever a fellow comes, changes or goes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.node.fleet.changes()
    }

    /// Opens a stream to a fellow for a service. It can be written at once; whether the fellow takes it shows when it is
    /// read. `None` if the fellow is not there, or there are too many streams with it.
    pub fn open(&self, to: ServerId, service: Service) -> Option<FellowStream> {
        self.node.streams.open(to, service, &[], false)
    }

    /// Streams that fellows open for a service go to this handler from now on. It is called by the task that all
    /// messages of fellows pass through, and must not block it.
    pub fn serve(&self, service: Service, handler: Handler) {
        self.node.streams.serve(service, handler);
    }

    /// The records that all servers of the group see and may change.
    pub fn records(&self) -> &SharedRecords {
        &self.records
    }

    /// Whether NATS is reached.
    pub fn is_connected(&self) -> bool {
        self.node.transport.is_up()
    }

    /// The problem, and what to do; `None` while all is well.
    pub fn problem(&self) -> Option<String> {
        self.node.trouble.problem(&self.node.name)
    }

    /// The fleet as this server sees it.
    pub fn status(&self) -> Status {
        let node = &self.node;
        Status {
            id: node.id,
            name: node.name.clone(),
            group: self.address.group().to_owned(),
            nats: self.address.shown(),
            is_connected: self.is_connected(),
            problem: self.problem(),
            fellows: node.fleet.all(),
            slots: node.slots.counts(),
            jobs: node.counts.now(),
            streams: node.streams.count(),
            messages: node.transport.counts(),
        }
    }

    /// This server stops soon: fellows send it nothing new.
    pub fn drain(&self) {
        self.state.send_replace(State::Draining);
    }

    fn serve_jobs(&self, max_body: usize) {
        let node = &self.node;
        let servant = Arc::new(Servant {
            scheduler: node.scheduler.clone(),
            slots: Arc::clone(&node.slots),
            fleet: Arc::clone(&node.fleet),
            counts: Arc::clone(&node.counts),
            max_body,
        });
        let handler = move |stream| _ = tokio::spawn(Arc::clone(&servant).serve(stream));
        self.serve(Service::JOBS, Arc::new(handler));
    }
}

impl FellowTasks {
    /// The fellows, for the other parts of the server.
    pub fn fellows(&self) -> Fellows {
        self.fellows.clone()
    }

    /// Leaves the fleet. Jobs of fellows that are still here end.
    pub async fn shut_down(mut self) {
        let node = &self.fellows.node;
        node.seats.shut_down();
        node.streams.shut_down();
        self.fellows.stop.cancel();
        let _late = tokio::time::timeout(FAREWELL, &mut self.connection).await;
        self.connection.abort();
        self.tasks.shutdown().await;
    }
}

fn node(id: ServerId, name: &ServerName, scheduler: &Scheduler, transport: Transport) -> Arc<Node> {
    let (transport, counts) = (Arc::new(transport), Arc::<Counts>::default());
    let streams = Streams::new(Arc::clone(&transport));
    let slots = Slots::new(scheduler.clone(), Arc::clone(&transport));
    let seats = Seats::new(scheduler.clone(), Arc::clone(&streams), Arc::clone(&counts));
    Arc::new(Node {
        id,
        name: name.clone(),
        scheduler: scheduler.clone(),
        transport,
        fleet: Arc::<Fleet>::default(),
        streams,
        slots,
        seats,
        counts,
        trouble: Trouble::default(),
    })
}
