//! Facts that model servers report of their models beyond their lists.

use backend::{Backend, BackendConfig, Continues, DemoConfig};
use base::{Capabilities, Continuation, LoadState};
use serde_json::json;
use testkit::{MockBackend, MockOllama, OllamaModel, Reply, Story};

async fn looked_at(url: &str) -> Backend {
    let backend = Backend::http(&BackendConfig::new(url)).unwrap();
    backend.models().await.unwrap();
    backend.look_closer().await;
    backend
}

#[tokio::test]
async fn an_ollama_tells_all_of_its_models_and_shows_each_once() {
    let tool = OllamaModel::new("qwen3:8b").loaded_with(8_192);
    let embedding = OllamaModel::new("nomic:latest").able(&["embedding"]);
    let ollama = MockOllama::start(vec![tool.clone(), embedding.clone()]).await;
    let backend = looked_at(&ollama.url()).await;
    let facts = backend.facts();
    let qwen = &facts["qwen3:8b"];
    assert_eq!((qwen.context_tokens, qwen.max_context_tokens), (Some(8_192), Some(131_072)));
    assert_eq!(
        (qwen.load, qwen.quantization.as_deref()),
        (Some(LoadState::Loaded), Some("Q4_K_M"))
    );
    let able = Capabilities::of_names(["completion", "tools", "thinking"]);
    assert_eq!((qwen.capabilities, qwen.file_bytes), (Some(able), Some(5_225_388_164)));
    let nomic = &facts["nomic:latest"];
    assert_eq!((nomic.load, nomic.context_tokens), (Some(LoadState::Unloaded), None));
    assert_eq!(ollama.shows(), 2);

    assert!(!backend.look_closer().await, "nothing is new");
    ollama.set_models(vec![tool, OllamaModel { digest: "other".to_owned(), ..embedding }]);
    backend.look_closer().await;
    assert_eq!(ollama.shows(), 3, "one has another digest");
}

#[tokio::test]
async fn a_model_that_is_unloaded_is_told_so_at_the_next_look() {
    let model = OllamaModel::new("m");
    let ollama = MockOllama::start(vec![model.clone().loaded_with(9)]).await;
    let backend = looked_at(&ollama.url()).await;
    ollama.set_models(vec![model]);
    assert!(backend.look_closer().await);
    let facts = &backend.facts()["m"];
    assert_eq!((facts.load, facts.context_tokens), (Some(LoadState::Unloaded), Some(9)));
}

/// Models of others than the library have another owner in the list.
#[tokio::test]
async fn an_ollama_is_known_by_its_version_too() {
    let ollama = MockOllama::start(vec![OllamaModel::new("hf.co/ann/m:Q8_0")]).await;
    ollama.backend.tell_with({
        move |received| match received.target.as_str() {
            "/v1/models" => {
                Some(Reply::json(200, &json!({"data": [{"id": "m", "owned_by": "ann"}]})))
            }
            "/api/version" => Some(Reply::json(200, &json!({"version": "0.12.6"}))),
            "/api/tags" => Some(Reply::json(
                200,
                &json!({"models": [{"name": "m", "digest": "1", "size": 5}]}),
            )),
            "/api/ps" => Some(Reply::json(500, &json!({}))),
            "/api/show" => Some(Reply::json(500, &json!({"error": "no"}))),
            _ => None,
        }
    });
    let facts = looked_at(&ollama.url()).await.facts();
    assert_eq!((facts["m"].file_bytes, facts["m"].load), (Some(5), None), "what fails is left out");
}

#[tokio::test]
async fn llama_cpp_tells_the_context_of_a_slot_and_lm_studio_its_states() {
    let llama = MockBackend::start(&[]).await;
    let list =
        json!({"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32_768}}]});
    llama.set_get("/v1/models", list);
    let props = json!({"default_generation_settings": {"n_ctx": 4_096}, "chat_template": "x"});
    llama.set_get("/props", props);
    let facts = looked_at(&llama.url()).await.facts();
    assert_eq!(
        (facts["m"].context_tokens, facts["m"].max_context_tokens),
        (Some(4_096), Some(32_768))
    );

    let studio = MockBackend::start(&["m"]).await;
    studio.set_get(
        "/api/v0/models",
        json!({"data": [{"id": "m", "type": "llm", "state": "loaded"}]}),
    );
    let facts = looked_at(&studio.url()).await.facts();
    assert_eq!(facts["m"].load, Some(LoadState::Loaded));
}

#[tokio::test]
async fn an_answer_over_its_bound_tells_nothing() {
    let ollama = MockOllama::start(vec![OllamaModel::new("m")]).await;
    let long = "x".repeat(backend::models::MAX_LIST);
    ollama.backend.tell_with(move |received| match received.target.as_str() {
        "/v1/models" => {
            Some(Reply::json(200, &json!({"data": [{"id": "m", "owned_by": "library"}]})))
        }
        "/api/tags" => Some(Reply::json(200, &json!({"models": [], "x": long}))),
        _ => None,
    });
    assert!(looked_at(&ollama.url()).await.facts().is_empty());
}

/// How a server's only model goes on with answers, as far as the server tells.
async fn goes_on(backend: &Backend) -> Option<Continuation> {
    backend.models().await.unwrap();
    backend.look_closer().await;
    backend.facts().into_values().find_map(|facts| facts.continuation)
}

async fn at(backend: &MockBackend) -> Option<Continuation> {
    goes_on(&Backend::http(&BackendConfig::new(backend.url())).unwrap()).await
}

#[tokio::test]
async fn servers_that_go_on_with_answers_are_told_from_others() {
    let llama_cpp = Story::like_llama_cpp().start_with(&["m"]).await;
    assert_eq!(at(&llama_cpp).await, Some(Continuation::LastMessage));
    let vllm = Story::like_vllm().start_with(&["m"]).await;
    assert_eq!(at(&vllm).await, Some(Continuation::FinalMessage));
    vllm.set_get("/version", json!({"version": "0.5.0"}));
    assert_eq!(at(&vllm).await, None, "an old one begins anew");
    assert_eq!(at(&MockBackend::start(&["m"]).await).await, None);
    let demo = Backend::demo(DemoConfig::default());
    assert_eq!(goes_on(&demo).await, Some(Continuation::LastMessage));
}

/// A llama.cpp that was started with `--no-prefill-assistant`, or whose template ends every message.
#[tokio::test]
async fn a_llama_cpp_whose_prompt_goes_on_after_the_beginning_does_not_go_on() {
    let llama_cpp = Story::like_llama_cpp().start_with(&["m"]).await;
    llama_cpp.tell_with(|received| {
        let sent = received.json()["messages"][1]["content"].as_str()?.to_owned();
        (received.target == "/apply-template")
            .then(|| Reply::json(200, &json!({"prompt": format!("{sent}<|im_end|>\n")})))
    });
    assert_eq!(at(&llama_cpp).await, None);
}

#[tokio::test]
async fn what_is_set_is_told_of_a_server_that_does_not_tell() {
    let unknown = MockBackend::start(&["m"]).await;
    for continues in [Continues::LastMessage, Continues::FinalMessage, Continues::No] {
        let config =
            BackendConfig { continues: Some(continues), ..BackendConfig::new(unknown.url()) };
        assert_eq!(goes_on(&Backend::http(&config).unwrap()).await, continues.how());
    }
}
