//! The HTTP API.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::tcp::WriteHalf};

use super::{
    ApiRequest, Shared, inference,
    rooms::{frame, now_ms},
};

type Answer = (u16, Value);

pub(super) async fn answer(asked: &ApiRequest, shared: &Arc<Shared>, out: &mut WriteHalf<'_>) {
    let parts = asked.parts();
    match (asked.method.as_str(), &parts[..]) {
        ("GET", ["v1", "rooms", code, "events"]) => events(code, shared, out).await,
        (_, ["rooms", code, "v1", path @ ..]) => {
            inference::answer(asked, code, path, shared, out).await;
        }
        _ => {
            let (status, body) = plane(asked, &parts, shared);
            write(out, status, &body).await;
        }
    }
}

fn plane(asked: &ApiRequest, parts: &[&str], shared: &Shared) -> Answer {
    match (asked.method.as_str(), parts) {
        ("GET", ["v1", "health"]) => {
            good(shared, 200, &json!({"status": "ok", "timestamp": now_ms()}))
        }
        ("GET", ["v1", "rooms"]) => {
            let rooms: Vec<Value> =
                shared.state().rooms.values().map(super::rooms::Room::summary).collect();
            good(shared, 200, &json!(rooms))
        }
        ("POST", ["v1", "rooms"]) => create(asked, shared),
        (_, ["v1", "rooms", code, rest @ ..]) => in_room(asked, code, rest, shared),
        _ => bad(shared, 404, "INVALID_REQUEST", "Route not found."),
    }
}

fn create(asked: &ApiRequest, shared: &Shared) -> Answer {
    let body = asked.json();
    let Some(name) = body["name"].as_str() else {
        return bad(shared, 400, "INVALID_REQUEST", "Invalid request.");
    };
    let code = {
        let mut state = shared.state();
        let code = format!("MADE{:02}", state.rooms.len());
        state.add_room(&code, name, body["password"].as_str());
        code
    };
    let room = shared.state().rooms[&code].summary();
    let host = room["hostId"].clone();
    good(shared, 201, &json!({"room": room, "hostId": host}))
}

fn in_room(asked: &ApiRequest, code: &str, rest: &[&str], shared: &Shared) -> Answer {
    let code = code.to_uppercase();
    if !shared.state().rooms.contains_key(&code) {
        return bad(shared, 404, "ROOM_NOT_FOUND", "Room not found.");
    }
    let nobody = || bad(shared, 404, "PARTICIPANT_NOT_FOUND", "Participant not found.");
    let room = |data: fn(&super::rooms::Room) -> Value| data(&shared.state().rooms[&code]);
    match (asked.method.as_str(), rest) {
        ("GET", []) => good(shared, 200, &room(super::rooms::Room::summary)),
        ("GET", ["participants"]) => good(shared, 200, &room(|room| json!(room.participants()))),
        ("PUT", ["participants", id]) => put(asked, &code, id, shared),
        ("DELETE", ["participants", id]) => match with(shared, &code, |room| room.remove(id)) {
            true => good(shared, 200, &json!({"success": true})),
            false => nobody(),
        },
        ("POST", ["participants", id, "heartbeat"]) => heartbeat(&code, id, shared, nobody),
        ("GET", ["participants", _, "tunnel"]) => {
            bad(shared, 400, "INTERNAL_ERROR", "WebSocket upgrade failed.")
        }
        _ => bad(shared, 404, "INVALID_REQUEST", "Route not found."),
    }
}

fn put(asked: &ApiRequest, code: &str, id: &str, shared: &Shared) -> Answer {
    let body = asked.json();
    let refused = {
        let mut state = shared.state();
        let (times, status, kind) = state.refusing_joins;
        state.refusing_joins.0 = times.saturating_sub(1);
        (times > 0).then_some((status, kind))
    };
    if let Some((status, kind)) = refused {
        return bad(shared, status, kind, "Refused by the test.");
    }
    let whole = ["nickname", "model", "endpoint"].iter().all(|name| body[name].is_string());
    if !whole {
        return bad(shared, 400, "INVALID_REQUEST", "Missing required participant fields.");
    }
    if !shared.state().rooms[code].lets_in(&body) {
        return bad(shared, 401, "INVALID_PASSWORD", "Invalid room password.");
    }
    let token = shared.state().id();
    let (new, info) = with(shared, code, |room| room.put(id, &body, token.clone()));
    let url = format!("ws://{}/v1/rooms/{code}/participants/{id}/tunnel", shared.address);
    let mut data = json!({
        "participant": info, "roomId": "tNsiA6rNm6x9-OyqZnvaw",
        "tunnel": {"token": token, "url": url},
    });
    if shared.state().is_warren {
        data["sessionToken"] = json!("wp_0123");
    }
    good(shared, if new { 201 } else { 200 }, &data)
}

fn heartbeat(code: &str, id: &str, shared: &Shared, nobody: impl Fn() -> Answer) -> Answer {
    let failing = {
        let mut state = shared.state();
        let failing = state.failing_heartbeats > 0;
        state.failing_heartbeats = state.failing_heartbeats.saturating_sub(1);
        failing
    };
    if failing {
        return bad(shared, 500, "INTERNAL_ERROR", "Failed by the test.");
    }
    match with(shared, code, |room| room.heartbeat(id)) {
        Some(data) => good(shared, 200, &data),
        None => nobody(),
    }
}

fn with<T>(shared: &Shared, code: &str, act: impl FnOnce(&mut super::rooms::Room) -> T) -> T {
    act(shared.state().rooms.get_mut(code).expect("a room that is there"))
}

fn good(shared: &Shared, status: u16, data: &Value) -> Answer {
    let id = shared.state().id();
    (status, json!({"data": data, "meta": {"requestId": id}}))
}

fn bad(shared: &Shared, status: u16, code: &str, message: &str) -> Answer {
    let id = shared.state().id();
    (status, json!({"error": {"code": code, "message": message}, "meta": {"requestId": id}}))
}

async fn events(code: &str, shared: &Arc<Shared>, out: &mut WriteHalf<'_>) {
    let events = shared.state().rooms.get(code).map(|room| room.events.subscribe());
    let Some(mut events) = events else {
        let (status, body) = bad(shared, 404, "ROOM_NOT_FOUND", "Room not found.");
        return write(out, status, &body).await;
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let client = json!({"clientId": shared.state().id()});
    let mut next = format!("{head}{}", frame(code, "connected", &client));
    while out.write_all(next.as_bytes()).await.is_ok() {
        let Ok(event) = events.recv().await else { return };
        next = event;
    }
}

pub(super) async fn write(out: &mut WriteHalf<'_>, status: u16, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\naccess-control-allow-origin: *\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The client may have gone.
    let _gone = out.write_all(format!("{head}{body}").as_bytes()).await;
}
