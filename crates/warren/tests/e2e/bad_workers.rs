//! Workers that send what they should not: a bad frame costs that frame, or its job.

use serde_json::json;
use testkit::{Connect, FakeWorker, Form};
use tokio::time::Instant;

use crate::common::{
    CHAT, all_read, ask, begin_stream, both_forms, join, openai_error, post, serve, with_worker,
};

both_forms!(
    bad_text_costs_only_itself,
    bad_frames_without_end_leave_a_log_that_can_be_read,
    frames_for_unknown_jobs_cost_nothing,
    a_chunk_after_the_end_costs_nothing,
    an_error_without_a_request_costs_nothing,
    an_error_after_the_first_chunk_ends_that_stream,
    an_invalid_status_is_a_502,
    a_second_registration_costs_nothing,
    a_large_message_costs_at_most_its_job,
);

/// The link still carries a request and its answer.
async fn works(daemon: &testkit::Daemon, worker: &mut FakeWorker) {
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"works": true})).await;
    assert_eq!(answer.await.unwrap().json(), json!({"works": true}));
    daemon.is_idle().await;
}

async fn bad_text_costs_only_itself(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let bad = [
        "garbage",
        "",
        "{}",
        "[]",
        r#"{"type":7}"#,
        r#"{"type":"nobody_knows"}"#,
        r#"{"type":"pong"}"#,
        r#"{"type":"pong","current_load":-1}"#,
        r#"{"type":"pong","current_load":99999999999999999999}"#,
        r#"{"type":"models_update","models":null,"current_load":0}"#,
        r#"{"type":"response_chunk"}"#,
        r#"{"type":"request","request_id":"r","model":"m"}"#,
    ];
    for text in bad {
        worker.send_text(text).await;
    }
    worker.send_text(&"[".repeat(100_000)).await;
    for bytes in [&b""[..], b"\x00", b"\x11\0\0\0", b"\x11\0\0\0\x07{", b"\xff\0\0\0\x01garbage"] {
        worker.send_binary(bytes.to_vec()).await;
    }
    // Read before there is a job that they could be taken to be about.
    all_read(&daemon, &mut worker).await;
    works(&daemon, &mut worker).await;
}

async fn bad_frames_without_end_leave_a_log_that_can_be_read(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let began = Instant::now();
    for _ in 0..5_000 {
        worker.send_text("garbage").await;
        worker.send_as_text(&b"\xff\xfe"[..]).await;
        worker.send_binary(b"\xff\0\0\0\x01garbage".to_vec()).await;
    }
    all_read(&daemon, &mut worker).await;
    works(&daemon, &mut worker).await;
    let log = daemon.log();
    let complains = |line: &&str| line.contains("was ignored") || line.contains("was passed over");
    let said = log.lines().filter(complains).count();
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    assert!((1..=20 * seconds).contains(&said), "{said} lines in {seconds} s");
}

/// In the binary form a frame that cannot be read, but says which job it is about, costs that job.
#[tokio::test]
async fn a_bad_frame_costs_its_job() {
    let (daemon, mut worker) = with_worker(Form::Binary, 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    let bad = [&b"\x11"[..], &job.number.to_be_bytes(), b"{}"].concat();
    worker.send_binary(bad).await;
    openai_error(&answer.await.unwrap(), 502);
    worker.expect_cancel().await;
    works(&daemon, &mut worker).await;
}

async fn frames_for_unknown_jobs_cost_nothing(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let mut job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    answer.await.unwrap();
    job.request_id = "r-00000000000000000000000000000000".to_owned();
    job.number = 4_000_000_000;
    worker.chunk(&job, "data: nobody's\n\n").await;
    worker.finish(&job).await;
    worker.complete(&job, 200, &json!({})).await;
    worker.fail(&job, "backend_broke", "nobody's").await;
    works(&daemon, &mut worker).await;
}

async fn a_chunk_after_the_end_costs_nothing(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, "data: 1\n\n").await;
    worker.finish(&job).await;
    worker.chunk(&job, "data: 2\n\n").await;
    worker.finish(&job).await;
    assert_eq!(asked.answer().await.finish().await.text(), "data: 1\n\n");
    works(&daemon, &mut worker).await;
}

