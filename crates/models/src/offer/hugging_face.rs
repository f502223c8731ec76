//! The cache of Hugging Face: `models--ORG--NAME/snapshots/REVISION/`, in which files are links to
//! `models--ORG--NAME/blobs/`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Content, Listed, walk};
use crate::name::ModelId;

/// The models in the cache, each in one revision: that of `main`, or else the one written last.
pub(super) fn list(hub: &Path) -> Vec<Listed> {
    let Ok(within) = hub.canonicalize() else { return Vec::new() };
    walk::directories(&within, &within).into_iter().filter_map(listed).collect()
}

fn listed((name, model): (String, PathBuf)) -> Option<Listed> {
    // Only the organisation is parted by two dashes; a name may have them, too.
    let id = ModelId::try_from(name.strip_prefix("models--")?.replacen("--", "/", 1)).ok()?;
    let path = snapshot(&model)?;
    Some(Listed { id, source: "hugging-face", content: Content::Directory { path, within: model } })
}

fn snapshot(model: &Path) -> Option<PathBuf> {
    let snapshots = walk::directories(&model.join("snapshots"), model);
    let main = main_revision(model);
    let of_main = snapshots.iter().find(|(name, _)| Some(name) == main.as_ref());
    let written = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let latest = || snapshots.iter().max_by_key(|(_, path)| written(path));
    of_main.or_else(latest).map(|(_, path)| path.clone())
}

fn main_revision(model: &Path) -> Option<String> {
    let path = walk::inside(&model.join("refs/main"), model)?;
    // A revision is 40 digits; a much longer file is not one.
    let small = fs::metadata(&path).ok().is_some_and(|meta| meta.is_file() && meta.len() < 256);
    let text = if small { fs::read_to_string(path).ok()? } else { return None };
    Some(text.trim().to_owned())
}
