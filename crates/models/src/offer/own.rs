//! Our own store: directories at any depth that have a record of how they arrived.

use std::path::Path;

use super::{Content, Listed, walk};
use crate::{
    arrival::RECORD,
    name::{MAX_MODEL_SEGMENTS, ModelId},
};

/// The models in the store.
pub(super) fn list(store: &Path) -> Vec<Listed> {
    let Ok(within) = store.canonicalize() else { return Vec::new() };
    let mut list = Vec::new();
    let mut open = vec![(String::new(), within.clone(), 0)];
    while let Some((id, path, depth)) = open.pop() {
        if path.join(RECORD).is_file() {
            list.extend(listed(id, &path));
        } else if depth < MAX_MODEL_SEGMENTS {
            let below = walk::directories(&path, &within).into_iter();
            let prefix = if id.is_empty() { id } else { id + "/" };
            open.extend(below.map(|(name, path)| (format!("{prefix}{name}"), path, depth + 1)));
        }
    }
    list.sort_by(|a, b| a.id.cmp(&b.id));
    list
}

fn listed(id: String, path: &Path) -> Option<Listed> {
    let id = ModelId::try_from(id).ok()?;
    let content = Content::Directory { path: path.to_owned(), within: path.to_owned() };
    Some(Listed { id, source: "store", content })
}
