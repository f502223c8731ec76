//! Participants whose endpoint the server calls, and those that it does not call.

use serde_json::{Value, json};
use testkit::{Daemon, Gate, MockBackend, Reply, eventually};

use crate::{
    common::{ask_for, serve},
    rooms_kit::{Room, data, message, open_room, send_from, with_room},
};

fn join(room: &Room, endpoint: &str) -> Value {
    let participant = json!({
        "id": "p1", "nickname": "Ann", "model": "m", "endpoint": endpoint, "specs": {}, "config": {},
    });
    json!({"type": "room:join", "code": room.code, "participant": participant})
}

async fn is_connected(daemon: &Daemon, room: &Room) {
    let connected = async || {
        let seen = daemon.client().get(&room.plane("/participants/p1")).await.json();
        seen["data"]["connection"]["connected"] == true
    };
    eventually("the endpoint being called", testkit::DEADLINE, connected).await;
}

#[tokio::test]
async fn an_endpoint_at_the_address_that_joins_is_called_and_streams() {
    let (daemon, client, room) = with_room().await;
    let backend = MockBackend::start(&["m"]).await;
    message(&client.post_json("/messages", &join(&room, &backend.url())).await, 201, "room:joined");
    is_connected(&daemon, &room).await;
    let answer = client.with_token("secret").post_json(&room.chat(), &ask_for("*", false)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
    let got = backend.request().await;
    assert_eq!((got.json()["model"].as_str(), got.header("authorization")), (Some("m"), None));
    let gate = Gate::closed();
    backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
    let asked = daemon.client().post(&room.chat(), &ask_for("*", true)).open().await;
    gate.open(1);
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    answer.reset();
    backend.aborted(1).await;
}

/// Neither a proxy nor a page may lend the server's own neighbourhood to others.
#[tokio::test]
async fn only_the_address_that_joins_is_called() {
    let daemon = serve().start().await;
    let room = open_room(&daemon).await;
    let backend = MockBackend::start(&["m"]).await;
    let far = [
        "http://192.168.1.1:80",
        "http://169.254.169.254/latest",
        "http://[::1]:80",
        "http://10.0.0.1",
    ];
    for endpoint in far {
        let refused = daemon.client().post_json("/messages", &join(&room, endpoint)).await;
        let error = message(&refused, 400, "room:error");
        assert!(error["error"].as_str().unwrap().contains("warren room join"), "{error}");
    }
    let posted = daemon.client().post("/messages", &join(&room, &backend.url()));
    let traces = [
        ("x-forwarded-for", "203.0.113.9"),
        ("forwarded", "for=203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
        ("via", "1.1 proxy"),
        ("origin", "https://evil.example"),
    ];
    for (name, value) in traces {
        let refused = posted.clone().header(name, value).send().await;
        let error = message(&refused, 400, "room:error");
        assert!(error["error"].as_str().unwrap().contains("warren room join"), "{name}: {error}");
    }
    let other = posted.clone();
    assert_eq!(send_from(&daemon, [127, 0, 0, 2], other).await.0, 400, "of another address");
    let listed = data(&daemon.client().get(&room.plane("/participants")).await, 200);
    assert_eq!((listed, backend.counts().started), (json!([]), 0));
}

#[tokio::test]
async fn a_servers_owner_says_whose_endpoints_are_called() {
    let backend = MockBackend::start(&["m"]).await;
    let off = serve().set("--room-endpoints", "off").start().await;
    let room = open_room(&off).await;
    let refused = off.client().post_json("/messages", &join(&room, &backend.url())).await;
    message(&refused, 400, "room:error");
    let any = serve().set("--room-endpoints", "any").start().await;
    let room = open_room(&any).await;
    let posted = any.client().post("/messages", &join(&room, &backend.url()));
    assert_eq!(send_from(&any, [127, 0, 0, 2], posted).await.0, 201);
    is_connected(&any, &room).await;
    let metadata =
        any.client().post_json("/messages", &join(&room, "http://169.254.169.254/")).await;
    message(&metadata, 400, "room:error");
}

#[tokio::test]
async fn a_redirect_of_an_endpoint_is_not_followed() {
    let (daemon, client, room) = with_room().await;
    let (backend, inner) = (MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await);
    let location = format!("{}/v1/chat/completions", inner.url());
    for status in [301, 302, 307, 308] {
        backend.then(Reply::full(status, &[("location", &location)], ""));
    }
    message(&client.post_json("/messages", &join(&room, &backend.url())).await, 201, "room:joined");
    is_connected(&daemon, &room).await;
    for _ in 0..4 {
        let failed = client.post_json(&room.chat(), &ask_for("*", false)).await;
        assert_eq!((failed.status, failed.header("location")), (502, None), "{}", failed.text());
    }
    assert_eq!(inner.counts().started, 0);
}
