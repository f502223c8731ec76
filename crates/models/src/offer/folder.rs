//! Directories `ORG/NAME`, and plain GGUF files beside them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{Content, Listed, complete::shard, walk};
use crate::name::ModelId;

/// The models in a directory.
pub(super) fn list(root: &Path, source: &'static str) -> Vec<Listed> {
    let Ok(within) = root.canonicalize() else { return Vec::new() };
    let mut list = single_files(&within, source);
    for (org, path) in walk::directories(&within, &within) {
        for (name, path) in walk::directories(&path, &within) {
            let Ok(id) = ModelId::try_from(format!("{org}/{name}")) else { continue };
            let content = Content::Directory { path, within: within.clone() };
            list.push(Listed { id, source, content });
        }
    }
    list
}

/// Files, and files that a model is cut into, which are one model.
fn single_files(within: &Path, source: &'static str) -> Vec<Listed> {
    let mut models: BTreeMap<(String, Option<u32>), Vec<PathBuf>> = BTreeMap::new();
    for (name, path) in walk::entries(within) {
        let Some(stem) = name.strip_suffix(".gguf") else { continue };
        let (model, of) = shard(&name).map_or((stem, None), |shard| (shard.model, Some(shard.of)));
        if let Some(path) = walk::inside(&path, within).filter(|path| path.is_file()) {
            models.entry((model.to_owned(), of)).or_default().push(path);
        }
    }
    let model = |((name, _), paths): ((String, Option<u32>), Vec<PathBuf>)| {
        let id = ModelId::try_from(name).ok()?;
        Some(Listed { id, source, content: Content::Files(paths) })
    };
    models.into_iter().filter_map(model).collect()
}
