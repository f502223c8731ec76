//! Agents that use this server's models: their keys, and the address that they get.

use std::sync::{Arc, Mutex};

use access::Moment;
use base::{KeyId, KeyScope};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::SessionId;
use serde_json::json;
use testkit::{RawConnection, RawRequest, RawServer};

use super::rig::{Rig, Watcher, create};
use crate::{
    Gateway, SessionModels, Workspace,
    host::EngineHost,
    sessions::{NewEngine, NewSession},
};

fn whose(host: &EngineHost, key: &str) -> Option<String> {
    let known = host.keys.present(key, KeyScope::Inference, Moment::now());
    known.ok().flatten().map(|key| key.id().to_string())
}

fn key(request: &RawRequest) -> String {
    let mut keys = request.headers.iter().filter_map(|line| {
        let headers = ["authorization: bearer ", "x-api-key: ", "x-goog-api-key: "];
        headers.iter().find_map(|header| line.strip_prefix(*header))
    });
    keys.next_back().unwrap_or_default().to_owned()
}

/// A model server that speaks all APIs. It answers with the request, the model and the owner of the
/// key.
async fn serve(workspace: &Workspace) {
    let server = RawServer::start().await;
    workspace.set_gateway(Gateway { url: server.url() });
    let host = Arc::downgrade(&workspace.host);
    tokio::spawn(async move {
        loop {
            let (connection, request) = server.request().await;
            let Some(host) = host.upgrade() else { return };
            answer(connection, &request, whose(&host, &key(&request))).await;
        }
    });
}

async fn answer(mut connection: RawConnection, request: &RawRequest, whose: Option<String>) {
    let Some(whose) = whose else { return connection.json("401 Unauthorized", "", "{}").await };
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let text = format!("{} {} for {whose}", request.line, body["model"]);
    let body = json!({
        "content": [{ "type": "text", "text": text }],
        "output": [{ "content": [{ "text": text }] }],
        "choices": [{ "message": { "content": text } }],
        "candidates": [{ "content": { "parts": [{ "text": text }] } }],
    });
    connection.json("200 OK", "connection: close\r\n", &body.to_string()).await;
}

fn agent(rig: &Rig, provider: &str, model: Option<&str>) -> NewSession {
    let (provider, model) = (provider.to_owned(), model.map(str::to_owned));
    let engine = NewEngine::Agent { provider, model, extra_args: Vec::new() };
    NewSession { engine, ..rig.site.shell("") }
}

async fn serving() -> (Rig, Workspace) {
    let (rig, workspace) = Rig::start().await;
    serve(&workspace).await;
    (rig, workspace)
}

#[tokio::test]
async fn each_agent_finds_the_server_and_is_known_there_by_its_session() {
    let (rig, workspace) = serving().await;
    for (provider, request) in [
        ("claude", "POST /v1/messages?beta=true \"tiny\""),
        ("codex", "POST /v1/responses \"tiny\""),
        ("opencode", "POST /v1/chat/completions \"tiny\""),
        // The path names the model.
        ("gemini", "POST /v1beta/models/tiny:generateContent null"),
    ] {
        let new = agent(&rig, provider, Some("warren:tiny"));
        let id = create(&workspace, new).await.unwrap();
        let mut seen = Watcher::attach(&workspace, id);
        let said = seen.answer(&workspace, "gateway").await;
        assert_eq!(said, format!("{request} for session:{id}"), "{provider}");
    }
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_key_is_for_inference_only_and_gone_after_its_session() {
    let (rig, workspace) = serving().await;
    let new = agent(&rig, "claude", Some("warren:tiny"));
    let id = create(&workspace, new).await.unwrap();
    let mut seen = Watcher::attach(&workspace, id);
    let key = seen.answer(&workspace, "env ANTHROPIC_AUTH_TOKEN").await;
    let host = Arc::clone(&workspace.host);
    assert_eq!(whose(&host, &key), Some(format!("session:{id}")));
    for scope in [KeyScope::Worker, KeyScope::Admin] {
        assert!(host.keys.present(&key, scope, Moment::now()).unwrap().is_none());
    }
    workspace.sessions.kill(id).await.unwrap();
    assert_eq!(whose(&host, &key), None);
    workspace.shut_down().await;
}

/// Has the model `tiny`, and keeps what it is told.
#[derive(Default)]
struct OneModel(Mutex<Vec<String>>);

impl SessionModels for OneModel {
    fn find<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), String>> {
        let found = if model == "tiny" { Ok(()) } else { Err("two has big".to_owned()) };
        async { found }.boxed()
    }

    fn begin(&self, key: &KeyId, session: SessionId, model: &str) {
        assert_eq!(key.as_str(), format!("session:{session}"));
        self.0.lock().unwrap().push(format!("begins {model}"));
    }

    fn end(&self, key: &KeyId) {
        assert!(key.as_str().starts_with("session:"));
        self.0.lock().unwrap().push("ends".to_owned());
    }
}

