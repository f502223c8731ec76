//! The models that a program of this machine can serve: GGUF files in directories, by names that people
//! know.
//!
//! - A file is called as it is named, without `.gguf` and without its quantization. Where two would have one
//!   name, both keep their quantization; where they still have, the name of their directory comes before it.
//! - The files that a model is cut into are one model, once all of them are there.
//! - A projector (`mmproj`) goes with the models of its directory that its name begins as, or with the only
//!   model there.
//! - A file that is still being written is not a model yet: one that is shorter than its head says, that was
//!   written less than [`SETTLED`] ago, or beside which a program keeps a note that it is at it.
//!
//! Files that are passed over are reported with the reason. A directory that is not there has no models.

mod found;
mod heads;
mod name;
mod parts;
mod projectors;

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use base::{Capability, ModelFacts};

pub use self::name::{of_projector, quantization, short};
use self::{found::Finder, heads::Heads};
use crate::{gguf::Gguf, name::ModelId, offer::Sources};

/// How long a file must have been left alone.
pub const SETTLED: Duration = Duration::from_secs(2);

/// The most models of a shelf.
pub const MAX_MODELS: usize = 4_096;

/// A model that can be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalModel {
    /// Its name, as `Qwen3-8B`; no other model of the scan has it.
    pub name: String,
    /// Its name for peers, when it arrived from one or from a hub.
    pub id: Option<ModelId>,
    /// Its parts in their order; the first one is what a program is given. Links are not resolved, as
    /// programs find the other parts by the name of the first.
    pub files: Vec<PathBuf>,
    /// How long they are together, in bytes.
    pub file_bytes: u64,
    /// The file that makes pictures or sound readable for it.
    pub projector: Option<Projector>,
    /// The head of its first part, with the parameters of all.
    pub head: Gguf,
}

/// A file that makes pictures or sound readable for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projector {
    /// Where it is; links are not resolved.
    pub file: PathBuf,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// Its head.
    pub head: Gguf,
}

/// A file or directory with no model to serve, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// The file or directory.
    pub path: PathBuf,
    /// For people.
    pub reason: String,
    /// Whether the reason goes away by itself: the file is still being written.
    pub is_arriving: bool,
}

/// The models that are there at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// In the order of their places, and there of their names.
    pub models: Vec<LocalModel>,
    /// In the order of their paths.
    pub passed_over: Vec<PassedOver>,
}

/// Places that are looked through again and again. A head is read again only when its file has changed.
#[derive(Debug)]
pub struct Shelf {
    named: Vec<PathBuf>,
    others: Sources,
    heads: Heads,
}

impl Shelf {
    /// Looks at these files and through these directories, and then through those of programs. Of a file
    /// that is named, the other parts and the projector are found beside it.
    pub fn new(named: Vec<PathBuf>, others: Sources) -> Self {
        Self { named, others, heads: Heads::default() }
    }

    /// The models that are there at this time of the clock. Blocks on the disk.
    pub fn scan(&mut self, now: SystemTime) -> Scan {
        let mut finder = Finder::default();
        self.named.iter().for_each(|path| finder.look_at(path));
        finder.look_through(&self.others);
        let mut passed_over = finder.passed_over;
        let files = self.heads.read(finder.files, now, &mut passed_over);
        let models = parts::join(files.models, &mut passed_over);
        let models = projectors::attach(models, files.projectors, &mut passed_over);
        let mut models = name::unique(models, &mut passed_over);
        models.truncate(MAX_MODELS);
        passed_over.sort();
        passed_over.dedup();
        Scan { models, passed_over }
    }
}

impl LocalModel {
    /// The file that a program is given.
    pub fn file(&self) -> &Path {
        // A model has one part at least.
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// The known facts about it, with its projector.
    pub fn facts(&self) -> ModelFacts {
        let projector =
            self.projector.iter().flat_map(|projector| projector.head.capabilities.iter());
        let reads = projector.filter(|can| matches!(can, Capability::Vision | Capability::Audio));
        let capabilities = self.head.capabilities.iter().chain(reads).collect();
        ModelFacts {
            file_bytes: Some(self.bytes()),
            capabilities: Some(capabilities),
            ..self.head.facts()
        }
    }

    /// How much memory it takes, in bytes, for `parallel` requests at a time of at most `context` tokens
    /// each: see [`crate::gguf::Needs`].
    pub fn memory(&self, context: u64, parallel: u64) -> u64 {
        self.head.needs.memory(self.bytes(), context, parallel)
    }

    /// With its projector.
    fn bytes(&self) -> u64 {
        let projector = self.projector.as_ref().map_or(0, |projector| projector.bytes);
        self.file_bytes.saturating_add(projector)
    }
}

impl PassedOver {
    fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), reason: reason.into(), is_arriving: false }
    }

    fn arriving(path: &Path, reason: impl Into<String>) -> Self {
        Self { is_arriving: true, ..Self::new(path, reason) }
    }
}

#[cfg(test)]
mod tests;
