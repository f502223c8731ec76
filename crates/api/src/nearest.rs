//! The names of models that are most like a name that no provider serves.

use std::{cmp::Reverse, sync::Arc};

use access::Key;
use base::ModelName;
use rooms::Room;

use crate::{models::served, state::Api};

/// The most names that are listed.
const TOLD: usize = 3;

/// How many characters of each name are compared.
const COMPARED: usize = 64;

/// The most names that are compared letter by letter. If there are more, a cheaper measure chooses among them.
const CANDIDATES: usize = 200;

/// How like two names must be, from 0 to 1. Names below this share hardly more than some letters.
const ENOUGH: f64 = 0.7;

/// The models that a request may know.
pub(crate) struct Known<'a> {
    pub(crate) api: &'a Api,
    /// The request's key: the request may know only the models that the key allows.
    pub(crate) key: Option<Arc<Key>>,
    /// The request's room: its participants' models are searched instead of the server's.
    pub(crate) room: Option<Arc<Room>>,
}

impl Known<'_> {
    /// Words that name the models with the nearest names; empty if no name is near.
    pub(crate) fn nearest(&self, wanted: &ModelName) -> String {
        let all = match &self.room {
            Some(room) => served::served_in(room),
            None => served::served(self.api),
        };
        let may_use =
            |name: &&ModelName| self.key.as_ref().is_none_or(|key| key.allows(name.as_str()));
        // The wanted name itself is served if only the provider that the request is pinned to lacks the model.
        let is_other = |name: &&ModelName| *name != wanted;
        let others = all.keys().filter(may_use).filter(is_other);
        words(&nearest(wanted.as_str(), others.map(ModelName::as_str)))
    }
}

fn words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => format!(": the nearest that exists is {only}"),
        [others @ .., last] => {
            format!(": the nearest that exist are {} and {last}", others.join(", "))
        }
    }
}

/// The names that are most like `wanted`, the nearest first.
fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = comparable(wanted);
    let mut all: Vec<(Reverse<usize>, &str)> =
        names.map(|name| (Reverse(in_common(&wanted, &comparable(name))), name)).collect();
    if all.len() > CANDIDATES {
        all.select_nth_unstable(CANDIDATES);
        all.truncate(CANDIDATES);
    }
    let likeness = |name: &str| likeness(&wanted, &comparable(name));
    let mut near: Vec<(f64, &str)> =
        all.into_iter().map(|(_, name)| (likeness(name), name)).collect();
    near.retain(|(likeness, _)| *likeness >= ENOUGH);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(TOLD).map(|(_, name)| name).collect()
}

fn comparable(name: &str) -> String {
    name.chars().take(COMPARED).flat_map(char::to_lowercase).collect()
}

/// The number of different pairs of neighbouring letters that both names have. Cheap, but blind to the pairs' places.
fn in_common(a: &str, b: &str) -> usize {
    let pairs = |name: &str| {
        let mut seen = [0_u64; 16];
        for pair in name.as_bytes().windows(2) {
            let at = (usize::from(pair[0]) * 31 + usize::from(pair[1])) % 1024;
            seen[at / 64] |= 1 << (at % 64);
        }
        seen
    };
    let (a, b) = (pairs(a), pairs(b));
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones() as usize).sum()
}

/// How like two names are, from 0 to 1. If one name contains the other, both taken after their last slash, they are
/// near whatever their lengths.
fn likeness(wanted: &str, name: &str) -> f64 {
    let own = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let (own_wanted, own_name) = (own(wanted), own(name));
    let holds = |long: &str, short: &str| short.len() >= 3 && long.contains(short);
    let part =
        if holds(&own_name, &own_wanted) || holds(&own_wanted, &own_name) { 0.9 } else { 0.0 };
    let like = |a: &str, b: &str| {
        let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
        // The measure rates a name too high that lacks most of the other one.
        if short * 2 < long { 0.0 } else { strsim::jaro_winkler(a, b) }
    };
    like(wanted, name).max(like(&own_wanted, &own_name)).max(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_near<'a>(wanted: &str, names: &[&'a str]) -> Vec<&'a str> {
        nearest(wanted, names.iter().copied())
    }

    #[test]
    fn the_names_most_like_the_wanted_one_are_told() {
        let names = ["llama3.2:3b", "llama3.1:8b", "qwen3:8b", "nomic-embed-text", "llama3.2:1b"];
        let near = names_near("llama3.2", &names);
        assert_eq!(near.len(), TOLD);
        assert!(
            near[..2].contains(&"llama3.2:3b") && near[..2].contains(&"llama3.2:1b"),
            "{near:?}"
        );
        assert_eq!(names_near("Qwen3", &names)[0], "qwen3:8b");
        assert_eq!(names_near("meta-llama/Llama3.1:8b", &names)[0], "llama3.1:8b");
        assert!(names_near("gpt-4o", &names).is_empty(), "none is near");
        assert!(names_near("m", &[]).is_empty());
        assert!(names_near("llama3-8b", &["m"]).is_empty(), "a letter in common is nothing");
    }

    #[test]
    fn among_ten_thousand_models_the_right_one_is_found() {
        let names: Vec<String> =
            (0..10_000).map(|number| format!("org/model-{number}:8b")).collect();
        let all = names.iter().map(String::as_str).chain(["qwen3-coder:30b"]);
        assert_eq!(nearest("qwen3-coder", all), ["qwen3-coder:30b"]);
        let long = "x".repeat(100_000);
        assert!(nearest(&long, names.iter().map(String::as_str)).is_empty());
    }

    #[test]
    fn words_name_one_or_several() {
        assert_eq!(words(&[]), "");
        assert_eq!(words(&["a"]), ": the nearest that exists is a");
        assert_eq!(words(&["a", "b", "c"]), ": the nearest that exist are a, b and c");
    }
}
