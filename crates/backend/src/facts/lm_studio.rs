//! The facts in LM Studio's own API, `/api/v0/models`.

use base::{Capabilities, Capability, FactsByModel, LoadState, ModelFacts};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Models {
    data: Vec<Value>,
}

/// The facts of its models; `None` if the body is not such a list.
pub(super) fn models(body: &[u8]) -> Option<FactsByModel> {
    let Models { data } = serde_json::from_slice(body).ok()?;
    // Other servers may answer any path with a list of models. Theirs has no `state`.
    if !data.is_empty() && data.iter().all(|model| model["state"].as_str().is_none()) {
        return None;
    }
    Some(
        data.iter()
            .filter_map(|model| Some((model["id"].as_str()?.to_owned(), facts(model))))
            .collect(),
    )
}

fn facts(model: &Value) -> ModelFacts {
    let text = |name: &str| model[name].as_str().map(Box::from);
    let number = |name: &str| model[name].as_u64().filter(|number| *number > 0);
    let facts = ModelFacts {
        context_tokens: number("loaded_context_length"),
        max_context_tokens: number("max_context_length"),
        quantization: text("quantization"),
        family: text("arch"),
        capabilities: capabilities(model),
        load: load(&model["state"]),
        ..ModelFacts::default()
    };
    facts.cleaned()
}

fn load(state: &Value) -> Option<LoadState> {
    match state.as_str()? {
        "loaded" => Some(LoadState::Loaded),
        "loading" => Some(LoadState::Loading),
        "not-loaded" => Some(LoadState::Unloaded),
        _ => None,
    }
}

fn capabilities(model: &Value) -> Option<Capabilities> {
    let none = Capabilities::default();
    let of_kind = match model["type"].as_str()? {
        "llm" => none.with(Capability::Completion),
        "vlm" => none.with(Capability::Completion).with(Capability::Vision),
        "embeddings" => none.with(Capability::Embedding),
        _ => return None,
    };
    let named = model["capabilities"].as_array();
    let calls_tools = named.is_some_and(|named| named.iter().any(|name| name == "tool_use"));
    Some(if calls_tools { of_kind.with(Capability::Tools) } else { of_kind })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kind_state_and_contexts_are_told() {
        let body = json!({"object": "list", "data": [
            {"id": "qwen2-vl", "type": "vlm", "arch": "qwen2_vl", "quantization": "4bit",
                "state": "loaded", "max_context_length": 32_768, "loaded_context_length": 8_192,
                "capabilities": ["tool_use"]},
            {"id": "nomic", "type": "embeddings", "state": "not-loaded"},
        ]});
        let facts = models(body.to_string().as_bytes()).unwrap();
        let (vlm, nomic) = (&facts["qwen2-vl"], &facts["nomic"]);
        assert_eq!((vlm.context_tokens, vlm.max_context_tokens), (Some(8_192), Some(32_768)));
        assert_eq!((vlm.load, nomic.load), (Some(LoadState::Loaded), Some(LoadState::Unloaded)));
        assert_eq!(
            (vlm.quantization.as_deref(), vlm.family.as_deref()),
            (Some("4bit"), Some("qwen2_vl"))
        );
        let able = [Capability::Completion, Capability::Vision, Capability::Tools];
        assert_eq!(vlm.capabilities, Some(able.into_iter().collect()));
        assert_eq!(nomic.capabilities, Some(Capabilities::default().with(Capability::Embedding)));
    }

    #[test]
    fn the_list_of_another_server_is_none() {
        assert_eq!(models(br#"{"data":[{"id":"a"}]}"#), None);
        assert_eq!(models(b"{}"), None);
    }
}
