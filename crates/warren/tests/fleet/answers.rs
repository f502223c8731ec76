//! Requests at one server, answered by a worker of another.

use serde_json::json;
use testkit::{Connect, DEADLINE, Form, MockBackend, Reply, WorkerProcess, eventually};

use crate::servers::{
    CHAT, ask, asked, binary, completion, delta, has_workers, own_group, two, worker,
};

#[tokio::test]
async fn a_plain_request_is_answered_by_the_other_servers_worker() {
    let (one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 2, &[&other]).await;
    let answer = asked(&other, false);
    let job = lent.expect_job().await;
    assert_eq!((job.model.as_str(), job.path.as_str(), job.streaming), ("m", CHAT, false));
    assert_eq!(&job.body[..], ask(false).to_string().as_bytes());
    lent.complete(&job, 200, &completion("hello")).await;
    let answer = answer.await.unwrap().finish().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
    let id = answer.header("x-request-id").unwrap().to_owned();
    for server in [&one, &other] {
        server.line_with(&format!("request_id={id}")).await;
    }
}

#[tokio::test]
async fn a_stream_arrives_chunk_by_chunk() {
    let (one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 2, &[&other]).await;
    let answer = asked(&other, true);
    let job = lent.expect_job().await;
    lent.begin(&job, 200, &[("content-type", "text/event-stream")]).await;
    let mut answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    for text in ["a", "b", "c"] {
        lent.chunk(&job, &delta(text)).await;
        answer.expect(&delta(text)).await;
    }
    lent.chunk(&job, "data: [DONE]\n\n").await;
    lent.finish(&job).await;
    assert!(answer.finish().await.text().ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_request_of_another_api_is_translated_at_home() {
    let (one, other) = two(&own_group()).await;
    let mut lent = Connect::to(&one).form(Form::Binary).open().await.unwrap();
    lent.register_as(&json!({
        "type": "register", "worker_name": "gpu", "models": ["m"], "max_concurrent": 1,
        "protocol_version": "1", "current_load": 0, "endpoints": [CHAT],
    }))
    .await;
    has_workers(&other, 1).await;
    let body =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let request = other.client().post("/v1/messages", &body);
    let answer = tokio::spawn(request.start());
    let job = lent.expect_job().await;
    assert_eq!(job.path, CHAT, "{}", String::from_utf8_lossy(&job.body));
    lent.complete(&job, 200, &completion("hello")).await;
    let answer = answer.await.unwrap().finish().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["content"][0]["text"], "hello");
}

#[tokio::test]
async fn a_large_request_and_a_large_answer_arrive_whole() {
    let (one, other) = two(&own_group()).await;
    let backend = MockBackend::start(&["m"]).await;
    let text = "x".repeat(3 << 20);
    let reply = completion(&text);
    backend.answer_with(move |_| Reply::json(200, &reply));
    let _worker = WorkerProcess::start(binary(), &one.url(), &backend.url(), "gpu", &[]);
    has_workers(&other, 1).await;
    let long = "y".repeat(10 << 20);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": long}]});
    let answer = other.client().post_json(CHAT, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text().get(..200).unwrap_or_default());
    let received = backend.request().await;
    assert_eq!(received.json()["messages"][0]["content"].as_str().unwrap().len(), long.len());
    let content = &answer.json()["choices"][0]["message"]["content"];
    assert_eq!(content.as_str().unwrap().len(), text.len());
}

#[tokio::test]
async fn the_models_of_all_servers_are_listed_everywhere() {
    let (one, other) = two(&own_group()).await;
    let _of_one = worker(&one, 1, &[&other]).await;
    let mut of_other = Connect::to(&other).form(Form::Binary).join("cpu", &["n"], 1).await;
    let listed = async |models: &[&str]| {
        for server in [&one, &other] {
            let so = async || {
                let all = server.client().get("/v1/models").await.json();
                let names: Vec<_> = all["data"].as_array().unwrap().iter().collect();
                names.iter().map(|it| it["id"].as_str().unwrap()).eq(models.iter().copied())
            };
            eventually("the list of models", DEADLINE, so).await;
        }
    };
    listed(&["m", "n"]).await;
    of_other.update_models(&["n", "o"], 0).await;
    listed(&["m", "n", "o"]).await;
    drop(of_other);
    listed(&["m"]).await;
}
