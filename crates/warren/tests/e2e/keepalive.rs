//! A stream that is silent for a while is kept alive between its events, and only there.

use testkit::{Form, Streaming};

use crate::common::{CHAT, MESSAGES, ask_unfiltered, both_forms, join, serve};

both_forms!(a_silent_stream_is_kept_alive_between_events);

const COMMENT: &str = ": keep-alive\n\n";
const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";

async fn a_silent_stream_is_kept_alive_between_events(form: Form) {
    let daemon = serve().set("--sse-keepalive-secs", "0.2").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    for (path, sign) in [(CHAT, COMMENT), ("/v1/responses", COMMENT), (MESSAGES, PING)] {
        let asked = daemon.client().post(path, &ask_unfiltered()).open().await;
        let job = worker.expect_job().await;
        worker.chunk(&job, "data: 1\n\n").await;
        let mut answer = asked.answer().await;
        answer.expect("data: 1\n\n").await;
        answer.expect(sign).await;
        answer.expect(sign).await;
        worker.chunk(&job, "data: {").await;
        skip_signs(&mut answer, sign, "data: {").await;
        worker.chunk(&job, "}\n\n").await;
        answer.expect("}\n\n").await;
        answer.expect(sign).await;
        worker.finish(&job).await;
        assert_eq!(answer.finish().await.text().replace(sign, ""), "");
    }
}

/// Reads until `text` comes; before it there may be signs of life.
async fn skip_signs(answer: &mut Streaming, sign: &str, text: &str) {
    let mut got = String::new();
    while got.replace(sign, "") != text {
        let chunk = answer.next_chunk().await.expect("the stream goes on");
        got.push_str(&String::from_utf8_lossy(&chunk));
        assert!(text.starts_with(&got.replace(sign, "")), "{got:?}");
    }
}
