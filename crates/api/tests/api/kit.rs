//! The router of a server with one provider of the model `m`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use access::{ConsumerRules, Invitations, Keys, Moment, Token};
use api::{
    Administration, Aliases, Api, Identity, Joining, Limits, MessageJobs, Names, Peer,
    RoomPermissions, RoomRules, Whereabouts,
};
use axum::{Router, body::Body};
use base::{Endpoint, Endpoints, JobId, Live, ProviderId, Scope};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use protocol::{
    invitation::{Place, ServerId},
    room::{Protocol, types::AnswerMetrics},
    via::Marks,
};
use rooms::{JobEnded, JobStarted, Rooms, Settings, activity::How};
use scheduler::{
    Assignment, CancelReason, Config, Distance, Head, JobEnd, JobFacts, Membership, Observer,
    Offer, Provider, Route, Scheduler,
};
use serde_json::Value;
use store::{ModelMemory, RoomHome, VolatileStore};
use tokio::{sync::mpsc, task::JoinHandle};
use tower::ServiceExt;

pub(crate) struct Kit {
    pub(crate) router: Router,
    pub(crate) api: Api,
    pub(crate) scheduler: Scheduler,
    pub(crate) rooms: Rooms,
    pub(crate) keys: Keys,
    pub(crate) sender: mpsc::Sender<Assignment>,
    assignments: mpsc::Receiver<Assignment>,
    pub(crate) membership: Option<Membership>,
}

/// Tells rooms of their jobs, as the daemon does.
struct Telling {
    rooms: Rooms,
    by_message: Arc<MessageJobs>,
}

impl Observer for Telling {
    fn assigned(&self, job: &JobFacts, provider: ProviderId, _: Duration) {
        let Some(room) = self.rooms.of_scope(&job.scope) else { return };
        let started = JobStarted {
            job: job.id,
            provider,
            model: job.model.to_string(),
            protocol: Protocol::ChatCompletions,
            message: self.by_message.request(job.id),
        };
        room.started(&started, Moment::now().wall_ms);
        if let Some(participant) = room.holder(job.id) {
            self.by_message.given(job.id, participant);
        }
    }
    fn ended(&self, job: &JobFacts, _: &JobEnd) {
        let Some(room) = self.rooms.of_scope(&job.scope) else { return };
        let how = How::Answered(AnswerMetrics::default());
        room.ended(&JobEnded { job: job.id, how }, Moment::now().wall_ms);
    }
}

struct TestProvider(mpsc::Sender<Assignment>);

