//! Responses with state: kept, continued, gathered in conversations.

use std::sync::Arc;

use access::{ConsumerRules, Moment, NewKey};
use api::Limits;
use axum::body::Body;
use base::{Endpoint, KeyScope};
use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use store::SqliteStore;
use tempfile::TempDir;

use crate::kit::{Kit, head, json_of, next, sent, text};

pub(crate) const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
pub(crate) const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream")];

/// A server that keeps responses, with a provider that serves these endpoints.
pub(crate) struct Keeper {
    pub(crate) kit: Kit,
    directory: TempDir,
    key: Option<String>,
}

impl Keeper {
    pub(crate) fn new(endpoints: &[Endpoint]) -> Self {
        Self::with(endpoints, |_, _| {})
    }

    fn with(endpoints: &[Endpoint], change: impl FnOnce(&mut ConsumerRules, &mut Limits)) -> Self {
        let (kit, directory) = (Kit::with(change), tempfile::tempdir().unwrap());
        let store = SqliteStore::open(&directory.path().join("warren.db")).unwrap();
        kit.api.keep_responses(Arc::new(store));
        kit.serves(&["m"], endpoints);
        Self { kit, directory, key: None }
    }

    /// From now on requests come with a new key.
    fn with_new_key(&mut self) {
        let scopes = vec![KeyScope::Inference];
        let new = NewKey { name: "k".to_owned(), scopes, ..NewKey::default() };
        let key = self.kit.keys.create(new, Moment::now()).unwrap().1;
        self.key = Some(key.expose().to_owned());
    }

    pub(crate) fn request(&self, method: Method, path: &str, body: &Value) -> Request<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        request.body(Body::from(body)).unwrap()
    }

    /// Asks for something that needs no provider: the status, and the JSON.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        json_of(self.kit.send(self.request(method, path, body)).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, &Value::Null).await
    }

    /// Has a response made, which a provider answers with this. Gives what the provider was sent, and what came out.
    pub(crate) async fn make(&mut self, body: &Value, answer: &Value) -> (Value, Value) {
        let request = self.request(Method::POST, "/v1/responses", body);
        let (response, mut assignment) = self.kit.send_for_later(request).await;
        let given = sent(&assignment);
        assignment.answer.head(head(JSON)).unwrap();
        assignment.answer.chunk(answer.to_string().into()).unwrap();
        assignment.answer.end();
        let answered = text(response.await.unwrap()).await;
        (given, serde_json::from_str(&answered).unwrap())
    }
}

/// A response of a provider with its own idea of ids and of what it stores.
pub(crate) fn answer(said: &str) -> Value {
    json!({"id": "resp_provider", "object": "response", "status": "completed", "store": true,
        "previous_response_id": null, "output": [message(said)]})
}

fn message(said: &str) -> Value {
    json!({"id": format!("msg_{said}"), "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": said, "annotations": []}]})
}

fn user(said: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]})
}

const NATIVE: &[Endpoint] = &[Endpoint::Responses];

