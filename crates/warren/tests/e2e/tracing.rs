//! Traces of requests: from the client over the server and the worker to the backend.

use serde_json::json;
use testkit::{ChildProcess, Collector, Form, MockBackend, Reply, TakenSpan};

use crate::common::{CHAT, ask, binary, join, serve};

/// The header of a client that traces.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// The span of this name from this service.
#[track_caller]
fn find<'a>(spans: &'a [TakenSpan], service: &str, name: &str) -> &'a TakenSpan {
    let is_it = |span: &&TakenSpan| span.resource["service.name"] == service && span.name == name;
    spans.iter().find(is_it).unwrap_or_else(|| panic!("{name} of {service} in {spans:#?}"))
}

/// One trace has the request, its wait, its attempt, and the worker's request to the backend, each below the one that
/// caused it; and nothing of what was said.
#[tokio::test]
async fn one_trace_leads_from_the_client_to_the_backend() {
    let collector = Collector::start().await;
    let daemon = serve().set("--otlp-endpoint", &collector.url()).start().await;
    let backend = MockBackend::start(&["m"]).await;
    let usage = json!({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5});
    let said = json!({"role": "assistant", "content": "an-answer-nobody-else-may-read"});
    let choices = json!([{"index": 0, "message": said, "finish_reason": "stop"}]);
    let answer =
        json!({"id": "c", "object": "chat.completion", "choices": choices, "usage": usage});
    backend.answer_with(move |_| Reply::json(200, &answer));
    let (server, at, to) = (daemon.url(), backend.url(), collector.url());
    let secret = testkit::daemon::WORKER_SECRET;
    let args = [
        "worker",
        "--server",
        &server,
        "--secret",
        secret,
        "--backend",
        &at,
        "--otlp-endpoint",
        &to,
    ];
    let _worker = ChildProcess::start("worker", binary(), &args);
    daemon.has_workers(1).await;

    let content = "a-prompt-nobody-else-may-read";
    let question = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    let client = daemon.client().with_header("traceparent", &traceparent("01"));
    assert_eq!(client.post_json(CHAT, &question).await.status, 200);
    let spans = collector.has_spans(4).await;
    assert_eq!(spans.len(), 4, "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    assert!(spans.iter().all(|span| span.start <= span.end && span.error.is_none()), "{spans:#?}");
    let request = find(&spans, "warren-server", "chat m");
    let queue = find(&spans, "warren-server", "queue");
    let attempt = find(&spans, "warren-server", "attempt");
    let asked = find(&spans, "warren-worker", "chat m");
    assert_eq!(request.parent, PARENT);
    assert_eq!((&queue.parent, &attempt.parent), (&request.id, &request.id));
    assert_eq!(asked.parent, attempt.id);
    let kinds = [request.kind, queue.kind, attempt.kind, asked.kind];
    assert_eq!(kinds, [2, 1, 3, 3], "server, internal, client, client");
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.response.model", "m"),
        ("gen_ai.usage.input_tokens", "2"),
        ("gen_ai.usage.output_tokens", "3"),
        ("http.response.status_code", "200"),
        ("warren.outcome", "answered"),
        ("url.path", CHAT),
    ] {
        assert_eq!(request.text(name), Some(value), "{name}");
    }
    assert!(
        attempt.text("warren.provider.name").is_some()
            && attempt.text("warren.first_byte_ms").is_some()
    );
    assert_eq!(asked.text("http.response.status_code"), Some("200"));
    let received = loop {
        let received = backend.request().await;
        if received.json()["messages"][0]["content"] == content {
            break received;
        }
    };
    let expected = format!("00-{TRACE}-{}-01", asked.id);
    assert_eq!(received.header("traceparent"), Some(expected.as_str()));
    for secret in [&b"nobody-else-may-read"[..], secret.as_bytes()] {
        assert!(!collector.was_told(secret));
    }
    assert!(daemon.metrics().await.contains("warren_spans_dropped_total 0"));
}

/// A job that loses its worker has two attempts; each worker hears of its own.
#[tokio::test]
async fn a_job_that_moves_has_an_attempt_for_each_worker() {
    let collector = Collector::start().await;
    let daemon = serve().set("--otlp-endpoint", &collector.url()).start().await;
    let mut first = join(&daemon, Form::Binary, "first", 1).await;
    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post_json(CHAT, &ask(false)).await });
    let lost = first.expect_job().await;
    let mut second = join(&daemon, Form::Binary, "second", 1).await;
    first.close().await;
    let job = second.expect_job().await;
    second
        .complete(&job, 200, &json!({"id": "c", "object": "chat.completion", "choices": []}))
        .await;
    assert_eq!(asked.await.unwrap().status, 200);
    let spans = collector.has_spans(5).await;
    let request = find(&spans, "warren-server", "chat m");
    assert_eq!((request.parent.as_str(), request.text("warren.requeues")), ("", Some("1")));
    let attempts: Vec<&TakenSpan> = spans.iter().filter(|span| span.name == "attempt").collect();
    assert_eq!(attempts.len(), 2, "{spans:#?}");
    for (attempt, (number, of)) in attempts.iter().zip([("1", &lost), ("2", &job)]) {
        assert_eq!(attempt.text("warren.attempt"), Some(number));
        assert_eq!((&attempt.parent, &attempt.trace), (&request.id, &request.trace));
        let told = format!("00-{}-{}-01", attempt.trace, attempt.id);
        assert_eq!(of.header("traceparent"), Some(told.as_str()));
    }
    assert!(attempts[0].error.is_some() && attempts[1].error.is_none());
    assert_eq!(spans.iter().filter(|span| span.name == "queue").count(), 2, "it waited twice");
}

