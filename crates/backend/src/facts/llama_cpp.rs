//! The facts in `/props` of llama.cpp's server about its only model, and whether it continues answers.

use base::{Capabilities, Capability, Continuation, ModelFacts};
use serde_json::{Value, json};

/// The beginning of an answer, in words that no chat template contains.
const BEGINNING: &str = "It has begun, and";

/// The facts in an answer of `/props`; `None` if the body is not one.
pub(super) fn props(body: &[u8]) -> Option<ModelFacts> {
    let told: Value = serde_json::from_slice(body).ok()?;
    let settings = told.get("default_generation_settings")?;
    let context_tokens = settings["n_ctx"].as_u64().filter(|context| *context > 0);
    let capabilities = capabilities(&told);
    Some(ModelFacts { context_tokens, capabilities, ..ModelFacts::default() })
}

/// Messages for `/apply-template`, the last of which is the beginning of an answer.
pub(super) fn begun() -> Value {
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    json!({"messages": [message("user", "Begin."), message("assistant", BEGINNING)]})
}

/// How it continues answers, by the prompt that it makes of [`begun`]. Its version does not tell: that depends on its
/// flags (`--no-prefill-assistant`) and the model's template as well. It continues answers exactly if nothing follows
/// the beginning in that prompt.
pub(super) fn continuation(body: &[u8]) -> Option<Continuation> {
    let told: Value = serde_json::from_slice(body).ok()?;
    told["prompt"].as_str()?.ends_with(BEGINNING).then_some(Continuation::LastMessage)
}

/// The capabilities, by the chat template and the kinds of input. `None` for a model without a
/// template.
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

    #[test]
    fn it_goes_on_if_nothing_follows_the_beginning_in_the_prompt() {
        let sent = begun()["messages"][1]["content"].as_str().unwrap().to_owned();
        let how = |prompt: String| continuation(json!({"prompt": prompt}).to_string().as_bytes());
        let begun = format!("<|im_start|>assistant\n{sent}");
        assert_eq!(how(begun.clone()), Some(Continuation::LastMessage));
        assert_eq!(how(format!("{begun}<|im_end|>\n<|im_start|>assistant\n")), None);
        assert_eq!(continuation(br#"{"error":{"code":404}}"#), None);
    }
}
