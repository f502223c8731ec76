//! Tunnels that are not let in, in the words and envelopes of stock servers.

use http::{Request, Response};
use serde_json::{Value, json};

use super::kit::{HERE, Kit, now};

fn request(query: &str, upgrades: bool) -> Request<()> {
    let mut request = Request::get(format!("/v1/rooms/x/participants/a/tunnel{query}"));
    if upgrades {
        request = request
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    }
    request.body(()).unwrap()
}

fn connect(kit: &Kit, code: &str, id: &str, query: &str, upgrades: bool) -> Response<String> {
    kit.participants.connect(&mut request(query, upgrades), code, id, HERE.into())
}

fn status_and_code(response: &Response<String>) -> (u16, Value) {
    assert_eq!(response.headers()["content-type"], "application/json");
    let body: Value = serde_json::from_str(response.body()).unwrap();
    assert_eq!(body["meta"]["requestId"].as_str().unwrap().len(), 36);
    assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    (response.status().as_u16(), body["error"]["code"].clone())
}

#[tokio::test]
async fn each_refusal_has_its_status_and_its_code() {
    let kit = Kit::new();
    kit.join("a", |_| {});
    let code = kit.room.short_code();
    let cases = [
        (code, "a", "", 400, "INVALID_REQUEST"),
        (code, "a", "?token=", 400, "INVALID_REQUEST"),
        ("NOSUCH", "a", "?token=x", 404, "ROOM_NOT_FOUND"),
        (code, "b", "?token=x", 404, "PARTICIPANT_NOT_FOUND"),
        (code, "a", "?token=x", 401, "INVALID_REQUEST"),
    ];
    for (code, id, query, status, kind) in cases {
        for upgrades in [true, false] {
            let response = connect(&kit, code, id, query, upgrades);
            assert_eq!(status_and_code(&response), (status, json!(kind)), "{id} {query}");
        }
    }
}

#[tokio::test]
async fn a_token_opens_one_tunnel_and_is_not_spent_on_what_is_no_upgrade() {
    let kit = Kit::new();
    kit.join("a", |_| {});
    let token = kit.room.tunnel_token("a", now()).unwrap();
    let query = format!("?token={}", token.expose());
    let code = kit.room.spoken_code().to_uppercase();
    let plain = connect(&kit, &code, "a", &query, false);
    assert_eq!(status_and_code(&plain), (400, json!("INTERNAL_ERROR")));
    let good = connect(&kit, &code, "a", &query, true);
    assert_eq!(good.status(), 101);
    assert_eq!(good.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let second = connect(&kit, &code, "a", &query, true);
    assert_eq!(status_and_code(&second), (401, json!("INVALID_REQUEST")));
}

#[tokio::test]
async fn a_token_is_good_for_a_minute_and_for_its_own_participant() {
    let kit = Kit::new();
    kit.join("a", |_| {});
    kit.join("b", |_| {});
    let code = kit.room.short_code();
    let old = kit.room.tunnel_token("a", now() - 61_000).unwrap();
    let fresh = kit.room.tunnel_token("b", now()).unwrap();
    for token in [old, fresh] {
        let query = format!("?token={}", token.expose());
        assert_eq!(status_and_code(&connect(&kit, code, "a", &query, true)).0, 401);
    }
}

#[tokio::test]
async fn guessing_codes_is_throttled() {
    let kit = Kit::new();
    for _ in 0..10 {
        assert_eq!(connect(&kit, "NOSUCH", "a", "?token=x", true).status(), 404);
    }
    let refused = connect(&kit, "NOSUCH", "a", "?token=x", true);
    assert_eq!(status_and_code(&refused), (429, json!("TOO_MANY")));
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}
