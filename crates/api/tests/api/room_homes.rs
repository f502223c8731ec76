//! Rooms of two servers that act as one, with the way between them in the hands of the test.

use std::{
    collections::HashMap,
    future::Future,
    io::Write,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};

use access::Keys;
use api::{Api, Client, PassedOn, RoomHomes, room::homes::arrival};
use axum::{Router, body::Body};
use base::{ClientAddress, Endpoint};
use flate2::{Compression, write::GzEncoder};
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use rooms::Room;
use serde_json::{Value, json};
use store::{Changes, RoomHome, RoomStore, VolatileStore};

use crate::{
    kit::{Kit, head, next, text},
    room_kit::{JSON, answer_of, chat, get, now, path, post, with_bearer},
};

const HERE: &str = "10.0.0.1";
const THERE: &str = "10.0.0.2";

/// The way between servers: each is reached by its name, while it is there.
#[derive(Default)]
struct Ways(Mutex<HashMap<String, (Api, Router)>>);

impl RoomHomes for Ways {
    fn carry(
        &self,
        home: &RoomHome,
        passed_on: PassedOn,
        request: Request<Body>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, String>> + Send>> {
        let way = self.0.lock().unwrap().get(&home.server).cloned();
        // As over a wire: nothing but bytes goes along.
        let words = serde_json::to_string(&passed_on).unwrap();
        let passed_on: PassedOn = serde_json::from_str(&words).unwrap();
        let (mut parts, body) = request.into_parts();
        if let Some(length) = parts.headers.get("content-length") {
            let length = length.to_str().unwrap().parse().ok();
            assert_eq!(length, body.size_hint().exact(), "over a wire the body would not be whole");
        }
        parts.extensions = http::Extensions::new();
        let request = Request::from_parts(parts, body);
        Box::pin(async move {
            let (api, router) = way.ok_or("it is not there")?;
            Ok(arrival::answer(&api, router, passed_on, request).await)
        })
    }
}

struct Two {
    store: Arc<VolatileStore>,
    keys: Keys,
    ways: Arc<Ways>,
    one: Kit,
    other: Kit,
}

fn two() -> Two {
    let (store, keys) = (Arc::<VolatileStore>::default(), Keys::default());
    let ways = Arc::<Ways>::default();
    let server = |name: &str| {
        let own = RoomHome { server: name.to_owned(), start: "1f".to_owned() };
        let kit = Kit::in_fleet(&store, &keys, own);
        let homes: Arc<dyn RoomHomes> = Arc::<Ways>::clone(&ways);
        kit.api.set_room_homes(Arc::downgrade(&homes));
        let plain = api::router(kit.api.clone());
        ways.0.lock().unwrap().insert(name.to_owned(), (kit.api.clone(), plain));
        kit
    };
    let (one, other) = (server("one"), server("other"));
    Two { store, keys, ways, one, other }
}

impl Two {
    fn news(&self) {
        for kit in [&self.one, &self.other] {
            let records = self.store.load_rooms().unwrap();
            kit.rooms.take_over(Changes { whole: true, records }, now());
        }
    }
}

/// A request of the client at this address.
fn of(address: &str, mut request: Request<Body>) -> Request<Body> {
    let ip: IpAddr = address.parse().unwrap();
    request.extensions_mut().insert(Client { address: ClientAddress::new(ip), peer: ip });
    request
}

fn plane(room: &Room, rest: &str) -> String {
    format!("/v1/rooms/{}{rest}", room.spoken_code().to_uppercase().replace('-', "%20"))
}

fn put(room: &Room, id: &str) -> Request<Body> {
    let body = json!({"nickname": "Ann", "model": "m", "endpoint": "http://10.0.0.2:1"});
    let request = Request::put(plane(room, &format!("/participants/{id}")));
    request.header("content-type", "application/json").body(body.to_string().into()).unwrap()
}

/// The ids of all events that a stream has had.
async fn ids(response: Response<Body>, number: usize) -> Vec<u64> {
    assert_eq!(response.status(), StatusCode::OK);
    let (mut body, mut ids) = (response.into_body(), Vec::new());
    while ids.len() < number {
        let frames = String::from_utf8(next(&mut body).await.unwrap().unwrap().to_vec()).unwrap();
        let read = frames.lines().filter_map(|line| line.strip_prefix("id: "));
        ids.extend(read.map(|id| id.parse::<u64>().unwrap()));
    }
    ids
}

#[tokio::test(start_paused = true)]
async fn a_room_is_entered_joined_and_asked_through_another_server() {
    let mut two = two();
    let room = two.one.room(None);
    let shown = two.other.answer(get(&plane(&room, ""))).await;
    assert_eq!((shown.0, &shown.1["data"]["id"]), (200, &json!(room.id().as_str())));
    let (status, joined) = two.other.answer(of(THERE, put(&room, "p"))).await;
    assert_eq!(status, 201, "{joined}");
    let url = joined["data"]["tunnel"]["url"].as_str().unwrap();
    assert!(url.starts_with("ws://localhost/v1/rooms/"), "of the server that was asked: {url}");
    assert_eq!(room.participants().len(), 1);
    let lent = two.one.lends(&room, "q", &["m2"], &[Endpoint::ChatCompletions]);
    let answering = two.other.meanwhile(chat(&room, "model:m2"));
    let serve = async {
        let mut assignment = two.one.assigned().await;
        assignment.answer.head(head(&[JSON])).unwrap();
        assignment.answer.chunk("{\"answer\":42}".into()).unwrap();
        assignment.answer.end();
    };
    let (response, ()) = tokio::join!(answering, serve);
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(answer_of(response).await, (200, json!({"answer": 42})));
    drop(lent);
}

#[tokio::test(start_paused = true)]
async fn all_see_one_order_of_events_with_the_same_ids_and_resume_anywhere() {
    let two = two();
    let room = two.one.room(None);
    let events = path(&room, "/events");
    let here = two.one.send(get(&events)).await;
    let there = two.other.send(get(&events)).await;
    for id in ["a", "b", "c"] {
        two.one.joins(&room, id, &["m"]);
    }
    let (here, there) = (ids(here, 3).await, ids(there, 3).await);
    assert_eq!(here, there);
    assert_eq!(here.iter().map(|id| id >> 40).collect::<Vec<_>>(), [1, 1, 1]);
    let mut resumed = get(&events);
    resumed.headers_mut().insert("last-event-id", here[0].into());
    assert_eq!(ids(two.other.send(resumed).await, 2).await, here[1..]);
    let role = format!("/events?role=host&room={}", room.id().as_str());
    let mut resumed = get(&role);
    resumed.headers_mut().insert("last-event-id", here[1].into());
    assert_eq!(ids(two.other.send(resumed).await, 1).await, here[2..]);
}

#[tokio::test(start_paused = true)]
async fn wrong_passwords_count_for_the_client_and_wrong_codes_where_they_are_tried() {
    let two = two();
    let room = two.one.room(Some("swordfish"));
    let participants = plane(&room, "/participants");
    let tried = async |from: &str, password: &str| {
        let request = with_bearer(get(&participants), password);
        two.other.answer(of(from, request)).await.0
    };
    for _ in 0..10 {
        assert_eq!(tried(HERE, "wrong").await, 401);
    }
    assert_eq!(tried(HERE, "swordfish").await, 429, "at the home, by the client's own address");
    assert_eq!(tried(THERE, "swordfish").await, 200);
    let third = "10.0.0.3";
    for _ in 0..10 {
        let unknown = get("/v1/rooms/nobody-knows-11/participants");
        assert_eq!(two.other.answer(of(third, unknown)).await.0, 404);
    }
    let found = two.other.answer(of(third, get(&plane(&room, "")))).await;
    assert_eq!(found.0, 429, "that code might have been guessed");
    assert_eq!(tried(THERE, "swordfish").await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_home_that_is_away_is_told_in_the_form_of_each_path_and_others_are_not_asked() {
    let two = two();
    let room = two.one.room(None);
    two.news();
    two.ways.0.lock().unwrap().remove("one");
    let is_it = |words: &Value| words.as_str().is_some_and(|it| it.contains("The server one"));
    let (status, answer) = two.other.answer(get(&plane(&room, ""))).await;
    assert!(status == 503 && is_it(&answer["error"]["message"]), "{answer}");
    let (status, answer) = two.other.answer(chat(&room, "*")).await;
    assert!(status == 503 && is_it(&answer["error"]), "{answer}");
    let response = two.other.send(get(&path(&room, "/events"))).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"2".parse().unwrap())
    );
    assert!(
        two.one.answer(get(&plane(&room, ""))).await.0 == 200,
        "it goes on for its own clients"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_is_passed_on_once() {
    let two = two();
    let room = two.one.room(None);
    two.news();
    assert!(two.other.rooms.adopt(room.id(), 1, now()).unwrap());
    let records = two.store.load_rooms().unwrap();
    two.one.rooms.take_over(Changes { whole: true, records }, now());
    two.one.rooms.give_way(room.id()).unwrap();
    let third = two.ways.0.lock().unwrap().get("one").cloned().unwrap();
    two.ways.0.lock().unwrap().insert("other".to_owned(), third);
    let (status, answer) = two.one.answer(get(&plane(&room, ""))).await;
    assert_eq!(status, 503, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("moving"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn messages_name_rooms_of_other_servers_and_lists_have_them() {
    let two = two();
    let room = two.one.room(None);
    two.one.joins(&room, "p", &["m"]);
    let say = async |message: Value| two.other.answer(post("/messages", message.to_string())).await;
    let (status, answer) =
        say(json!({"type": "host:register", "roomId": room.id().as_str()})).await;
    assert_eq!((status, &answer["participants"][0]["id"]), (200, &json!("p")), "{answer}");
    let (_, answer) = say(json!({"type": "tui:register", "roomCode": room.short_code()})).await;
    assert_eq!(answer["participants"][0]["id"], "p", "{answer}");
    let (_, listed) = say(json!({"type": "list:rooms"})).await;
    assert_eq!(listed["rooms"][0]["participantCount"], 1, "{listed}");
    let (_, listed) = two.other.answer(get("/v1/rooms")).await;
    let mut own = json!(room.summary());
    // The use of a room is written at most once a minute.
    own["expiresAt"] = listed["data"][0]["expiresAt"].clone();
    assert_eq!(listed["data"], json!([own]));
    let unknown = say(json!({"type": "host:register", "roomId": "nothing"})).await;
    assert_eq!(unknown.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_packed_message_about_a_room_of_another_server_is_understood_there() {
    let two = two();
    let room = two.one.room(None);
    two.one.joins(&room, "p", &["m"]);
    let message = json!({"type": "host:register", "roomId": room.id().as_str()}).to_string();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(message.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let mut request = post("/messages", packed.clone());
    request.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    request.headers_mut().insert("content-length", packed.len().into());
    let (status, answer) = two.other.answer(request).await;
    assert_eq!((status, &answer["participants"][0]["id"]), (200, &json!("p")), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_bound_to_a_room_works_at_any_server() {
    let mut two = two();
    let room = two.one.room(None);
    two.news();
    let key = two.one.key(Some(&room), &[]);
    assert_eq!(two.keys.list().len(), 1);
    let _lent = two.one.lends(&room, "q", &["m2"], &[Endpoint::ChatCompletions]);
    let body = r#"{"model":"m2","messages":[{"role":"user","content":"hi"}]}"#;
    let request = with_bearer(post("/v1/chat/completions", body), key.expose());
    let answering = two.other.meanwhile(request);
    let serve = async {
        let mut assignment = two.one.assigned().await;
        assignment.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
        assignment.answer.chunk("data: 1\n\n".into()).unwrap();
        assignment.answer.end();
    };
    let (response, ()) = tokio::join!(answering, serve);
    assert_eq!((response.status().as_u16(), &*text(response).await), (200, "data: 1\n\n"));
    let models = two.other.answer(with_bearer(get("/v1/models"), key.expose())).await;
    assert!(models.1.to_string().contains("m2"), "{}", models.1);
    two.ways.0.lock().unwrap().remove("one");
    let listed = two.other.answer(with_bearer(get("/v1/rooms"), key.expose())).await;
    assert_eq!(listed.0, 200, "that is no request about the room");
}
