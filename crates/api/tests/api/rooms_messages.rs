//! The spec's messages, posted and answered.

use api::RoomPermissions;
use axum::body::Body;
use base::Endpoint;
use http::Request;
use serde_json::{Value, json};

use crate::{
    kit::Kit,
    room_kit::{nonsense, post, with_bearer},
    rooms_plane::from_afar,
};

const CHAT: &[Endpoint] = &[Endpoint::ChatCompletions];

pub(crate) fn message(path: &str, message: &Value) -> Request<Body> {
    post(path, message.to_string())
}

/// The status, and the message that one posted to `/messages` is answered with.
async fn say(kit: &Kit, body: Value) -> (u16, Value) {
    kit.answer(message("/messages", &body)).await
}

/// The status and the words of a refusal.
pub(crate) async fn refusal(kit: &Kit, request: Request<Body>) -> (u16, String) {
    let (status, error) = kit.answer(request).await;
    assert_eq!(error["type"], "room:error", "{error}");
    (status, error["error"].as_str().unwrap().to_owned())
}

fn ann(endpoint: &str) -> Value {
    json!({ "id": "p1", "nickname": "Ann", "model": "m1", "endpoint": endpoint,
        "specs": { "gpu": "RTX" }, "config": { "temperature": 0.5 } })
}

fn join(code: &str, endpoint: &str) -> Value {
    json!({ "type": "room:join", "code": code, "participant": ann(endpoint) })
}

const HERE: &str = "http://127.0.0.1:11434";

