//! Gemini's API: its paths, both forms of its streams, its errors, keys and models.

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::kit::{Kit, head, json_of, next, sent, text};

const CHAT: Endpoint = Endpoint::ChatCompletions;
const WHOLE: &str = "/v1beta/models/m:generateContent";
const ARRAY: &str = "/v1beta/models/m:streamGenerateContent";
const EVENTS: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";
const ASK: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;

const CHUNKS: [&str; 3] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
];

fn chat_only() -> Kit {
    let kit = Kit::new();
    kit.serves(&["m"], &[CHAT]);
    kit
}

fn post(path: &str, body: &str) -> Request<Body> {
    Request::post(path).body(Body::from(body.to_owned())).unwrap()
}

/// The answer to a request that is answered whole; what its provider was sent, and where.
async fn answered(
    kit: &mut Kit,
    (path, body): (&str, &str),
    answer: &'static str,
) -> ((u16, Value), Value, Endpoint) {
    let response = tokio::spawn(kit.meanwhile(post(path, body)));
    let mut assignment = kit.assigned().await;
    let json_head = head(&[("content-type", "application/json"), ("content-length", "999")]);
    assignment.answer.head(json_head).unwrap();
    assignment.answer.chunk(Bytes::from_static(answer.as_bytes())).unwrap();
    let (sent, endpoint) = (sent(&assignment), assignment.endpoint);
    assignment.answer.end();
    (json_of(response.await.unwrap()).await, sent, endpoint)
}

/// A stream's elements, whichever form it has.
fn elements(stream: &str) -> Vec<Value> {
    if stream.starts_with("data:") || stream.trim().is_empty() {
        let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
        return lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    }
    serde_json::from_str(stream).unwrap_or_else(|bad| panic!("{stream}: {bad}"))
}

