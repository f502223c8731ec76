//! `/v1/rooms…`, as stock clients use it.

use std::net::Ipv4Addr;

use access::{Moment, NewKey};
use api::{Peer, RoomPermissions};
use axum::body::Body;
use base::KeyScope;
use http::{Request, Response};
use serde_json::{Value, json};

use crate::{
    kit::{Kit, text},
    room_kit::{answer_of, get, nonsense, now, post, with_bearer},
};

/// Somebody who is not on this machine.
const AFAR: Peer = Peer(std::net::IpAddr::V4(Ipv4Addr::new(192, 168, 1, 9)));

fn request(method: &str, path: &str, body: &Value) -> Request<Body> {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    Request::builder().method(method).uri(path).body(body).unwrap()
}

pub(crate) fn from_afar(mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(AFAR);
    request
}

/// The status, and what the envelope holds, which is checked.
async fn opened(response: Response<Body>) -> (u16, Value) {
    let (status, mut envelope) = answer_of(response).await;
    let id = envelope["meta"]["requestId"].as_str().unwrap();
    assert_eq!((id.len(), id.split('-').count()), (36, 5), "{id}");
    let part = if status < 300 { "data" } else { "error" };
    assert_eq!(envelope.as_object().unwrap().len(), 2, "{envelope}");
    (status, envelope[part].take())
}

async fn send(kit: &Kit, request: Request<Body>) -> (u16, Value) {
    opened(kit.send(request).await).await
}

/// The status and the code of an error.
async fn refused(kit: &Kit, request: Request<Body>) -> (u16, String) {
    let (status, error) = send(kit, request).await;
    assert!(error["message"].is_string(), "{error}");
    (status, error["code"].as_str().unwrap().to_owned())
}

fn code(code: &str, status: u16) -> (u16, String) {
    (status, code.to_owned())
}

async fn create(kit: &Kit, body: &Value) -> Value {
    let (status, created) = send(kit, request("POST", "/v1/rooms", body)).await;
    assert_eq!(status, 201, "{created}");
    created
}

fn ann() -> Value {
    json!({ "nickname": "Ann", "model": "m1", "endpoint": "http://127.0.0.1:11434" })
}

