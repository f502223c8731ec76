//! The models of a backend by the names that consumers use (pure).

use std::collections::{HashMap, HashSet};

use backend::ModelEntry;
use base::ModelName;

/// Names for consumers, and the backend's own name for each one that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OfferedNames {
    pub(crate) names: Vec<String>,
    pub(crate) real: HashMap<String, String>,
}

impl OfferedNames {
    /// An explicit list.
    pub(crate) fn explicit(entries: &[ModelEntry]) -> Self {
        Self::of(entries.iter())
    }

    /// The entries of an explicit list that the backend lists as well.
    pub(crate) fn listed(entries: &[ModelEntry], listed: &[String]) -> Self {
        let listed: HashSet<&str> = listed.iter().map(String::as_str).collect();
        let is_listed = |real: &str| {
            let other = ModelName::from(real).with_or_without_latest();
            listed.contains(real) || other.is_some_and(|other| listed.contains(other.as_str()))
        };
        Self::of(entries.iter().filter(|entry| is_listed(&entry.real)))
    }

    /// All models that the backend lists. A model that is named by a path is offered by the name of its file,
    /// unless another model has that name. A path is long, and tells strangers about the machine.
    pub(crate) fn all(listed: Vec<String>) -> Self {
        let file = |name: &String| ModelName::from(name.as_str()).file_name();
        let mut users: HashMap<ModelName, u32> = HashMap::new();
        for name in &listed {
            *users.entry(file(name).unwrap_or_else(|| name.as_str().into())).or_default() += 1;
        }
        let mut offered = Self::default();
        for name in listed {
            match file(&name).filter(|file| users.get(file) == Some(&1)) {
                Some(file) => {
                    offered.names.push(file.to_string());
                    offered.real.insert(file.to_string(), name);
                }
                None => offered.names.push(name),
            }
        }
        offered
    }

    fn of<'a>(entries: impl Iterator<Item = &'a ModelEntry> + Clone) -> Self {
        let renamed = entries.clone().filter(|entry| entry.offered != entry.real);
        Self {
            names: entries.map(|entry| entry.offered.clone()).collect(),
            real: renamed.map(|entry| (entry.offered.clone(), entry.real.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn entries(texts: &[&str]) -> Vec<ModelEntry> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_model_named_by_a_path_is_offered_by_its_file_name() {
        let offered = OfferedNames::all(names(&["/models/a.gguf", "org/b", "c"]));
        assert_eq!(offered.names, ["a.gguf", "org/b", "c"]);
        let real = HashMap::from([("a.gguf".to_owned(), "/models/a.gguf".to_owned())]);
        assert_eq!(offered.real, real);
    }

    #[test]
    fn two_models_never_get_one_name() {
        for taken in [&["/x/a.gguf", "/y/a.gguf"], &["/x/a.gguf", "a.gguf"]] {
            let offered = OfferedNames::all(names(taken));
            assert_eq!((offered.names, offered.real.len()), (names(taken), 0));
        }
    }

    #[test]
    fn a_list_for_several_backends_claims_of_each_only_its_own_models() {
        let entries = entries(&["fast=llama3", "qwen3:8b", "gone"]);
        let offered =
            OfferedNames::listed(&entries, &names(&["llama3:latest", "qwen3:8b", "other"]));
        assert_eq!(offered.names, ["fast", "qwen3:8b"]);
        assert_eq!(offered.real["fast"], "llama3");
        assert_eq!(OfferedNames::listed(&entries, &[]), OfferedNames::default());
        assert_eq!(OfferedNames::explicit(&entries).names, ["fast", "qwen3:8b", "gone"]);
    }
}