impl Provider for TestProvider {
    fn name(&self) -> &str {
        "test"
    }
    fn assign(&self, assignment: Assignment) {
        self.0.try_send(assignment).ok();
    }
    fn cancel(&self, _: JobId, _: CancelReason) {}
    fn drain(&self, _: &str, _: Duration) {}
    fn retire(&self, _: bool) {}
    fn refresh(&self, _: &str) {}
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ConsumerRules, &mut Limits)) -> Self {
        Self::with_aliases(Aliases::default(), change)
    }

    pub(crate) fn with_aliases(
        aliases: Aliases,
        change: impl FnOnce(&mut ConsumerRules, &mut Limits),
    ) -> Self {
        Self::with_all(aliases, change, |_| {})
    }

    pub(crate) fn with_room_rules(change: impl FnOnce(&mut RoomRules)) -> Self {
        Self::with_all(Aliases::default(), |_, _| {}, change)
    }

    fn with_all(
        aliases: Aliases,
        change: impl FnOnce(&mut ConsumerRules, &mut Limits),
        change_rooms: impl FnOnce(&mut RoomRules),
    ) -> Self {
        let store = Arc::new(VolatileStore::default());
        let settings = Settings { idle: Duration::from_secs(3600) };
        let rooms = Rooms::open(Arc::<VolatileStore>::clone(&store), settings, 0).unwrap();
        Self::with_store(&store, rooms, aliases, change, change_rooms)
    }

    /// One of several servers that share this store and these keys. It knows of no room yet.
    pub(crate) fn in_fleet(store: &Arc<VolatileStore>, keys: &Keys, own: RoomHome) -> Self {
        let settings = Settings { idle: Duration::from_secs(3600) };
        let rooms = Rooms::open_in_fleet(Arc::<VolatileStore>::clone(store), settings, 0);
        rooms.set_own(own);
        let change = |rules: &mut ConsumerRules, _: &mut Limits| rules.keys = keys.clone();
        let mut kit = Self::with_store(store, rooms, Aliases::default(), change, |_| {});
        kit.router = api::room::homes::with_homes(kit.router, kit.api.clone());
        kit
    }

    fn with_store(
        store: &Arc<VolatileStore>,
        rooms: Rooms,
        aliases: Aliases,
        change: impl FnOnce(&mut ConsumerRules, &mut Limits),
        change_rooms: impl FnOnce(&mut RoomRules),
    ) -> Self {
        let store = Arc::clone(store);
        let mut rules = ConsumerRules::default();
        let mut limits = Limits {
            max_body: 1 << 20,
            bodies: 1 << 30,
            keepalive: Duration::from_secs(15),
            drain: Duration::from_secs(30),
            affinity: false,
            route: Route::default(),
            keep_responses: true,
            keep_unasked: false,
            resume_answers: base::ResumeAnswers::default(),
        };
        change(&mut rules, &mut limits);
        let mut rules_of_rooms = RoomRules {
            rooms: rooms.clone(),
            permissions: Live::new(RoomPermissions {
                open: false,
                endpoints: rooms::Endpoints::Own,
            }),
            tls: false,
            by_message: Arc::default(),
        };
        change_rooms(&mut rules_of_rooms);
        let by_message = Arc::clone(&rules_of_rooms.by_message);
        let observers: Vec<Arc<dyn Observer>> =
            vec![Arc::new(Telling { rooms: rooms.clone(), by_message })];
        let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), observers);
        tokio::spawn(scheduler.clone().run());
        let administration = Administration {
            token: Token::new(&"admin".into()),
            usage: Arc::<VolatileStore>::clone(&store),
            audit: Arc::<VolatileStore>::clone(&store),
            requests: Arc::default(),
            series: Arc::default(),
            joining: joining(&store, rules.keys.clone()),
        };
        let models = ModelMemory::open(store, std::time::SystemTime::now()).unwrap();
        let keys = rules.keys.clone();
        let names =
            Names { models: Arc::new(models), aliases: Live::new(aliases), rooms: rules_of_rooms };
        let well = Arc::new(());
        let scheduling = scheduler.clone();
        let marks = Marks::new(std::hash::RandomState::new());
        let identity = Identity { marks, version: "0.0.0", sampler: None };
        let api = Api::new(scheduling, rules, administration, well, names, limits, identity);
        let (sender, assignments) = mpsc::channel(16);
        let provider = Arc::new(TestProvider(sender.clone()));
        let membership = scheduler.join(ProviderId::from_random(1), offer(&["m"]), provider);
        let router = api::router(api.clone());
        let membership = Some(membership);
        Self { router, api, scheduler, rooms, keys, sender, assignments, membership }
    }

    /// Another provider, which serves this.
    pub(crate) fn join(&self, id: u64, models: &[&str], endpoints: &[Endpoint]) -> Membership {
        let provider = Arc::new(TestProvider(self.sender.clone()));
        let endpoints = endpoints.iter().copied().collect();
        let offer = Offer { endpoints, ..offer(models) };
        self.scheduler.join(ProviderId::from_random(id), offer, provider)
    }

    /// The next job that a provider was given.
    pub(crate) async fn assigned(&mut self) -> Assignment {
        self.assignments.recv().await.expect("an assignment")
    }

    /// Sets the models and endpoints that the provider serves from now on.
    pub(crate) fn serves(&self, models: &[&str], endpoints: &[Endpoint]) {
        let membership = self.membership.as_ref().unwrap();
        membership.endpoints(endpoints.iter().copied().collect());
        membership.models(models.iter().map(|&model| model.into()).collect(), 0);
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.meanwhile(request).await
    }

    /// Sends a request meanwhile; for [`tokio::spawn`].
    pub(crate) fn meanwhile(
        &self,
        mut request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + use<> {
        let router = self.router.clone();
        request.extensions_mut().get_or_insert_with(|| Peer(Ipv4Addr::LOCALHOST.into()));
        let headers = request.headers_mut();
        headers.entry(header::HOST).or_insert(HeaderValue::from_static("localhost"));
        async move { router.oneshot(request).await.unwrap() }
    }

    /// Posts a body; the response, a stream of events, and the assignment that it led to.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> (Response<Body>, Assignment) {
        self.post_for(path, body, head(&[("content-type", "text/event-stream")])).await
    }

    /// Posts a body, to be answered with this head.
    pub(crate) async fn post_for(
        &mut self,
        path: &str,
        body: &str,
        head: Head,
    ) -> (Response<Body>, Assignment) {
        let request = Request::post(path).body(Body::from(body.to_owned())).unwrap();
        self.send_for(request, head).await
    }

    /// Posts a body, to be answered with this head and all of this.
    pub(crate) async fn post_for_all(
        &mut self,
        path: &str,
        body: &str,
        head: Head,
        answer: impl Into<Bytes>,
    ) -> Response<Body> {
        let request = Request::post(path).body(Body::from(body.to_owned())).unwrap();
        let response = self.meanwhile(request);
        let serve = async {
            let mut assignment = self.assignments.recv().await.expect("an assignment");
            assignment.answer.head(head).unwrap();
            assignment.answer.chunk(answer.into()).unwrap();
            assignment.answer.end();
        };
        tokio::join!(response, serve).0
    }

    /// Sends a request. Gives the job that it is, and its response to come.
    pub(crate) async fn send_for_later(
        &mut self,
        request: Request<Body>,
    ) -> (JoinHandle<Response<Body>>, Assignment) {
        let response = tokio::spawn(self.meanwhile(request));
        (response, self.assigned().await)
    }

    /// Sends a request, to be answered with this head.
    pub(crate) async fn send_for(
        &mut self,
        request: Request<Body>,
        head: Head,
    ) -> (Response<Body>, Assignment) {
        let response = self.meanwhile(request);
        let serve = async {
            let mut assignment = self.assignments.recv().await.expect("an assignment");
            assignment.answer.head(head).unwrap();
            assignment
        };
        let (response, assignment) = tokio::join!(response, serve);
        (response, assignment)
    }

    pub(crate) fn lose_provider(&mut self) {
        self.membership = None;
    }
}

