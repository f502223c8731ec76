//! The models that this machine has to offer: found where programs keep them, read in place and never
//! changed.
//!
//! What is offered leaves the machine, so a link that leads out of its source's own directory is passed
//! over, as are hidden files, and names that no peer could take. A model that is still being fetched, or broke
//! off, is not offered.

mod complete;
mod folder;
mod hugging_face;
mod ollama;
mod own;
mod reader;
mod walk;

use std::{
    collections::HashSet,
    ffi::OsString,
    path::{Path, PathBuf},
};

pub use complete::{Shard, shard};
pub use reader::{MAX_READ, Reader, Stamp};

pub(crate) use self::{
    complete::UNFINISHED,
    walk::{MAX_ENTRIES, entries},
};

use crate::{
    manifest::MAX_FILES,
    name::{FileName, ModelId},
};

/// The most models that are offered.
pub const MAX_MODELS: usize = 4_096;

/// Where models are looked for. What is not there is passed over.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Directories named by the user: `DIR/ORG/NAME/` is offered as `ORG/NAME`, `DIR/NAME.gguf` as
    /// `NAME`.
    pub folders: Vec<PathBuf>,
    /// Ollama's models (`~/.ollama/models`, or what `OLLAMA_MODELS` says).
    pub ollama: Option<PathBuf>,
    /// LM Studio's models, in directories `ORG/NAME`.
    pub lm_studio: Vec<PathBuf>,
    /// The cache of Hugging Face (`~/.cache/huggingface/hub`, or what `HF_HUB_CACHE`, `HF_HOME` or
    /// `XDG_CACHE_HOME` says).
    pub hugging_face: Option<PathBuf>,
    /// Our own store, where models arrive.
    pub store: Option<PathBuf>,
}

impl Sources {
    /// Where programs keep their models below a home directory; nothing else.
    pub fn of_home(home: &Path) -> Self {
        Self {
            ollama: Some(home.join(".ollama/models")),
            lm_studio: vec![home.join(".lmstudio/models"), home.join(".cache/lm-studio/models")],
            hugging_face: Some(home.join(".cache/huggingface/hub")),
            ..Self::default()
        }
    }

    /// The same, unless the environment, read by variable name, says otherwise. Empty values are
    /// ignored.
    #[must_use]
    pub fn as_said_by(mut self, environment: impl Fn(&str) -> Option<OsString>) -> Self {
        let said = |name| environment(name).filter(|said| !said.is_empty()).map(PathBuf::from);
        self.ollama = said("OLLAMA_MODELS").or(self.ollama);
        let home = || said("HF_HOME").map(|home| home.join("hub"));
        let cache = || said("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub"));
        let hub = said("HF_HUB_CACHE").or_else(home).or_else(cache);
        self.hugging_face = hub.or(self.hugging_face);
        self
    }
}

/// A file of a model that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedFile {
    /// Below the model.
    pub name: FileName,
    /// When it was found, in bytes.
    pub size: u64,
    /// Where it is, links resolved.
    pub path: PathBuf,
}

impl OfferedFile {
    /// Opens it for reading.
    ///
    /// # Errors
    ///
    /// The system's error; also when it is no file any more, or has another size than when it was
    /// found.
    pub fn open(&self) -> std::io::Result<Reader> {
        Reader::open(self)
    }
}

/// A model that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Its name for peers.
    pub id: ModelId,
    /// Whose it is, for people: `folder`, `ollama`, `lm-studio`, `hugging-face` or `store`.
    pub source: &'static str,
    /// In the order of their names. Empty ones are among them, hidden ones are not.
    pub files: Vec<OfferedFile>,
}

impl Offered {
    /// How long its files are together, in bytes.
    pub fn size(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// The offered models, found again at each question.
#[derive(Debug, Clone, Default)]
pub struct Library {
    sources: Sources,
}

impl Library {
    /// Looks in these places.
    pub fn new(sources: Sources) -> Self {
        Self { sources }
    }

    /// All that is offered, at most [`MAX_MODELS`]. Of two models of one name the first is offered, in
    /// the order: directories named by the user, our own store, Ollama, LM Studio, Hugging Face.
    pub fn scan(&self) -> Vec<Offered> {
        self.list().into_iter().filter_map(Listed::offered).collect()
    }

    /// The model of this name. Looks through the directories, but only at the files of this one.
    pub fn find(&self, id: &ModelId) -> Option<Offered> {
        self.list().into_iter().find(|listed| listed.id == *id)?.offered()
    }

    fn list(&self) -> Vec<Listed> {
        let Sources { folders, ollama, lm_studio, hugging_face, store } = &self.sources;
        let mut list: Vec<Listed> = Vec::new();
        list.extend(folders.iter().flat_map(|folder| folder::list(folder, "folder")));
        list.extend(store.iter().flat_map(|store| own::list(store)));
        list.extend(ollama.iter().flat_map(|models| ollama::list(models)));
        list.extend(lm_studio.iter().flat_map(|models| folder::list(models, "lm-studio")));
        list.extend(hugging_face.iter().flat_map(|hub| hugging_face::list(hub)));
        let mut seen = HashSet::new();
        list.retain(|listed| seen.insert(listed.id.clone()));
        if list.len() > MAX_MODELS {
            tracing::warn!(models = list.len(), "only the first {MAX_MODELS} models are offered");
            list.truncate(MAX_MODELS);
        }
        list
    }
}

/// A model whose files were not looked at yet.
struct Listed {
    id: ModelId,
    source: &'static str,
    content: Content,
}

/// Where its files are.
enum Content {
    /// All below `path`; links are followed to files within `within`. Both are resolved.
    Directory { path: PathBuf, within: PathBuf },
    /// A file, or all files that it is cut into; resolved.
    Files(Vec<PathBuf>),
    /// The files in a manifest of Ollama.
    Ollama { manifest: PathBuf, blobs: PathBuf },
}

impl Listed {
    /// With its files; `None` when there is nothing in them, too many of them, or the model is not whole.
    fn offered(self) -> Option<Offered> {
        let mut files = match &self.content {
            Content::Directory { path, within } => {
                let beside = [path.join(".cache/huggingface/download"), within.join("blobs")];
                if beside.iter().any(|beside| complete::is_being_fetched(beside)) {
                    return None;
                }
                walk::files(path, within)?
            }
            Content::Files(paths) => {
                let file = |path: &PathBuf| walk::file(path.file_name()?.to_str()?, path);
                paths.iter().map(file).collect::<Option<_>>()?
            }
            Content::Ollama { manifest, blobs } => ollama::files(manifest, blobs)?,
        };
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let offered = Offered { id: self.id, source: self.source, files };
        let fits = offered.size() > 0 && offered.files.len() <= MAX_FILES;
        // What Ollama and this store have was checked by their own lists.
        let is_whole = || {
            let is_listed = matches!(offered.source, "ollama" | "store");
            is_listed || complete::is_complete(&offered.files)
        };
        (fits && is_whole()).then_some(offered)
    }
}

#[cfg(test)]
mod tests;
