//! What strangers send to rooms: every field of every message and body made wrong in every way. After
//! each sweep good requests are answered, and another room knows nothing of it.

use serde_json::{Value, json};
use testkit::{Client, Response};

use crate::{
    common::serve,
    rooms_kit::{Neighbour, assert_answers, data, elsewhere, friend, open_room},
};

/// What may stand in a field.
#[derive(Clone, Copy)]
enum Is {
    /// A text of at most this many bytes.
    Text(usize),
    /// A text of any length.
    Prose,
    /// A number from here to there.
    Number(f64, f64),
    /// A whole number from 1 on.
    Count,
    Flag,
    Object,
    Texts,
}

/// A field that must be there, or need not.
type Field = (&'static str, bool, Is);

/// The values that a field must not have.
fn wrong(is: Is) -> Vec<Value> {
    let shapes = [json!(7), json!("text"), json!(true), json!([]), json!({}), json!(["a", 7])];
    let other = |value: &Value| match is {
        Is::Text(_) | Is::Prose => !value.is_string(),
        Is::Number(..) | Is::Count => !value.is_number(),
        Is::Flag => !value.is_boolean(),
        Is::Object => !value.is_object(),
        Is::Texts => value != &json!([]),
    };
    let mut wrong: Vec<_> = shapes.into_iter().filter(other).collect();
    match is {
        Is::Text(most) => {
            let texts = [
                "x".repeat(most + 1),
                "é".repeat(most),
                "a\u{1b}[2J".into(),
                "a\nb".into(),
                "a\0".into(),
            ];
            wrong.extend(texts.map(Value::from));
        }
        Is::Number(least, most) => {
            wrong.extend([json!(least - 0.1), json!(most + 0.1), json!(1e300), json!(-1e300)]);
        }
        Is::Count => wrong.extend([json!(0), json!(-1), json!(1.5), json!(1e300)]),
        Is::Texts => wrong.extend([json!(vec!["x"; 17]), json!([""]), json!(["x".repeat(257)])]),
        Is::Prose | Is::Flag | Is::Object => {}
    }
    wrong
}

/// The body with a field at this path, such as `participant/id`; without it for `None`.
fn with(body: &Value, path: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut place = &mut body;
    for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
        place = &mut place[parent];
    }
    match value {
        Some(value) => place[name] = value,
        None => {
            place.as_object_mut().unwrap().remove(name);
        }
    }
    body
}

/// Every body that is wrong in one field.
fn spoilt(good: &Value, fields: &[Field]) -> Vec<(String, Value)> {
    let mut bodies = Vec::new();
    for &(path, required, is) in fields {
        for value in wrong(is) {
            let shown = format!("{path} = {:.60}", value.to_string());
            bodies.push((shown, with(good, path, Some(value))));
        }
        if required {
            bodies.push((format!("{path} missing"), with(good, path, None)));
            bodies.push((format!("{path} null"), with(good, path, Some(Value::Null))));
        }
    }
    bodies
}

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

const CONFIG: [(&str, Is); 8] = [
    ("temperature", Is::Number(0.0, 2.0)),
    ("top_p", Is::Number(0.0, 1.0)),
    ("frequency_penalty", Is::Number(-2.0, 2.0)),
    ("presence_penalty", Is::Number(-2.0, 2.0)),
    ("max_tokens", Is::Count),
    ("stop", Is::Texts),
    ("seed", Is::Flag),
    ("instructions", Is::Prose),
];

