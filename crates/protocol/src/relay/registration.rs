//! A worker's registration, cleaned and bounded.

use std::collections::HashSet;

use super::from_worker::{ModelsUpdate, Register};
use crate::json::clip;

/// The most models one worker may offer.
pub const MAX_MODELS: usize = 10_000;

/// The longest model name, in bytes.
pub const MAX_MODEL_NAME: usize = 256;

/// The longest worker name, in characters.
pub const MAX_WORKER_NAME: usize = 128;

/// The accepted part of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normalised {
    /// The name, trimmed and cut; may be empty.
    pub worker_name: String,
    /// The models, trimmed, without empty and repeated ones, in their order.
    pub models: Vec<String>,
    /// Warnings about dropped or odd values, for `register_ack`.
    pub warnings: Vec<String>,
}

impl Register {
    /// The name and models that the server accepts, with the warnings for the worker.
    pub fn normalised(&self) -> Normalised {
        let worker_name: String = self.worker_name.trim().chars().take(MAX_WORKER_NAME).collect();
        let (models, model_warnings) = normalise_models(&self.models);
        let mut warnings = Vec::new();
        if worker_name.is_empty() {
            warnings.push("worker_name was empty after trimming".to_owned());
        }
        if models.is_empty() {
            warnings.push("worker registered without any routable models".to_owned());
        }
        warnings.extend(model_warnings);
        Normalised { worker_name, models, warnings }
    }
}

impl ModelsUpdate {
    /// The accepted models, and warnings about dropped ones.
    pub fn normalised(&self) -> (Vec<String>, Vec<String>) {
        normalise_models(&self.models)
    }
}

/// Trims model names and drops empty, repeated and overlong ones and those beyond [`MAX_MODELS`],
/// in order. Returns the models and warnings about the dropped ones.
pub fn normalise_models(models: &[String]) -> (Vec<String>, Vec<String>) {
    let mut seen = HashSet::new();
    let named = models.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    let (fitting, overlong): (Vec<&str>, Vec<&str>) =
        named.partition(|name| name.len() <= MAX_MODEL_NAME);
    let mut kept: Vec<&str> = fitting.into_iter().filter(|name| seen.insert(*name)).collect();
    let beyond = kept.len().saturating_sub(MAX_MODELS);
    kept.truncate(MAX_MODELS);
    let warnings = [overlong_warning(&overlong), beyond_warning(beyond)];
    (kept.into_iter().map(str::to_owned).collect(), warnings.into_iter().flatten().collect())
}

fn overlong_warning(overlong: &[&str]) -> Option<String> {
    let first = clip(overlong.first()?, 40);
    let count = overlong.len();
    Some(format!("{count} model names over {MAX_MODEL_NAME} bytes were dropped, first {first:?}…"))
}

fn beyond_warning(beyond: usize) -> Option<String> {
    (beyond > 0).then(|| format!("{beyond} models beyond the first {MAX_MODELS} were dropped"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(name: &str, models: &[&str]) -> Register {
        let models = models.iter().map(|&model| model.to_owned()).collect();
        Register { worker_name: name.to_owned(), models, ..Register::default() }
    }

    #[test]
    fn names_are_trimmed_and_repeats_dropped_in_order() {
        let taken = register(" gpu \n", &[" b", "a", "", "b ", "*", "  ", "A"]).normalised();
        assert_eq!(taken.worker_name, "gpu");
        assert_eq!(taken.models, ["b", "a", "*", "A"]);
        assert!(taken.warnings.is_empty());
    }

    #[test]
    fn the_warnings_are_those_of_stock_servers() {
        let expected = [
            "worker_name was empty after trimming",
            "worker registered without any routable models",
        ];
        assert_eq!(register("  ", &[" "]).normalised().warnings, expected);
    }

    #[test]
    fn bounds_hold_and_are_told() {
        let long = "é".repeat(MAX_MODEL_NAME);
        let mut models: Vec<String> = (0..MAX_MODELS + 5).map(|n| format!("m{n}")).collect();
        models.insert(0, long.clone());
        let (kept, warnings) = normalise_models(&models);
        assert_eq!((kept.len(), kept[0].as_str()), (MAX_MODELS, "m0"));
        assert_eq!(warnings[1], "5 models beyond the first 10000 were dropped");
        assert!(warnings[0].starts_with("1 model names over 256 bytes"), "{}", warnings[0]);
        assert_eq!(register(&long, &["m"]).normalised().worker_name.chars().count(), 128);
    }
}
