//! Ollama's API beside its jobs: lists, facts, and what is refused.

use std::{sync::Arc, time::Duration};

use access::{Moment, NewKey};
use api::Aliases;
use axum::body::Body;
use base::{
    Capability, Endpoint, FactsByModel, JobId, KeyScope, LoadState, ModelFacts, ProviderId,
};
use http::{Method, Request, Response};
use scheduler::{Assignment, CancelReason, Membership, Offer, Provider};
use serde_json::{Value, json};

use crate::{
    kit::{Kit, json_of, offer, text},
    room_kit::path,
};

/// A provider that knows what it has, and answers nothing.
struct Knowing(Arc<FactsByModel>);

impl Provider for Knowing {
    fn name(&self) -> &str {
        "knowing"
    }
    fn assign(&self, _: Assignment) {}
    fn cancel(&self, _: JobId, _: CancelReason) {}
    fn drain(&self, _: &str, _: Duration) {}
    fn retire(&self, _: bool) {}
    fn refresh(&self, _: &str) {}
    fn facts(&self) -> Arc<FactsByModel> {
        Arc::clone(&self.0)
    }
}

fn join(kit: &Kit, models: &[&str], facts: FactsByModel) -> Membership {
    let offer = Offer { max_concurrent: 1, ..offer(models) };
    kit.scheduler.join(ProviderId::from_random(9), offer, Arc::new(Knowing(Arc::new(facts))))
}

fn known() -> FactsByModel {
    let facts = ModelFacts {
        context_tokens: Some(40_960),
        file_bytes: Some(5_000_000_000),
        memory_bytes: Some(6_000_000_000),
        parameters: Some(8_190_735_360),
        quantization: Some("Q4_K_M".into()),
        family: Some("qwen3".into()),
        capabilities: Some([Capability::Completion, Capability::Vision].into_iter().collect()),
        load: Some(LoadState::Loaded),
        ..ModelFacts::default()
    };
    FactsByModel::from([("qwen3:8b".to_owned(), facts)])
}

async fn ask(kit: &Kit, method: Method, path: &str, body: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned()));
    kit.send(request.unwrap()).await
}

async fn get(kit: &Kit, path: &str) -> Value {
    let response = ask(kit, Method::GET, path, "").await;
    assert!(
        response.headers().contains_key("x-warren-version"),
        "{path}: workers must know a Warren"
    );
    serde_json::from_str(&text(response).await).unwrap()
}

async fn post(kit: &Kit, path: &str, body: &Value) -> (u16, Value) {
    json_of(ask(kit, Method::POST, path, &body.to_string()).await).await
}

