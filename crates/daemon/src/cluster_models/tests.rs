//! Two members with models of their own, over a real link.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use api::elsewhere::Carried;
use axum::{body::Body, extract::Request, routing::post};
use base::{KeyId, KeyScope};
use bytes::Bytes;
use cluster::{
    Served,
    testing::{Machine, until},
};
use futures_util::{StreamExt as _, stream};
use http::header;

use super::{
    lend::{Borrower, MOST_KEYS},
    messages::Reply,
    *,
};

const CHAT: &str = "/v1/chat/completions";

/// Models that a test sets.
#[derive(Default)]
struct Set(Mutex<Vec<String>>);

impl Offers for Set {
    fn served(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn serves(&self, model: &str) -> bool {
        self.served().iter().any(|served| served == model)
    }

    fn has_served(&self, model: &str) -> bool {
        model == "was here"
    }
}

/// A member's models and its keys.
struct Side {
    machine: Machine,
    models: Arc<ClusterModels>,
    keys: Keys,
    offers: Arc<Set>,
    /// Requests of the endless page that are being served.
    endless: Arc<AtomicUsize>,
}

impl Side {
    fn new(machine: Machine, served: &[&str]) -> Self {
        let (keys, endless) = (Keys::default(), Arc::<AtomicUsize>::default());
        let offers = Arc::new(Set(Mutex::new(served.iter().map(ToString::to_string).collect())));
        let router = router(&keys, &endless);
        let models = ClusterModels::new(Arc::<Set>::clone(&offers), router, &keys);
        let models = Arc::new(models);
        models.join(&machine.cluster);
        Self { machine, models, keys, offers, endless }
    }

    /// A session that uses this model; its key.
    fn session(&self, number: u128, model: &str) -> KeyId {
        let session = SessionId::from_random(number);
        let key = KeyId::from(format!("session:{session}"));
        self.models.begin(&key, session, model);
        key
    }

    async fn way(&self, key: &KeyId) -> Result<Option<Box<dyn Way>>, ApiError> {
        Elsewhere::find(&*self.models, key).await
    }

    async fn post(&self, key: &KeyId, path: &str, body: Body) -> Result<Answer, ApiError> {
        let way = self.way(key).await?.expect("another member has it");
        let request = Request::builder().method("POST").uri(path).body(body).unwrap();
        way.carry(request).await
    }
}

type Answer = axum::response::Response;

/// Answers with the key and what it may be used for, then with the request's body; `/endless` never
/// ends.
fn router(keys: &Keys, endless: &Arc<AtomicUsize>) -> Router {
    let (keys, endless) = (keys.clone(), Arc::clone(endless));
    let echo = post(async move |request: Request| {
        assert!(request.extensions().get::<Carried>().is_some(), "its stream is kept alive here");
        let bearer = request.headers()[header::AUTHORIZATION].to_str().unwrap();
        let text = bearer.strip_prefix("Bearer ").unwrap();
        let key = keys.present(text, KeyScope::Inference, access::Moment::now());
        let key = key.unwrap().expect("a key");
        let head = format!("{} {} {};", key.id(), key.allows("tiny"), key.allows("big"));
        let head = stream::iter([Ok(Bytes::from(head))]);
        Body::from_stream(head.chain(request.into_body().into_data_stream()))
    });
    let never = post(async move |_: Request| {
        endless.fetch_add(1, Relaxed);
        let counted = Count(endless);
        let first = stream::iter([Ok::<_, axum::Error>(Bytes::from_static(b"first"))]);
        Body::from_stream(first.chain(stream::once(async move {
            let _counted = counted;
            std::future::pending().await
        })))
    });
    Router::new().route(CHAT, echo).route("/endless", never)
}

struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A machine that gives up soon.
async fn machine(number: u8, peers: &[std::net::SocketAddr]) -> Machine {
    let settings = cluster::Settings {
        token: Some("secret".into()),
        peers: peers.iter().map(ToString::to_string).collect(),
        patience: Duration::from_millis(500),
        ..Machine::settings(number)
    };
    Machine::start(number, [number; 32], settings).await
}

/// One without models, and two with `tiny`.
async fn pair() -> (Side, Side) {
    let one = Side::new(machine(1, &[]).await, &["own"]);
    let two = Side::new(machine(2, &[one.machine.address]).await, &["tiny", "small"]);
    until("a link", || {
        let members = one.machine.cluster.members();
        members.iter().any(|member| member.reachable && member.member.key.is_some())
            && two.machine.cluster.is_reachable("node-1")
    })
    .await;
    (one, two)
}

async fn read(response: Answer) -> Result<Bytes, String> {
    let mut pieces = response.into_body().into_data_stream();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        whole.extend_from_slice(&piece.map_err(|error| error.to_string())?);
    }
    Ok(whole.into())
}

