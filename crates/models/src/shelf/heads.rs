//! Heads of files, read again only when the file has changed.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{PassedOver, SETTLED, found::FoundFile};
use crate::{
    gguf::{Gguf, GgufError, GgufKind},
    offer::{Stamp, UNFINISHED},
};

/// A file that is a model, a part of one, or a projector.
#[derive(Debug, Clone)]
pub(super) struct HeadedFile {
    pub(super) found: FoundFile,
    pub(super) bytes: u64,
    pub(super) head: Gguf,
}

/// The files that are whole.
#[derive(Debug, Default)]
pub(super) struct HeadedFiles {
    pub(super) models: Vec<HeadedFile>,
    pub(super) projectors: Vec<HeadedFile>,
}

/// The heads of the files of the last scan.
#[derive(Debug, Default)]
pub(super) struct Heads(HashMap<PathBuf, Known>);

#[derive(Debug, Clone)]
struct Known {
    stamp: Stamp,
    is: Result<Gguf, Fault>,
}

/// Why a file has no head.
#[derive(Debug, Clone)]
struct Fault {
    reason: String,
    /// Whether it may only not be there yet.
    is_cut: bool,
}

impl Heads {
    /// Reads the files that are new or have changed. Those that are no models are passed over.
    pub(super) fn read(
        &mut self,
        files: Vec<FoundFile>,
        now: SystemTime,
        passed_over: &mut Vec<PassedOver>,
    ) -> HeadedFiles {
        let mut known = HashMap::new();
        let mut headed = HeadedFiles::default();
        for found in files {
            match self.file(found, now, &mut known) {
                Ok(Some(file)) if file.head.kind == GgufKind::Projector => {
                    headed.projectors.push(file);
                }
                Ok(Some(file)) => headed.models.push(file),
                Ok(None) => {}
                Err(passed) => passed_over.push(passed),
            }
        }
        self.0 = known;
        headed
    }

    #[cfg(test)]
    pub(super) fn know(&mut self, path: &Path, stamp: Stamp, head: Gguf) {
        self.0.insert(path.to_owned(), Known { stamp, is: Ok(head) });
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `None` when there is nothing to report of it.
    fn file(
        &self,
        found: FoundFile,
        now: SystemTime,
        known: &mut HashMap<PathBuf, Known>,
    ) -> Result<Option<HeadedFile>, PassedOver> {
        let path = &found.path;
        let Ok(meta) = fs::metadata(&found.resolved) else {
            return Err(PassedOver::new(path, "it went away"));
        };
        let known = self.known(&found.resolved, Stamp::of(&meta), known);
        let head = match known.is {
            _ if found.is_beside && !is_projector(&known) => return Ok(None),
            // Of a blob it is not known beforehand whether it is a model.
            Err(fault) if found.is_given && !fault.is_cut => return Ok(None),
            Err(fault) if fault.is_cut => return Err(PassedOver::arriving(path, fault.reason)),
            Err(fault) => return Err(PassedOver::new(path, fault.reason)),
            Ok(head) => head,
        };
        if let Some(reason) = is_no_model(head.kind) {
            return Err(PassedOver::new(path, reason));
        }
        if let Some(reason) = is_being_written(&found, &meta, &head, now) {
            return Err(PassedOver::arriving(path, reason));
        }
        Ok(Some(HeadedFile { found, bytes: meta.len(), head }))
    }

    fn known(&self, path: &Path, stamp: Stamp, known: &mut HashMap<PathBuf, Known>) -> Known {
        let earlier = self.0.get(path).filter(|earlier| earlier.stamp == stamp);
        let earlier = earlier.cloned().unwrap_or_else(|| {
            let is = Gguf::read(path).map_err(|error| Fault {
                is_cut: matches!(error, GgufError::Ended { .. }),
                reason: error.to_string(),
            });
            Known { stamp, is }
        });
        known.insert(path.to_owned(), earlier.clone());
        earlier
    }
}

fn is_projector(known: &Known) -> bool {
    known.is.as_ref().is_ok_and(|head| head.kind == GgufKind::Projector)
}

fn is_no_model(kind: GgufKind) -> Option<&'static str> {
    match kind {
        GgufKind::Model | GgufKind::Projector => None,
        GgufKind::Adapter => Some("it is an adapter (LoRA), which changes a model and is none"),
        GgufKind::Vocabulary => Some("it has words, but no weights"),
        GgufKind::Importance => Some("it is a note for making models smaller, and none itself"),
    }
}

fn is_being_written(
    found: &FoundFile,
    meta: &fs::Metadata,
    head: &Gguf,
    now: SystemTime,
) -> Option<String> {
    let (length, least) = (meta.len(), head.least_length);
    if length < least {
        return Some(format!(
            "it has {length} of {least} bytes: it is being written, or broke off"
        ));
    }
    if found.id.is_some() {
        // It was put into its place when it was whole.
        return None;
    }
    let age = meta.modified().ok().and_then(|written| now.duration_since(written).ok());
    if age.is_some_and(|age| age < SETTLED) {
        return Some("it was written just now".to_owned());
    }
    let note = |ending: &&&str| {
        let mut beside = found.path.clone().into_os_string();
        beside.push(ending);
        Path::new(&beside).exists()
    };
    let note = UNFINISHED.iter().find(note)?;
    Some(format!("a program is writing it: its note with {note} is beside it"))
}
