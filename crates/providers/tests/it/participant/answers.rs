//! Requests out, answers in.

use std::time::Duration;

use base::Endpoint;
use http::Method;
use protocol::room::selector;
use scheduler::Ending;
use serde_json::json;

use super::kit::{Far, Kit, read};
const NO_PATH: &str = "eyJkZXRhaWwiOiJOb3QgRm91bmQifQ=="; // {"detail":"Not Found"}

#[tokio::test(start_paused = true)]
async fn a_request_is_what_stock_servers_send() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let answer = kit.ask();
    let request = far.hear().await;
    assert_eq!(
        request,
        json!({
            "type": "tunnel.request", "requestId": answer.job().to_string(),
            "operation": "chat.completions.create", "method": "POST",
            "path": "/v1/chat/completions", "headers": {"Content-Type": "application/json"},
            "body": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
            "stream": false,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_about_an_earlier_answer_has_its_method_and_no_body() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 2).await;
    let _got = kit.ask_about(Method::GET, "/v1/responses/resp_1?include=x");
    let request = far.hear().await;
    assert_eq!(
        (&request["method"], &request["operation"]),
        (&json!("GET"), &json!("responses.get"))
    );
    assert_eq!(request["path"], "/v1/responses/resp_1?include=x");
    assert!(request.get("body").is_none());
    let _canceled = kit.ask_about(Method::POST, "/v1/responses/resp_1/cancel");
    assert_eq!(far.hear().await["operation"], "responses.cancel");
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_as_it_is_sent_with_the_headers_that_it_needs() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.say(&json!({
        "type": "tunnel.response.start", "requestId": id, "status": 429,
        "headers": {
            "Content-Type": "text/event-stream", "content-encoding": "gzip", "content-length": "9",
            "retry-after": "7", "set-cookie": "a=b", "location": "http://elsewhere/",
        },
    }));
    // Cut within a character.
    far.chunk(&id, "w6nD");
    far.settle().await;
    let head = answer.head().await.unwrap();
    assert_eq!(head.status, 429);
    let names: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["content-type", "retry-after"]);
    far.chunk(&id, "qQ==");
    far.end(&id);
    far.drive();
    let mut body = Vec::new();
    while let scheduler::Event::Chunk(chunk) = answer.next().await {
        body.extend_from_slice(&chunk);
    }
    assert_eq!(String::from_utf8(body).unwrap(), "éé");
}

#[tokio::test(start_paused = true)]
async fn several_requests_at_once_do_not_mix() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 3).await;
    let mut answers = [kit.ask(), kit.ask(), kit.ask()];
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(far.request().await);
    }
    for id in ids.iter().rev() {
        far.start(id, 200);
    }
    for (id, chunk) in ids.iter().zip(["YQ==", "Yg==", "Yw=="]) {
        far.chunk(id, chunk);
        far.chunk(id, chunk);
    }
    ids.iter().for_each(|id| far.end(id));
    far.drive();
    for (answer, body) in answers.iter_mut().zip(["aa", "bb", "cc"]) {
        assert_eq!(read(answer).await.whole(), (200, body));
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_at_once_is_all_that_a_stock_participant_gets() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let (mut first, mut second) = (kit.ask(), kit.ask());
    let id = far.request().await;
    far.settle().await;
    far.answer(&id);
    let id = far.request().await;
    far.answer(&id);
    far.drive();
    assert_eq!(read(&mut first).await.whole(), (200, "hi"));
    assert_eq!(read(&mut second).await.whole(), (200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn it_is_found_under_its_id_its_models_and_for_anybody_and_asked_for_its_own_model() {
    let mut kit = Kit::new();
    kit.join("a", |joining| {
        joining.models = vec!["m".to_owned(), "n".to_owned()];
        joining.max_concurrent = 3;
    });
    let mut far = kit.tunnel("a").await;
    let named = selector::participant_name("a");
    for (name, model) in [(selector::ANY, "m"), (&*named, "m"), ("n", "n")] {
        let answer = kit.ask_for(name);
        assert_eq!(far.hear().await["body"]["model"], model);
        drop(answer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_endpoint_is_learnt_and_no_client_sees_it() {
    for status in [404, 405, 501] {
        let mut kit = Kit::new();
        let mut far = kit.participant("a", 1).await;
        let mut answer = kit.ask_responses();
        let request = far.hear().await;
        assert_eq!(request["path"], "/v1/responses");
        let id = request["requestId"].as_str().unwrap();
        far.start(id, status);
        far.chunk(id, NO_PATH);
        far.end(id);
        let second = far.hear().await;
        assert_eq!(second["path"], "/v1/chat/completions");
        far.answer(second["requestId"].as_str().unwrap());
        far.settle().await;
        assert_eq!(read(&mut answer).await.whole(), (200, "hi"));
        let _next = kit.ask_responses();
        assert_eq!(far.hear().await["path"], "/v1/chat/completions", "it is remembered");
    }
}

/// Answers the next request for a response with a 404; returns the path that was asked.
async fn refuse(far: &mut Far, body: &str) -> String {
    let request = far.hear().await;
    let id = request["requestId"].as_str().unwrap();
    far.start(id, 404);
    far.chunk(id, body);
    far.end(id);
    request["path"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_missing_endpoint_is_tried_again_and_the_last_one_stays() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    for _ in 0..2 {
        let mut answer = kit.ask_responses();
        assert_eq!(refuse(&mut far, NO_PATH).await, "/v1/responses");
        assert_eq!(refuse(&mut far, NO_PATH).await, "/v1/chat/completions");
        far.settle().await;
        assert_eq!(read(&mut answer).await.whole(), (404, "{\"detail\":\"Not Found\"}"));
        // It is alive for a minute.
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            far.say(&json!({"type": "tunnel.ping", "timestamp": 1}));
            assert_eq!(far.hear().await["type"], "tunnel.pong");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_before_the_head_is_a_failure_and_after_it_one_in_mid_stream() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.fail(&id, "fetch failed");
    far.settle().await;
    let failed = read(&mut answer).await;
    assert_eq!((failed.status(), failed.detail()), (0, "fetch failed"));
    assert_eq!(failed.failure.unwrap().ending, Ending::ProviderFailed);
    let mut answer = kit.ask();
    let id = far.request().await;
    far.start(&id, 200);
    far.chunk(&id, "aGk=");
    far.fail(&id, "the backend died");
    far.settle().await;
    let failed = read(&mut answer).await;
    assert_eq!((failed.status(), &*failed.body), (200, "hi"));
    assert_eq!(failed.detail(), "the backend died");
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_client_that_left_before_it_was_sent_is_not_sent() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    drop(kit.ask());
    let answer = kit.ask();
    assert_eq!(far.request().await, answer.job().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_json_is_the_clients_fault() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let body = "{\"model\":".to_owned();
    let mut answer = kit.submit(selector::ANY, Endpoint::ChatCompletions, Method::POST, "", body);
    far.settle().await;
    let refused = read(&mut answer).await;
    let (status, body) = refused.whole();
    assert!(status == 400 && body.contains("the body is not JSON"), "{status} {body}");
}
