//! After the first byte a failure ends the stream with that API's own terminal error event, and a
//! half event is closed first.

use serde_json::{Value, json};
use testkit::{Form, Gate, Reply};

use crate::common::{CHAT, MESSAGES, RESPONSES, ask, ask_unfiltered, with_lender, with_worker};

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

/// What is no stream cannot be ended with an event: its connection is cut, so that nobody takes
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
