//! Bad input of strangers to rooms. After each test good requests are answered, and another room knows
//! nothing of it.

use serde_json::json;
use testkit::{Client, Response};

use crate::{
    common::serve,
    rooms_kit::{Neighbour, assert_answers, data, elsewhere, friend, open_room},
};

/// Bodies that are nothing.
fn nonsense() -> Vec<Vec<u8>> {
    let deep = |open: &str| open.repeat(50_000).into_bytes();
    let mut bodies: Vec<Vec<u8>> =
        ["", " ", "null", "7", "\"text\"", "[]", "{", "{}}", "{\"type\"", "<html>"]
            .map(|text| text.as_bytes().to_vec())
            .into();
    bodies.extend([deep("["), deep("{\"a\":"), deep("{\"name\":["), deep("{\"participant\":{")]);
    bodies.push(b"{\"name\":\"\xff\xfe\",\"type\":\"room:create\",\"model\":\"m\"}".to_vec());
    bodies.push(b"{\"name\":\"\\ud800\",\"type\":\"room:create\",\"model\":\"\\ud800\"}".to_vec());
    bodies.push(vec![0; 1000]);
    bodies
}

/// An error in the form of the spec's messages, in JSON, which says something.
#[track_caller]
fn assert_message_error(answer: &Response, statuses: &[u16], what: &str) {
    assert!(statuses.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    let body = answer.json();
    let kinds = ["room:error", "llm:error"];
    assert!(kinds.iter().any(|kind| body["type"] == *kind), "{what}: {body}");
    assert!(body["error"].as_str().is_some_and(|text| text.len() > 8), "{what}: {body}");
    assert!(answer.body.len() < 4096, "{what}: {body}");
}

#[track_caller]
fn assert_plane_error(answer: &Response, statuses: &[u16], what: &str) {
    assert!(statuses.contains(&answer.status), "{what}: {} {}", answer.status, answer.text());
    let body = answer.json();
    assert!(
        body["error"]["code"].is_string() && body["meta"]["requestId"].is_string(),
        "{what}: {body}"
    );
    assert!(answer.body.len() < 4096, "{what}: {body}");
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: impl Into<bytes::Bytes>,
) -> Response {
    client.request(method, path).body(body).send().await
}

/// The fields are swept in `protocol`: here one of each message.
#[tokio::test]
async fn a_bad_message_is_refused_and_makes_nothing() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut neighbour = Neighbour::new(&daemon).await;
    let bodies = [
        json!({"type": "room:created", "name": "a"}),
        json!({"type": "room:create", "name": 7}),
        json!({"type": "room:join", "code": room.code, "participant": {"id": "p"}}),
        json!({"type": "llm:request", "requestId": "r", "targetId": "none", "prompt": 7,
            "roomCode": room.code}),
        json!({"type": "tui:register", "roomCode": [room.code]}),
        json!({"type": "host:register", "roomId": "a\u{1b}[2J"}),
    ];
    for body in &bodies {
        let answer = client.post_json("/messages", body).await;
        assert_message_error(&answer, &[400], &body.to_string());
    }
    for body in nonsense() {
        for path in ["/messages".to_owned(), room.path("/messages")] {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            assert_message_error(&send(&client, "POST", &path, body.clone()).await, &[400], &shown);
        }
    }
    let large = json!({"type": "room:create", "name": "x".repeat(2 << 20)});
    assert_message_error(&client.post_json("/messages", &large).await, &[413], "2 MiB");
    let rooms = data(&client.get("/v1/rooms").await, 200);
    assert_eq!(rooms.as_array().unwrap().len(), 2, "nothing was made");
    assert_eq!(rooms[0]["participantCount"], 0, "nobody joined");
    neighbour.assert_untouched(&daemon).await;
}

/// The fields are swept in `protocol`: here one of each body.
#[tokio::test]
async fn a_bad_body_of_the_plane_is_refused_and_makes_nothing() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut neighbour = Neighbour::new(&daemon).await;
    let put = json!({"nickname": "n", "model": "m", "endpoint": "http://h", "specs": {}});
    let host = client.clone().with_header("x-warren-host-token", &room.host_token);
    let sweeps = [
        (&client, "POST", "/v1/rooms".to_owned(), json!({"name": "a", "defaults": {"stop": 7}})),
        (&client, "PUT", room.plane("/participants/p"), json!({"nickname": "n", "model": "m"})),
        (&host, "PATCH", room.plane(""), json!({"name": []})),
    ];
    for (client, method, path, body) in &sweeps {
        let answer = send(client, method, path, body.to_string()).await;
        assert_plane_error(&answer, &[400], &format!("{method} {body}"));
        for body in nonsense() {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let answer = send(client, method, path, body).await;
            assert_plane_error(&answer, &[400], &format!("{method} {shown}"));
        }
        let large = json!({"name": "x".repeat(2 << 20)}).to_string();
        assert_plane_error(&send(client, method, path, large).await, &[413], "2 MiB");
    }
    let ids = ["%1b%5b2J", "%0a", "%00", "%20", &"x".repeat(129), "%e2%80%ae", "%ff"];
    for id in ids {
        let answer =
            send(&client, "PUT", &room.plane(&format!("/participants/{id}")), put.to_string())
                .await;
        assert_plane_error(&answer, &[400, 404], id);
    }
    let summary = data(&client.get(&room.plane("")).await, 200);
    assert_eq!((&summary["name"], &summary["participantCount"]), (&json!("friends"), &json!(0)));
    assert_eq!(data(&client.get("/v1/rooms").await, 200).as_array().unwrap().len(), 2);
    neighbour.assert_untouched(&daemon).await;
}

