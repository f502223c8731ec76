//! Directories `ORG/NAME`, and plain GGUF files beside them.

use std::path::{Path, PathBuf};

use super::{Content, Listed, walk};
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

fn single_files(within: &Path, source: &'static str) -> Vec<Listed> {
    let model = |(name, path): (String, PathBuf)| {
        let id = ModelId::try_from(name.strip_suffix(".gguf")?).ok()?;
        let path = walk::inside(&path, within).filter(|path| path.is_file())?;
        Some(Listed { id, source, content: Content::File(path) })
    };
    walk::entries(within).into_iter().filter_map(model).collect()
}
