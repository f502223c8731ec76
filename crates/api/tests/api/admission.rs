//! Refused requests, and the words of the refusals.

use axum::body::Body;
use http::{Method, Request};
use serde_json::Value;

use crate::kit::{Kit, json_of, text};

async fn refused(kit: &Kit, path: &str, body: &str) -> (u16, Value) {
    let request = Request::post(path).body(Body::from(body.to_owned())).unwrap();
    let response = kit.send(request).await;
    assert!(response.headers().contains_key("x-request-id"));
    json_of(response).await
}

#[tokio::test(start_paused = true)]
async fn bad_bodies_are_told_apart() {
    let kit = Kit::new();
    let bad = [
        ("", None),
        ("{", None),
        ("not json", None),
        ("[]", None),
        ("\"m\"", None),
        ("null", None),
        ("{\"messages\":[]}", Some("model")),
        ("{\"model\":7}", Some("model")),
        ("{\"model\":null}", Some("model")),
        ("{\"model\":\"\"}", Some("model")),
        ("{\"model\":[\"m\"]}", Some("model")),
        ("{\"model\":\"m\",\"stream\":\"yes\"}", Some("stream")),
        ("{\"model\":\"m\",\"stream\":1}", Some("stream")),
        ("{\"model\":\"m\"} trailing", None),
    ];
    for (body, param) in bad {
        for path in ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] {
            let (status, error) = refused(&kit, path, body).await;
            assert_eq!(status, 400, "{body}");
            assert_eq!(error["error"]["type"], "invalid_request_error");
            assert_eq!(error["error"]["param"].as_str(), param, "{body}: {error}");
        }
        let (status, error) = refused(&kit, "/v1/messages", body).await;
        assert_eq!((status, &error["type"]), (400, &Value::from("error")), "{body}");
        assert_eq!(error["error"]["type"], "invalid_request_error", "{body}: {error}");
    }
    let (_, error) = refused(&kit, "/v1/chat/completions", "{\n  \"model\": m}").await;
    assert!(error["error"]["message"].as_str().unwrap().contains("line 2"), "{error}");
    let long = format!("{{\"model\":\"{}\"}}", "m".repeat(1_000));
    assert_eq!(refused(&kit, "/v1/chat/completions", &long).await.0, 400);
    let latin: &[u8] = b"{\"model\":\"m\xe9\"}";
    let latin = Request::post("/v1/chat/completions").body(Body::from(latin)).unwrap();
    assert_eq!(kit.send(latin).await.status(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_told_in_each_apis_shape() {
    let kit = Kit::new();
    let of = |length: usize| {
        let body = |pad: usize| format!(r#"{{"model":"nobody","pad":"{}"}}"#, "x".repeat(pad));
        body(length - body(0).len())
    };
    let (limit, over) = (of(1 << 20), of((1 << 20) + 1));
    assert_eq!(refused(&kit, "/v1/chat/completions", &limit).await.0, 404, "it is read");
    assert_eq!(refused(&kit, "/v1/chat/completions", &over).await.0, 413);
    let (status, error) = refused(&kit, "/v1/messages", &over).await;
    assert_eq!((status, &error["error"]["type"]), (413, &Value::from("request_too_large")));
    // In pieces, so that the length is not known before it is too long.
    let pieces = over.into_bytes();
    let pieces: Vec<_> =
        pieces.chunks(9_999).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    let pieces = Body::from_stream(futures_util::stream::iter(pieces));
    let request = Request::post("/v1/chat/completions").body(pieces).unwrap();
    assert_eq!(kit.send(request).await.status(), 413);
}

#[tokio::test(start_paused = true)]
async fn only_json_is_read_however_it_is_written() {
    let kit = Kit::new();
    for (content_type, status) in [
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/xml", 415),
        ("application/json; charset=utf-8", 404),
        ("Application/JSON", 404),
    ] {
        let request = Request::post("/v1/chat/completions").header("content-type", content_type);
        let request = request.body(Body::from(r#"{"model":"nobody"}"#)).unwrap();
        assert_eq!(kit.send(request).await.status().as_u16(), status, "{content_type}");
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
        (Method::PUT, "/v1/chat/completions", 405),
        (Method::DELETE, "/v1/chat/completions", 405),
        (Method::PATCH, "/v1/chat/completions", 405),
        (Method::PUT, "/v1/messages", 405),
        (Method::POST, "/v1/models", 405),
        (Method::POST, "/v1/nothing", 404),
        (Method::POST, "/v1/chat", 404),
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