async fn first(response: Answer) -> impl futures_util::Stream<Item = Result<Bytes, axum::Error>> {
    let mut pieces = response.into_body().into_data_stream();
    assert_eq!(pieces.next().await.unwrap().unwrap(), "first");
    pieces
}

#[tokio::test]
async fn a_request_goes_to_the_member_with_the_model_under_a_key_of_its_own_there() {
    let (one, two) = pair().await;
    let key = one.session(7, "tiny");
    assert!(one.models.is_for(&key) && !one.models.is_for(&"client-token".into()));
    let body: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    let response = one.post(&key, CHAT, Body::from(body.clone())).await.unwrap();
    assert_eq!(response.status(), 200);
    let read = read(response).await.unwrap();
    let head = format!("{key}@machine 1 true false;");
    assert!(read.starts_with(head.as_bytes()), "{:?}", &read[..80]);
    assert!(read[head.len()..] == body, "{} bytes came back", read.len());
    let there = KeyId::from(format!("{key}@machine 1"));
    assert!(two.keys.get(&there).is_some() && one.keys.get(&there).is_none());
    one.models.end(&key);
    until("the key ends", || two.keys.get(&there).is_none()).await;
    assert!(one.way(&key).await.unwrap().is_none(), "the session is known no more");
}

#[tokio::test]
async fn one_s_own_model_comes_first_and_one_that_was_here_is_waited_for_here() {
    let (one, _two) = pair().await;
    one.offers.0.lock().unwrap().push("tiny".to_owned());
    for (number, model) in [(1, "tiny"), (2, "was here")] {
        let key = one.session(number, model);
        assert!(one.way(&key).await.unwrap().is_none(), "{model}");
        SessionModels::find(&*one.models, model).await.unwrap();
    }
    one.offers.0.lock().unwrap().pop();
    let key = one.session(1, "tiny");
    assert!(one.way(&key).await.unwrap().is_some());
}

#[tokio::test]
async fn a_model_that_nobody_has_is_an_error_that_lists_what_there_is() {
    let (one, _two) = pair().await;
    let words = "no machine of this cluster has the model big: this machine has own; machine 2 has \
                 tiny, small";
    assert_eq!(SessionModels::find(&*one.models, "big").await.unwrap_err(), words);
    let key = one.session(1, "big");
    let error = one.way(&key).await.err().unwrap();
    assert_eq!((error.status.as_u16(), error.code), (404, Some("model_not_found")));
    assert_eq!(error.message, words);
}

#[tokio::test]
async fn a_client_that_leaves_and_a_session_that_ends_end_the_request_at_the_other_member() {
    let (one, two) = pair().await;
    let key = one.session(7, "tiny");
    let mut answers = Vec::new();
    for _ in 0..2 {
        let response = one.post(&key, "/endless", Body::empty()).await.unwrap();
        answers.push(Box::pin(first(response).await));
    }
    assert_eq!(two.endless.load(Relaxed), 2);
    answers.pop();
    until("the client's leaving is known", || two.endless.load(Relaxed) == 1).await;
    one.models.end(&key);
    until("the session's end is known", || two.endless.load(Relaxed) == 0).await;
    let broken = answers[0].next().await.unwrap().unwrap_err().to_string();
    assert!(
        broken.contains("machine 2, which has the model tiny: the answer broke off"),
        "{broken}"
    );
}

#[tokio::test]
async fn a_member_that_is_lost_breaks_the_answer_off_and_is_named() {
    let (one, two) = pair().await;
    let key = one.session(7, "tiny");
    let response = one.post(&key, "/endless", Body::empty()).await.unwrap();
    let mut answer = Box::pin(first(response).await);
    two.machine.cluster.shut_down();
    let broken = answer.next().await.unwrap().unwrap_err().to_string();
    let words = "machine 2, which has the model tiny: the answer broke off: it cannot be reached";
    assert_eq!(broken, words);
    assert!(answer.next().await.is_none());
    let error = one.way(&key).await.err().unwrap();
    assert!(error.message.contains("machine 2 cannot be reached"), "{}", error.message);
    assert_eq!(error.status, 503, "it may have the model: clients try again");
}

