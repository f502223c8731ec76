//! For tests: a server with providers in the hands of the test, and links without a socket.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{Endpoint, Endpoints, JobId, NodeId, ProviderId, Scope, Secret};
use bytes::Bytes;
use discovery::Reach;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use protocol::{
    mesh::{ClusterMessage, Dialect, cluster},
    via::Marks,
};
use scheduler::{
    Answer, Assignment, CancelReason, Config, Distance, Event, Head, Job, JobEnd, JobFacts,
    JobRequest, Membership, Observer, Offer, Provider, Scheduler,
};
use seal::{Identity, PasscodeKey};
use store::VolatileStore;
use tokio::sync::mpsc;

use crate::{
    link::{Carrier, Link, LinkProperties, Order, Outgoing},
    node::{Mesh, Parts},
    peer::{Peer, PeerId, Peers},
    settings::Settings,
    share::Share,
    this_machine::ThisMachine,
};

/// A machine that neither listens nor looks for others, and shares nothing.
pub(crate) fn settings() -> Settings {
    Settings {
        name: "box".to_owned(),
        version: "1",
        listen: None,
        passcode: None,
        plain_passcode: false,
        require_sealed: false,
        peers: Vec::new(),
        relays: Vec::new(),
        advertise: false,
        reach: Reach::Machine,
        share: Share::default(),
        trusted: Vec::new(),
        model_dirs: Vec::new(),
        offer_found: false,
        data_dir: "/nowhere".into(),
    }
}

pub(crate) fn with_passcode(passcode: &str) -> Settings {
    Settings { passcode: Some(Secret::from(passcode)), ..settings() }
}

/// A machine without a node. Its key follows from `seed`.
pub(crate) fn machine(seed: u8, settings: Settings, scheduler: Scheduler) -> Arc<ThisMachine> {
    let psk = settings.passcode.as_ref().map(PasscodeKey::derive);
    let identity = Identity::from_seed([seed; 32]);
    Arc::new(ThisMachine::new(settings, identity, psk, scheduler, Arc::default()))
}

/// A node that does not run. Its key follows from `seed`.
pub(crate) fn mesh(seed: u8, settings: Settings, server: &Server) -> Mesh {
    let psk = settings.passcode.as_ref().map(PasscodeKey::derive);
    let parts = Parts {
        identity: Identity::from_seed([seed; 32]),
        psk,
        scheduler: server.scheduler.clone(),
        usage: Arc::new(VolatileStore::default()),
        library: Arc::default(),
        marks: marks(),
    };
    Mesh::new(settings, parts)
}

/// The marks of a server.
pub(crate) fn marks() -> Marks {
    Marks::new(std::hash::RandomState::new())
}

/// A scheduler that runs.
pub(crate) struct Server {
    pub(crate) scheduler: Scheduler,
    pub(crate) ended: Arc<Mutex<Vec<(JobFacts, JobEnd)>>>,
    next: u128,
}

/// A call to a provider.
pub(crate) enum ProviderCall {
    Assigned(Box<Assignment>),
    Canceled(JobId),
}

struct OwnProvider(mpsc::Sender<ProviderCall>);

impl Provider for OwnProvider {
    fn name(&self) -> &'static str {
        "own"
    }

    fn assign(&self, assignment: Assignment) {
        self.0.try_send(ProviderCall::Assigned(Box::new(assignment))).ok();
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        self.0.try_send(ProviderCall::Canceled(job)).ok();
    }

    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, _: bool) {}

    fn refresh(&self, _: &str) {}
}

/// A provider of the server's own.
pub(crate) struct Lent {
    /// Kept: it leaves when this is dropped.
    _membership: Membership,
    calls: mpsc::Receiver<ProviderCall>,
}

impl Lent {
    pub(crate) async fn assigned(&mut self) -> Assignment {
        match testkit::within("an assignment", self.calls.recv()).await {
            Some(ProviderCall::Assigned(assignment)) => *assignment,
            _ => panic!("expected an assignment"),
        }
    }

    pub(crate) async fn canceled(&mut self) -> JobId {
        match testkit::within("a cancellation", self.calls.recv()).await {
            Some(ProviderCall::Canceled(job)) => job,
            _ => panic!("expected a cancellation"),
        }
    }
}

struct Watch(Arc<Mutex<Vec<(JobFacts, JobEnd)>>>);

