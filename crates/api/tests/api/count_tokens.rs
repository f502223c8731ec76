//! `POST /v1/messages/count_tokens`.

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use scheduler::Head;
use serde_json::{Value, json};

use crate::kit::{Kit, head, text};

const PATH: &str = "/v1/messages/count_tokens";
const ASK: &str = r#"{"model":"m","messages":[{"role":"user","content":"how many are these?"}]}"#;

async fn counted(response: Response<Body>) -> (bool, Value) {
    let estimated =
        response.headers().get("x-warren-usage").is_some_and(|value| value == "estimated");
    (estimated, serde_json::from_str(&text(response).await).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_counts_is_asked() {
    let mut kit = Kit::new();
    let json = head(&[("content-type", "application/json")]);
    let (response, mut assignment) = kit.post_for(PATH, ASK, json).await;
    assert_eq!(
        (assignment.endpoint, &*assignment.request.body),
        (Endpoint::CountTokens, ASK.as_bytes())
    );
    assignment.answer.chunk(Bytes::from_static(br#"{"input_tokens":5}"#)).unwrap();
    assignment.answer.end();
    assert_eq!(counted(response).await, (false, json!({"input_tokens": 5})));
}

#[tokio::test(start_paused = true)]
async fn an_estimate_is_marked_as_one_where_nobody_counts() {
    let mut kit = Kit::new();
    let missing = Head { status: StatusCode::NOT_FOUND, ..head(&[]) };
    let (response, _assignment) = kit.post_for(PATH, ASK, missing).await;
    let (estimated, first) = counted(response).await;
    assert!(estimated && first["input_tokens"].as_u64().unwrap() > 3, "{first}");
    kit.serves(&["m"], &[Endpoint::ChatCompletions]);
    let again = || Request::post(PATH).body(Body::from(ASK)).unwrap();
    assert_eq!(counted(kit.send(again()).await).await, (true, first.clone()));
    kit.lose_provider();
    assert_eq!(counted(kit.send(again()).await).await, (true, first), "no model is needed");
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_is_refused_in_the_apis_shape() {
    let mut kit = Kit::new();
    kit.lose_provider();
    for bad in [r#"{"model":"m"}"#, r#"{"messages":[]}"#] {
        let response = kit.send(Request::post(PATH).body(Body::from(bad)).unwrap()).await;
        assert_eq!(response.status(), 400, "{bad}");
        let error: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(error["error"]["type"], "invalid_request_error");
    }
}