#[tokio::test(start_paused = true)]
async fn health_is_told_in_the_rooms_envelope() {
    let (status, health) = send(&Kit::new(), get("/v1/health")).await;
    assert_eq!((status, &health["status"]), (200, &json!("ok")));
    assert!(health["timestamp"].as_u64().unwrap() > 1_700_000_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_room_is_made_seen_changed_and_closed() {
    let kit = Kit::new();
    let defaults = json!({ "temperature": 0.2, "max_tokens": 64, "instructions": " Be brief. " });
    let room = json!({ "name": " Locked ", "password": "sesame", "defaults": defaults });
    let created = create(&kit, &room).await;
    let room = &created["room"];
    assert_eq!(room["name"], "Locked");
    assert_eq!(room["hostId"], created["hostId"]);
    assert_eq!(room["passwordProtected"], true);
    assert_eq!(room["participantCount"], 0);
    let shown = json!({ "temperature": 0.2, "max_tokens": 64, "hasInstructions": true });
    assert_eq!(room["defaults"], shown, "instructions are never shown");
    let (short, spoken) = (room["code"].as_str().unwrap(), room["spokenCode"].as_str().unwrap());
    assert_eq!((short.len(), spoken.split('-').count()), (6, 3));
    for code in [short.to_lowercase(), spoken.to_uppercase()] {
        let (status, seen) = send(&kit, get(&format!("/v1/rooms/{code}"))).await;
        assert_eq!((status, &seen["id"]), (200, &room["id"]), "anybody sees that there is a lock");
    }
    let (_, listed) = send(&kit, get("/v1/rooms")).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);

    let path = format!("/v1/rooms/{short}");
    let change = || request("PATCH", &path, &json!({ "name": "Open", "password": "" }));
    assert_eq!(refused(&kit, change()).await, code("UNAUTHORIZED", 401));
    let token = created["hostToken"].as_str().unwrap();
    assert!(token.starts_with("wh_"));
    assert_eq!(refused(&kit, with_bearer(change(), "wh_0")).await, code("UNAUTHORIZED", 403));
    let mut changing = change();
    changing.headers_mut().insert("x-warren-host-token", token.parse().unwrap());
    let (status, changed) = send(&kit, changing).await;
    assert_eq!((status, &changed["name"]), (200, &json!("Open")));
    assert_eq!(changed["passwordProtected"], false);

    let close = || request("DELETE", &path, &Value::Null);
    assert_eq!(refused(&kit, close()).await.0, 401);
    let (status, closed) = send(&kit, with_bearer(close(), token)).await;
    assert_eq!((status, closed), (200, json!({ "success": true })));
    assert_eq!(refused(&kit, close()).await, code("ROOM_NOT_FOUND", 404));
}

#[tokio::test(start_paused = true)]
async fn the_operator_may_close_any_room() {
    let kit = Kit::new();
    let room = kit.room(None);
    let path = format!("/v1/rooms/{}", room.short_code());
    let close = with_bearer(from_afar(request("DELETE", &path, &Value::Null)), "admin");
    assert_eq!(send(&kit, close).await.0, 200);
    assert!(kit.rooms.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_bad_room_is_refused_by_name_and_not_stored() {
    let kit = Kit::new();
    let cases = [
        (json!({}), "required"),
        (json!({ "name": 123 }), "fieldErrors"),
        (json!({ "name": "a\u{1b}[2J" }), "fieldErrors"),
        (json!({ "name": "x".repeat(129) }), "fieldErrors"),
        (json!({ "name": "n", "defaults": { "temperature": 9 } }), "fieldErrors"),
        (json!({ "name": "n", "expiresSecs": 0 }), "fieldErrors"),
        (json!([]), "cause"),
    ];
    for (body, detail) in cases {
        let (status, error) = send(&kit, request("POST", "/v1/rooms", &body)).await;
        assert_eq!((status, &error["code"]), (400, &json!("INVALID_REQUEST")), "{body}");
        assert!(!error["details"][detail].is_null(), "{body}: {error}");
        assert!(error["hint"].is_string(), "{body}: {error}");
    }
    for body in nonsense() {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let (status, error) = send(&kit, post("/v1/rooms", body)).await;
        assert_eq!((status, &error["code"]), (400, &json!("INVALID_REQUEST")), "{shown}");
        assert!(error["details"].is_object(), "{shown}: {error}");
    }
    let large = Request::post("/v1/rooms").body(Body::from(vec![b' '; (1 << 20) + 1])).unwrap();
    assert_eq!(refused(&kit, large).await, code("INVALID_REQUEST", 413));
    assert!(kit.rooms.list().is_empty(), "none of them was kept");
}

#[tokio::test(start_paused = true)]
async fn from_another_machine_making_a_room_needs_a_key_for_it() {
    let kit = Kit::new();
    let post = || from_afar(request("POST", "/v1/rooms", &json!({ "name": "n" })));
    assert_eq!(refused(&kit, post()).await, code("UNAUTHORIZED", 401));
    let mut page = request("POST", "/v1/rooms", &json!({ "name": "n" }));
    page.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert_eq!(refused(&kit, page).await, code("UNAUTHORIZED", 403), "nor does a page");
    let inference = kit.key(None, &[]);
    let refusal = refused(&kit, with_bearer(post(), inference.expose())).await;
    assert_eq!(refusal, code("UNAUTHORIZED", 403));
    assert_eq!(send(&kit, with_bearer(post(), "admin")).await.0, 201);
    let key = rooms_key(&kit);
    let (status, created) = send(&kit, with_bearer(post(), &key)).await;
    assert_eq!(status, 201);
    let id = created["room"]["id"].as_str().unwrap();
    assert!(kit.rooms.get(id).unwrap().owner().is_some(), "it is the key's");
    let open = Kit::with_room_rules(|rules| {
        let endpoints = rooms::Endpoints::Own;
        rules.permissions.set(RoomPermissions { open: true, endpoints });
    });
    assert_eq!(send(&open, post()).await.0, 201);
}

fn rooms_key(kit: &Kit) -> String {
    let (name, scopes) = ("n".to_owned(), vec![KeyScope::Rooms]);
    let new = NewKey { name, scopes, ..NewKey::default() };
    kit.keys.create(new, Moment::now()).unwrap().1.expose().to_owned()
}

#[tokio::test(start_paused = true)]
async fn from_another_machine_only_public_and_own_rooms_are_listed() {
    let kit = Kit::new();
    let key = rooms_key(&kit);
    create(&kit, &json!({ "name": "hidden" })).await;
    create(&kit, &json!({ "name": "public", "public": true })).await;
    let own = request("POST", "/v1/rooms", &json!({ "name": "own" }));
    assert_eq!(send(&kit, with_bearer(own, &key)).await.0, 201);
    let names = async |request: Request<Body>| {
        let (_, rooms) = send(&kit, request).await;
        let names = rooms.as_array().unwrap().iter();
        let mut names: Vec<_> =
            names.map(|room| room["name"].as_str().unwrap().to_owned()).collect();
        // Made within a millisecond, they are in no order.
        names.sort();
        names
    };
    let list = || from_afar(get("/v1/rooms"));
    assert_eq!(names(get("/v1/rooms")).await, ["hidden", "own", "public"]);
    assert_eq!(names(list()).await, ["public"]);
    assert_eq!(names(with_bearer(list(), &key)).await, ["own", "public"]);
    assert_eq!(names(with_bearer(list(), "admin")).await, ["hidden", "own", "public"]);
    let mut through_a_proxy = get("/v1/rooms");
    through_a_proxy.headers_mut().insert("x-forwarded-for", "10.0.0.1".parse().unwrap());
    assert_eq!(names(through_a_proxy).await, ["public"], "a proxy makes nobody local");
}

#[tokio::test(start_paused = true)]
async fn a_participant_comes_and_comes_again_and_goes() {
    let kit = Kit::new();
    let room = kit.room(None);
    let path = format!("/v1/rooms/{}/participants/p%2F1", room.spoken_code());
    let mut put = request("PUT", &path, &ann());
    put.headers_mut().insert("host", "box.lan:9178".parse().unwrap());
    let (status, joined) = send(&kit, put).await;
    assert_eq!((status, &joined["roomId"]), (201, &json!(room.id().as_str())));
    let participant = &joined["participant"];
    assert_eq!(participant["id"], "p/1", "the path's id is the one");
    assert_eq!(participant["specs"], json!({}));
    assert_eq!(participant["config"], json!({ "hasInstructions": false }));
    let unknown = json!({ "openResponses": "unknown", "chatCompletions": "unknown" });
    assert_eq!(participant["capabilities"], unknown);
    assert_eq!(participant["status"], "offline", "its tunnel is not open");
    let connection = json!({ "kind": "tunnel", "connected": false, "lastTunnelSeenAt": null });
    assert_eq!(participant["connection"], connection);
    let url = joined["tunnel"]["url"].as_str().unwrap();
    let short = room.short_code();
    assert_eq!(url, format!("ws://box.lan:9178/v1/rooms/{short}/participants/p%2F1/tunnel"));

    let (status, rejoined) = send(&kit, request("PUT", &path, &ann())).await;
    assert_eq!(status, 200);
    assert_ne!(joined["tunnel"]["token"], rejoined["tunnel"]["token"]);
    let token = rejoined["tunnel"]["token"].as_str().unwrap();
    assert!(room.redeem("p/1", token, now()).is_ok());

    let (_, listed) = send(&kit, get(&format!("/v1/rooms/{short}/participants"))).await;
    assert_eq!(listed[0]["nickname"], "Ann");
    assert_eq!(send(&kit, get(&path)).await.1["nickname"], "Ann");
    let beat = request("POST", &format!("{path}/heartbeat"), &Value::Null);
    let (status, beat) = send(&kit, beat).await;
    assert_eq!((status, &beat["success"], &beat["status"]), (200, &json!(true), &json!("offline")));
    assert!(beat["lastSeen"].as_u64().unwrap() > 1_700_000_000_000);

    let remove = || request("DELETE", &path, &Value::Null);
    assert_eq!(send(&kit, remove()).await, (200, json!({ "success": true })));
    assert_eq!(refused(&kit, remove()).await, code("PARTICIPANT_NOT_FOUND", 404));
    let beat = request("POST", &format!("{path}/heartbeat"), &Value::Null);
    assert_eq!(refused(&kit, beat).await, code("PARTICIPANT_NOT_FOUND", 404));
    assert_eq!(refused(&kit, get(&path)).await, code("PARTICIPANT_NOT_FOUND", 404));
}

#[tokio::test(start_paused = true)]
async fn the_tunnels_url_is_the_one_that_the_client_can_reach() {
    let url = async |kit: &Kit, proto: Option<&str>| {
        let room = kit.room(None);
        let path = format!("/v1/rooms/{}/participants/a", room.short_code());
        let mut put = request("PUT", &path, &ann());
        if let Some(proto) = proto {
            put.headers_mut().insert("x-forwarded-proto", proto.parse().unwrap());
        }
        let (_, joined) = send(kit, put).await;
        joined["tunnel"]["url"].as_str().unwrap().split_once("/v1").unwrap().0.to_owned()
    };
    let (plain, tls) = (Kit::new(), Kit::with_room_rules(|rules| rules.tls = true));
    assert_eq!(url(&plain, None).await, "ws://localhost");
    assert_eq!(url(&tls, None).await, "wss://localhost");
    assert_eq!(url(&plain, Some("https, http")).await, "wss://localhost");
    assert_eq!(url(&tls, Some("http")).await, "ws://localhost");
}

#[tokio::test(start_paused = true)]
async fn a_bad_participant_gets_an_error_that_names_its_fault() {
    let kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let path = format!("/v1/rooms/{}/participants/a", room.short_code());
    let put = |body: &Value| request("PUT", &path, body);
    let unknown = request("PUT", "/v1/rooms/ZZZZZZ/participants/a", &ann());
    assert_eq!(refused(&kit, unknown).await, code("ROOM_NOT_FOUND", 404));
    let (status, error) = send(&kit, put(&json!({ "nickname": "Ann" }))).await;
    assert_eq!(status, 400);
    assert_eq!(error["message"], "Missing required fields.");
    assert_eq!(error["details"]["required"], json!(["model", "endpoint"]));
    let mut secret = ann();
    secret["authHeaders"] = json!({ "authorization": "x" });
    let (_, error) = send(&kit, put(&secret)).await;
    assert_eq!(error["details"]["forbidden"], json!(["authHeaders"]));
    assert_eq!(error["message"], "Participant auth headers are not accepted by the hub.");
    assert_eq!(refused(&kit, put(&ann())).await, code("INVALID_PASSWORD", 401));
    let mut wrong = ann();
    wrong["password"] = json!("open");
    assert_eq!(refused(&kit, put(&wrong)).await, code("INVALID_PASSWORD", 401));
    assert!(room.participants().is_empty());
    let mut right = ann();
    right["password"] = json!("sesame");
    assert_eq!(send(&kit, put(&right)).await.0, 201);
    assert_eq!(send(&kit, with_bearer(put(&ann()), "sesame")).await.0, 200);
    let long = "x".repeat(129);
    for id in ["%20", "%1b%5b2J", "%0a", "%00", &long, "%e2%80%ae"] {
        let nobody = request("PUT", &path.replace("/a", &format!("/{id}")), &right);
        assert_eq!(refused(&kit, nobody).await, code("INVALID_REQUEST", 400), "{id}");
    }
    let broken = request("PUT", &path.replace("/a", "/%ff"), &right);
    assert_eq!(refused(&kit, broken).await, code("INVALID_REQUEST", 404));
}

#[tokio::test(start_paused = true)]
async fn the_password_guards_who_is_there() {
    let kit = Kit::new();
    let room = kit.room(Some("open sesame"));
    kit.joins(&room, "a", &["m1"]);
    let list = format!("/v1/rooms/{}/participants", room.short_code());
    for path in [list.clone(), format!("{list}/a")] {
        assert_eq!(refused(&kit, get(&path)).await, code("INVALID_PASSWORD", 401), "{path}");
        assert_eq!(send(&kit, with_bearer(get(&path), "open sesame")).await.0, 200);
        for written in ["open%20s%65same", "open+sesame"] {
            assert_eq!(send(&kit, get(&format!("{path}?password={written}"))).await.0, 200);
        }
        let mut keyed = get(&path);
        keyed.headers_mut().insert("x-api-key", "open sesame".parse().unwrap());
        assert_eq!(send(&kit, keyed).await.0, 200);
    }
    let beat = request("POST", &format!("{list}/a/heartbeat"), &Value::Null);
    assert_eq!(send(&kit, beat).await.0, 200, "a stock participant sends no password with it");
}

#[tokio::test(start_paused = true)]
async fn nobody_else_takes_or_removes_a_participant() {
    let kit = Kit::new();
    let room = kit.rooms.create(rooms::NewRoom { name: "n".into(), ..Default::default() }, now());
    let rooms::HostedRoom { room, host_token } = room.unwrap();
    let path = format!("/v1/rooms/{}/participants/a", room.short_code());
    let (_, joined) = send(&kit, request("PUT", &path, &ann())).await;
    let session = joined["sessionToken"].as_str().unwrap();
    let _connection = room.connect("a", base::ProviderId::from_random(7), now()).unwrap();
    let take = from_afar(request("PUT", &path, &ann()));
    assert_eq!(refused(&kit, take).await, code("PARTICIPANT_CONFLICT", 409));
    let mut own = from_afar(request("PUT", &path, &ann()));
    own.headers_mut().insert("x-warren-session", session.parse().unwrap());
    assert_eq!(send(&kit, own).await.0, 200);
    let remove = || from_afar(request("DELETE", &path, &Value::Null));
    assert_eq!(refused(&kit, remove()).await, code("UNAUTHORIZED", 403));
    assert_eq!(send(&kit, with_bearer(remove(), host_token.expose())).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn paths_and_methods_that_are_none_are_told_as_stock_servers_do() {
    let kit = Kit::new();
    let nowhere = [
        request("PUT", "/v1/rooms", &json!({})),
        get("/v1/rooms/ABCDEF/nothing"),
        get("/v1/rooms/ABCDEF/participants/a/heartbeat"),
        request("POST", "/v1/rooms/ABCDEF", &json!({})),
        request("POST", "/v1/health", &json!({})),
        get("/v1/rooms/%ff"),
        get("/v1/rooms/%ff/events"),
        request("POST", "/v1/rooms/ABCDEF/participants/a/tunnel", &json!({})),
        request("PATCH", "/v1/rooms/ABCDEF/participants/a", &json!({})),
    ];
    for request in nowhere {
        let uri = request.uri().clone();
        let (status, error) = send(&kit, request).await;
        let refusal = (status, error["code"].as_str(), error["message"].as_str());
        assert_eq!(refusal, (404, Some("INVALID_REQUEST"), Some("Route not found.")), "{uri}");
    }
    let long = "A".repeat(5_000);
    for odd in ["%00", "..", "%2e%2e", "a%2fb", "%27%20or%201=1", "%f0%9f%90%87", &long] {
        for path in [format!("/v1/rooms/{odd}"), format!("/rooms/{odd}/v1/models")] {
            let refusal = answer_of(kit.send(from_afar(get(&path))).await).await;
            assert!(
                [404, 429].contains(&refusal.0) && !refusal.1["error"].is_null(),
                "{path}: {refusal:?}"
            );
        }
    }
    let elsewhere = kit.send(get("/v1/nothing")).await;
    assert!(text(elsewhere).await.contains("there is nothing at"), "the consumer APIs' own form");
}

#[tokio::test(start_paused = true)]
async fn ten_unknown_codes_are_enough() {
    let kit = Kit::new();
    let unknown = || from_afar(get("/v1/rooms/ZZZZZZ"));
    for _ in 0..10 {
        assert_eq!(refused(&kit, unknown()).await, code("ROOM_NOT_FOUND", 404));
    }
    let response = kit.send(unknown()).await;
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(opened(response).await.0, 429);
    assert_eq!(refused(&kit, get("/v1/rooms/ZZZZZZ")).await.0, 404, "others are not held for it");
}
