//! The APIs in a room: whom a request reaches, what it is told, and what it never sees.

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, StatusCode};
use scheduler::Head;
use serde_json::json;

use crate::{
    kit::{Kit, head, sent, text},
    room_kit::{EVENTS, JSON, answer_of, chat, nonsense, path, post, with_bearer},
};

const CHAT: &[Endpoint] = &[Endpoint::ChatCompletions];

#[tokio::test(start_paused = true)]
async fn each_selector_reaches_whom_it_means_by_either_code() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let one = kit.lends(&room, "one", &["a"], CHAT);
    let two = kit.lends(&room, "two", &["b", "c"], CHAT);
    let cases = [
        ("one", one.provider, "a"),
        ("two", two.provider, "b"),
        ("model:a", one.provider, "a"),
        ("model:c", two.provider, "c"),
        ("c", two.provider, "c"),
    ];
    for (selector, _, model) in cases {
        let (response, assignment) = kit.send_for(chat(&room, selector), head(&[JSON])).await;
        assert_eq!(sent(&assignment)["model"], model, "{selector}");
        assert_eq!(assignment.request.path_and_query, "/v1/chat/completions");
        assert_eq!(response.headers()["x-request-id"], assignment.job.to_string());
        assignment.answer.end();
    }
    drop(two);
    for code in [room.short_code().to_lowercase(), room.spoken_code().to_uppercase()] {
        for anybody in ["*", "any"] {
            let body = format!(r#"{{"model":"{anybody}","messages":[]}}"#);
            let request = post(&format!("/rooms/{code}/v1/chat/completions"), body);
            let (_response, assignment) = kit.send_for(request, head(&[JSON])).await;
            assert_eq!(sent(&assignment)["model"], "a");
            assignment.answer.end();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_selector_without_a_match_gets_the_stock_error() {
    let kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    kit.joins(&room, "away", &["z"]);
    let unknown = Request::post("/rooms/ZZZZZZ/v1/chat/completions");
    let unknown = unknown.body(Body::from(r#"{"model":"*"}"#)).unwrap();
    let cases = [
        (chat(&room, "nobody"), 404, "No available participant for the requested model"),
        (chat(&room, "model:one"), 404, "No available participant for the requested model"),
        (chat(&room, "m"), 404, "No available participant for the requested model"),
        (chat(&room, "away"), 503, "Participant tunnel is not connected"),
        (unknown, 404, "Room not found"),
    ];
    for (request, status, error) in cases {
        assert_eq!(kit.answer(request).await, (status, json!({ "error": error })));
    }
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_bad_body_is_told_as_json_at_every_api() {
    let kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let paths = Endpoint::ALL.map(|endpoint| path(&room, endpoint.path()));
    for path in &paths {
        let models = ["{}", r#"{"model":""}"#, r#"{"model":7}"#, r#"{"model":["*"]}"#];
        for body in models.map(|body| body.as_bytes().to_vec()).into_iter().chain(nonsense()) {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let (status, error) = kit.answer(post(path, body)).await;
            let no_model = status == 404 && path.contains("/v1beta/");
            assert!(status == 400 || no_model, "{path} {shown}: {status}");
            assert!(error["error"].is_string(), "{path} {shown}: {error}");
        }
    }
    let (status, error) = kit.answer(Request::get(&paths[0]).body(Body::empty()).unwrap()).await;
    assert!((404..=405).contains(&status) && error["error"].is_string(), "{status} {error}");
}

#[tokio::test(start_paused = true)]
async fn a_participants_failure_before_its_answer_is_told_in_the_stock_words() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let mut response = tokio::spawn(kit.meanwhile(chat(&room, "one")));
    let response = loop {
        tokio::select! {
            response = &mut response => break response.unwrap(),
            assignment = kit.assigned() => assignment.answer.fail("connection refused"),
        }
    };
    let error = "Failed to proxy request: Error: connection refused";
    assert_eq!(answer_of(response).await, (502, json!({ "error": error })));
}

#[tokio::test(start_paused = true)]
async fn a_loss_in_mid_stream_ends_with_the_apis_own_event() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let lent = kit.lends(&room, "one", &["a"], CHAT);
    let (response, mut assignment) = kit.send_for(chat(&room, "one"), head(&[EVENTS])).await;
    assignment.answer.chunk(Bytes::from_static(b"data: {\"x\"")).unwrap();
    drop(lent);
    let stream = text(response).await;
    let last = stream.rsplit("data: ").next().unwrap();
    let error: serde_json::Value = serde_json::from_str(last.trim()).unwrap();
    assert_eq!(error["error"]["code"], "worker_lost", "{stream}");
}

#[tokio::test(start_paused = true)]
async fn a_participants_status_and_body_pass_and_its_headers_do_not() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let headers = [("content-type", "text/html"), ("set-cookie", "a=b"), ("server", "x")];
    let refusal = Head { status: StatusCode::IM_A_TEAPOT, ..head(&headers) };
    let request = chat(&room, "one");
    let (response, mut assignment) = kit.send_for(request, refusal).await;
    assignment.answer.chunk(Bytes::from_static(b"<script>")).unwrap();
    assignment.answer.end();
    assert_eq!(response.status(), 418);
    for gone in ["set-cookie", "server"] {
        assert!(!response.headers().contains_key(gone), "{gone}");
    }
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(text(response).await, "<script>");
}

#[tokio::test(start_paused = true)]
async fn neither_the_code_nor_the_password_reaches_a_participant() {
    let mut kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let uri = path(&room, "/v1/chat/completions?password=sesame&x=1");
    let request = post(&uri, r#"{"model":"*","messages":[]}"#);
    let (_response, assignment) = kit.send_for(request, head(&[JSON])).await;
    assert_eq!(assignment.request.path_and_query, "/v1/chat/completions?x=1");
    assignment.answer.end();
    let (_response, assignment) =
        kit.send_for(with_bearer(chat(&room, "*"), "sesame"), head(&[JSON])).await;
    assert!(!assignment.request.headers.contains_key("authorization"));
}

#[tokio::test(start_paused = true)]
async fn a_password_is_asked_for_use_and_for_the_list() {
    let kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let list = || Request::get(path(&room, "/v1/models")).body(Body::empty()).unwrap();
    let others = ["/v1/responses", "/v1/messages", "/api/chat", "/v1/embeddings"];
    let others = others.map(|api| post(&path(&room, api), r#"{"model":"*","input":"hi"}"#));
    let by_id = Request::get(path(&room, "/v1/responses/resp_1")).body(Body::empty()).unwrap();
    let wrong = with_bearer(chat(&room, "*"), "open");
    for request in [chat(&room, "*"), wrong, list(), by_id].into_iter().chain(others) {
        let uri = request.uri().clone();
        let (status, error) = kit.answer(request).await;
        assert_eq!(status, 401, "{uri}");
        assert!(error["error"].is_string(), "{error}");
    }
    let (status, _) = kit.answer(with_bearer(list(), "sesame")).await;
    assert_eq!(status, 200);
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn connected_participants_are_listed_as_models() {
    let kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a", "b"], CHAT);
    kit.joins(&room, "away", &["z"]);
    let list = Request::get(path(&room, "/v1/models")).body(Body::empty()).unwrap();
    let (status, list) = kit.answer(list).await;
    let models = list["data"].as_array().unwrap();
    assert_eq!((status, list["object"].as_str(), models.len()), (200, Some("list"), 3));
    let ids: Vec<&str> = models.iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["one", "a", "b"], "the participant, and its models by name");
    assert_eq!(models[2]["gambi"]["model"], "b");
    let model = &models[0];
    assert_eq!((&model["id"], &model["object"]), (&json!("one"), &json!("model")));
    assert_eq!(model["owned_by"], "one's");
    assert!(model["created"].as_u64().unwrap() < 100_000_000_000, "in seconds");
    let details = &model["gambi"];
    assert_eq!((&details["model"], &details["nickname"]), (&json!("a"), &json!("one's")));
    assert_eq!(details["endpoint"], "http://127.0.0.1:1");
    assert_eq!(details["connection"]["connected"], true);
    assert_eq!(details["capabilities"]["openResponses"], "unknown");
}

#[tokio::test(start_paused = true)]
async fn a_busy_participant_is_waited_for_and_a_full_queue_is_told() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let (_first, assignment) = kit.send_for(chat(&room, "one"), head(&[JSON])).await;
    let mut waiting = Vec::new();
    let refused = loop {
        let mut response = tokio::spawn(kit.meanwhile(chat(&room, "one")));
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            response = &mut response => break response.unwrap(),
            () = tokio::task::yield_now() => waiting.push(response),
        }
        assert!(waiting.len() < 1_000, "a queue has a bound");
    };
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(answer_of(refused).await, (429, json!({ "error": "queue full" })));
    assignment.answer.end();
    let next = kit.assigned().await;
    assert_eq!(sent(&next)["model"], "a", "the next one is served");
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_end_at_once_when_their_room_closes() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let (_first, assignment) = kit.send_for(chat(&room, "one"), head(&[JSON])).await;
    let waiting = tokio::spawn(kit.meanwhile(chat(&room, "one")));
    tokio::task::yield_now().await;
    let close = Request::delete(format!("/v1/rooms/{}", room.short_code()));
    let close = with_bearer(close.body(Body::empty()).unwrap(), "admin");
    let began = tokio::time::Instant::now();
    assert_eq!(kit.send(close).await.status(), 200);
    assert_eq!(
        answer_of(waiting.await.unwrap()).await,
        (410, json!({ "error": "the room was closed" }))
    );
    assert!(began.elapsed() < std::time::Duration::from_secs(1));
    drop(assignment);
}

#[tokio::test(start_paused = true)]
async fn responses_are_native_where_they_can_be_and_else_translated() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let responses = path(&room, "/v1/responses");
    let (_response, assignment) =
        kit.post_for(&responses, r#"{"model":"*","input":"hi"}"#, head(&[JSON])).await;
    assert_eq!(assignment.endpoint, Endpoint::ChatCompletions);
    assert_eq!(sent(&assignment)["model"], "a");
    assignment.answer.end();
    let _native = kit.lends(&room, "two", &["b"], &[Endpoint::Responses]);
    let (_response, assignment) =
        kit.post_for(&responses, r#"{"model":"*","input":"hi"}"#, head(&[JSON])).await;
    assert_eq!(
        (assignment.endpoint, &sent(&assignment)["model"]),
        (Endpoint::Responses, &json!("b"))
    );
    assignment.answer.end();
    let refused = r#"{"model":"one","input":"hi","previous_response_id":"resp_1"}"#;
    let (status, error) = kit.answer(post(&responses, refused)).await;
    assert_eq!(status, 400);
    assert!(error["error"].as_str().unwrap().contains("previous_response_id"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn messages_are_counted_in_a_room_too() {
    let kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let body = r#"{"model":"*","messages":[{"role":"user","content":"hello"}]}"#;
    let (status, counted) = kit.answer(post(&path(&room, "/v1/messages/count_tokens"), body)).await;
    assert_eq!(status, 200);
    assert!(counted["input_tokens"].as_u64().unwrap() > 0, "{counted}");
}

#[tokio::test(start_paused = true)]
async fn every_api_is_served_by_a_participant_that_has_chat_alone() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let said = "/choices/0/message/content";
    let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
    let apis = [
        ("/v1/chat/completions", format!(r#"{{"model":"one",{messages}}}"#), said),
        (
            "/v1/messages",
            format!(r#"{{"model":"model:a","max_tokens":9,{messages}}}"#),
            "/content/0/text",
        ),
        ("/v1/responses", r#"{"model":"*","input":"hi"}"#.to_owned(), "/output/0/content/0/text"),
        ("/api/chat", format!(r#"{{"model":"a","stream":false,{messages}}}"#), "/message/content"),
        (
            "/api/generate",
            r#"{"model":"a:latest","prompt":"hi","stream":false}"#.to_owned(),
            "/response",
        ),
    ];
    let whole = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    for (api, body, place) in apis {
        let response = kit.post_for_all(&path(&room, api), &body, head(&[JSON]), whole).await;
        let (status, answer) = answer_of(response).await;
        assert_eq!(
            (status, answer.pointer(place)),
            (200, Some(&json!("hello"))),
            "{api}: {answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn geminis_clients_name_their_participant_in_the_path() {
    let mut kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a"], CHAT);
    let body = r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#;
    let call = |model: &str| {
        post(&path(&room, &format!("/v1beta/models/{model}:streamGenerateContent")), body)
    };
    let response = tokio::spawn(kit.meanwhile(call("a")));
    let mut assignment = kit.assigned().await;
    assert_eq!(sent(&assignment)["model"], "a");
    assignment.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
    let chunk =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n";
    assignment.answer.chunk(Bytes::from_static(chunk.as_bytes())).unwrap();
    assignment.answer.end();
    let (status, array) = answer_of(response.await.unwrap()).await;
    let text = &array[0]["candidates"][0]["content"]["parts"][0]["text"];
    assert_eq!((status, text), (200, &json!("hello")), "{array}");
    let nobody = json!({"error": "No available participant for the requested model"});
    assert_eq!(kit.answer(call("nobody")).await, (404, nobody));
}