impl Observer for Watch {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        self.0.lock().unwrap().push((job.clone(), ended.clone()));
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        let server = Self::still();
        tokio::spawn(server.scheduler.clone().run());
        server
    }

    /// One that has no clock: it only knows its providers.
    pub(crate) fn still() -> Self {
        let ended = Arc::new(Mutex::new(Vec::new()));
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Watch(Arc::clone(&ended)))];
        let policy = Box::new(dispatch::route::LeastLoaded);
        let scheduler = Scheduler::new(Config::default(), policy, observers);
        Self { scheduler, ended, next: 0 }
    }

    /// A provider of the server's own joins.
    pub(crate) fn lend(&mut self, models: &[&str], max_concurrent: u32) -> Lent {
        self.next += 1;
        let (notes, calls) = mpsc::channel(64);
        let offer = Offer {
            scope: Scope::server(),
            models: models.iter().map(|model| (*model).into()).collect(),
            unloaded: Vec::new(),
            max_concurrent,
            load: 0,
            max_size: u64::MAX,
            endpoints: Endpoints::ASSUMED,
            distance: Distance::Here,
            lingers: false,
            acknowledges: false,
            borrowed: false,
        };
        let id = ProviderId::from_random(self.next as u64);
        let membership = self.scheduler.join(id, offer, Arc::new(OwnProvider(notes)));
        Lent { _membership: membership, calls }
    }

    /// Somebody asks for model `m`.
    pub(crate) fn ask(&mut self, streaming: bool) -> Answer {
        let job = self.job(streaming);
        self.scheduler.submit(job)
    }

    pub(crate) fn job(&mut self, streaming: bool) -> Job {
        self.next += 1;
        let body = format!(r#"{{"model":"m","stream":{streaming},"messages":[],"top_k":4}}"#);
        let request = JobRequest {
            method: Method::POST,
            path_and_query: "/v1/chat/completions".into(),
            model: "m".into(),
            streaming,
            headers: HeaderMap::new(),
            body: Bytes::from(body),
        };
        let id = JobId::from_random(self.next);
        Job::new(id, Endpoint::ChatCompletions, request, Box::new(()))
    }

    /// Waits until there are `count` providers.
    pub(crate) async fn has_providers(&self, count: usize) {
        let is = async || self.scheduler.status().workers.len() == count;
        testkit::eventually("the providers", Duration::from_secs(5), is).await;
    }
}

/// The rest of an answer, and whether it ended well.
pub(crate) async fn rest(answer: &mut Answer) -> (String, bool) {
    let mut text = Vec::new();
    loop {
        match testkit::within("an event", answer.next()).await {
            Event::Chunk(bytes) => text.extend_from_slice(&bytes),
            Event::End => return (String::from_utf8(text).unwrap(), true),
            Event::Failed(_) => return (String::from_utf8(text).unwrap(), false),
        }
    }
}

pub(crate) fn ok() -> Head {
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Head { status: StatusCode::OK, headers: HeaderMap::from_iter([kind]) }
}

pub(crate) fn id(number: u8) -> PeerId {
    PeerId::Node(NodeId::new([number; 32]))
}

/// The other end of a link, in the hands of the test.
pub(crate) struct FarEnd(pub(crate) Outgoing);

impl FarEnd {
    /// The next message that was sent over the link, and in which form.
    pub(crate) async fn hears(&mut self) -> (ClusterMessage, Dialect) {
        let payload = testkit::within("a message", self.0.next()).await.expect("an open link");
        let (head, body) = payload.parts();
        let decoded = cluster::decode(&[head, body].concat()).unwrap();
        (decoded.message, decoded.dialect)
    }

    /// Asserts that nothing more waits to be sent.
    #[track_caller]
    pub(crate) fn expect_quiet(&mut self) {
        assert!(self.0.try_next().is_none());
    }
}

/// The kind of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sealed, on the LAN.
    WarrenNear,
    /// Sealed, through a relay.
    WarrenFar,
    /// Plain, on the LAN.
    StockNear,
    /// Plain, through a relay.
    StockFar,
}

pub(crate) fn link(peer: &PeerId, kind: Kind) -> (Arc<Link>, FarEnd) {
    let near = matches!(kind, Kind::WarrenNear | Kind::StockNear);
    let warren = matches!(kind, Kind::WarrenNear | Kind::WarrenFar);
    let carrier = if near {
        Carrier::Lan(([127, 0, 0, 1], 9).into())
    } else {
        Carrier::Relay("relay.test".into())
    };
    let (link, outgoing) = Link::new(LinkProperties {
        peer: peer.clone(),
        carrier,
        sealed: warren,
        dialect: if warren { Dialect::Flat } else { Dialect::Wrapped },
        warren,
        opened_here: true,
        proved: true,
        order: Order::default(),
    });
    (link, FarEnd(outgoing))
}

/// A peer with a link that serves model `m`, `capacity` requests at once.
pub(crate) fn peer(peers: &Peers, link: &Arc<Link>, capacity: u32) -> Arc<Peer> {
    let (peer, _) = peers.link(link, |_, _| true).unwrap();
    peer.learn(|facts| {
        facts.models = vec!["m".to_owned()];
        facts.capacity = capacity;
        (facts.available, facts.throttle) = (true, 100);
    });
    peer
}
