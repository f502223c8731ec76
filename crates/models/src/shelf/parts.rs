//! The files that a model is cut into, joined.

use std::{collections::BTreeMap, path::PathBuf};

use super::{PassedOver, heads::HeadedFile};
use crate::{
    gguf::Gguf,
    manifest::MAX_FILES,
    name::ModelId,
    offer::{Shard, shard},
};

/// A model without its name.
#[derive(Debug, Clone)]
pub(super) struct Unnamed {
    pub(super) stem: String,
    pub(super) is_given: bool,
    pub(super) id: Option<ModelId>,
    pub(super) files: Vec<PathBuf>,
    pub(super) bytes: u64,
    pub(super) head: Gguf,
}

/// Files by their number, from 1 on.
type Parts = Vec<(u32, HeadedFile)>;

/// Makes models of files, in the order of the first file of each.
pub(super) fn join(files: Vec<HeadedFile>, passed_over: &mut Vec<PassedOver>) -> Vec<Unnamed> {
    let mut models: Vec<(Option<u32>, Parts)> = Vec::new();
    let mut places = BTreeMap::new();
    for file in files {
        let name = file.found.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(Shard { model, number, of, .. }) = shard(&name) else {
            models.push((None, vec![(1, file)]));
            continue;
        };
        let key = (file.found.path.parent().map(PathBuf::from), model.to_owned(), of);
        let place = *places.entry(key).or_insert(models.len());
        match models.get_mut(place) {
            Some((_, parts)) => parts.push((number, file)),
            None => models.push((Some(of), vec![(number, file)])),
        }
    }
    let joined = models.into_iter().map(|(of, parts)| whole(of, parts));
    joined.filter_map(|model| model.map_err(|passed| passed_over.push(passed)).ok()).collect()
}

/// Of all parts one model.
fn whole(of: Option<u32>, mut parts: Parts) -> Result<Unnamed, PassedOver> {
    parts.sort_by_key(|(number, _)| *number);
    check(of, &parts)?;
    let sum = |of: fn(&HeadedFile) -> u64| {
        parts.iter().fold(0, |sum: u64, (_, part)| sum.saturating_add(of(part)))
    };
    let (bytes, parameters) = (sum(|part| part.bytes), sum(|part| part.head.parameters));
    let files = parts.iter().map(|(_, part)| part.found.path.clone()).collect();
    // Each model was begun with a part.
    let (_, first) = parts.swap_remove(0);
    let stem = match of {
        Some(_) => shard(&first.found.stem).map_or(first.found.stem.as_str(), |shard| shard.model),
        None => &first.found.stem,
    };
    Ok(Unnamed {
        stem: stem.to_owned(),
        is_given: first.found.is_given,
        id: first.found.id,
        files,
        bytes,
        head: Gguf { parameters, ..first.head },
    })
}

/// Whether the parts are all that there are, by their names and by the head of the first.
fn check(of: Option<u32>, parts: &[(u32, HeadedFile)]) -> Result<(), PassedOver> {
    let Some((_, first)) = parts.first() else { return Ok(()) };
    let path = &first.found.path;
    if let Some((number, of)) = of.and_then(|of| missing(of, parts)) {
        let reason = format!("its part {number} of {of} is not there yet, or is not whole");
        return Err(PassedOver::arriving(path, reason));
    }
    if of.is_none() && first.head.split.is_some() {
        let reason = "it is a part of a model, and its name does not say which: name it \
                      NAME-00001-of-00002.gguf";
        return Err(PassedOver::new(path, reason));
    }
    Ok(())
}

/// The first part that is not there, and how many there should be.
fn missing(of: u32, parts: &[(u32, HeadedFile)]) -> Option<(u32, u32)> {
    // Nobody cuts a model into more: a number that is greater is not gone through.
    let most = u32::try_from(MAX_FILES).unwrap_or(u32::MAX);
    let is_there = |number: u32| parts.binary_search_by_key(&number, |(part, _)| *part).is_ok();
    (1..=of.min(most.saturating_add(1)))
        .find(|number| !is_there(*number))
        .map(|number| (number, of))
}
