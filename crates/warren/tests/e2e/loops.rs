//! Requests that would go in a circle: they are refused where they come back, with an error that says
//! so.

use std::fs;

use serde_json::json;
use testkit::{
    Client, Connect, DEADLINE, Daemon, Form, MockBackend, Response, Room, Way, chat::completion,
    eventually,
};

use crate::{
    common::{CHAT, MESSAGES, RESPONSES, ask, ask_for, join, lend, post, serve, start_worker},
    rooms_kit::{data, message, open_room, with_room},
};

const VIA: &str = "x-warren-via";

async fn join_by_endpoint(
    client: &Client,
    room: &Room,
    id: &str,
    model: &str,
    endpoint: &str,
) -> Response {
    let participant = json!({
        "id": id, "nickname": id, "model": model, "endpoint": endpoint, "specs": {}, "config": {},
    });
    let join = json!({"type": "room:join", "code": room.code, "participant": participant});
    client.post_json("/messages", &join).await
}

async fn is_connected(daemon: &Daemon, room: &Room, id: &str) {
    let connected = async || {
        let path = room.plane(&format!("/participants/{id}"));
        let seen = daemon.client().get(&path).await.json();
        seen["data"]["connection"]["connected"] == true
    };
    eventually("the endpoint being called", DEADLINE, connected).await;
}

fn descriptors(daemon: &Daemon) -> usize {
    fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count()
}

#[track_caller]
fn assert_loop(answer: &Response) {
    assert_eq!(answer.status, 508, "{}", answer.text());
    assert!(answer.text().contains("come back"), "{}", answer.text());
}

/// Each participant's endpoint is the room itself, and its model the next participant.
#[tokio::test]
async fn participants_that_lead_to_each_other_end_in_a_508_and_take_no_descriptors() {
    let (daemon, client, room) = with_room().await;
    // Like a proxy that the server does not know of.
    let way = Way::to(daemon.address()).await;
    let endpoint = format!("http://{}{}", way.address(), room.path(""));
    for number in 0..14 {
        let (id, next) = (format!("p{number}"), format!("p{}", (number + 1) % 14));
        let joined = join_by_endpoint(&client, &room, &id, &next, &endpoint).await;
        message(&joined, 201, "room:joined");
    }
    for number in 0..14 {
        is_connected(&daemon, &room, &format!("p{number}")).await;
    }
    let before = descriptors(&daemon);
    for (path, stream) in [(CHAT, false), (CHAT, true), (MESSAGES, false)] {
        assert_loop(&client.post_json(&room.path(path), &ask_for("p0", stream)).await);
    }
    let input = json!({"model": "*", "input": "hi"});
    assert_loop(&client.post_json(&room.path(RESPONSES), &input).await);
    let after = descriptors(&daemon);
    assert!(after < before + 100, "{before} descriptors, then {after}");
    data(&client.get(&room.plane("")).await, 200);
}

#[tokio::test]
async fn two_servers_that_are_each_others_backend_refuse_and_serve_again_once_one_has_a_model() {
    let [one, other] = [serve().start().await, serve().start().await];
    let _there = start_worker(&one, &other.url(), 4);
    let _back = start_worker(&other, &one.url(), 4);
    one.has_workers(1).await;
    other.has_workers(1).await;
    let refused = one.client().post_json(CHAT, &ask(false)).await;
    assert_loop(&refused);
    assert_eq!(refused.json()["error"]["code"], "loop_detected");
    assert_eq!(refused.json()["error"]["type"], "server_error");
    let refused = other.client().post_json(MESSAGES, &ask(true)).await;
    assert_loop(&refused);
    assert_eq!(refused.json()["error"]["type"], "api_error");
    one.is_idle().await;
    other.is_idle().await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&other, &backend, 4).await;
    for asked in [&one, &other, &one, &other] {
        for stream in [false, true] {
            assert_eq!(asked.client().post_json(CHAT, &ask(stream)).await.status, 200);
        }
    }
    let resting = |worker: &serde_json::Value| worker["resting_secs"].as_f64().is_some();
    let workers = [one.workers().await, other.workers().await].concat();
    assert!(!workers.iter().any(resting), "a circle is nobody's fault: {workers:?}");
}

/// Workers of either form, tunnels and endpoints all lead back to the server.
#[tokio::test]
async fn every_sort_of_provider_is_told_where_a_request_has_been() {
    let daemon = serve().start().await;
    let client = daemon.client();
    for form in [Form::Stock, Form::Binary] {
        let mut worker = join(&daemon, form, "w", 1).await;
        let asked = post(&client, CHAT, ask(false));
        let job = worker.expect_job().await;
        let via = job.header(VIA).expect("a mark").to_owned();
        let back = client.post(CHAT, &ask(false)).header(VIA, &via).send().await;
        assert_loop(&back);
        worker.complete(&job, 200, &json!({})).await;
        assert_eq!(asked.await.unwrap().status, 200);
        worker.close().await;
        daemon.has_workers(0).await;
    }
    let room = open_room(&daemon).await;
    let mut participant = room.friend(&daemon, "p1").await;
    let asked = post(&client, room.chat(), ask_for("m", false));
    let told = participant.expect_request().await;
    let via = told.json["headers"][VIA].as_str().expect("a mark").to_owned();
    assert_loop(&client.post(&room.chat(), &ask_for("m", false)).header(VIA, &via).send().await);
    participant.answer(&told, 200, &completion("hi")).await;
    assert_eq!(asked.await.unwrap().status, 200);
    // A room may well be lent the models of the server that it is on.
    let mut worker = Connect::to(&daemon).form(Form::Binary).join("w", &["m"], 1).await;
    let (through, asking) = (via.clone(), client.clone());
    let on =
        tokio::spawn(
            async move { asking.post(CHAT, &ask(false)).header(VIA, &through).send().await },
        );
    let job = worker.expect_job().await;
    assert_eq!(
        job.header(VIA).unwrap().split(',').next(),
        Some(&*via),
        "the room, then the server"
    );
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(on.await.unwrap().status, 200);
}

#[tokio::test]
async fn a_way_that_is_too_long_is_refused_whoever_marked_it() {
    let daemon = serve().start().await;
    let _worker = join(&daemon, Form::Binary, "w", 1).await;
    let marks: Vec<String> = (0..8).map(|mark| format!("{mark:016x}")).collect();
    let asked = daemon.client().post(CHAT, &ask(false)).header(VIA, &marks.join(","));
    let refused = asked.send().await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (508, &json!("loop_detected")));
    assert!(refused.text().contains("passed 8 servers"), "{}", refused.text());
    assert_eq!(refused.header("x-should-retry"), Some("false"));
}