fn code(answered: &(u16, Value)) -> (u16, &str) {
    (answered.0, answered.1["error"]["code"].as_str().unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_kept_is_continued_shown_and_deleted() {
    let mut keeper = Keeper::new(NATIVE);
    let first = json!({"model": "m", "input": "hi", "instructions": "be brief", "store": true});
    let (given, one) = keeper.make(&first, &answer("a")).await;
    assert_eq!(
        given,
        json!({"model": "m", "input": [user("hi")], "instructions": "be brief", "store": false})
    );
    let id = one["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("resp_") && id.len() == 37, "{id}");
    assert_eq!((&one["store"], &one["output"]), (&json!(true), &json!([message("a")])));

    let second = json!({"model": "m", "input": [{"role": "user", "content": "more"}], "store": true,
        "previous_response_id": id});
    let (given, two) = keeper.make(&second, &answer("b")).await;
    let said = json!([user("hi"), message("a"), {"role": "user", "content": "more"}]);
    assert_eq!(given, json!({"model": "m", "input": said, "store": false}));
    assert_eq!(two["previous_response_id"], json!(id));
    assert_ne!(two["id"], one["id"]);

    assert_eq!(keeper.get(&format!("/v1/responses/{id}")).await, (200, one));
    let newest = two["id"].as_str().unwrap();
    let (_, items) = keeper.get(&format!("/v1/responses/{newest}/input_items?order=asc")).await;
    let texts: Vec<&str> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!((texts, &items["has_more"]), (vec!["hi", "a", "more"], &json!(false)));
    let page = format!("/v1/responses/{newest}/input_items?limit=1&after=msg_a");
    let (_, items) = keeper.get(&page).await;
    assert_eq!(items["data"][0]["content"][0]["text"], "hi", "the newest comes first");

    let (status, deleted) =
        keeper.ask(Method::DELETE, &format!("/v1/responses/{id}"), &Value::Null).await;
    assert_eq!((status, deleted), (200, json!({"id": id, "object": "response", "deleted": true})));
    for rest in ["", "/input_items"] {
        let gone = keeper.get(&format!("/v1/responses/{id}{rest}")).await;
        assert_eq!((gone.0, &gone.1["error"]["type"]), (404, &json!("invalid_request_error")));
    }
    let third = json!({"model": "m", "input": "x", "previous_response_id": newest});
    let broken = keeper.ask(Method::POST, "/v1/responses", &third).await;
    assert_eq!(code(&broken), (400, "previous_response_not_found"));
    assert!(broken.1["error"]["message"].as_str().unwrap().contains(&id), "{broken:?}");
    assert!(keeper.kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_chat_provider_continues_a_response_too() {
    let mut keeper = Keeper::new(&[Endpoint::ChatCompletions]);
    let said = |text: &str| {
        let message = json!({"role": "assistant", "content": text});
        json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [
            {"index": 0, "finish_reason": "stop", "message": message}]})
    };
    let first = json!({"model": "m", "input": "hi", "store": true});
    let (_, one) = keeper.make(&first, &said("hello")).await;
    let second = json!({"model": "m", "input": "more", "previous_response_id": one["id"]});
    let (given, two) = keeper.make(&second, &said("yes")).await;
    let roles: Vec<_> =
        given["messages"].as_array().unwrap().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "{given}");
    assert_eq!((&two["store"], &two["previous_response_id"]), (&json!(false), &one["id"]));
    let id = two["id"].as_str().unwrap();
    assert_eq!(keeper.get(&format!("/v1/responses/{id}")).await.0, 404, "it was not to be kept");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_that_nobody_asked_to_keep() {
    let mut keeper = Keeper::new(NATIVE);
    for plain in
        [json!({"model": "m", "input": "hi"}), json!({"model": "m", "input": "hi", "store": false})]
    {
        let (given, made) = keeper.make(&plain, &answer("a")).await;
        assert_eq!(
            given,
            json!({"model": "m", "input": "hi", "store": false}),
            "nor by the provider"
        );
        assert_eq!(made, answer("a"), "the answer passes as it is");
        let next = json!({"model": "m", "input": "x", "previous_response_id": made["id"]});
        let refused = keeper.ask(Method::POST, "/v1/responses", &next).await;
        assert_eq!(code(&refused), (400, "previous_response_not_found"));
        assert_eq!(refused.1["error"]["param"], "previous_response_id");
        assert!(refused.1["error"]["message"].as_str().unwrap().contains("store: true"));
    }
    let mut usual = Keeper::with(NATIVE, |_, limits| limits.keep_unasked = true);
    let (_, made) = usual.make(&json!({"model": "m", "input": "hi"}), &answer("a")).await;
    assert_eq!(made["store"], true);
    let (_, made) =
        usual.make(&json!({"model": "m", "input": "hi", "store": false}), &answer("a")).await;
    assert_eq!(made, answer("a"));
}

#[tokio::test(start_paused = true)]
async fn a_response_is_its_own_keys_alone() {
    let mut keeper = Keeper::with(NATIVE, |rules, _| rules.require_key = true);
    keeper.with_new_key();
    let (_, one) =
        keeper.make(&json!({"model": "m", "input": "hi", "store": true}), &answer("a")).await;
    let path = format!("/v1/responses/{}", one["id"].as_str().unwrap());
    assert_eq!(keeper.get(&path).await.0, 200);
    keeper.with_new_key();
    let unknown = keeper.get("/v1/responses/resp_x").await.1.to_string();
    let others = keeper.get(&path).await;
    assert_eq!(others.0, 404);
    assert_eq!(others.1.to_string().replace(one["id"].as_str().unwrap(), "resp_x"), unknown);
    for (method, rest) in
        [(Method::DELETE, ""), (Method::POST, "/cancel"), (Method::GET, "/input_items")]
    {
        assert_eq!(keeper.ask(method, &format!("{path}{rest}"), &Value::Null).await.0, 404);
    }
    let next = json!({"model": "m", "input": "x", "previous_response_id": one["id"]});
    let refused = keeper.ask(Method::POST, "/v1/responses", &next).await;
    assert_eq!(code(&refused), (400, "previous_response_not_found"));
    keeper.key = None;
    assert_eq!(keeper.get(&path).await.0, 401);
}

fn event(kind: &str, number: u64, response: &Value) -> String {
    let data = json!({"type": kind, "sequence_number": number, "response": response});
    format!("event: {kind}\ndata: {data}\n\n")
}

/// The objects of a stream's events that have a response.
pub(crate) fn responses(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    events.filter_map(|event| event.get("response").cloned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_one_id_and_can_be_continued_when_its_end_is_heard() {
    let mut keeper = Keeper::new(NATIVE);
    let body = json!({"model": "m", "input": "hi", "store": true, "stream": true});
    let request = keeper.request(Method::POST, "/v1/responses", &body);
    let (response, mut assignment) = keeper.kit.send_for(request, head(EVENTS)).await;
    let delta = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";
    let begun = json!({"id": "resp_provider", "status": "in_progress", "output": []});
    let all = event("response.created", 0, &begun)
        + delta
        + &event("response.completed", 2, &answer("a"));
    for piece in all.as_bytes().chunks(7) {
        assignment.answer.chunk(Bytes::copy_from_slice(piece)).unwrap();
    }
    assignment.answer.end();
    let stream = text(response).await;
    assert!(stream.contains(delta), "{stream}");
    let states = responses(&stream);
    let id = states[0]["id"].as_str().unwrap();
    assert!(states.iter().all(|it| it["id"] == id && it["store"] == true), "{stream}");
    assert_eq!(keeper.get(&format!("/v1/responses/{id}")).await, (200, states[1].clone()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_or_whose_client_leaves_is_not_kept() {
    let mut keeper = Keeper::new(NATIVE);
    for leaves in [true, false] {
        let body = json!({"model": "m", "input": "hi", "store": true, "stream": true});
        let request = keeper.request(Method::POST, "/v1/responses", &body);
        let (response, mut assignment) = keeper.kit.send_for(request, head(EVENTS)).await;
        let begun = event("response.created", 0, &json!({"id": "p", "status": "in_progress"}));
        assignment.answer.chunk(begun.into()).unwrap();
        let mut body = response.into_body();
        let first = String::from_utf8(next(&mut body).await.unwrap().unwrap().to_vec()).unwrap();
        let id = responses(&first)[0]["id"].as_str().unwrap().to_owned();
        if leaves {
            drop(body);
        } else {
            drop(assignment);
            let rest = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            assert!(rest.windows(7).any(|window| window == b"\"error\""));
        }
        assert_eq!(keeper.get(&format!("/v1/responses/{id}")).await.0, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_kept_says_so() {
    let mut keeper = Keeper::new(NATIVE);
    for file in std::fs::read_dir(keeper.directory.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let (_, one) =
        keeper.make(&json!({"model": "m", "input": "hi", "store": true}), &answer("a")).await;
    assert_eq!((&one["store"], &one["output"]), (&json!(false), &json!([message("a")])));
    let new = keeper.ask(Method::POST, "/v1/conversations", &json!({})).await;
    assert_eq!(new.0, 503, "{new:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_to_be_kept_says_so() {
    let mut keeper = Keeper::new(NATIVE);
    let body = json!({"model": "m", "input": "hi", "store": true});
    let request = keeper.request(Method::POST, "/v1/responses", &body);
    let (response, mut assignment) = keeper.kit.send_for_later(request).await;
    assignment.answer.head(head(JSON)).unwrap();
    let large = answer(&"x".repeat(17 << 20)).to_string();
    assignment.answer.chunk(large.into()).unwrap();
    assignment.answer.end();
    let body = response.await.unwrap().into_body();
    let answered = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let answered: Value = serde_json::from_slice(&answered).unwrap();
    assert_eq!(answered["store"], false);
    let path = format!("/v1/responses/{}", answered["id"].as_str().unwrap());
    assert_eq!(keeper.get(&path).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_nothing_says_so() {
    let mut keeper = Keeper::with(NATIVE, |_, limits| limits.keep_responses = false);
    for (field, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("conv_1")),
        ("background", json!(true)),
    ] {
        let body = json!({"model": "m", "input": "hi", field: value});
        let refused = keeper.ask(Method::POST, "/v1/responses", &body).await;
        assert_eq!(code(&refused), (400, "responses_not_kept"));
        assert_eq!(refused.1["error"]["param"], field);
    }
    let refused = keeper.ask(Method::POST, "/v1/conversations", &Value::Null).await;
    assert_eq!(code(&refused), (400, "responses_not_kept"));
    let (given, made) =
        keeper.make(&json!({"model": "m", "input": "hi", "store": true}), &answer("a")).await;
    assert_eq!((&given["store"], &made["store"]), (&json!(false), &json!(false)));
}

#[tokio::test(start_paused = true)]
async fn what_becomes_too_large_is_refused_before_it_is_a_job() {
    let mut keeper = Keeper::with(NATIVE, |_, limits| limits.max_body = 4096);
    let long = "x".repeat(1500);
    let (_, one) =
        keeper.make(&json!({"model": "m", "input": long, "store": true}), &answer("a")).await;
    let next = json!({"model": "m", "input": "y".repeat(2500), "previous_response_id": one["id"]});
    let refused = keeper.ask(Method::POST, "/v1/responses", &next).await;
    assert_eq!(code(&refused), (413, "request_too_large"));
    assert_eq!(refused.1["error"]["param"], "previous_response_id");
    let keeper = Keeper::with(NATIVE, |_, limits| limits.max_body = 64 << 20);
    let large = json!({"model": "m", "input": "x".repeat(33 << 20), "store": true});
    let refused = keeper.ask(Method::POST, "/v1/responses", &large).await;
    assert_eq!((refused.0, &refused.1["error"]["param"]), (413, &json!("store")));
    assert!(keeper.kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_gathers_what_is_said_in_it() {
    let mut keeper = Keeper::new(NATIVE);
    let new = json!({"metadata": {"topic": "x"}, "items": [{"type": "message", "role": "system", "content": "be brief"}]});
    let (status, made) = keeper.ask(Method::POST, "/v1/conversations", &new).await;
    assert_eq!(
        (status, &made["object"], &made["metadata"]),
        (200, &json!("conversation"), &json!({"topic": "x"}))
    );
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    for (said, with) in [("hi", json!(made["id"])), ("more", json!({"id": made["id"]}))] {
        let body = json!({"model": "m", "input": said, "conversation": with});
        let (given, one) = keeper.make(&body, &answer(said)).await;
        assert_eq!(one["conversation"], json!({"id": made["id"]}));
        assert_eq!(one["store"], true);
        let wanted = if said == "hi" { 2 } else { 4 };
        assert_eq!(given["input"].as_array().unwrap().len(), wanted, "{given}");
        assert!(given.get("conversation").is_none());
    }
    let only_read =
        json!({"model": "m", "input": "aside", "conversation": made["id"], "store": false});
    keeper.make(&only_read, &answer("c")).await;
    let (_, items) = keeper.get(&format!("{path}/items?order=asc")).await;
    let texts: Vec<&str> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["be brief", "hi", "hi", "more", "more"]);

    let more = json!({"items": [{"role": "user", "content": "new"}]});
    let (status, added) = keeper.ask(Method::POST, &format!("{path}/items"), &more).await;
    assert_eq!((status, &added["object"]), (200, &json!("list")));
    let item = format!("{path}/items/{}", added["first_id"].as_str().unwrap());
    assert_eq!(keeper.get(&item).await, (200, added["data"][0].clone()));
    assert_eq!(keeper.ask(Method::DELETE, &item, &Value::Null).await.0, 200);
    assert_eq!(keeper.get(&item).await.0, 404);
    let (_, changed) = keeper.ask(Method::POST, &path, &json!({"metadata": {}})).await;
    assert_eq!(changed["metadata"], json!({}));
    assert_eq!(keeper.get(&path).await.1, changed);
    let (_, deleted) = keeper.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(deleted["object"], "conversation.deleted");
    for gone in [path.clone(), format!("{path}/items")] {
        assert_eq!(keeper.get(&gone).await.0, 404);
    }
    let body = json!({"model": "m", "input": "x", "conversation": made["id"]});
    assert_eq!(keeper.ask(Method::POST, "/v1/responses", &body).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_comes_twice_in_a_conversation_is_made_another() {
    let mut keeper = Keeper::new(NATIVE);
    let (_, made) = keeper.ask(Method::POST, "/v1/conversations", &json!({})).await;
    for said in ["one", "two"] {
        let body = json!({"model": "m", "input": said, "conversation": made["id"]});
        keeper.make(&body, &answer("same")).await;
    }
    let path = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    let (_, items) = keeper.get(&path).await;
    let items = items["data"].as_array().unwrap();
    let ids: std::collections::HashSet<&str> =
        items.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!((items.len(), ids.len()), (4, 4), "{items:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_takes_its_memory_as_long_as_it_is_worked_on() {
    let keeper = Keeper::with(NATIVE, |_, limits| limits.bodies = 4 * 1024);
    let items = json!({"items": [{"role": "user", "content": "x".repeat(3_000)}]});
    let mut long = Box::pin(keeper.ask(Method::POST, "/v1/conversations", &items));
    // It has been read, and a thread works on it.
    assert!(futures_util::poll!(&mut long).is_pending());
    let room = keeper.kit.send(crate::room_kit::post("/v1/chat/completions", "x".repeat(3_000)));
    let mut room = Box::pin(room);
    assert!(futures_util::poll!(&mut room).is_pending(), "it waits for memory");
    assert_eq!(long.await.0, 200);
    assert_eq!(room.await.status(), 400, "that was no JSON");
}