#[tokio::test]
async fn a_model_is_looked_for_before_its_session_is_made_and_known_as_long_as_its_key() {
    let (rig, workspace) = serving().await;
    let models = Arc::<OneModel>::default();
    let weak = Arc::downgrade(&models);
    workspace.set_models(weak);
    for mode in ["sdk", "pty"] {
        let (provider, model) = ("claude".to_owned(), Some("warren:none".to_owned()));
        let extra_args = Vec::new();
        let engine = match mode {
            "sdk" => NewEngine::Agent { provider, model, extra_args },
            _ => NewEngine::Interactive { provider, model, extra_args },
        };
        let new = NewSession { engine, ..rig.site.shell("") };
        assert_eq!(create(&workspace, new).await.unwrap_err().to_string(), "two has big");
    }
    // Models of the agents' makers are their own affair.
    create(&workspace, agent(&rig, "claude", Some("none"))).await.unwrap();
    let id = create(&workspace, agent(&rig, "claude", Some("warren:tiny"))).await.unwrap();
    assert_eq!(Watcher::attach(&workspace, id).answer(&workspace, "say x").await, "x");
    assert_eq!(*models.0.lock().unwrap(), ["begins tiny"]);
    workspace.sessions.kill(id).await.unwrap();
    assert_eq!(*models.0.lock().unwrap(), ["begins tiny", "ends"]);
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_terminals_key_is_gone_after_its_session_too() {
    let (rig, workspace) = serving().await;
    let engine = NewEngine::Interactive {
        provider: "claude".into(),
        model: Some("warren:tiny".into()),
        extra_args: Vec::new(),
    };
    let id = create(&workspace, NewSession { engine, ..rig.site.shell("") }).await.unwrap();
    let mut seen = Watcher::attach(&workspace, id);
    super::rig::prompt(&workspace, id, "gateway; env ANTHROPIC_AUTH_TOKEN; pid").unwrap();
    seen.until_shown(&format!("\"tiny\" for session:{id}")).await;
    seen.until_shown("\nws_").await;
    let key = seen.text.split("\nws_").nth(1).unwrap().lines().next().unwrap();
    let key = format!("ws_{}", key.trim());
    assert!(whose(&workspace.host, &key).is_some());
    workspace.sessions.kill(id).await.unwrap();
    testkit::eventually("the key ends", testkit::DEADLINE, || async {
        whose(&workspace.host, &key).is_none()
    })
    .await;
    workspace.shut_down().await;
}

#[tokio::test]
async fn without_the_gateway_an_agent_is_told_of_no_server() {
    let (rig, workspace) = serving().await;
    let id = create(&workspace, agent(&rig, "claude", Some("opus"))).await.unwrap();
    let mut seen = Watcher::attach(&workspace, id);
    assert_eq!(seen.answer(&workspace, "gateway").await, "no gateway");
    assert_eq!(seen.answer(&workspace, "env ANTHROPIC_AUTH_TOKEN").await, "unset");
    workspace.shut_down().await;
}

#[tokio::test]
async fn where_all_agents_use_the_gateway_a_model_must_be_named_once() {
    let mut rig = Rig::new();
    rig.site.settings.agents.use_gateway = true;
    let workspace = rig.site.start().await;
    let refused = create(&workspace, agent(&rig, "claude", None)).await.unwrap_err().to_string();
    assert!(refused.contains("no model is named"), "{refused}");
    serve(&workspace).await;
    let id = create(&workspace, agent(&rig, "claude", Some("small"))).await.unwrap();
    let said = Watcher::attach(&workspace, id).answer(&workspace, "gateway").await;
    assert!(said.contains("\"small\" for session:"), "{said}");
    workspace.shut_down().await;
    rig.site.settings.agents.model = Some("warren:tiny".to_owned());
    let workspace = rig.site.start().await;
    serve(&workspace).await;
    let id = create(&workspace, agent(&rig, "claude", None)).await.unwrap();
    let said = Watcher::attach(&workspace, id).answer(&workspace, "gateway").await;
    assert!(said.contains("\"tiny\" for session:"), "{said}");
    workspace.shut_down().await;
}

#[tokio::test]
async fn an_agent_that_cannot_use_the_gateway_is_refused_in_words() {
    let (rig, workspace) = Rig::start().await;
    let new = agent(&rig, "own", Some("warren:tiny"));
    let refused = create(&workspace, new).await.unwrap_err().to_string();
    assert!(refused.contains("claude, codex, opencode"), "{refused}");
    // As long as the server's address is unknown, a prompt is refused, but not the session.
    let id = create(&workspace, agent(&rig, "claude", Some("warren:tiny"))).await.unwrap();
    let refused = super::rig::prompt(&workspace, id, "say x").unwrap_err().to_string();
    assert!(refused.contains("not known yet"), "{refused}");
    serve(&workspace).await;
    assert_eq!(Watcher::attach(&workspace, id).answer(&workspace, "say x").await, "x");
    workspace.shut_down().await;
}
