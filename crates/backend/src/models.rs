//! Lists of models, in the OpenAI form (`/v1/models`) and in Ollama's (`/api/tags`).

use std::time::Duration;

use base::{FactsByModel, ModelFacts};
use http::Response;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::Value;

/// How long a backend may take to give its list.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// The longest list that is read, in bytes.
pub const MAX_LIST: usize = 4 * 1024 * 1024;

/// The header by which a Warren tells itself from a model server.
const WARREN_HEADER: &str = "x-warren-version";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelList {
    /// The names, as they come.
    pub(crate) names: Vec<String>,
    /// Whether a Warren gave it.
    pub(crate) is_warren: bool,
    /// Whether an Ollama gave it, which says more elsewhere.
    pub(crate) is_ollama: bool,
    /// What it says of them, by name.
    pub(crate) facts: FactsByModel,
}

/// The list in a response, or what is wrong with it.
pub(crate) async fn read(response: Response<Incoming>) -> Result<ModelList, String> {
    let status = response.status();
    let told = response.headers().contains_key(WARREN_HEADER);
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    #[expect(clippy::disallowed_methods, reason = "the body is limited")]
    let body = Limited::new(response.into_body(), MAX_LIST).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    let list = parse(&body).ok_or("what it answered is none")?;
    Ok(ModelList { is_warren: told || list.is_warren, ..list })
}

/// A list in either form; `None` when it is neither.
fn parse(body: &[u8]) -> Option<ModelList> {
    match serde_json::from_slice(body).ok()? {
        AnyList::OpenAi { data } => {
            let is_by = |owner| data.iter().any(|item| item.owned_by.as_deref() == Some(owner));
            let (is_warren, is_ollama) = (is_by("warren"), is_by("library"));
            let facts = data.iter().map(|item| (item.id.clone(), item.facts()));
            let facts = facts.filter(|(_, facts)| !facts.is_empty()).collect();
            let names = data.into_iter().map(|item| item.id).collect();
            Some(ModelList { names, is_warren, is_ollama, facts })
        }
        AnyList::Ollama { models } => {
            let names = models.into_iter().map(|item| item.name).collect();
            Some(ModelList { names, is_ollama: true, ..ModelList::default() })
        }
    }
}

/// The loaded models of an Ollama, as `/api/ps` lists them, with what they take.
pub(crate) async fn read_loaded(response: Response<Incoming>) -> Option<FactsByModel> {
    #[expect(clippy::disallowed_methods, reason = "the body is limited")]
    let body = Limited::new(response.into_body(), MAX_LIST).collect().await.ok()?;
    loaded(&body.to_bytes())
}

fn loaded(body: &[u8]) -> Option<FactsByModel> {
    let Loaded { models } = serde_json::from_slice(body).ok()?;
    let facts = |model: LoadedModel| {
        let (context_tokens, memory_bytes) = (model.context_length.as_u64(), model.size.as_u64());
        (model.name, ModelFacts { context_tokens, memory_bytes, ..ModelFacts::default() })
    };
    Some(models.into_iter().map(facts).collect())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyList {
    OpenAi { data: Vec<OpenAiModel> },
    Ollama { models: Vec<OllamaModel> },
}

#[derive(Deserialize)]
struct OpenAiModel {
    id: String,
    #[serde(default)]
    owned_by: Option<String>,
    /// Of llama.cpp.
    #[serde(default)]
    meta: Value,
    /// Of vLLM.
    #[serde(default)]
    max_model_len: Value,
    /// Of routers to many models.
    #[serde(default)]
    context_length: Value,
}

impl OpenAiModel {
    /// What it says of itself. Fields of another type than expected say nothing.
    fn facts(&self) -> ModelFacts {
        let context = [
            &self.max_model_len,
            &self.context_length,
            &self.meta["n_ctx"],
            &self.meta["n_ctx_train"],
        ];
        ModelFacts {
            context_tokens: context.iter().find_map(|value| value.as_u64()),
            memory_bytes: self.meta["size"].as_u64(),
            ..ModelFacts::default()
        }
    }
}

#[derive(Deserialize)]
struct Loaded {
    models: Vec<LoadedModel>,
}

#[derive(Deserialize)]
struct LoadedModel {
    name: String,
    /// Its bytes in all memory, a graphics card's included.
    #[serde(default)]
    size: Value,
    #[serde(default)]
    context_length: Value,
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let openai = br#"{"object":"list","data":[{"id":"a","owned_by":"x"},{"id":"b"}]}"#;
        assert_eq!(parse(openai).unwrap().names, ["a", "b"]);
        let ollama = br#"{"models":[{"name":"llama3:8b","size":1}]}"#;
        assert_eq!(parse(ollama).unwrap().names, ["llama3:8b"]);
        let both = br#"{"models":[{"name":"m"}],"object":"list","data":[{"id":"m"}]}"#;
        assert_eq!(parse(both).unwrap().names, ["m"]);
    }

    #[test]
    fn a_warren_is_known_by_its_items() {
        assert!(parse(br#"{"data":[{"id":"a","owned_by":"warren"}]}"#).unwrap().is_warren);
        assert!(!parse(br#"{"data":[]}"#).unwrap().is_warren);
    }

    #[test]
    fn what_a_list_says_of_its_models_is_read() {
        let list = br#"{"data":[
            {"id":"llama","owned_by":"llamacpp","meta":{"n_ctx_train":131072,"size":4920733696}},
            {"id":"vllm","max_model_len":32768},{"id":"odd","max_model_len":"many","meta":[1]},{"id":"none"}]}"#;
        let list = parse(list).unwrap();
        let facts = |context_tokens, memory_bytes| ModelFacts {
            context_tokens,
            memory_bytes,
            ..ModelFacts::default()
        };
        let expected = [
            ("llama".to_owned(), facts(Some(131_072), Some(4_920_733_696))),
            ("vllm".to_owned(), facts(Some(32_768), None)),
        ];
        assert_eq!((list.names.len(), list.facts), (4, expected.into_iter().collect()));
        let ps = br#"{"models":[{"name":"qwen3:8b","size":6442450944,"size_vram":1,"context_length":40960}]}"#;
        let loaded = loaded(ps).unwrap();
        assert_eq!(loaded["qwen3:8b"], facts(Some(40_960), Some(6 << 30)));
        assert!(parse(br#"{"data":[{"id":"a","owned_by":"library"}]}"#).unwrap().is_ollama);
    }

    #[test]
    fn anything_else_is_no_list() {
        for other in ["", "[]", "{}", "<html>", r#"{"data":{}}"#, r#"{"data":[{"name":1}]}"#] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
