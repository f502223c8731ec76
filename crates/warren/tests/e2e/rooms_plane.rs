//! The API by which stock clients manage rooms.

use serde_json::{Value, json};

use crate::{
    common::{ask_for, post, serve},
    rooms_kit::{Events, data, fields, make_room, refused, say, tunnel, with_room},
};

/// The fields that stock clients need, and ours.
const ROOM: [&str; 10] = [
    "code",
    "createdAt",
    "defaults",
    "expiresAt",
    "hostId",
    "id",
    "name",
    "participantCount",
    "passwordProtected",
    "spokenCode",
];
const PARTICIPANT: [&str; 14] = [
    "capabilities",
    "config",
    "connection",
    "endpoint",
    "id",
    "joinedAt",
    "lastSeen",
    "maxConcurrent",
    "model",
    "models",
    "nickname",
    "specs",
    "status",
    "updatedAt",
];

#[tokio::test]
async fn a_room_is_made_shown_listed_and_closed_in_the_stock_shapes() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let defaults = json!({"temperature": 0.2, "max_tokens": 64, "instructions": " be brief "});
    let body = json!({"name": " Locked ", "password": "pw", "defaults": defaults});
    let made = data(&client.post_json("/v1/rooms", &body).await, 201);
    assert_eq!(fields(&made), ["hostId", "hostToken", "room"]);
    let room = &made["room"];
    assert_eq!(fields(room), ROOM);
    let shown = json!({"temperature": 0.2, "max_tokens": 64, "hasInstructions": true});
    assert_eq!((&room["name"], &room["defaults"]), (&json!("Locked"), &shown));
    assert_eq!((&room["passwordProtected"], &room["participantCount"]), (&json!(true), &json!(0)));
    assert_eq!((&room["hostId"], made["hostId"].as_str().unwrap().len()), (&made["hostId"], 36));
    assert_eq!(room["id"].as_str().unwrap().len(), 21);
    assert!(made["hostToken"].as_str().unwrap().starts_with("wh_"), "{made}");
    let code = room["code"].as_str().unwrap();
    assert!(code.len() == 6 && code.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()));

    let path = format!("/v1/rooms/{code}");
    let summary = data(&client.get(&path).await, 200);
    assert_eq!((&summary["id"], &summary["code"]), (&room["id"], &room["code"]));
    assert_eq!(data(&client.get("/v1/rooms").await, 200), json!([summary]));
    let close = client.request("DELETE", &path);
    let token = format!("Bearer {}", made["hostToken"].as_str().unwrap());
    assert_eq!(
        data(&close.header("authorization", &token).send().await, 200),
        json!({"success": true})
    );
    let gone = refused(&client.get(&path).await, 404, "ROOM_NOT_FOUND");
    assert_eq!(gone["message"], "Room not found.");
    assert!(gone["hint"].as_str().unwrap().contains("warren room list"), "{gone}");
    assert_eq!(data(&client.get("/v1/rooms").await, 200), json!([]));
    let health = data(&client.get("/v1/health").await, 200);
    assert_eq!((fields(&health), &health["status"]), (vec!["status", "timestamp"], &json!("ok")));
}

#[tokio::test]
async fn a_participant_joins_is_heard_of_and_leaves_in_the_stock_shapes() {
    let (daemon, client, room) = with_room().await;
    let put = room.put(&daemon, "p9").field("specs", json!({"gpu": "RTX", "vram": 24, "ram": 64}));
    let put = put.field("config", json!({"temperature": 0.5, "instructions": "x"}));
    let joined = data(&put.put().await, 201);
    assert_eq!(fields(&joined), ["participant", "roomId", "sessionToken", "tunnel"]);
    let participant = &joined["participant"];
    assert_eq!(fields(participant), PARTICIPANT);
    let expected = json!({
        "id": "p9", "nickname": "Ann", "model": "m", "endpoint": "http://127.0.0.1:1",
        "config": {"temperature": 0.5, "hasInstructions": true},
        "capabilities": {"openResponses": "unknown", "chatCompletions": "unknown"},
        "connection": {"kind": "tunnel", "connected": false, "lastTunnelSeenAt": null},
        "status": "offline",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&participant[name], value, "{name}");
    }
    assert_eq!(
        (&joined["roomId"], fields(&joined["tunnel"])),
        (&json!(room.id), vec!["token", "url"])
    );
    let url = format!("ws://{}{}", daemon.address(), room.plane("/participants/p9/tunnel"));
    assert_eq!(joined["tunnel"]["url"], url);
    assert_eq!(joined["tunnel"]["token"].as_str().unwrap().len(), 36);

    let again = data(&put.put().await, 200);
    assert_ne!(again["tunnel"]["token"], joined["tunnel"]["token"]);
    assert_eq!(
        data(&client.get(&room.plane("/participants")).await, 200),
        json!([again["participant"]])
    );
    assert_eq!(data(&client.get(&room.plane("/participants/p9")).await, 200), again["participant"]);
    let beat = client.request("POST", &room.plane("/participants/p9/heartbeat")).send().await;
    let beat = data(&beat, 200);
    assert_eq!((&beat["success"], &beat["status"]), (&json!(true), &json!("offline")));
    assert!(beat["lastSeen"].as_u64() >= again["participant"]["lastSeen"].as_u64(), "{beat}");
    let leave = client.request("DELETE", &room.plane("/participants/p9"));
    assert_eq!(data(&leave.clone().send().await, 200), json!({"success": true}));
    refused(&leave.send().await, 404, "PARTICIPANT_NOT_FOUND");
}

