//! Endpoints that the server calls.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::Method;
use protocol::room::Status;
use rooms::Kind;
use scheduler::Ending;
use testkit::{DEADLINE, Gate, MockBackend, Reply, eventually, within};
use tokio::task::JoinHandle;

use super::kit::{HERE, Kit, joining, now, read};

/// A room with a participant whose endpoint is this URL, which may be called at this address.
async fn room_with(url: &str, address: SocketAddr) -> (Kit, JoinHandle<()>) {
    let kit = Kit::new();
    let calling = tokio::spawn(kit.participants.clone().call_endpoints());
    join(&kit, "a", url, address, 2);
    (kit, calling)
}

fn join(kit: &Kit, id: &str, url: &str, address: SocketAddr, max_concurrent: u32) {
    let mut joining = joining(id, Kind::Endpoint(address));
    joining.endpoint = url.to_owned();
    joining.max_concurrent = max_concurrent;
    kit.room.join(joining, HERE, now()).unwrap();
}

async fn online(kit: &Kit, id: &str) {
    eventually("the endpoint is called", DEADLINE, async || {
        kit.status(id) == Status::Online && !kit.scheduler.status().workers.is_empty()
    })
    .await;
}

async fn served(backend: &MockBackend) -> Kit {
    let (kit, _calling) = room_with(&backend.url(), backend.address()).await;
    online(&kit, "a").await;
    kit
}

