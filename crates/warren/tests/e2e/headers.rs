//! Which headers pass, and which do not.

use serde_json::json;
use testkit::{Form, MockBackend, Reply};

use crate::common::{CHAT, MESSAGES, both_forms, lend, post, serve, with_worker};

both_forms!(a_backends_own_request_id_reaches_the_client);

const SECRET: [(&str, &str); 5] = [
    ("authorization", "Bearer key-1"),
    ("x-api-key", "key-1"),
    ("cookie", "session=1"),
    ("proxy-authorization", "Basic eDp5"),
    ("x-worker-secret", "let-me-in"),
];

const HOP_BY_HOP: [(&str, &str); 6] = [
    ("connection", "keep-alive, x-only-here"),
    ("keep-alive", "timeout=5"),
    ("x-only-here", "1"),
    ("te", "trailers"),
    ("trailer", "x-sum"),
    ("proxy-connection", "keep-alive"),
];

const PASSED: [(&str, &str); 3] =
    [("anthropic-beta", "tools"), ("x-custom", "1"), ("user-agent", "test/1")];

#[tokio::test]
async fn a_backend_never_sees_the_clients_credentials() {
    let daemon = serve().set("--client-token", "key-1").start().await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 1).await;
    let mut request = daemon.client().post(CHAT, &json!({"model": "m"}));
    for (name, value) in SECRET.into_iter().chain(HOP_BY_HOP).chain(PASSED) {
        request = request.header(name, value);
    }
    let chunked = [("transfer-encoding", "chunked"), ("connection", "close"), ("x-back", "1")];
    let mut reply = b"HTTP/1.1 200 OK\r\n".to_vec();
    for (name, value) in chunked {
        reply.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    reply.extend_from_slice(b"\r\n2\r\n{}\r\n0\r\n\r\n");
    backend.then(Reply::raw(reply));
    let answer = request.send().await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    assert_eq!((answer.header("x-back"), answer.header("connection")), (Some("1"), None));
    let got = backend.request().await;
    for (name, _) in SECRET {
        assert_eq!(got.header(name), None, "{name} reached the backend");
    }
    for (name, value) in PASSED {
        assert_eq!(got.header(name), Some(value));
    }
    let host = backend.address().to_string();
    assert_eq!(got.header("host"), Some(host.as_str()), "the backend's own");
    assert_eq!(got.header("x-only-here"), None);
}

/// On Anthropic's paths `request-id` is the id that the people who run the backend can look up. The
/// job's own id is sent beside it, and replaces it if the backend has none.
async fn a_backends_own_request_id_reaches_the_client(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    for given in [Some("req_011CSHoEeqs5C35K2UUqR7Fy"), None] {
        let answer = post(&daemon.client(), MESSAGES, json!({"model": "m"}));
        let job = worker.expect_job().await;
        let id = given.map(|id| ("request-id", id));
        let headers: Vec<_> =
            [("content-type", "application/json")].into_iter().chain(id).collect();
        worker.complete_with(&job, 200, &headers, "{}").await;
        let answer = answer.await.unwrap();
        assert_eq!(answer.header("x-request-id"), Some(job.request_id.as_str()));
        assert_eq!(answer.header("request-id"), Some(given.unwrap_or(&job.request_id)));
    }
}

/// Each answer carries an id that also stands in the log, and that nobody can guess.
#[tokio::test]
async fn every_answer_has_a_request_id() {
    let (daemon, mut worker) = with_worker(Form::Stock, 1).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = post(&daemon.client(), CHAT, json!({"model": "m"}));
        let job = worker.expect_job().await;
        worker.complete(&job, 200, &json!({})).await;
        let answer = answer.await.unwrap();
        assert_eq!(answer.header("x-request-id"), Some(job.request_id.as_str()));
        ids.push(job.request_id);
    }
    assert!(ids[0].len() >= 32 && ids[0] != ids[1], "{ids:?}");
    let refused = daemon.client().post_json(CHAT, &json!({"model": "unknown"})).await;
    assert!(refused.header("x-request-id").is_some());
}
