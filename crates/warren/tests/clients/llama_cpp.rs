//! llama.cpp's own server on a model of random weights: what a real backend does with what Warren
//! sends it, and Warren with what it says.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};
use testkit::{ChildProcess, Client, DEADLINE, eventually, processes};

use crate::{
    house::{House, binary},
    program::{Program, Running, beside, installed},
    sdk,
};

/// The model's name.
pub(crate) const MODEL: &str = "tiny";
const CHAT: &str = "/v1/chat/completions";

/// The server alone. Dropping it kills it.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) url: String,
    _process: Running,
}

impl Server {
    /// With a model of the name [`MODEL`] that was made with these options.
    pub(crate) async fn start(options: &[&str]) -> Self {
        Self::with_flags(options, &[]).await
    }

    /// The same, with further flags of its own.
    async fn with_flags(options: &[&str], flags: &[&str]) -> Self {
        let python = installed("python").join("bin/python");
        let models = tempfile::tempdir().unwrap();
        let model = models.path().join("tiny.gguf");
        let made = Program::new(&python).args([beside("tiny_model.py"), model.clone()]);
        made.args(options).run().await.well();
        let server = Program::new(&python).args([beside("llama_cpp_server.py"), model]);
        let mut process = server.args(["0", MODEL]).args(flags).start();
        let line = process.line_with("listening on http://").await;
        let url = line.split_whitespace().last().unwrap().to_owned();
        Self { url, _process: process }
    }
}

/// The server behind a worker.
struct Llama {
    house: House,
    /// Straight to the server, without Warren.
    direct: Client,
    _server: Server,
}

impl Llama {
    /// With a model that was made with these options.
    async fn start(options: &[&str]) -> Self {
        Self::lent(options, &[]).await
    }

    /// One that ranks.
    async fn ranking() -> Self {
        Self::of(Server::with_flags(&[], &["--reranking"]).await, &[]).await
    }

    /// The same, behind a worker with further arguments.
    async fn lent(options: &[&str], worker: &[&str]) -> Self {
        Self::of(Server::start(options).await, worker).await
    }

    async fn of(server: Server, worker: &[&str]) -> Self {
        let house = House::lending(&[&["--backend", &server.url], worker].concat(), MODEL).await;
        let address = server.url.trim_start_matches("http://").parse().unwrap();
        Self { house, direct: Client::new(address), _server: server }
    }

    /// How many requests it works on, as it says itself.
    async fn at_work(&self) -> usize {
        let slots = self.direct.get("/slots").await.json();
        let slots = slots.as_array().expect("a list of slots").clone();
        slots.iter().filter(|slot| slot["is_processing"] == true).count()
    }

