//! Servers whose messages go through memory, and a worker in the hands of a test.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use base::{Endpoint, Endpoints, JobId, ModelName, ProviderId, Scope, Secret};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use fleet::members;
use http::{HeaderMap, Method, StatusCode};
use scheduler::{
    Answer, Assignment, CancelReason, Config, Distance, Head, Job, JobEnd, JobFacts, JobRequest,
    Membership, Observer, Offer, Provider, Scheduler,
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{Announcements, Fellows, NatsAddress, Settings, sealing::Opener, transport::Carrier};

/// The network between servers.
#[derive(Clone, Default)]
pub(crate) struct Net(Arc<NetState>);

#[derive(Default)]
struct NetState {
    inboxes: Mutex<HashMap<String, mpsc::UnboundedSender<Bytes>>>,
    /// The ways of records to each server.
    records: Mutex<Vec<mpsc::Sender<crate::membership::Heard>>>,
    sent: AtomicU64,
    /// How many of a hundred messages are lost.
    lost: AtomicU64,
    /// How many of a hundred come twice.
    twice: AtomicU64,
    is_cut: AtomicBool,
}

impl Net {
    /// Loses `lost` of a hundred messages from now on, and doubles `twice`.
    pub(crate) fn is_bad(&self, lost: u64, twice: u64) {
        self.0.lost.store(lost, Ordering::Relaxed);
        self.0.twice.store(twice, Ordering::Relaxed);
    }

    /// Nothing arrives from now on.
    pub(crate) fn cut(&self) {
        self.0.is_cut.store(true, Ordering::Relaxed);
    }
}

impl Carrier for Net {
    fn publish(&self, subject: String, sealed: Bytes) -> bool {
        let number = self.0.sent.fetch_add(1, Ordering::Relaxed) + 1;
        // Without anything like a period: one would lose the answer to each question.
        let draw = |salt: u64| mixed(number ^ salt) % 100;
        let (lost, twice) = (&self.0.lost, &self.0.twice);
        if draw(0) < lost.load(Ordering::Relaxed) || self.0.is_cut.load(Ordering::Relaxed) {
            return true;
        }
        let inbox = self.0.inboxes.lock().unwrap().get(&subject).cloned();
        if let Some(inbox) = inbox {
            if draw(1 << 40) < twice.load(Ordering::Relaxed) {
                inbox.send(sealed.clone()).ok();
            }
            inbox.send(sealed).ok();
        }
        true
    }
}

/// The finish of `splitmix64`.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// A server without a connection to NATS.
pub(crate) struct Server {
    pub(crate) fellows: Fellows,
    pub(crate) scheduler: Scheduler,
    pub(crate) ended: Arc<Mutex<Vec<(JobFacts, JobEnd)>>>,
    next: u64,
    _tasks: JoinSet<()>,
}

struct Watch(Arc<Mutex<Vec<(JobFacts, JobEnd)>>>);

impl Observer for Watch {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        self.0.lock().unwrap().push((job.clone(), ended.clone()));
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a test's network has no bound")]
    pub(crate) fn new(net: &Net, name: &str) -> Self {
        let ended = Arc::<Mutex<Vec<_>>>::default();
        let announcements = Announcements::default();
        let observers: Vec<Arc<dyn Observer>> =
            vec![Arc::new(Watch(Arc::clone(&ended))), Arc::new(announcements.clone())];
        let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), observers);
        tokio::spawn(scheduler.clone().run());
        let settings = Settings {
            address: NatsAddress::parse(&Secret::from("nats://x"), None).unwrap(),
            name: name.to_owned(),
            admin_token: Secret::from("wa_of-all-servers"),
            version: "1",
            url: None,
            max_body: 1 << 20,
        };
        let (fellows, mut tasks, connection) =
            Fellows::parts(settings, &scheduler, announcements).unwrap();
        let node = Arc::clone(&connection.node);
        let (inbox, mut arrives) = mpsc::unbounded_channel();
        let subject = node.transport.subject(node.id);
        net.0.inboxes.lock().unwrap().insert(subject.clone(), inbox);
        net.0.records.lock().unwrap().push(connection.heard.clone());
        node.transport.set_carrier(Box::new(net.clone()));
        node.transport.set_up(true);
        let mut opener = Opener::new(connection.group.clone());
        tasks.spawn(async move {
            while let Some(message) = arrives.recv().await {
                node.arrived(&mut opener, &subject, &message);
            }
        });
        let (mut own, net, heard) = (connection.own, net.clone(), connection.heard);
        tasks.spawn(async move {
            heard.send(members::Input::Connected).await.ok();
            while own.changed().await.is_ok() {
                let record = own.borrow_and_update().clone();
                let Some(record) = record.filter(|_| !net.0.is_cut.load(Ordering::Relaxed)) else {
                    continue;
                };
                let all = net.0.records.lock().unwrap().clone();
                for other in all {
                    other.send(members::Input::Seen(record.clone())).await.ok();
                }
            }
        });
        Self { fellows, scheduler, ended, next: 0, _tasks: tasks }
    }

    /// Two servers that know each other.
    pub(crate) async fn two(net: &Net) -> (Self, Self) {
        let (one, other) = (Self::new(net, "one"), Self::new(net, "other"));
        for server in [&one, &other] {
            server.has_fellows(1).await;
        }
        (one, other)
    }

    pub(crate) async fn has_fellows(&self, count: usize) {
        let mut changes = self.fellows.changes();
        changes.wait_for(|_| self.fellows.all().len() == count).await.unwrap();
    }

    /// A worker of `m` with this number of slots.
    pub(crate) fn lend(&mut self, slots: u32) -> Lent {
        let (sender, hears) = mpsc::channel(64);
        self.next += 1;
        let id = ProviderId::from_random(self.next | (self.fellows.id().bits() as u64) << 8);
        let offer = Offer {
            scope: Scope::server(),
            models: vec!["m".into()],
            unloaded: Vec::new(),
            max_concurrent: slots,
            load: 0,
            max_size: u64::MAX,
            endpoints: Endpoints::only(Endpoint::ChatCompletions),
            distance: Distance::Here,
            lingers: false,
            acknowledges: false,
            borrowed: false,
        };
        let membership = self.scheduler.join(id, offer, Arc::new(Worker(sender)));
        Lent { _membership: membership, hears }
    }

    /// Waits until a worker of another server is there.
    pub(crate) async fn sees_worker(&self) {
        while !self.scheduler.serves(&Scope::server(), &ModelName::from("m")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A request of model `m` with this body.
    pub(crate) fn ask(&self, body: Bytes) -> Answer {
        let request = JobRequest {
            method: Method::POST,
            path_and_query: "/v1/chat/completions".into(),
            model: "m".into(),
            streaming: true,
            headers: HeaderMap::from_iter([(
                http::header::ACCEPT,
                "text/event-stream".parse().unwrap(),
            )]),
            body,
        };
        let id = JobId::from_random(rand::random());
        self.scheduler.submit(Job::new(id, Endpoint::ChatCompletions, request, Box::new(())))
    }
}

/// A worker, and what it hears.
pub(crate) struct Lent {
    _membership: Membership,
    hears: mpsc::Receiver<Told>,
}

enum Told {
    Assigned(Assignment),
    Canceled(JobId),
}

struct Worker(mpsc::Sender<Told>);

impl Provider for Worker {
    fn name(&self) -> &str {
        "gpu"
    }

    fn assign(&self, assignment: Assignment) {
        self.0.try_send(Told::Assigned(assignment)).ok();
    }

    fn cancel(&self, job: JobId, _: CancelReason) {
        self.0.try_send(Told::Canceled(job)).ok();
    }

    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, _: bool) {}

    fn refresh(&self, _: &str) {}
}

impl Lent {
    pub(crate) async fn assigned(&mut self) -> Assignment {
        match self.hears.recv().await {
            Some(Told::Assigned(assignment)) => assignment,
            _ => panic!("expected a job"),
        }
    }

    pub(crate) async fn canceled(&mut self) -> JobId {
        match self.hears.recv().await {
            Some(Told::Canceled(job)) => job,
            _ => panic!("expected a cancellation"),
        }
    }
}

pub(crate) fn ok() -> Head {
    Head { status: StatusCode::OK, headers: HeaderMap::new() }
}
