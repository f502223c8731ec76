//! The router of a server with one provider of the model `m`.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use access::{ConsumerRules, Token};
use api::{Api, Limits, Peer};
use axum::{Router, body::Body};
use base::{JobId, ProviderId, Scope};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use scheduler::{Assignment, CancelReason, Config, Head, Membership, Offer, Provider, Scheduler};
use store::{ModelMemory, VolatileStore};
use tokio::sync::mpsc;
use tower::ServiceExt;

pub(crate) struct Kit {
    pub(crate) router: Router,
    pub(crate) scheduler: Scheduler,
    assignments: mpsc::Receiver<Assignment>,
    membership: Option<Membership>,
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
        let mut rules = ConsumerRules::default();
        let mut limits = Limits {
            max_body: 1 << 20,
            bodies: 1 << 30,
            keepalive: Duration::from_secs(15),
            drain: Duration::from_secs(30),
            affinity: false,
        };
        change(&mut rules, &mut limits);
        let scheduler = Scheduler::new(Config::default(), Box::new(LeastLoaded), Vec::new());
        tokio::spawn(scheduler.clone().run());
        let store = Arc::new(VolatileStore::default());
        let models = ModelMemory::open(store, std::time::SystemTime::now()).unwrap();
        let admin = Token::new(&"admin".into());
        let api = Api::new(scheduler.clone(), rules, admin, Arc::new(models), limits, "0.0.0");
        let (sender, assignments) = mpsc::channel(16);
        let offer = Offer {
            scope: Scope::server(),
            models: vec!["m".into()],
            max_concurrent: 4,
            load: 0,
            max_size: u64::MAX,
            endpoints: base::Endpoints::ASSUMED,
        };
        let provider = Arc::new(TestProvider(sender));
        let membership = scheduler.join(ProviderId::from_random(1), offer, provider);
        let router = api::router(api);
        Self { router, scheduler, assignments, membership: Some(membership) }
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Response<Body> {
        request.extensions_mut().insert(Peer(Ipv4Addr::LOCALHOST.into()));
        let headers = request.headers_mut();
        headers.entry(header::HOST).or_insert(HeaderValue::from_static("localhost"));
        self.router.clone().oneshot(request).await.unwrap()
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
        let mut request = Request::post(path).body(Body::from(body.to_owned())).unwrap();
        request.extensions_mut().insert(Peer(Ipv4Addr::LOCALHOST.into()));
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        let response = self.router.clone().oneshot(request);
        let serve = async {
            let mut assignment = self.assignments.recv().await.expect("an assignment");
            assignment.answer.head(head).unwrap();
            assignment
        };
        let (response, assignment) = tokio::join!(response, serve);
        (response.unwrap(), assignment)
    }

    pub(crate) fn lose_provider(&mut self) {
        self.membership = None;
    }
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