#[tokio::test]
async fn a_member_that_lost_its_keys_is_asked_for_one_again() {
    let (one, two) = pair().await;
    let key = one.session(7, "tiny");
    read(one.post(&key, CHAT, Body::empty()).await.unwrap()).await.unwrap();
    let there = KeyId::from(format!("{key}@machine 1"));
    let first = two.keys.get(&there).unwrap().record().digest;
    // As after a restart: the members' circuits end, and their keys with them.
    let other = Side::new(machine(3, &[one.machine.address]).await, &["tiny"]);
    two.machine.cluster.shut_down();
    until("the other member", || one.machine.cluster.is_reachable("node-3")).await;
    until("the lost one", || !one.machine.cluster.is_reachable("node-2")).await;
    let carried = async || {
        let response = one.post(&key, CHAT, Body::empty()).await.ok()?;
        read(response).await.ok()
    };
    let deadline = Instant::now() + cluster::testing::SOON;
    while carried().await.is_none() {
        assert!(Instant::now() < deadline, "no other member is found");
    }
    assert_ne!(other.keys.get(&there).unwrap().record().digest, first);
}

#[tokio::test]
async fn requests_under_way_are_bounded_at_both_ends() {
    let (one, two) = pair().await;
    let key = one.session(7, "tiny");
    let mut answers = Vec::new();
    for _ in 0..MOST_REQUESTS {
        answers.push(one.post(&key, "/endless", Body::empty()).await.unwrap());
    }
    let error = one.post(&key, "/endless", Body::empty()).await.unwrap_err();
    assert_eq!((error.status.as_u16(), error.retry_after.is_some()), (429, true));
    // One that does not keep to the bound at its own end.
    let way = one.way(&key).await.unwrap().unwrap();
    let borrower = one.models.borrower(&key).unwrap();
    drop(way);
    let cluster = one.machine.cluster.clone();
    let lent = borrower.lent_key(&cluster, &*one.offers).await.unwrap().unwrap();
    let places = Places::default();
    let carrier = Box::new(Carrier { cluster, borrower, lent, places });
    let request = Request::builder().uri("/endless").body(Body::empty()).unwrap();
    let error = Way::carry(carrier, request).await.unwrap_err();
    assert!(error.message.contains("64 requests are under way to it"), "{}", error.message);
    drop(answers);
    until("all have left", || two.endless.load(Relaxed) == 0).await;
}

/// Answers nothing.
struct Deaf(Mutex<Vec<Served>>);

impl cluster::Host for Deaf {
    fn serve(&self, served: Served) {
        self.0.lock().unwrap().push(served);
    }

    fn max_request(&self) -> usize {
        1024
    }
}

#[tokio::test]
async fn a_member_that_does_not_say_what_it_has_holds_nobody_up_for_long() {
    let one = Side::new(machine(1, &[]).await, &[]);
    let two = machine(2, &[one.machine.address]).await;
    two.cluster.serve(Service::Models, Arc::new(Deaf(Mutex::default())));
    until("a link", || one.machine.cluster.is_reachable("node-2")).await;
    until("an entry", || one.machine.cluster.members().iter().any(|it| it.member.key.is_some()))
        .await;
    let began = Instant::now();
    let words = SessionModels::find(&*one.models, "tiny").await.unwrap_err();
    assert!(words.ends_with("machine 2 did not say within 2 s"), "{words}");
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[tokio::test]
async fn keys_of_a_member_are_bounded_and_a_repeated_request_takes_no_further_place() {
    let (_one, two) = pair().await;
    let lend = |number| {
        let (node, session) = ("node-1".to_owned(), SessionId::from_random(number));
        two.models.lender.lend(&Borrower { node, session }, "one", "tiny").err()
    };
    for number in 0..MOST_KEYS as u128 {
        assert_eq!(lend(number), None);
    }
    assert_eq!(lend(u128::MAX), Some(Reply::refused("1024 sessions have one already")));
    assert_eq!(lend(0), None);
}

#[test]
fn each_member_has_its_own_places() {
    let places = Places::default();
    let taken: Vec<_> = (0..MOST_REQUESTS).filter_map(|_| places.take("two")).collect();
    assert_eq!(taken.len(), MOST_REQUESTS);
    assert!(places.take("two").is_none() && places.take("three").is_some());
    drop(taken);
    assert!(places.take("two").is_some());
}
