//! After the first byte a failure ends the stream with that API's own terminal error event, and a
//! half event is closed first.

use serde_json::{Value, json};
use testkit::{Gate, Reply};

use crate::common::{CHAT, MESSAGES, RESPONSES, ask_unfiltered, with_lender};

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
