//! How a server ends, and a worker.

use serde_json::json;
use testkit::{Connection, DEADLINE, Form, eventually};

use crate::{
    cli::warren,
    common::{
        CHAT, ask, begin_backend_stream, begin_stream, both_forms, join, post, serve, with_lender,
    },
};

both_forms!(it_finishes_what_is_in_flight, at_the_end_of_the_grace_it_ends_anyway);

async fn it_finishes_what_is_in_flight(form: Form) {
    let mut daemon = serve().start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let (job, mut answer) = begin_stream(&daemon, &mut worker).await;
    let waiting = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    daemon.sigterm();
    worker.expect_message("graceful_shutdown").await;
    // Nothing new is taken, and a job that was only waiting ends at once.
    assert!(Connection::try_open(daemon.address()).await.is_err(), "it still accepts");
    assert_eq!(waiting.await.unwrap().status, 503);
    worker.chunk(&job, "data: 2\n\n").await;
    answer.expect("data: 2\n\n").await;
    worker.finish(&job).await;
    assert_eq!(answer.next_chunk().await, None);
    worker.expect_close().await;
    assert_eq!(daemon.exit().await, Some(0));
    assert!(Connection::try_open(daemon.address()).await.is_err());
}

async fn at_the_end_of_the_grace_it_ends_anyway(form: Form) {
    let mut daemon = serve().set("--drain-timeout-secs", "0.5").start().await;
    let mut worker = join(&daemon, form, "w", 2).await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let begun = worker.expect_job().await;
    worker.chunk(&begun, "data: 1\n\n").await;
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    let unbegun = post(&daemon.client(), CHAT, ask(false));
    worker.expect_job().await;
    daemon.sigterm();
    for _ in 0..2 {
        assert_eq!(worker.expect_cancel().await.1, json!("server_shutdown"));
    }
    let rest = answer.finish().await.text();
    assert!(rest.starts_with("data: {\"error\":"), "{rest}");
    assert!(rest.contains(r#""code":"shutting_down""#), "{rest}");
    let unbegun = unbegun.await.unwrap();
    assert_eq!((unbegun.status, &unbegun.json()["error"]["code"]), (503, &json!("shutting_down")));
    assert_eq!(daemon.exit().await, Some(0));
}

#[tokio::test]
async fn an_idle_server_ends_at_once() {
    let mut daemon = serve().start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    // A connection that is kept open, and one that has sent nothing, hold nothing up.
    let _silent = daemon.client().connect().await;
    let request = daemon.client().request("GET", "/health");
    let kept = request.open().await.answer().await.finish_and_keep().await;
    daemon.sigterm();
    worker.expect_message("graceful_shutdown").await;
    let (code, _) = worker.expect_close().await.expect("a close frame");
    assert!([1000, 1001].contains(&code), "{code}");
    assert_eq!(daemon.exit().await, Some(0));
    drop(kept);
}

#[tokio::test]
async fn a_second_signal_ends_it_now() {
    let mut daemon = serve().start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    worker.expect_job().await;
    daemon.sigterm();
    worker.expect_message("graceful_shutdown").await;
    assert!(daemon.check_running());
    daemon.sigterm();
    // Now: long before the 30 s that a drain may take, within which this must come.
    let answer = asked.answer().await.finish().await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!("shutting_down")));
    let code = daemon.exit().await;
    assert_eq!(code, Some(1), "it did not finish what it had");
    daemon.line_with("ended by a second signal").await;
}

#[tokio::test]
async fn a_stop_says_at_once_what_it_waits_for() {
    let mut daemon = serve().set("--log", "warn").start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    let job = worker.expect_job().await;
    daemon.sigterm();
    let words = "stopping: 1 answer is still running, a second Ctrl-C ends it";
    assert_eq!(daemon.line_with("stopping").await, words);
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(asked.answer().await.finish().await.status, 200);
    assert_eq!(daemon.exit().await, Some(0));
}

#[tokio::test]
async fn a_command_stops_the_server_and_waits_for_its_answers() {
    let mut daemon = serve().start().await;
    let dir = daemon.data_dir().display().to_string();
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    let job = worker.expect_job().await;
    let stop = ["stop", "--json", "--data-dir"];
    let all = [&stop[..], &[&dir]].concat();
    let stopping = warren(&all);
    let finishing = async {
        worker.expect_message("graceful_shutdown").await;
        worker.complete(&job, 200, &json!({})).await;
        asked.answer().await.finish().await.status
    };
    let (stopped, status) = tokio::join!(stopping, finishing);
    assert_eq!(status, 200);
    let told = stopped.json();
    assert_eq!((&told["stopped"], &told["answers"]), (&json!(true), &json!(1)), "{told}");
    assert_eq!(daemon.exit().await, Some(0));
    let again = warren(&["stop", "--server", &daemon.url(), "--admin-token", "t"]).await;
    assert_eq!(again.code, Some(3), "{again:?}");
}

#[tokio::test]
async fn a_stop_at_once_ends_answers_and_only_the_administrator_may_ask_for_one() {
    let mut daemon = serve().start().await;
    let refused = daemon.client().post_json("/admin/stop", &json!({"now": true})).await;
    assert_eq!(refused.status, 401);
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    worker.expect_job().await;
    let dir = daemon.data_dir().display().to_string();
    let url = daemon.url();
    let stop = ["stop", "--now", "--server", &url, "--data-dir", &dir];
    let (stopped, answer) =
        tokio::join!(warren(&stop), async { asked.answer().await.finish().await });
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!("shutting_down")));
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.out.contains("has ended"), "{stopped:?}");
    assert_eq!(daemon.exit().await, Some(0));
}

#[tokio::test]
async fn a_real_worker_finishes_what_it_has_and_leaves() {
    let (daemon, backend, mut worker) = with_lender(2).await;
    let (gate, mut answer) = begin_backend_stream(&daemon, &backend).await;
    worker.sigterm();
    // It says so by offering nothing; with a free slot, it is given nothing more.
    let offers_nothing = async || daemon.workers().await[0]["models"] == json!([]);
    eventually("the worker offering nothing", DEADLINE, offers_nothing).await;
    let next = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    gate.open(2);
    answer.expect("data: 2\n\n").await;
    assert_eq!(answer.next_chunk().await, None);
    assert_eq!(worker.exit().await, Some(0));
    daemon.has_workers(0).await;
    let mut other = join(&daemon, Form::Stock, "other", 1).await;
    let job = other.expect_job().await;
    other.complete(&job, 200, &json!({})).await;
    assert_eq!(next.await.unwrap().status, 200);
}

const NO_FILES: [&str; 5] = ["serve", "--tls-cert", "/no.pem", "--tls-key", "/no.pem"];

#[tokio::test]
async fn wrong_usage_is_exit_code_2() {
    for args in
        [&["serve", "--no-such-flag"][..], &["no-such-command"], &["worker", "--models"], &NO_FILES]
    {
        let mut process = testkit::ChildProcess::start("wrong", crate::common::binary(), args);
        assert_eq!(process.exit().await, Some(2), "{args:?}");
    }
}
