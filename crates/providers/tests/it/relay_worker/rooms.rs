//! Workers in a room: they serve it, and nothing else.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use base::Scope;
use http::{Method, Request, Response};
use protocol::room::{Status, selector};
use rooms::{NewRoom, Room};
use serde_json::{Value, json};

use super::kit::{Kit, Worker, now, read};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn room(kit: &Kit, password: Option<&str>) -> Arc<Room> {
    let password = password.map(Into::into);
    let new = NewRoom { name: "friends".to_owned(), password, ..NewRoom::default() };
    kit.rooms.create(new, now()).unwrap().room
}

/// A worker that registers with these fields beside its usual ones, and what it is told.
async fn registered(kit: &Kit, room: &Arc<Room>, from: IpAddr, with: Value) -> (Worker, Value) {
    let mut worker = kit.room_link(room, from, false);
    register(&worker, &with);
    let ack = worker.hear().await;
    assert_eq!(ack["type"], "register_ack", "{ack}");
    (worker, ack)
}

fn register(worker: &Worker, with: &Value) {
    let mut register = json!({
        "type": "register", "worker_name": "gpu", "models": ["m"], "max_concurrent": 2,
    });
    register.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    worker.say(&register);
}

fn who(id: &str) -> Value {
    json!({"participant": {"id": id, "nickname": "Ann", "specs": {"gpu": "RTX"}}})
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_a_participant_of_its_room_and_of_nothing_else() {
    let mut kit = Kit::new();
    let (room, other) = (room(&kit, None), room(&kit, None));
    let (mut worker, ack) = registered(&kit, &room, HERE, who("ann")).await;
    assert_eq!((&ack["room"], &ack["participant_id"]), (&json!(room.short_code()), &json!("ann")));
    assert!(ack["session_token"].as_str().unwrap().starts_with("wp_"));
    let info = room.participant("ann").unwrap();
    assert_eq!((info.nickname.as_str(), info.model.as_str()), ("Ann", "m"));
    assert_eq!((info.status, info.specs.gpu.as_deref()), (Status::Online, Some("RTX")));
    assert!(kit.scheduler.models(&Scope::server()).is_empty());
    let _of_server = kit.submit(false);
    let _of_other = kit.submit_in(&other, "m", Method::POST);
    let mut answer = kit.submit_in(&room, &selector::participant_name("ann"), Method::POST);
    let id = worker.request().await;
    assert_eq!(id, answer.job().to_string());
    worker.complete(&id, 200, "{}");
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await, (200, "{}".to_owned(), None));
    assert_eq!(kit.scheduler.status().queue_depth, 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_say_who_it_is_gets_an_id_and_is_called_by_its_name() {
    let kit = Kit::new();
    let room = room(&kit, None);
    let (_worker, ack) = registered(&kit, &room, HERE, json!({})).await;
    let id = ack["participant_id"].as_str().unwrap();
    assert!(id.starts_with("w-"), "{id}");
    assert_eq!(room.participant(id).unwrap().nickname, "gpu");
}

#[tokio::test(start_paused = true)]
async fn its_requests_have_its_defaults() {
    let mut kit = Kit::new();
    let room = room(&kit, None);
    let config = json!({"participant": {
        "id": "ann", "nickname": "Ann", "config": {"temperature": 0.5},
    }});
    let (mut worker, _) = registered(&kit, &room, HERE, config).await;
    let _answer = kit.submit_in(&room, selector::ANY, Method::POST);
    let body: Value = serde_json::from_str(worker.hear().await["body"].as_str().unwrap()).unwrap();
    assert_eq!(body["temperature"], 0.5);
}

#[tokio::test(start_paused = true)]
async fn models_that_a_room_cannot_have_are_dropped_with_a_warning() {
    let kit = Kit::new();
    let room = room(&kit, None);
    let models = json!({"models": ["*", "room:any", "m", "n"]});
    let (_worker, ack) = registered(&kit, &room, HERE, models).await;
    assert_eq!(ack["models"], json!(["m", "n"]));
    assert_eq!(ack["warnings"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_model_nothing_is_offered_until_there_is_one() {
    let kit = Kit::new();
    let room = room(&kit, None);
    let none = json!({"models": ["*"], "participant": {"id": "ann", "nickname": "Ann"}});
    let (worker, ack) = registered(&kit, &room, HERE, none).await;
    assert_eq!(ack["models"], json!([]));
    assert!(ack["warnings"].to_string().contains("nothing is offered in the room"));
    let offered = || kit.scheduler.models(&room.scope()).len();
    assert_eq!(offered(), 0);
    worker.say(&json!({"type": "models_update", "models": ["n", "*"], "current_load": 0}));
    let _driver = worker.drive();
    while offered() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(offered(), 4);
    assert_eq!(room.participant("ann").unwrap().models, ["n"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_link_must_show_the_token_of_the_first() {
    let kit = Kit::new();
    let room = room(&kit, None);
    let (mut first, ack) = registered(&kit, &room, HERE, who("ann")).await;
    for token in [None, Some("wp_wrong")] {
        let mut stranger = kit.room_link(&room, THERE, false);
        let mut with = who("ann");
        with["participant"]["session_token"] = json!(token);
        register(&stranger, &with);
        let (code, reason) = stranger.closed().await;
        assert_eq!(code, 1008);
        assert!(reason.contains("choose another id"), "{reason}");
    }
    let mut with = who("ann");
    with["participant"]["session_token"] = ack["session_token"].clone();
    let (_second, second) = registered(&kit, &room, THERE, with).await;
    assert_eq!(second["session_token"], ack["session_token"]);
    assert_eq!(first.closed().await.0, 1000);
    assert_eq!(room.participants().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_a_room_cannot_take_is_told_why() {
    let kit = Kit::new();
    let room = room(&kit, None);
    for (id, word) in [("", "empty"), ("a\nb", "control")] {
        let mut worker = kit.room_link(&room, HERE, false);
        register(&worker, &who(id));
        let (code, reason) = worker.closed().await;
        assert!(code == 1008 && reason.contains(word), "{code} {reason}");
    }
    assert!(room.participants().is_empty() && kit.scheduler.status().workers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_removed_or_whose_room_closes_is_told_so() {
    let kit = Kit::new();
    let room = room(&kit, None);
    let (mut worker, ack) = registered(&kit, &room, HERE, who("ann")).await;
    let token = ack["session_token"].as_str();
    room.leave("ann", token, THERE).unwrap();
    assert_eq!(worker.closed().await, (1008, "the participant was removed".to_owned()));
    let (mut worker, _) = registered(&kit, &room, HERE, who("ann")).await;
    kit.rooms.close(room.id(), "enough").unwrap();
    assert_eq!(worker.closed().await, (1001, "the room was closed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_goes_is_offline_and_not_forgotten() {
    let kit = Kit::new();
    let room = room(&kit, None);
    let (mut worker, _) = registered(&kit, &room, HERE, who("ann")).await;
    let provider = kit.scheduler.status().workers[0].id;
    kit.scheduler.drain(provider, "maintenance", Duration::from_secs(5));
    assert_eq!(worker.hear().await["type"], "graceful_shutdown");
    assert_eq!(worker.closed().await.0, 1000);
    assert_eq!(room.participant("ann").unwrap().status, Status::Offline);
}

#[tokio::test(start_paused = true)]
async fn a_method_that_the_protocol_lacks_is_answered_501_or_moves() {
    let mut kit = Kit::new();
    let room = room(&kit, None);
    for binary in [false, true] {
        let mut worker = kit.room_link(&room, HERE, binary);
        register(&worker, &json!({}));
        worker.hear().await;
        let mut answer = kit.submit_in(&room, selector::ANY, Method::DELETE);
        let (status, body, failure) = tokio::select! {
            read = read(&mut answer) => read,
            frame = worker.other_frame() => panic!("{frame:?}"),
        };
        assert!(status == 501 && body.contains("DELETE"), "{status} {body} {failure:?}");
    }
}

fn request(query: &str, headers: &[(&str, &str)]) -> Request<()> {
    let request = Request::get(format!("/v1/worker/connect?{query}"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let with = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    with.body(()).unwrap()
}

async fn connect(kit: &Kit, query: &str, headers: &[(&str, &str)]) -> Response<String> {
    kit.workers.connect(&mut request(query, headers), THERE.into()).await
}

#[tokio::test]
async fn the_code_lets_a_worker_in_and_the_password_where_there_is_one() {
    let kit = Kit::new();
    let (open, locked) = (room(&kit, None), room(&kit, Some("open sesame")));
    let open = format!("room={}", open.spoken_code());
    assert_eq!(connect(&kit, &open, &[]).await.status(), 101);
    assert_eq!(connect(&kit, &open, &[("x-worker-secret", "any")]).await.status(), 101);
    let locked = format!("room={}", locked.short_code().to_lowercase());
    for header in [
        ("x-worker-secret", "open sesame"),
        ("authorization", "Bearer open sesame"),
        ("x-api-key", "open sesame"),
    ] {
        assert_eq!(connect(&kit, &locked, &[header]).await.status(), 101, "{header:?}");
    }
    for name in ["password", "secret", "worker_secret"] {
        let query = format!("{locked}&{name}=open+sesame");
        assert_eq!(connect(&kit, &query, &[]).await.status(), 101, "{query}");
    }
    assert_eq!(connect(&kit, &locked, &[]).await.status(), 401);
    // What lends to the whole server opens no room, and the other way.
    assert_eq!(connect(&kit, &locked, &[("x-worker-secret", "s")]).await.status(), 401);
    assert_eq!(connect(&kit, "", &[("x-worker-secret", "open sesame")]).await.status(), 401);
}

#[tokio::test]
async fn guessing_codes_or_passwords_is_throttled() {
    let kit = Kit::new();
    for _ in 0..10 {
        let refused = connect(&kit, "room=swift-eagle-42", &[]).await;
        assert_eq!(refused.status(), 404);
        let body: Value = serde_json::from_str(refused.body()).unwrap();
        assert_eq!(body["error"]["message"], "Room not found");
    }
    let refused = connect(&kit, "room=swift-eagle-42", &[]).await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
}
