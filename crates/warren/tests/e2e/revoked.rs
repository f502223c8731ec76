//! Requests whose key is revoked or expires while they run: each ends as its API ends a failure, and
//! its provider hears of it.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Daemon, Form};

use crate::{
    cli::{make_key, revoke, with_key},
    common::{CHAT, MESSAGES, RESPONSES, ask, join, serve},
};

/// The rest of a stream after `begun`, when its key stops working meanwhile.
async fn rest(daemon: &Daemon, key: (String, String), path: &str, begun: &str) -> String {
    let (id, text) = key;
    let mut worker = join(daemon, Form::Binary, "w", 1).await;
    let asked = with_key(daemon, &text).post(path, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, begun).await;
    let mut answer = asked.answer().await;
    answer.expect(begun).await;
    if !id.is_empty() {
        assert_eq!(revoke(daemon, &id).await.status, 200);
    }
    let rest = answer.finish().await.text();
    assert_eq!(worker.expect_cancel().await.0, job.request_id);
    daemon.is_idle().await;
    worker.close().await;
    daemon.has_workers(0).await;
    rest
}

/// The data of the last event, which has this name.
#[track_caller]
fn last_event(text: &str, name: Option<&str>) -> Value {
    let event = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let head = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    let data = event.strip_prefix(&format!("{head}data: "));
    serde_json::from_str(data.unwrap_or_else(|| panic!("no {name:?} in {text:?}"))).unwrap()
}

#[tokio::test]
async fn a_stream_ends_with_its_apis_own_error_when_its_key_is_revoked() {
    const WORDS: &str = "the API key was revoked";
    let daemon = serve().start().await;
    let key = async || make_key(&daemon, json!({})).await;
    let begun = "data: {\"choices\":[]}\n\n";
    let chat = last_event(&rest(&daemon, key().await, CHAT, begun).await, None);
    assert_eq!(chat["error"]["message"], WORDS, "{chat}");
    assert_eq!(chat["error"]["type"], "authentication_error", "{chat}");
    let begun = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let messages = rest(&daemon, key().await, MESSAGES, begun).await;
    let messages = last_event(&messages, Some("error"));
    assert_eq!(messages["type"], "error", "{messages}");
    assert_eq!(messages["error"]["type"], "authentication_error", "{messages}");
    assert_eq!(messages["error"]["message"], WORDS, "{messages}");
    let begun = "event: response.created\ndata: {\"sequence_number\":0}\n\n";
    let responses = rest(&daemon, key().await, RESPONSES, begun).await;
    assert_eq!(last_event(&responses, Some("error"))["message"], WORDS, "{responses}");
}

#[tokio::test]
async fn a_stream_ends_when_its_key_expires() {
    let daemon = serve().start().await;
    let soon = jiff::Timestamp::now() + Duration::from_secs(2);
    let (_, text) = make_key(&daemon, json!({"expires_at": soon.to_string()})).await;
    let begun = "data: {\"choices\":[]}\n\n";
    let told = last_event(&rest(&daemon, (String::new(), text), CHAT, begun).await, None);
    assert_eq!(told["error"]["type"], "authentication_error", "{told}");
}
