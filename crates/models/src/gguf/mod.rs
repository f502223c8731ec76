//! The facts in the head of a GGUF file about its model: its kind, its capabilities, how much memory it takes.
//!
//! The form is described in `docs/gguf.md` of the project ggml: a head with values, the list of tensors, and
//! their data from the next multiple of an alignment on. Numbers are little-endian here; files of other
//! machines are not read. Only the head is read, and of it only what is needed, within bounds.

mod abilities;
mod head;
mod kinds;
mod memory;
mod values;

use std::{
    fs::File,
    io::{self, Cursor},
    path::Path,
};

use base::{Capabilities, ModelFacts};

pub use self::memory::{BATCH, Needs, PROGRAM};
use self::{head::Head, values::Values};

/// Why a file says nothing of a model.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The system does not let it be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It does not begin as one.
    #[error("it is no GGUF file")]
    Foreign,
    /// It ends within its head.
    #[error("it is cut off after {length} bytes, within its head")]
    Ended {
        /// Of the file, in bytes.
        length: u64,
    },
    /// A form that is not known, or numbers that cannot be.
    #[error("its head is not understood: it is damaged, or of a newer form")]
    Unknown,
}

/// The kind of model in a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GgufKind {
    /// A model, or a part of one.
    Model,
    /// Makes pictures or sound readable for a model (`mmproj`).
    Projector,
    /// Changes a model (LoRA).
    Adapter,
    /// Words without a model.
    Vocabulary,
    /// Notes of a program that makes models smaller.
    Importance,
}

/// Which part of a model a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// From 1 on.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

/// The content of a file's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gguf {
    /// The kind of the model.
    pub kind: GgufKind,
    /// As `qwen3`.
    pub architecture: Option<Box<str>>,
    /// The name that its maker gave it.
    pub name: Option<Box<str>>,
    /// How its weights are stored, as `Q4_K_M`.
    pub quantization: Option<Box<str>>,
    /// Of its tensors. A part counts its own only.
    pub parameters: u64,
    /// How many tokens it was made for.
    pub context_tokens: Option<u64>,
    /// Its capabilities, without its projector.
    pub capabilities: Capabilities,
    /// Which part it is of a model that is cut into several files.
    pub split: Option<Split>,
    /// The memory that it takes beside its weights.
    pub needs: Needs,
    /// How long the file must be, in bytes.
    pub least_length: u64,
}

impl Gguf {
    /// Reads the head of a file. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// [`GgufError`] says why it is not a file that is understood.
    pub fn read(path: &Path) -> Result<Self, GgufError> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self::of(&Head::read(file, length)?))
    }

    /// The same of the first bytes of a file.
    ///
    /// # Errors
    ///
    /// [`GgufError`]; [`GgufError::Ended`] when the head is longer.
    pub fn parse(bytes: &[u8]) -> Result<Self, GgufError> {
        Ok(Self::of(&Head::read(Cursor::new(bytes), bytes.len() as u64)?))
    }

    fn of(head: &Head) -> Self {
        let values = &head.values;
        Self {
            kind: kind(head),
            architecture: values.text("general.architecture").map(Into::into),
            name: values.text("general.name").map(Into::into),
            quantization: quantization(head).map(Into::into),
            parameters: head.tensors.elements,
            context_tokens: values.own_number("context_length"),
            capabilities: abilities::of(values),
            split: split(values),
            needs: Needs::of(values),
            least_length: head.least_length,
        }
    }

    /// The facts that its head tells, of one file.
    pub fn facts(&self) -> ModelFacts {
        ModelFacts {
            context_tokens: self.context_tokens,
            file_bytes: Some(self.least_length),
            parameters: Some(self.parameters).filter(|parameters| *parameters > 0),
            quantization: self.quantization.clone(),
            family: self.architecture.clone(),
            capabilities: Some(self.capabilities),
            ..ModelFacts::default()
        }
    }
}

/// How long a GGUF file must be, in bytes; `None` when it is another file, or one that is not understood. Of one
/// that ends within its head more than there is.
pub(crate) fn least_length(path: &Path) -> Option<u64> {
    match Gguf::read(path) {
        Ok(gguf) => Some(gguf.least_length),
        Err(GgufError::Ended { length }) => Some(length + 1),
        Err(_) => None,
    }
}

fn kind(head: &Head) -> GgufKind {
    let values = &head.values;
    match (values.text("general.type"), values.text("general.architecture")) {
        (Some("mmproj"), _) | (_, Some("clip")) => GgufKind::Projector,
        (Some("adapter"), _) => GgufKind::Adapter,
        (Some("imatrix"), _) => GgufKind::Importance,
        _ if values.text("adapter.type").is_some() => GgufKind::Adapter,
        // The first part of a model may have no tensors of its own.
        _ if head.tensors.count == 0 && split(values).is_none() => GgufKind::Vocabulary,
        _ => GgufKind::Model,
    }
}

/// The quantisation in its head, or else the type of tensors that takes most of it.
fn quantization(head: &Head) -> Option<&'static str> {
    let said = head.values.number("general.file_type").and_then(kinds::file_type);
    said.or_else(|| {
        let (kind, _) = head.tensors.bytes_by_kind.iter().max_by_key(|(_, bytes)| **bytes)?;
        kinds::tensor_type(*kind)
    })
}

/// Its head counts parts from 0 on.
fn split(values: &Values) -> Option<Split> {
    let of = values.number("split.count").filter(|of| *of > 1)?;
    Some(Split { number: values.number("split.no")?.checked_add(1)?, of })
}

#[cfg(test)]
mod tests;