/// The bodies that are wrong in a field of their parameters.
fn spoilt_config(good: &Value, place: &str, options: bool) -> Vec<(String, Value)> {
    let good = with(good, place, Some(json!({})));
    let mut bodies = Vec::new();
    for (name, is) in CONFIG {
        let values = match name {
            // Any whole number will do, but nothing else.
            "seed" => vec![json!("7"), json!(1.5), json!([]), json!(1e300)],
            "instructions" if options => continue,
            "instructions" => [wrong(is), vec![json!("x".repeat(16 * 1024 + 1))]].concat(),
            _ => wrong(is),
        };
        let path = format!("{place}/{name}");
        bodies.extend(values.into_iter().map(|value| {
            (format!("{path} = {:.60}", value.to_string()), with(&good, &path, Some(value)))
        }));
    }
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

#[tokio::test]
async fn every_field_of_every_message_is_checked() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut neighbour = Neighbour::new(&daemon).await;
    let create = json!({"type": "room:create", "name": "a"});
    let participant = json!({
        "id": "p", "nickname": "n", "model": "m", "endpoint": "http://127.0.0.1:1", "specs": {}, "config": {},
    });
    let join = json!({"type": "room:join", "code": room.code, "participant": participant});
    let ask = json!({
        "type": "llm:request", "requestId": "r", "targetId": "none", "prompt": "hi", "roomCode": room.code,
    });
    let tui = json!({"type": "tui:register", "roomCode": room.code});
    let host = json!({"type": "host:register", "roomId": room.id});
    let mut bodies = [
        spoilt(
            &create,
            &[
                ("type", true, Is::Text(64)),
                ("name", true, Is::Text(512)),
                ("password", false, Is::Text(256)),
                ("defaults", false, Is::Object),
                ("public", false, Is::Flag),
                ("expiresSecs", false, Is::Count),
            ],
        ),
        spoilt(
            &join,
            &[
                ("code", true, Is::Text(64)),
                ("participant", true, Is::Object),
                ("participant/id", true, Is::Text(128)),
                ("participant/nickname", true, Is::Text(128)),
                ("participant/model", true, Is::Text(256)),
                ("participant/endpoint", true, Is::Text(2048)),
                ("participant/specs", false, Is::Object),
                ("participant/config", false, Is::Object),
                ("password", false, Is::Text(256)),
            ],
        ),
        spoilt(
            &with(&join, "participant/specs", Some(json!({}))),
            &[
                ("participant/specs/gpu", false, Is::Text(256)),
                ("participant/specs/cpu", false, Is::Text(256)),
                ("participant/specs/vram", false, Is::Number(0.0, 1e6)),
                ("participant/specs/ram", false, Is::Number(0.0, 1e6)),
            ],
        ),
        spoilt(
            &ask,
            &[
                ("requestId", true, Is::Text(256)),
                ("targetId", true, Is::Text(512)),
                ("prompt", true, Is::Prose),
                ("options", false, Is::Object),
                ("roomCode", false, Is::Text(64)),
            ],
        ),
        spoilt(&tui, &[("roomCode", false, Is::Text(64))]),
        spoilt(&host, &[("roomId", true, Is::Text(64))]),
        spoilt_config(&create, "defaults", false),
        spoilt_config(&join, "participant/config", false),
        spoilt_config(&ask, "options", true),
    ]
    .concat();
    for kind in ["", "room:created", "llm:token", "ROOM:CREATE", "constructor", "__proto__"] {
        bodies.push((format!("type = {kind}"), json!({"type": kind, "name": "a"})));
    }
    for endpoint in [
        "nowhere",
        "ftp://h",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://u:p@127.0.0.1:1",
    ] {
        bodies.push((
            endpoint.to_owned(),
            with(&join, "participant/endpoint", Some(json!(endpoint))),
        ));
    }
    for model in ["room:any", "room:participant/p", " "] {
        bodies.push((model.to_owned(), with(&join, "participant/model", Some(json!(model)))));
    }
    for (what, body) in &bodies {
        let answer = client.post_json("/messages", body).await;
        assert_message_error(&answer, &[400], what);
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
    neighbour.is_untouched(&daemon).await;
}

#[tokio::test]
async fn every_field_of_every_body_of_the_plane_is_checked() {
    let daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut neighbour = Neighbour::new(&daemon).await;
    let create = json!({"name": "a"});
    let create_fields: [Field; 5] = [
        ("name", true, Is::Text(512)),
        ("password", false, Is::Text(256)),
        ("defaults", false, Is::Object),
        ("public", false, Is::Flag),
        ("expiresSecs", false, Is::Count),
    ];
    let put = json!({"nickname": "n", "model": "m", "endpoint": "http://h", "specs": {}});
    let put_fields: [Field; 13] = [
        ("nickname", true, Is::Text(128)),
        ("model", true, Is::Text(256)),
        ("endpoint", true, Is::Text(2048)),
        ("password", false, Is::Text(256)),
        ("specs", false, Is::Object),
        ("specs/gpu", false, Is::Text(256)),
        ("specs/cpu", false, Is::Text(256)),
        ("specs/vram", false, Is::Number(0.0, 1e6)),
        ("specs/ram", false, Is::Number(0.0, 1e6)),
        ("config", false, Is::Object),
        ("capabilities", false, Is::Object),
        ("maxConcurrent", false, Is::Number(0.0, 1024.0)),
        ("authHeaders", false, Is::Prose),
    ];
    let mut puts = [spoilt(&put, &put_fields), spoilt_config(&put, "config", false)].concat();
    for capability in [json!("perhaps"), json!(7), json!(null)] {
        let capabilities = json!({"openResponses": capability});
        puts.push((capability.to_string(), with(&put, "capabilities", Some(capabilities))));
    }
    puts.push(("session".to_owned(), with(&put, "sessionToken", Some(json!("x".repeat(257))))));
    let patches: [Field; 3] = [
        ("name", false, Is::Text(512)),
        ("password", false, Is::Text(256)),
        ("defaults", false, Is::Object),
    ];
    let host = client.clone().with_header("x-warren-host-token", &room.host_token);
    let path = room.plane("/participants/p");
    let sweeps = [
        (&client, "POST", "/v1/rooms".to_owned(), spoilt(&create, &create_fields)),
        (&client, "POST", "/v1/rooms".to_owned(), spoilt_config(&create, "defaults", false)),
        (&client, "PUT", path.clone(), puts),
        (&host, "PATCH", room.plane(""), spoilt(&json!({}), &patches)),
        (&host, "PATCH", room.plane(""), spoilt_config(&json!({}), "defaults", false)),
    ];
    for (client, method, path, bodies) in &sweeps {
        for (what, body) in bodies {
            let answer = send(client, method, path, body.to_string()).await;
            assert_plane_error(&answer, &[400], &format!("{method} {what}"));
        }
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
    neighbour.is_untouched(&daemon).await;
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
    neighbour.is_untouched(&daemon).await;
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
    neighbour.is_untouched(&daemon).await;
}