#[tokio::test(start_paused = true)]
async fn models_are_listed_with_their_tags_and_facts() {
    let kit = Kit::new();
    let _knowing = join(&kit, &["qwen3:8b"], known());
    let tags = get(&kit, "/api/tags").await;
    let names: Vec<&str> =
        tags["models"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m:latest", "qwen3:8b"]);
    let known = &tags["models"][1];
    assert_eq!((&known["model"], &known["size"]), (&json!("qwen3:8b"), &json!(5_000_000_000_u64)));
    assert_eq!(
        known["details"],
        json!({"parent_model": "", "format": "gguf", "family": "qwen3", "families": ["qwen3"],
            "parameter_size": "8.2B", "quantization_level": "Q4_K_M"})
    );
    assert_eq!(known["digest"].as_str().unwrap().len(), 64);
    assert!(known["modified_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(tags["models"][0]["details"]["families"], json!([]));
    let ps = get(&kit, "/api/ps").await;
    assert_eq!(ps["models"].as_array().unwrap().len(), 1, "of the other one it is not known");
    assert_eq!(
        (&ps["models"][0]["size_vram"], &ps["models"][0]["context_length"]),
        (&json!(6_000_000_000_u64), &json!(40_960))
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_is_shown_by_either_name_and_field() {
    let kit = Kit::new();
    let _knowing = join(&kit, &["qwen3:8b"], known());
    let (status, shown) =
        post(&kit, "/api/show", &json!({"model": "qwen3:8b", "verbose": true})).await;
    assert_eq!((status, &shown["capabilities"]), (200, &json!(["completion", "vision"])));
    assert_eq!(shown["model_info"]["general.architecture"], "qwen3");
    assert_eq!(shown["model_info"]["qwen3.context_length"], 40_960);
    assert_eq!(shown["parameters"], "num_ctx 40960");
    for body in
        [json!({"model": "m"}), json!({"name": "m:latest"}), json!({"model": "", "name": "m"})]
    {
        let (status, shown) = post(&kit, "/api/show", &body).await;
        assert_eq!(
            (status, &shown["capabilities"]),
            (200, &json!(["completion", "tools"])),
            "{body}"
        );
        assert_eq!(shown["model_info"]["general.architecture"], "unknown");
    }
    kit.serves(&["m"], &[Endpoint::Embeddings]);
    let (_, shown) = post(&kit, "/api/show", &json!({"model": "m"})).await;
    assert_eq!(shown["capabilities"], json!(["embedding"]));
    for (body, status, words) in [
        (json!({"model": "qwen3:8c"}), 404, "the nearest that exists is qwen3:8b"),
        (json!({}), 400, "`model`"),
        (json!({"model": 7}), 400, "`model`"),
        (json!([]), 400, "`model`"),
    ] {
        let (actual, error) = post(&kit, "/api/show", &body).await;
        assert!(
            actual == status && error["error"].as_str().unwrap().contains(words),
            "{body}: {error}"
        );
    }
    let long = json!({"model": "m", "x": "y".repeat(70_000)});
    assert_eq!(post(&kit, "/api/show", &long).await.0, 413);
}

#[tokio::test(start_paused = true)]
async fn an_alias_is_a_model_with_and_without_latest() {
    let alias =
        ("fast".to_owned(), vec!["qwen3:8b".to_owned()], [("temperature".to_owned(), json!(0.1))]);
    let mut kit = Kit::with_aliases(Aliases::new([alias]).unwrap(), |_, _| {});
    let knowing = join(&kit, &["qwen3:8b"], known());
    let (status, shown) = post(&kit, "/api/show", &json!({"model": "fast:latest"})).await;
    assert_eq!((status, &shown["capabilities"]), (200, &json!(["completion", "vision"])));
    drop(knowing);
    kit.serves(&["qwen3:8b"], &[Endpoint::ChatCompletions]);
    let body = json!({"model": "fast:latest", "prompt": "x", "stream": false});
    let body = body.to_string();
    let answer = r#"{"choices":[{"message":{"content":"hello"}}]}"#;
    let answering = kit.post_for_all(
        "/api/generate",
        &body,
        crate::kit::head(&[crate::room_kit::JSON]),
        answer,
    );
    let answer: Value = serde_json::from_str(&text(answering.await).await).unwrap();
    assert_eq!((&answer["model"], &answer["response"]), (&json!("fast:latest"), &json!("hello")));
}

#[tokio::test(start_paused = true)]
async fn a_key_sees_what_it_may_use() {
    let kit = Kit::with(|rules, _| rules.require_key = true);
    let _knowing = join(&kit, &["qwen3:8b"], known());
    let new = NewKey {
        name: "k".to_owned(),
        scopes: vec![KeyScope::Inference],
        models: vec!["m".to_owned()],
        ..NewKey::default()
    };
    let key = kit.keys.create(new, Moment::now()).unwrap().1;
    let bearer = format!("Bearer {}", key.expose());
    let with_key = async |method: Method, path: &str, body: &str| {
        let request = Request::builder().method(method).uri(path).header("authorization", &bearer);
        let response = kit.send(request.body(Body::from(body.to_owned())).unwrap()).await;
        let status = response.status().as_u16();
        (status, serde_json::from_str::<Value>(&text(response).await).unwrap())
    };
    let (_, tags) = with_key(Method::GET, "/api/tags", "").await;
    assert_eq!(tags["models"].as_array().unwrap().len(), 1);
    assert_eq!(with_key(Method::POST, "/api/show", r#"{"model":"qwen3:8b"}"#).await.0, 404);
    let chat = r#"{"model":"qwen3:8b","messages":[]}"#;
    assert_eq!(with_key(Method::POST, "/api/chat", chat).await.0, 403);
    for path in ["/api/tags", "/api/ps"] {
        let refused = ask(&kit, Method::GET, path, "").await;
        assert_eq!(refused.status(), 401, "{path}");
        let answer: Value = serde_json::from_str(&text(refused).await).unwrap();
        assert!(answer["error"].is_string(), "{answer}");
    }
    assert_eq!(post(&kit, "/api/copy", &json!({})).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn pulling_reports_what_is_there() {
    let kit = Kit::new();
    let response = ask(&kit, Method::POST, "/api/pull", r#"{"model":"m:latest"}"#).await;
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let lines = text(response).await;
    assert_eq!(lines.lines().last(), Some(r#"{"status":"success"}"#));
    let whole = post(&kit, "/api/pull", &json!({"name": "m", "stream": false})).await;
    assert_eq!(whole, (200, json!({"status": "success"})));
    let (status, answer) = post(&kit, "/api/pull", &json!({"model": "llama9"})).await;
    assert!(
        status == 404 && answer["error"].as_str().unwrap().contains("fetches no models"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_changes_models_is_refused_in_words() {
    let kit = Kit::new();
    for (method, path) in [
        (Method::POST, "/api/create"),
        (Method::POST, "/api/copy"),
        (Method::DELETE, "/api/delete"),
        (Method::POST, "/api/push"),
        (Method::POST, "/api/blobs/sha256:00"),
        (Method::HEAD, "/api/blobs/sha256:00"),
    ] {
        let refused = ask(&kit, method.clone(), path, r#"{"model":"m"}"#).await;
        assert_eq!(refused.status(), 501, "{method} {path}");
        if method != Method::HEAD {
            let answer: Value = serde_json::from_str(&text(refused).await).unwrap();
            assert!(
                answer["error"].as_str().unwrap().contains("models is not possible here"),
                "{answer}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn programs_find_an_ollama_and_browsers_the_page() {
    let kit = Kit::new();
    let root = async |method: Method, accept: Option<&str>| {
        let mut request = Request::builder().method(method).uri("/");
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let response = kit.send(request.body(Body::empty()).unwrap()).await;
        (response.status().as_u16(), text(response).await)
    };
    for accept in [None, Some("*/*"), Some("application/json")] {
        let (status, answer) = root(Method::GET, accept).await;
        assert_eq!((status, answer.as_str()), (200, "Ollama is running"), "{accept:?}");
        assert_eq!(root(Method::HEAD, accept).await.0, 200);
    }
    let page = "text/html,application/xhtml+xml,*/*;q=0.8";
    let (status, answer) = root(Method::GET, Some(page)).await;
    assert!(status == 200 && answer.starts_with("<!doctype html>"), "{answer}");
    assert_eq!(root(Method::POST, None).await.0, 404);
    let version = get(&kit, "/api/version").await;
    let numbers: Vec<u32> =
        version["version"].as_str().unwrap().split('.').map(|it| it.parse().unwrap()).collect();
    assert!(numbers >= vec![0, 12, 0], "{version}");
}

#[tokio::test(start_paused = true)]
async fn a_room_has_the_same_lists() {
    let kit = Kit::new();
    let room = kit.room(None);
    let _lent = kit.lends(&room, "one", &["a:8b", "b"], &[Endpoint::ChatCompletions]);
    let tags = get(&kit, &path(&room, "/api/tags")).await;
    let names: Vec<&Value> =
        tags["models"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["a:8b", "b:latest"]);
    let (status, _) = post(&kit, &path(&room, "/api/show"), &json!({"model": "b:latest"})).await;
    assert_eq!(status, 200);
    let (status, answer) = post(&kit, &path(&room, "/api/show"), &json!({"model": "m"})).await;
    assert!(status == 404 && answer["error"].is_string(), "{answer}");
    assert!(get(&kit, &path(&room, "/api/version")).await["version"].is_string());
    let load = json!({"model": "b", "messages": []});
    let (status, answer) = post(&kit, &path(&room, "/api/chat"), &load).await;
    assert_eq!((status, &answer["done_reason"]), (200, &json!("load")));
}