#[tokio::test]
async fn an_endpoint_that_answers_is_a_participant_as_any_other() {
    let backend = MockBackend::start(&["m"]).await;
    let mut kit = served(&backend).await;
    let mut answer = kit.ask();
    let read = within("the answer", read(&mut answer)).await;
    assert!(read.whole().1.contains("hello"));
    let got = backend.request().await;
    assert_eq!((got.method.as_str(), got.target.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(got.json()["model"], "m", "its own model");
    assert_eq!(got.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn an_answer_is_streamed_and_a_client_that_leaves_aborts_it() {
    let backend = MockBackend::start(&["m"]).await;
    let mut kit = served(&backend).await;
    let gate = Gate::closed();
    backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
    let mut answer = kit.ask();
    let head = within("the head", answer.head()).await.unwrap();
    assert_eq!(head.headers["content-type"], "text/event-stream");
    gate.open(1);
    let first = within("a chunk", answer.next()).await;
    assert!(matches!(first, scheduler::Event::Chunk(chunk) if chunk == "data: 1\n\n"));
    drop(answer);
    backend.aborted(1).await;
    eventually("its slot is free", DEADLINE, async || kit.scheduler.is_idle()).await;
}

#[tokio::test]
async fn a_request_about_an_earlier_answer_keeps_its_method() {
    let backend = MockBackend::start(&["m"]).await;
    let mut kit = served(&backend).await;
    let mut answer = kit.ask_about(Method::DELETE, "/v1/responses/resp_1");
    within("the answer", read(&mut answer)).await;
    let got = backend.request().await;
    assert_eq!((got.method.as_str(), got.target.as_str()), ("DELETE", "/v1/responses/resp_1"));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (backend, elsewhere) = (MockBackend::start(&["m"]).await, MockBackend::start(&[]).await);
    let mut kit = served(&backend).await;
    for status in [301, 307] {
        let location = format!("{}/v1/chat/completions", elsewhere.url());
        backend.then(Reply::full(status, &[("location", &location)], ""));
        let mut answer = kit.ask();
        let failed = within("the failure", read(&mut answer)).await;
        assert!(failed.detail().contains("redirects are not followed"), "{}", failed.detail());
    }
    assert_eq!(elsewhere.counts().started, 0);
}

#[tokio::test]
async fn only_the_address_that_was_resolved_is_connected_to() {
    let backend = MockBackend::start(&["m"]).await;
    let port = backend.address().port();
    // The name stands for nothing, or for another address by now.
    let (mut kit, _calling) =
        room_with(&format!("http://host.invalid:{port}"), backend.address()).await;
    online(&kit, "a").await;
    let mut answer = kit.ask();
    within("the answer", read(&mut answer)).await.whole();
    let got = backend.request().await;
    assert_eq!(got.header("host"), Some(&*format!("host.invalid:{port}")));
    // What is written as an address must be that one.
    let other: IpAddr = "127.0.0.2".parse().unwrap();
    join(&kit, "b", &backend.url(), SocketAddr::new(other, port), 1);
    let mut response = kit.ask_for("room:participant/b");
    let nobody = tokio::time::timeout(Duration::from_millis(200), response.head()).await;
    assert!(nobody.is_err() && kit.status("b") == Status::Offline);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_cannot_be_called_is_tried_ever_less_often() {
    let kit = Kit::new();
    let calling = tokio::spawn(kit.participants.clone().call_endpoints());
    let other: IpAddr = "127.0.0.2".parse().unwrap();
    join(&kit, "a", "http://127.0.0.1:1", SocketAddr::new(other, 1), 1);
    // Under paused time an hour is over once nobody is at work any more.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(kit.status("a"), Status::Offline);
    assert!(!calling.is_finished());
}

#[tokio::test]
async fn a_missing_endpoint_is_learnt() {
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&["/v1/chat/completions"]);
    let mut kit = served(&backend).await;
    let mut answer = kit.ask_responses();
    let read = within("the answer", read(&mut answer)).await;
    assert!(read.whole().1.contains("hello"));
    assert_eq!(backend.request().await.target, "/v1/responses");
    assert_eq!(backend.request().await.target, "/v1/chat/completions");
}

#[tokio::test]
async fn an_endpoint_that_dies_in_mid_stream_ends_its_answer_with_a_failure() {
    let backend = MockBackend::start(&["m"]).await;
    let mut kit = served(&backend).await;
    backend.then(Reply::stream(["data: 1\n\n"], &Gate::opened()).broken());
    let mut answer = kit.ask();
    let cut = within("the end", read(&mut answer)).await;
    assert_eq!((cut.status(), &*cut.body), (200, "data: 1\n\n"));
    assert_eq!(cut.failure.unwrap().ending, Ending::ProviderFailed);
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_not_read_either() {
    let backend = MockBackend::start(&["m"]).await;
    let mut kit = served(&backend).await;
    let (chunk, gate) = (vec![b'x'; 1024 * 1024], Gate::opened());
    backend.then(Reply::stream(vec![chunk; 64], &gate));
    let mut answer = kit.ask();
    within("the head", answer.head()).await.unwrap();
    let mut small = kit.ask();
    within("another answer", read(&mut small)).await.whole();
    assert_eq!(backend.counts().in_flight(), 1, "it waits for its reader");
    let mut length = 0;
    while let scheduler::Event::Chunk(chunk) = within("a chunk", answer.next()).await {
        length += chunk.len();
    }
    assert_eq!(length, 64 * 1024 * 1024);
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_yet_is_called_when_it_joins_anew() {
    let port = testkit::RefusingPort::take();
    let address = port.address();
    let (kit, _calling) = room_with(&port.url(), address).await;
    drop(port);
    let backend = MockBackend::start_at(address, &["m"]).await;
    join(&kit, "a", &backend.url(), address, 1);
    online(&kit, "a").await;
}

#[tokio::test]
async fn a_participant_that_leaves_or_whose_room_closes_is_called_no_more() {
    let backend = MockBackend::start(&["m"]).await;
    let kit = served(&backend).await;
    kit.room.leave("a", None, HERE).unwrap();
    let nobody = async || kit.scheduler.status().workers.is_empty();
    eventually("nobody is there", DEADLINE, nobody).await;
    join(&kit, "b", &backend.url(), backend.address(), 1);
    online(&kit, "b").await;
    kit.rooms.close(kit.room.id(), "enough").unwrap();
    eventually("nobody is there", DEADLINE, nobody).await;
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_for_30_s_is_offline_and_comes_back() {
    let backend = MockBackend::start(&["m"]).await;
    let address = backend.address();
    let kit = served(&backend).await;
    drop(backend);
    tokio::time::pause();
    while kit.status("a") != Status::Offline {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(kit.scheduler.status().workers.is_empty());
    tokio::time::resume();
    let backend = MockBackend::start_at(address, &["m"]).await;
    online(&kit, "a").await;
    assert_eq!(backend.counts().started, 0);
}
