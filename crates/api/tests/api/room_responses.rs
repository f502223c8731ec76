//! Responses asked for again: only their maker gets them.

use std::sync::Arc;

use axum::body::Body;
use base::Endpoint;
use http::{Method, Request};
use rooms::Room;
use serde_json::json;

use crate::{
    kit::{Kit, head, text},
    room_kit::{EVENTS, JSON, answer_of, path},
};

const NATIVE: &[Endpoint] = &[Endpoint::Responses];
const ASK: &str = r#"{"model":"one","input":"hi"}"#;

fn request(room: &Room, method: Method, rest: &str) -> Request<Body> {
    let uri = path(room, &format!("/v1/responses/{rest}"));
    Request::builder().method(method).uri(uri).body(Body::empty()).unwrap()
}

/// Has a participant make a response that answers with this.
async fn make(kit: &mut Kit, room: &Arc<Room>, kind: (&'static str, &'static str), answer: &str) {
    let uri = path(room, "/v1/responses");
    let response = kit.post_for_all(&uri, ASK, head(&[kind]), answer.to_owned()).await;
    assert_eq!(text(response).await, answer);
}

#[tokio::test(start_paused = true)]
async fn a_response_is_asked_for_again_of_the_participant_that_made_it() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let one = kit.lends(&room, "one", &["a"], NATIVE);
    let _two = kit.lends(&room, "two", &["a"], NATIVE);
    make(&mut kit, &room, JSON, r#"{"id":"resp_1","object":"response"}"#).await;
    let stream = "event: response.created\ndata: {\"response\":{\"id\":\"resp_2\"}}\n\n";
    make(&mut kit, &room, EVENTS, stream).await;
    let cases = [
        (Method::GET, "resp_1?include=x&password=y", "/v1/responses/resp_1?include=x"),
        (Method::GET, "resp_2/input_items", "/v1/responses/resp_2/input_items"),
        (Method::POST, "resp_2/cancel", "/v1/responses/resp_2/cancel"),
        (Method::DELETE, "resp_1", "/v1/responses/resp_1"),
    ];
    for (method, given, sent) in cases {
        let request = request(&room, method.clone(), given);
        let (response, assignment) = kit.send_for(request, head(&[JSON])).await;
        assert_eq!(
            (&assignment.request.method, &*assignment.request.path_and_query),
            (&method, sent)
        );
        assert_eq!(assignment.endpoint, Endpoint::Responses);
        assert!(assignment.request.body.is_empty());
        assert_eq!(response.status(), 200);
        assignment.answer.end();
    }
    let gone = kit.answer(request(&room, Method::GET, "resp_1")).await;
    assert_eq!(gone, (404, json!({ "error": "Response not found" })), "it was deleted");
    for (query, streaming) in
        [("stream=true", true), ("include=x&stream=true", true), ("upstream=true", false)]
    {
        let request = request(&room, Method::GET, &format!("resp_2?{query}"));
        let (_response, assignment) = kit.send_for(request, head(&[JSON])).await;
        assert_eq!(assignment.request.streaming, streaming, "{query}");
        assignment.answer.end();
    }
    drop(one);
    let lost = kit.answer(request(&room, Method::GET, "resp_2")).await;
    assert_eq!(lost, (503, json!({ "error": "Participant tunnel is not connected" })));
}

#[tokio::test(start_paused = true)]
async fn unknown_responses_and_those_of_other_rooms_are_not_found() {
    let mut kit = Kit::new();
    let (room, other) = (kit.room(None), kit.room(None));
    let _one = kit.lends(&room, "one", &["a"], NATIVE);
    let _two = kit.lends(&other, "two", &["a"], NATIVE);
    make(&mut kit, &room, JSON, r#"{"id":"resp_1"}"#).await;
    for (room, id) in [(&room, "resp_9"), (&other, "resp_1"), (&room, "..%2f..%2fapi")] {
        let answer = kit.answer(request(room, Method::GET, id)).await;
        assert_eq!(answer, (404, json!({ "error": "Response not found" })), "{id}");
    }
    let (status, _) = kit.answer(request(&room, Method::PUT, "resp_1")).await;
    assert!((404..=405).contains(&status));
}

#[tokio::test(start_paused = true)]
async fn a_translated_response_is_kept_nowhere_and_says_so() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _one = kit.lends(&room, "one", &["a"], &[Endpoint::ChatCompletions]);
    let answer = json!({
        "id": "c", "object": "chat.completion", "model": "a",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hello"}}],
    });
    let uri = path(&room, "/v1/responses");
    let response = kit.post_for_all(&uri, ASK, head(&[JSON]), answer.to_string()).await;
    let (_, made) = answer_of(response).await;
    let id = made["id"].as_str().unwrap();
    let (status, error) = kit.answer(request(&room, Method::GET, id)).await;
    assert_eq!(status, 501);
    assert!(error["error"].as_str().unwrap().contains("chat/completions fallback"), "{error}");
}
