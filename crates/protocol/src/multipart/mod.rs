//! Bodies of `multipart/form-data`, read for what routing needs: the model, and whether a stream is asked
//! for.
//!
//! A form is read in pieces, and nothing of it is kept but the two short values and the heads of the part that is
//! being read. A form that readers understand differently is refused: a provider must find the same model in it as
//! the server.
//!
//! - [`boundary`]: the boundary between the fields, from the content type
//! - [`reader`]: the fields, piece by piece
//! - `part`: the headers of one field
//! - `parameters`: the parameters of a header

pub mod boundary;
mod parameters;
mod part;
pub mod reader;

use std::ops::Range;

use bytes::Bytes;

use crate::openai::{BadBody, MAX_MODEL_NAME};

pub use boundary::{Boundary, is_form};
pub use reader::FormReader;

/// The longest boundary, in bytes (RFC 2046 section 5.1.1).
pub const MAX_BOUNDARY: usize = 70;

/// The most fields that a form may have, files included.
pub const MAX_PARTS: usize = 256;

/// The longest headers of a field, in bytes.
pub const MAX_HEADERS: usize = 8 * 1024;

/// The part of a form that routing needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The model's name.
    pub model: String,
    /// Where it is, as offsets into the body.
    pub model_span: Range<usize>,
    /// Whether the form asks for a stream; false when it does not say.
    pub stream: bool,
}

impl Form {
    /// Reads a whole form.
    ///
    /// # Errors
    /// [`BadForm`] when it cannot be routed.
    pub fn read(boundary: &Boundary, body: &Bytes) -> Result<Self, BadForm> {
        let mut reader = FormReader::new(boundary);
        reader.feed(body)?;
        reader.end()
    }
}

/// Why a form cannot be routed; the text is for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadForm {
    /// The content type names no boundary.
    #[error("the content type multipart/form-data must have one boundary")]
    NoBoundary,
    /// The boundary is too long.
    #[error("the boundary of the form must not be longer than {MAX_BOUNDARY} bytes")]
    BoundaryTooLong,
    /// There are bytes before the first boundary.
    #[error("the form does not begin with the boundary that its content type names")]
    NoBeginning,
    /// The last boundary is missing.
    #[error("the form has no end: its last boundary is missing")]
    NoEnd,
    /// There are bytes after the last boundary.
    #[error("the form has bytes behind its last boundary")]
    AfterEnd,
    /// Something that only some readers take for a boundary.
    #[error("the form is ambiguous: {0}")]
    Ambiguous(&'static str),
    /// The headers of a field do not name it.
    #[error(
        "a field of the form has no usable Content-Disposition: it needs form-data and one name"
    )]
    NoName,
    /// Too many fields.
    #[error("the form must not have more than {MAX_PARTS} fields")]
    TooManyParts,
    /// The headers of a field are too long.
    #[error("the headers of a field of the form must not be longer than {MAX_HEADERS} bytes")]
    HeadersTooLong,
    /// The model is a file, or encoded.
    #[error("`{0}` must be a plain field of the form, and neither a file nor encoded")]
    NotPlain(&'static str),
    /// The model is not text.
    #[error("`model` must be valid UTF-8")]
    ModelNotUtf8,
    /// A field has a fault that is one in any kind of request.
    #[error(transparent)]
    Field(#[from] BadBody),
}

impl BadForm {
    /// The field that is wrong, if it is one.
    pub fn param(&self) -> Option<&'static str> {
        match self {
            Self::NotPlain(field) => Some(field),
            Self::ModelNotUtf8 => Some("model"),
            Self::Field(bad) => bad.param(),
            _ => None,
        }
    }
}

/// A form in pieces, with its model replaced by this one. The pieces are not copied.
///
/// # Errors
/// [`BadForm`] when the form cannot be routed.
pub fn renamed(body: &[Bytes], boundary: &Boundary, model: &str) -> Result<Vec<Bytes>, BadForm> {
    let mut reader = FormReader::new(boundary);
    body.iter().try_for_each(|piece| reader.feed(piece))?;
    let span = reader.end()?.model_span;
    let (mut renamed, mut at) = (Vec::with_capacity(body.len() + 2), 0);
    for piece in body {
        let before = piece.len().min(span.start.saturating_sub(at));
        let after = piece.len().min(span.end.saturating_sub(at));
        let has_end = (at..at + piece.len()).contains(&span.end);
        renamed.push(piece.slice(..before));
        if has_end {
            renamed.push(Bytes::copy_from_slice(model.as_bytes()));
        }
        renamed.push(piece.slice(after..));
        at += piece.len();
    }
    renamed.retain(|piece| !piece.is_empty());
    Ok(renamed)
}

/// The longest value that is kept, in bytes: one more than the longest that is taken.
const MAX_KEPT: usize = MAX_MODEL_NAME + 1;

#[cfg(test)]
mod tests;
