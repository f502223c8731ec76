//! OpenAI's form, with further facts about a model under the names that clients of OpenRouter, vLLM and LM Studio
//! read. A client that knows only OpenAI's fields ignores the others.

use base::{Capabilities, Capability, Continuation, LoadState};
use protocol::json;
use serde::Serialize;

use super::details::{Details, ModelEntry};

/// The owner of each model in the list. Another Warren recognises this one by it.
const OWNER: &str = "warren";

/// The list of models.
pub(super) fn list(models: &[ModelEntry]) -> String {
    json::write(&List { object: "list", data: models.iter().map(Model::of).collect() })
}

/// One model.
pub(super) fn one(model: &ModelEntry) -> String {
    json::write(&Model::of(model))
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// OpenRouter's name for the context, in tokens. The next field is the same under vLLM's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_model_len: Option<u64>,
    /// LM Studio's name for the longest context that the model was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_context_length: Option<u64>,
    /// Its forms of input and output, as OpenRouter writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<Architecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Capabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization: Option<&'a str>,
    /// LM Studio's name for the model's family.
    #[serde(skip_serializing_if = "Option::is_none")]
    arch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<u64>,
    /// The bytes of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<LoadState>,
    /// For another Warren: how the model goes on with an answer that has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<Continuation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    endpoints: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machines: Vec<&'a str>,
}

impl<'a> Model<'a> {
    fn of(ModelEntry { id, created, details }: &'a ModelEntry) -> Self {
        let Details { facts, machines, .. } = details;
        Self {
            id: id.as_str(),
            object: "model",
            created: *created,
            owned_by: OWNER,
            context_length: facts.context_tokens,
            max_model_len: facts.context_tokens,
            max_context_length: facts.max_context_tokens,
            architecture: facts.capabilities.map(Architecture::of),
            capabilities: facts.capabilities,
            quantization: facts.quantization.as_deref(),
            arch: facts.family.as_deref(),
            parameters: facts.parameters,
            size: facts.file_bytes,
            state: facts.load,
            continuation: facts.continuation,
            endpoints: details.paths(),
            machines: machines.iter().map(String::as_str).collect(),
        }
    }
}

/// The forms that a model reads and writes.
#[derive(Serialize)]
struct Architecture {
    input_modalities: Vec<&'static str>,
    output_modalities: [&'static str; 1],
    /// Both in one text: `text+image->text`.
    modality: String,
}

impl Architecture {
    fn of(able: Capabilities) -> Self {
        let also = [(Capability::Vision, "image"), (Capability::Audio, "audio")];
        let also = also.into_iter().filter(|(capability, _)| able.contains(*capability));
        let input_modalities: Vec<_> =
            std::iter::once("text").chain(also.map(|(_, name)| name)).collect();
        let embeds = able.contains(Capability::Embedding) && !able.contains(Capability::Completion);
        let output = if embeds { "embeddings" } else { "text" };
        let modality = format!("{}->{output}", input_modalities.join("+"));
        Self { input_modalities, output_modalities: [output], modality }
    }
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints, ModelFacts};
    use serde_json::{Value, json};

    use super::*;

    fn read(details: Details) -> Value {
        serde_json::from_str(&one(&ModelEntry { id: "m".into(), created: 5, details })).unwrap()
    }

    #[test]
    fn a_model_of_which_nothing_is_known_has_openais_fields_alone() {
        let expected = json!({"id": "m", "object": "model", "created": 5, "owned_by": "warren"});
        assert_eq!(read(Details::default()), expected);
    }

    #[test]
    fn what_is_known_is_told_by_the_names_that_clients_read() {
        let able = Capabilities::of_names(["completion", "vision"]);
        let facts = ModelFacts {
            context_tokens: Some(8_192),
            max_context_tokens: Some(40_960),
            quantization: Some("Q4_K_M".into()),
            family: Some("qwen3".into()),
            capabilities: Some(able),
            load: Some(LoadState::Loaded),
            continuation: Some(Continuation::FinalMessage),
            ..ModelFacts::default()
        };
        let endpoints = Endpoints::only(Endpoint::Messages);
        let machines = ["box".to_owned()].into();
        let model = read(Details { facts, endpoints, machines });
        assert_eq!(
            (&model["context_length"], &model["max_model_len"]),
            (&json!(8_192), &json!(8_192))
        );
        assert_eq!((&model["state"], &model["machines"]), (&json!("loaded"), &json!(["box"])));
        assert_eq!(model["continuation"], "final_message");
        let reads = json!({"input_modalities": ["text", "image"], "output_modalities": ["text"],
            "modality": "text+image->text"});
        assert_eq!(model["architecture"], reads);
        assert!(model["endpoints"].as_array().unwrap().contains(&json!("/v1/chat/completions")));
        let embeds = Architecture::of(Capabilities::of_names(["embedding"]));
        assert_eq!(embeds.modality, "text->embeddings");
    }
}