async fn an_error_without_a_request_costs_nothing(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    worker.send(&json!({"type": "error", "code": "oops", "message": "about nothing"})).await;
    let unknown = json!({"type": "error", "request_id": "r-1", "code": "x", "message": "y"});
    worker.send(&unknown).await;
    works(&daemon, &mut worker).await;
    daemon.line_with("about nothing").await;
}

async fn an_error_after_the_first_chunk_ends_that_stream(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let (job, answer) = begin_stream(&daemon, &mut worker).await;
    worker.fail(&job, "backend_broke", "it broke").await;
    let rest = answer.finish().await.text();
    assert!(rest.starts_with("data: {\"error\":"), "{rest}");
    works(&daemon, &mut worker).await;
}

async fn an_invalid_status_is_a_502(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    for status in [0, 99, 101, 1000] {
        let answer = post(&daemon.client(), CHAT, ask(false));
        let job = worker.expect_job().await;
        worker.complete(&job, status, &json!({})).await;
        openai_error(&answer.await.unwrap(), 502);
        daemon.is_idle().await;
    }
    works(&daemon, &mut worker).await;
}

async fn a_second_registration_costs_nothing(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let again = json!({
        "type": "register", "worker_name": "again", "models": ["m"], "max_concurrent": 9,
    });
    worker.send(&again).await;
    works(&daemon, &mut worker).await;
    assert_eq!(daemon.workers().await.len(), 1);
}

/// 40 MiB in one frame: whatever becomes of it, another job on another link does not notice, and
/// the server goes on.
async fn a_large_message_costs_at_most_its_job(form: Form) {
    let daemon = serve().set("--max-requeue-count", "0").start().await;
    let mut other = Connect::to(&daemon).join("other", &["n"], 1).await;
    let streaming = daemon.client().post(CHAT, &crate::common::ask_for("n", true)).open().await;
    let stream_job = other.expect_job().await;
    other.chunk(&stream_job, "data: 1\n\n").await;
    let mut stream = streaming.answer().await;
    stream.expect("data: 1\n\n").await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    let job = worker.expect_job().await;
    let body = "x".repeat(40 * 1024 * 1024);
    let reading = tokio::spawn(async move { asked.answer().await.try_finish().await });
    worker.complete_with(&job, 200, &[("content-type", "text/plain")], &body).await;
    let answer = reading.await.unwrap();
    let whole = answer.as_ref().is_ok_and(|answer| answer.status == 200 && answer.body == body);
    let refused = answer.as_ref().is_ok_and(|answer| [502, 503].contains(&answer.status));
    assert!(whole || refused || answer.is_err(), "half an answer was passed off as a whole one");
    other.chunk(&stream_job, "data: 2\n\n").await;
    stream.expect("data: 2\n\n").await;
    other.finish(&stream_job).await;
    daemon.is_idle().await;
    assert_eq!(daemon.health().await["status"], "ok");
}

#[tokio::test]
async fn the_first_message_must_be_a_registration() {
    let daemon = serve().start().await;
    let bad = [
        "garbage",
        "{}",
        r#"{"type":"pong","current_load":0}"#,
        r#"{"type":"register"}"#,
        r#"{"type":"register","worker_name":"w","models":null,"max_concurrent":1}"#,
    ];
    for text in bad {
        let mut worker = Connect::to(&daemon).open().await.unwrap();
        worker.send_text(text).await;
        let (code, reason) = worker.expect_close().await.expect("a close frame");
        assert_eq!((code, reason.as_str()), (1002, "worker registration protocol error"), "{text}");
    }
    let mut worker = Connect::to(&daemon).open().await.unwrap();
    worker.send_binary(b"\x11\0\0\0\0".to_vec()).await;
    let (code, _) = worker.expect_close().await.expect("a close frame");
    assert_eq!(code, 1002);
    assert_eq!(daemon.workers().await.len(), 0);
}

/// The server waits ten seconds for a registration, and no longer.
#[tokio::test]
async fn a_link_that_does_not_register_is_closed() {
    let daemon = serve().start().await;
    let mut worker = Connect::to(&daemon).open().await.unwrap();
    let begun = std::time::Instant::now();
    worker.expect_close().await;
    let waited = begun.elapsed().as_secs();
    assert!((9..15).contains(&waited), "{waited} s");
}
