//! Connections before they authenticate.

use std::time::Duration;

use access::Moment;
use base::{ClientAddress, KeyScope};
use http::{Request, StatusCode};
use protocol::workspace::{RequestKind, limits::AUTH_DEADLINE};
use serde_json::json;
use tokio::{io::duplex, time::Instant};
use workspace::{Settings, testing::soon};

use super::kit::{FAR, Kit, TOKEN};

#[tokio::test]
async fn any_message_before_auth_ends_the_connection_with_an_error() {
    let kit = Kit::new().await;
    for name in RequestKind::NAMES.iter().filter(|name| **name != "auth") {
        let mut stranger = kit.stranger(FAR);
        stranger.say(json!({"type": name}));
        stranger.say(json!({"type": "auth", "token": TOKEN}));
        let answer = stranger.hear().await;
        assert_eq!(answer["type"], "error", "{name}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("auth"), "{name}: {answer}");
        stranger.until_over().await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_are_answered_too() {
    let kit = Kit::new().await;
    for text in ["", "auth", "[]", "{\"type\":\"auth\"}", "{\"type\":\"auth\",\"token\":7}"] {
        let mut stranger = kit.stranger(FAR);
        stranger.outbox.push(text.to_owned()).unwrap();
        assert_eq!(stranger.hear().await["type"], "error", "{text}");
        stranger.until_over().await;
    }
    let mut stranger = kit.stranger(FAR);
    stranger.outbox.push(bytes::Bytes::from_static(b"binary")).unwrap();
    assert_eq!(stranger.hear().await["type"], "error");
    stranger.until_over().await;
}

#[tokio::test]
async fn five_wrong_tokens_lock_an_address_out_and_no_other() {
    let kit = Kit::new().await;
    for _ in 0..5 {
        let mut stranger = kit.stranger(FAR);
        stranger.say(json!({"type": "auth", "token": "wrong"}));
        let result = stranger.hear().await;
        assert_eq!((&result["type"], &result["success"]), (&json!("auth_result"), &json!(false)));
        assert!(result["message"].as_str().unwrap().contains("not valid"), "{result}");
        stranger.until_over().await;
    }
    let mut locked_out = kit.stranger(FAR);
    locked_out.say(json!({"type": "auth", "token": TOKEN}));
    let result = locked_out.hear().await;
    assert_eq!(result["success"], false);
    assert!(result["message"].as_str().unwrap().contains("wait"), "{result}");
    locked_out.until_over().await;
    let mut other = kit.stranger("10.0.0.2");
    other.say(json!({"type": "auth", "token": TOKEN}));
    assert_eq!(other.hear().await["success"], true);
}

/// The page does not know its session, which is in a cookie of the request that opened the link.
#[tokio::test]
async fn an_empty_token_stands_for_the_session_of_the_page() {
    let kit = Kit::new().await;
    let (_, key) = kit.key(KeyScope::WorkspaceRead);
    let (keys, now) = (&kit.workspace.keys, Moment::now());
    let holder = keys.holder(&key, now).unwrap();
    let session = keys.page_sessions().create(&holder, "Firefox", None, now).unwrap().text;
    for (session, token, success) in [
        (Some(session.clone()), "", true),
        (Some(session), "wrong", false),
        (Some("wb_gone".into()), "", false),
        (None, "", false),
    ] {
        let mut page = kit.page(FAR, session);
        page.say(json!({"type": "auth", "token": token}));
        assert_eq!(page.hear().await["success"], success, "{token:?}");
    }
}

#[tokio::test]
async fn a_stranger_that_sends_too_much_is_ended_unheard() {
    let kit = Kit::new().await;
    let mut stranger = kit.stranger(FAR);
    let padded = format!("{{\"type\":\"auth\",\"token\":\"{TOKEN}\"}}{}", " ".repeat(64 * 1024));
    stranger.outbox.push(padded).unwrap();
    assert!(stranger.hear().await.is_null());
    stranger.until_over().await;
}

#[tokio::test]
async fn a_silent_connection_ends_after_the_deadline() {
    let kit = Kit::new().await;
    tokio::time::pause();
    let began = Instant::now();
    let mut stranger = kit.stranger(FAR);
    let answer = stranger.hear().await;
    assert_eq!(
        (&answer["type"], began.elapsed().as_secs()),
        (&json!("error"), AUTH_DEADLINE.as_secs())
    );
    stranger.until_over().await;
}

#[tokio::test]
async fn a_thousand_strangers_are_gone_after_the_deadline_and_keep_nobody_out() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let mut strangers = Vec::new();
    for _ in 0..1000 {
        let (far, near) = duplex(1024);
        strangers.push((far, kit.serve(near, "10.9.9.9")));
    }
    client.ask(json!({"type": "keepalive"}), "keepalive_ack").await;
    tokio::time::pause();
    // The strangers do not answer a close frame either.
    tokio::time::advance(AUTH_DEADLINE).await;
    for (_far, serving) in strangers {
        soon(serving).await.unwrap();
    }
    assert_eq!(kit.socket.clients(), 1);
}

fn upgrade() -> Request<()> {
    let mut request = Request::get("/ws").body(()).unwrap();
    for (name, value) in [
        ("host", "127.0.0.1:9178"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

#[tokio::test]
async fn an_upgrade_is_agreed_to_unless_a_strange_page_asks_or_too_many_do_or_it_is_none() {
    let kit = Kit::with(|settings: &mut Settings| settings.max_strangers = 2).await;
    let from = ClientAddress::new(FAR.parse().unwrap());
    let connect = |mut request: Request<()>| kit.socket.connect(&mut request, from).status();
    let mut page = upgrade();
    page.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert_eq!(connect(page), StatusCode::FORBIDDEN);
    assert_eq!(connect(Request::get("/ws").body(()).unwrap()), StatusCode::UPGRADE_REQUIRED);
    assert_eq!(connect(upgrade()), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(connect(upgrade()), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(connect(upgrade()), StatusCode::SERVICE_UNAVAILABLE);
    // Nobody is at the other end of the first two upgrades, so their places become free.
    let freed = async {
        while connect(upgrade()) != StatusCode::SWITCHING_PROTOCOLS {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(freed).await;
}

#[tokio::test]
async fn no_more_clients_are_let_in_than_there_may_be() {
    let kit = Kit::with(|settings| settings.max_clients = 1).await;
    let first = kit.client().await;
    let mut second = kit.stranger(FAR);
    second.say(json!({"type": "auth", "token": TOKEN}));
    let result = second.hear().await;
    assert_eq!(result["success"], false, "{result}");
    second.until_over().await;
    drop(first.link);
    soon(first.serving).await.unwrap();
    kit.client().await;
}

#[tokio::test]
async fn a_key_that_is_revoked_closes_what_is_connected_with_it() {
    let kit = Kit::new().await;
    let (id, text) = kit.key(KeyScope::WorkspaceRead);
    let mut client = kit.client_with(&text).await;
    client.ask(json!({"type": "list_sessions"}), "session_list").await;
    kit.workspace.keys.revoke(&id, access::Moment::now()).unwrap();
    client.until_over().await;
    let mut second = kit.stranger(FAR);
    second.say(json!({"type": "auth", "token": text}));
    let result = second.hear().await;
    assert!(result["message"].as_str().unwrap().contains("revoked"), "{result}");
}

#[tokio::test]
async fn a_page_session_that_is_revoked_closes_what_it_has_opened_and_no_more() {
    let kit = Kit::new().await;
    let (_, key) = kit.key(KeyScope::WorkspaceRead);
    let (keys, now) = (&kit.workspace.keys, Moment::now());
    let (sessions, holder) = (keys.page_sessions(), keys.holder(&key, now).unwrap());
    let opened = async || {
        let new = sessions.create(&holder, "Firefox", None, now).unwrap();
        let mut page = kit.page(FAR, Some(new.text));
        page.ask(json!({"type": "auth", "token": ""}), "auth_result").await;
        (new.session, page)
    };
    let [(revoked, first), (_, mut second)] = [opened().await, opened().await];
    sessions.revoke(revoked.id().as_str()).unwrap();
    first.until_over().await;
    second.ask(json!({"type": "list_sessions"}), "session_list").await;
    let mut by_key = kit.client_with(&key).await;
    by_key.ask(json!({"type": "list_sessions"}), "session_list").await;
}

#[tokio::test]
async fn when_the_workspace_shuts_down_clients_are_told_goodbye_and_nobody_comes_in() {
    let kit = Kit::new().await;
    let (client, stranger) = (kit.client().await, kit.stranger(FAR));
    kit.shut_down().await;
    client.until_over().await;
    stranger.until_over().await;
    let refused = kit.socket.connect(&mut upgrade(), ClientAddress::new(FAR.parse().unwrap()));
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
}