#[tokio::test(start_paused = true)]
async fn a_room_is_made_and_joined_and_told_of() {
    let kit = Kit::new();
    let (status, created) = say(&kit, json!({ "type": "room:create", "name": "Den" })).await;
    assert_eq!((status, &created["type"]), (201, &json!("room:created")));
    let code = created["code"].as_str().unwrap();
    assert_eq!(code.split('-').count(), 3, "{code}");
    let room = kit.rooms.get(created["roomId"].as_str().unwrap()).unwrap();
    assert_eq!(room.short_code(), created["shortCode"].as_str().unwrap());
    assert!(room.is_host(created["hostToken"].as_str()));

    let (status, joined) = say(&kit, join(code, HERE)).await;
    assert_eq!((status, &joined["type"]), (201, &json!("room:joined")), "{joined}");
    assert_eq!(joined["roomId"], created["roomId"]);
    assert_eq!(joined["participants"][0]["nickname"], "Ann");
    assert_eq!(joined["participants"][0]["specs"], json!({ "gpu": "RTX" }));
    assert_eq!(say(&kit, join(code, HERE)).await.0, 200, "it is in already");
    assert_eq!(kit.rooms.unserved_endpoints().len(), 1, "the server is to call it");

    let (status, listed) = say(&kit, json!({ "type": "list:rooms" })).await;
    assert_eq!((status, &listed["type"]), (200, &json!("list:rooms-response")));
    let first = &listed["rooms"][0];
    assert_eq!((&first["code"], &first["participantCount"]), (&json!(code), &json!(1)));

    let (status, tui) = say(&kit, json!({ "type": "tui:register" })).await;
    assert_eq!((status, &tui["type"]), (200, &json!("tui:registered")));
    assert_eq!(
        (&tui["rooms"][0]["name"], &tui["participants"][0]["id"]),
        (&json!("Den"), &json!("p1"))
    );
    let (_, tui) = say(&kit, json!({ "type": "tui:register", "roomCode": code })).await;
    assert_eq!(tui["rooms"][0]["code"], code);

    let host = json!({ "type": "host:register", "roomId": created["roomId"] });
    let (status, host) = say(&kit, host).await;
    assert_eq!((status, &host["type"]), (200, &json!("host:registered")));
    assert_eq!(
        (&host["room"]["code"], &host["participants"][0]["id"]),
        (&json!(code), &json!("p1"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_bad_message_gets_an_error_that_names_its_fault() {
    let kit = Kit::new();
    let cases = [
        (json!({ "type": "room:destroy" }), "room:destroy"),
        (json!({ "type": 7 }), "type"),
        (json!({ "name": "x" }), "type"),
        (json!({ "type": "room:create" }), "name"),
        (json!({ "type": "room:create", "name": 7 }), "name"),
        (json!({ "type": "room:join", "code": "x" }), "participant"),
        (json!({ "type": "host:register" }), "roomId"),
        (json!([]), "object"),
    ];
    for (body, named) in cases {
        let (status, words) = refusal(&kit, message("/messages", &body)).await;
        assert!(status == 400 && words.contains(named), "{body}: {status} {words}");
    }
    for body in nonsense() {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(refusal(&kit, post("/messages", body)).await.0, 400, "{shown}");
    }
    assert_eq!(refusal(&kit, post("/messages", vec![b' '; (1 << 20) + 1])).await.0, 413);
    let get = Request::get("/messages").body(Body::empty()).unwrap();
    assert_eq!(refusal(&kit, get).await.0, 404);
    assert!(kit.rooms.list().is_empty());
}

/// Otherwise everybody behind the proxy could have the server call its own machine.
#[tokio::test(start_paused = true)]
async fn an_endpoint_is_not_called_for_who_comes_by_way_of_a_proxy() {
    let kit = Kit::new();
    let code = kit.room(None).spoken_code().to_owned();
    for (name, value) in [
        ("x-forwarded-for", "10.0.0.7"),
        ("forwarded", "for=10.0.0.7"),
        ("x-real-ip", "10.0.0.7"),
        ("via", "1.1 proxy"),
    ] {
        let mut request = message("/messages", &join(&code, HERE));
        request.headers_mut().insert(name, value.parse().unwrap());
        let (status, words) = refusal(&kit, request).await;
        assert!(status == 400 && words.contains("proxy"), "{name}: {words}");
    }
}

/// A page can have a name that leads to this machine.
#[tokio::test(start_paused = true)]
async fn an_endpoint_is_not_called_for_who_asks_this_machine_by_a_strange_name() {
    let kit = Kit::new();
    let code = kit.room(None).spoken_code().to_owned();
    let mut request = message("/messages", &join(&code, HERE));
    request.headers_mut().insert("host", "evil.example:9178".parse().unwrap());
    request.headers_mut().insert("origin", "http://evil.example:9178".parse().unwrap());
    let (status, words) = refusal(&kit, request).await;
    assert!(status == 400 && words.contains("--allow-host"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_is_called_only_where_the_servers_owner_allows_it() {
    let kit = Kit::new();
    let code = kit.room(None).spoken_code().to_owned();
    for elsewhere in ["http://192.168.7.7:11434", "http://169.254.169.254/latest"] {
        let (status, words) = refusal(&kit, message("/messages", &join(&code, elsewhere))).await;
        assert!(status == 400 && words.contains("warren room join"), "{elsewhere}: {words}");
    }
    let foreign = from_afar(message("/messages", &join(&code, HERE)));
    assert_eq!(refusal(&kit, foreign).await.0, 400, "nobody has this machine called");
    let ruled = |endpoints| {
        Kit::with_room_rules(|rules| {
            rules.permissions.set(RoomPermissions { open: false, endpoints });
        })
    };
    let any = ruled(rooms::Endpoints::Any);
    let code = any.room(None).spoken_code().to_owned();
    let foreign = from_afar(message("/messages", &join(&code, HERE)));
    assert_eq!(any.answer(foreign).await.0, 201);
    let off = ruled(rooms::Endpoints::Off);
    let code = off.room(None).spoken_code().to_owned();
    let (status, words) = refusal(&off, message("/messages", &join(&code, HERE))).await;
    assert!(status == 400 && words.contains("warren room join"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn the_password_guards_messages_too() {
    let mut kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let _lent = kit.lends(&room, "p1", &["m1"], CHAT);
    let code = room.short_code();
    let guarded = [
        join(code, HERE),
        json!({ "type": "tui:register", "roomCode": code }),
        json!({ "type": "host:register", "roomId": room.id().as_str() }),
        json!({ "type": "llm:request", "requestId": "r", "targetId": "*", "prompt": "hi",
            "roomCode": code }),
    ];
    for body in &guarded {
        let (status, words) = refusal(&kit, message("/messages", body)).await;
        assert!(status == 401 && words.contains("password"), "{body}: {words}");
    }
    for body in &guarded[1..3] {
        let (status, _) = kit.answer(with_bearer(message("/messages", body), "sesame")).await;
        assert_eq!(status, 200, "{body}");
    }
    let request = with_bearer(message("/messages", &guarded[3]), "sesame");
    assert_eq!(kit.answer(request).await.0, 202);
    kit.assigned().await.answer.fail("enough");
    let mut with_password = join(code, HERE);
    with_password["password"] = json!("sesame");
    with_password["participant"]["id"] = json!("p2");
    assert_eq!(say(&kit, with_password).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn from_another_machine_only_what_is_public_is_told() {
    let kit = Kit::new();
    kit.joins(&kit.room(None), "hidden", &["m"]);
    let public = |name: &str, password: Option<&str>| {
        let name = name.to_owned();
        let password = password.map(Into::into);
        let new = rooms::NewRoom { name, password, public: true, ..Default::default() };
        kit.rooms.create(new, 1).unwrap().room
    };
    kit.joins(&public("open", None), "seen", &["m"]);
    kit.joins(&public("locked", Some("sesame")), "unseen", &["m"]);
    let (_, tui) =
        kit.answer(from_afar(message("/messages", &json!({ "type": "tui:register" })))).await;
    assert_eq!(tui["rooms"].as_array().unwrap().len(), 2, "{tui}");
    let participants = tui["participants"].as_array().unwrap();
    assert_eq!(participants.len(), 1, "{tui}");
    assert_eq!(participants[0]["id"], "seen", "who is behind a password is not told");
    let (_, list) =
        kit.answer(from_afar(message("/messages", &json!({ "type": "list:rooms" })))).await;
    assert_eq!(list["rooms"].as_array().unwrap().len(), 2);
    let create = json!({ "type": "room:create", "name": "n" });
    assert_eq!(refusal(&kit, from_afar(message("/messages", &create))).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn the_path_of_one_room_is_about_that_room_alone() {
    let kit = Kit::new();
    let (one, other) = (kit.room(None), kit.room(None));
    let path = format!("/rooms/{}/messages", one.short_code());
    let answers = [
        (json!({ "type": "list:rooms" }), 200),
        (json!({ "type": "tui:register" }), 200),
        (json!({ "type": "host:register", "roomId": one.id().as_str() }), 200),
        (join(one.spoken_code(), HERE), 201),
    ];
    for (body, status) in answers {
        let (actual, answer) = kit.answer(message(&path, &body)).await;
        assert_eq!(actual, status, "{answer}");
        assert!(!answer.to_string().contains(other.id().as_str()), "{answer}");
    }
    let refused = [
        json!({ "type": "room:create", "name": "n" }),
        json!({ "type": "tui:register", "roomCode": other.short_code() }),
        json!({ "type": "host:register", "roomId": other.id().as_str() }),
        join(other.spoken_code(), HERE),
    ];
    for body in refused {
        assert_eq!(refusal(&kit, message(&path, &body)).await.0, 400, "{body}");
    }
    let list = json!({ "type": "list:rooms" });
    assert_eq!(refusal(&kit, message("/rooms/ZZZZZZ/messages", &list)).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn unknown_ids_of_rooms_are_counted_as_unknown_codes_are() {
    let kit = Kit::new();
    let guess = || message("/messages", &json!({ "type": "host:register", "roomId": "guessed" }));
    for _ in 0..10 {
        assert_eq!(refusal(&kit, guess()).await.0, 404);
    }
    assert_eq!(refusal(&kit, guess()).await.0, 429);
}