#[tokio::test]
async fn each_failure_of_the_plane_has_its_stock_status_and_code() {
    let (_daemon, client, room) = with_room().await;
    let locked = make_room(&client, &json!({"name": "locked", "password": "pw"})).await;
    let participant = room.plane("/participants/p");
    let good = json!({"nickname": "n", "model": "m", "endpoint": "http://h"});
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body.to_string()
    };
    let (missing, missing_participants) = ("/v1/rooms/QQQQQ1", "/v1/rooms/QQQQQ1/participants");
    let missing_participant = format!("{missing_participants}/p");
    let missing_events = format!("{missing}/events");
    let in_locked = locked.plane("/participants/p");
    let (heartbeat, tunnel) = (format!("{participant}/heartbeat"), format!("{participant}/tunnel"));
    let bad_token = format!("{tunnel}?token=a");
    let bad_defaults = json!({"name": "a", "defaults": {"top_p": 2}}).to_string();
    let bad_endpoint = with("endpoint", json!("nowhere"));
    let forbidden = with("authHeaders", json!({}));
    let good = good.to_string();
    let (bad, no_room, nobody) = ("INVALID_REQUEST", "ROOM_NOT_FOUND", "PARTICIPANT_NOT_FOUND");
    let cases = [
        ("POST", "/v1/rooms", "{}", 400, bad, "/details/required/0"),
        ("POST", "/v1/rooms", "{", 400, bad, "/details/cause"),
        ("POST", "/v1/rooms", &bad_defaults, 400, bad, "/details/fieldErrors"),
        ("GET", missing, "", 404, no_room, "/hint"),
        ("GET", missing_participants, "", 404, no_room, "/hint"),
        ("GET", &missing_events, "", 404, no_room, "/hint"),
        ("PUT", &missing_participant, &good, 404, no_room, "/hint"),
        ("PUT", &participant, "{}", 400, bad, "/details/required/2"),
        ("PUT", &participant, &bad_endpoint, 400, bad, "/message"),
        ("PUT", &participant, &forbidden, 400, bad, "/details/forbidden/0"),
        ("PUT", &in_locked, &good, 401, "INVALID_PASSWORD", "/message"),
        ("DELETE", &participant, "", 404, nobody, "/message"),
        ("GET", &participant, "", 404, nobody, "/message"),
        ("POST", &heartbeat, "", 404, nobody, "/message"),
        ("GET", &bad_token, "", 404, nobody, "/message"),
        ("GET", &tunnel, "", 400, bad, "/message"),
    ];
    for (method, path, body, status, code, there) in cases {
        let answer = client.request(method, path).body(body.to_owned()).send().await;
        let error = refused(&answer, status, code);
        let envelope = json!({"details": error["details"], "hint": error["hint"], "message": error["message"]});
        assert!(
            !envelope.pointer(there).unwrap_or(&Value::Null).is_null(),
            "{method} {path} {body}: {error}"
        );
    }
}

#[tokio::test]
async fn an_unknown_path_of_rooms_is_not_found_in_an_envelope() {
    let (_daemon, client, room) = with_room().await;
    let cases = [
        ("PUT", "/v1/rooms".to_owned()),
        ("POST", room.plane("")),
        ("GET", room.plane("/nothing")),
        ("PATCH", room.plane("/participants/p")),
        ("GET", room.plane("/participants/p/heartbeat")),
        ("POST", room.plane("/participants/p/tunnel")),
        ("POST", room.plane("/events")),
        ("DELETE", "/v1/health".to_owned()),
        ("GET", "/v1/rooms/%ff/events".to_owned()),
    ];
    for (method, path) in cases {
        let answer = client.request(method, &path).send().await;
        let error = refused(&answer, 404, "INVALID_REQUEST");
        assert_eq!(error["message"], "Route not found.", "{method} {path}");
    }
}

#[tokio::test]
async fn codes_of_both_sorts_are_found_in_any_case_everywhere() {
    let (daemon, client, room) = with_room().await;
    let parts: Vec<_> = room.spoken.split('-').collect();
    assert!(matches!(parts[..], [_, _, number] if number.len() == 2), "{}", room.spoken);
    let codes = [
        room.code.clone(),
        room.code.to_lowercase(),
        room.spoken.clone(),
        room.spoken.to_uppercase(),
    ];
    let mut watching = Events::open(&client, &format!("/v1/rooms/{}/events", codes[1])).await;
    assert_eq!(watching.until("connected").await.json["roomCode"], room.code);
    for (number, code) in codes.iter().enumerate() {
        for path in ["", "/participants"] {
            assert_eq!(client.get(&format!("/v1/rooms/{code}{path}")).await.status, 200, "{code}");
        }
        assert_eq!(client.get(&format!("/rooms/{code}/v1/models")).await.status, 200, "{code}");
        Events::open(&client, &format!("/rooms/{code}/events")).await;
        Events::open(&client, &format!("/events?role=host&room={code}")).await;
        let register = json!({"type": "tui:register", "roomCode": code});
        assert_eq!(client.post_json("/messages", &register).await.status, 200, "{code}");
        let (path, list) = (format!("/rooms/{code}/messages"), json!({"type": "list:rooms"}));
        assert_eq!(client.post_json(&path, &list).await.status, 200, "{code}");
        let id = format!("p{number}");
        let mut joined = tunnel(testkit::Put::new(daemon.address(), code).id(&id)).await;
        assert_eq!(watching.until("participant.joined").await.json["data"]["id"], id);
        let chat = format!("/rooms/{code}/v1/chat/completions");
        let asked = post(&client, chat, ask_for(&id, false));
        let ask = joined.expect_request().await;
        say(&mut joined, &ask, "hi").await;
        assert_eq!(asked.await.unwrap().status, 200, "{code}");
        assert_eq!(joined.heartbeat().await.status, 200, "{code}");
        assert_eq!(joined.leave().await.status, 200, "{code}");
    }
}
