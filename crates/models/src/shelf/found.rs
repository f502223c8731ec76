//! Files that may be models, before any of them is read.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
};

use super::PassedOver;
use crate::{
    arrival::RECORD,
    disk_name::from_disk,
    name::ModelId,
    offer::{Library, MAX_ENTRIES, Offered, Sources, entries, shard},
};

/// How deep directories are looked through.
const MAX_DEPTH: usize = 8;

/// A file that may be a model.
#[derive(Debug, Clone)]
pub(super) struct FoundFile {
    /// Links are not resolved.
    pub(super) path: PathBuf,
    /// Links resolved.
    pub(super) resolved: PathBuf,
    /// Without directory and `.gguf`, or what its program calls it.
    pub(super) stem: String,
    /// Whether the stem is of a program, and nothing is taken off it.
    pub(super) is_given: bool,
    pub(super) id: Option<ModelId>,
    /// Whether it is there only to go with a file that was named: it is no model of its own.
    pub(super) is_beside: bool,
}

/// Looks through places, each file and each directory once.
#[derive(Default)]
pub(super) struct Finder {
    pub(super) files: Vec<FoundFile>,
    pub(super) passed_over: Vec<PassedOver>,
    seen: HashSet<PathBuf>,
}

impl Finder {
    /// A file or a directory that people named.
    pub(super) fn look_at(&mut self, path: &Path) {
        match path.canonicalize() {
            Ok(resolved) if resolved.is_dir() => self.directory(path, None),
            Ok(_) => self.named_file(path),
            Err(error) => {
                let reason = format!("it is not there, or cannot be looked at: {error}");
                self.passed_over.push(PassedOver::new(path, reason));
            }
        }
    }

    /// Where programs keep models. A place that is not there is nothing to tell.
    pub(super) fn look_through(&mut self, sources: &Sources) {
        let Sources { folders, ollama, lm_studio, hugging_face, store } = sources;
        let folders = folders.iter().filter(|folder| folder.is_dir());
        folders.for_each(|folder| self.directory(folder, None));
        store.iter().for_each(|store| self.directory(store, Some(store)));
        lm_studio.iter().chain(hugging_face).for_each(|place| self.directory(place, None));
        let ollama = Sources { ollama: ollama.clone(), ..Sources::default() };
        Library::new(ollama).scan().into_iter().for_each(|model| self.ollama(&model));
    }

    fn named_file(&mut self, path: &Path) {
        self.file(path, None, false);
        let name = file_name(path);
        let part = shard(&name);
        for (beside, path) in path.parent().map(entries).unwrap_or_default() {
            let is_part = part.as_ref().is_some_and(|part| {
                shard(&beside).is_some_and(|other| (other.model, other.of) == (part.model, part.of))
            });
            if is_part {
                self.file(&path, None, false);
            } else if beside.ends_with(".gguf") {
                self.file(&path, None, true);
            }
        }
    }

    /// All files below a directory. Below our own `store` models have the names by which they arrived.
    fn directory(&mut self, root: &Path, store: Option<&Path>) {
        let mut open = vec![(root.to_owned(), 1, None)];
        let mut looked_at = 0;
        while let Some((directory, depth, id)) = open.pop() {
            if !self.see(&directory) {
                continue;
            }
            let id = id.or_else(|| store.and_then(|store| arrived_as(&directory, store)));
            let mut below = Vec::new();
            for (name, path) in entries(&directory) {
                looked_at += 1;
                if looked_at > MAX_ENTRIES {
                    let reason =
                        format!("it has more than {MAX_ENTRIES} files: name a smaller one");
                    return self.passed_over.push(PassedOver::new(root, reason));
                }
                if path.is_dir() {
                    below.push((path, depth + 1, id.clone()));
                } else if name.ends_with(".gguf") {
                    self.file(&path, id.clone(), false);
                }
            }
            below.reverse();
            open.extend(below.into_iter().filter(|(_, depth, _)| *depth <= MAX_DEPTH));
        }
    }

    fn file(&mut self, path: &Path, id: Option<ModelId>, is_beside: bool) {
        let Ok(resolved) = path.canonicalize() else {
            return self.passed_over.push(PassedOver::new(path, "it is a link to nothing"));
        };
        if !resolved.is_file() {
            return self.passed_over.push(PassedOver::new(path, "it is no plain file"));
        }
        // What goes with a named file may be named itself afterwards.
        if is_beside && !self.seen.contains(&resolved) || self.seen.insert(resolved.clone()) {
            let name = file_name(path);
            let stem = name.strip_suffix(".gguf").unwrap_or(&name).to_owned();
            let file =
                FoundFile { path: path.to_owned(), resolved, stem, is_given: false, id, is_beside };
            self.files.push(file);
        }
    }

    /// Blobs have no names of their own.
    fn ollama(&mut self, model: &Offered) {
        for file in model.files.iter().filter(|file| file.name.as_str() != "manifest.json") {
            if self.seen.insert(file.path.clone()) {
                self.files.push(FoundFile {
                    path: file.path.clone(),
                    resolved: file.path.clone(),
                    stem: model.id.to_string(),
                    is_given: true,
                    id: Some(model.id.clone()),
                    is_beside: false,
                });
            }
        }
    }

    /// Notes a directory. Returns whether it is new.
    fn see(&mut self, directory: &Path) -> bool {
        directory.canonicalize().is_ok_and(|resolved| self.seen.insert(resolved))
    }
}

/// The name of a model of our store, by its directory.
fn arrived_as(directory: &Path, store: &Path) -> Option<ModelId> {
    let below = directory.strip_prefix(store).ok()?;
    let segment =
        |segment: Component<'_>| Some(from_disk(segment.as_os_str().to_str()?.to_owned()));
    let id = || {
        let segments: Option<Vec<String>> = below.components().map(segment).collect();
        ModelId::try_from(segments?.join("/")).ok()
    };
    directory.join(RECORD).is_file().then(id)?
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
