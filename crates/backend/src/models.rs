//! Lists of models, in the OpenAI form (`/v1/models`) and in Ollama's (`/api/tags`).

use std::time::Duration;

use base::{Capabilities, Continuation, Endpoint, Endpoints, FactsByModel, LoadState, ModelFacts};
use http::Response;
use serde::Deserialize;
use serde_json::Value;

use crate::{client::Body, facts::ServerKind};

/// How long a backend may take to give its list.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// The longest list that is read, in bytes.
pub const MAX_LIST: usize = 4 * 1024 * 1024;

/// The header that distinguishes a Warren from a model server.
const WARREN_HEADER: &str = "x-warren-version";

/// The owner of a Warren's models in its list.
const WARREN_OWNER: &str = "warren";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelList {
    /// The names, as they come.
    pub(crate) names: Vec<String>,
    /// Whether a Warren gave it.
    pub(crate) is_warren: bool,
    /// Which program gave it, if the list tells.
    pub(crate) kind: Option<ServerKind>,
    /// The facts in the list, by name.
    pub(crate) facts: FactsByModel,
    /// The endpoints without a translation that it names, for any model.
    pub(crate) untranslated: Endpoints,
}

/// The list in a response, or what is wrong with it.
pub(crate) async fn read(response: Response<Body>) -> Result<ModelList, String> {
    let status = response.status();
    let told = response.headers().contains_key(WARREN_HEADER);
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    let body = response.into_body().whole(MAX_LIST).await?;
    let list = parse(&body).ok_or("what it answered is none")?;
    Ok(ModelList { is_warren: told || list.is_warren, ..list })
}

/// A list in either form; `None` if the body is neither.
fn parse(body: &[u8]) -> Option<ModelList> {
    match serde_json::from_slice(body).ok()? {
        AnyList::OpenAi { data } => {
            let mut owners = data.iter().filter_map(|item| item.owned_by.as_deref());
            let is_warren = owners.clone().any(|owner| owner == WARREN_OWNER);
            let kind = owners.find_map(ServerKind::of_owner);
            let facts = data.iter().map(|item| (item.id.clone(), item.facts()));
            let facts = facts.filter(|(_, facts)| !facts.is_empty()).collect();
            let untranslated = data.iter().flat_map(OpenAiModel::untranslated).collect();
            let names = data.into_iter().map(|item| item.id).collect();
            Some(ModelList { names, is_warren, kind, facts, untranslated })
        }
        AnyList::Ollama { models } => {
            let names = models.into_iter().map(|item| item.name).collect();
            Some(ModelList { names, kind: Some(ServerKind::Ollama), ..ModelList::default() })
        }
    }
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
    /// Of routers to many models, and of a Warren.
    #[serde(default)]
    context_length: Value,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    quantization: Value,
    /// Of a Warren.
    #[serde(default)]
    state: Value,
    #[serde(default)]
    endpoints: Value,
    /// Of a Warren.
    #[serde(default)]
    continuation: Value,
    /// Of llama.cpp where it has several models.
    #[serde(default)]
    status: Value,
}

impl OpenAiModel {
    /// The facts in its fields. A field of an unexpected type is ignored.
    fn facts(&self) -> ModelFacts {
        let context = [
            &self.max_model_len,
            &self.context_length,
            &self.meta["n_ctx"],
            &self.meta["n_ctx_train"],
        ];
        let facts = ModelFacts {
            context_tokens: context.iter().find_map(|value| value.as_u64()),
            max_context_tokens: self.meta["n_ctx_train"].as_u64(),
            memory_bytes: self.meta["size"].as_u64(),
            file_bytes: self.meta["size"].as_u64(),
            parameters: self.meta["n_params"].as_u64(),
            quantization: self.quantization.as_str().map(Box::from),
            capabilities: self.capabilities(),
            load: self.load(),
            continuation: Continuation::deserialize(&self.continuation).ok(),
            ..ModelFacts::default()
        };
        facts.cleaned()
    }

    fn untranslated(&self) -> impl Iterator<Item = Endpoint> {
        let paths = self.endpoints.as_array().into_iter().flatten().filter_map(Value::as_str);
        paths.filter_map(Endpoint::of_path).filter(|endpoint| endpoint.is_untranslated())
    }

    /// Those of its capabilities that Warren knows; `None` if it knows none of them.
    fn capabilities(&self) -> Option<Capabilities> {
        let names = self.capabilities.as_array()?.iter().filter_map(Value::as_str);
        Some(Capabilities::of_names(names)).filter(|known| *known != Capabilities::default())
    }

    fn load(&self) -> Option<LoadState> {
        let told = self.state.as_str().or(self.status["value"].as_str())?;
        match told {
            "loaded" => Some(LoadState::Loaded),
            "loading" => Some(LoadState::Loading),
            "unloaded" => Some(LoadState::Unloaded),
            _ => None,
        }
    }
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
        let size = Some(4_920_733_696);
        let llama = ModelFacts {
            context_tokens: Some(131_072),
            max_context_tokens: Some(131_072),
            memory_bytes: size,
            file_bytes: size,
            ..ModelFacts::default()
        };
        let vllm = ModelFacts { context_tokens: Some(32_768), ..ModelFacts::default() };
        let expected = [("llama".to_owned(), llama), ("vllm".to_owned(), vllm)];
        assert_eq!((list.names.len(), list.facts), (4, expected.into_iter().collect()));
        assert_eq!(list.kind, Some(ServerKind::LlamaCpp));
    }

    #[test]
    fn what_a_warren_and_a_router_say_is_read() {
        let list = br#"{"data":[
            {"id":"w","owned_by":"warren","capabilities":["tools"],"quantization":"Q8_0","state":"loading",
                "continuation":"last_message"},
            {"id":"r","status":{"value":"unloaded"},"capabilities":["multimodal"]}]}"#;
        let facts = parse(list).unwrap().facts;
        let tools = Capabilities::of_names(["tools"]);
        assert_eq!(
            (facts["w"].capabilities, facts["w"].load),
            (Some(tools), Some(LoadState::Loading))
        );
        assert_eq!(facts["w"].quantization.as_deref(), Some("Q8_0"));
        assert_eq!(facts["w"].continuation, Some(Continuation::LastMessage));
        assert_eq!((facts["r"].capabilities, facts["r"].load), (None, Some(LoadState::Unloaded)));
    }

    #[test]
    fn a_list_tells_the_program_by_the_owners_of_models() {
        let kind = |owner| {
            let list = format!(r#"{{"data":[{{"id":"a"}},{{"id":"b","owned_by":"{owner}"}}]}}"#);
            parse(list.as_bytes()).unwrap().kind
        };
        assert_eq!(kind("library"), Some(ServerKind::Ollama));
        assert_eq!(kind("vllm"), Some(ServerKind::Vllm));
        assert_eq!(kind("sglang"), Some(ServerKind::Sglang));
        assert_eq!(kind("openai"), Some(ServerKind::Other));
        assert_eq!(kind("somebody"), None);
    }

    #[test]
    fn anything_else_is_no_list() {
        for other in ["", "[]", "{}", "<html>", r#"{"data":{}}"#, r#"{"data":[{"name":1}]}"#] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
