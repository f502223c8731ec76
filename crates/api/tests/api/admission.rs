//! Refused requests, and the words of the refusals.

use axum::body::Body;
use http::{Method, Request};
use serde_json::Value;

use crate::kit::{Kit, text};

async fn refused(kit: &Kit, path: &str, body: &str) -> (u16, Value) {
    let request = Request::post(path).body(Body::from(body.to_owned())).unwrap();
    let response = kit.send(request).await;
    assert!(response.headers().contains_key("x-request-id"));
    let status = response.status().as_u16();
    (status, serde_json::from_str(&text(response).await).unwrap())
}

#[tokio::test(start_paused = true)]
async fn bad_bodies_are_told_apart() {
    let kit = Kit::new();
    let bad = [
        ("", None),
        ("{", None),
        ("[]", None),
        ("{\"messages\":[]}", Some("model")),
        ("{\"model\":7}", Some("model")),
        ("{\"model\":\"m\",\"stream\":\"yes\"}", Some("stream")),
    ];
    for (body, param) in bad {
        let (status, error) = refused(&kit, "/v1/chat/completions", body).await;
        assert_eq!(status, 400, "{body}");
        assert_eq!(error["error"]["type"], "invalid_request_error");
        assert_eq!(error["error"]["param"].as_str(), param, "{body}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_api_has_its_own_error_shape() {
    let kit = Kit::new();
    let unknown = r#"{"model":"nobody"}"#;
    for path in ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] {
        let (status, error) = refused(&kit, path, unknown).await;
        assert_eq!(status, 404);
        assert_eq!(error["error"]["message"], "no provider for model nobody");
        assert_eq!(error["error"]["code"], "model_not_found");
    }
    let (status, error) = refused(&kit, "/v1/messages", unknown).await;
    assert_eq!((status, &error["type"]), (404, &Value::from("error")));
    assert_eq!(error["error"]["type"], "not_found_error");
    assert_eq!(error["error"]["message"], "no provider for model nobody");
}

#[tokio::test(start_paused = true)]
async fn wrong_methods_and_paths_are_told() {
    let kit = Kit::new();
    let cases = [
        (Method::GET, "/v1/chat/completions", 405),
        (Method::PUT, "/v1/messages", 405),
        (Method::POST, "/v1/models", 405),
        (Method::POST, "/v1/nothing", 404),
        (Method::GET, "/v1/chat/completions/", 404),
    ];
    for (method, path, status) in cases {
        let request =
            Request::builder().method(method.clone()).uri(path).body(Body::empty()).unwrap();
        let response = kit.send(request).await;
        assert_eq!(response.status().as_u16(), status, "{method} {path}");
        assert_eq!(response.headers().contains_key("allow"), status == 405);
        assert!(text(response).await.starts_with('{'));
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_asked_for_in_each_apis_shape() {
    let kit = Kit::with(|rules, _| rules.require_key = true);
    let (status, error) = refused(&kit, "/v1/chat/completions", "{}").await;
    assert_eq!((status, &error["error"]["code"]), (401, &Value::from("invalid_api_key")));
    let (status, error) = refused(&kit, "/v1/messages", "{}").await;
    assert_eq!((status, &error["error"]["type"]), (401, &Value::from("authentication_error")));
}

#[tokio::test(start_paused = true)]
async fn a_pin_must_be_a_workers_id() {
    let kit = Kit::new();
    let request = |pin: &str| {
        let body = Body::from(r#"{"model":"m"}"#);
        Request::post("/v1/chat/completions").header("x-warren-provider", pin).body(body).unwrap()
    };
    assert_eq!(kit.send(request("gpu")).await.status(), 400);
    assert_eq!(kit.send(request("w-00000000000000ff")).await.status(), 404);
}
