//! The facts in Ollama's own API: `/api/tags`, `/api/ps` and `/api/show`.

use base::{Capabilities, FactsByModel, LoadState, ModelFacts};
use serde::Deserialize;
use serde_json::Value;

/// A model in `/api/tags`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) name: String,
    /// The checksum of all that the model is made of.
    pub(crate) digest: Option<String>,
    pub(crate) facts: ModelFacts,
}

/// The facts in `/api/show` about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown(pub(crate) ModelFacts);

#[derive(Deserialize)]
struct Models<T> {
    models: Vec<T>,
}

#[derive(Deserialize)]
struct TagJson {
    name: String,
    #[serde(default)]
    digest: Value,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    details: Value,
}

/// The models in an answer of `/api/tags`; `None` if the body is not one.
pub(crate) fn tags(body: &[u8]) -> Option<Vec<Tag>> {
    let Models { models } = serde_json::from_slice(body).ok()?;
    let tag = |TagJson { name, digest, size, details }| {
        let facts = ModelFacts { file_bytes: size.as_u64(), ..of_details(&details) };
        let digest = digest.as_str().filter(|digest| !digest.is_empty()).map(str::to_owned);
        Tag { name, digest, facts: facts.cleaned() }
    };
    Some(models.into_iter().map(tag).collect())
}

/// The facts in `details`, a field of several answers.
fn of_details(details: &Value) -> ModelFacts {
    let text = |name: &str| details[name].as_str().map(Box::from);
    ModelFacts {
        parameters: details["parameter_size"].as_str().and_then(count),
        quantization: text("quantization_level").filter(|it| **it != *"unknown"),
        family: text("family"),
        ..ModelFacts::default()
    }
}

/// Reads a count with a unit, such as `7.6B`.
fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    let number: f64 = digits.parse().ok().filter(|number| (0.0..1e6).contains(number))?;
    Some((number * unit).round() as u64).filter(|count| *count > 0)
}

#[derive(Deserialize)]
struct LoadedJson {
    name: String,
    /// The memory that it takes, in bytes, a graphics card's included.
    #[serde(default)]
    size: Value,
    #[serde(default)]
    context_length: Value,
}

/// The loaded models in an answer of `/api/ps`; `None` if the body is not one.
pub(crate) fn loaded(body: &[u8]) -> Option<FactsByModel> {
    let Models { models } = serde_json::from_slice(body).ok()?;
    let facts = |LoadedJson { name, size, context_length }| {
        let (context_tokens, memory_bytes) = (positive(&context_length), positive(&size));
        let load = Some(LoadState::Loaded);
        (name, ModelFacts { context_tokens, memory_bytes, load, ..ModelFacts::default() })
    };
    Some(models.into_iter().map(facts).collect())
}

/// The facts in an answer of `/api/show`; `None` if the body is not one. Its `context_tokens` is the context
/// that the model's own file sets, which may be shorter than the longest.
pub(crate) fn shown(body: &[u8]) -> Option<Shown> {
    let told: Value = serde_json::from_slice(body).ok()?;
    told.as_object()?;
    let info = &told["model_info"];
    let names = told["capabilities"].as_array();
    let names = names.map(|names| names.iter().filter_map(Value::as_str));
    let facts = ModelFacts {
        context_tokens: told["parameters"].as_str().and_then(num_ctx),
        max_context_tokens: longest(info),
        capabilities: names.map(Capabilities::of_names),
        parameters: positive(&info["general.parameter_count"]),
        ..of_details(&told["details"])
    };
    Some(Shown(facts.cleaned()))
}

/// The value of `num_ctx` in a model's parameters, which stand one on a line.
fn num_ctx(parameters: &str) -> Option<u64> {
    let mut lines = parameters.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == "num_ctx").then(|| words.next()?.parse().ok())?)
}

/// The context that the model's architecture allows.
fn longest(info: &Value) -> Option<u64> {
    let named = info["general.architecture"].as_str();
    let named = named.and_then(|name| positive(&info[format!("{name}.context_length")]));
    named.or_else(|| {
        let mut all = info.as_object()?.iter();
        let (_, length) = all.find(|(name, _)| name.ends_with(".context_length"))?;
        positive(length)
    })
}

fn positive(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use base::Capability;
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_tell_size_family_and_quantization() {
        let body = json!({"models": [
            {"name": "qwen3:8b", "digest": "500a", "size": 5_225_388_164_u64, "details":
                {"family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4_K_M"}},
            {"name": "odd", "size": "big", "digest": 7, "details": [1]},
        ]});
        let read = tags(body.to_string().as_bytes()).unwrap();
        let expected = ModelFacts {
            file_bytes: Some(5_225_388_164),
            parameters: Some(8_200_000_000),
            quantization: Some("Q4_K_M".into()),
            family: Some("qwen3".into()),
            ..ModelFacts::default()
        };
        assert_eq!((read[0].digest.as_deref(), &read[0].facts), (Some("500a"), &expected));
        assert_eq!((&read[1].digest, &read[1].facts), (&None, &ModelFacts::default()));
        assert_eq!(tags(b"{}"), None);
    }

    #[test]
    fn counts_are_read_as_people_write_them() {
        let cases = [
            ("494.03M", Some(494_030_000)),
            ("30.5B", Some(30_500_000_000)),
            ("7", Some(7)),
            ("1T", Some(1_000_000_000_000)),
        ];
        let odd = ["", "B", "8x7B", "-1B", "NaN", "inf", "1e300B", "0B"].map(|text| (text, None));
        for (text, expected) in cases.into_iter().chain(odd) {
            assert_eq!(count(text), expected, "{text}");
        }
    }

    #[test]
    fn loaded_models_tell_memory_and_context() {
        let ps = br#"{"models":[{"name":"qwen3:8b","size":6442450944,"size_vram":1,"context_length":40960}]}"#;
        let facts = &loaded(ps).unwrap()["qwen3:8b"];
        assert_eq!((facts.context_tokens, facts.memory_bytes), (Some(40_960), Some(6 << 30)));
        assert_eq!(facts.load, Some(LoadState::Loaded));
        assert_eq!(loaded(b"[]"), None);
    }

    #[test]
    fn a_shown_model_tells_what_it_can_do_and_its_longest_context() {
        let body = json!({
            "parameters": "stop    \"<|im_end|>\"\nnum_ctx                        8192",
            "details": {"family": "qwen3", "quantization_level": "unknown"},
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960,
                "clip.context_length": 77, "general.parameter_count": 8_190_735_360_u64},
            "capabilities": ["completion", "tools", "thinking", "dance"],
        });
        let Shown(facts) = shown(body.to_string().as_bytes()).unwrap();
        assert_eq!((facts.context_tokens, facts.max_context_tokens), (Some(8_192), Some(40_960)));
        let able = [Capability::Completion, Capability::Tools, Capability::Thinking];
        assert_eq!(facts.capabilities, Some(able.into_iter().collect()));
        assert_eq!((facts.parameters, facts.quantization), (Some(8_190_735_360), None));
        let other = shown(br#"{"model_info":{"x.context_length":5}}"#).unwrap().0;
        assert_eq!((other.max_context_tokens, other.capabilities), (Some(5), None));
        assert_eq!(shown(b"[1]"), None);
    }
}