/// The offer of a provider on this machine.
pub(crate) fn offer(models: &[&str]) -> Offer {
    Offer {
        scope: Scope::server(),
        models: models.iter().map(|&model| model.into()).collect(),
        unloaded: Vec::new(),
        max_concurrent: 4,
        load: 0,
        max_size: u64::MAX,
        endpoints: Endpoints::ASSUMED,
        distance: Distance::Here,
        lingers: false,
        acknowledges: false,
        borrowed: false,
    }
}

/// The body that a provider was sent, as JSON.
pub(crate) fn sent(assignment: &Assignment) -> Value {
    serde_json::from_slice(&assignment.request.body).unwrap()
}

pub(crate) fn head(headers: &[(&'static str, &'static str)]) -> Head {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    Head { status: StatusCode::OK, headers }
}

/// The next frame of a body.
pub(crate) async fn next(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = body.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

pub(crate) async fn text(response: Response<Body>) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The status and the JSON of a response.
pub(crate) async fn json_of(response: Response<Body>) -> (u16, Value) {
    let (status, text) = (response.status().as_u16(), text(response).await);
    (status, serde_json::from_str(&text).unwrap_or_else(|bad| panic!("{text}: {bad}")))
}

/// The only address of the server of these tests.
pub(crate) const OWN: &str = "192.0.2.7:9178";

/// A server that is nowhere but at [`OWN`].
struct Here;

impl Whereabouts for Here {
    fn id(&self) -> ServerId {
        ServerId::new([7; ServerId::BYTES])
    }

    fn name(&self) -> String {
        "box".to_owned()
    }

    fn place(&self) -> Place {
        let own: SocketAddr = OWN.parse().unwrap();
        Place { port: own.port(), addresses: vec![own.ip()], fingerprint: None, url: None }
    }

    fn is_own(&self, address: SocketAddr) -> bool {
        OWN.parse() == Ok(address)
    }
}

fn joining(store: &Arc<VolatileStore>, keys: Keys) -> Joining {
    let invitations = Invitations::open(Arc::<VolatileStore>::clone(store), keys).unwrap();
    Joining::new(invitations, Arc::new(Here))
}