/// Nothing is recorded of what a client does not trace, and nothing changes where there is no collector.
#[tokio::test]
async fn who_does_not_trace_is_not_traced() {
    let collector = Collector::start().await;
    let url = collector.url();
    let daemon = serve().set("--otlp-endpoint", &url).set("--otlp-sample", "0").start().await;
    let plain = serve().start().await;
    for (server, flags) in [(&daemon, "00"), (&plain, "01")] {
        let mut worker = join(server, Form::Binary, "w", 1).await;
        let client = server.client().with_header("traceparent", &traceparent(flags));
        let asked = tokio::spawn(async move { client.post_json(CHAT, &ask(false)).await });
        let job = worker.expect_job().await;
        assert_eq!(job.header("traceparent"), Some(&*traceparent(flags)), "it passes as it came");
        worker.complete(&job, 200, &json!({"id": "c", "choices": []})).await;
        assert_eq!(asked.await.unwrap().status, 200);
    }
    let mut worker = join(&daemon, Form::Binary, "v", 1).await;
    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post_json(CHAT, &ask(false)).await });
    let job = worker.expect_job().await;
    assert_eq!(job.header("traceparent"), None);
    worker.complete(&job, 200, &json!({"id": "c", "choices": []})).await;
    assert_eq!(asked.await.unwrap().status, 200);
    daemon.sigterm();
    let mut daemon = daemon;
    assert_eq!(daemon.exit().await, Some(0));
    assert!(collector.spans().is_empty(), "{:#?}", collector.spans());
    assert!(!plain.metrics().await.contains("warren_spans"));
    let wrong = serve().set("--otlp-endpoint", "localhost:4317").spawn();
    wrong.line_with("no address of a collector").await;
}

/// A collector that is away holds nobody up, and the last spans of a server reach one that is there.
#[tokio::test]
async fn a_collector_is_not_waited_for() {
    let daemon = serve().set("--otlp-endpoint", "http://127.0.0.1:9").start().await;
    let mut worker = join(&daemon, Form::Binary, "w", 1).await;
    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post_json(CHAT, &ask(false)).await });
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"id": "c", "choices": []})).await;
    assert_eq!(asked.await.unwrap().status, 200);
    daemon.line_with("takes no spans").await;
    daemon.sigterm();
    let mut daemon = daemon;
    assert_eq!(daemon.exit().await, Some(0));

    let collector = Collector::start().await;
    let mut daemon = serve().set("--otlp-endpoint", &collector.url()).start().await;
    let mut worker = join(&daemon, Form::Binary, "w", 1).await;
    let client = daemon.client();
    let asked = tokio::spawn(async move { client.post_json(CHAT, &ask(false)).await });
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"id": "c", "choices": []})).await;
    assert_eq!(asked.await.unwrap().status, 200);
    daemon.sigterm();
    assert_eq!(daemon.exit().await, Some(0));
    let names: Vec<String> = collector.spans().into_iter().map(|span| span.name).collect();
    assert!(names.contains(&"chat m".to_owned()), "{names:?}");
}
