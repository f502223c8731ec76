//! Names that stand for models.

use api::Aliases;
use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::kit::{Kit, head, sent, text};

/// `fast` stands for `big`, else for `m`, and has a temperature.
fn kit() -> Kit {
    let defaults = json!({"temperature": 0.2, "stop": ["x"]}).as_object().unwrap().clone();
    let targets = vec!["big".to_owned(), "m".to_owned()];
    let aliases = Aliases::new([("fast".to_owned(), targets, defaults)]).unwrap();
    Kit::with_aliases(aliases, |_, _| {})
}

async fn listed(kit: &Kit) -> Vec<String> {
    let request = Request::get("/v1/models").body(Body::empty()).unwrap();
    let list: Value = serde_json::from_str(&text(kit.send(request).await).await).unwrap();
    let models = list["data"].as_array().unwrap();
    models.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

async fn shown(kit: &Kit, model: &str) -> u16 {
    let request = Request::get(format!("/v1/models/{model}")).body(Body::empty()).unwrap();
    kit.send(request).await.status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_target_is_asked_by_its_own_name_with_the_aliass_defaults() {
    let mut kit = kit();
    let body = r#"{"temperature":1, "model":"fast"}"#;
    let (_response, assignment) = kit.post("/v1/chat/completions", body).await;
    assert_eq!(assignment.request.model.as_str(), "m");
    assert_eq!(assignment.request.body, r#"{"temperature":1, "model":"m","stop":["x"]}"#);
}

#[tokio::test(start_paused = true)]
async fn the_first_target_that_is_there_is_preferred_and_the_next_tried() {
    let mut kit = kit();
    let _big = kit.join(2, &["big"], &[Endpoint::ChatCompletions]);
    let request = Request::post("/v1/chat/completions");
    let request = request.body(Body::from(r#"{"model":"fast"}"#)).unwrap();
    let response = tokio::spawn(kit.meanwhile(request));
    let first = kit.assigned().await;
    assert_eq!(sent(&first)["model"], "big");
    first.answer.fail("it is out of memory");
    let mut second = kit.assigned().await;
    assert_eq!(sent(&second), json!({"model": "m", "temperature": 0.2, "stop": ["x"]}));
    second.answer.head(head(&[("content-type", "application/json")])).unwrap();
    second.answer.chunk(Bytes::from_static(b"{}")).unwrap();
    second.answer.end();
    assert_eq!(text(response.await.unwrap()).await, "{}");
}

#[tokio::test(start_paused = true)]
async fn every_api_takes_an_alias() {
    let mut kit = kit();
    for path in ["/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"] {
        let (_response, assignment) = kit.post(path, r#"{"model":"fast"}"#).await;
        assert_eq!(sent(&assignment)["model"], "m", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_alias_is_listed_while_a_target_is_served_and_hides_a_model_of_its_name() {
    let mut kit = kit();
    assert_eq!(listed(&kit).await, ["fast", "m"]);
    assert_eq!(shown(&kit, "fast").await, 200);
    kit.serves(&["fast"], &[Endpoint::ChatCompletions]);
    assert!(listed(&kit).await.is_empty(), "none of the targets is there");
    assert_eq!(shown(&kit, "fast").await, 404);
    kit.lose_provider();
    let request = Request::post("/v1/chat/completions");
    let request = request.body(Body::from(r#"{"model":"fast"}"#)).unwrap();
    let response = kit.send(request).await;
    assert_eq!(response.status(), 404);
    assert!(text(response).await.contains("no provider for model fast"));
}

/// Ollama takes the tag `latest` where none is given, and lists its models with it.
#[tokio::test(start_paused = true)]
async fn a_model_is_asked_for_with_the_tag_latest_or_without() {
    let targets = vec!["big".to_owned()];
    let aliases = Aliases::new([("fast".to_owned(), targets, serde_json::Map::new())]).unwrap();
    let mut kit = Kit::with_aliases(aliases, |_, _| {});
    kit.serves(&["big:latest", "small"], &[Endpoint::ChatCompletions]);
    for (name, served) in [
        ("big", "big:latest"),
        ("big:latest", "big:latest"),
        ("fast", "big:latest"),
        ("small:latest", "small"),
    ] {
        let body = format!(r#"{{"model":"{name}"}}"#);
        let (_response, assignment) = kit.post("/v1/chat/completions", &body).await;
        assert_eq!(sent(&assignment)["model"], served, "{name}");
        assert_eq!(shown(&kit, name).await, 200, "{name}");
    }
    assert_eq!(listed(&kit).await, ["big:latest", "fast", "small"]);
    assert_eq!(shown(&kit, "big:8b").await, 404, "another tag is another model");
}
