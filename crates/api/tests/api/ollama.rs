//! The jobs of Ollama's API: chat, generate, embed.

use std::time::Duration;

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use scheduler::{Distance, Head};
use serde_json::{Value, json};

use crate::{
    kit::{Kit, head, json_of, next, sent, text},
    room_kit::{EVENTS, JSON},
};

const CHAT: &[Endpoint] = &[Endpoint::ChatCompletions];

fn post(path: &str, body: &Value) -> Request<Body> {
    // As `curl -d` declares it.
    let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    request.body(Body::from(body.to_string())).unwrap()
}

fn chat(fields: &[(&str, Value)]) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    for (name, value) in fields {
        body[*name] = value.clone();
    }
    body
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
    "data: [DONE]\n\n",
);

#[tokio::test(start_paused = true)]
async fn a_chat_streams_unless_it_is_asked_not_to() {
    let mut kit = Kit::new();
    kit.serves(&["m"], CHAT);
    for body in [chat(&[]), chat(&[("stream", Value::Null)]), chat(&[("stream", true.into())])] {
        let (response, mut assignment) =
            kit.send_for(post("/api/chat", &body), head(&[EVENTS])).await;
        assert!(assignment.request.streaming, "{body}");
        assert_eq!(sent(&assignment)["stream"], true);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        assignment.answer.chunk(Bytes::from_static(STREAM.as_bytes())).unwrap();
        assignment.answer.end();
        let lines = lines(&text(response).await);
        let said: String =
            lines.iter().map(|line| line["message"]["content"].as_str().unwrap()).collect();
        assert_eq!((said.as_str(), lines.len()), ("hello", 3));
        assert_eq!((&lines[2]["done"], &lines[2]["eval_count"]), (&json!(true), &json!(2)));
    }
    let whole = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let body = chat(&[("stream", false.into())]).to_string();
    let response = kit.post_for_all("/api/chat", &body, head(&[JSON]), whole).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let (status, object) = json_of(response).await;
    assert_eq!(
        (status, &object["message"]["content"], &object["done"]),
        (200, &json!("hello"), &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn the_body_tells_ollamas_chat_from_the_node_protocols() {
    let mut kit = Kit::new();
    kit.serves(&["m"], CHAT);
    for (body, node) in [
        (chat(&[("max_new_tokens", 7.into())]), true),
        (chat(&[("temperature", 0.5.into()), ("system", "".into())]), true),
        (json!({"model": "m", "messages": ["hi"]}), true),
        (chat(&[]), false),
        (chat(&[("options", json!({"temperature": 0.5}))]), false),
        (chat(&[("temperature", 0.5.into()), ("stream", true.into())]), false),
    ] {
        let (response, mut assignment) =
            kit.send_for(post("/api/chat", &body), head(&[EVENTS])).await;
        assignment.answer.chunk(Bytes::from_static(STREAM.as_bytes())).unwrap();
        assignment.answer.end();
        let first = &lines(&text(response).await)[0];
        assert_eq!(
            (first.get("o").is_some(), first.get("message").is_some()),
            (node, !node),
            "{body}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_can_read_is_told_to_both() {
    let kit = Kit::new();
    for body in ["", "{", "[]", "7", "\u{1}"] {
        let request = Request::post("/api/chat").body(Body::from(body)).unwrap();
        let (status, answer) = json_of(kit.send(request).await).await;
        assert_eq!((status, &answer["err"]), (400, &json!("invalid request")), "{body}");
        assert_eq!(answer["error"], answer["message"], "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn generate_is_a_chat_and_a_raw_prompt_is_a_completion() {
    let mut kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::ChatCompletions, Endpoint::Completions]);
    let prompt =
        json!({"model": "m", "prompt": "hi", "system": "Be brief.", "options": {"num_predict": 5}});
    let (response, assignment) =
        kit.send_for(post("/api/generate", &prompt), head(&[EVENTS])).await;
    assert_eq!(assignment.request.path_and_query, "/v1/chat/completions");
    assert_eq!(
        (&sent(&assignment)["max_tokens"], &sent(&assignment)["messages"][1]["content"]),
        (&json!(5), &json!("hi"))
    );
    drop((response, assignment));
    for fields in [json!({"raw": true}), json!({"suffix": "}"})] {
        let mut body = json!({"model": "m", "prompt": "fn f() {"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (response, mut assignment) =
            kit.send_for(post("/api/generate", &body), head(&[EVENTS])).await;
        assert_eq!(assignment.request.path_and_query, "/v1/completions");
        assert_eq!(sent(&assignment)["prompt"], "fn f() {");
        let chunk = "data: {\"choices\":[{\"text\":\" 1 \",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        assignment.answer.chunk(Bytes::from_static(chunk.as_bytes())).unwrap();
        assignment.answer.end();
        assert_eq!(lines(&text(response).await)[0]["response"], " 1 ");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_of_chat_alone_cannot_serve_a_raw_prompt() {
    let kit = Kit::new();
    kit.serves(&["m"], CHAT);
    let body = json!({"model": "m", "prompt": "x", "suffix": "y"});
    let (status, answer) = json_of(kit.send(post("/api/generate", &body)).await).await;
    let words = answer["error"].as_str().unwrap();
    assert!(
        status == 400 && words.contains("`suffix`") && words.contains("`raw`"),
        "{status} {answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn vectors_come_in_both_forms() {
    let mut kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::Embeddings]);
    let answer = r#"{"data":[{"index":0,"embedding":[0.5]},{"index":1,"embedding":[1.5]}]}"#;
    for (path, body, expected) in [
        ("/api/embed", json!({"model": "m", "input": ["a", "b"]}), json!([[0.5], [1.5]])),
        (
            "/api/embeddings",
            json!({"model": "m:latest", "prompt": "a", "stream": true}),
            json!([0.5]),
        ),
    ] {
        let response = kit.post_for_all(path, &body.to_string(), head(&[JSON]), answer).await;
        let (status, answer) = json_of(response).await;
        let name = if path == "/api/embed" { "embeddings" } else { "embedding" };
        assert_eq!((status, &answer[name]), (200, &expected), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_asks_nothing_is_answered_without_a_job() {
    let kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::ChatCompletions, Endpoint::Embeddings]);
    for (path, fields, reason) in [
        ("/api/chat", json!({"messages": []}), "load"),
        ("/api/chat", json!({"keep_alive": "5m"}), "load"),
        ("/api/chat", json!({"messages": [], "keep_alive": 0}), "unload"),
        ("/api/generate", json!({}), "load"),
        ("/api/generate", json!({"prompt": "", "keep_alive": "0s"}), "unload"),
    ] {
        let mut body = fields.clone();
        body["model"] = "m:latest".into();
        let response = kit.send(post(path, &body)).await;
        assert!(response.headers().contains_key("x-request-id"));
        let (status, answer) = json_of(response).await;
        assert_eq!(
            (status, &answer["done_reason"], &answer["done"]),
            (200, &json!(reason), &json!(true)),
            "{path} {fields}"
        );
        assert_eq!(answer["model"], "m:latest");
    }
    for (path, name) in [("/api/embed", "embeddings"), ("/api/embeddings", "embedding")] {
        let (status, answer) = json_of(kit.send(post(path, &json!({"model": "m"}))).await).await;
        assert_eq!((status, &answer[name]), (200, &json!([])));
    }
    let (status, answer) =
        json_of(kit.send(post("/api/generate", &json!({"model": "nobody"}))).await).await;
    assert_eq!((status, &answer["error"]), (404, &json!("model 'nobody' not found")));
    let odd = json!({"model": "m", "keep_alive": {}});
    let (status, answer) = json_of(kit.send(post("/api/generate", &odd)).await).await;
    assert!(
        status == 400 && answer["error"].as_str().unwrap().contains("`keep_alive`"),
        "{answer}"
    );
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn errors_are_one_text_with_their_status() {
    let mut kit = Kit::new();
    kit.serves(&["m"], CHAT);
    for (path, body, status, words) in [
        ("/api/chat", chat(&[("model", "nobody".into())]), 404, "no provider for model nobody"),
        ("/api/chat", chat(&[("format", 7.into())]), 400, "`format`"),
        ("/api/chat", chat(&[("stream", "yes".into())]), 400, "`stream`"),
        ("/api/generate", json!({"model": "m", "prompt": "x", "context": [1]}), 400, "`context`"),
        ("/api/generate", json!({"model": 7, "prompt": "x"}), 400, "`model`"),
        ("/api/generate", json!({"prompt": "x"}), 400, "`model`"),
        ("/api/generate", json!([]), 400, "a JSON object"),
        ("/api/embed", json!({"model": "m", "input": "x"}), 404, "this endpoint"),
    ] {
        let (actual, answer) = json_of(kit.send(post(path, &body)).await).await;
        let answer = answer["error"].as_str().unwrap();
        assert!(actual == status && answer.contains(words), "{body}: {actual} {answer}");
    }
    let busy = Head { status: StatusCode::SERVICE_UNAVAILABLE, ..head(&[JSON]) };
    let (body, full) = (chat(&[]).to_string(), r#"{"error":{"message":"no room"}}"#);
    let response = kit.post_for_all("/api/chat", &body, busy, full).await;
    assert_eq!(json_of(response).await, (503, json!({"error": "no room"})));
    let kit = Kit::with(|rules, _| rules.require_key = true);
    let (status, answer) =
        json_of(kit.send(post("/api/generate", &json!({"model": "m"}))).await).await;
    assert!(status == 401 && answer["error"].is_string(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn silence_brings_a_space_and_a_lost_provider_an_error_line() {
    let mut kit = Kit::new();
    kit.serves(&["m"], CHAT);
    let (response, mut assignment) =
        kit.send_for(post("/api/chat", &chat(&[])), head(&[EVENTS])).await;
    let word = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    assignment.answer.chunk(Bytes::from_static(word)).unwrap();
    let mut body = response.into_body();
    let first = next(&mut body).await.unwrap().unwrap();
    assert!(first.ends_with(b"\n"));
    assert_eq!(next(&mut body).await.unwrap().unwrap(), " ");
    kit.lose_provider();
    let error = next(&mut body).await.unwrap().unwrap();
    assert_eq!(error, "{\"error\":\"the worker was lost while it answered\"}\n");
    assert!(next(&mut body).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_gets_lines_from_the_beginning() {
    let mut kit = Kit::with(|_, limits| limits.keepalive = Duration::from_secs(5));
    kit.serves(&["m"], CHAT);
    let waiting = tokio::spawn(kit.meanwhile(post("/api/chat", &chat(&[]))));
    let mut assignment = kit.assigned().await;
    let response = waiting.await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let mut body = response.into_body();
    let sign = next(&mut body).await.unwrap().unwrap();
    assignment.answer.head(head(&[EVENTS])).unwrap();
    assignment.answer.chunk(Bytes::from_static(STREAM.as_bytes())).unwrap();
    assignment.answer.end();
    let text = format!("{}{}", str::from_utf8(&sign).unwrap(), text(Response::new(body)).await);
    assert!(text.starts_with(' '), "{text:?}");
    assert_eq!(lines(&text).len(), 3, "a space before a line is no JSON of its own");
}

#[tokio::test(start_paused = true)]
async fn a_body_without_a_content_type_and_a_hang_up_are_like_everywhere() {
    let mut kit = Kit::new();
    kit.serves(&["m"], CHAT);
    let request = Request::post("/api/generate").body(Body::from(r#"{"model":"m","prompt":"x"}"#));
    let (response, _assignment) = kit.send_for(request.unwrap(), head(&[EVENTS])).await;
    drop(response);
    tokio::task::yield_now().await;
    assert!(kit.scheduler.is_idle(), "the job was cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_raw_prompt_is_judged_by_the_providers_that_its_own_route_reaches() {
    let kit = Kit::new();
    kit.serves(&["m"], CHAT);
    let far = kit.join(2, &["m"], &[Endpoint::Completions]);
    far.distance(Distance::Far);
    let mut request = post("/api/generate", &json!({"model": "m", "prompt": "x", "raw": true}));
    request.headers_mut().insert("x-warren-route", "local-only".parse().unwrap());
    let (status, answer) = json_of(kit.send(request).await).await;
    let words = answer["error"].as_str().unwrap();
    assert!(status == 400 && words.contains("`raw`"), "{status} {answer}");
}