async fn streamed(kit: &mut Kit, path: &str) -> (String, String) {
    let (response, mut assignment) = kit.post(path, ASK).await;
    for chunk in CHUNKS {
        assignment.answer.chunk(Bytes::from(chunk)).unwrap();
    }
    assignment.answer.end();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    (kind, text(response).await)
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_events_or_an_array() {
    let mut kit = chat_only();
    let (kind, events) = streamed(&mut kit, EVENTS).await;
    assert_eq!(kind, "text/event-stream");
    let (kind, array) = streamed(&mut kit, ARRAY).await;
    assert_eq!(kind, "application/json");
    for stream in [events, array] {
        let elements = elements(&stream);
        let parts = elements.iter().map(|it| &it["candidates"][0]["content"]["parts"][0]["text"]);
        assert_eq!(parts.collect::<Vec<_>>(), ["hel", "lo", ""], "{stream}");
        assert_eq!(elements[2]["usageMetadata"]["totalTokenCount"], 5);
        assert_eq!(elements[2]["candidates"][0]["finishReason"], "STOP");
    }
}

#[tokio::test(start_paused = true)]
async fn every_path_leads_to_the_model_that_it_names() {
    let mut kit = Kit::new();
    kit.serves(&["a/b:8b"], &[CHAT]);
    let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    for path in [
        "/v1beta/models/a/b:8b:generateContent",
        "/v1beta/models/a%2Fb%3A8b:generateContent",
        "/v1/models/a/b:8b:generateContent",
        "/v1beta/tunedModels/a/b:8b:generateContent",
    ] {
        let ((status, answer), sent, endpoint) = answered(&mut kit, (path, ASK), answer).await;
        assert_eq!((status, endpoint, &sent["model"]), (200, CHAT, &json!("a/b:8b")), "{path}");
        assert_eq!(answer["candidates"][0]["content"]["parts"], json!([{"text": "hello"}]));
        assert_eq!(answer["modelVersion"], "a/b:8b");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_in_the_query_reaches_nobody() {
    let mut kit = Kit::with(|rules, _| rules.require_key = true);
    kit.serves(&["m"], &[CHAT]);
    let key = kit.key(None, &[]);
    let key = key.expose();
    let path = format!("{EVENTS}&key={key}");
    let (_response, assignment) = kit.post(&path, ASK).await;
    let seen = format!("{:?} {:?}", assignment.request.path_and_query, assignment.request.headers);
    assert!(!seen.contains(key) && !seen.contains("x-goog"), "{seen}");
    let (status, error) = json_of(kit.send(post(WHOLE, ASK)).await).await;
    assert_eq!((status, &error["error"]["status"]), (401, &json!("UNAUTHENTICATED")));
    let wrong = json_of(kit.send(post(&format!("{WHOLE}?key=wk_wrong"), ASK)).await).await;
    assert_eq!(wrong.0, 401);
    let header = Request::get("/v1beta/models").header("x-goog-api-key", key);
    let (status, models) = json_of(kit.send(header.body(Body::empty()).unwrap()).await).await;
    assert_eq!((status, &models["models"][0]["name"]), (200, &json!("models/m")));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive_by_empty_lines() {
    for path in [EVENTS, ARRAY] {
        let mut kit = chat_only();
        let (response, mut assignment) = kit.post(path, ASK).await;
        let mut body = response.into_body();
        let mut whole = Vec::new();
        assignment.answer.chunk(Bytes::from(CHUNKS[0])).unwrap();
        whole.extend_from_slice(&next(&mut body).await.unwrap().unwrap());
        let sign = next(&mut body).await.unwrap().unwrap();
        assert!(sign.iter().all(u8::is_ascii_whitespace) && !sign.is_empty(), "{sign:?}");
        whole.extend_from_slice(&sign);
        for chunk in &CHUNKS[1..] {
            assignment.answer.chunk(Bytes::from(*chunk)).unwrap();
        }
        assignment.answer.end();
        while let Some(frame) = next(&mut body).await {
            whole.extend_from_slice(&frame.unwrap());
        }
        assert_eq!(elements(str::from_utf8(&whole).unwrap()).len(), 3, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_ends_with_an_error_in_its_form() {
    for path in [EVENTS, ARRAY] {
        for before in [0, 1] {
            let mut kit = chat_only();
            let (response, mut assignment) = kit.post(path, ASK).await;
            for chunk in &CHUNKS[..before] {
                assignment.answer.chunk(Bytes::from(*chunk)).unwrap();
            }
            assignment.answer.fail("connection refused");
            let stream = text(response).await;
            let elements = elements(&stream);
            assert_eq!(elements.len(), before + 1, "{stream}");
            let error = &elements[before]["error"];
            assert_eq!((&error["code"], &error["status"]), (&json!(502), &json!("UNAVAILABLE")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_has_its_signs_of_life_before_the_first_element() {
    let mut kit = chat_only();
    let waiting = tokio::spawn(kit.meanwhile(post(ARRAY, ASK)));
    let mut assignment = kit.assigned().await;
    let response = waiting.await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let mut body = response.into_body();
    let mut whole = next(&mut body).await.unwrap().unwrap().to_vec();
    assert!(whole.iter().all(u8::is_ascii_whitespace));
    assignment.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
    for chunk in CHUNKS {
        assignment.answer.chunk(Bytes::from(chunk)).unwrap();
    }
    assignment.answer.end();
    while let Some(frame) = next(&mut body).await {
        whole.extend_from_slice(&frame.unwrap());
    }
    let whole = str::from_utf8(&whole).unwrap().trim();
    assert_eq!(elements(whole).len(), 3, "{whole}");
}

#[tokio::test(start_paused = true)]
async fn bad_requests_are_refused_in_googles_envelope() {
    let kit = chat_only();
    let deep = "[".repeat(100_000);
    for (path, body, field) in [
        (WHOLE, "", None),
        (WHOLE, "[]", None),
        (WHOLE, "{\"contents\":", None),
        (WHOLE, &*deep, None),
        (WHOLE, "{}", Some("contents")),
        (WHOLE, r#"{"model":"n","contents":[]}"#, Some("model")),
        (EVENTS, r#"{"contents":[{"role":"king"}]}"#, Some("contents[0].role")),
        (ARRAY, r#"{"contents":7}"#, Some("contents")),
        (
            WHOLE,
            r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"%"}}]}]}"#,
            Some("contents[0].parts[0].inlineData.data"),
        ),
        ("/v1beta/models/m:countTokens", "{}", Some("contents")),
        ("/v1beta/models:generateContent", ASK, Some("model")),
    ] {
        let response = kit.send(post(path, body)).await;
        assert!(response.headers().contains_key("x-request-id"));
        let (status, error) = json_of(response).await;
        let error = &error["error"];
        assert_eq!(
            (status, &error["code"], &error["status"]),
            (400, &json!(400), &json!("INVALID_ARGUMENT")),
            "{path} {error}"
        );
        let named = error["details"][0]["fieldViolations"][0]["field"].as_str();
        assert_eq!(named, field, "{path} {error}");
    }
    let form = Request::post(WHOLE).header("content-type", "text/plain");
    let (status, _) = json_of(kit.send(form.body(Body::from(ASK)).unwrap()).await).await;
    assert_eq!(status, 415);
}

#[tokio::test(start_paused = true)]
async fn what_google_has_and_this_server_has_not_is_said_in_googles_envelope() {
    let kit = chat_only();
    for (request, code) in [
        (post("/v1beta/models/m:streamEmbedContent", ASK), 404),
        (post("/v1beta/models/m:predict", ASK), 404),
        (post("/v1/models/m:predict", ASK), 404),
        (post("/v1beta/cachedContents", "{}"), 404),
        (post("/v1beta/models/other:generateContent", ASK), 404),
        (Request::get(WHOLE).body(Body::empty()).unwrap(), 405),
        (Request::get("/v1beta/models/other").body(Body::empty()).unwrap(), 404),
        (Request::get("/v1beta/models?pageSize=x").body(Body::empty()).unwrap(), 400),
        (Request::delete("/v1beta/models/m").body(Body::empty()).unwrap(), 405),
    ] {
        let what = format!("{} {}", request.method(), request.uri());
        let (status, error) = json_of(kit.send(request).await).await;
        assert_eq!((status, &error["error"]["code"]), (code, &json!(code)), "{what}: {error}");
        assert!(error["error"]["status"].is_string(), "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_by_a_backend_or_estimated() {
    const PATH: &str = "/v1beta/models/m:countTokens";
    let mut kit = Kit::new();
    let counted = r#"{"input_tokens":5}"#;
    let (answer, sent, endpoint) = answered(&mut kit, (PATH, ASK), counted).await;
    assert_eq!(endpoint, Endpoint::CountTokens);
    assert_eq!(sent["messages"][0]["content"][0]["text"], "hi");
    assert_eq!((sent.get("max_tokens"), sent.get("stream")), (None, None));
    assert_eq!(answer, (200, json!({"totalTokens": 5})));
    let kit = chat_only();
    let whole = format!(r#"{{"generateContentRequest":{{"model":"models/m",{}}}"#, &ASK[1..]);
    for body in [ASK, &whole] {
        let response = kit.send(post(PATH, body)).await;
        assert_eq!(response.headers()["x-warren-usage"], "estimated");
        let (status, counted) = json_of(response).await;
        assert!(status == 200 && counted["totalTokens"].as_u64().unwrap() > 0, "{counted}");
    }
}

#[tokio::test(start_paused = true)]
async fn contents_are_embedded_by_a_backend_of_openais() {
    let mut kit = Kit::new();
    kit.serves(&["m"], &[Endpoint::Embeddings]);
    let vectors = r#"{"data":[{"index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1}}"#;
    for (path, body, expected) in [
        (
            "/v1beta/models/m:embedContent",
            r#"{"content":{"parts":[{"text":"a"}]}}"#,
            json!({"embedding": {"values": [0.5]}}),
        ),
        (
            "/v1beta/models/m:batchEmbedContents",
            r#"{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]}}]}"#,
            json!({"embeddings": [{"values": [0.5]}]}),
        ),
    ] {
        let (answer, sent, endpoint) = answered(&mut kit, (path, body), vectors).await;
        assert_eq!((endpoint, &sent["input"]), (Endpoint::Embeddings, &json!(["a"])));
        assert_eq!(answer, (200, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn models_are_told_in_the_form_of_the_client_that_asks() {
    let kit = chat_only();
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let (_, one) = json_of(kit.send(get("/v1beta/models/m")).await).await;
    assert_eq!((&one["name"], &one["displayName"]), (&json!("models/m"), &json!("m")));
    assert_eq!(one["supportedGenerationMethods"], json!(["generateContent", "countTokens"]));
    let (_, of_openai) = json_of(kit.send(get("/v1/models")).await).await;
    assert_eq!(of_openai["object"], "list");
    for path in ["/v1/models", "/v1/models/m"] {
        let googles = Request::get(path).header("x-goog-api-client", "google-genai-sdk/1");
        let (_, models) = json_of(kit.send(googles.body(Body::empty()).unwrap()).await).await;
        let first = if path.ends_with("/m") { &models } else { &models["models"][0] };
        assert_eq!(first["name"], "models/m", "{models}");
    }
}
