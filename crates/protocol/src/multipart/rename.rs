//! The same form with another model.

use bytes::Bytes;

use super::{BadForm, Boundary, FormReader};

/// A form in pieces, with this model in the place of its own. Of the pieces nothing is copied.
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