    async fn ask(&self, path: &str, body: &Value) -> Value {
        let answer = self.house.client().post_json(path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// The paths of [`MODEL`] that are never translated, as the server tells.
async fn untranslated(llama: &Llama) -> Vec<String> {
    let model = llama.house.client().get(&format!("/v1/models/{MODEL}")).await.json();
    let paths = model["endpoints"].as_array().unwrap().iter().filter_map(Value::as_str);
    let is_it = |path: &&str| base::Endpoint::of_path(path).is_some_and(|it| it.is_untranslated());
    paths.filter(is_it).map(str::to_owned).collect()
}

#[tokio::test]
async fn it_ranks_where_it_was_started_for_that() {
    let llama = Llama::ranking().await;
    assert_eq!(untranslated(&llama).await, ["/v1/rerank"]);
    let asked = json!({"model": MODEL, "query": "water", "top_n": 2, "documents": ["the of and", "water people could", "my"]});
    for path in ["/v1/rerank", "/v2/rerank"] {
        let through = llama.ask(path, &asked).await;
        let direct = llama.direct.post_json("/v1/rerank", &asked).await.json();
        assert_eq!(through, direct, "it passes as it is");
        let results = through["results"].as_array().unwrap();
        assert!(results.len() == 2 && results[0]["relevance_score"].is_number(), "{through}");
    }
}

#[tokio::test]
async fn elsewhere_it_does_not_rank() {
    let llama = Llama::start(&[]).await;
    assert_eq!(untranslated(&llama).await, [""; 0]);
    let asked = json!({"model": MODEL, "query": "water", "documents": ["my"]});
    let refused = llama.house.client().post_json("/v1/rerank", &asked).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (404, &"endpoint_not_served".into())
    );
}

/// Warren alone, which runs the server itself for a folder of models.
struct OwnEngines {
    process: ChildProcess,
    client: Client,
    place: tempfile::TempDir,
}

impl OwnEngines {
    /// With copies of one model under these names, and memory for one of them.
    async fn start(names: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let python = installed("python").join("bin/python");
        let folder = place.path().join("models");
        std::fs::create_dir_all(&folder).unwrap();
        let first = folder.join(format!("{}.gguf", names[0]));
        let made = Program::new(&python).args([beside("tiny_model.py"), first.clone()]);
        made.args(["--ends-after", "60"]).run().await.well();
        for name in &names[1..] {
            std::fs::copy(&first, folder.join(format!("{name}.gguf"))).unwrap();
        }
        let engine = place.path().join("llama-server");
        let (python, script) = (python.display(), beside("llama_server.py"));
        let text = format!("#!/bin/sh\nexec {python} {} \"$@\"\n", script.display());
        std::fs::write(&engine, text).unwrap();
        std::fs::set_permissions(&engine, PermissionsExt::from_mode(0o755)).unwrap();
        let shown = place.path().display();
        let settings = format!(
            "[[worker.engines]]\ncommand = '{shown}/llama-server'\nmodels = '{shown}/models'\n\
             memory = '300MiB'\ncontext = 8192\nflags = ['--threads', '1']\n\
             [worker.engines.model.'*']\nmemory = '200MiB'\n"
        );
        let config = place.path().join("warren.toml");
        std::fs::write(&config, settings).unwrap();
        let data = place.path().join("data").display().to_string();
        let config = config.display().to_string();
        let args = ["up", "--listen", "127.0.0.1:0", "--config", &config, "--data-dir", &data];
        let process = ChildProcess::start_at(place.path(), "up", binary(), &args);
        let client = Client::new(process.listening("http").await);
        Self { process, client, place }
    }

    async fn offers(&self, model: &str) {
        let offered = async || {
            let list = self.client.get("/v1/models").await.json();
            let mut all = list["data"].as_array().into_iter().flatten();
            all.any(|one| one["id"] == model)
        };
        eventually("the model being offered", DEADLINE, offered).await;
    }

    async fn answers(&self, path: &str, model: &str) -> String {
        let mut body = hi(json!({"stream": true}));
        body["model"] = json!(model);
        let answer = self.client.post_json(path, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    }

    fn engines(&self) -> Vec<processes::Process> {
        processes::with(&self.place.path().join("models").display().to_string(), "--port")
    }
}

#[tokio::test]
async fn warren_runs_it_for_a_folder_of_models_and_leaves_nothing_behind() {
    let mut own = OwnEngines::start(&["one", "two"]).await;
    for model in ["one", "two", "one"] {
        own.offers(model).await;
        let text = own.answers(CHAT, model).await;
        assert!(text.ends_with("data: [DONE]\n\n") && text.contains("\"content\":"), "{text}");
        assert_eq!(own.engines().len(), 1, "there is memory for one");
    }
    let message = own.answers("/v1/messages", "two").await;
    assert!(message.contains("event: message_stop"), "{message}");
    processes::kill9(own.engines()[0].pid);
    own.answers(CHAT, "two").await;
    own.process.kill9().await;
    eventually("the end of all", DEADLINE, async || own.engines().is_empty()).await;
}

/// A request of twelve tokens, and what more it shall say.
fn hi(more: Value) -> Value {
    let mut body = json!({
        "model": MODEL, "max_tokens": 12, "messages": [{"role": "user", "content": "hi there"}],
    });
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

#[tokio::test]
async fn answers_every_api_that_it_serves_itself() {
    let llama = Llama::start(&[]).await;
    let chat = llama.ask(CHAT, &hi(json!({}))).await;
    assert_eq!(chat["choices"][0]["finish_reason"], "length");
    assert_eq!(chat["usage"]["completion_tokens"], 12);
    // Its own fields are still there: nothing was serialised again.
    assert!(chat["timings"]["predicted_n"].is_number(), "{chat}");
    let message = llama.ask("/v1/messages", &hi(json!({}))).await;
    assert_eq!(
        (&message["type"], &message["usage"]["output_tokens"]),
        (&json!("message"), &json!(12))
    );
    let asked = json!({"model": MODEL, "input": "hi", "max_output_tokens": 12});
    let response = llama.ask("/v1/responses", &asked).await;
    assert_eq!(response["object"], "response");
    let asked = json!({"model": MODEL, "prompt": "hi", "max_tokens": 12});
    let completion = llama.ask("/v1/completions", &asked).await;
    assert_eq!(completion["choices"][0]["finish_reason"], "length");
}

/// It answers 501 to embeddings, which the worker has found out beforehand.
#[tokio::test]
async fn an_endpoint_that_it_does_not_serve_is_refused_as_such() {
    let llama = Llama::start(&[]).await;
    let body = json!({"model": MODEL, "input": "hi"});
    let answer = llama.house.client().post_json("/v1/embeddings", &body).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (404, &json!("endpoint_not_served"))
    );
}

#[tokio::test]
async fn streams() {
    let llama = Llama::start(&[]).await;
    let answer = llama.house.client().post_json(CHAT, &hi(json!({"stream": true}))).await;
    let text = answer.text();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(text.matches("\"content\":").count() > 6, "{text}");
    assert!(!text.contains("\"usage\":{"), "nobody asked for the usage: {text}");
    let body = hi(json!({"stream": true, "stream_options": {"include_usage": true}}));
    let text = llama.house.client().post_json(CHAT, &body).await.text();
    assert!(text.contains("\"completion_tokens\":12"), "{text}");
}

/// The model never ends: only a client that leaves frees its slot.
#[tokio::test]
async fn stops_when_the_client_leaves() {
    let llama = Llama::start(&[]).await;
    let endless = hi(json!({"stream": true, "max_tokens": 1_000_000}));
    let mut answer = llama.house.client().post(CHAT, &endless).start().await;
    answer.next_chunk().await.expect("a word");
    assert_eq!(llama.at_work().await, 1);
    drop(answer);
    eventually("the slot being free", DEADLINE, async || llama.at_work().await == 0).await;
    llama.house.daemon.is_idle().await;
}

#[tokio::test]
async fn serves_many_at_once() {
    let llama = Llama::start(&["--ends-after", "60"]).await;
    let asked = (0..16).map(|seed| {
        let body = hi(json!({"seed": seed, "temperature": 1, "max_tokens": 200}));
        let client = llama.house.client();
        tokio::spawn(async move { client.post_json(CHAT, &body).await })
    });
    let mut texts = BTreeSet::new();
    for answer in asked.collect::<Vec<_>>() {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        texts.insert(answer.json()["choices"][0]["message"]["content"].to_string());
    }
    assert!(texts.len() > 8, "random answers are not the same: {texts:?}");
}

#[tokio::test]
async fn calls_tools_and_keeps_to_schemas() {
    let llama = Llama::start(&["--ends-after", "60", "--calls-every", "12"]).await;
    let schema = json!({
        "type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"],
        "additionalProperties": false,
    });
    let tools = json!([{"name": "dig", "input_schema": schema}]);
    let more = json!({"tools": tools, "tool_choice": {"type": "any"}, "max_tokens": 400});
    let message = llama.ask("/v1/messages", &hi(more)).await;
    let blocks = message["content"].as_array().unwrap();
    let call = blocks.iter().find(|block| block["type"] == "tool_use");
    assert!(call.is_some_and(|call| call["input"]["x"].is_boolean()), "{message}");
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let chat = llama.ask(CHAT, &hi(json!({"response_format": format, "max_tokens": 400}))).await;
    let text = chat["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).unwrap()["x"].is_boolean(), "{text}");
}

/// The node protocol carries text only; its worker asks the server for it as chat.
#[tokio::test]
async fn serves_as_a_model_node() {
    let llama =
        Llama::lent(&["--ends-after", "60"], &["--protocol", "node", "--models", MODEL]).await;
    let chat = llama.ask(CHAT, &hi(json!({}))).await;
    let text = chat["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(!text.is_empty(), "{chat}");
    let message = llama.ask("/v1/messages", &hi(json!({}))).await;
    assert_eq!(message["content"][0]["type"], "text", "{message}");
    let asked = json!({"model": MODEL, "max_new_tokens": 50, "messages": [{"role": "user", "content": "hi"}]});
    let answer = llama.house.client().post_json("/api/chat", &asked).await.text();
    assert!(answer.contains("{\"done\":true}"), "{answer}");
}

#[tokio::test]
async fn its_errors_reach_the_client() {
    let llama = Llama::start(&[]).await;
    let body = json!({"model": MODEL, "messages": "none"});
    let answer = llama.house.client().post_json(CHAT, &body).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.json()["error"]["message"].is_string(), "{}", answer.text());
}

/// All but the accumulating helpers for Responses: llama.cpp's own events lack fields that both of
/// OpenAI's packages rely on (`content_index`, `output`), and they pass as they are.
#[tokio::test]
async fn serves_the_sdks() {
    let llama = Llama::start(&["--ends-after", "60"]).await;
    for (script, scenarios) in [
        ("openai_python.py", &["any_plain", "any_stream", "any_responses"][..]),
        ("anthropic_python.py", &["any_plain", "any_stream", "any_count_tokens"]),
        ("openai_node.mjs", &["any_plain", "any_stream", "any_responses"]),
        ("anthropic_node.mjs", &["any_plain", "any_stream"]),
    ] {
        for scenario in scenarios {
            sdk::native(script, scenario, &llama.house, MODEL).await;
        }
    }
}
