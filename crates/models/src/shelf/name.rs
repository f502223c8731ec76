//! Names of models, made of names of files.

use std::collections::{HashMap, HashSet};

use super::{
    LocalModel, PassedOver,
    projectors::{Named, named},
};
use crate::name::ModelId;

/// Words for what is stored as it is, or in one way only.
const PLAIN: [&str; 7] = ["f16", "f32", "bf16", "fp16", "fp32", "fp8", "mxfp4"];

/// A name without its quantization: `Qwen3-8B` of `Qwen3-8B-Q4_K_M`. One that is nothing else stays.
pub fn short(stem: &str) -> &str {
    let cut = stem.rfind(['-', '.']).filter(|cut| is_quantization(&stem[cut + 1..]));
    let Some(name) = cut.map(|cut| &stem[..cut]) else { return stem };
    let name = name.strip_suffix("-UD").or_else(|| name.strip_suffix("-ud")).unwrap_or(name);
    if name.is_empty() { stem } else { name }
}

/// The quantization at the end of a name, as `Q4_K_M`, in upper case.
pub fn quantization(stem: &str) -> Option<String> {
    let end = &stem[stem.rfind(['-', '.']).map_or(0, |cut| cut + 1)..];
    is_quantization(end).then(|| end.to_uppercase())
}

/// The name of the model that a projector is for, in lower case; empty when its own name does not say.
pub fn of_projector(stem: &str) -> String {
    let words = stem.to_lowercase();
    let words = short(&words).replacen("mmproj", "", 1);
    let of = words.trim_matches(['-', '_', '.']).replace("--", "-");
    if of == "model" { String::new() } else { of }
}

/// Gives each model a name of its own.
pub(super) fn unique(models: Vec<Named>, passed_over: &mut Vec<PassedOver>) -> Vec<LocalModel> {
    let short_names = count(models.iter().map(|(model, _)| match model.is_given {
        true => model.stem.clone(),
        false => short(&model.stem).to_owned(),
    }));
    let full_names = count(models.iter().map(|(model, _)| model.stem.clone()));
    let is_one =
        |names: &HashMap<String, usize>, name: &str| names.get(&name.to_lowercase()) == Some(&1);
    let mut taken = HashSet::new();
    let mut list = Vec::new();
    for model in models {
        let (unnamed, _) = &model;
        let stem = unnamed.stem.as_str();
        let name = match short(stem) {
            _ if unnamed.is_given => stem.to_owned(),
            short if is_one(&short_names, short) => short.to_owned(),
            _ if is_one(&full_names, stem) => stem.to_owned(),
            _ => with_folder(&model),
        };
        let reason = match ModelId::try_from(name.as_str()) {
            Err(error) => error.to_string(),
            Ok(_) if taken.insert(name.to_lowercase()) => {
                list.push(named(model, name));
                continue;
            }
            Ok(_) => format!("another model is called {name}, too: name this file otherwise"),
        };
        passed_over.extend(unnamed.files.first().map(|file| PassedOver::new(file, reason)));
    }
    list
}

fn with_folder((model, _): &Named) -> String {
    let folder = model.files.first().and_then(|file| file.parent()?.file_name());
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    folder.map_or_else(|| model.stem.clone(), |folder| format!("{folder}/{}", model.stem))
}

/// How often each name is there, whatever its case.
fn count(names: impl Iterator<Item = String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    names.for_each(|name| *counts.entry(name.to_lowercase()).or_default() += 1);
    counts
}

/// Whether a word is `Q4_K_M`, `IQ3_XS`, `TQ1_0`, `BF16` and the like.
fn is_quantization(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let plain = word.strip_suffix("_moe").unwrap_or(&word);
    if PLAIN.contains(&plain) {
        return true;
    }
    let rest = word.strip_prefix("iq").or_else(|| word.strip_prefix("tq"));
    let Some(rest) = rest.or_else(|| word.strip_prefix('q')) else { return false };
    let mut parts = rest.split('_');
    let bits = parts.next().unwrap_or_default();
    let is_bits = matches!(bits.as_bytes(), [b'1'..=b'8']);
    let known = ["0", "1", "k", "s", "m", "l", "xs", "xxs", "xl", "xxl", "nl", "p"];
    is_bits && parts.all(|part| known.contains(&part) || is_repeat(part))
}

/// Of forms that are stored for a processor: `q4_0_4_4`, `q4_0_8_8`.
fn is_repeat(part: &str) -> bool {
    matches!(part, "4" | "8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantization_is_taken_off_a_name_and_nothing_else_is() {
        for (stem, name) in [
            ("Qwen3-8B-Q4_K_M", "Qwen3-8B"),
            ("Qwen3-8B-UD-Q4_K_XL", "Qwen3-8B"),
            ("llama-2-7b.Q5_K_S", "llama-2-7b"),
            ("gemma-3-4b-it-q4_0", "gemma-3-4b-it"),
            ("phi-iq3_xxs", "phi"),
            ("phi-Q4", "phi"),
            ("phi-q4_0_4_8", "phi"),
            ("bge-m3-f16", "bge-m3"),
            ("gpt-oss-20b-MXFP4", "gpt-oss-20b"),
            ("gpt-oss-20b-mxfp4_moe", "gpt-oss-20b"),
            ("Qwen3-8B", "Qwen3-8B"),
            ("bge-m3", "bge-m3"),
            ("Q4_K_M", "Q4_K_M"),
            ("-Q4_K_M", "-Q4_K_M"),
            ("Qwen-Q", "Qwen-Q"),
            ("model-q42", "model-q42"),
            ("model-quality", "model-quality"),
            ("model-q4_test", "model-q4_test"),
            ("模型-Q8_0", "模型"),
        ] {
            assert_eq!(short(stem), name, "{stem}");
        }
        assert_eq!(quantization("Qwen3-8B-q4_k_m").as_deref(), Some("Q4_K_M"));
        assert_eq!(quantization("Q8_0").as_deref(), Some("Q8_0"));
        assert_eq!(quantization("Qwen3-8B"), None);
    }

    #[test]
    fn a_projector_says_whose_it_is() {
        for (stem, of) in [
            ("mmproj-Qwen2.5-VL-7B-f16", "qwen2.5-vl-7b"),
            ("Qwen2.5-VL-7B-mmproj-F16", "qwen2.5-vl-7b"),
            ("gemma-3-4b.mmproj-Q8_0", "gemma-3-4b"),
            ("mmproj-model-f16", ""),
            ("mmproj-F16", ""),
            ("mmproj", ""),
        ] {
            assert_eq!(of_projector(stem), of, "{stem}");
        }
    }
}
