//! After the first byte a failure ends the stream with that API's own terminal error event, and a
//! half event is closed first.

use serde_json::{Value, json};
use testkit::{Form, Gate, Reply};

use crate::common::{
    CHAT, MESSAGES, RESPONSES, ask, ask_unfiltered, both_forms, with_lender, with_worker,
};

both_forms!(a_lost_worker_ends_the_stream_of_each_api, a_half_event_is_closed_first);

/// The rest of an answer after `begun`, when its worker was lost.
async fn rest_after_loss(form: Form, path: &str, begun: &str) -> String {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let asked = daemon.client().post(path, &ask_unfiltered()).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, begun).await;
    let mut answer = asked.answer().await;
    answer.expect(begun).await;
    worker.vanish();
    let rest = answer.finish().await.text();
    daemon.is_idle().await;
    rest
}

/// The data of an event whose first line says its type, if it has one.
#[track_caller]
fn event(text: &str, kind: Option<&str>) -> Value {
    let text = text.strip_suffix("\n\n").unwrap_or_else(|| panic!("{text:?} is not closed"));
    let data = match kind {
        None => text.strip_prefix("data: "),
        Some(kind) => text.strip_prefix(&format!("event: {kind}\ndata: ")),
    };
    let data = data.unwrap_or_else(|| panic!("{text:?} is no event {kind:?}"));
    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error} in {data}"))
}

async fn a_lost_worker_ends_the_stream_of_each_api(form: Form) {
    let begun = "data: {\"choices\":[]}\n\n";
    for path in [CHAT, "/v1/completions"] {
        let last = event(&rest_after_loss(form, path, begun).await, None);
        let error = &last["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{last}");
    }
    let begun = "event: response.created\ndata: {\"sequence_number\":3}\n\n";
    let last = event(&rest_after_loss(form, RESPONSES, begun).await, Some("error"));
    assert_eq!(last["type"], "error", "{last}");
    assert!(last["message"].is_string() && last.get("code").is_some(), "{last}");
    assert_eq!(last["sequence_number"], 4, "{last}");
    assert_eq!(last["error"]["message"], last["message"], "{last}");
    let begun = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let last = event(&rest_after_loss(form, MESSAGES, begun).await, Some("error"));
    assert_eq!(last["type"], "error", "{last}");
    assert!(last["error"]["message"].is_string(), "{last}");
    assert_eq!(last["error"]["type"], "api_error", "{last}");
}

async fn a_half_event_is_closed_first(form: Form) {
    let cases = [
        ("data: {\"half\":", "\n\n"),
        ("data: {}\n", "\n"),
        ("data: 1\n\ndata: 2\r\n", "\n"),
        ("data: 1\r\n\r\n", ""),
    ];
    for (begun, closing) in cases {
        let rest = rest_after_loss(form, CHAT, begun).await;
        let closed = rest.strip_prefix(closing);
        let closed = closed.unwrap_or_else(|| panic!("{rest:?} does not close {begun:?}"));
        assert!(event(closed, None)["error"].is_object());
    }
}

/// An answer that is no stream cannot be ended with an event: its connection is cut, so that nobody takes
/// half an answer for a whole one.
#[tokio::test]
async fn half_a_plain_answer_is_cut() {
    let (daemon, mut worker) = with_worker(Form::Binary, 1).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    let job = worker.expect_job().await;
    worker.begin(&job, 200, &[("content-type", "application/json")]).await;
    worker.chunk(&job, "{\"choices\":").await;
    let mut answer = asked.answer().await;
    answer.expect("{\"choices\":").await;
    worker.vanish();
    assert!(answer.try_finish().await.is_err());
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_backend_that_dies_ends_the_stream_of_each_api() {
    let (daemon, backend, _worker) = with_lender(1).await;
    for (path, kind) in [(CHAT, None), (RESPONSES, Some("error")), (MESSAGES, Some("error"))] {
        backend.then(Reply::stream(["data: {\"ha"], &Gate::opened()).broken());
        let text = daemon.client().post_json(path, &ask_unfiltered()).await.text();
        let rest = text.strip_prefix("data: {\"ha\n\n").unwrap_or_else(|| panic!("{text:?}"));
        let last = event(rest, kind);
        assert!(last.get("error").is_some() || last["type"] == json!("error"), "{last}");
    }
    daemon.is_idle().await;
}
