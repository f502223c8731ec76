//! The facts in `/props` of llama.cpp's server about the one model that it has.

use base::{Capabilities, Capability, ModelFacts};
use serde_json::Value;

/// The facts in `/props`; `None` when it is no such answer.
pub(super) fn props(body: &[u8]) -> Option<ModelFacts> {
    let told: Value = serde_json::from_slice(body).ok()?;
    let settings = told.get("default_generation_settings")?;
    let context_tokens = settings["n_ctx"].as_u64().filter(|context| *context > 0);
    let capabilities = capabilities(&told);
    Some(ModelFacts { context_tokens, capabilities, ..ModelFacts::default() })
}

/// The capabilities by its template and its inputs. A model without a template says nothing.
fn capabilities(told: &Value) -> Option<Capabilities> {
    let template = told["chat_template"].as_str()?;
    let modalities = &told["modalities"];
    let tools = told["chat_template_caps"]["supports_tools"].as_bool();
    let found = [
        (Capability::Completion, true),
        (Capability::Tools, tools.unwrap_or_else(|| template.contains("tools"))),
        (Capability::Vision, modalities["vision"] == true),
        (Capability::Audio, modalities["audio"] == true),
    ];
    Some(found.into_iter().filter_map(|(capability, has)| has.then_some(capability)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_context_of_a_slot_and_the_inputs_are_told() {
        let told = json!({"default_generation_settings": {"n_ctx": 4096},
            "chat_template": "{%- if tools %}", "modalities": {"vision": true, "audio": false}});
        let facts = props(told.to_string().as_bytes()).unwrap();
        let able = [Capability::Completion, Capability::Tools, Capability::Vision];
        assert_eq!(facts.context_tokens, Some(4_096));
        assert_eq!(facts.capabilities, Some(able.into_iter().collect()));
        let caps = json!({"default_generation_settings": {}, "chat_template": "tools",
            "chat_template_caps": {"supports_tools": false}});
        let facts = props(caps.to_string().as_bytes()).unwrap();
        let able = Capabilities::default().with(Capability::Completion);
        assert_eq!((facts.context_tokens, facts.capabilities), (None, Some(able)));
        assert_eq!(props(b"{}"), None);
    }
}