/// A name that is a number made a stock server's list unreadable for everybody.
#[tokio::test]
async fn a_name_that_is_a_number_is_refused_and_odd_codes_find_nothing() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let answer = client.post_json("/v1/rooms", &json!({"name": 123})).await;
    assert_plane_error(&answer, &[400], "a number");
    assert_eq!(data(&client.get("/v1/rooms").await, 200)[0]["id"], room.id);
    assert_eq!(client.get(&room.plane("")).await.status, 200, "it is known from now on");
    let odd = ["%00", "..", "%2e%2e", "a%2fb", "%27%20or%201=1", "%f0%9f%90%87", &"A".repeat(5000)];
    for code in odd {
        for (method, path) in [
            ("GET", format!("/v1/rooms/{code}")),
            ("GET", format!("/rooms/{code}/v1/models")),
            ("GET", format!("/rooms/{code}/events")),
        ] {
            // Each from elsewhere in the count of unknown codes.
            let answer = elsewhere(&daemon).request(method, &path).send().await;
            assert!([404, 429].contains(&answer.status), "{path}: {}", answer.text());
            assert!(answer.json().get("error").is_some(), "{path}: {}", answer.text());
        }
    }
    assert_eq!(client.get(&room.plane("")).await.status, 200);
}

#[tokio::test]
async fn bodies_for_inference_that_are_none_are_a_400_in_json() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut participant = friend(&daemon, &room, "p1").await;
    let mut neighbour = Neighbour::new(&daemon).await;
    let bodies = [
        json!({}),
        json!({"messages": []}),
        json!({"model": 7, "messages": []}),
        json!({"model": "", "messages": []}),
        json!({"model": null}),
        json!({"model": ["*"]}),
        json!({"model": "*", "stream": "yes"}),
    ];
    let bodies = bodies.map(|body| body.to_string().into_bytes());
    let all: Vec<_> = nonsense().into_iter().chain(bodies).collect();
    let paths = [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/embeddings",
        "/api/chat",
        "/v1/messages/count_tokens",
    ];
    for path in paths {
        for body in &all {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let answer = send(&client, "POST", &room.path(path), body.clone()).await;
            assert_eq!(answer.status, 400, "{path} {shown}: {}", answer.text());
            assert_eq!(answer.header("content-type"), Some("application/json"), "{path} {shown}");
            assert!(answer.json()["error"].is_string(), "{path} {shown}: {}", answer.text());
            assert!(answer.body.len() < 1024, "{path} {shown}");
        }
    }
    for (method, path) in [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/models"),
        ("GET", "/v1/nothing"),
        ("GET", ""),
    ] {
        let answer = client.request(method, &room.path(path)).send().await;
        assert_eq!(
            (answer.status, answer.json()["error"].is_string()),
            (404, true),
            "{method} {path}"
        );
    }
    assert_answers(&daemon, &room, &mut participant).await;
    neighbour.assert_untouched(&daemon).await;
}

#[tokio::test]
async fn a_room_that_is_full_takes_nobody_more_and_others_go_on() {
    const TRIED: usize = 3_000;
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut member = friend(&daemon, &room, "member").await;
    let mut neighbour = Neighbour::new(&daemon).await;
    let (mut joined, mut refused) = (0, 0);
    for batch in 0..TRIED / 100 {
        let puts = (0..100).map(|n| {
            let put = room.put(&daemon, &format!("p{}", batch * 100 + n));
            tokio::spawn(async move { put.put().await })
        });
        for put in puts.collect::<Vec<_>>() {
            let answer = put.await.unwrap();
            match answer.status {
                201 => joined += 1,
                _ => {
                    assert_plane_error(&answer, &[429], "full");
                    refused += 1;
                }
            }
        }
    }
    assert!(joined >= 999 && refused > 0, "{joined} joined, {refused} did not");
    let listed = data(&client.get(&room.plane("/participants")).await, 200);
    assert!(listed.as_array().unwrap().len() <= 1_000);
    assert_answers(&daemon, &room, &mut member).await;
    neighbour.assert_untouched(&daemon).await;
}
