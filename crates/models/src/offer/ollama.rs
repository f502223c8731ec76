//! Ollama's models: manifests that name blobs by their SHA-256.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{Content, Listed, OfferedFile, walk};
use crate::name::ModelId;

/// The longest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// The most blobs of a model.
const MAX_LAYERS: usize = 256;
/// The registry that Ollama leaves out of a model's name.
const REGISTRY: &str = "registry.ollama.ai";
/// The namespace that it leaves out.
const NAMESPACE: &str = "library";

#[derive(Deserialize)]
struct Manifest {
    config: Option<Layer>,
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    digest: String,
    size: u64,
}

/// The models, called as Ollama calls them: `manifests/REGISTRY/NAMESPACE/NAME/TAG` is `NAME:TAG`, with
/// the registry and the namespace before it where they are not the usual ones.
pub(super) fn list(models: &Path) -> Vec<Listed> {
    let Ok(within) = models.canonicalize() else { return Vec::new() };
    let mut list = Vec::new();
    for (registry, path) in walk::directories(&within.join("manifests"), &within) {
        for (namespace, path) in walk::directories(&path, &within) {
            for (name, path) in walk::directories(&path, &within) {
                let prefix = prefix(&registry, &namespace);
                list.extend(tags(&path, &within, &format!("{prefix}{name}")));
            }
        }
    }
    list
}

fn prefix(registry: &str, namespace: &str) -> String {
    match (registry == REGISTRY, namespace == NAMESPACE) {
        (true, true) => String::new(),
        (true, false) => format!("{namespace}/"),
        _ => format!("{registry}/{namespace}/"),
    }
}

fn tags(directory: &Path, within: &Path, name: &str) -> Vec<Listed> {
    let listed = |(tag, path): (String, PathBuf)| {
        let id = ModelId::try_from(format!("{name}:{tag}")).ok()?;
        let manifest = walk::inside(&path, within)?;
        let content = Content::Ollama { manifest, blobs: within.join("blobs") };
        Some(Listed { id, source: "ollama", content })
    };
    walk::entries(directory).into_iter().filter_map(listed).collect()
}

/// The manifest as `manifest.json`, and the blobs that it names. `None` when one is missing or has not
/// the size that it should have, as while it is being fetched.
pub(super) fn files(manifest: &Path, blobs: &Path) -> Option<Vec<OfferedFile>> {
    let mut files = vec![walk::file("manifest.json", manifest)?];
    let read = read(manifest)?;
    let mut layers: Vec<_> = read.layers.into_iter().chain(read.config).collect();
    layers.sort_by(|a, b| a.digest.cmp(&b.digest));
    layers.dedup_by(|a, b| a.digest == b.digest);
    if layers.len() > MAX_LAYERS {
        return None;
    }
    for layer in &layers {
        files.push(blob(layer, blobs)?);
    }
    Some(files)
}

fn read(manifest: &Path) -> Option<Manifest> {
    let mut text = Vec::new();
    File::open(manifest).ok()?.take(MAX_MANIFEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn blob(layer: &Layer, blobs: &Path) -> Option<OfferedFile> {
    let hex = layer.digest.strip_prefix("sha256:")?;
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let name = format!("sha256-{hex}");
    let path = walk::inside(&blobs.join(&name), &blobs.canonicalize().ok()?)?;
    walk::file(&name, &path).filter(|file| file.size == layer.size)
}
