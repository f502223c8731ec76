//! A stream that is silent for a while is kept alive between its events, and only there.

use testkit::{Form, Streaming};

use crate::common::{CHAT, MESSAGES, ask, ask_unfiltered, both_forms, join, serve};

both_forms!(a_silent_stream_is_kept_alive_between_events, it_can_be_switched_off);

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

/// Two streams, one of them in the middle of an event: while the one is kept alive three times,
/// nothing is added to the other.
#[tokio::test]
async fn nothing_is_added_inside_an_event() {
    let daemon = serve().set("--sse-keepalive-secs", "0.2").start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 2).await;
    let mut streams = Vec::new();
    for begun in ["data: {", "data: 1\n\n"] {
        let asked = daemon.client().post(CHAT, &ask_unfiltered()).open().await;
        let job = worker.expect_job().await;
        worker.chunk(&job, begun).await;
        let mut answer = asked.answer().await;
        answer.expect(begun).await;
        streams.push((job, answer));
    }
    let (_, mut clock) = streams.pop().unwrap();
    let (job, mut half) = streams.pop().unwrap();
    for _ in 0..3 {
        clock.expect(COMMENT).await;
    }
    worker.chunk(&job, "}\n\n").await;
    half.expect("}\n\n").await;
    half.expect(COMMENT).await;
}

async fn it_can_be_switched_off(form: Form) {
    let off = serve().set("--sse-keepalive-secs", "0").set("--idle-timeout-secs", "0.5");
    let daemon = off.start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, "data: 1\n\n").await;
    let text = asked.answer().await.finish().await.text();
    assert!(text.starts_with("data: 1\n\ndata: {\"error\":"), "{text}");
}

/// Before the head there are signs of life too, after a time without any. Then the status is 200, and
/// a failure is an event.
#[tokio::test]
async fn a_stream_without_a_head_is_kept_alive() {
    let daemon = serve()
        .set("--sse-keepalive-secs", "0.1")
        .set("--request-timeout-secs", "0.5")
        .start()
        .await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let answer = daemon.client().post(CHAT, &ask(true)).open().await;
    worker.expect_job().await;
    let answer = answer.answer().await.finish().await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
    assert!(text.starts_with(": waiting for m: a worker is at it\n\n"), "{text}");
    let last = text.split("\n\n").filter(|event| !event.is_empty()).last().unwrap();
    assert!(last.starts_with("data: {\"error\":") && last.contains("request timeout"), "{last}");
}

/// Nothing is sent before the head of an answer that is no stream, so that the status is true.
#[tokio::test]
async fn a_plain_answer_has_its_true_status() {
    let daemon = serve()
        .set("--sse-keepalive-secs", "0.1")
        .set("--request-timeout-secs", "0.5")
        .start()
        .await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let answer = daemon.client().post(CHAT, &ask(false)).open().await;
    worker.expect_job().await;
    let answer = answer.answer().await.finish().await;
    assert_eq!(answer.status, 504);
    assert!(!answer.text().contains("waiting"), "{}", answer.text());
}

/// An answer that is no event stream is never added to.
#[tokio::test]
async fn an_answer_that_is_no_stream_is_left_alone() {
    let daemon = serve().set("--sse-keepalive-secs", "0.1").start().await;
    let mut worker = join(&daemon, Form::Binary, "w", 2).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    let job = worker.expect_job().await;
    worker.begin(&job, 200, &[("content-type", "application/json")]).await;
    worker.chunk(&job, "{\"a\":\n\n").await;
    let stream = daemon.client().post(CHAT, &ask(true)).open().await;
    let other = worker.expect_job().await;
    worker.chunk(&other, "data: 1\n\n").await;
    let mut clock = stream.answer().await;
    clock.expect("data: 1\n\n").await;
    for _ in 0..3 {
        clock.expect(COMMENT).await;
    }
    worker.chunk(&job, "1}").await;
    worker.finish(&job).await;
    assert_eq!(asked.answer().await.finish().await.text(), "{\"a\":\n\n1}");
}
